//! External agents: which of them a host offers by its settings, and the directories that they may be started in.
//!
//! Promises: nothing is run to find an agent. A wrong entry is an error; a program that is not there is none (AG-1).
//! Must not know: what agents do.

use std::ffi::OsStr;
use std::sync::Arc;

use agents::SettingsEntryError;
pub use agents::acp::AgentReport;
pub use agents::acp::config::{AcpAgentConfig, TrustPolicy, find_program};
pub use agents::acp::entry::AgentEntry;
pub use agents::acp::presets::Preset;
use agents::acp::{AcpAgent, EnvSource};
pub use agents::trust::{
    CommandFiles, DirectoryTrust, TRUST_FILE, TrustEntry, TrustError, TrustStore, printable_path,
};

use crate::config::Config;

/// An agent, and why it is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedAgent {
    pub config: AcpAgentConfig,
    /// By a `[[agents]]` table; if not, because its command is on `PATH`.
    pub is_configured: bool,
}

impl Config {
    /// The external agents that a host offers, in the order in which it lists them: those of the settings as they are
    /// written, then presets that are installed and that no entry uses (AG-2).
    pub fn offered_agents(&self) -> Result<Vec<OfferedAgent>, SettingsEntryError> {
        self.offered_agents_on(std::env::var_os("PATH").as_deref())
    }

    fn offered_agents_on(
        &self,
        path: Option<&OsStr>,
    ) -> Result<Vec<OfferedAgent>, SettingsEntryError> {
        let configured = AgentEntry::resolve_all(&self.agents)?;
        let found = if self.agents_auto { self.unused_presets(path) } else { Vec::new() };
        let configured = configured.into_iter().map(|config| (config, true));
        let found = found.into_iter().map(|config| (config, false));
        let offered = configured.chain(found).map(|(mut config, is_configured)| {
            config.line_bytes_max = self.limits.server.agent_line_bytes;
            self.add_tool_variables(&mut config);
            OfferedAgent { config, is_configured }
        });
        Ok(offered.collect())
    }

    fn unused_presets(&self, path: Option<&OsStr>) -> Vec<AcpAgentConfig> {
        let is_unused = |preset: &&Preset| {
            let mut entries = self.agents.iter();
            !entries.any(|entry| entry.id == preset.id || entry.preset() == Some(*preset))
        };
        Preset::installed(path).filter(is_unused).map(Preset::to_config).collect()
    }

    /// What every command of a tool gets, agents get too (G-51).
    fn add_tool_variables(&self, config: &mut AcpAgentConfig) {
        for name in &self.tool_env {
            let mut known = config.env_from.iter();
            if !known.any(|source| source.name == *name) && !config.env.contains_key(name) {
                config.env_from.push(EnvSource { name: name.clone(), file: None });
            }
        }
    }

    /// What an agent last said of itself, as it is stored. Nothing is run.
    pub fn read_report(&self, agent: &AcpAgentConfig) -> AgentReport {
        let trust = Arc::new(self.trust_store());
        AcpAgent::new(agent.clone(), &self.data, trust).report()
    }

    /// The directories that are trusted by the settings and by what users answered.
    pub fn trust_store(&self) -> TrustStore {
        TrustStore::new(&self.data, self.trusted.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    fn load(text: &str) -> Config {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        std::fs::write(&path, text).unwrap();
        let mut config = Config::default_for(PathBuf::new());
        config.load_toml(&path).unwrap();
        config
    }

    fn directory_with(commands: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for command in commands {
            let path = directory.path().join(command);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        directory
    }

    fn ids(config: &Config, path: &tempfile::TempDir) -> Vec<(String, bool)> {
        let offered = config.offered_agents_on(Some(path.path().as_os_str())).unwrap().into_iter();
        offered.map(|it| (it.config.id, it.is_configured)).collect()
    }

    #[test]
    fn ag_2_configured_agents_come_as_written_then_those_that_are_installed() {
        let path = directory_with(&["qwen", "gemini", "opencode"]);
        let of = |pairs: &[(&str, bool)]| {
            let pairs = pairs.iter().map(|(id, is)| ((*id).to_owned(), *is));
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(
            ids(&Config::default(), &path),
            of(&[("gemini", false), ("opencode", false), ("qwen", false)])
        );
        let config = load(
            "[[agents]]\nid = \"zeta\"\ncommand = \"zeta\"\n[[agents]]\nid = \"mine\"\npreset = \"qwen\"\n[[agents]]\nid = \"gemini\"\ncommand = \"/opt/gemini\"\n",
        );
        // Who uses a preset under another name does not get it twice.
        assert_eq!(
            ids(&config, &path),
            of(&[("zeta", true), ("mine", true), ("gemini", true), ("opencode", false)])
        );
        assert_eq!(ids(&load("agents_auto = false\n"), &path), of(&[]));
    }

    #[test]
    fn agents_get_the_variables_of_tools_and_the_bound_of_lines() {
        let config = load(
            "tool_env = [\"SSH_AUTH_SOCK\", \"A\", \"B\"]\n[limits]\nagent_line_bytes = 70000\n[[agents]]\nid = \"x\"\ncommand = \"x\"\nenv_from = [\"B\"]\nenv = { A = \"1\" }\n",
        );
        let offered = config.offered_agents_on(None).unwrap();
        let agent = &offered[0].config;
        let names: Vec<&str> = agent.env_from.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["B", "SSH_AUTH_SOCK"]);
        assert_eq!(agent.line_bytes_max, 70_000);
    }

    #[test]
    fn what_is_printed_can_be_loaded_again() {
        let text = "trusted = [\"/srv\"]\nagents_auto = false\n[[agents]]\nid = \"claude\"\nenv_from = [{ K = { file = \"/k\" } }]\nauth = { method = \"m\" }\nenv = { A = \"b\" }\n";
        let config = load(text);
        let again = load(&config.to_toml());
        assert_eq!(again.agents, config.agents);
        assert_eq!(again.trusted, config.trusted);
        assert!(!again.agents_auto);
    }
}
