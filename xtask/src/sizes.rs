//! Sizes that grow unseen: code and functions of the program, packages in the lock file.
//!
//! The program is the one that the tests were built with: it is there whenever `.ci/run` calls tidy, and its code grows with that
//! of a release. `xtask/sizes.txt` holds each figure; a change of more than 2 % in either direction is a finding.

use std::path::Path;

use anyhow::{Context, Result};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

use crate::repository::Repository;

const FILE: &str = "xtask/sizes.txt";
const PROGRAM: &str = "target/debug/greenroom";
/// Smaller changes are ordinary work.
const TOLERANCE_PERCENT: u64 = 2;
const TEXT: &str = "text bytes";
const FUNCTIONS: &str = "functions";
const PACKAGES: &str = "packages";

/// A figure and its name in the file.
struct Size {
    name: &'static str,
    value: u64,
}

pub(crate) fn check_packages(repository: &Repository) -> Result<Vec<String>> {
    let packages = count_packages(repository.text("Cargo.lock")?);
    let finding = compare(repository.text(FILE)?, &Size { name: PACKAGES, value: packages })?;
    Ok(finding.into_iter().collect())
}

/// Checks the built program. Says so and finds nothing where there is none, or one for another kind of machine.
pub fn check_program(root: &Path) -> Result<Vec<String>> {
    let program = root.join(PROGRAM);
    let is_comparable = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if !is_comparable || !program.exists() {
        println!("skipped: the size of {PROGRAM} (not built, or not for x86-64 Linux)");
        return Ok(Vec::new());
    }
    let recorded = std::fs::read_to_string(root.join(FILE))?;
    let sizes = measure(&program)?;
    sizes.iter().filter_map(|size| compare(&recorded, size).transpose()).collect()
}

fn count_packages(lock_file: &str) -> u64 {
    lock_file.lines().filter(|line| *line == "[[package]]").count() as u64
}

fn measure(program: &Path) -> Result<[Size; 2]> {
    let bytes = std::fs::read(program)?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{} is not a program", program.display()))?;
    let text = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let functions = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .count();
    Ok([
        Size { name: TEXT, value: text.map(|section| section.size()).sum() },
        Size { name: FUNCTIONS, value: functions as u64 },
    ])
}

/// Compares a figure with the recorded one.
fn compare(recorded: &str, size: &Size) -> Result<Option<String>> {
    let Size { name, value } = size;
    let line = recorded
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .with_context(|| format!("{FILE} has no line `{name}: NUMBER`"))?;
    let before: u64 = line.parse().with_context(|| format!("{FILE}: `{line}` is not a number"))?;
    if value.abs_diff(before) * 100 <= before * TOLERANCE_PERCENT {
        return Ok(None);
    }
    let percent = (*value as f64 / before as f64 - 1.0) * 100.0;
    let advice = if *value > before {
        "find what grew; if it must, write the new figure and say why in the commit"
    } else {
        "write the smaller figure, so that the bound tightens"
    };
    Ok(Some(format!("{FILE}: {name}: {before} became {value} ({percent:+.1} %): {advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_more_than_two_percent_is_found() {
        let recorded = "# a comment\nfunctions: 1000\n";
        let compare = |value| compare(recorded, &Size { name: FUNCTIONS, value });
        for unchanged in [980, 1_000, 1_020] {
            assert_eq!(compare(unchanged).unwrap(), None);
        }
        let grown = compare(1_021).unwrap().unwrap();
        assert!(grown.contains("1000 became 1021 (+2.1 %)"), "{grown}");
        let shrunk = compare(979).unwrap().unwrap();
        assert!(shrunk.contains("tightens"), "{shrunk}");
    }

    #[test]
    fn a_figure_that_is_not_recorded_is_an_error() {
        assert!(compare("packages: 3\n", &Size { name: TEXT, value: 1 }).is_err());
        assert!(compare("packages: many\n", &Size { name: PACKAGES, value: 1 }).is_err());
    }

    #[test]
    fn packages_and_functions_are_counted() {
        assert_eq!(count_packages("version = 4\n\n[[package]]\na\n\n[[package]]\nb\n"), 2);
        let [text, functions] = measure(&std::env::current_exe().unwrap()).unwrap();
        assert!(text.value > 100_000, "{} bytes", text.value);
        assert!(functions.value > 1_000, "{} functions", functions.value);
    }
}
