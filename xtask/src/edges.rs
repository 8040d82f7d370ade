//! Who may know whom: the walls between crates that the house stands on.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The crates of the workspace and the crates of the workspace each may depend on. Testing and bench may know all.
const EDGES: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("compositor", &["wire"]),
    ("kernel", &["compositor", "wire"]),
    ("workspace", &["compositor", "wire"]),
    ("agents", &["compositor", "wire", "workspace"]),
    (
        "host",
        &["agents", "compositor", "kernel", "wire", "workspace"],
    ),
    ("client", &["wire"]),
    ("cli", &["client", "compositor", "host", "wire"]),
    ("xtask", &[]),
];

/// Outside crates that live in one room only.
const ROOMS: &[(&str, &[&str])] = &[
    ("ahp-types", &["wire"]),
    ("rusqlite", &["host"]),
    ("httparse", &["host"]),
    ("grep-regex", &["workspace"]),
    ("grep-searcher", &["workspace"]),
    ("ignore", &["workspace"]),
    ("image", &["workspace"]),
    ("imara-diff", &["workspace"]),
    ("nucleo-matcher", &["workspace", "bench"]),
    ("tokio-tungstenite", &["client"]),
    ("reqwest", &["agents"]),
    ("rustls", &["agents"]),
    ("rustls-native-certs", &["agents"]),
    ("clap", &["cli", "bench"]),
    ("anyhow", &["cli", "xtask", "bench"]),
    ("ahp", &[]),
    ("ahp-ws", &[]),
];

const FREE: &[&str] = &["testkit", "scenarios", "conformance", "sim", "bench"];

/// Every edge that should not be there, in words.
pub fn wrong_edges(root: &Path) -> Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root)
        .output()
        .context("cargo metadata did not run")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let ours: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or("");
        if FREE.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = EDGES.iter().find(|(crate_name, _)| *crate_name == name) else {
            wrong.push(format!("crate `{name}` is not in the table of edges"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or("");
            let is_dev = dependency["kind"] == "dev";
            if ours.contains(&to) && !is_dev && !allowed.contains(&to) {
                wrong.push(format!("`{name}` must not know `{to}`"));
            }
            let room = ROOMS.iter().find(|(outside, _)| *outside == to);
            if let Some((_, rooms)) = room
                && !is_dev
                && !rooms.contains(&name)
            {
                wrong.push(format!("`{to}` does not belong into `{name}`"));
            }
        }
    }
    Ok(wrong)
}
