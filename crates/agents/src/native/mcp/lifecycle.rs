//! How a session's servers are, for clients: published as customizations, started and stopped on request (MC-4, MC-5).
//!
//! Promises: what is published is what is there; a request is followed by the true state, whatever became of it (H-305).
//! Must not know: channels, who asks.

use std::sync::Arc;

use agent_api::McpRequest;
use serde_json::{Value, json};

use super::SessionMcp;
use crate::mcp::{DeclaredServer, McpServer, ServerState, TokenReason, TokenRequest};
use crate::mcp_settings::McpSettings;
use crate::server_entry::{customization_id, error_state, make_entry};
use crate::task;
use crate::trust::DeclaredItem;

/// Tools that are named as left out.
const LEFT_OUT_MAX: usize = 20;

impl SessionMcp {
    /// Says how the servers are, if that is news.
    pub(super) fn publish(&self) {
        let Some(news) = &self.news else {
            return; // nobody listens between turns
        };
        let mut memory = self.memory.lock();
        let waits = memory.waiting > 0;
        let servers: Vec<Value> = memory
            .known
            .iter()
            .map(|declared| {
                let server = self.servers.find(&declared.name);
                let waits = waits && !memory.waited_for.contains(&declared.name);
                to_customization(declared, server.as_deref(), waits)
            })
            .chain(memory.shadowed.iter().cloned())
            .collect();
        if servers != memory.published {
            memory.published.clone_from(&servers);
            news.mcp_servers(&self.conversation, servers);
        }
    }

    /// Publishes every change of a server from now on.
    pub(super) fn follow(self: &Arc<Self>, server: &Arc<McpServer>) {
        let session = Arc::downgrade(self);
        let mut states = server.states();
        let name = server.declaration().name.clone();
        task::spawn(Box::pin(async move {
            while states.changed().await.is_ok() {
                let starts = *states.borrow_and_update() == ServerState::Starting;
                let Some(session) = session.upgrade() else {
                    return; // it is gone
                };
                if !starts {
                    // If it is started again, a turn waits for it again.
                    session.memory.lock().waited_for.remove(&name);
                }
                session.publish();
            }
        }));
    }

    /// A turn waits until what this returns is dropped, with the turn if need be.
    pub(super) fn begin_waiting(&self) -> WaitingTurn<'_> {
        self.memory.lock().waiting += 1;
        self.publish();
        WaitingTurn(self)
    }

    /// Does what a client wants of a server.
    pub(in super::super) async fn request(
        self: Arc<Self>,
        settings: Arc<McpSettings>,
        id: String,
        request: McpRequest,
    ) {
        let known = {
            let memory = self.memory.lock();
            let mut known = memory.known.iter();
            known.find(|declared| customization_id(declared) == id).cloned()
        };
        if let Some(declared) = known {
            match request {
                McpRequest::Start => {
                    let mut memory = self.memory.lock();
                    memory.stopped.remove(&declared.name);
                    memory.consent(&declared);
                    drop(memory);
                    self.start_again(&declared, &id);
                }
                McpRequest::Stop => {
                    self.memory.lock().stopped.insert(declared.name.clone());
                    self.stop_one(&declared);
                }
                McpRequest::Background => self.background.notify_waiters(),
                McpRequest::Report => {}
                McpRequest::SwitchOff => {
                    self.memory.lock().switched_off.insert(id.clone());
                    self.stop_one(&declared);
                }
                McpRequest::SwitchOn => {
                    self.memory.lock().switched_off.remove(&id);
                    if self.may_start(&settings, &declared).await {
                        self.start_again(&declared, &id);
                    }
                }
            }
        }
        // What the client sees by now may be what it wished for: the truth follows in any case.
        self.memory.lock().published.clear();
        self.publish();
    }

    fn stop_one(&self, declared: &DeclaredServer) {
        if let Some(server) = self.servers.find(&declared.name) {
            server.stop();
        }
    }

    /// Whether a server that was switched on may be started without a question.
    pub(super) async fn may_start(
        &self,
        settings: &Arc<McpSettings>,
        declared: &DeclaredServer,
    ) -> bool {
        let (directories, is_stopped, is_started) = {
            let memory = self.memory.lock();
            let key = (declared.name.clone(), declared.digest.clone());
            let is_stopped = memory.stopped.contains(&declared.name);
            (memory.directories.clone(), is_stopped, memory.started.contains(&key))
        };
        let Some(directories) = directories else {
            return false; // no turn has begun: the first one starts it
        };
        if is_stopped {
            return false; // somebody stopped it, apart from switching it off
        }
        let item = DeclaredItem::new(&directories.directory, declared);
        // A file of answers that cannot be read is said by the next turn.
        let is_known = item.is_known(&settings.trust, &self.conversation).await;
        declared.is_users || is_started || is_known.unwrap_or(false)
    }

    fn start_again(self: &Arc<Self>, declared: &DeclaredServer, id: &str) {
        let directories = {
            let memory = self.memory.lock();
            if memory.is_off(&declared.name) { None } else { memory.directories.clone() }
        };
        let (Ok(declaration), Some(directories)) = (&declared.declaration, directories) else {
            return; // it cannot be started, or is switched off: its state says so
        };
        let _installing = self.installing.lock();
        let server = self.keep_or_make(id, declaration.clone(), &directories);
        let mut servers = self.servers.all();
        servers.retain(|other| other.declaration().name != declared.name);
        servers.push(Arc::clone(&server));
        self.replace_servers(servers);
        server.stop();
        server.start();
    }
}

/// A turn that waits for servers.
pub(super) struct WaitingTurn<'a>(&'a SessionMcp);

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.0.memory.lock().waiting -= 1;
        self.0.publish();
    }
}

/// `McpServerCustomization`
fn to_customization(
    declared: &DeclaredServer,
    server: Option<&McpServer>,
    turn_waits: bool,
) -> Value {
    let state = match (server, &declared.declaration) {
        (Some(server), _) => describe_state(&server.state(), turn_waits),
        (None, Ok(_)) => json!({"kind": "stopped"}),
        (None, Err(why)) => error_state("declaration", why),
    };
    let mut entry = make_entry(declared, state);
    let left_out = server.map(McpServer::left_out).unwrap_or_default();
    if !left_out.is_empty() {
        let named: Vec<&String> = left_out.iter().take(LEFT_OUT_MAX).collect();
        entry["_meta"]["toolsLeftOut"] = json!(named);
    }
    if let Some(resource) = server.and_then(McpServer::token_resource) {
        // What a newer token can be brought for.
        entry["_meta"]["tokenFor"] = json!(resource);
    }
    entry
}

/// `McpServerAuthRequiredState`
fn auth_state(request: &TokenRequest) -> Value {
    let mut state = auth_requirement(request);
    state["kind"] = json!("authRequired");
    state
}

/// `McpAuthRequirement`
pub(super) fn auth_requirement(request: &TokenRequest) -> Value {
    let reason = match request.reason {
        TokenReason::Required => "required",
        TokenReason::Expired => "expired",
        TokenReason::InsufficientScope => "insufficientScope",
    };
    let mut state = json!({
        "reason": reason,
        "resource": request.metadata,
    });
    if !request.scopes.is_empty() {
        state["requiredScopes"] = json!(request.scopes);
    }
    if let Some(client) = &request.client {
        state["oauthClient"] = json!({"clientId": client.id});
        if let Some(secret) = &client.secret {
            state["oauthClient"]["clientSecret"] = json!(secret);
        }
    }
    if let Some(description) = &request.description {
        state["description"] = json!(description);
    }
    state
}

fn describe_state(state: &ServerState, turn_waits: bool) -> Value {
    match state {
        ServerState::Stopped => json!({"kind": "stopped"}),
        ServerState::Starting => json!({"kind": "starting", "blocking": turn_waits}),
        ServerState::Ready => json!({"kind": "ready"}),
        ServerState::TokenWanted(request) => auth_state(request),
        ServerState::Failed(error) => error_state("failed", &error.to_string()),
    }
}
