//! The system prompt of this agent.

use workspace::discovery;

use super::consent::PermissionMode;
use super::offered_tools::OfferedTools;
use crate::prompt::{CustomInstructions, OfferedSkill, ProjectFacts, Prompt};

/// Builds the prompt of a turn from gathered facts.
pub(super) fn build(facts: ProjectFacts, tools: &OfferedTools<'_>, mode: PermissionMode) -> Prompt {
    let mut prompt = Prompt {
        agent_name: "Greenroom".to_owned(),
        environment_context: facts.environment,
        custom_instructions: CustomInstructions { files: facts.instructions, listed: Vec::new() },
        ..Prompt::default()
    };
    apply_tools(&mut prompt, tools, mode);
    prompt
}

/// The skills as the prompt lists them.
pub(super) fn list_skills(skills: &[discovery::Skill]) -> Vec<OfferedSkill> {
    let offered = skills.iter().filter(|skill| skill.is_for_models());
    let listed = offered.map(|skill| OfferedSkill {
        name: skill.name.clone(),
        description: skill.description.clone(),
    });
    listed.collect()
}

/// Fills in which tools there are and what the session's mode means; both may change in the middle of a turn.
pub(super) fn apply_tools(prompt: &mut Prompt, tools: &OfferedTools<'_>, mode: PermissionMode) {
    prompt.has_tools = !tools.is_empty();
    prompt.tool_instructions.tools = tools.names().map(str::to_owned).collect();
    let changes = tools.names_of_changing().next().is_some();
    prompt.may_change_files = changes && mode != PermissionMode::Plan;
    prompt.runtime_instructions.mode = describe_mode(mode, tools);
}

/// What the mode means for the model.
fn describe_mode(mode: PermissionMode, tools: &OfferedTools<'_>) -> Option<String> {
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
        PermissionMode::Plan => {
            let forbidden: Vec<&str> = tools.names_of_changing().collect();
            format!(
                "The user wants a plan: only read, and say what you would change. When the plan is complete, call \
                 `exit_plan` with it; the user approves it or says what is missing. These are refused until then: {}.",
                forbidden.join(", ")
            )
        }
    };
    Some(text)
}
