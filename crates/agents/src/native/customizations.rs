//! What the project and the user have for this turn: skills, the custom agent that the message names, and rules (CU-8).
//!
//! Promises: nothing that is switched off is used. A custom agent that cannot be read ends the turn: without its
//! instructions and its list of tools it would be another one.

use agent_api::{AgentError, TurnInput};
use globset::GlobBuilder;
use workspace::discovery::{ChildContent, Discovered, Skill};
use workspace::{InstructionFile, Workspace};

use super::stop::TurnStop;

/// What is read of a custom agent, and of a rule.
const AGENT_BYTES_MAX: usize = 64 * 1_024;
const RULE_BYTES_MAX: usize = 16 * 1_024;

/// Rules that hold for the whole turn, in all.
const RULES_BYTES_MAX: usize = 64 * 1_024;

/// Rules that are listed with the files they are about.
const LISTED_RULES_MAX: usize = 64;

/// What of it concerns a turn.
#[derive(Debug, Default)]
pub(super) struct TurnCustomizations {
    pub skills: Vec<Skill>,
    pub agent: Option<ChosenAgent>,
    /// Rules that hold, with what they say.
    pub rules: Vec<InstructionFile>,
    /// Rules about certain files: which file has them, which files they are about, and what for.
    pub listed_rules: Vec<String>,
    /// Instruction files of the project that are switched off, by their paths.
    pub switched_off: Vec<String>,
}

/// The custom agent that a message names.
#[derive(Debug)]
pub(super) struct ChosenAgent {
    pub name: String,
    pub instructions: String,
    pub tools: Option<Vec<String>>,
}

impl TurnCustomizations {
    /// The tools that the custom agent lists.
    pub(super) fn agent_tools(&self) -> Option<&[String]> {
        self.agent.as_ref()?.tools.as_deref()
    }
}

/// Looks what there is.
pub(super) async fn read(
    workspace: &Workspace,
    input: &TurnInput,
) -> Result<TurnCustomizations, TurnStop> {
    let workspace = workspace.clone();
    workspace.switch_off(input.switched_off.clone());
    let agent = input.message["agent"]["uri"].as_str().map(str::to_owned);
    let mentioned: Vec<String> = input.user.files().into_iter().map(str::to_owned).collect();
    let looking = tokio::task::spawn_blocking(move || {
        let discovered = workspace.discover();
        let agent = agent.map(|uri| read_agent(&workspace, &discovered, &uri));
        let mut found = TurnCustomizations {
            agent: agent.transpose()?,
            ..TurnCustomizations::default()
        };
        add_rules(&workspace, &discovered, &mentioned, &mut found);
        found.skills = discovered.skills;
        Ok(found)
    });
    match looking.await {
        Ok(found) => found.map_err(TurnStop::Failed),
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    }
}

fn read_agent(
    workspace: &Workspace,
    discovered: &Discovered,
    uri: &str,
) -> Result<ChosenAgent, AgentError> {
    let failed = |message: String| AgentError {
        error_type: "customAgentMissing".to_owned(),
        message,
        resumable: true,
    };
    let children = discovered.containers.iter().flat_map(|container| {
        let children = container.enabled_children(&discovered.switched_off);
        children.map(move |child| (container, child))
    });
    let mut agents = children.filter_map(|(container, child)| match &child.content {
        ChildContent::Agent(agent) if child.uri == uri => Some((container.full_name(child), agent)),
        _ => None,
    });
    let Some((name, agent)) = agents.next() else {
        return Err(failed(
            "the custom agent of this message does not exist any more; send it again with another"
                .to_owned(),
        ));
    };
    let text = workspace.read_instructions(uri, AGENT_BYTES_MAX);
    let text =
        text.map_err(|error| failed(format!("the custom agent {name} cannot be read: {error}")))?;
    Ok(ChosenAgent {
        instructions: text,
        tools: agent.tools.clone(),
        name,
    })
}

/// Adds the rules that hold in this turn with their text, and lists the others.
fn add_rules(
    workspace: &Workspace,
    discovered: &Discovered,
    mentioned: &[String],
    found: &mut TurnCustomizations,
) {
    let mut bytes = 0;
    for container in &discovered.containers {
        for child in &container.children {
            let ChildContent::Rule(rule) = &child.content else {
                continue;
            };
            let path = workspace.display_uri(&child.uri);
            let is_on = container
                .enabled_children(&discovered.switched_off)
                .any(|enabled| enabled == child);
            match (is_on, container.holds_instructions()) {
                // Those of the project itself are read with the directories above it.
                (true, true) => continue,
                (false, true) => {
                    found.switched_off.push(path);
                    continue;
                }
                (false, false) => continue,
                (true, false) => {}
            }
            let concerns = |file: &String| rule.globs.iter().any(|glob| matches(glob, file));
            if rule.always_applies || mentioned.iter().any(concerns) {
                // One that cannot be read by now is not there.
                let text = workspace.read_instructions(&child.uri, RULE_BYTES_MAX).ok();
                let text = text.filter(|text| bytes + text.len() <= RULES_BYTES_MAX);
                if let Some(text) = text {
                    bytes += text.len();
                    found.rules.push(InstructionFile { path, text });
                    continue;
                }
            }
            if found.listed_rules.len() < LISTED_RULES_MAX {
                let about = match rule.globs.is_empty() {
                    true => String::new(),
                    false => format!(" (for {})", rule.globs.join(", ")),
                };
                let description = child.description.as_deref().unwrap_or_default();
                found
                    .listed_rules
                    .push(format!("{path}{about}: {description}"));
            }
        }
    }
}

/// Whether a file is one of those that a rule is about. A pattern that cannot be read is about none.
fn matches(glob: &str, file: &str) -> bool {
    let file = file.trim_start_matches("./");
    let glob = GlobBuilder::new(glob).literal_separator(true).build();
    glob.is_ok_and(|glob| glob.compile_matcher().is_match(file))
}
