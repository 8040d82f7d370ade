//! Which sessions have MCP servers: made with the first chat that needs them, stopped with the last one.
//!
//! Promises: nothing waits; what takes a while is done in the background.
//! Must not know: how servers are run.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::{McpRequest, SessionFacts};

use super::NativeAgent;
use super::mcp::{SessionMcp, TurnLocation};
use crate::task;

impl NativeAgent {
    /// The MCP servers of a session, which one more chat uses.
    pub(super) fn session_servers(&self, facts: &SessionFacts) -> Arc<SessionMcp> {
        let mut servers = self.servers.lock();
        let session = servers.entry(facts.conversation.clone()).or_insert_with(|| {
            let news = self.host.get().map(|host| Arc::clone(&host.news));
            let tokens = Arc::clone(&self.tokens);
            Arc::new(SessionMcp::new(&facts.conversation, news, tokens))
        });
        session.add_chat(&facts.chat);
        Arc::clone(session)
    }

    /// The MCP servers of a session that has used any.
    pub(super) fn running_servers(&self, facts: &SessionFacts) -> Option<Arc<SessionMcp>> {
        self.servers.lock().get(&facts.conversation).map(Arc::clone)
    }

    /// A chat does not use its session's servers any more; the last one stops them.
    pub(super) fn leave_servers(&self, chat: &str) {
        let mut servers = self.servers.lock();
        let left: Vec<Arc<SessionMcp>> = servers
            .extract_if(|_, session| session.remove_chat(chat))
            .map(|(_, session)| session)
            .collect();
        drop(servers);
        for session in left {
            match self.host.get() {
                // They may take a while to go by themselves.
                Some(host) => {
                    task::spawn_on(&host.runtime, Box::pin(async move { session.stop() }));
                }
                None => session.stop(),
            }
        }
    }

    /// Starts the servers of a session that need no question, before its first turn.
    pub(super) async fn start_servers_quietly(
        &self,
        facts: &SessionFacts,
        switched_off: &BTreeSet<String>,
    ) {
        let (Some(settings), false) = (&self.shared.mcp, facts.chat.is_empty()) else {
            return; // no servers, or nobody whom they would end with
        };
        let Ok(workspace) = self.workspace(facts) else {
            return; // the turn says why
        };
        let place = TurnLocation {
            session: &facts.conversation,
            principal: facts.principal.as_deref(),
            directories: &workspace.real_directories(),
            roots: &facts.working_directories,
            plugins: &facts.plugins,
            may_ask: false,
            switched_off,
        };
        self.session_servers(facts).begin_quietly(settings, place).await;
    }

    /// Stores a token that a client brought, or removes it, and notifies the servers.
    pub(super) fn bring_token(&self, principal: Option<&str>, resource: &str, token: &str) {
        let token = Some(token).filter(|token| !token.is_empty());
        self.tokens.set(principal, resource, token);
        let Some(host) = self.host.get() else {
            return; // no host, no sessions
        };
        let servers = self.servers.lock();
        let sessions: Vec<Arc<SessionMcp>> = servers.values().map(Arc::clone).collect();
        let principal = principal.map(str::to_owned);
        let (resource, token) = (resource.to_owned(), token.map(str::to_owned));
        let bringing = async move {
            for session in sessions {
                session.bring_token(principal.as_deref(), &resource, token.as_deref());
            }
        };
        task::spawn_on(&host.runtime, Box::pin(bringing));
    }

    /// Does what a client wants of a server.
    pub(super) fn request_server(&self, conversation: &str, id: &str, request: McpRequest) {
        let Some(host) = self.host.get() else {
            return; // no host, no clients
        };
        let servers = self.servers.lock();
        let session = servers.get(conversation).map(Arc::clone);
        let (Some(session), Some(settings)) = (session, &self.shared.mcp) else {
            // Nothing runs before the session's first turn, which finds out what there is.
            return match request {
                McpRequest::Start | McpRequest::Stop | McpRequest::Background => {
                    host.news.mcp_servers(conversation, Vec::new());
                }
                McpRequest::SwitchOn | McpRequest::SwitchOff | McpRequest::Report => {}
            };
        };
        let working = session.request(Arc::clone(settings), id.to_owned(), request);
        task::spawn_on(&host.runtime, Box::pin(working));
    }
}
