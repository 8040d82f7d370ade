//! Installs a package with npm, and a Node that is new enough for it, or with pip.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::catalogue::{NODE_MIN, RealPackage, Registry};

/// Installs a package into a directory of its own; one of that version that is there stays.
pub(super) fn install(place: &Path, package: &RealPackage) -> Result<()> {
    let needs_new_node = match package.registry {
        Registry::PyPi => return install_with_pip(place, package),
        Registry::Npm { needs_new_node } => needs_new_node,
    };
    let path = if needs_new_node { find_new_node(place)? } else { None };
    let mut wanted = vec![format!("{}@{}", package.package, package.version)];
    let besides = package.besides.iter();
    wanted.extend(besides.map(|(name, version)| format!("{name}@{version}")));
    install_packages(place, package.name, &wanted, path.as_deref())
}

/// Runs what completes an installation.
fn complete(directory: &Path, package: &RealPackage) -> Result<()> {
    let Some((program, arguments)) = package.completed_by.split_first() else {
        return Ok(()); // it is complete
    };
    let status = Command::new(directory.join(program))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("{program} did not start"))?;
    ensure!(status.success(), "{} could not be completed", package.name);
    Ok(())
}

/// In a virtual environment: its programs find their libraries, and nothing else of the machine.
fn install_with_pip(place: &Path, package: &RealPackage) -> Result<()> {
    let directory = place.join(package.name);
    let mark = directory.join("installed");
    let wanted = format!("{}=={}", package.package, package.version);
    let mark_text = format!("{wanted} {}", package.completed_by.join(" "));
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == mark_text) {
        return Ok(());
    }
    std::fs::create_dir_all(&directory)?;
    let made = Command::new("python3")
        .args(["-m", "venv", "--clear", "."])
        .current_dir(&directory)
        .status();
    ensure!(
        made.context("python3 is missing")?.success(),
        "python3 cannot make a virtual environment (`venv` is missing)"
    );
    let installed = Command::new(directory.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", &wanted])
        .status();
    ensure!(installed.context("pip is missing")?.success(), "pip could not install {wanted}");
    complete(&directory, package)?;
    Ok(std::fs::write(mark, mark_text)?)
}

/// Where a Node that is new enough is; none if the one on `PATH` is.
fn find_new_node(place: &Path) -> Result<Option<PathBuf>> {
    let version = Command::new("node").arg("--version").output();
    let is_new = version.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        read_major(&text).is_some_and(|major| major >= NODE_MIN)
    });
    if is_new {
        return Ok(None);
    }
    install_packages(place, "node", &[format!("node@{NODE_MIN}")], None)
        .with_context(|| format!("Node {NODE_MIN} or newer is missing"))?;
    let directory = place.join("node/node_modules/node/bin");
    ensure!(
        directory.join("node").exists(),
        "Node {NODE_MIN} or newer is missing: the package `node` has no program for this machine"
    );
    Ok(Some(directory))
}

fn read_major(version: &str) -> Option<u32> {
    let digits = version.trim().strip_prefix('v')?.split('.').next()?;
    digits.parse().ok()
}

/// `npm install` of packages, in a directory that npm takes for a project.
fn install_packages(
    place: &Path,
    name: &str,
    packages: &[String],
    node: Option<&Path>,
) -> Result<()> {
    let directory = place.join(name);
    let mark = directory.join("installed");
    let wanted = packages.join(" ");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(&directory)?;
    // Without it npm installs into a directory above.
    std::fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]);
    npm.args(packages).current_dir(&directory);
    if let Some(node) = node {
        npm.env("PATH", prepend(node)?);
    }
    let status = npm.status().context("npm is missing; Node comes with it")?;
    ensure!(status.success(), "npm could not install {wanted}");
    Ok(std::fs::write(mark, wanted)?)
}

fn prepend(directory: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path);
    let all = std::iter::once(directory.to_owned()).chain(others);
    std::env::join_paths(all).context("a directory of PATH has a colon in it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_node_is_read() {
        assert_eq!(read_major("v20.20.2\n"), Some(20));
        assert_eq!(read_major("v22.0.0"), Some(22));
        assert_eq!(read_major("node: not found"), None);
    }
}
