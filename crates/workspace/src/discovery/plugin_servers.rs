//! MCP servers that plugins declare: in `.mcp.json` or `mcp.json`, or where their manifest says (CU-4).
//!
//! Promises: nothing outside the plugin is read.
//! Must not know: what a declaration means, who may start it.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::FILE_BYTES_MAX;
use super::customization::{Child, ChildContent, Container};
use super::plugin::{Manifest, leads_out};
use super::scan::Scan;
use super::text_span::find_member;
use crate::WorkspacePath;

/// Where servers are declared, unless the manifest says so; the first counts.
const FILES: [&str; 2] = [".mcp.json", "mcp.json"];

/// What a manifest, or a file of servers, calls them.
const KEY: &str = "mcpServers";

/// A server as its plugin declares it.
#[derive(Clone, PartialEq, Eq)]
pub struct PluginServer {
    /// As it is written.
    pub declaration: Value,
    /// The file it is written in.
    pub file: PathBuf,
    /// The directory of its plugin.
    pub root: PathBuf,
}

impl std::fmt::Debug for PluginServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its variables and headers may be secrets.
        f.debug_struct("PluginServer").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Adds the servers of a plugin to its container, or what is wrong with them. False if it has nothing of the kind.
pub(super) fn find(
    scan: &mut Scan<'_>,
    plugin: &WorkspacePath,
    manifest: &Manifest,
    container: &mut Container,
) -> bool {
    let before = (container.children.len(), container.problems.len());
    match manifest.value.get(KEY) {
        Some(Value::Object(servers)) => {
            if let Some((path, text)) = &manifest.file {
                let file = PluginServersFile { path, text, key: Some(KEY) };
                add_all(scan, plugin, container, file, servers);
            }
        }
        Some(Value::String(named)) => match plugin.join_inside(named) {
            Some(path) => drop(add_file(scan, plugin, container, &path)),
            None => container.add_problem(&leads_out(scan, plugin, KEY, named)),
        },
        Some(_) => {
            container.add_problem("`mcpServers` of the manifest is neither an object nor a path")
        }
        None => {
            let mut files = FILES.iter().map(|name| plugin.join(name));
            let _ = files.find(|path| add_file(scan, plugin, container, path));
        }
    }
    before != (container.children.len(), container.problems.len())
}

/// Adds the servers of a file; false if there is no such file.
fn add_file(
    scan: &mut Scan<'_>,
    plugin: &WorkspacePath,
    container: &mut Container,
    path: &WorkspacePath,
) -> bool {
    let problems = scan.problem_count();
    let text = scan.read_whole(path, FILE_BYTES_MAX);
    let is_there = text.is_some();
    match text.map(|text| (serde_json::from_str::<Value>(&text), text)) {
        Some((Ok(Value::Object(mut file)), text)) => {
            // Some plugins write the servers without a key around them.
            let (key, servers) = match file.remove(KEY) {
                Some(Value::Object(servers)) => (Some(KEY), servers),
                Some(_) => {
                    scan.warn_invalid(path, "`mcpServers` is not an object");
                    (None, Map::new())
                }
                None => (None, file),
            };
            let file = PluginServersFile { path, text: &text, key };
            add_all(scan, plugin, container, file, &servers);
        }
        Some((Ok(_), _)) => scan.warn_invalid(path, "it is not an object of JSON"),
        Some((Err(error), _)) => scan.warn_invalid(path, &format!("it is not JSON: {error}")),
        None => {} // it is not there, or a warning says what is wrong with it
    }
    let new = scan.problems_since(problems);
    for problem in &new {
        container.add_problem(problem);
    }
    is_there || !new.is_empty()
}

/// A file that declares servers, and the key they are under, if there is one.
struct PluginServersFile<'a> {
    path: &'a WorkspacePath,
    text: &'a str,
    key: Option<&'a str>,
}

fn add_all(
    scan: &mut Scan<'_>,
    plugin: &WorkspacePath,
    container: &mut Container,
    file: PluginServersFile<'_>,
    servers: &Map<String, Value>,
) {
    for (name, declaration) in servers.iter().filter(|(_, it)| it.is_object()) {
        let child = Child {
            name: name.clone(),
            uri: scan.uri(file.path),
            range: find_member(file.text, file.key, name),
            description: None,
            content: ChildContent::McpServer(PluginServer {
                declaration: declaration.clone(),
                file: scan.workspace.absolute_path(file.path),
                root: scan.workspace.absolute_path(plugin),
            }),
        };
        if !scan.add_child(container, child, file.path) {
            return; // the container says that there is more
        }
    }
}
