//! Calls of agents outside of turns: settings, tokens, chats that left memory.
//!
//! Promises: a token is in the memory of the agent it was brought for, and nowhere else; it is taken back when its time is over.
//! Must not know: what an agent makes of it.

use std::collections::HashMap;
use std::time::Duration;

use agent_api::SettingValue;
use kernel::{ClientToken, Input, McpServerRequest, SettingQuestion, Ticket, WorkFailed};
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use wire::{ChannelUri, Object};

use super::{Effects, send};
use crate::changes;
use crate::task;

/// Which tokens agents were handed, by agent, principal and resource, and what ends those that were brought with a time.
#[derive(Default)]
pub(super) struct DeliveredTokens(HashMap<(String, Option<String>, String), Option<AbortHandle>>);

impl DeliveredTokens {
    /// Those whose time is not over.
    fn drop_ended(&mut self) {
        let is_over =
            |end: &Option<AbortHandle>| end.as_ref().is_some_and(AbortHandle::is_finished);
        self.0.retain(|_, end| !is_over(end));
    }
}

impl Effects {
    /// Asks an agent which values a setting can have.
    pub(crate) fn list_setting_values(&self, ticket: Ticket, question: SettingQuestion) {
        let (agent, arrivals) = (self.agent(&question.provider), self.arrivals.clone());
        let confinement = self.bodies.confinement().clone();
        task::spawn(async move {
            if question.property == "branch" {
                // The host's own: what it is for is the same for all agents.
                let branches = changes::branches(question.working_directory, &confinement);
                let values = Ok(branches.await);
                return send(&arrivals, Input::SettingValues { ticket, values }).await;
            }
            let session = question.session.as_ref().map(ChannelUri::as_str).unwrap_or_default();
            let values = match &agent {
                Some(agent) => Ok(agent.setting_values(session, &question.property)),
                None => Err(WorkFailed(format!(
                    "this host has no agent `{}` any more",
                    question.provider
                ))),
            };
            let values = values.map(|values| values.into_iter().filter_map(item_of).collect());
            send(&arrivals, Input::SettingValues { ticket, values }).await;
        });
    }

    /// A client changed settings of a session.
    pub(crate) fn tell_settings(&self, session: &ChannelUri, provider: &str, values: &Object) {
        match self.agent(provider) {
            Some(agent) => agent.receive_settings(session.as_str(), values),
            None => tracing::debug!(
                "settings changed in a session whose agent is not configured any more; no agent is told"
            ),
        }
    }

    /// A client named the session of a chat.
    pub(crate) fn tell_title(&self, chat: &ChannelUri, provider: &str, title: &str) {
        match self.agent(provider) {
            Some(agent) => agent.receive_title(chat.as_str(), title),
            None => tracing::debug!(
                "a title changed in a session whose agent is not configured any more; no agent is told"
            ),
        }
    }

    /// A client wants something of an MCP server.
    pub(crate) fn request_mcp(&self, request: &McpServerRequest) {
        match self.agent(&request.provider) {
            Some(agent) => {
                agent.handle_mcp_request(request.session.as_str(), &request.id, request.request)
            }
            None => tracing::debug!(
                "a request about an MCP server is dropped: the agent of its session is not configured any more"
            ),
        }
    }

    /// A chat left memory.
    pub(crate) fn unload_chat(&self, chat: &ChannelUri) {
        for agent in self.agents.made() {
            agent.unload_chat(chat.as_str());
        }
    }

    /// Hands a token to the agent that it was brought for.
    pub(crate) fn authenticate(&mut self, brought: ClientToken) {
        let Some(agent) = self.agent(&brought.provider) else {
            return tracing::debug!("a token is dropped: its agent is not configured any more");
        };
        let (principal, resource) = (brought.principal, brought.resource);
        let of = (brought.provider, principal.clone(), resource.clone());
        let handed = &mut self.handed_tokens;
        if let Some(Some(earlier)) = handed.0.remove(&of) {
            earlier.abort();
        }
        handed.drop_ended();
        agent.receive_token(principal.as_deref(), &resource, &brought.token.0);
        if brought.token.0.is_empty() {
            return; // it was taken back
        }
        let Some(seconds) = brought.expires_in_s else {
            handed.0.insert(of, None);
            return; // it has no end
        };
        let (provider, arrivals) = (of.0.clone(), self.arrivals.clone());
        let end = task::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            agent.receive_token(principal.as_deref(), &resource, "");
            let ended = Input::TokenEnded { provider, principal, resource };
            send(&arrivals, ended).await;
        });
        handed.0.insert(of, Some(end.abort_handle()));
    }

    /// Takes back all that a principal brought.
    pub(crate) fn forget_tokens(&mut self, principal: &str) {
        let is_theirs = |owner: &Option<String>| owner.as_deref() == Some(principal);
        let handed: Vec<_> =
            self.handed_tokens.0.extract_if(|(_, owner, _), _| is_theirs(owner)).collect();
        for ((provider, _, resource), end) in handed {
            if let Some(end) = end {
                end.abort();
            }
            if let Some(agent) = self.agent(&provider) {
                agent.receive_token(Some(principal), &resource, "");
            }
        }
    }
}

/// `SessionConfigValueItem`. Clients know texts only.
fn item_of(value: SettingValue) -> Option<Value> {
    let text = value.value.as_str()?;
    let mut item = json!({"value": text, "label": value.label});
    if let Some(description) = value.description {
        item["description"] = Value::String(description);
    }
    Some(item)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agents::scripted::Locale;
    use agents::{Script, ScriptedAgent};
    use kernel::TokenText;

    use super::super::tests::TestHost;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_of_tokens_are_held_until_they_come() {
        let script = Script::parse("{\"scenes\": []}").unwrap();
        let agent = ScriptedAgent::with_locale(script, Locale::English);
        let mut host = TestHost::with_agent(Arc::new(agent));
        for n in 0..3 {
            host.effects.authenticate(ClientToken {
                provider: "scripted".to_owned(),
                principal: None,
                resource: format!("https://{n}.example"),
                token: TokenText("t".to_owned()),
                expires_in_s: Some(60),
            });
            // It has ended before the kernel gets this, or is about to.
            assert!(host.arrivals.recv().await.is_some());
            let handed = &host.effects.handed_tokens.0;
            assert_eq!(handed.len(), 1);
            let ends = handed.values().flatten();
            while !ends.clone().all(AbortHandle::is_finished) {
                tokio::task::yield_now().await;
            }
        }
    }
}
