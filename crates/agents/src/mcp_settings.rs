//! Where a host's MCP servers are declared, and what is known of trust in them: the same for all agents.
//!
//! Must not know: who uses the servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::mcp::{DeclaredServers, McpEntry, McpInputs, find_declared};
use crate::trust::TrustStore;

/// Where servers are declared for all sessions, and what is known of trust.
pub struct McpSettings {
    /// `[[mcp]]` of the settings file.
    pub entries: Vec<McpEntry>,
    pub settings_file: PathBuf,
    /// The data directory, which may hold an `mcp.json`.
    pub data: PathBuf,
    pub trust: Arc<TrustStore>,
}

/// Looks for the servers of a directory.
pub(crate) async fn find_servers(
    settings: &Arc<McpSettings>,
    directory: &Path,
    inputs: McpInputs,
) -> DeclaredServers {
    let (settings, directory) = (Arc::clone(settings), directory.to_owned());
    let looking = tokio::task::spawn_blocking(move || {
        let from = (
            settings.entries.as_slice(),
            settings.settings_file.as_path(),
        );
        find_declared(from, &settings.data, &directory, &inputs)
    });
    match looking.await {
        Ok(found) => found,
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    }
}
