//! Which model the messages of an open chat go to: the one it used last, as long as the host has it.
//!
//! Promises: a chat that is continued does not change its model by itself; that its model or agent is gone is said when it is
//! opened.

use serde_json::Value;
use wire::state::ChatState;

use super::OpenChat;

/// Names that are listed of many.
const NAMES_MAX: usize = 8;

impl OpenChat {
    /// The model that messages are for; the agent's default if absent.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Goes on with the model that the chat used last. Returns what is to be said if that, or the agent, is gone.
    pub(super) fn resume_model(&mut self) -> Option<String> {
        self.model = None;
        let provider = self.session_state()?.provider.clone();
        let root = self.live.root()?;
        let Some(agent) = root
            .agents
            .iter()
            .find(|agent| agent["provider"] == provider)
        else {
            let agents = root
                .agents
                .iter()
                .filter_map(|agent| agent["provider"].as_str());
            return Some(format!(
                "the host has no agent `{provider}` now, so nobody can answer here; it has: {}",
                name_some(agents.collect())
            ));
        };
        let used = last_model(&*self.live.chat(&self.chat)?)?;
        let models = agent["models"].as_array().into_iter().flatten();
        let ids: Vec<&str> = models.filter_map(|model| model["id"].as_str()).collect();
        if ids.contains(&used.as_str()) {
            self.model = Some(used);
            return None;
        }
        Some(format!(
            "the model `{used}` that this chat used is not there any more. Nothing is sent to another until you choose it; \
             there are: {}",
            name_some(ids)
        ))
    }
}

/// The model of the turn that runs, or of the last one.
fn last_model(chat: &ChatState) -> Option<String> {
    let id = |message: &Value| message["model"]["id"].as_str().map(str::to_owned);
    match &chat.active_turn {
        Some(turn) => id(&turn.message),
        None => id(&chat.turns.last()?.value()["message"]),
    }
}

fn name_some(names: Vec<&str>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).copied().collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 if shown.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
