//! Plugins: directories that hold several kinds of things, and perhaps a manifest (CU-4).
//!
//! Promises: nothing outside the plugin's directory is read, whatever its manifest says.

use serde_json::Value;

use super::FILE_BYTES_MAX;
use super::checked_text::is_name;
use super::customization::{ChildKind, Container, ContainerKind, ContainerOrigin, PluginClient};
use super::scan::Scan;
use super::skill_file::is_skill_name;
use super::warning::WarningKind;
use super::{places, plugin_servers};
use crate::{ClientPluginCopy, WorkspacePath};

/// Where a manifest may lie; the first counts.
const MANIFESTS: [&str; 3] = [".plugin/plugin.json", ".claude-plugin/plugin.json", "plugin.json"];

/// Paths that a manifest may name for one kind of things.
const PATHS_MAX: usize = 32;

/// What a plugin says of itself.
#[derive(Default)]
pub(super) struct Manifest {
    /// Null without one.
    pub(super) value: Value,
    pub(super) file: Option<(WorkspacePath, String)>,
}

/// Reads a directory as a plugin; `None` if it is nothing of the kind.
pub(super) fn read(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    origin: ContainerOrigin,
    parts: &[(&'static str, ChildKind)],
) -> Option<Container> {
    let before = scan.problem_count();
    let manifest = find_manifest(scan, path);
    let own_name = scan.workspace.absolute_path(path).file_name()?.to_str()?.to_owned();
    let name = manifest.name().unwrap_or(&own_name);
    if !is_name(name) {
        scan.warn_of(WarningKind::Name, path, "its name is too long or cannot be shown");
        return None;
    }
    let mut container = manifest.to_container(scan.uri(path), name, origin);
    container.problems = scan.problems_since(before);
    let is_plugin = manifest.file.is_some() || !container.problems.is_empty();
    let has_parts = fill(scan, path, &manifest, parts, &mut container);
    (is_plugin || has_parts).then_some(container)
}

/// Reads the copy of a plugin that a client brought: it is one, whatever is in it.
pub(super) fn read_brought(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    brought: &ClientPluginCopy,
    parts: &[(&'static str, ChildKind)],
) -> Container {
    let before = scan.problem_count();
    let manifest = find_manifest(scan, path);
    let own_name = command_name(&brought.name);
    let name = manifest.name().unwrap_or(&own_name);
    let copy = scan.uri(path);
    let mut container = manifest.to_container(brought.uri.clone(), name, ContainerOrigin::Client);
    container.client = Some(PluginClient {
        client_id: brought.client_id.clone(),
        name: super::single_line(&brought.name),
        copy: copy.trim_end_matches('/').to_owned(),
    });
    container.problems = scan.problems_since(before);
    fill(scan, path, &manifest, parts, &mut container);
    container
}

/// A name that people can type before those of its commands.
fn command_name(name: &str) -> String {
    let is_allowed = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let words: Vec<&str> =
        name.split(|c: char| !is_allowed(c)).filter(|word| !word.is_empty()).collect();
    let name = words.join("-").to_lowercase();
    if is_skill_name(&name) { name } else { "plugin".to_owned() }
}

impl Manifest {
    fn name(&self) -> Option<&str> {
        let name = self.value.get("name").and_then(Value::as_str);
        name.filter(|name| is_skill_name(name) && is_name(name))
    }

    fn to_container(&self, uri: String, name: &str, origin: ContainerOrigin) -> Container {
        let version = self.value.get("version").and_then(Value::as_str);
        Container {
            uri,
            name: name.to_owned(),
            origin,
            client: None,
            kind: ContainerKind::Plugin { version: version.map(super::single_line) },
            children: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// Adds what a plugin holds; whether there was anything to look at.
fn fill(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    manifest: &Manifest,
    parts: &[(&'static str, ChildKind)],
    container: &mut Container,
) -> bool {
    let mut is_there = false;
    for (part, contents) in parts {
        for directory in directories_of(scan, path, &manifest.value, part, container) {
            is_there |= places::fill(scan, &directory, *contents, container);
        }
    }
    plugin_servers::find(scan, path, manifest, container) || is_there
}

fn find_manifest(scan: &mut Scan<'_>, plugin: &WorkspacePath) -> Manifest {
    let mut paths = MANIFESTS.iter().map(|name| plugin.join(name));
    let read = paths.find_map(|path| {
        let (value, text) = read_manifest(scan, &path)?;
        Some(Manifest { value, file: Some((path, text)) })
    });
    read.unwrap_or_default()
}

/// Where a plugin keeps one kind of things: what its manifest says, else the directory of that name.
fn directories_of(
    scan: &Scan<'_>,
    plugin: &WorkspacePath,
    manifest: &Value,
    part: &'static str,
    container: &mut Container,
) -> Vec<WorkspacePath> {
    let named: Vec<&str> = match manifest.get(part) {
        Some(Value::String(path)) => vec![path],
        Some(Value::Array(paths)) => paths.iter().filter_map(Value::as_str).collect(),
        // Declared in the manifest itself, or not at all.
        _ => vec![part],
    };
    let mut directories = Vec::new();
    if named.len() > PATHS_MAX {
        let manifest = scan.workspace.absolute_path(plugin);
        let manifest = manifest.display();
        container.add_problem(&format!(
            "{manifest}: `{part}` names more than {PATHS_MAX} paths; the others are not read"
        ));
    }
    for path in named.into_iter().take(PATHS_MAX) {
        match plugin.join_inside(path) {
            Some(path) => directories.push(path),
            None => {
                container.add_problem(&leads_out(scan, plugin, part, path));
            }
        }
    }
    directories
}

/// What is said of a path of a manifest that is not one of the plugin's own.
pub(super) fn leads_out(scan: &Scan<'_>, plugin: &WorkspacePath, part: &str, path: &str) -> String {
    let directory = scan.workspace.absolute_path(plugin);
    let path = super::single_line(path);
    format!(
        "{}: `{part}` names `{path}`, which leads out of the plugin and is not read",
        directory.display()
    )
}

fn read_manifest(scan: &mut Scan<'_>, path: &WorkspacePath) -> Option<(Value, String)> {
    let text = scan.read_whole(path, FILE_BYTES_MAX)?;
    match serde_json::from_str::<Value>(&text) {
        Ok(manifest) if manifest.is_object() => Some((manifest, text)),
        Ok(_) => {
            scan.warn_invalid(path, "it is not an object of JSON");
            None
        }
        Err(error) => {
            scan.warn_invalid(path, &format!("it is not JSON: {error}"));
            None
        }
    }
}
