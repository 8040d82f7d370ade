//! Rules: instructions for every message, or for those about certain files (CU-3).

use super::checked_text::check_items;
use super::customization::{Child, ChildContent, ChildKind, Container, INSTRUCTIONS, RuleFile};
use super::front_matter::Document;
use super::scan::Scan;
use super::{FILE_BYTES_MAX, front_matter};
use crate::WorkspacePath;
use crate::directory::Directory;

/// Names of files, the longest ending first.
const ENDINGS: [&str; 3] = [".instructions.md", ".mdc", ".md"];

/// Files of a project that hold for every message.
const FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"];

pub(super) fn find(scan: &mut Scan<'_>, directory: &Directory, container: &mut Container) {
    for file in scan.files(directory, &ENDINGS) {
        let Some(text) = scan.read_whole(&file.path, FILE_BYTES_MAX) else {
            // It is gone by now, or a warning says what is wrong with it.
            continue;
        };
        let document = front_matter::parse(&text);
        let read = document.and_then(|document| Ok((rule(&document, file.ending)?, document)));
        match read {
            Ok((rule, document)) => {
                let child = Child {
                    name: file.stem.clone(),
                    uri: scan.uri(&file.path),
                    range: None,
                    description: super::describe(document.field("description"), document.body),
                    content: ChildContent::Rule(rule),
                };
                if !scan.add_child(container, child, &file.path) {
                    return;
                }
            }
            Err(reason) => scan.warn_invalid(&file.path, &reason),
        }
    }
}

/// The instructions of a project itself, in its root; `None` if it has none.
pub(super) fn find_instructions(scan: &mut Scan<'_>, root: &WorkspacePath) -> Option<Container> {
    let mut container = Container::directory(scan.uri(root), INSTRUCTIONS, ChildKind::Rule);
    for name in FILES {
        let path = root.join(name);
        let Some((text, _)) = scan.read(&path, FILE_BYTES_MAX) else {
            // Most projects have one of them at most.
            continue;
        };
        let child = Child {
            name: name.to_owned(),
            uri: scan.uri(&path),
            range: None,
            description: super::describe(None, &text),
            content: ChildContent::Rule(RuleFile { always_applies: true, globs: Vec::new() }),
        };
        container.children.push(child);
    }
    (!container.children.is_empty()).then_some(container)
}

/// When a rule holds. Where a file does not say, each kind of file has a custom of its own: a plain one always, one for an
/// editor only when asked for.
fn rule(document: &Document<'_>, ending: &str) -> Result<RuleFile, String> {
    let keys = ["applyTo", "globs", "paths"];
    let globs = keys.iter().find_map(|key| Some((*key, document.list(key)?)));
    let (key, globs) = globs.unwrap_or_default();
    check_items(key, &globs)?;
    let is_everywhere = globs.iter().any(|glob| glob == "**" || glob == "**/*");
    let always_applies = match ending {
        ".md" => !document.is_false("alwaysApply") && (globs.is_empty() || is_everywhere),
        _ => document.is_true("alwaysApply") || is_everywhere,
    };
    Ok(RuleFile { always_applies, globs })
}
