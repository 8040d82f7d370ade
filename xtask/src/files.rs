//! What holds for every file: how large it may be, how it opens, what it must not contain.

use std::path::Path;

use anyhow::Result;

use crate::repository::Repository;

const LINES_MAX: usize = 800;
const LINES_WARN: usize = 500;

/// Files that may exceed the limit. This list only shrinks.
const LARGE: &[&str] = &[];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] =
    &["core", "common", "util", "utils", "helper", "helpers", "manager", "misc"];

/// Left behind by accident. Written in two pieces so that this file does not find itself.
const LEFTOVERS: &[(&str, &str)] = &[
    ("todo", "!("),
    ("unimplemented", "!("),
    ("dbg", "!("),
    ("#[", "ignore"),
    ("/wo", "rk/"),
    ("/ro", "ot/"),
];

/// Everything that is wrong with single files.
pub(crate) fn check_files(repository: &Repository) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, text) in repository.texts() {
        wrong.extend(find_leftovers(name, text));
        if name.ends_with(".rs") {
            wrong.extend(check_source(name, text));
        }
    }
    Ok(wrong)
}

/// Sources that are long but still allowed.
pub(crate) fn list_large_files(repository: &Repository) -> Vec<String> {
    repository
        .texts()
        .filter(|(name, _)| name.ends_with(".rs"))
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| (LINES_WARN + 1..=LINES_MAX).contains(lines))
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect()
}

fn find_leftovers(name: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (first, second) in LEFTOVERS {
        let wanted = format!("{first}{second}");
        if !text.contains(&wanted) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if line.contains(&wanted) {
                wrong.push(format!("{name}:{}: `{wanted}`: {}", number + 1, line.trim()));
            }
        }
    }
    wrong
}

fn check_source(name: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX && !LARGE.contains(&name) {
        wrong.push(format!("{name}: {lines} lines; split it (limit {LINES_MAX})"));
    }
    if !text.lines().take(5).any(|line| line.starts_with("//!")) {
        wrong.push(format!("{name}: does not open with `//!`: what is it for?"));
    }
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
    if EMPTY_NAMES.contains(&stem) {
        wrong.push(format!("{name}: `{stem}` says nothing about what is inside"));
    }
    let is_test = name.contains("/tests/") || name.starts_with("testing/");
    // What is done to real nodes there lasts for a time, or is done at some time.
    let is_test = is_test && !name.starts_with("testing/cluster/src/");
    let waits = concat!("sle", "ep(");
    if is_test && text.contains(waits) {
        wrong.push(format!(
            "{name}: a test waits for time to pass; use virtual time or a condition"
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_short_named_and_says_what_it_is_for() {
        assert_eq!(check_source("a.rs", "//! For tests.\n"), Vec::<String>::new());
        assert_eq!(check_source("a.rs", "fn a() {}\n").len(), 1);
        assert_eq!(check_source("util.rs", "//! For tests.\n").len(), 1);
        let long = format!("//! For tests.\n{}", "\n".repeat(LINES_MAX));
        assert_eq!(check_source("a.rs", &long).len(), 1);
        let waits = concat!("//! Waits.\nfn a() { sle", "ep(1) }");
        assert_eq!(check_source("crates/a/tests/b.rs", waits).len(), 1);
    }

    #[test]
    fn what_was_left_behind_is_found() {
        let left = concat!("fn a() { to", "do!() }");
        assert_eq!(find_leftovers("a.rs", left).len(), 1);
        assert_eq!(find_leftovers("a.rs", "fn a() {}"), Vec::<String>::new());
    }
}
