//! What a host is started with: defaults, then a TOML file, then whatever the caller sets on top.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::entities::{Entities, NoEntities};

pub use agents::Model;
pub use kernel::Limits;

/// Where the host listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 4790;

/// Called when a client changes the host's log level; gets `error`, `warn`, `info` or `debug`.
pub type LogLevelHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything a host needs to know before it starts.
#[derive(Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// Serve one client on standard input and output instead of a socket (G-31).
    pub stdio: bool,
    pub data: PathBuf,
    /// Roots that working directories must lie in; the first is the default. Empty: the current directory and home.
    pub workspaces: Vec<PathBuf>,
    /// A script that replaces the built-in one.
    pub script: Option<PathBuf>,
    /// Whether the scripted agent is offered.
    pub scripted: bool,
    /// Models of the native agent, the first being the default. None: it is not offered.
    pub models: Vec<Model>,
    pub token: TokenChoice,
    /// Names beside IP literals and `localhost` that `Host` may carry (G-25).
    pub allowed_hosts: Vec<String>,
    /// Origins beside the host's own that browsers may come from (G-25).
    pub allowed_origins: Vec<String>,
    /// Sections of the system prompt that no client may read or rewrite.
    pub restricted_sections: Vec<String>,
    pub journal: JournalChoice,
    pub limits: Limits,
    pub on_log_level: Option<LogLevelHook>,
    /// What targets and models take, over what is built in: a JSON file.
    pub capabilities: Option<PathBuf>,
    /// What mentions may name, for those who embed the host (G-42).
    pub entities: Arc<dyn Entities>,
}

/// Where the token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenChoice {
    /// Made on first start and kept in the data directory, mode 0600.
    InDataDir,
    File(PathBuf),
    /// No token: on loopback only.
    None,
}

/// Where what was said is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalChoice {
    Sqlite,
    /// Nothing survives the process: for measuring and trying out.
    Memory,
}

/// What is wrong with a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {message}")]
    Invalid { path: PathBuf, message: String },
}

/// The TOML file. Every key is optional.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspaces: Option<Vec<PathBuf>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scripted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_hosts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_origins: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restricted_sections: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<JournalChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<PathBuf>,
    limits: Limits,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<Model>,
}

impl Config {
    pub fn default_for(data: PathBuf) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            stdio: false,
            data,
            workspaces: Vec::new(),
            script: None,
            scripted: true,
            models: Vec::new(),
            token: TokenChoice::InDataDir,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            restricted_sections: vec!["safety".to_owned()], // G-35
            journal: JournalChoice::Sqlite,
            limits: Limits::default(),
            on_log_level: None,
            capabilities: None,
            entities: Arc::new(NoEntities),
        }
    }

    /// Takes what a TOML file says; what it does not say stays.
    pub fn load_toml(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let file: File = toml::from_str(&text).map_err(|error| ConfigError::Invalid {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        file.limits
            .check()
            .map_err(|message| ConfigError::Invalid {
                path: path.to_owned(),
                message,
            })?;
        self.listen = file.listen.unwrap_or(self.listen);
        self.workspaces = file
            .workspaces
            .unwrap_or_else(|| std::mem::take(&mut self.workspaces));
        self.script = file.script.or_else(|| self.script.take());
        self.scripted = file.scripted.unwrap_or(self.scripted);
        self.allowed_hosts = file
            .allowed_hosts
            .unwrap_or_else(|| std::mem::take(&mut self.allowed_hosts));
        self.allowed_origins = file
            .allowed_origins
            .unwrap_or_else(|| std::mem::take(&mut self.allowed_origins));
        self.restricted_sections = file
            .restricted_sections
            .unwrap_or_else(|| std::mem::take(&mut self.restricted_sections));
        self.journal = file.journal.unwrap_or(self.journal);
        self.capabilities = file.capabilities.or_else(|| self.capabilities.take());
        self.limits = file.limits;
        Model::check_all(&file.models).map_err(|error| ConfigError::Invalid {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        self.models = file.models;
        Ok(())
    }

    /// All settings as a TOML file that can be edited and loaded again.
    pub fn to_toml(&self) -> String {
        let file = File {
            listen: Some(self.listen),
            workspaces: Some(self.workspaces.clone()),
            script: self.script.clone(),
            scripted: Some(self.scripted),
            allowed_hosts: Some(self.allowed_hosts.clone()),
            allowed_origins: Some(self.allowed_origins.clone()),
            restricted_sections: Some(self.restricted_sections.clone()),
            journal: Some(self.journal),
            capabilities: self.capabilities.clone(),
            limits: self.limits.clone(),
            models: self.models.clone(),
        };
        toml::to_string(&file).unwrap_or_else(|error| format!("# cannot be shown: {error}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_loaded_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        let mut config = Config::default_for(directory.path().to_owned());
        config.limits.clients_max = 7;
        std::fs::write(&path, config.to_toml()).unwrap();
        let mut again = Config::default_for(directory.path().to_owned());
        again.load_toml(&path).unwrap();
        assert_eq!(again.limits, config.limits);
        assert_eq!(again.to_toml(), config.to_toml());
    }

    #[test]
    fn models_are_tables_and_a_bad_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        let mut config = Config::default_for(PathBuf::new());
        let local = "[[models]]\nid = \"qwen3\"\nbase_url = \"http://localhost:11434/v1\"\n";
        std::fs::write(&path, local).unwrap();
        config.load_toml(&path).unwrap();
        assert_eq!(config.models[0].id, "qwen3");
        std::fs::write(&path, config.to_toml()).unwrap();
        let mut again = Config::default_for(PathBuf::new());
        again.load_toml(&path).unwrap();
        assert_eq!(again.models, config.models);
        std::fs::write(&path, format!("{local}{local}")).unwrap();
        let error = config.load_toml(&path).unwrap_err().to_string();
        assert!(
            error.contains("qwen3") && error.contains("twice"),
            "{error}"
        );
    }

    #[test]
    fn a_limit_that_cannot_work_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        std::fs::write(&path, "[limits]\ninputs_max = 0\n").unwrap();
        let error = Config::default_for(PathBuf::new())
            .load_toml(&path)
            .unwrap_err()
            .to_string();
        assert!(error.contains("inputs_max"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        std::fs::write(&path, "[limits]\nclients_maximum = 3\n").unwrap();
        let error = Config::default_for(PathBuf::new())
            .load_toml(&path)
            .unwrap_err()
            .to_string();
        assert!(error.contains("clients_maximum"), "{error}");
    }
}
