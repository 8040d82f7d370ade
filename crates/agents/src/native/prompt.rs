//! The system prompt of this agent.

use workspace::discovery;

use super::consent::PermissionMode;
use crate::prompt::{CustomInstructions, Facts, OfferedSkill, Prompt, ToolInstructions};
use crate::tool::{Nature, Tool};

/// Builds the prompt of a turn from gathered facts.
pub(super) fn build(facts: Facts, tools: &[&dyn Tool], mode: PermissionMode) -> Prompt {
    let mut prompt = Prompt {
        agent_name: "Greenroom".to_owned(),
        has_tools: !tools.is_empty(),
        environment_context: facts.environment,
        tool_instructions: ToolInstructions {
            tools: tools.iter().map(|tool| tool.name().to_owned()).collect(),
            skills: Vec::new(),
        },
        custom_instructions: CustomInstructions {
            files: facts.instructions,
        },
        ..Prompt::default()
    };
    apply_mode(&mut prompt, tools, mode);
    prompt
}

/// The skills as the prompt lists them.
pub(super) fn list_skills(skills: &[discovery::Skill]) -> Vec<OfferedSkill> {
    let offered = skills.iter();
    let offered = offered.filter(|skill| skill.is_for_models());
    let listed = offered.map(|skill| OfferedSkill {
        name: skill.name.clone(),
        description: skill.description.clone(),
    });
    listed.collect()
}

/// Fills in what the session's mode means; it may change in the middle of a turn.
pub(super) fn apply_mode(prompt: &mut Prompt, tools: &[&dyn Tool], mode: PermissionMode) {
    let changes = tools.iter().any(|tool| tool.nature() != Nature::Reads);
    prompt.may_change_files = changes && mode != PermissionMode::ReadOnly;
    prompt.runtime_instructions.mode = describe_mode(mode, tools);
}

/// What the mode means for the model.
fn describe_mode(mode: PermissionMode, tools: &[&dyn Tool]) -> Option<String> {
    if tools.is_empty() {
        return None;
    }
    let text = match mode {
        PermissionMode::Ask => {
            "The user is asked before a file is edited or a command is run.".to_owned()
        }
        PermissionMode::AcceptEdits => {
            "Files may be edited without asking; the user is asked before a command is run."
                .to_owned()
        }
        PermissionMode::FullAccess => {
            "Files may be edited and commands run without asking.".to_owned()
        }
        PermissionMode::ReadOnly => {
            let acts = tools.iter().filter(|tool| tool.nature() != Nature::Reads);
            let forbidden: Vec<&str> = acts.map(|tool| tool.name()).collect();
            format!(
                "This session is read only: {} are refused. Say what you would change instead.",
                forbidden.join(", ")
            )
        }
    };
    Some(text)
}
