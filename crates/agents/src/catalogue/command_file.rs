//! Commands of a project: Markdown files whose body is a template.

use compositor::Catalogue;
use compositor::command::{CommandEffect, Entry, Mentions, Source};

use super::front_matter;
use super::survey::Survey;
use crate::tool::workspace::{Kind, Place};

/// Where projects keep them, the nearest to us first.
const DIRECTORIES: [&str; 3] = [
    ".greenroom/commands",
    ".agents/commands",
    ".claude/commands",
];

/// A directory in a directory is a part of the name; this many of them.
const DEPTH_MAX: usize = 4;

const FILE_BYTES_MAX: usize = 64 * 1_024;

/// What is shown of a description.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Puts all commands there are into a catalogue.
pub(super) fn take_all(survey: &mut Survey<'_>, catalogue: &mut Catalogue) {
    for root in survey.workspace.roots() {
        for directory in DIRECTORIES {
            take(survey, &root.below(directory), catalogue);
        }
    }
}

fn take(survey: &mut Survey<'_>, place: &Place, catalogue: &mut Catalogue) {
    let Some(folder) = survey.directory(place) else {
        return;
    };
    let mut waiting = vec![(folder, String::new(), 1)];
    while let Some((folder, prefix, depth)) = waiting.pop() {
        let Some(listing) = survey.look_into(&folder) else {
            continue;
        };
        for entry in &listing.entries {
            let Some(name) = entry.name.to_str() else {
                continue;
            };
            if entry.kind == Kind::Directory {
                if depth < DEPTH_MAX
                    && let Some(folder) = listing.folder(entry)
                {
                    waiting.push((folder, format!("{prefix}{name}:"), depth + 1));
                }
            } else if let Some(name) = name.strip_suffix(".md") {
                let name = format!("{prefix}{name}");
                take_file(survey, &entry.place, &name, catalogue);
            }
        }
    }
}

fn take_file(survey: &mut Survey<'_>, place: &Place, name: &str, catalogue: &mut Catalogue) {
    let Some((text, is_cut)) = survey.read(place, FILE_BYTES_MAX) else {
        return;
    };
    let entry = match is_cut {
        true => Err(format!("it is larger than {} KiB", FILE_BYTES_MAX / 1_024)),
        false => entry_of(&text),
    };
    let warning = match entry {
        Ok(entry) => catalogue.insert(name, entry),
        Err(why) => Some(why),
    };
    if let Some(why) = warning {
        survey.warn_of(place, &why);
    }
}

fn entry_of(text: &str) -> Result<Entry, String> {
    let document = front_matter::read(text)?;
    let body = document.body.trim();
    let mentions = match document.is_set("mentions") {
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
        (true, None) => return Err("it says nothing".to_owned()),
    };
    Ok(Entry {
        source: Source::Project,
        description: description(document.field("description"), body),
        argument_hint: document.field("argument-hint").map(one_line),
        effect,
    })
}

/// What is said of a file in one line: what it says of itself, or how it begins.
pub(super) fn description(said: Option<&str>, body: &str) -> Option<String> {
    let beginning = || {
        let lines = body.lines().map(|line| line.trim_start_matches('#').trim());
        lines.into_iter().find(|line| !line.is_empty())
    };
    said.or_else(beginning).map(one_line)
}

fn one_line(text: &str) -> String {
    let text = text.split(char::is_control).flat_map(str::split_whitespace);
    let text = text.collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}
