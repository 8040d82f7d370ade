//! A `[[agents]]` table of the settings file, and the agent that it makes of a preset.
//!
//! Promises: what is wrong is said with its key. What a table does not say is as its preset has it.
//! Must not know: the file, its lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

use super::config::{AcpAgentConfig, AcpAuth, EnvSource, Share, TrustPolicy};
use super::presets::Preset;
use crate::SettingsEntryError;

/// The longest id: it is the scheme of sessions (G-27).
const ID_BYTES_MAX: usize = 32;

/// The longest name: it is in lists and menus.
const NAME_BYTES_MAX: usize = 256;

/// Names of agents that are there anyway, and schemes that mean something else.
const TAKEN_IDS: [&str; 10] =
    ["native", "scripted", "file", "http", "https", "ws", "wss", "stdio", "data", "mcp"];

/// Schemes of the protocol begin so.
const TAKEN_BEGINNING: &str = "ahp";

/// A day: a longer time is a mistake.
const SECONDS_MAX: u64 = 86_400;

/// A `[[agents]]` table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentEntry {
    pub id: String,
    /// The preset that it begins with: the id, if there is such a one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout_s: Option<u64>,
    #[serde(default, skip_serializing_if = "EnvFrom::is_empty")]
    pub env_from: EnvFrom,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthEntry>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Which MCP servers an agent gets from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpChoice {
    HandOver,
    None,
}

/// `{ method = ".." }`, or `{ resource = "..", token_env = ".." }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Whether no session begins without a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// Names of variables, as a list of names, or as a table in which a name may have a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvFrom(pub Vec<EnvSource>);

/// A problem of one key.
type KeyProblem = (&'static str, String);

impl AgentEntry {
    /// The agents that the tables make, in their order.
    pub fn resolve_all(entries: &[Self]) -> Result<Vec<AcpAgentConfig>, SettingsEntryError> {
        let mut ids = BTreeSet::new();
        let resolved = entries.iter().enumerate().map(|(index, entry)| {
            let error = |(key, problem): KeyProblem| SettingsEntryError {
                index,
                key,
                message: format!("{key} of the agent `{}`: {problem}", entry.shown_id()),
            };
            if !ids.insert(&entry.id) {
                return Err(error(("id", "it occurs twice".to_owned())));
            }
            entry.resolve().map_err(error)
        });
        resolved.collect()
    }

    /// The preset that it is made of.
    pub fn preset(&self) -> Option<&'static Preset> {
        Preset::find(self.preset.as_deref().unwrap_or(&self.id))
    }

    fn resolve(&self) -> Result<AcpAgentConfig, KeyProblem> {
        check_id(&self.id).map_err(|problem| ("id", problem))?;
        let preset = self.preset();
        if let (None, Some(name)) = (preset, &self.preset) {
            let problem = format!("there is no preset `{name}`; there are {}", Preset::names());
            return Err(("preset", problem));
        }
        let mut config = match (preset, &self.command) {
            (Some(preset), _) => preset.to_config(),
            (None, Some(command)) => AcpAgentConfig::new(&self.id, command),
            (None, None) => {
                let problem = format!(
                    "say what is run, or take a preset: {}; `preset = \"claude\"`",
                    Preset::names()
                );
                return Err(("command", problem));
            }
        };
        config.id.clone_from(&self.id);
        self.replace_program(&mut config)?;
        self.replace_settings(&mut config)?;
        Ok(config)
    }

    fn replace_program(&self, config: &mut AcpAgentConfig) -> Result<(), KeyProblem> {
        if let Some(name) = &self.name {
            check_text(name, NAME_BYTES_MAX).map_err(|problem| ("name", problem))?;
            config.name.clone_from(name);
        }
        if let Some(command) = &self.command {
            check_command(command).map_err(|problem| ("command", problem))?;
            if *command != config.command {
                // How to install the preset's command says nothing about another one.
                config.install.clear();
            }
            config.command.clone_from(command);
        }
        if let Some(args) = &self.args {
            config.args.clone_from(args);
        }
        if config.args.iter().any(|arg| arg.contains('\0')) {
            return Err(("args", "an argument has a NUL in it".to_owned()));
        }
        for (name, value) in &self.env {
            check_variable(name).map_err(|problem| ("env", problem))?;
            if value.contains('\0') {
                return Err(("env", format!("{name} has a NUL in it")));
            }
            config.env.insert(name.clone(), value.clone());
            // What the user says of a variable counts, also where the preset sets it in trusted directories.
            config.trusted_env.remove(name);
        }
        for source in &self.env_from.0 {
            check_variable(&source.name).map_err(|problem| ("env_from", problem))?;
            if source.file.as_deref().is_some_and(Path::is_relative) {
                let problem = format!("the file of {} must be an absolute path", source.name);
                return Err(("env_from", problem));
            }
        }
        config.env_from.clone_from(&self.env_from.0);
        Ok(())
    }

    fn replace_settings(&self, config: &mut AcpAgentConfig) -> Result<(), KeyProblem> {
        if let Some(auth) = &self.auth {
            config.auth = Some(auth.resolve().map_err(|problem| ("auth", problem))?);
        }
        let seconds = |key: &'static str, given: Option<u64>, default: Duration| match given {
            None => Ok(default),
            Some(seconds @ 1..=SECONDS_MAX) => Ok(Duration::from_secs(seconds)),
            Some(_) => Err((key, format!("1 to {SECONDS_MAX} seconds"))),
        };
        config.idle = seconds("idle_s", self.idle_s, config.idle)?;
        config.start_timeout =
            seconds("start_timeout_s", self.start_timeout_s, config.start_timeout)?;
        config.share = self.share.unwrap_or(config.share);
        config.hands_over_mcp = match self.mcp {
            None => config.hands_over_mcp,
            Some(McpChoice::HandOver) => true,
            Some(McpChoice::None) => false,
        };
        config.fs = self.fs.unwrap_or(config.fs);
        config.trust = self.trust.unwrap_or(config.trust);
        Ok(())
    }

    /// The id in a message: bounded, and on one line.
    fn shown_id(&self) -> String {
        let shown = self.id.escape_debug().take(2 * ID_BYTES_MAX);
        shown.collect()
    }
}

impl AuthEntry {
    fn resolve(&self) -> Result<AcpAuth, String> {
        match (&self.method, &self.resource, &self.token_env) {
            (Some(method), None, None) if !method.is_empty() && !self.required => Ok(AcpAuth::Method(method.clone())),
            (None, Some(resource), Some(token_env)) if !resource.is_empty() => {
                check_variable(token_env)?;
                Ok(AcpAuth::Resource {
                    resource: resource.clone(),
                    token_env: token_env.clone(),
                    required: self.required,
                })
            }
            _ => Err(
                "write { method = \"ID\" }, or { resource = \"URL\", token_env = \"VARIABLE\" }, perhaps with required = true"
                    .to_owned(),
            ),
        }
    }
}

/// Whether an agent may be called this: `[a-z][a-z0-9-]{0,31}`, and nothing that has a meaning already.
pub fn check_id(id: &str) -> Result<(), String> {
    let is_begun = id.starts_with(|c: char| c.is_ascii_lowercase());
    let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !is_begun || id.len() > ID_BYTES_MAX || !id.chars().all(is_known) {
        return Err(format!("1 to {ID_BYTES_MAX} small letters, digits and `-`, a letter first"));
    }
    if TAKEN_IDS.contains(&id) || id.starts_with(TAKEN_BEGINNING) {
        Err("this name is taken: choose another one".to_owned())
    } else {
        Ok(())
    }
}

fn check_text(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > bytes_max || text.chars().any(char::is_control) {
        Err(format!("1 to {bytes_max} bytes without control characters"))
    } else {
        Ok(())
    }
}

fn check_command(command: &str) -> Result<(), String> {
    let is_path = command.contains('/');
    if command.trim() != command || command.is_empty() || command.chars().any(char::is_control) {
        return Err("the name of a program, or its absolute path".to_owned());
    }
    if is_path && !Path::new(command).is_absolute() {
        return Err(format!(
            "`{command}` is neither a name nor an absolute path; no shell expands it"
        ));
    }
    if !is_path && command.contains(' ') {
        return Err(format!(
            "`{command}` has a space: the program alone is the command, the rest goes into `args = [..]`"
        ));
    }
    Ok(())
}

fn check_variable(name: &str) -> Result<(), String> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = !name.is_empty() && name.chars().all(is_known);
    if !is_name || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{name:?} is not the name of an environment variable"));
    }
    if name.starts_with("GREENROOM_") {
        Err(format!("{name} is the host's own and reaches no agent"))
    } else {
        Ok(())
    }
}

impl EnvFrom {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How both forms are written, for whoever got it wrong.
const ENV_FROM_FORMS: &str =
    "for env_from write [\"NAME\", ..], or { NAME = { file = \"/path\" } }";

impl<'de> Deserialize<'de> for EnvFrom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom(ENV_FROM_FORMS);
        let mut sources = Vec::new();
        match Value::deserialize(deserializer)? {
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::String(name) => sources.push(EnvSource { name, file: None }),
                        Value::Table(table) => {
                            sources.extend(read_sources(table).ok_or_else(wrong)?);
                        }
                        _ => return Err(wrong()),
                    }
                }
            }
            Value::Table(table) => sources.extend(read_sources(table).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        Ok(Self(sources))
    }
}

/// `{ NAME = { file = "/path" }, OTHER = {} }`
fn read_sources(table: toml::Table) -> Option<Vec<EnvSource>> {
    let sources = table.into_iter().map(|(name, value)| {
        let mut fields = match value {
            Value::Table(fields) => fields,
            _ => return None,
        };
        let file = match fields.remove("file") {
            None => None,
            Some(Value::String(file)) => Some(PathBuf::from(file)),
            Some(_) => return None,
        };
        fields.is_empty().then_some(EnvSource { name, file })
    });
    sources.collect()
}

impl Serialize for EnvFrom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items = self.0.iter().map(|source| match &source.file {
            None => Value::String(source.name.clone()),
            Some(file) => {
                let file = Value::String(file.to_string_lossy().into_owned());
                let fields = toml::Table::from_iter([("file".to_owned(), file)]);
                let table = toml::Table::from_iter([(source.name.clone(), Value::Table(fields))]);
                Value::Table(table)
            }
        });
        serializer.collect_seq(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> AgentEntry {
        toml::from_str(text).unwrap()
    }

    fn resolve(text: &str) -> Result<AcpAgentConfig, SettingsEntryError> {
        AgentEntry::resolve_all(&[entry(text)]).map(|mut all| all.remove(0))
    }

    #[test]
    fn a_preset_is_overridden_by_what_the_table_says() {
        let plain = resolve("id = \"claude\"").unwrap();
        assert_eq!(plain, Preset::find("claude").unwrap().to_config());
        let config = resolve(
            r#"
            id = "mine"
            preset = "gemini"
            name = "My Gemini"
            args = ["--acp", "--debug"]
            env = { A = "1" }
            env_from = ["KEY", { OTHER = { file = "/secret" } }]
            auth = { method = "gemini-api-key" }
            share = "chat"
            mcp = "none"
            fs = true
            trust = "never"
            idle_s = 5
            start_timeout_s = 6
            "#,
        )
        .unwrap();
        assert_eq!((config.id.as_str(), config.name.as_str()), ("mine", "My Gemini"));
        assert_eq!(config.command, "gemini");
        assert_eq!(config.args, ["--acp", "--debug"]);
        assert!(config.install.contains("gemini-cli"));
        let names: Vec<_> =
            config.env_from.iter().map(|it| (it.name.as_str(), it.file.is_some())).collect();
        assert_eq!(names, [("KEY", false), ("OTHER", true)]);
        assert_eq!(config.auth, Some(AcpAuth::Method("gemini-api-key".to_owned())));
        assert_eq!((config.share, config.trust), (Share::Chat, TrustPolicy::Never));
        assert!(config.fs && !config.hands_over_mcp);
        assert_eq!(config.idle, Duration::from_secs(5));
        assert_eq!(config.start_timeout, Duration::from_secs(6));
        let distrusted = "id = \"gemini\"\nenv = { GEMINI_CLI_TRUST_WORKSPACE = \"false\" }";
        let distrusted = resolve(distrusted).unwrap();
        assert!(distrusted.trusted_env.is_empty(), "{distrusted:?}");
        let other = resolve("id = \"claude\"\ncommand = \"/opt/claude\"").unwrap();
        assert_eq!(other.install, "", "of another command nothing is known");
        let command = resolve("id = \"x\"\ncommand = \"x\"").unwrap();
        assert_eq!(command.name, "x");
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let text = "id = \"x\"\ncommand = \"x\"\nenv_from = { A = {}, B = { file = \"/b\" } }\nauth = { resource = \"https://r\", token_env = \"T\" }\nenv = { C = \"d\" }\n";
        let first = entry(text);
        let written = toml::to_string(&first).unwrap();
        assert_eq!(entry(&written), first, "{written}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_key() {
        for (text, key, words) in [
            ("id = \"Claude\"", "id", "small letters"),
            ("id = \"native\"", "id", "taken"),
            ("id = \"ahp-chat\"", "id", "taken"),
            ("id = \"1a\"\ncommand = \"x\"", "id", "a letter first"),
            ("id = \"x\"", "command", "preset"),
            ("id = \"x\"\npreset = \"clod\"", "preset", "claude, codex"),
            ("id = \"x\"\ncommand = \"x --acp\"", "command", "args"),
            ("id = \"x\"\ncommand = \"./x\"", "command", "absolute"),
            ("id = \"x\"\ncommand = \"~/x\"", "command", "no shell"),
            ("id = \"x\"\ncommand = \"\"", "command", "name of a program"),
            ("id = \"claude\"\nname = \" \"", "name", "1 to 256"),
            ("id = \"claude\"\nenv = { \"A B\" = \"1\" }", "env", "A B"),
            ("id = \"claude\"\nenv_from = [\"GREENROOM_TOKEN\"]", "env_from", "host's own"),
            ("id = \"claude\"\nenv_from = { A = { file = \"k\" } }", "env_from", "absolute"),
            ("id = \"claude\"\nauth = { resource = \"r\" }", "auth", "token_env"),
            ("id = \"claude\"\nauth = {}", "auth", "method"),
            ("id = \"claude\"\nidle_s = 0", "idle_s", "1 to"),
            ("id = \"claude\"\nstart_timeout_s = 90000", "start_timeout_s", "1 to"),
        ] {
            let error = resolve(text).unwrap_err();
            assert_eq!(error.key, key, "{text}: {error}");
            assert!(error.message.contains(words), "{text}: {error}");
            assert!(error.message.starts_with(key), "{error}");
        }
        let twice = [entry("id = \"claude\""), entry("id = \"claude\"")];
        let error = AgentEntry::resolve_all(&twice).unwrap_err();
        assert_eq!((error.index, error.key), (1, "id"));
        for (wrong, words) in [
            ("id = \"x\"\nenv_from = 5", "[\"NAME\", ..]"),
            ("id = \"x\"\nenv_from = { A = { path = \"/b\" } }", "file"),
            ("id = \"x\"\ntrust = \"yes\"", "`ask`"),
            ("id = \"x\"\nmcp = \"all\"", "`hand-over`"),
        ] {
            let error = toml::from_str::<AgentEntry>(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
