//! What a host is started with: defaults, then a TOML file, then whatever the caller sets on top.
//!
//! Promises: a setting is one field of one struct: its key, its default and `--print-config` come from there.
//! Must not know: command lines, what a setting is used for.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents::acp::AgentEntry;
use agents::mcp::McpEntry;
use agents::tool::ToolSettings;
use serde::{Deserialize, Serialize};
use workspace::UserDirectories;

use crate::blobs::BlobSettings;
use crate::budget::BudgetSettings;
use crate::config_checks::{
    check_absolute, check_default, check_fetched_hosts, check_postgres, check_timeouts, check_tls,
    check_variables, check_worktree_dir,
};
use crate::entities::{Entities, NoEntities};
use crate::journal::Failover;
use crate::limits::LimitsTable;
use crate::mounts::MountEntry;
use crate::resource_grants::GrantEntry;
use crate::settings_problem::SettingsProblem;
use crate::shared_parts::SharedParts;
use crate::space_entry::SpaceEntry;
use crate::telemetry::check_endpoint;

pub use agents::Model;
pub(crate) use agents::native::CompactionSettings;
pub use agents::provider::Api;

/// The settings file of a data directory.
pub const CONFIG_FILE: &str = "greenroom.toml";

/// Where the host listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 4790;

/// Called when a client changes the host's log level; gets `error`, `warn`, `info` or `debug`.
pub type LogLevelHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything a host needs to know before it starts. The settings file has the keys that are not skipped.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    #[serde(skip)]
    pub data: PathBuf,
    /// Serve one client on standard input and output instead of a socket (G-31).
    #[serde(skip)]
    pub stdio: bool,
    #[serde(skip)]
    pub token: TokenChoice,
    #[serde(skip)]
    pub on_log_level: Option<LogLevelHook>,
    /// The program that reads documents, and its arguments: `greenroom read-document`. Without it they are not read.
    #[serde(skip)]
    pub document_reader: Vec<OsString>,
    /// What the user keeps for agents in all projects: `~/.agents`. Not searched if absent.
    #[serde(skip)]
    pub user_agents: Option<PathBuf>,
    /// What mentions may name, for programs that embed the host (G-42).
    #[serde(skip)]
    pub entities: Arc<dyn Entities>,
    /// The settings file that was named; that of the data directory if absent.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Models that come before those of the file, whatever becomes of that; see [`Config::put_models_first`].
    #[serde(skip)]
    pub first_models: Vec<Model>,
    /// Models that a key in the environment is enough for; they count while no other is configured (G-70).
    #[serde(skip)]
    pub environment_models: Vec<Model>,
    /// What spaces with these settings have in common.
    #[serde(skip)]
    pub shared: SharedParts,
    /// Sessions work nowhere: the mount that their space names is not offered here.
    #[serde(skip)]
    pub without_workspaces: bool,
    pub listen: SocketAddr,
    /// A certificate (PEM, with those that vouch for it behind it) and its key: other machines are answered over TLS alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Roots that working directories must lie in; the first is the default. Empty: the current directory and home.
    pub workspaces: Vec<PathBuf>,
    /// A script that replaces the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// Whether the scripted agent is offered.
    pub scripted: bool,
    /// Names beside IP literals and `localhost` that `Host` may carry (G-25).
    pub allowed_hosts: Vec<String>,
    /// Origins beside the host's own that browsers may come from (G-25).
    pub allowed_origins: Vec<String>,
    /// Sections of the system prompt that no client may read or rewrite.
    pub restricted_sections: Vec<String>,
    pub journal: JournalChoice,
    /// The database of `journal = "postgres"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<String>,
    /// This node among others on the same database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSettings>,
    /// Where large bodies of spaces in the database lie; in the database if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blobs: Option<BlobSettings>,
    /// What targets and models accept, over what is built in: a JSON file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<PathBuf>,
    pub limits: LimitsTable,
    /// A collector that logs, traces and metrics are exported to, over OTLP/HTTP as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// Where the worktrees of sessions lie, if not in their repositories (G-54). Sessions may work there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_dir: Option<PathBuf>,
    /// What may be spent on models (G-69).
    #[serde(skip_serializing_if = "BudgetSettings::is_empty")]
    pub budget: BudgetSettings,
    /// Variables of the host's environment that commands of tools get beside the usual ones (G-51).
    pub tool_env: Vec<String>,
    /// Whether conversations are summarised when they come near their model's context window, and at which part of it.
    pub auto_compact: bool,
    pub auto_compact_at: f64,
    /// The id of the model that names sessions; the first line of the first message does if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title_model: Option<String>,
    /// How long a command of an agent may take, in seconds, if its call does not say.
    pub bash_timeout_s: u64,
    /// How long it may take at most.
    pub bash_timeout_max_s: u64,
    /// Hosts with their ports that agents may fetch pages from though they are in a private network.
    pub web_fetch_allow: Vec<String>,
    /// Whether agents that are installed on this machine are offered though no table names them (AG-2).
    pub agents_auto: bool,
    /// Directories that external agents may be started in without a question (TR-1).
    pub trusted: Vec<PathBuf>,
    /// Directories of plugins, beside those in `~/.agents/plugins` (CU-4).
    #[serde(deserialize_with = "crate::plugin_paths::deserialize")]
    pub plugins: Vec<PathBuf>,
    /// The id of the default model; the first one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// External agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentEntry>,
    /// What clients may ask for outside the roots (G-55).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_grants: Vec<GrantEntry>,
    /// MCP servers of the native agent, in every directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpEntry>,
    /// Models of the native agent. None: it is not offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// Further spaces that are served beside that of the data directory, each with a token of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spaces: Vec<SpaceEntry>,
    /// Directories that this node offers to spaces of the database, under labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountEntry>,
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
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            tls_cert: None,
            tls_key: None,
            workspaces: Vec::new(),
            script: None,
            scripted: true,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            restricted_sections: vec!["safety".to_owned()], // G-35
            journal: JournalChoice::Sqlite,
            postgres: None,
            cluster: None,
            blobs: None,
            capabilities: None,
            limits: LimitsTable::default(),
            otlp_endpoint: None,
            worktree_dir: None,
            budget: BudgetSettings::default(),
            tool_env: Vec::new(),
            auto_compact: CompactionSettings::default().auto,
            auto_compact_at: CompactionSettings::default().at,
            title_model: None,
            bash_timeout_s: 120,
            bash_timeout_max_s: 600,
            web_fetch_allow: Vec::new(),
            agents_auto: true,
            trusted: Vec::new(),
            plugins: Vec::new(),
            default_model: None,
            agents: Vec::new(),
            resource_grants: Vec::new(),
            mcp: Vec::new(),
            models: Vec::new(),
            spaces: Vec::new(),
            mounts: Vec::new(),
        }
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
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}{problem}")]
    Invalid {
        path: PathBuf,
        problem: SettingsProblem,
    },
}

impl Config {
    /// What the user keeps for agents.
    pub fn user_directories(&self) -> UserDirectories {
        UserDirectories {
            agents: self.user_agents.clone(),
            plugins: self.plugins.clone(),
        }
    }

    pub fn default_for(data: PathBuf) -> Self {
        Self {
            data,
            ..Self::default()
        }
    }

    /// Takes all settings from a TOML file; a key it leaves out has its default. What is no setting of the file stays.
    pub fn load_toml(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let file = Self::parse(&text).map_err(|problem| ConfigError::Invalid {
            path: path.to_owned(),
            problem,
        })?;
        let (data, token) = (self.data.clone(), self.token.clone());
        *self = Self {
            data,
            token,
            stdio: self.stdio,
            on_log_level: self.on_log_level.clone(),
            document_reader: self.document_reader.clone(),
            entities: Arc::clone(&self.entities),
            file: Some(path.to_owned()),
            first_models: self.first_models.clone(),
            environment_models: self.environment_models.clone(),
            ..file
        };
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
        match self.models.is_empty() {
            true => problems.iter().map(ToString::to_string).collect(),
            false => Vec::new(), // they do not count
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

    fn parse(text: &str) -> Result<Self, SettingsProblem> {
        let problem = |message: String| SettingsProblem::of_value(text, message);
        let file: Self =
            toml::from_str(text).map_err(|error| SettingsProblem::of_file(text, &error))?;
        file.limits.check().map_err(problem)?;
        file.budget.check().map_err(problem)?;
        Model::check_all(&file.models).map_err(|error| problem(error.to_string()))?;
        check_default(&file).map_err(problem)?;
        check_variables(&file.tool_env).map_err(problem)?;
        file.compaction().check().map_err(problem)?;
        check_timeouts(&file).map_err(problem)?;
        check_tls(&file).map_err(problem)?;
        check_postgres(&file).map_err(problem)?;
        if let Some(endpoint) = &file.otlp_endpoint {
            check_endpoint(endpoint).map_err(problem)?;
        }
        check_fetched_hosts(&file.web_fetch_allow).map_err(problem)?;
        check_worktree_dir(&file).map_err(problem)?;
        check_absolute("trusted", &file.trusted).map_err(problem)?;
        check_absolute("plugins", &file.plugins).map_err(problem)?;
        let granted = file.resource_grants.iter().map(|grant| grant.path.clone());
        check_absolute("resource_grants", &granted.collect::<Vec<_>>()).map_err(problem)?;
        AgentEntry::resolve_all(&file.agents).map_err(|error| {
            SettingsProblem::of_entry(text, "agents", error.index, error.key, error.message)
        })?;
        SpaceEntry::check_all(&file.spaces).map_err(|error| {
            SettingsProblem::of_entry(text, "spaces", error.index, error.key, error.message)
        })?;
        MountEntry::check_all(&file.mounts).map_err(|error| {
            SettingsProblem::of_entry(text, "mounts", error.index, error.key, error.message)
        })?;
        McpEntry::check_all(&file.mcp).map_err(|error| {
            SettingsProblem::of_entry(text, "mcp", error.index, error.key, error.message)
        })?;
        Ok(file)
    }

    /// When conversations are summarised by themselves.
    pub(crate) fn compaction(&self) -> CompactionSettings {
        CompactionSettings {
            auto: self.auto_compact,
            at: self.auto_compact_at,
        }
    }

    /// The settings of agents' tools.
    pub(crate) fn tool_settings(&self) -> ToolSettings {
        ToolSettings {
            command_variables: self.tool_env.clone(),
            command_timeout: Duration::from_secs(self.bash_timeout_s),
            command_timeout_max: Duration::from_secs(self.bash_timeout_max_s),
            web_fetch_allow: self.web_fetch_allow.clone(),
        }
    }

    /// All settings as a TOML file that can be edited and loaded again.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| format!("# cannot be shown: {error}\n"))
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
