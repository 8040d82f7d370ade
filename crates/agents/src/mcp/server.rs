//! A server of a session: started and stopped, called, with the token of whoever uses it (MC-4, MC-5, MC-14).
//!
//! Promises: its state is what is really there; whoever waits for a state is told of it; stopping ends calls and processes.
//! Must not know: whether it may be started, how its state is shown.

mod ready;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::JsonObject;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::auth::{TokenChallenge, TokenRequest, covers};
use super::call::CallHost;
use super::connection::{McpConnection, ServerDirectories};
use super::content::McpResult;
use super::declaration::{McpDeclaration, McpTransport};
use super::error::McpError;
use super::offers::ServerOffers;
use super::tool_list::{McpTool, ToolList};
use crate::task;
pub use ready::ReadyServer;

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Not started, or stopped by somebody.
    Stopped,
    Starting,
    Ready,
    /// It wants a token before it answers.
    TokenWanted(Box<TokenRequest>),
    Failed(McpError),
}

/// A token, and the resource that it is for.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerToken {
    pub resource: String,
    pub token: String,
}

/// A server of a session. Dropping it stops it.
pub struct McpServer {
    /// What its owner knows it by.
    id: String,
    core: Arc<McpServerCore>,
}

struct McpServerCore {
    declaration: McpDeclaration,
    directories: Mutex<ServerDirectories>,
    state: watch::Sender<ServerState>,
    live: Mutex<LiveServer>,
}

#[derive(Default)]
struct LiveServer {
    connection: Option<Arc<McpConnection>>,
    tools: Arc<ToolList>,
    offers: Arc<ServerOffers>,
    token: Option<ServerToken>,
    /// The one that the connection was opened with.
    used_token: Option<ServerToken>,
    task: Option<JoinHandle<()>>,
    /// When it last failed for good.
    failed_at: Option<Instant>,
    /// How often it was started or stopped: a task of before changes nothing any more.
    run: u64,
}

impl McpServer {
    pub fn new(declaration: McpDeclaration, directories: ServerDirectories) -> Self {
        Self {
            id: String::new(),
            core: Arc::new(McpServerCore {
                declaration,
                directories: Mutex::new(directories),
                state: watch::Sender::new(ServerState::Stopped),
                live: Mutex::default(),
            }),
        }
    }

    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn declaration(&self) -> &McpDeclaration {
        &self.core.declaration
    }

    /// Where it works.
    pub fn directory(&self) -> PathBuf {
        self.core.directories.lock().directory.clone()
    }

    /// The session works in these directories now, as `file:` URIs; a server that runs is told so.
    pub fn set_roots(&self, roots: &[String]) {
        roots.clone_into(&mut self.core.directories.lock().roots);
        let connection = self.core.live.lock().connection.clone();
        if let Some(connection) = connection {
            connection.set_roots(roots.to_vec());
        }
    }

    pub fn state(&self) -> ServerState {
        self.core.state.borrow().clone()
    }

    /// How long ago it failed for good; none if it never did.
    pub fn failed_for(&self) -> Option<Duration> {
        let failed_at = self.core.live.lock().failed_at;
        failed_at.map(|failed_at| failed_at.elapsed())
    }

    /// Follows its state from now on.
    pub fn states(&self) -> watch::Receiver<ServerState> {
        self.core.state.subscribe()
    }

    /// Starts it unless it runs, or is about to.
    pub fn start(&self) {
        let mut live = self.core.live.lock();
        match self.state() {
            ServerState::Starting | ServerState::Ready => {}
            ServerState::Stopped | ServerState::TokenWanted(_) | ServerState::Failed(_) => {
                self.core.state.send_replace(ServerState::Starting);
                live.run += 1;
                let (core, run) = (Arc::clone(&self.core), live.run);
                live.task = Some(task::spawn(Box::pin(async move { core.run(run).await })));
            }
        }
    }

    /// Stops it: calls that wait fail.
    pub fn stop(&self) {
        self.end();
    }

    /// Used for HTTP from the next start on.
    pub fn set_token(&self, token: Option<ServerToken>) {
        self.core.live.lock().token = token;
    }

    /// Somebody else uses it from now on: what was opened with another token is closed.
    pub fn exchange_token(&self, token: Option<ServerToken>) {
        let is_other = {
            let mut live = self.core.live.lock();
            live.token = token;
            live.used_token != live.token
        };
        if is_other {
            self.end();
        }
    }

    /// Closes what was opened with a token that nobody holds any more.
    pub fn end_lost_token(&self) {
        let is_lost = {
            let live = self.core.live.lock();
            live.token.is_none() && live.used_token.is_some() && live.connection.is_some()
        };
        if is_lost {
            self.end();
        }
    }

    #[cfg(test)]
    pub(crate) fn token(&self) -> Option<ServerToken> {
        self.core.live.lock().token.clone()
    }

    /// Lets it look as if it got there by itself.
    #[cfg(test)]
    pub(crate) fn set_state(&self, state: ServerState) {
        self.core.state.send_replace(state);
    }

    /// Whether it has a token, or was opened with one.
    pub fn has_token(&self) -> bool {
        let live = self.core.live.lock();
        let is_used = live.connection.is_some() && live.used_token.is_some();
        live.token.is_some() || is_used
    }

    /// What the token is for that it has.
    pub fn token_resource(&self) -> Option<String> {
        self.core.live.lock().token.as_ref().map(|token| token.resource.clone())
    }

    fn end(&self) {
        let (task, connection) = {
            let mut live = self.core.live.lock();
            live.run += 1;
            live.tools = Arc::default();
            live.offers = Arc::default();
            self.core.state.send_replace(ServerState::Stopped);
            (live.task.take(), live.connection.take())
        };
        if let Some(task) = task {
            task.abort();
        }
        if let Some(connection) = connection {
            connection.close();
        }
    }

    /// The tools that it has now.
    pub fn tools(&self) -> Vec<McpTool> {
        self.core.live.lock().tools.tools.clone()
    }

    /// Tools that are not kept, and why.
    pub fn left_out(&self) -> Vec<String> {
        self.core.live.lock().tools.left_out.clone()
    }

    /// The server as it can be asked something now; none if it cannot.
    pub fn ready(&self) -> Option<ReadyServer> {
        let live = self.core.live.lock();
        let connection = live.connection.clone()?;
        let offers = Arc::clone(&live.offers);
        let name = self.core.declaration.name.clone();
        Some(ReadyServer::new(name, connection, offers))
    }

    fn connection(&self) -> Result<Arc<McpConnection>, McpError> {
        let connection = self.core.live.lock().connection.clone();
        match (connection, self.state()) {
            (Some(connection), _) => Ok(connection),
            (None, ServerState::Failed(error)) => Err(error),
            (None, ServerState::TokenWanted(request)) => {
                Err(McpError::TokenWanted(TokenChallenge {
                    reason: request.reason,
                    header: String::new(),
                }))
            }
            (None, ServerState::Stopped | ServerState::Starting | ServerState::Ready) => {
                Err(McpError::Stopped)
            }
        }
    }

    /// What it says about its use.
    pub fn instructions(&self) -> String {
        let live = self.core.live.lock();
        let connection = live.connection.as_ref();
        connection.map_or_else(String::new, |connection| connection.instructions.clone())
    }

    /// Its standard error and what it logged, while it runs.
    pub fn log(&self) -> String {
        let live = self.core.live.lock();
        let connection = live.connection.as_ref();
        connection.map_or_else(String::new, |connection| connection.log())
    }

    /// Calls a tool. Dropping the future cancels the call.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        host: &dyn CallHost,
    ) -> Result<McpResult, McpError> {
        let connection = self.connection()?;
        let called = connection.call(tool, arguments.clone(), host).await;
        let Err(McpError::TokenWanted(challenge)) = called else { return called };
        if self.lose_token(&connection, challenge.clone()) {
            // There is a newer token or connection by now: the call is made again once.

            self.wait_until_settled().await;
            self.connection()?.call(tool, arguments, host).await
        } else {
            Err(McpError::TokenWanted(challenge))
        }
    }

    /// The same for whom no token of the server is meant: none is used, whatever is brought meanwhile.
    pub async fn call_without_token(
        &self,
        tool: &str,
        arguments: JsonObject,
        host: &dyn CallHost,
    ) -> Result<McpResult, McpError> {
        // It may have come to want a token since its tools were offered: that is not for this caller to wait for.
        let connection = self.connection().map_err(|error| match error {
            McpError::TokenWanted(_) => McpError::OthersToken,
            error => error,
        })?;
        if self.has_token() {
            return Err(McpError::OthersToken);
        }
        let called = connection.call(tool, arguments, host).await;
        if let Err(McpError::TokenWanted(challenge)) = &called {
            self.lose_token(&connection, challenge.clone());
            return Err(McpError::OthersToken);
        }
        called
    }

    /// The server does not take the token of a connection any more. Whether there is another one to begin anew with; if not, one
    /// is wanted. What came after that connection stays as it is.
    fn lose_token(&self, refused: &Arc<McpConnection>, challenge: TokenChallenge) -> bool {
        let mut live = self.core.live.lock();
        let connection = live.connection.as_ref();
        if !connection.is_some_and(|connection| Arc::ptr_eq(connection, refused)) {
            return match self.state() {
                ServerState::Starting | ServerState::Ready => true,
                ServerState::Stopped | ServerState::TokenWanted(_) | ServerState::Failed(_) => {
                    false
                }
            };
        }
        live.run += 1;
        if let Some(task) = live.task.take() {
            task.abort();
        }
        live.disconnect();
        self.core.state.send_replace(ServerState::Starting);
        let (core, run) = (Arc::clone(&self.core), live.run);
        let has_another = live.token.is_some() && live.token != live.used_token;
        live.task = Some(if has_another {
            task::spawn(Box::pin(async move { core.run(run).await }))
        } else {
            task::spawn(Box::pin(async move {
                core.fail(run, McpError::TokenWanted(challenge)).await;
            }))
        });
        has_another
    }

    /// Whether a token for a resource is for this server.
    pub fn takes_token_for(&self, resource: &str) -> bool {
        let McpTransport::Http { url, .. } = &self.core.declaration.transport else {
            return false; // a process gets what its declaration says
        };
        match (reqwest::Url::parse(resource), reqwest::Url::parse(url)) {
            (Ok(resource), Ok(url)) => covers(&resource, &url),
            _ => false,
        }
    }

    /// Waits until it is neither about to start nor to start again.
    pub async fn wait_until_settled(&self) {
        let mut states = self.states();
        // The sender lives as long as this.
        let _ = states.wait_for(|state| *state != ServerState::Starting).await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.end();
    }
}

impl McpServerCore {}

impl LiveServer {
    fn disconnect(&mut self) {
        self.tools = Arc::default();
        self.offers = Arc::default();
        self.connection = None;
    }
}
