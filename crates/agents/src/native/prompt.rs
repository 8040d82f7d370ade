//! What the model is told before the conversation: the house's sections, filled for this agent.

use workspace::discovery;

use super::consent::Mode;
use crate::prompt::{
    CodeChangeRules, CustomInstructions, Facts, Identity, Prompt, Skill, ToolEfficiency,
    ToolInstructions,
};
use crate::tool::{Nature, Tool};

/// The prompt of a turn, its facts already gathered.
pub(super) fn of(facts: Facts, tools: &[&dyn Tool], mode: Mode) -> Prompt {
    let mut prompt = Prompt {
        identity: Identity {
            name: "Greenroom".to_owned(),
        },
        tool_efficiency: ToolEfficiency {
            has_tools: !tools.is_empty(),
        },
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
    hold_to(&mut prompt, tools, mode);
    prompt
}

/// The skills as the prompt lists them.
pub(super) fn index_of(skills: &[discovery::Skill]) -> Vec<Skill> {
    let told = skills.iter();
    let told = told.filter(|skill| skill.is_for_models());
    let listed = told.map(|skill| Skill {
        name: skill.name.clone(),
        description: skill.description.clone(),
    });
    listed.collect()
}

/// Says what the session's mode means; it may change in the middle of a turn.
pub(super) fn hold_to(prompt: &mut Prompt, tools: &[&dyn Tool], mode: Mode) {
    let changes = tools.iter().any(|tool| tool.nature() != Nature::Reads);
    let may_change = changes && mode != Mode::ReadOnly;
    prompt.code_change_rules = CodeChangeRules { may_change };
    prompt.runtime_instructions.mode = in_words(mode, tools);
}

/// What the mode means for the model.
fn in_words(mode: Mode, tools: &[&dyn Tool]) -> Option<String> {
    if tools.is_empty() {
        return None;
    }
    let text = match mode {
        Mode::Ask => "The user is asked before a file is edited or a command is run.".to_owned(),
        Mode::AcceptEdits => {
            "Files may be edited without asking; the user is asked before a command is run."
                .to_owned()
        }
        Mode::FullAccess => "Files may be edited and commands run without asking.".to_owned(),
        Mode::ReadOnly => {
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
