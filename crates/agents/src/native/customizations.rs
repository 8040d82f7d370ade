//! What the project and the user have for this turn: skills, the custom agent that the message names, and rules (CU-8).
//!
//! Promises: nothing that is switched off is used. A custom agent that cannot be read ends the turn: without its
//! instructions and its list of tools it would be another one.

use agent_api::{AgentError, TurnInput};
use workspace::discovery::{ChildContent, Discovered, Skill};
use workspace::{InstructionFile, Workspace};

use super::file_rules::FileRules;
use super::stop::TurnStop;
use crate::task;

/// What is read of a custom agent.
const AGENT_BYTES_MAX: usize = 64 * 1_024;

/// What of it concerns a turn.
#[derive(Debug, Default)]
pub(super) struct TurnCustomizations {
    pub skills: Vec<Skill>,
    pub agent: Option<ChosenAgent>,
    /// Rules that hold, with what they say.
    pub rules: Vec<InstructionFile>,
    /// Rules that do not hold yet.
    pub file_rules: FileRules,
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
    let looking = task::run_blocking(move || {
        let discovered = workspace.discover();
        let agent = agent.map(|uri| read_agent(&workspace, &discovered, &uri));
        let mut found =
            TurnCustomizations { agent: agent.transpose()?, ..TurnCustomizations::default() };
        add_rules(&workspace, &discovered, &mut found);
        let mut files = workspace.known_files();
        files.extend(mentioned);
        let hold_now = found.file_rules.take_about(&workspace, &files);
        found.rules.extend(hold_now);
        found.skills = discovered.skills;
        Ok(found)
    });
    looking.await.map_err(TurnStop::Failed)
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
        container.enabled_children(&discovered.switched_off).map(move |child| (container, child))
    });
    let mut agents = children.filter_map(|(container, child)| match &child.content {
        ChildContent::Agent(agent) if container.published_uri(child) == uri => {
            Some((container.full_name(child), child, agent))
        }
        _ => None,
    });
    let Some((name, child, agent)) = agents.next() else {
        return Err(failed(
            "the custom agent of this message does not exist any more; send it again with another"
                .to_owned(),
        ));
    };
    let text = workspace
        .read_instructions(&child.uri, AGENT_BYTES_MAX)
        .map_err(|error| failed(format!("the custom agent {name} cannot be read: {error}")))?;
    Ok(ChosenAgent { instructions: text, tools: agent.tools.clone(), name })
}

/// Adds the rules that are switched on; of those of the project itself the ones that are not.
fn add_rules(workspace: &Workspace, discovered: &Discovered, found: &mut TurnCustomizations) {
    for container in &discovered.containers {
        for child in &container.children {
            let ChildContent::Rule(rule) = &child.content else { continue };
            let is_on = container
                .enabled_children(&discovered.switched_off)
                .any(|enabled| enabled == child);
            if is_on {
                let holds = found.file_rules.add(workspace, container, child, rule);
                found.rules.extend(holds);
            } else if container.holds_instructions() {
                let path = workspace.display_uri(&child.uri);
                found.switched_off.push(path);
            }
        }
    }
}
