//! The servers of one session.
//!
//! Promises: a turn waits for servers that start for a bounded time only; a name of a tool means one tool.
//! Must not know: which of them may be started.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::names::model_names;
use super::server::{McpServer, ServerState};
use super::tool_list::McpTool;

/// The servers of a session, in the order of their declarations.
#[derive(Default)]
pub struct SessionServers {
    servers: Mutex<Vec<Arc<McpServer>>>,
}

/// A tool that can be called now.
#[derive(Clone)]
pub struct SessionTool {
    pub server: Arc<McpServer>,
    pub tool: McpTool,
    /// What a model calls it.
    pub model_name: String,
    /// It is called without anybody's token: what the server has is not of whoever calls (H-318).
    pub without_token: bool,
}

impl SessionServers {
    pub fn all(&self) -> Vec<Arc<McpServer>> {
        self.servers.lock().clone()
    }

    pub fn find(&self, name: &str) -> Option<Arc<McpServer>> {
        let servers = self.servers.lock();
        let mut servers = servers.iter();
        let server = servers.find(|server| server.declaration().name == name);
        server.cloned()
    }

    /// Makes these the session's servers: those that are declared as before go on, others are stopped or added.
    pub fn replace(&self, servers: Vec<Arc<McpServer>>) {
        *self.servers.lock() = servers;
    }

    /// Waits until none of these is about to start, for so long.
    pub async fn wait_until_settled(
        &self,
        limit: Duration,
        is_awaited: impl Fn(&McpServer) -> bool,
    ) {
        let mut servers = self.all();
        servers.retain(|server| is_awaited(server));
        let waiting = join_all(servers.iter().map(|server| server.wait_until_settled()));
        // Who takes longer is not waited for.
        let _ = timeout(limit, waiting).await;
    }

    /// The tools that can be called now.
    pub fn tools(&self) -> Vec<SessionTool> {
        let servers = self.all();
        let ready = servers.iter().filter(|server| server.state() == ServerState::Ready);
        let tools: Vec<(&Arc<McpServer>, McpTool)> = ready
            .flat_map(|server| server.tools().into_iter().map(move |tool| (server, tool)))
            .collect();
        let pairs = tools
            .iter()
            .map(|(server, tool)| (server.declaration().name.as_str(), tool.name.as_str()));
        let names = model_names(pairs);
        let tools = tools.into_iter().zip(names);
        tools
            .map(|((server, tool), model_name)| SessionTool {
                server: Arc::clone(server),
                tool,
                model_name,
                without_token: false,
            })
            .collect()
    }

    /// Stops all of them.
    pub fn stop(&self) {
        for server in self.all() {
            server.stop();
        }
    }
}
