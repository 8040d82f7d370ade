//! Choosing the agent of a new session.

use client::chat::{AgentOffer, ChatSelector};

use super::TerminalChat;
use super::picker::Picker;
use crate::chat::menu::{Menu, MenuItem};
use crate::terminal::escape_line;

impl TerminalChat {
    /// `/agents`: the list, or a new session with the agent that is named.
    pub(super) async fn open_agents(&mut self, id: &str) {
        if !id.is_empty() {
            return self.start_with(id).await;
        }
        let agents = self.chat.agents();
        if agents.is_empty() {
            return self
                .note_error("the host offers no agent; `greenroom agents` says how to get one");
        }
        let current = self.chat.agent_for_new_session();
        let items = agents.into_iter().map(|agent| {
            let is_current = current.as_ref() == Some(&agent.id);
            agent_item(agent, is_current)
        });
        let mut menu = Menu::new(items.collect());
        menu.select(|agent| Some(&agent.id) == current.as_ref());
        self.open_picker(Picker::Agents(menu));
    }

    pub(super) async fn choose_agent(&mut self, menu: Menu<AgentOffer>) {
        match menu.selected().map(|item| item.value.id.clone()) {
            Some(id) => self.start_with(&id).await,
            None => self.open_picker(Picker::Agents(menu)), // nothing matches what was typed
        }
    }

    async fn start_with(&mut self, id: &str) {
        let agent = Some(id.to_owned());
        self.try_to_go_to(ChatSelector::NewSession { agent }).await;
    }
}

fn agent_item(agent: AgentOffer, is_current: bool) -> MenuItem<AgentOffer> {
    let mut detail = Vec::new();
    if is_current {
        detail.push("in use".to_owned());
    }
    if agent.name != agent.id {
        detail.push(escape_line(&agent.id));
    }
    detail.push(escape_line(&agent.description));
    let label = escape_line(&agent.name);
    MenuItem::new(agent, label, detail.join(" · "))
}
