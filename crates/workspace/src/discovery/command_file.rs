//! Commands of a project: Markdown files whose body is a template. A file's name is the command's.

use compositor::Catalogue;
use compositor::command::{CommandEffect, Entry, Mentions, Source};

use super::front_matter;
use super::scan::Scan;
use super::warning::WarningKind;
use crate::WorkspacePath;
use crate::directory::EntryKind;

/// Where projects keep them; the first of a name counts.
const DIRECTORIES: [&str; 3] = [
    ".greenroom/commands",
    ".agents/commands",
    ".claude/commands",
];

/// A directory in a directory is a part of the name; this many of them.
const DEPTH_MAX: usize = 4;

const FILE_BYTES_MAX: usize = 64 * 1_024;

/// The longest description that is listed.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Adds all commands of the working directories to a catalogue.
pub(super) fn add_all(scan: &mut Scan<'_>, catalogue: &mut Catalogue) {
    for root in scan.workspace.root_paths() {
        for directory in DIRECTORIES {
            add_directory(scan, &root.join(directory), catalogue);
        }
    }
}

fn add_directory(scan: &mut Scan<'_>, path: &WorkspacePath, catalogue: &mut Catalogue) {
    // Most projects do not have it.
    let directory = scan.directory(path);
    let mut pending: Vec<_> = directory
        .into_iter()
        .map(|directory| (directory, String::new(), 1))
        .collect();
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
            } else if let Some(name) = name.strip_suffix(".md") {
                let name = format!("{prefix}{name}");
                add_file(scan, &entry.path, &name, catalogue);
            }
        }
    }
}

fn add_file(scan: &mut Scan<'_>, path: &WorkspacePath, name: &str, catalogue: &mut Catalogue) {
    let Some((text, is_cut)) = scan.read(path, FILE_BYTES_MAX) else {
        // It is gone by now, or a warning says what is wrong with it.
        return;
    };
    let entry = match is_cut {
        true => Err(format!("it is larger than {} KiB", FILE_BYTES_MAX / 1_024)),
        false => parse_entry(&text),
    };
    match entry {
        Ok(entry) => {
            if let Some(reason) = catalogue.insert(name, entry) {
                scan.warn_of(WarningKind::Name, path, &reason);
            }
        }
        Err(reason) => scan.warn_of(WarningKind::Invalid, path, &reason),
    }
}

fn parse_entry(text: &str) -> Result<Entry, String> {
    let document = front_matter::parse(text)?;
    let body = document.body.trim();
    let mentions = match document.is_true("mentions") {
        true => Mentions::Resolved,
        false => Mentions::Literal,
    };
    let intent = document.field("intent").map(str::to_owned);
    let effect = match (body.is_empty(), intent) {
        (false, None) => CommandEffect::Template {
            body: body.to_owned(),
            mentions,
        },
        (false, Some(intent)) => CommandEffect::Directed {
            intent,
            body: body.to_owned(),
            mentions,
        },
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

/// A file in one line: the description it has, or its first line of text.
pub(super) fn describe(description: Option<&str>, body: &str) -> Option<String> {
    let first_line = || {
        let lines = body.lines().map(|line| line.trim_start_matches('#').trim());
        lines.into_iter().find(|line| !line.is_empty())
    };
    description.or_else(first_line).map(single_line)
}

fn single_line(text: &str) -> String {
    let text = text.split(char::is_control).flat_map(str::split_whitespace);
    let text = text.collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}
