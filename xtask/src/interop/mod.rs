//! `cargo run -p xtask -- interop [NAME..]`: installs agents and MCP servers that others make from the package registries into
//! `target/interop`, lets the conformance tests work with them, and prints what worked as tables for docs/agents.md and docs/mcp.md.
//!
//! Promises: versions are pinned; nothing is installed outside of `target/interop`; what is missing fails by its name.

mod catalogue;
mod install;
mod table;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use catalogue::{PACKAGES, PackageKind, RealPackage};

/// Runs what was named, all if nothing was. Whether all that was tried worked.
pub fn run_interop(root: &Path, names: &[String]) -> Result<bool> {
    let packages = choose(names)?;
    let place = root.join("target/interop");
    std::fs::create_dir_all(&place).context("cannot make target/interop")?;
    let results = place.join("results.jsonl");
    if results.exists() {
        std::fs::remove_file(&results).context("cannot remove the last results")?;
    }
    let mut failed = Vec::new();
    for package in &packages {
        eprintln!("interop: {} {}", package.name, package.version);
        if let Err(error) = install::install(&place, package) {
            failed.push(format!("{}: {error:#}", package.name));
            continue;
        }
        if !run_test(root, &place, package)? {
            failed.push(format!("{}: its test failed", package.name));
        }
    }
    for kind in [PackageKind::Agent, PackageKind::Server, PackageKind::SignIn] {
        let of_kind: Vec<RealPackage> =
            packages.iter().filter(|package| package.kind == kind).copied().collect();
        if !of_kind.is_empty() {
            println!("{}", table::make_table(&results, &of_kind)?);
        }
    }
    for line in &failed {
        eprintln!("interop failed: {line}");
    }
    Ok(failed.is_empty())
}

fn choose(names: &[String]) -> Result<Vec<RealPackage>> {
    for name in names {
        if !PACKAGES.iter().any(|package| package.name == name) {
            let known: Vec<&str> = PACKAGES.iter().map(|package| package.name).collect();
            bail!("nothing to try is called {name}; there are {}", known.join(", "));
        }
    }
    let is_chosen =
        |package: &&RealPackage| names.is_empty() || names.iter().any(|it| it == package.name);
    Ok(PACKAGES.iter().filter(is_chosen).copied().collect())
}

fn run_test(root: &Path, place: &Path, package: &RealPackage) -> Result<bool> {
    let test = package.name.replace('-', "_");
    let test = format!("{}::real_{test}", package.kind.tests());
    let mut command = Command::new(env!("CARGO"));
    // Of the whole workspace, so that nothing is built again with other features.
    command.args(["test", "--quiet", "--locked", "--workspace"]);
    command.args(["--test", "conformance"]);
    command.args(["--", "--exact", &test, "--nocapture"]);
    command.current_dir(root).env("GREENROOM_INTEROP", place);
    let status = command.status().context("cargo test did not start")?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_and_none_means_all() {
        assert_eq!(choose(&[]).unwrap().len(), PACKAGES.len());
        let one = choose(&["qwen".to_owned()]).unwrap();
        assert_eq!(one[0].package, "@qwen-code/qwen-code");
        let error = choose(&["clod".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("clod") && error.contains("claude"), "{error}");
    }
}
