//! Agents that are known by name, as data: what a user would otherwise have to write.
//!
//! Promises: a preset that is found was looked up on `PATH`, not run.
//! Must not know: which agents are configured.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::LazyLock;

use serde::Deserialize;

use super::config::{AcpAgentConfig, find_program};

const DATA: &str = include_str!("presets.toml");

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| match toml::from_str(DATA) {
    Ok(PresetFile { presets }) => presets,
    Err(error) => unreachable!("the data is read by a test: {error}"),
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetFile {
    presets: Vec<Preset>,
}

/// An agent that is known by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    pub id: String,
    pub name: String,
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub trusted_env: BTreeMap<String, String>,
    pub install: String,
    #[serde(default)]
    pub reads_mcp_files: Vec<String>,
    #[serde(default)]
    pub names_model: bool,
}

impl Preset {
    pub fn all() -> &'static [Self] {
        &PRESETS
    }

    pub fn find(id: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.id == id)
    }

    /// Their ids, as a user reads them.
    pub fn names() -> String {
        let names = PRESETS.iter().map(|preset| preset.id.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Those whose command is there.
    pub fn installed(path: Option<&OsStr>) -> impl Iterator<Item = &'static Self> {
        let is_there = move |preset: &&Self| find_program(&preset.command, path).is_some();
        PRESETS.iter().filter(is_there)
    }

    /// The agent as it is without any word of the user.
    pub fn to_config(&self) -> AcpAgentConfig {
        AcpAgentConfig {
            name: self.name.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            trusted_env: self.trusted_env.clone(),
            install: self.install.clone(),
            reads_mcp_files: self.reads_mcp_files.clone(),
            names_model: self.names_model,
            ..AcpAgentConfig::new(&self.id, &self.command)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn every_preset_is_complete_and_none_downloads_anything() {
        assert_eq!(Preset::names(), "claude, codex, gemini, opencode, qwen, goose, copilot");
        for preset in Preset::all() {
            let config = preset.to_config();
            assert!(super::super::entry::check_id(&config.id).is_ok());
            assert!(!config.command.contains("npx") && !config.command.contains('/'));
            assert!(config.install.starts_with("Install it with "), "{preset:?}");
        }
        let gemini = Preset::find("gemini").unwrap().to_config();
        assert_eq!(gemini.args, ["--acp"]);
        assert!(!gemini.env.contains_key("GEMINI_CLI_TRUST_WORKSPACE"));
        assert_eq!(gemini.trusted_env["GEMINI_CLI_TRUST_WORKSPACE"], "true");
        let naming: Vec<&str> = Preset::all()
            .iter()
            .filter(|preset| preset.names_model)
            .map(|preset| preset.id.as_str())
            .collect();
        assert_eq!(naming, ["opencode"], "the others say who must sign in");
    }

    #[test]
    fn presets_are_found_by_their_command() {
        let place = tempfile::tempdir().unwrap();
        let find = || {
            let found = Preset::installed(Some(place.path().as_os_str()));
            found.map(|preset| preset.id.as_str()).collect::<Vec<_>>()
        };
        assert!(find().is_empty());
        for command in ["qwen", "claude-agent-acp", "codex"] {
            let path = place.path().join(command);
            // It would leave a mark if it were run.
            let mark = place.path().join("ran");
            let script = format!("#!/bin/sh\ntouch {}\n", mark.display());
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        assert_eq!(find(), ["claude", "qwen"]);
        assert!(!place.path().join("ran").exists());
    }
}
