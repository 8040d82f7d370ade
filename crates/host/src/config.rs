//! What a host is started with: defaults, then a TOML file, then whatever the caller sets on top.
//!
//! Promises: loading a file replaces the settings and nothing else.
//! Must not know: command lines, what a setting is used for.

use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workspace::UserDirectories;

use crate::config_checks::parse_settings;
use crate::entities::{Entities, NoEntities};
use crate::journal::Failover;
use crate::settings_problem::SettingsProblem;
use crate::shared_parts::SharedParts;

pub use agents::Model;
pub(crate) use agents::native::CompactionSettings;
pub use agents::provider::Api;

pub use crate::config_settings::Settings;

/// The settings file of a data directory.
pub const CONFIG_FILE: &str = "greenroom.toml";

/// Where the host listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 4790;

/// Called when a client changes the host's log level; gets `error`, `warn`, `info` or `debug`.
pub type LogLevelHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything a host needs to know before it starts: what its settings file says, and what no file can say. A setting is a field of
/// [`Settings`], to which this dereferences.
#[derive(Clone)]
pub struct Config {
    pub data: PathBuf,
    /// Serve one client on standard input and output instead of a socket (G-31).
    pub stdio: bool,
    pub token: TokenChoice,
    pub on_log_level: Option<LogLevelHook>,
    /// The program that reads documents, and its arguments: `greenroom read-document`. Without it they are not read.
    pub document_reader: Vec<OsString>,
    /// What the user keeps for agents in all projects: `~/.agents`. Not searched if absent.
    pub user_agents: Option<PathBuf>,
    /// What mentions may name, for programs that embed the host (G-42).
    pub entities: Arc<dyn Entities>,
    /// The settings file that was named; that of the data directory if absent.
    pub file: Option<PathBuf>,
    /// Models that come before those of the file, whatever becomes of that; see [`Config::put_models_first`].
    pub first_models: Vec<Model>,
    /// Models that a key in the environment is enough for; they count while no other is configured (G-70).
    pub environment_models: Vec<Model>,
    /// What spaces with these settings have in common.
    pub shared: SharedParts,
    /// Sessions work nowhere: the mount that their space names is not offered here.
    pub without_workspaces: bool,
    /// What the settings file says, and what the caller sets over it.
    pub settings: Settings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::new(),
            stdio: false,
            token: TokenChoice::InDataDir,
            on_log_level: None,
            document_reader: Vec::new(),
            user_agents: None,
            entities: Arc::new(NoEntities),
            file: None,
            first_models: Vec::new(),
            environment_models: Vec::new(),
            shared: SharedParts::default(),
            without_workspaces: false,
            settings: Settings::default(),
        }
    }
}

impl Deref for Config {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for Config {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

/// The `[cluster]` table: how a node is known to the others on its database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// What people call the node; its own space is called `node-` and this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where other nodes reach it, with a port. Never an address that the public can reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Where it listens for them, if that is another address of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Whether a server that takes the place of the database's may lack commits.
    pub failover: FailoverChoice,
}

/// What is lost when another server takes the place of the database's, or a backup is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailoverChoice {
    /// Commits may be: seqs leap, and clients get snapshots once.
    #[default]
    Lossy,
    /// Nothing: there is a synchronous standby, and no backup is restored to an earlier moment.
    Lossless,
}

impl From<FailoverChoice> for Failover {
    fn from(choice: FailoverChoice) -> Self {
        match choice {
            FailoverChoice::Lossy => Self::Lossy,
            FailoverChoice::Lossless => Self::Lossless,
        }
    }
}

/// Where the token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenChoice {
    /// Made on first start and stored in the data directory, mode 0600.
    InDataDir,
    /// Made anew with each start and stored nowhere: for spaces whose people have accounts.
    Unstored,
    File(PathBuf),
    /// No token: on loopback only.
    None,
}

/// Where sessions are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalChoice {
    Sqlite,
    /// In the database that `postgres` names, each space by its name.
    Postgres,
    /// Nothing survives the process: for measuring and trying out.
    Memory,
}

/// What is wrong with a settings file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{path}{problem}")]
    Invalid { path: PathBuf, problem: SettingsProblem },
}

impl Config {
    /// What the user keeps for agents.
    pub fn user_directories(&self) -> UserDirectories {
        UserDirectories { agents: self.user_agents.clone(), plugins: self.plugins.clone() }
    }

    pub fn default_for(data: PathBuf) -> Self {
        Self { data, ..Self::default() }
    }

    /// Takes all settings from a TOML file; a key it leaves out has its default. What is no setting of the file stays.
    pub fn load_toml(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        self.settings = parse_settings(&text)
            .map_err(|problem| ConfigError::Invalid { path: path.to_owned(), problem })?;
        self.file = Some(path.to_owned());
        Ok(())
    }

    /// Puts models of the command line before those of the file; the first is the default.
    pub fn put_models_first(&mut self, models: Vec<Model>) {
        self.models = merge_models(&models, std::mem::take(&mut self.models));
        if !models.is_empty() {
            self.default_model = None;
        }
        self.first_models = models;
    }

    /// Looks for keys in the environment of this process: with one of them, and no model configured, there is a model all the
    /// same. Returns what is wrong with those that cannot be used.
    pub fn use_environment(&mut self) -> Vec<String> {
        let read = |name: &str| {
            let value = std::env::var(name).ok()?;
            Some(value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let (models, problems) = agents::native::models_of_environment(&read);
        self.environment_models = models;
        if self.models.is_empty() {
            problems.iter().map(ToString::to_string).collect()
        } else {
            // they do not count
            Vec::new()
        }
    }

    /// The models as the native agent takes them: the default first.
    pub fn ordered_models(&self) -> Vec<Model> {
        if self.models.is_empty() {
            return self.environment_models.clone();
        }
        let mut models = self.models.clone();
        let default = self.default_model.as_ref();
        let index = models.iter().position(|model| Some(&model.id) == default);
        if let Some(models) = index.and_then(|index| models.get_mut(..=index)) {
            models.rotate_right(1);
        }
        models
    }

    /// The settings file, whether it is there or not.
    pub fn file_path(&self) -> PathBuf {
        let in_data = || self.data.join(CONFIG_FILE);
        self.file.clone().unwrap_or_else(in_data)
    }

    /// All settings as a TOML file that can be edited and loaded again.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.settings)
            .unwrap_or_else(|error| format!("# cannot be shown: {error}\n"))
    }
}

/// Models, without those of the second list whose ids the first has.
fn merge_models(first: &[Model], mut others: Vec<Model>) -> Vec<Model> {
    others.retain(|other| first.iter().all(|model| model.id != other.id));
    others.splice(0..0, first.iter().cloned());
    others
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
