//! Commands of a project: Markdown files whose body is a template. A file's name is the command's.

use compositor::command::{CommandEffect, Entry, Mentions, Source};

use super::checked_text::is_hint;
use super::customization::{Child, ChildContent, Container, PromptFile};
use super::front_matter::{self, Document};
use super::scan::Scan;
use super::{describe, single_line};
use crate::WorkspacePath;
use crate::directory::{Directory, EntryKind};

/// Names of files, the longest ending first.
const ENDINGS: [&str; 2] = [".prompt.md", ".md"];

/// Fields that other programs read.
const HINTS: [&str; 4] = ["mode", "agent", "model", "tools"];

/// A directory in a directory is a part of the name; this many of them.
const DEPTH_MAX: usize = 4;

const COMMAND_BYTES_MAX: usize = 64 * 1_024;

/// Adds the commands of a directory, and of those in it, to a container.
pub(super) fn find(scan: &mut Scan<'_>, directory: &Directory, container: &mut Container) {
    let mut pending = vec![(directory.clone(), String::new(), 1)];
    while let Some((directory, prefix, depth)) = pending.pop() {
        let Some(listing) = scan.list(&directory) else {
            // A warning says why.
            continue;
        };
        for entry in &listing.entries {
            let Some(name) = entry.name.to_str() else {
                // It could not be typed.
                continue;
            };
            if entry.kind == EntryKind::Directory {
                if depth < DEPTH_MAX
                    && let Some(directory) = listing.subdirectory(entry)
                {
                    pending.push((directory, format!("{prefix}{name}:"), depth + 1));
                }
            } else if let Some(name) = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)) {
                let name = format!("{prefix}{name}");
                if !add_file(scan, &entry.path, name, container) {
                    return;
                }
            }
        }
    }
}

/// Adds the command of a file; false if no more may be added.
fn add_file(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    name: String,
    container: &mut Container,
) -> bool {
    let Some(text) = scan.read_whole(path, COMMAND_BYTES_MAX) else {
        // It is gone by now, or a warning says what is wrong with it.
        return true;
    };
    match parse(&text) {
        Ok(mut prompt) => {
            for (key, _) in prompt.hints.extract_if(.., |(_, value)| !is_hint(value)) {
                scan.warn_invalid(path, &format!("its `{key}` is too long or cannot be shown"));
            }
            let child = Child {
                name,
                uri: scan.uri(path),
                range: None,
                description: prompt.entry.description.clone(),
                content: ChildContent::Prompt(prompt),
            };
            scan.add_child(container, child, path)
        }
        Err(reason) => {
            scan.warn_invalid(path, &reason);
            true
        }
    }
}

fn parse(text: &str) -> Result<PromptFile, String> {
    let document = front_matter::parse(text)?;
    let hint = |key: &&'static str| Some((*key, document.field(key)?.to_owned()));
    Ok(PromptFile {
        hints: HINTS.iter().filter_map(hint).collect(),
        entry: parse_entry(&document)?,
    })
}

fn parse_entry(document: &Document<'_>) -> Result<Entry, String> {
    let body = document.body.trim();
    let mentions =
        if document.is_true("mentions") { Mentions::Resolved } else { Mentions::Literal };
    let intent = document.field("intent").map(str::to_owned);
    let effect = match (body.is_empty(), intent) {
        (false, None) => CommandEffect::Template { body: body.to_owned(), mentions },
        (false, Some(intent)) => {
            CommandEffect::Directed { intent, body: body.to_owned(), mentions }
        }
        (true, Some(intent)) => CommandEffect::Intent(intent),
        (true, None) => return Err("it is empty".to_owned()),
    };
    Ok(Entry {
        source: Source::Project,
        description: describe(document.field("description"), body),
        argument_hint: document.field("argument-hint").map(single_line),
        effect,
    })
}
