//! The list of checks, and which of them only warn for now.

use std::path::Path;

use anyhow::Result;

use crate::repository::Repository;
use crate::{
    adrs, architecture, assertions, cli_protocol, cycles, edges, files, lints, map_index, owners,
    page_source, page_types, phases, rules, silence, sizes, test_files, tuple_parameters, types,
    words,
};

/// A check by name: what it finds wrong, one finding a line or more.
pub(crate) type Check = (&'static str, fn(&Repository) -> Result<Vec<String>>);

pub(crate) const CHECKS: &[Check] = &[
    ("edges", edges::check_edges),
    ("files", files::check_files),
    ("test files", test_files::check_test_files),
    ("rules", rules::check_rules),
    ("citations", rules::check_citations),
    ("adrs", adrs::check_adrs),
    ("architecture", architecture::check_architecture),
    ("tuple parameters", tuple_parameters::check_tuple_parameters),
    ("types", types::check_types),
    ("words", words::check_words),
    ("cycles", cycles::check_cycles),
    ("silence", silence::check_silence),
    ("assertions", assertions::check_assertions),
    ("phases", phases::check_phases),
    ("owners", owners::check_owners),
    ("lints", lints::check_lints),
    ("map index", map_index::check_map_index),
    ("page source", page_source::check_page_source),
    ("page types", page_types::check_page_types),
    ("packages", sizes::check_packages),
    ("protocol", cli_protocol::check_cli_protocol),
];

/// Checks that are not enforced yet: their findings are warnings. One that finds nothing must leave this list.
pub(crate) const PENDING: &[&str] = &[];

/// What all checks found.
#[derive(Debug, Default)]
pub struct Findings {
    pub wrong: Vec<String>,
    pub pending: Vec<String>,
    /// Sources that are long but still allowed.
    pub large: Vec<String>,
}

/// Runs every check.
pub fn run_checks(root: &Path) -> Result<Findings> {
    let repository = Repository::read(root)?;
    let mut findings = run(&repository, CHECKS, PENDING)?;
    findings.large = files::list_large_files(&repository);
    Ok(findings)
}

fn run(repository: &Repository, checks: &[Check], pending: &[&str]) -> Result<Findings> {
    let mut findings = Findings::default();
    for (name, check) in checks {
        let found = check(repository)?;
        let is_pending = pending.contains(name);
        if is_pending && found.is_empty() {
            findings.wrong.push(format!("[{name}] finds nothing: remove it from PENDING"));
        }
        let lines = found.into_iter().map(|finding| format!("[{name}] {finding}"));
        if is_pending { findings.pending.extend(lines) } else { findings.wrong.extend(lines) }
    }
    for name in pending {
        if !checks.iter().any(|(check, _)| check == name) {
            findings.wrong.push(format!("[{name}] is pending and not a check"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(_: &Repository) -> Result<Vec<String>> {
        Ok(vec!["here".to_owned()])
    }

    fn finds_nothing(_: &Repository) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    #[test]
    fn a_pending_check_warns_and_another_fails() {
        let checks: &[Check] = &[("one", finds), ("two", finds)];
        let findings = run(&Repository::empty(), checks, &["two"]).unwrap();
        assert_eq!(findings.wrong, ["[one] here"]);
        assert_eq!(findings.pending, ["[two] here"]);
    }

    #[test]
    fn a_pending_check_without_findings_must_be_enforced() {
        let checks: &[Check] = &[("one", finds_nothing)];
        let findings = run(&Repository::empty(), checks, &["one", "gone"]).unwrap();
        assert_eq!(
            findings.wrong,
            ["[one] finds nothing: remove it from PENDING", "[gone] is pending and not a check"]
        );
    }
}
