//! Which crate may depend on which, and which outside crates belong to one crate only.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repository::Repository;

/// The crates of the workspace and the crates of the workspace each may depend on. Testing and bench may know all.
const EDGES: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("compositor", &["wire"]),
    ("markup", &[]),
    ("agent-api", &["compositor", "wire"]),
    ("kernel", &["agent-api", "compositor", "wire"]),
    ("web", &[]),
    ("workspace", &["compositor", "wire"]),
    ("terminals", &["workspace"]),
    ("agents", &["agent-api", "compositor", "terminals", "wire", "workspace"]),
    (
        "host",
        &[
            "agent-api",
            "agents",
            "compositor",
            "kernel",
            "markup",
            "terminals",
            "web",
            "wire",
            "workspace",
        ],
    ),
    ("client", &["wire"]),
    ("cli", &["client", "compositor", "host", "markup", "wire"]),
    ("xtask", &[]),
];

/// Outside crates that only the named crates may use.
const USERS: &[(&str, &[&str])] = &[
    ("ahp-types", &["wire"]),
    ("rusqlite", &["host"]),
    ("brotli", &["web"]),
    ("httparse", &["client"]),
    ("hyper", &["host"]),
    ("hyper-util", &["host"]),
    ("grep-regex", &["workspace"]),
    ("grep-searcher", &["workspace"]),
    ("ignore", &["workspace"]),
    ("image", &["workspace"]),
    ("imara-diff", &["markup", "workspace"]),
    ("nucleo-matcher", &["bench", "workspace"]),
    ("pulldown-cmark", &["markup"]),
    ("tree-sitter", &["markup"]),
    ("tokio-rustls", &["host"]),
    ("tokio-tungstenite", &["client"]),
    ("reqwest", &["agents", "host"]),
    ("rmcp", &["agents"]),
    ("rustls", &["agents", "host"]),
    ("rustls-native-certs", &["agents"]),
    ("clap", &["cli", "bench"]),
    ("anyhow", &["cli", "xtask", "bench"]),
    ("ahp", &[]),
    ("ahp-ws", &[]),
];

/// Crates for tests and measurements: they may depend on anything.
const FREE: &[&str] = &[
    "acp-agent",
    "browser",
    "cluster",
    "mcp-server",
    "postgres-server",
    "testkit",
    "scenarios",
    "conformance",
    "sim",
    "bench",
];

/// Every dependency that should not be there.
pub(crate) fn check_edges(repository: &Repository) -> Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(repository.root())
        .output()
        .context("cargo metadata did not run")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    find_wrong_edges(&serde_json::from_slice(&output.stdout)?)
}

fn find_wrong_edges(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
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
            let users = USERS.iter().find(|(outside, _)| *outside == to);
            if let Some((_, users)) = users
                && !is_dev
                && !users.contains(&name)
            {
                wrong.push(format!("`{to}` must not be used by `{name}`"));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(name: &str, to: &str, kind: Option<&str>) -> Vec<String> {
        let metadata = json!({"packages": [
            {"name": name, "dependencies": [{"name": to, "kind": kind}]},
            {"name": "host", "dependencies": []},
        ]});
        find_wrong_edges(&metadata).unwrap()
    }

    #[test]
    fn a_wrong_dependency_is_found() {
        assert_eq!(found("kernel", "host", None), ["`kernel` must not know `host`"]);
        assert_eq!(found("kernel", "rusqlite", None), ["`rusqlite` must not be used by `kernel`"]);
        assert_eq!(
            found("stranger", "serde", None),
            ["crate `stranger` is not in the table of edges"]
        );
    }

    #[test]
    fn tests_and_allowed_dependencies_are_fine() {
        assert_eq!(found("kernel", "host", Some("dev")), Vec::<String>::new());
        assert_eq!(found("kernel", "wire", None), Vec::<String>::new());
    }
}
