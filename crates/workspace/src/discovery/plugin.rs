//! Plugins: directories that hold several kinds of things, and perhaps a manifest (CU-4).
//!
//! Promises: nothing outside the plugin's directory is read, whatever its manifest says.

use serde_json::Value;

use super::FILE_BYTES_MAX;
use super::checked_text::is_name;
use super::customization::{ChildKind, Container, ContainerKind, ContainerOrigin};
use super::places;
use super::scan::Scan;
use super::skill_file::is_skill_name;
use super::warning::WarningKind;
use crate::WorkspacePath;

/// Where a manifest may lie; the first counts.
const MANIFESTS: [&str; 3] = [
    ".plugin/plugin.json",
    ".claude-plugin/plugin.json",
    "plugin.json",
];

/// Paths that a manifest may name for one kind of things.
const PATHS_MAX: usize = 32;

/// Reads a directory as a plugin; `None` if it is nothing of the kind.
pub(super) fn read(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    origin: ContainerOrigin,
    parts: &[(&'static str, ChildKind)],
) -> Option<Container> {
    let before = scan.problem_count();
    let manifest = MANIFESTS
        .iter()
        .find_map(|name| read_manifest(scan, &path.join(name)));
    let has_manifest = manifest.is_some();
    let manifest = manifest.unwrap_or_default();
    let own_name = scan.workspace.absolute_path(path);
    let own_name = own_name.file_name()?.to_str()?.to_owned();
    let name = manifest.get("name").and_then(Value::as_str);
    let name = name.filter(|name| is_skill_name(name)).unwrap_or(&own_name);
    if !is_name(name) {
        scan.warn_of(
            WarningKind::Name,
            path,
            "its name is too long or cannot be shown",
        );
        return None;
    }
    let mut container = Container {
        uri: scan.uri(path),
        name: name.to_owned(),
        origin,
        kind: ContainerKind::Plugin {
            version: manifest
                .get("version")
                .and_then(Value::as_str)
                .map(super::single_line),
        },
        children: Vec::new(),
        problems: scan.problems_since(before),
    };
    let mut is_plugin = has_manifest || !container.problems.is_empty();
    for (part, contents) in parts {
        for directory in directories_of(scan, path, &manifest, part, &mut container) {
            is_plugin |= places::fill(scan, &directory, *contents, &mut container);
        }
    }
    is_plugin.then_some(container)
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
                let manifest = scan.workspace.absolute_path(plugin);
                let manifest = manifest.display();
                let problem =
                    format!("{manifest}: `{part}` leads out of the plugin and is not read");
                container.add_problem(&problem);
            }
        }
    }
    directories
}

fn read_manifest(scan: &mut Scan<'_>, path: &WorkspacePath) -> Option<Value> {
    let text = scan.read_whole(path, FILE_BYTES_MAX)?;
    match serde_json::from_str::<Value>(&text) {
        Ok(manifest) if manifest.is_object() => Some(manifest),
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
