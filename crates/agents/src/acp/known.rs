//! What an agent last said of itself, kept over restarts (AG-3): until a process says otherwise, that is what is advertised.
//!
//! Promises: written whole or not at all; a file that cannot be read is as good as none. Holds no secret and nothing of a conversation.
//! Must not know: processes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::{AgentCommand, AgentInfo, ModelInfo};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::{AcpAgentConfig, AcpAuth};
use super::connection::Abilities;
use super::view::{OptionValues, SessionView};
use crate::task::detach_blocking;

/// The model that means: whatever the agent chooses.
pub(super) const DEFAULT_MODEL: &str = "default";

/// A larger file is not ours.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What an agent said of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Known {
    /// Absent before its first start.
    pub(super) abilities: Option<Abilities>,
    pub(super) model: Option<OptionValues>,
    pub(super) settings: Vec<OptionValues>,
    pub(super) commands: Vec<KnownCommand>,
    /// What it last said of its sign-in: whether, and as whom.
    pub(super) signed_in: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownCommand {
    name: String,
    description: Option<String>,
    hint: Option<String>,
}

#[derive(Debug)]
pub(super) struct KnownAgentFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    known: Mutex<Known>,
    /// Held by who writes: what is written last is what is true last.
    writing: Mutex<()>,
}

impl KnownAgentFile {
    /// Reads what is there.
    pub(super) fn open(data: &Path, id: &str) -> Self {
        let path = data.join("agents").join(format!("{id}.json"));
        let known = read(&path).unwrap_or_default();
        Self(Arc::new(Inner { path, known: Mutex::new(known), writing: Mutex::default() }))
    }

    pub(super) fn get(&self) -> Known {
        self.0.known.lock().clone()
    }

    /// Changes it; whether it is something else now. The file follows in its own time.
    pub(super) fn change(&self, change: impl FnOnce(&mut Known)) -> bool {
        let mut known = self.0.known.lock();
        let before = known.clone();
        change(&mut known);
        if *known == before {
            return false;
        }
        drop(known);
        let inner = Arc::clone(&self.0);
        detach_blocking(Box::new(move || inner.write()));
        true
    }
}

impl Inner {
    fn write(&self) {
        let _writing = self.writing.lock();
        let known = self.known.lock().clone();
        if let Err(error) = write(&self.path, &known) {
            tracing::warn!(error = %error.kind(), "the description of an agent could not be stored");
        }
    }
}

fn read(path: &Path) -> Option<Known> {
    let facts = fs::symlink_metadata(path).ok()?;
    if !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write(path: &Path, known: &Known) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let fresh = path.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&serde_json::to_vec(known)?);
    let moved = written.and_then(|()| fs::rename(&fresh, path));
    if moved.is_err() {
        // Half a file is of no use; that it could not be written is what counts.
        let _ = fs::remove_file(&fresh);
    }
    moved
}

impl Known {
    pub(super) fn apply_view(&mut self, view: &SessionView) {
        if view.model.is_some() {
            self.model.clone_from(&view.model);
        }
        self.settings.clone_from(&view.settings);
        // What is chosen is of a session, not of the agent.
        for choice in self.settings.iter_mut().chain(&mut self.model) {
            if choice.current.is_string() {
                choice.current = json!("");
            }
        }
    }

    pub(super) fn set_commands(&mut self, commands: &[AgentCommand]) {
        let known = commands.iter().cloned().map(|command| KnownCommand {
            name: command.name,
            description: command.description,
            hint: command.hint,
        });
        self.commands = known.collect();
    }

    pub(super) fn agent_commands(&self) -> Vec<AgentCommand> {
        let commands = self.commands.iter().cloned().map(|command| AgentCommand {
            name: command.name,
            description: command.description,
            hint: command.hint,
            expands: false,
        });
        commands.collect()
    }

    /// What clients are told of the agent.
    pub(super) fn info(&self, config: &AcpAgentConfig) -> AgentInfo {
        let mut capabilities = json!({"multipleChats": {"fork": true, "sideChat": true}});
        if self.abilities.as_ref().is_some_and(|can| can.additional_directories) {
            capabilities["multipleWorkingDirectories"] = json!({"immutablePrimary": true});
        }
        AgentInfo {
            provider: config.id.clone(),
            display_name: config.name.clone(),
            description: self.description(config),
            models: self.models(),
            capabilities,
            config_schema: self.config_schema(),
            renamed_settings: Vec::new(),
            default_model: Some(DEFAULT_MODEL.to_owned()),
            sections: if self.abilities.as_ref().is_some_and(|can| can.system_prompt) {
                crate::prompt::catalogue()
            } else {
                Vec::new()
            },
            protected_resources: match &config.auth {
                Some(AcpAuth::Resource { resource, required, .. }) => vec![json!({
                    "resource": resource,
                    "required": required,
                    "bearer_methods_supported": ["header"],
                })],
                Some(AcpAuth::Method(_)) | None => Vec::new(),
            },
            customizations: Vec::new(),
        }
    }

    fn description(&self, config: &AcpAgentConfig) -> String {
        if config.find_program().is_none() {
            return config.describe_missing();
        }
        let said = self.abilities.as_ref();
        let title = said.and_then(|said| said.title.as_deref()).unwrap_or(&config.name);
        match said.and_then(|said| said.version.as_deref()) {
            Some(version) => format!("{title} {version}, over ACP"),
            None => format!("{title}, over ACP"),
        }
    }

    fn models(&self) -> Vec<ModelInfo> {
        let model = |id: &str, name: &str| ModelInfo {
            id: id.to_owned(),
            name: name.to_owned(),
            details: wire::Object::new(),
        };
        let mut models = vec![model(DEFAULT_MODEL, "Agent's choice")];
        let offered = self
            .model
            .iter()
            .flat_map(|choice| &choice.values)
            .filter(|value| value.id != DEFAULT_MODEL);
        models.extend(offered.map(|value| model(&value.id, &value.name)));
        models
    }

    fn config_schema(&self) -> Value {
        let mut properties = json!({super::approvals::SETTING: super::approvals::schema()});
        if let Some(properties) = properties.as_object_mut() {
            for setting in &self.settings {
                properties.insert(setting.property(), setting.schema());
            }
            if self.abilities.is_none() {
                // Most have one, and the settings that a session was made with are all that it can ever have.
                let mode = OptionValues::unknown_mode();
                properties.insert(mode.property(), mode.schema());
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        crate::isolation::add_settings(&mut schema);
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_there_after_a_restart() {
        let data = tempfile::tempdir().unwrap();
        let file = KnownAgentFile::open(data.path(), "a");
        assert_eq!(file.get(), Known::default());
        let change = |known: &mut Known| {
            known.abilities = Some(Abilities {
                title: Some("T".to_owned()),
                version: Some("1".to_owned()),
                ..Abilities::default()
            });
        };
        assert!(file.change(change));
        assert!(!file.change(change));
        let again = KnownAgentFile::open(data.path(), "a").get();
        assert_eq!(again, file.get());
        let mut config = AcpAgentConfig::new("a", "/bin/sh");
        assert_eq!(again.info(&config).description, "T 1, over ACP");
        config.command = "no-such-agent".to_owned();
        assert!(again.info(&config).description.starts_with("Not installed"));
        std::fs::write(data.path().join("agents/a.json"), "{broken").unwrap();
        assert_eq!(KnownAgentFile::open(data.path(), "a").get(), Known::default());
    }

    #[test]
    fn before_the_first_start_there_is_the_agents_own_choice_of_a_model() {
        let info = Known::default().info(&AcpAgentConfig::new("a", "/bin/sh"));
        assert_eq!(info.models.len(), 1);
        assert_eq!(info.default_model.as_deref(), Some("default"));
        assert_eq!(info.config_schema["properties"]["approvals"]["default"], "ask");
        let mode = &info.config_schema["properties"]["agent_mode"];
        assert_eq!(mode["sessionMutable"], true, "{mode}");
    }
}
