//! Whether a line that begins with `/` is a command that somebody here knows (G-65).

use wire::meta::OWN_COMMANDS;

use crate::Live;

use super::{ChatError, OpenChat};

/// What is known of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandCheck {
    /// The host or the agent knows it, or may.
    Known,
    /// They do not; these they do.
    Unknown { others: Vec<String> },
}

impl OpenChat {
    /// Finds out whether the host or the agent knows a command, named with its slash. What is returned does not borrow the
    /// chat.
    pub fn check_command(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<CommandCheck, ChatError>> + Send + use<> {
        let has_own = self.agent_has_own_commands();
        let exact = self.completions(name, name.len());
        let all = self.completions("/", 1);
        let name = name.to_owned();
        async move {
            if has_own {
                return Ok(CommandCheck::Known);
            }
            let names = |completions: Vec<super::Completion>| -> Vec<String> {
                let names = completions.iter().map(|command| command.insert_text.trim());
                names.map(str::to_owned).collect()
            };
            if names(exact.await?).contains(&name) {
                return Ok(CommandCheck::Known);
            }
            let others = names(all.await?);
            // A host that tells of no commands may have some all the same.
            Ok(if others.is_empty() {
                CommandCheck::Known
            } else {
                CommandCheck::Unknown { others }
            })
        }
    }

    fn agent_has_own_commands(&self) -> bool {
        let session = self.session_state();
        let provider = session.as_ref().map_or("", |session| session.provider.as_str());
        has_own_commands(&self.live, provider)
    }
}

fn has_own_commands(live: &Live, provider: &str) -> bool {
    let root = live.root();
    let mut agents = root.iter().flat_map(|root| root.agents.iter());
    agents.any(|agent| agent["provider"] == provider && agent["_meta"][OWN_COMMANDS] == true)
}
