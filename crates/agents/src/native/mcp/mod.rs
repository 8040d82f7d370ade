//! MCP servers in the native agent's sessions: started with a turn, offered as tools, stopped with the session (MC-3).
//!
//! Promises: a server that a file of the directory declares is started only after the user said yes to exactly that (TR-2); a
//! turn waits for servers that start for a bounded time, and goes on without those that do not; each fault is said once.
//! Must not know: how servers are spoken to.

mod call;
mod elicitation;
mod inputs;
mod lifecycle;
mod offers;
mod result;
mod sign_in;
mod trust;
mod users;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_api::{AgentEvent, ClientPlugin, EventSink, HostNews, TurnOver};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::mcp::{
    DeclaredServer, DeclaredServers, McpDeclaration, McpInputs, McpServer, ServerDirectories,
    ServerState, SessionServers, SessionTool,
};
use crate::mcp_settings::{McpSettings, find_servers};
use crate::native::tool_scope::ToolScope;
use crate::trust::{printable_path, printable_text as shown};

use crate::server_entry::{customization_id, is_switched_off, shadowed_entry};
pub(super) use call::run_mcp_call;
pub(super) use users::ClientTokens;
use users::{ServerUse, ServerUsers};

/// How long a turn waits for servers that start, once for each start (MC-4).
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A server that failed is tried again with a turn that begins this much later.
const RETRY_AFTER: Duration = Duration::from_secs(300);

/// What was said in a session and is not said again; forgotten when there is too much of it.
const REPORTED_MAX: usize = 256;

/// The servers of a session, if a turn may use any.
pub(super) struct TurnServers<'a>(Option<ServerUse<'a>>);

impl<'a> TurnServers<'a> {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn new(servers: ServerUse<'a>) -> Self {
        Self(Some(servers))
    }

    /// The tools that can be called now, as far as a worker may use them.
    pub(super) fn tools(&self, scope: &ToolScope) -> Vec<SessionTool> {
        let mut tools =
            self.0.as_ref().map(|servers| servers.session.servers.tools()).unwrap_or_default();
        tools.retain(|tool| scope.allows(&tool.model_name) && self.may_use(&tool.server));
        let is_own = self.0.as_ref().is_some_and(|servers| servers.is_own);
        for tool in &mut tools {
            tool.without_token = !is_own;
        }
        tools
    }

    /// Whether the turn may use a server: not one that works with somebody else's token (H-318).
    pub(super) fn may_use(&self, server: &McpServer) -> bool {
        self.0.as_ref().is_some_and(|servers| servers.may_use(server))
    }

    /// What servers say about their use, by name.
    pub(super) fn instructions(&self) -> Vec<(String, String)> {
        let servers = self
            .0
            .as_ref()
            .map(|servers| servers.session.servers.all())
            .unwrap_or_default()
            .into_iter()
            .filter(|server| self.may_use(server));
        let said = servers.map(|server| (shown(&server.declaration().name), server.instructions()));
        said.filter(|(_, text)| !text.is_empty()).collect()
    }
}

/// Where a turn works.
#[derive(Clone, Copy)]
pub(super) struct TurnLocation<'a> {
    pub session: &'a str,
    /// Whose tokens are used.
    pub principal: Option<&'a str>,
    /// Real directories, the primary one first.
    pub directories: &'a [PathBuf],
    /// The same as `file:` URIs.
    pub roots: &'a [String],
    /// What clients brought along.
    pub plugins: &'a [ClientPlugin],
    /// Whether somebody is there to be asked: not in the chat of a worker.
    pub may_ask: bool,
    /// Ids of customizations that the user switched off.
    pub switched_off: &'a BTreeSet<String>,
}

impl<'a> TurnLocation<'a> {
    /// Returns the directory in which servers work; the data directory if the turn has none.
    fn first_directory(&self, settings: &'a McpSettings) -> &'a PathBuf {
        self.directories.first().unwrap_or(&settings.data)
    }
}

/// The servers of a session.
pub(super) struct SessionMcp {
    conversation: String,
    /// Absent where no host listens between turns.
    news: Option<Arc<dyn HostNews>>,
    tokens: Arc<ClientTokens>,
    servers: SessionServers,
    memory: Mutex<ServerMemory>,
    /// Held while servers are added and taken away.
    installing: Mutex<()>,
    /// Somebody wants a turn not to wait for servers that start.
    background: Notify,
    /// Held while the user is asked: another chat of the session goes on without.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ServerMemory {
    /// Chats of the session that are in memory.
    chats: BTreeSet<String>,
    /// Names and digests that the user said no to in this session.
    refused: BTreeSet<(String, String)>,
    reported: BTreeSet<String>,
    /// Servers that start, and that a turn has waited for: the next one does not.
    waited_for: BTreeSet<String>,
    /// What is declared, whether it may be started or not.
    known: Vec<DeclaredServer>,
    /// What is declared and never started, as clients see it.
    shadowed: Vec<Value>,
    /// Servers that a client stopped; they stay so until one starts them.
    stopped: BTreeSet<String>,
    /// Names and digests that a client started, which is a yes for this session (MC-5).
    started: BTreeSet<(String, String)>,
    /// What the user said to inputs of files; in memory alone.
    inputs: McpInputs,
    /// Files and ids of inputs that the user would not give; they are not asked for again in this session.
    kept_back: BTreeSet<(PathBuf, String)>,
    /// Ids of those that are switched off.
    switched_off: BTreeSet<String>,
    /// Turns that wait for servers that start.
    waiting: usize,
    /// Whose tokens the servers work with.
    users: ServerUsers,
    /// What was last said of the servers.
    published: Vec<Value>,
    directories: Option<ServerDirectories>,
}

impl ServerMemory {
    /// Takes over what is declared now; what was remembered of other declarations goes.
    fn know(&mut self, found: &DeclaredServers) {
        let servers = &found.servers;
        self.shadowed =
            found.shadowed.iter().map(|(declared, by)| shadowed_entry(declared, by)).collect();
        let is_declared = |name: &str| servers.iter().any(|server| server.name == name);
        let is_same = |key: &(String, String)| {
            let mut servers = servers.iter();
            servers.any(|server| server.name == key.0 && server.digest == key.1)
        };
        self.waited_for.retain(|name| is_declared(name));
        self.stopped.retain(|name| is_declared(name));
        self.refused.retain(is_same);
        self.started.retain(is_same);
        self.known.clone_from(servers);
    }

    /// Whether a server, or its plugin, is switched off.
    fn is_off(&self, name: &str) -> bool {
        let mut known = self.known.iter();
        let declared = known.find(|declared| declared.name == name);
        // What is not declared any more is not started.
        declared.is_none_or(|declared| is_switched_off(declared, &self.switched_off))
    }

    /// A client started a server, which is a yes for this session (MC-5).
    fn consent(&mut self, declared: &DeclaredServer) {
        let key = (declared.name.clone(), declared.digest.clone());
        self.refused.remove(&key);
        self.started.insert(key);
    }
}

impl SessionMcp {
    pub(super) fn new(
        conversation: &str,
        news: Option<Arc<dyn HostNews>>,
        tokens: Arc<ClientTokens>,
    ) -> Self {
        Self {
            conversation: conversation.to_owned(),
            news,
            tokens,
            servers: SessionServers::default(),
            memory: Mutex::default(),
            installing: Mutex::default(),
            background: Notify::new(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn add_chat(&self, chat: &str) {
        self.memory.lock().chats.insert(chat.to_owned());
    }

    /// A chat is gone or left memory; whether it was the last one.
    pub(super) fn remove_chat(&self, chat: &str) -> bool {
        let mut memory = self.memory.lock();
        memory.chats.remove(chat) && memory.chats.is_empty()
    }

    pub(super) fn stop(&self) {
        self.servers.stop();
    }

    /// Starts what is declared and allowed, and waits for it a while. They are the turn's until what this returns is dropped.
    pub(super) async fn begin_turn<'a>(
        self: &'a Arc<Self>,
        settings: &Arc<McpSettings>,
        location: TurnLocation<'_>,
        events: &dyn EventSink,
    ) -> Result<ServerUse<'a>, TurnOver> {
        let servers_used = self.begin_use(location.principal);
        let directory = location.first_directory(settings).clone();
        let mut found = find_servers(settings, &directory, location.plugins, self.inputs()).await;
        if location.may_ask && self.ask_for_inputs(&found.servers, events).await? {
            found = find_servers(settings, &directory, location.plugins, self.inputs()).await;
        }
        for problem in &found.problems {
            let text = format!("MCP servers could not be read from a file. {problem}");
            self.notice_once(text, events).await?;
        }
        let server_directories =
            ServerDirectories { directory: directory.clone(), roots: location.roots.to_vec() };
        self.begin(&found, &server_directories, location.switched_off);
        let mut allowed = Vec::new();
        for declared in found.servers {
            let id = customization_id(&declared);
            if is_switched_off(&declared, location.switched_off) {
                continue;
            }
            let declaration = self.allow(settings, location, declared, events);
            if let Some(declaration) = declaration.await? {
                allowed.push((id, declaration));
            }
        }
        let servers = self.install(allowed, &server_directories);
        self.wait().await;
        for server in &servers {
            if servers_used.may_use(server) {
                self.report(server, events).await?
            } else {
                self.report_taken(server, events).await?
            }
        }
        Ok(servers_used)
    }

    /// Takes over what is declared, before anything is started.
    fn begin(
        &self,
        found: &DeclaredServers,
        directories: &ServerDirectories,
        switched_off: &BTreeSet<String>,
    ) {
        let mut memory = self.memory.lock();
        memory.know(found);
        memory.directories = Some(directories.clone());
        memory.switched_off.clone_from(switched_off);
        drop(memory);
        self.publish();
    }

    /// Makes these the session's servers, and starts those that are due. Turns of two chats do it one after the other.
    fn install(
        self: &Arc<Self>,
        allowed: Vec<(String, McpDeclaration)>,
        directories: &ServerDirectories,
    ) -> Vec<Arc<McpServer>> {
        let _installing = self.installing.lock();
        let servers: Vec<Arc<McpServer>> = allowed
            .into_iter()
            .map(|(id, declaration)| self.keep_or_make(&id, declaration, directories))
            .collect();
        self.replace_servers(servers.clone());
        // What was switched off while the user was asked stays off.
        for server in servers.iter().filter(|server| self.is_due(server)) {
            server.start();
        }
        servers
    }

    /// The declaration of a server that may be started.
    async fn allow(
        &self,
        settings: &Arc<McpSettings>,
        location: TurnLocation<'_>,
        declared: DeclaredServer,
        events: &dyn EventSink,
    ) -> Result<Option<McpDeclaration>, TurnOver> {
        let declaration = match &declared.declaration {
            Ok(declaration) => declaration.clone(),
            Err(why) => {
                let (name, file) = (shown(&declared.name), printable_path(&declared.file));
                let text = format!("The MCP server `{name}` of {file} was not started: {why}.");
                self.notice_once(text, events).await?;
                return Ok(None);
            }
        };
        let key = (declared.name.clone(), declared.digest.clone());
        let is_started = self.memory.lock().started.contains(&key);
        let is_allowed = declared.is_users
            || is_started
            || self.is_trusted(settings, location, &declared, events).await?;
        Ok(is_allowed.then_some(declaration))
    }

    /// The server as it runs, unless it is declared in another way by now, or the session's first directory is another one.
    fn keep_or_make(
        self: &Arc<Self>,
        id: &str,
        declaration: McpDeclaration,
        directories: &ServerDirectories,
    ) -> Arc<McpServer> {
        let runs_here = |server: &Arc<McpServer>| {
            *server.declaration() == declaration && server.directory() == directories.directory
        };
        match self.servers.find(&declaration.name).filter(runs_here) {
            Some(server) => {
                server.set_roots(&directories.roots);
                server
            }
            None => {
                // Its token comes with `replace_servers`.
                let server = Arc::new(McpServer::new(declaration, directories.clone()).with_id(id));
                self.follow(&server);
                server
            }
        }
    }

    /// Waits a while for servers that start, unless a turn did so before, or somebody wants the turn to go on.
    async fn wait(&self) {
        // Requests are received from now on: a user who sees that a turn waits may answer at once.
        let mut background = std::pin::pin!(self.background.notified());
        background.as_mut().enable();
        let _waiting = self.begin_waiting();
        let waited_for = self.memory.lock().waited_for.clone();
        let is_awaited = |server: &McpServer| !waited_for.contains(&server.declaration().name);
        tokio::select! {
            () = self.servers.wait_until_settled(WAIT_MAX, is_awaited) => {}
            () = background => {}
        }
        let servers = self.servers.all();
        let start = servers.iter().filter(|server| server.state() == ServerState::Starting);
        let names = start.map(|server| server.declaration().name.clone());
        self.memory.lock().waited_for.extend(names);
    }

    fn is_due(&self, server: &McpServer) -> bool {
        {
            let memory = self.memory.lock();
            let is_stopped = memory.stopped.contains(&server.declaration().name);
            if is_stopped || memory.is_off(&server.declaration().name) {
                return false;
            }
        }
        match server.state() {
            ServerState::Stopped | ServerState::TokenWanted(_) => true,
            ServerState::Starting | ServerState::Ready => false,
            ServerState::Failed(_) => {
                server.failed_for().is_none_or(|failed_for| failed_for >= RETRY_AFTER)
            }
        }
    }

    /// Reports why the model does not have a server.
    async fn report(&self, server: &McpServer, events: &dyn EventSink) -> Result<(), TurnOver> {
        let name = &server.declaration().name;
        let why = match server.state() {
            ServerState::Ready | ServerState::Stopped => return Ok(()), // nothing is wrong
            ServerState::Starting => {
                "still starts; its tools are there when it is ready".to_owned()
            }
            ServerState::TokenWanted(_) => {
                format!(
                    "wants a token: `/sign-in {}` in `greenroom chat` gets one, or put one into the `headers` of its declaration",
                    shown(name)
                )
            }
            ServerState::Failed(error) => format!("is not available: {error}"),
        };
        let text = format!("The MCP server `{}` {why}.", shown(name));
        self.notice_once(text, events).await
    }

    /// Says something once in a session.
    async fn notice_once(&self, text: String, events: &dyn EventSink) -> Result<(), TurnOver> {
        {
            let mut memory = self.memory.lock();
            if memory.reported.len() >= REPORTED_MAX {
                memory.reported.clear();
            }
            if !memory.reported.insert(text.clone()) {
                return Ok(());
            }
        }
        events.send(AgentEvent::Notice { text }).await
    }
}
