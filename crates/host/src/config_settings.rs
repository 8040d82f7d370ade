//! The settings file: one row of a table for each key, with what it does, its type, its default and an example.
//!
//! Promises: a key is described and has its default in one place: loading, `--print-config` and the template come from its row.
//! Must not know: what a setting is used for, where the file lies.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use agents::acp::AgentEntry;
use agents::mcp::McpEntry;
use agents::tool::ToolSettings;
use serde::{Deserialize, Serialize};

use crate::blobs::BlobSettings;
use crate::budget::BudgetSettings;
use crate::config::{ClusterSettings, CompactionSettings, DEFAULT_PORT, JournalChoice, Model};
use crate::limits::LimitsTable;
use crate::mounts::MountEntry;
use crate::resource_grants::GrantEntry;
use crate::settings_tables::{
    AGENT_SETTINGS, MCP_SETTINGS, MODEL_SETTINGS, MOUNT_SETTINGS, SPACE_SETTINGS, Setting,
};
use crate::space_entry::SpaceEntry;

/// How a setting stands in the template of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SettingForm {
    /// With its default.
    Default,
    /// With a value it may have, because its default is to be absent or empty.
    Example(&'static str),
    /// As a list of tables with these keys.
    Entries(&'static [Setting]),
    /// As one table with these keys, which is absent by default.
    Keys(&'static [Setting]),
    /// As a table that has help of its own.
    Table,
}

/// A key of the settings file, as the template shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingHelp {
    pub key: &'static str,
    /// What it does, in lines.
    pub lines: &'static [&'static str],
    pub form: SettingForm,
}

/// A struct of settings from a table of them: its fields, their defaults and their help.
macro_rules! settings_table {
    (
        $(#[$struct_attribute:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[serde($serde:meta)])?
                $field:ident: $type:ty = $default:expr $(, $form:expr)?;
            )*
        }
    ) => {
        $(#[$struct_attribute])*
        #[derive(Clone, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $doc])* $(#[serde($serde)])? pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $name {
            /// All keys, in the order of the template.
            pub(crate) const HELP: &'static [SettingHelp] = &[$(
                SettingHelp {
                    key: stringify!($field),
                    lines: &[$( $doc, )*],
                    form: settings_table!(@form $($form)?),
                },
            )*];
        }
    };
    (@form) => { SettingForm::Default };
    (@form $form:expr) => { $form };
}

use SettingForm::{Entries, Example, Keys, Table};

/// The keys of the `[cluster]` table.
const CLUSTER_SETTINGS: &[Setting] = &[
    (
        "name",
        "What people call this node: small letters, digits and `-`. Each node has another name.",
        Some("\"a\""),
    ),
    (
        "address",
        "Where other nodes reach it, with a port. Never an address that the public can reach.",
        Some("\"10.0.0.11:4791\""),
    ),
    (
        "listen",
        "Where it listens for them, if that is another address of this machine. The same as `address` if absent.",
        Some("\"0.0.0.0:4791\""),
    ),
    (
        "failover",
        "Whether commits may be missing when another server takes the place of the database's, or after a restore: \"lossy\" if so; \
         \"lossless\" behind a synchronous standby.",
        Some("\"lossy\""),
    ),
];

/// The keys of the `[blobs]` table.
const BLOB_SETTINGS: &[Setting] = &[
    (
        "store",
        "s3://bucket/prefix, with AWS_ACCESS_KEY_ID and the like in the environment, or file:///srv/bodies on a disk that all nodes share.",
        Some("\"s3://greenroom/bodies\""),
    ),
    ("from_bytes", "Smaller bodies stay in the database.", Some("1048576")),
    (
        "grave_days",
        "For how many days a body that nothing refers to is kept: at least 1, and as long as the database can be restored to an earlier moment.",
        Some("7"),
    ),
];

settings_table! {
    /// Everything that the settings file may say.
    pub struct Settings {
        /// Address and port to listen on. One that other machines reach is safe only with tls_cert and tls_key, behind a TLS
        /// proxy or through an SSH tunnel (docs/remote.md).
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
        /// A certificate (PEM, with those that vouch for it behind it): other machines are answered over TLS alone. Read again
        /// when it changes.
        tls_cert: Option<PathBuf> = None, Example("\"/etc/greenroom/cert.pem\"");
        /// The private key of tls_cert (PEM).
        tls_key: Option<PathBuf> = None, Example("\"/etc/greenroom/key.pem\"");
        /// Directories that sessions may work in, the first being the default. None: where the host is started, and your home.
        workspaces: Vec<PathBuf> = Vec::new();
        /// Whether the scripted agent is offered, which needs no model: to try greenroom out.
        scripted: bool = true;
        /// A script for the scripted agent, instead of the built-in one.
        script: Option<PathBuf> = None, Example("\"my-script.json\"");
        /// Variables of the host's environment that commands of agents get beside PATH, HOME and the like. Whole names. (G-51)
        tool_env: Vec<String> = Vec::new(), Example("[\"SSH_AUTH_SOCK\"]");
        /// After how many seconds a command of an agent is killed, if its call does not say.
        bash_timeout_s: u64 = 120;
        /// How many seconds a call may give its command at most. Commands in the background have no limit.
        bash_timeout_max_s: u64 = 600;
        /// Hosts with their ports that agents may fetch pages from though they are in a private network or on this machine.
        web_fetch_allow: Vec<String> = Vec::new(), Example("[\"wiki.local:443\"]");
        /// Sections of the system prompt that no client may read or rewrite. (G-35)
        restricted_sections: Vec<String> = vec!["safety".to_owned()];
        /// Names beside IP addresses and localhost under which clients may call this host, such as that of a proxy. (G-25)
        allowed_hosts: Vec<String> = Vec::new(), Example("[\"agents.example.com\"]");
        /// Web pages beside the host's own that may connect from a browser. (G-25)
        allowed_origins: Vec<String> = Vec::new(), Example("[\"https://app.example.com\"]");
        /// Where sessions are stored: "sqlite", "postgres", or "memory" to lose them when the host stops.
        journal: JournalChoice = JournalChoice::Sqlite;
        /// The database of journal = "postgres": sessions and their content; tokens, devices and rules stay in the data directory.
        postgres: Option<String> = None, Example("\"host=/run/postgresql dbname=greenroom\"");
        /// A JSON file that says what models and other targets accept, over what is built in.
        capabilities: Option<PathBuf> = None, Example("\"capabilities.json\"");
        /// Summarise conversations automatically when they come near their model's context window.
        auto_compact: bool = CompactionSettings::default().auto;
        /// Fraction of the window, minus room for the answer, at which that happens: 0.1 to 1.0.
        auto_compact_at: f64 = CompactionSettings::default().at;
        /// A collector of OpenTelemetry that logs, traces and metrics are sent to: OTLP over HTTP, as JSON. No content, prompt or
        /// path is in them.
        otlp_endpoint: Option<String> = None, Example("\"http://127.0.0.1:4318\"");
        /// Where the git worktrees of sessions lie that have `isolation` = "worktree", in a directory for each repository;
        /// without it in `.greenroom/worktrees` of the repository. Sessions may work there, and clients read and write there.
        /// Not with [[spaces]]. (G-54)
        worktree_dir: Option<PathBuf> = None, Example("\"/home/ann/worktrees\"");
        /// The id of a small model that gives sessions their titles; without it they have the first line of their first message.
        title_model: Option<String> = None, Example("\"qwen3\"");
        /// Whether agents such as Claude Code are offered where they are installed, without an [[agents]] table of their own. (AG-2)
        agents_auto: bool = true;
        /// Directories in which external agents may be started without a question, with all that is below. Whole paths. (TR-1)
        trusted: Vec<PathBuf> = Vec::new(), Example("[\"/home/me/src\"]");
        /// Directories of plugins, beside those in ~/.agents/plugins. Whole paths. (CU-4)
        #[serde(deserialize_with = "crate::plugin_paths::deserialize")]
        plugins: Vec<PathBuf> = Vec::new(), Example("[\"/home/me/plugins/notes\"]");
        /// Files and directories outside `workspaces` that clients may ask for, and whether they may change them. Whole paths.
        /// Counts at once, unless clients can change this file. (G-55)
        #[serde(skip_serializing_if = "Vec::is_empty")]
        resource_grants: Vec<GrantEntry> = Vec::new(), Example("[{ path = \"/srv/shared\", write = false }]");
        /// The id of the model that messages go to unless they name another; the first one without it.
        default_model: Option<String> = None, Example("\"qwen3\"");
        /// Models, each with a [[models]] line of its own. `greenroom models add` writes one, `greenroom models` tries them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        models: Vec<Model> = Vec::new(), Entries(MODEL_SETTINGS);
        /// External agents that speak the Agent Client Protocol, each with an [[agents]] line of its own. `greenroom agents` lists them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        agents: Vec<AgentEntry> = Vec::new(), Entries(AGENT_SETTINGS);
        /// MCP servers for the native agent, each with an [[mcp]] line of its own. Those of a directory are in its .mcp.json.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        mcp: Vec<McpEntry> = Vec::new(), Entries(MCP_SETTINGS);
        /// Further spaces beside that of the data directory, each with a [[spaces]] line of its own: sessions, devices and a token of their
        /// own, served at the same address. Clients find one with `--data DIRECTORY`; over the network its token names it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        spaces: Vec<SpaceEntry> = Vec::new(), Entries(SPACE_SETTINGS);
        /// Directories that this node offers to spaces of the database, each with a [[mounts]] line of its own. A space that names a label
        /// (`greenroom space mount`) works there, and its turns run on nodes that offer it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        mounts: Vec<MountEntry> = Vec::new(), Entries(MOUNT_SETTINGS);
        /// This node among others on the same database.
        cluster: Option<ClusterSettings> = None, Keys(CLUSTER_SETTINGS);
        /// Where large bodies of spaces in the database lie; without this table, in the database.
        blobs: Option<BlobSettings> = None, Keys(BLOB_SETTINGS);
        /// Bounds and periods: sizes in bytes, times in milliseconds or seconds as the name says.
        limits: LimitsTable = LimitsTable::default(), Table;
        /// What may be spent on models by a turn, by a session, and by all sessions in a day: in tokens, in dollars (by the prices of the
        /// models), in calls of models and in seconds of work. At a limit you are asked: the same again, a last answer, or stop. (G-69)
        #[serde(skip_serializing_if = "BudgetSettings::is_empty")]
        budget: BudgetSettings = BudgetSettings::default(), Table;
    }
}

impl Settings {
    /// When conversations are summarised by themselves.
    pub(crate) fn compaction(&self) -> CompactionSettings {
        CompactionSettings { auto: self.auto_compact, at: self.auto_compact_at }
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
}
