//! Hooks: commands that other programs run at certain events. Listed, so that a user knows of them; nothing runs them
//! (CU-10).

use serde_json::Value;

use super::FILE_BYTES_MAX;
use super::customization::{Child, ChildContent, Container};
use super::scan::Scan;
use super::text_span::find_member;
use crate::directory::Directory;

/// Files of `.claude` that may have hooks; a directory of hooks has nothing but such files.
const SETTINGS: [&str; 2] = ["settings", "settings.local"];

pub(super) fn find(scan: &mut Scan<'_>, directory: &Directory, container: &mut Container) {
    let is_settings = directory.path.relative.file_name().is_some_and(|name| name == ".claude");
    for file in scan.files(directory, &[".json"]) {
        if is_settings && !SETTINGS.contains(&file.stem.as_str()) {
            continue;
        }
        let Some(text) = scan.read_whole(&file.path, FILE_BYTES_MAX) else {
            // It is gone by now, or a warning says what is wrong with it.
            continue;
        };
        let json: Value = match serde_json::from_str(&text) {
            Ok(json) => json,
            Err(error) => {
                scan.warn_invalid(&file.path, &format!("it is not JSON: {error}"));
                continue;
            }
        };
        // A file of settings need not have any.
        for event in
            json.get("hooks").and_then(Value::as_object).into_iter().flat_map(|hooks| hooks.keys())
        {
            let child = Child {
                name: if container.children.iter().any(|child| child.name == *event) {
                    format!("{event} ({}.json)", file.stem)
                } else {
                    event.clone()
                },
                uri: scan.uri(&file.path),
                range: find_member(&text, Some("hooks"), event),
                description: None,
                content: ChildContent::Hook,
            };
            if !scan.add_child(container, child, &file.path) {
                return;
            }
        }
    }
}
