//! The lints the repository relies on stay on: in the workspace's table, in every crate, and with their thresholds.
//!
//! Clippy finds what breaks them; this check finds that somebody turned them off.

use anyhow::Result;

use crate::repository::Repository;

/// Lints of `[workspace.lints]` that must be `warn`, `deny` or `forbid`. `.ci/run` makes warnings errors.
const REQUIRED: &[&str] =
    &["unsafe_code", "unreachable_pub", "unwrap_used", "expect_used", "panic", "too_many_lines"];

/// Lines that `clippy.toml` must have.
const THRESHOLDS: &[&str] = &["too-many-lines-threshold = 70"];

/// What `crates/kernel/clippy.toml` must forbid: clock, files, network, threads, environment and maps without an order.
const FORBIDDEN_IN_KERNEL: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "std::fs::File",
    "std::fs::read",
    "std::net::TcpStream",
    "std::thread::spawn",
    "std::env::var",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

pub(crate) fn check_lints(repository: &Repository) -> Result<Vec<String>> {
    let workspace = repository.text("Cargo.toml")?;
    let clippy = repository.text("clippy.toml")?;
    let mut wrong = missing_lints(workspace, clippy);
    // A crate's own file replaces the workspace's, so it must repeat the thresholds.
    let kernel = repository.find_text("crates/kernel/clippy.toml");
    wrong.extend(missing_bans(kernel.unwrap_or_default()));
    for (name, text) in repository.texts() {
        let is_manifest = name.starts_with("crates/") && name.ends_with("/Cargo.toml");
        if is_manifest && !inherits_lints(text) {
            wrong.push(format!("{name}: lacks `[lints] workspace = true`"));
        }
    }
    Ok(wrong)
}

fn missing_lints(workspace: &str, clippy: &str) -> Vec<String> {
    let lints = workspace.split("\n[").filter(|section| section.starts_with("workspace.lints"));
    let on: Vec<&str> = lints
        .flat_map(str::lines)
        .filter(|line| {
            ["\"warn\"", "\"deny\"", "\"forbid\""].iter().any(|level| line.contains(level))
        })
        .filter_map(|line| line.split([' ', '=']).next())
        .collect();
    let missing = REQUIRED
        .iter()
        .filter(|lint| !on.contains(lint))
        .map(|lint| format!("Cargo.toml: the lint `{lint}` is not on"));
    let unset = THRESHOLDS
        .iter()
        .filter(|line| !clippy.lines().any(|have| have.trim() == **line))
        .map(|line| format!("clippy.toml: lacks `{line}`"));
    missing.chain(unset).collect()
}

fn missing_bans(kernel: &str) -> Vec<String> {
    let quoted = |name: &&&str| !kernel.contains(&format!("\"{name}\""));
    let bans = FORBIDDEN_IN_KERNEL
        .iter()
        .filter(quoted)
        .map(|name| format!("crates/kernel/clippy.toml: does not forbid `{name}`"));
    let unset = THRESHOLDS
        .iter()
        .filter(|line| !kernel.lines().any(|have| have.trim() == **line))
        .map(|line| format!("crates/kernel/clippy.toml: lacks `{line}`"));
    bans.chain(unset).collect()
}

fn inherits_lints(manifest: &str) -> bool {
    manifest
        .split("\n[")
        .any(|section| section.starts_with("lints]") && section.contains("workspace = true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lint_that_is_off_is_found() {
        let all: String = REQUIRED.iter().map(|lint| format!("{lint} = \"warn\"\n")).collect();
        let workspace = format!("[workspace]\n\n[workspace.lints.clippy]\n{all}");
        let clippy = "too-many-lines-threshold = 70\n";
        assert_eq!(missing_lints(&workspace, clippy), Vec::<String>::new());
        let without = workspace.replace("panic = \"warn\"", "panic = \"allow\"");
        assert_eq!(missing_lints(&without, clippy), ["Cargo.toml: the lint `panic` is not on"]);
        assert_eq!(missing_lints(&workspace, "").len(), 1);
    }

    #[test]
    fn the_kernel_forbids_what_would_make_it_impure() {
        let bans: String = FORBIDDEN_IN_KERNEL
            .iter()
            .map(|name| format!("    {{ path = \"{name}\" }},\n"))
            .collect();
        let kernel = format!("too-many-lines-threshold = 70\ndisallowed-types = [\n{bans}]\n");
        assert_eq!(missing_bans(&kernel), Vec::<String>::new());
        assert_eq!(missing_bans(&kernel.replace("HashMap", "BTreeMap")).len(), 1);
        assert_eq!(missing_bans("").len(), FORBIDDEN_IN_KERNEL.len() + 1);
    }

    #[test]
    fn a_crate_inherits_the_lints() {
        assert!(inherits_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"a\"\n"));
    }
}
