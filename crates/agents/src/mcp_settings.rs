//! Where a host's MCP servers are declared, and what is known of trust in them: the same for all agents.
//!
//! Must not know: who uses the servers.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::ClientPlugin;
use serde_json::{Value, json};
use workspace::discovery::find_plugin_servers;
use workspace::{Confinement, UserDirectories};

use crate::mcp::{
    DeclaredServers, McpEntry, McpInputs, ServerSources, client_plugins, find_declared,
};
use crate::server_entry::make_entry;
use crate::task;
use crate::trust::TrustStore;

/// Where servers are declared for all sessions, and what is known of trust.
pub struct McpSettings {
    /// `[[mcp]]` of the settings file.
    pub entries: Vec<McpEntry>,
    pub settings_file: PathBuf,
    /// The data directory, which may hold an `mcp.json`.
    pub data: PathBuf,
    /// What the user keeps for agents, which may have plugins.
    pub user: UserDirectories,
    pub confinement: Confinement,
    pub trust: Arc<TrustStore>,
}

impl McpSettings {
    /// The servers that the user declares for all sessions, without those of plugins, as clients see them before one runs. Blocks.
    pub(crate) fn own_entries(&self) -> Vec<Value> {
        let sources = ServerSources {
            settings: (&self.entries, &self.settings_file),
            data: &self.data,
            // What else it declares is not the user's for all sessions, and left out.
            directory: &self.data,
            plugins: &[],
            brought: &[],
        };
        let found = find_declared(&sources, &McpInputs::new());
        let own = found.servers.iter().filter(|declared| declared.is_users);
        own.map(|declared| make_entry(declared, json!({"kind": "stopped"}))).collect()
    }
}

/// Looks for the servers of a session in a directory, to which clients brought plugins.
pub(crate) async fn find_servers(
    settings: &Arc<McpSettings>,
    directory: &Path,
    brought: &[ClientPlugin],
    inputs: McpInputs,
) -> DeclaredServers {
    let (settings, directory) = (Arc::clone(settings), directory.to_owned());
    let brought = brought.to_vec();
    let looking = task::run_blocking(move || {
        let uri = wire::file_uri::uri_of(directory.as_os_str().as_bytes());
        let copies = client_plugins(&brought);
        let confinement = &settings.confinement;
        let sources = ServerSources {
            settings: (&settings.entries, &settings.settings_file),
            data: &settings.data,
            directory: &directory,
            plugins: &find_plugin_servers(&[uri], &settings.user, &copies, confinement),
            brought: &brought,
        };
        find_declared(&sources, &inputs)
    });
    looking.await
}
