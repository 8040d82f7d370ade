//! Published clients of older versions against the real binary: three packages outside the workspace, for their lock files cannot be
//! one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The packages, from the root of the repository. The first two are programs as well, which the third starts.
const PACKAGES: [&str; 3] =
    ["testing/generations/of_0_5_0", "testing/generations/of_0_5_1", "testing/generations"];

/// Builds the binary, unless `GREENROOM_BIN` names one, and runs the tests of all packages against it. Whether all passed.
pub fn run_generations(root: &Path) -> Result<bool> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    // Whoever names a binary has built it.
    let named = std::env::var_os("GREENROOM_BIN").map(PathBuf::from);
    let mut passed = true;
    if named.is_none() {
        let built = Command::new(&cargo)
            .args(["build", "--locked", "-p", "cli"])
            .current_dir(root)
            .status()
            .context("cannot start cargo")?;
        passed = built.success();
    }
    let binary = named.unwrap_or_else(|| root.join("target/debug/greenroom"));
    for package in PACKAGES {
        if !passed {
            break;
        }
        println!("== {package}");
        let tested = Command::new(&cargo)
            .args(["test", "--locked", "--quiet"])
            .current_dir(root.join(package))
            // One directory for all three: what they share is built once.
            .env("CARGO_TARGET_DIR", root.join("target/generations"))
            .env("GREENROOM_BIN", &binary)
            .status()
            .context("cannot start cargo")?;
        passed = tested.success();
    }
    Ok(passed)
}
