//! ARCHITECTURE.md names every file of the kernel in one of its tables, and no file that is gone: what is listed as whole is whole.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::is_test_file;

const KERNEL: &str = "crates/kernel/src/";
const FIRST: &str = "## Inside the kernel";
/// Names that are looked for in whole paths, `kernel/src/pending.rs`.
const PATH: &str = r"`((?:wire|compositor|markup|agent-api|kernel|workspace|terminals|agents|web|host|client|cli)/[a-z0-9_./-]+)`";

pub(crate) fn check_architecture(repository: &Repository) -> Result<Vec<String>> {
    let page = repository.text("ARCHITECTURE.md")?;
    let names: Vec<&str> = repository.names().iter().map(String::as_str).collect();
    let mut wrong = unlisted_files(page, &names)?;
    wrong.extend(dead_paths(page, &names)?);
    Ok(wrong)
}

/// Files and directories of the kernel that its tables do not name.
fn unlisted_files(page: &str, names: &[&str]) -> Result<Vec<String>> {
    let tables = page.split_once(FIRST).map_or("", |(_, rest)| rest);
    let rows = tables.lines().filter(|line| line.starts_with('|'));
    let name = pattern(r"`([a-z_]+)(?:/[a-z_]*)?`")?;
    let rows: Vec<&str> = rows.collect();
    let listed: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| name.captures_iter(row))
        .filter_map(|found| found.get(1).map(|name| name.as_str()))
        .collect();
    let files = names
        .iter()
        .filter(|name| !is_test_file(name))
        .filter_map(|name| name.strip_prefix(KERNEL));
    let entries: BTreeSet<&str> = files
        .map(|file| file.split_once('/').map_or(file, |(directory, _)| directory))
        .map(|entry| entry.strip_suffix(".rs").unwrap_or(entry))
        .filter(|entry| *entry != "lib")
        .collect();
    let unlisted = entries.difference(&listed);
    let words = |entry: &&str| format!("ARCHITECTURE.md: no table names `{entry}` of {KERNEL}");
    Ok(unlisted.map(words).collect())
}

/// Paths into crates that lead nowhere.
fn dead_paths(page: &str, names: &[&str]) -> Result<Vec<String>> {
    let path = pattern(PATH)?;
    let is_there = |wanted: &str| {
        let wanted = format!("crates/{wanted}");
        names.iter().any(|name| {
            let rest = name.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| {
                rest.is_empty() || wanted.ends_with('/') || rest.starts_with(['/', '.'])
            })
        })
    };
    let found = path.captures_iter(page).filter_map(|found| found.get(1));
    let dead = found.filter(|found| !is_there(found.as_str()));
    let words = |found: regex::Match<'_>| {
        format!("ARCHITECTURE.md: `{}` is not in crates/", found.as_str())
    };
    Ok(dead.map(words).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "`kernel/src/gone.rs` `kernel/src/pending.rs` `kernel/src/turn/`\n## Inside the kernel\n| a | `pending`, `turn/` | b |";

    #[test]
    fn a_file_that_no_table_names_is_found() {
        let names = [
            "crates/kernel/src/lib.rs",
            "crates/kernel/src/pending.rs",
            "crates/kernel/src/turn/end.rs",
            "crates/kernel/src/log.rs",
        ];
        let unlisted = unlisted_files(PAGE, &names).unwrap();
        assert_eq!(unlisted, ["ARCHITECTURE.md: no table names `log` of crates/kernel/src/"]);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_found() {
        let names = ["crates/kernel/src/pending.rs", "crates/kernel/src/turn/end.rs"];
        let dead = dead_paths(PAGE, &names).unwrap();
        assert_eq!(dead, ["ARCHITECTURE.md: `kernel/src/gone.rs` is not in crates/"]);
    }
}
