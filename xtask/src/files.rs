//! What every file keeps to: how large it is, how it opens, what it must not hold.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

const LINES_MAX: usize = 800;
const LINES_WARN: usize = 500;

/// Files that may exceed the limit. This list only shrinks.
const LARGE: &[&str] = &[];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "core", "common", "util", "utils", "helper", "helpers", "manager", "misc",
];

/// Left behind by accident. Written in two pieces so that this file does not find itself.
const LEFTOVERS: &[(&str, &str)] = &[
    ("todo", "!("),
    ("unimplemented", "!("),
    ("dbg", "!("),
    ("#[", "ignore"),
    ("/wo", "rk/"),
    ("/ro", "ot/"),
];

/// What is wrong, and what is merely large.
pub struct Untidy {
    pub wrong: Vec<String>,
    pub large: Vec<String>,
}

/// Looks at every file that git tracks or would track.
pub fn untidy_files(root: &Path) -> Result<Untidy> {
    let mut untidy = Untidy {
        wrong: Vec::new(),
        large: Vec::new(),
    };
    for name in listed(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&name)) else {
            continue;
        };
        for (first, second) in LEFTOVERS {
            let wanted = format!("{first}{second}");
            for (number, line) in text
                .lines()
                .enumerate()
                .filter(|(_, line)| line.contains(&wanted))
            {
                untidy.wrong.push(format!(
                    "{name}:{}: `{wanted}`: {}",
                    number + 1,
                    line.trim()
                ));
            }
        }
        if name.ends_with(".rs") {
            look_at_source(&name, &text, &mut untidy);
        }
    }
    Ok(untidy)
}

fn look_at_source(name: &str, text: &str, untidy: &mut Untidy) {
    let lines = text.lines().count();
    if lines > LINES_MAX && !LARGE.contains(&name) {
        untidy.wrong.push(format!(
            "{name}: {lines} lines; split it (limit {LINES_MAX})"
        ));
    } else if lines > LINES_WARN {
        untidy.large.push(format!("{name}: {lines} lines"));
    }
    if !text.lines().take(5).any(|line| line.starts_with("//!")) {
        untidy
            .wrong
            .push(format!("{name}: does not open with `//!`: what is it for?"));
    }
    let stem = Path::new(name)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("");
    if EMPTY_NAMES.contains(&stem) {
        untidy.wrong.push(format!(
            "{name}: `{stem}` says nothing about what is inside"
        ));
    }
    let is_test = name.contains("/tests/") || name.starts_with("testing/");
    let waits = concat!("sle", "ep(");
    if is_test && text.contains(waits) {
        untidy.wrong.push(format!(
            "{name}: a test waits for time to pass; use virtual time or a condition"
        ));
    }
}

fn listed(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git did not run")?;
    if !output.status.success() {
        bail!(
            "git ls-files failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect())
}
