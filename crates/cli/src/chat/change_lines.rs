//! A list of changed files as lines: how each changed, what was reviewed, and what can be done with them.
//!
//! Promises: names and words of the host cannot control the terminal.
//! Must not know: terminals, connections.

use client::chat::{ChangesList, ChangesetOffer, FileChangeEntry, FileChangeKind, OperationStatus};

use super::change_argument::usage;
use super::line::{Line, Style};
use crate::format::format_count;
use crate::terminal::escape_line;

/// Files that a question names.
const NAMED_MAX: usize = 10;

/// Characters of a message that tell which turn is meant.
const TURN_CHARS_MAX: usize = 40;

/// Columns of what is typed, before what it does.
const USAGE_COLUMNS: usize = 24;

/// The list, what can be done with it, and which other lists there are.
pub(crate) fn list_lines(list: &ChangesList, offers: &[ChangesetOffer], base: &str) -> Vec<Line> {
    let mut lines = vec![head_line(list)];
    // All of them: each has a number that can be typed, and `all` means no file that was not shown.
    let listed = list.files.iter().enumerate();
    lines.extend(listed.map(|(index, file)| file_line(Some(index + 1), file, base)));
    lines.extend(operation_lines(list));
    let others: Vec<String> = offers
        .iter()
        .filter(|offer| offer.name != list.of.name)
        .map(|offer| format!("/changes {}", offer.name))
        .collect();
    if !others.is_empty() {
        let others = format!("  Other changes: {}", escape_line(&others.join(", ")));
        lines.push(Line::new(Style::Dim, others));
    }
    lines
}

fn head_line(list: &ChangesList) -> Line {
    let mut label = escape_line(&list.of.label);
    if let Some(turn) = &list.turn {
        label = format!("{label} ({})", turn_name(&turn.text));
    }
    let count = list.files.len();
    if count == 0 {
        let label = Line::new(Style::Bold, format!("  {label}: "));
        return label.then(Style::Plain, "nothing is changed");
    }
    let sum = |field: fn(&FileChangeEntry) -> u64| list.files.iter().map(field).sum::<u64>();
    let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
    let files = format_count(count, "file");
    let head = Line::new(Style::Bold, format!("  {label}: {files} +{added} -{removed}"));
    let reviewed = list.files.iter().filter(|file| file.is_reviewed).count();
    match reviewed {
        0 => head,
        reviewed => head.then(Style::Dim, format!(" · {reviewed} of {count} reviewed")),
    }
}

/// What was sent, as far as it takes to know the turn again. Safe to print.
pub(crate) fn turn_name(text: &str) -> String {
    let line = escape_line(text.lines().next().unwrap_or_default());
    let mut name: String = line.chars().take(TURN_CHARS_MAX).collect();
    if name.len() < line.len() {
        name.push('…');
    }
    name
}

pub(crate) fn file_line(number: Option<usize>, file: &FileChangeEntry, base: &str) -> Line {
    let number = number.map_or(String::new(), |number| format!("{number:>4} "));
    let (letter, style) = match file.kind {
        FileChangeKind::Added => ("A", Style::Good),
        FileChangeKind::Removed => ("D", Style::Bad),
        FileChangeKind::Moved => ("R", Style::Warn),
        FileChangeKind::Changed => ("M", Style::Warn),
    };
    let from = file.moved_from.as_ref();
    let from = from.map_or(String::new(), |from| format!("{} → ", name_of(from, base)));
    let line = Line::new(Style::Dim, number)
        .then(style, letter)
        .then(Style::Plain, format!(" {from}{}", name_of(&file.uri, base)))
        .then(Style::Good, format!(" +{}", file.added))
        .then(Style::Bad, format!(" -{}", file.removed));
    if file.is_reviewed { line.then(Style::Dim, "  ✓ reviewed") } else { line }
}

/// What can be typed about the list, and what it does.
fn operation_lines(list: &ChangesList) -> Vec<Line> {
    let row = |what: &str, about: &str| {
        let what = format!("  {what:USAGE_COLUMNS$} ");
        Line::new(Style::Plain, what).then(Style::Dim, escape_line(about))
    };
    let mut lines = Vec::new();
    if !list.files.is_empty() {
        lines.push(row("/changes N", "show what changed in a file"));
        if list.of.is_reviewable {
            lines.push(row(
                "/changes reviewed N|all",
                "mark files as reviewed; unreviewed takes it back",
            ));
        }
    }
    for operation in &list.operations {
        // What is done to files needs some.
        if list.files.is_empty() && operation.is_for_files {
            continue;
        }
        let about = match &operation.status {
            OperationStatus::Idle => operation.description.clone(),
            OperationStatus::Running => "at work …".to_owned(),
            OperationStatus::Disabled => format!("not possible now: {}", operation.description),
            OperationStatus::Failed(why) => format!("failed: {why}"),
        };
        lines.push(row(&escape_line(&usage(operation)), &about));
    }
    lines
}

/// The names of some files, a line each, for a question.
pub(crate) fn names_of(files: &[FileChangeEntry], base: &str) -> String {
    let mut names: Vec<String> =
        files.iter().take(NAMED_MAX).map(|file| name_of(&file.uri, base)).collect();
    if files.len() > NAMED_MAX {
        names.push(format!("and {} more", files.len() - NAMED_MAX));
    }
    names.join("\n")
}

/// A file as people call it: inside of the directory by its path there. Safe to print.
pub(crate) fn name_of(uri: &str, base: &str) -> String {
    let inside = uri.strip_prefix(base).and_then(|rest| rest.strip_prefix('/'));
    let decoded = match inside {
        Some(path) => wire::file_uri::path_of(&format!("file:///{path}")),
        None => wire::file_uri::path_of(uri),
    };
    let decoded = decoded.map(|path| String::from_utf8_lossy(&path).into_owned());
    let name = match (inside, decoded) {
        (Some(_), Some(decoded)) => decoded.trim_start_matches('/').to_owned(),
        (Some(path), None) => path.to_owned(),
        (None, decoded) => decoded.unwrap_or_else(|| uri.to_owned()),
    };
    escape_line(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::change_argument::tests::{list, offers};

    fn texts(list: &ChangesList) -> Vec<String> {
        list_lines(list, &offers(), "file:///w").iter().map(Line::text).collect()
    }

    #[test]
    fn a_list_says_what_can_be_done() {
        let mut changed = list(&["b%20c", "a\u{1b}"]);
        changed.files[1].is_reviewed = true;
        let rows = texts(&changed);
        assert_eq!(rows[0], "  Changes of session: 2 files +2 -0 · 1 of 2 reviewed");
        assert_eq!(rows[1], "   1 A a\\x1b +1 -0");
        assert_eq!(rows[2], "   2 A b c +1 -0  ✓ reviewed");
        assert!(rows[5].starts_with("  /changes discard N|all   does discard"), "{rows:?}");
        assert!(rows[7].ends_with("not possible now: does merge"), "{rows:?}");
        assert_eq!(rows[9], "  Other changes: /changes turn");
        let none = texts(&list(&[]));
        assert_eq!(none[0], "  Changes of session: nothing is changed");
        assert!(none[1].contains("/changes commit"), "what needs no file stays: {none:?}");
        assert_eq!(none.len(), 4);
    }

    #[test]
    fn every_file_is_listed() {
        let names: Vec<String> = (0..150).map(|n| format!("f{n:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rows = texts(&list(&names));
        assert_eq!(rows[150], " 150 A f149 +1 -0");
    }

    #[test]
    fn names_are_short_and_safe() {
        assert_eq!(name_of("file:///w/a%20b", "file:///w"), "a b");
        assert_eq!(name_of("file:///other/a%0Ab", "file:///w"), "/other/a\\nb");
        assert_eq!(name_of("https://x/y", "file:///w"), "https://x/y");
        assert_eq!(turn_name("one\ntwo"), "one");
        assert_eq!(turn_name(&"x".repeat(50)).chars().count(), 41);
    }
}
