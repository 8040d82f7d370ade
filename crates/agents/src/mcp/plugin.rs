//! Servers that plugins declare: those of the user, of clients, and of a directory (CU-4, CU-7).
//!
//! Promises: a yes to a server of a client's plugin is bound to every file of that plugin.
//! Must not know: who is asked, how plugins are found.

use std::path::Path;

use agent_api::ClientPlugin;
use serde_json::Value;
use workspace::ClientPluginCopy;
use workspace::discovery::{ChildContent, Container, ContainerOrigin, SourceSpan};

use super::expand::Expander;

/// Names of the plugin's own directory, in both published formats.
const ROOTS: [&str; 2] = ["PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"];

/// The plugin that declares a server, as clients and people know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginOrigin {
    pub name: String,
    /// The id of its entry in the session's state.
    pub container_id: String,
    /// The id of the server there.
    pub id: String,
    /// The client that brought it.
    pub client_id: Option<String>,
}

/// A server as a plugin declares it.
pub(super) struct PluginDeclaration {
    pub origin: PluginOrigin,
    pub place: ContainerOrigin,
    pub name: String,
    pub declaration: Value,
    pub file: std::path::PathBuf,
    pub root: std::path::PathBuf,
    pub span: Option<SourceSpan>,
    /// Of the whole plugin, if a client brought it.
    pub digest: Option<String>,
}

/// What is looked at of plugins that clients brought.
pub fn client_plugins(plugins: &[ClientPlugin]) -> Vec<ClientPluginCopy> {
    let plugins = plugins.iter().map(|plugin| ClientPluginCopy {
        client_id: plugin.client_id.clone(),
        name: plugin.name.clone(),
        uri: plugin.uri.clone(),
        directory: plugin.directory.clone(),
    });
    plugins.collect()
}

/// The servers of plugins, in the order of the plugins.
pub(super) fn declarations(
    containers: &[Container],
    brought: &[ClientPlugin],
) -> Vec<PluginDeclaration> {
    let children = containers
        .iter()
        .flat_map(|container| container.children.iter().map(move |child| (container, child)));
    let servers = children.filter_map(|(container, child)| {
        let ChildContent::McpServer(server) = &child.content else {
            return None; // something else that the plugin holds
        };
        let of_client = brought.iter().find(|plugin| plugin.directory == server.root);
        Some(PluginDeclaration {
            origin: PluginOrigin {
                name: container.name.clone(),
                container_id: container.key().id(),
                id: container.child_key(child).id(),
                client_id: container.client.as_ref().map(|it| it.client_id.clone()),
            },
            place: container.origin,
            name: child.name.clone(),
            declaration: server.declaration.clone(),
            file: server.file.clone(),
            root: server.root.clone(),
            span: child.range,
            digest: of_client.map(|plugin| plugin.digest.clone()),
        })
    });
    servers.collect()
}

/// Whether a variable is the plugin's own directory, and not one of the host's.
pub(super) fn is_plugin_root(variable: &str) -> bool {
    ROOTS.contains(&variable)
}

/// In a file of a plugin: its own directory, and what others may have where the plugin comes from.
pub(super) struct PluginExpander<'a> {
    pub root: &'a Path,
    pub others: &'a dyn Expander,
}

impl Expander for PluginExpander<'_> {
    fn expand(&self, text: &str) -> Result<String, String> {
        let root = self.root.to_str().ok_or("the plugin's directory is no text")?;
        let found = ROOTS.iter().filter_map(|name| {
            let written = format!("${{{name}}}");
            text.find(&written).map(|at| (at, written.len()))
        });
        let Some((at, length)) = found.min() else { return self.others.expand(text) };
        // What the directory is called is no text to be expanded.
        let before = self.others.expand(&text[..at])?;
        let after = self.expand(&text[at + length..])?;
        Ok(format!("{before}{root}{after}"))
    }

    fn input(&self, id: &str) -> Option<&str> {
        self.others.input(id)
    }

    fn is_users(&self) -> bool {
        self.others.is_users()
    }
}

#[cfg(test)]
mod tests {
    use super::super::expand::{DirectoryExpander, FileInputs};
    use super::*;

    #[test]
    fn cu_004_a_plugin_knows_where_it_lies_and_its_name_expands_to_nothing() {
        let inputs = FileInputs::new();
        let others = DirectoryExpander { directory: Path::new("/w"), inputs: &inputs };
        let plugin = PluginExpander { root: Path::new("/p/${env:HOME}"), others: &others };
        let expanded = plugin.expand("${PLUGIN_ROOT}/a:${workspaceFolder}:${CLAUDE_PLUGIN_ROOT}");
        assert_eq!(expanded.unwrap(), "/p/${env:HOME}/a:/w:/p/${env:HOME}".to_owned());
        assert!(plugin.expand("${env:CARGO_MANIFEST_DIR}").is_err());
        assert!(!plugin.is_users());
    }
}
