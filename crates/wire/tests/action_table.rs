//! No file of this crate but the table lists actions by name: what is true of an action is written once.

#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

use std::path::{Path, PathBuf};

use wire::ActionKind;

fn sources(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// The names of actions in the code of a file: comments and unit tests may give examples.
fn names_in(source: &str) -> Vec<&'static str> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let lines: Vec<&str> =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let is_named = |name: &str| {
        let literal = format!("\"{name}\"");
        lines.iter().any(|line| line.contains(&literal))
    };
    ActionKind::all().map(ActionKind::name).filter(|name| is_named(name)).collect()
}

#[test]
fn only_the_table_lists_actions_by_name() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut tables = 0;
    for file in files.into_iter().filter(|file| !file.ends_with("tests.rs")) {
        let names = names_in(&std::fs::read_to_string(&file).expect("a source file"));
        if file.ends_with("action/table.rs") {
            assert_eq!(names.len(), ActionKind::all().count());
            tables += 1;
        } else {
            assert!(names.is_empty(), "{} names {names:?}", file.display());
        }
    }
    assert_eq!(tables, 1);
}
