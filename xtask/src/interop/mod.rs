//! `cargo run -p xtask -- interop [AGENT..]`: installs agents that others make from the package registry into `target/interop`, lets
//! the conformance tests work with them, and prints what worked as a table for docs/agents.md.
//!
//! Promises: versions are pinned; nothing is installed outside of `target/interop`; what is missing fails by its name.

mod install;
mod table;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// One agent: the package that is installed, and whether an old Node gets an old agent.
#[derive(Debug, Clone, Copy)]
struct RealAgent {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    needs_new_node: bool,
}

/// The oldest Node that gets the agents of these versions: npm installs older agents for an older one, without a word.
const NODE_MIN: u32 = 22;

const AGENTS: &[RealAgent] = &[
    RealAgent {
        name: "sdk-example",
        package: "@agentclientprotocol/sdk",
        // The last one that has its examples in it.
        version: "1.0.0",
        needs_new_node: false,
    },
    RealAgent {
        name: "claude",
        package: "@agentclientprotocol/claude-agent-acp",
        version: "0.99.1",
        needs_new_node: true,
    },
    RealAgent {
        name: "gemini",
        package: "@google/gemini-cli",
        version: "0.61.0",
        needs_new_node: true,
    },
    RealAgent {
        name: "opencode",
        package: "opencode-ai",
        version: "1.18.33",
        needs_new_node: true,
    },
    RealAgent {
        name: "codex",
        package: "@agentclientprotocol/codex-acp",
        version: "2.6.0",
        needs_new_node: true,
    },
    RealAgent {
        name: "qwen",
        package: "@qwen-code/qwen-code",
        version: "0.24.4",
        needs_new_node: true,
    },
];

/// Runs the agents that were named, all of them if none was. Whether all that was tried worked.
pub fn run_interop(root: &Path, names: &[String]) -> Result<bool> {
    let agents = choose(names)?;
    let place = root.join("target/interop");
    std::fs::create_dir_all(&place).context("cannot make target/interop")?;
    let results = place.join("results.jsonl");
    if results.exists() {
        std::fs::remove_file(&results).context("cannot remove the last results")?;
    }
    let mut failed = Vec::new();
    for agent in &agents {
        eprintln!("interop: {} {}", agent.name, agent.version);
        if let Err(error) = install::install(&place, agent) {
            failed.push(format!("{}: {error:#}", agent.name));
            continue;
        }
        if !run_test(root, &place, agent)? {
            failed.push(format!("{}: its test failed", agent.name));
        }
    }
    print!("{}", table::make_table(&results, &agents)?);
    for line in &failed {
        eprintln!("interop failed: {line}");
    }
    Ok(failed.is_empty())
}

fn choose(names: &[String]) -> Result<Vec<RealAgent>> {
    for name in names {
        if !AGENTS.iter().any(|agent| agent.name == name) {
            let known: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
            bail!("no agent is called {name}; there are {}", known.join(", "));
        }
    }
    let is_chosen =
        |agent: &&RealAgent| names.is_empty() || names.iter().any(|it| it == agent.name);
    Ok(AGENTS.iter().filter(is_chosen).copied().collect())
}

fn run_test(root: &Path, place: &Path, agent: &RealAgent) -> Result<bool> {
    let test = format!("real_{}", agent.name.replace('-', "_"));
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "test",
        "--quiet",
        "--locked",
        "-p",
        "conformance",
        "--test",
        "acp_real",
    ]);
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
        assert_eq!(choose(&[]).unwrap().len(), AGENTS.len());
        let one = choose(&["qwen".to_owned()]).unwrap();
        assert_eq!(one[0].package, "@qwen-code/qwen-code");
        let error = choose(&["clod".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("clod") && error.contains("claude"),
            "{error}"
        );
    }
}
