//! What is known of a server before it is started.
//!
//! Promises: values of variables and headers are never shown by `Debug`.
//! Must not know: which file it came from, whether it is trusted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::oauth_entry::OAuthEntry;

/// Longer names are refused: they are a part of every tool's name.
const NAME_BYTES_MAX: usize = 64;

/// A server as it was declared, with everything expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpDeclaration {
    pub name: String,
    pub transport: McpTransport,
    /// The only program that may be started, if it lies in the directory that declares it, or a link there means it (TR-2).
    pub program: Option<DirectoryProgram>,
    /// The only tools that are offered; all without one.
    pub tools: Option<Vec<String>>,
    /// How long a call may go without a sign of life.
    pub timeout: Option<Duration>,
    /// Whether what the server says of its tools is believed (MC-7).
    pub trust_hints: bool,
    /// The client that the user registered to sign in as.
    pub oauth: Option<OAuthEntry>,
}

/// A program of a directory, as it was when the user was asked about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryProgram {
    /// As it is started; may be a link, also to a program elsewhere.
    pub path: PathBuf,
    /// SHA-256; empty if there was none.
    pub digest: String,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A process that is started, over its standard input and output.
    Process {
        /// Found on the PATH; never through a shell.
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// The session's primary directory without one.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { command, args, env, cwd } => f
                .debug_struct("Process")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", url)
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish(),
        }
    }
}

/// Whether a server may be called this.
pub fn is_server_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(|c: char| c.is_control())
}
