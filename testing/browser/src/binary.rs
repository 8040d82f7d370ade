//! Where the tests find the `greenroom` executable: beside their own, built if it is missing or older than its source. Cargo builds
//! the executables of a package only for the tests of that package.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};

/// The executable. Builds it with cargo where it is missing or old.
pub(crate) fn greenroom() -> Result<PathBuf> {
    let test = std::env::current_exe().context("where this test is")?;
    // target/PROFILE/deps/test
    let profile =
        test.parent().and_then(Path::parent).context("a test lies in target/PROFILE/deps")?;
    let binary = profile.join("greenroom");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    if let Ok(built) = changed(&binary)
        && newest_source(&crates)? <= built
    {
        return Ok(binary);
    }
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--offline", "--package", "cli", "--bin", "greenroom"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().context("cargo did not start")?;
    ensure!(status.success(), "cargo could not build greenroom");
    ensure!(binary.exists(), "{} is not there", binary.display());
    Ok(binary)
}

fn changed(path: &Path) -> std::io::Result<SystemTime> {
    std::fs::metadata(path)?.modified()
}

/// When a file that the executable is made of was last changed: tests are not.
fn newest_source(crates: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for package in std::fs::read_dir(crates)? {
        let package = package?.path();
        let mut waiting = vec![
            package.join("src"),
            package.join("app"),
            package.join("build.rs"),
            package.join("build"),
        ];
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                let entries = std::fs::read_dir(&path)?;
                waiting.extend(entries.flatten().map(|entry| entry.path()));
            } else if let Ok(changed) = changed(&path) {
                newest = newest.max(changed);
            }
        }
    }
    Ok(newest)
}
