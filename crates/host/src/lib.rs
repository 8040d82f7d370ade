//! What touches the operating system: sockets, disk, tasks, the clock.
//!
//! Promises: every batch of the kernel is written, then sent, then acted on, in that order (ADR 0002).
//! Must not know: why anything is allowed.

pub mod accounts;
pub mod acp_agents;
pub mod blobs;
mod budget;
mod changes;
mod client_files;
mod client_plugins;
mod clock;
pub mod cluster;
pub mod complete;
pub mod compose;
mod config;
mod config_checks;
mod config_settings;
mod credentials;
mod customization_entries;
mod delivery;
pub mod devices;
mod document_reader;
mod effects;
pub mod entities;
mod frozen;
#[cfg(test)]
mod full_disk_fixture;
pub mod journal;
pub mod kernel_queue;
mod kernel_task;
mod limits;
pub mod message_check;
pub mod migrate;
mod model_facts_file;
pub mod model_server;
mod models;
mod mounts;
pub mod net;
mod news;
mod node;
mod pacer;
pub mod page;
mod plugin_paths;
pub mod preview;
mod private_file;
mod resource_grants;
pub mod rules;
pub mod sent_request;
mod server;
pub mod settings_problem;
mod settings_tables;
mod settings_template;
mod shared_parts;
pub mod sign_in;
mod sorted_map;
mod space_agents;
mod space_entry;
mod space_host;
mod startup;
mod stream_batcher;
mod supervisor;
mod task;
pub mod telemetry;
mod terminals;

pub use agents::model_data;
pub use budget::{BudgetLimits, BudgetSettings};
pub use config::{
    Api, CONFIG_FILE, ClusterSettings, Config, ConfigError, DEFAULT_PORT, FailoverChoice,
    JournalChoice, LogLevelHook, Model, Settings, TokenChoice,
};
pub use credentials::EndpointRecord;
pub use document_reader::{DOCUMENT_LINE, DOCUMENT_TEXT_BYTES_MAX, DocumentReader, ReadDocument};
pub use limits::{LimitsTable, ServerLimits};
pub use model_facts_file::{MODEL_FACTS_FILE, ModelFactsFile, ModelFactsFileError};
pub use models::is_key_file_open;
pub use mounts::{MountEntry, is_mount_label};
pub use resource_grants::GrantEntry;
pub use server::{ServeError, ServerReady, VERSION, serve};
pub use settings_template::settings_template;
pub use shared_parts::SharedParts;
pub use space_entry::{FIRST_SPACE, SpaceEntry};
pub use startup::{check_certificate, check_config};
