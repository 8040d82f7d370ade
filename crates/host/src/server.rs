//! The whole public API: start a host, serve until told to stop, leave nothing behind.
//!
//! Promises: a host that cannot go on (a kernel or a journal of it died) returns an error at once and is not ready from
//! then on; one that is told to stop keeps its deadlines.
//! Must not know: what is served.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::accounts::AccountError;
use crate::blobs::BlobError;
use crate::config::{Config, TokenChoice};
use crate::devices::DevicesError;
use crate::journal::JournalError;
use crate::net::TlsError;
use crate::node::Node;
use crate::space_entry::FIRST_SPACE;
use crate::space_host::SpaceHost;
use crate::startup::join_cluster;

/// The version of this host, as clients and operators see it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Called once, when connections are accepted.
#[derive(Debug, Clone)]
pub struct ServerReady {
    pub url: String,
    pub token: Option<String>,
    pub version: &'static str,
}

/// Why a host could not start or go on; for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(
        "{0} is not a loopback address: without a token anyone on the network could use this host"
    )]
    TokenNeeded(SocketAddr),
    #[error("token file {path}: {message}")]
    Token { path: PathBuf, message: String },
    #[error("{0}")]
    Spaces(String),
    #[error("data directory {path}: {message}")]
    Data { path: PathBuf, message: String },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Root(#[from] kernel::DamagedRoot),
    #[error(transparent)]
    Blobs(#[from] BlobError),
    #[error(transparent)]
    Accounts(#[from] AccountError),
    #[error(transparent)]
    Devices(#[from] DevicesError),
    #[error("{0}")]
    Model(String),
    #[error("{0}")]
    Agent(String),
    #[error("{0}")]
    Script(String),
    #[error("capabilities: {0}")]
    Capabilities(String),
    #[error("restricted_sections: no agent has a section `{id}`; there are: {known}")]
    Section { id: String, known: String },
    #[error("workspace {path}: {message}")]
    Workspace { path: PathBuf, message: String },
    #[error(
        "the kernel stopped: {0}; this is a defect, please report it. Everything that clients have seen is on disk: \
         start the host again"
    )]
    KernelStopped(String),
    #[error(
        "the journal stopped: {0}; nothing can be recorded any more. Everything that clients have seen is on disk: \
         start the host again"
    )]
    JournalStopped(String),
}

/// Runs a host until `shutdown` resolves: then turns end, readers are flushed, the journal is closed.
pub async fn serve(
    config: Config,
    on_ready: impl FnOnce(ServerReady),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    if config.token == TokenChoice::None && !config.stdio && !config.listen.ip().is_loopback() {
        return Err(ServeError::TokenNeeded(config.listen));
    }
    if !config.spaces.is_empty() && (config.stdio || config.token == TokenChoice::None) {
        let text =
            "[[spaces]]: a client's token names the space it is for; serve a socket, with a token";
        return Err(ServeError::Spaces(text.to_owned()));
    }
    let cluster = join_cluster(&config).await?;
    let first = SpaceHost::prepare(&config, FIRST_SPACE, cluster.as_ref()).await?;
    Node::start(&config, first, cluster).await?.serve(on_ready, shutdown).await
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
