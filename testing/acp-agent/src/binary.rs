//! Where tests of other packages find the agent's executable: beside their own, built if it is missing or older than its source.
//! Cargo builds the executables of a package only for the tests of that package.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};

/// The agent's executable. Builds it with cargo where it is missing or old.
pub fn binary() -> Result<PathBuf> {
    let test = std::env::current_exe().context("where this test is")?;
    // target/PROFILE/deps/test
    let profile =
        test.parent().and_then(Path::parent).context("a test lies in target/PROFILE/deps")?;
    let binary = profile.join(format!("acp-agent{}", std::env::consts::EXE_SUFFIX));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // Tests of one process that find it missing at the same moment build it once.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    if is_current(&binary, &sources) {
        return Ok(binary);
    }
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--offline", "--package", "acp-agent"]);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().context("cargo did not start")?;
    ensure!(status.success(), "cargo could not build acp-agent");
    ensure!(binary.exists(), "{} is not there", binary.display());
    Ok(binary)
}

fn is_current(binary: &Path, sources: &Path) -> bool {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified());
    let (Ok(built), Ok(files)) = (changed(binary), std::fs::read_dir(sources)) else {
        return false;
    };
    let newest = files.flatten().filter_map(|file| changed(&file.path()).ok()).max();
    newest.unwrap_or(SystemTime::UNIX_EPOCH) <= built
}
