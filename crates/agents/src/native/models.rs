//! Models as data: where each answers, what it is called there, what it can do and what it costs.
//!
//! Promises: a key is named by where it lies, never held here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use agent_api::ModelInfo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{model_settings, vendors};
use crate::model_data::{self, ModelFacts, Prices};
use crate::provider::{Api, ApiKey, ModelEndpoint, ModelEndpointError, Timeouts};

/// Longest id and name of a model, in bytes: both are in lists and menus.
const NAME_BYTES_MAX: usize = 256;

/// A model a user configured: one `[[models]]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// What clients and its server call it.
    pub id: String,
    /// What people see; the id if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its server calls it, if not the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The wire format of its server.
    #[serde(default, skip_serializing_if = "Api::is_default")]
    pub api: Api,
    /// `http://localhost:11434/v1`
    pub base_url: String,
    /// The environment variable that holds the key, the file that does, or the program that prints it, with its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// `key_file` is a canonical path, and no link is followed: set for models that clients add.
    #[serde(skip)]
    pub is_real_key_file: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_command: Option<Vec<String>>,
    /// The header that carries the key, if not the usual one of the wire format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
    /// Query parameters of every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The known model that it is, where its server has another name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The longest answer that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Whether it sees pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdf: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdf_pages: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdf_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdf_encrypted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<bool>,
    /// Whether it can call tools; it can if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// How much it may be told to think, in its server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// Settings a message may give it, by name, as JSON Schema properties in TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Tools that its server carries out itself, in the shapes of the wire format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_tools: Vec<Value>,
    /// Seconds for which its server may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_s: Option<u64>,
    /// What its server said of it; see [`Model::facts`].
    #[serde(skip)]
    pub reported: ModelFacts,
    /// It is there because the environment holds a key, and nobody configured it.
    #[serde(skip)]
    pub is_of_environment: bool,
    /// The variable of the environment that names its server, instead of the vendor's own.
    #[serde(skip)]
    pub address_variable: Option<&'static str>,
}

/// What is wrong with a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("`{0}` names no model: write BASE_URL#MODEL, such as http://localhost:11434/v1#qwen3")]
    NoName(String),
    #[error("`{0}` is not a wire format: there are `chat`, `anthropic`, `responses` and `gemini`")]
    NoApi(String),
    #[error("the model `{id}`: {error}")]
    Endpoint { id: String, error: ModelEndpointError },
    #[error(
        "the address in {variable} is not used: {error}. If it is meant, `greenroom models add` takes it as an address"
    )]
    Address { variable: &'static str, error: ModelEndpointError },
    #[error(
        "the model `{0}` names more than one of `key_env`, `key_file` and `key_command`: keep one"
    )]
    TwoKeys(String),
    #[error(
        "the model `{0}`: `key_command` is a list of a program and its arguments, such as [\"pass\", \"show\", \"x\"]"
    )]
    KeyCommand(String),
    #[error(
        "the model `{0}`: `key_env` is the name of an environment variable, not the key itself"
    )]
    KeyVariable(String),
    #[error(
        "the id or name of a model is longer than {NAME_BYTES_MAX} bytes or has control characters: {0:?}"
    )]
    Name(String),
    #[error("the model id `{0}` occurs twice")]
    Twice(String),
    #[error("the model `{0}`: `stall_s` must be at least 1 second")]
    NoStall(String),
    #[error("the model `{0}`: prices are dollars per million tokens, 0 or more")]
    Prices(String),
    #[error(
        "the model `{id}`: `known_as` is the name of a known model; nothing is known of `{name}`. Say what it can do instead: \
         `context_tokens`, `vision`, .."
    )]
    UnknownName { id: String, name: String },
    #[error(
        "at most {} models can be added while the host runs",
        super::model_list::ADDED_MODELS_MAX
    )]
    TooMany,
    #[error("a model has an empty id")]
    NoId,
    #[error("the settings of the model `{id}`: {why}")]
    Settings { id: String, why: String },
}

impl Model {
    /// `BASE_URL#MODEL`, `WIRE+BASE_URL#MODEL`, `VENDOR#MODEL` or `VENDOR`, as `--model` takes it.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        Self::parse_with(text, &vendors::of_environment)
    }

    fn parse_with(text: &str, read: &dyn Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let (base_url, id) = split_name(text)?;
        let model = match vendors::find(base_url) {
            Some(vendor) => vendor.model(id, read)?,
            None => {
                let (api, base_url) = split_api(base_url)?;
                Self { api, ..Self::at(base_url, id) }
            }
        };
        model.check()?;
        Ok(model)
    }

    /// The same for a host, which knows by itself where a vendor's server is and which key it takes: a vendor's name stays in
    /// the place of the address, so that no variable of this process decides where the host's key goes.
    pub fn parse_for_host(text: &str) -> Result<Self, ModelError> {
        let (base_url, id) = split_name(text)?;
        match vendors::find(base_url) {
            Some(vendor) => Ok(Self::at(vendor.name, id)),
            None => Self::parse(text),
        }
    }

    /// Puts the address that this process knows in the place of a vendor's name, with the vendor's key unless one is named.
    pub fn find_vendor(self) -> Result<Self, ModelError> {
        let Some(vendor) = vendors::find(&self.base_url) else { return Ok(self) };
        let known = vendor.model(&self.id, &vendors::of_environment)?;
        let names_key =
            self.key_env.is_some() || self.key_file.is_some() || self.key_command.is_some();
        Ok(Self {
            api: known.api,
            base_url: known.base_url,
            address_variable: known.address_variable,
            key_env: if names_key { self.key_env } else { known.key_env },
            ..self
        })
    }

    /// A model by the address of its server and its name there, unchecked.
    pub(super) fn at(base_url: &str, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: None,
            model: None,
            api: Api::default(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            key_env: None,
            key_file: None,
            is_real_key_file: false,
            key_command: None,
            key_header: None,
            query: BTreeMap::new(),
            headers: BTreeMap::new(),
            known_as: None,
            context_tokens: None,
            output_tokens: None,
            vision: None,
            pdf: None,
            pdf_pages: None,
            pdf_bytes: None,
            pdf_encrypted: None,
            audio: None,
            video: None,
            tools: None,
            efforts: None,
            settings: None,
            prices: None,
            server_tools: Vec::new(),
            stall_s: None,
            reported: ModelFacts::default(),
            is_of_environment: false,
            address_variable: None,
        }
    }

    /// Names the first thing that cannot work in a list of models.
    pub fn check_all(models: &[Self]) -> Result<(), ModelError> {
        for (index, model) in models.iter().enumerate() {
            model.check()?;
            if models[..index].iter().any(|other| other.id == model.id) {
                return Err(ModelError::Twice(model.id.clone()));
            }
        }
        Ok(())
    }

    /// Names the first thing that cannot work.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.id.is_empty() {
            return Err(ModelError::NoId);
        }
        let names = [Some(&self.id), self.name.as_ref(), self.model.as_ref()];
        let is_bad =
            |name: &&String| name.len() > NAME_BYTES_MAX || name.contains(|c: char| c.is_control());
        if let Some(bad) = names.into_iter().flatten().find(is_bad) {
            let shown = bad.chars().take(NAME_BYTES_MAX).collect();
            return Err(ModelError::Name(shown));
        }
        let keys = [self.key_env.is_some(), self.key_file.is_some(), self.key_command.is_some()];
        if keys.into_iter().filter(|named| *named).count() > 1 {
            return Err(ModelError::TwoKeys(self.id.clone()));
        }
        if self.prices.is_some_and(|prices| !prices.are_possible()) {
            return Err(ModelError::Prices(self.id.clone()));
        }
        if let Some(name) = self.known_as.as_ref()
            && model_data::find(name).is_none()
        {
            return Err(ModelError::UnknownName { id: self.id.clone(), name: name.clone() });
        }
        if self.stall_s == Some(0) {
            return Err(ModelError::NoStall(self.id.clone()));
        }
        let command = self.key_command.as_ref();
        if command.is_some_and(|command| command.first().is_none_or(String::is_empty)) {
            return Err(ModelError::KeyCommand(self.id.clone()));
        }
        // Somebody who puts the key itself there must not read it in an error, nor leave it there unnoticed.
        let variable = self.key_env.as_deref().unwrap_or("_");
        if variable.is_empty() || !variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(ModelError::KeyVariable(self.id.clone()));
        }
        self.config_schema()?;
        self.endpoint().map(drop)
    }

    /// The schema of its settings, if it has any.
    fn config_schema(&self) -> Result<Option<Value>, ModelError> {
        model_settings::schema(self)
            .map_err(|why| ModelError::Settings { id: self.id.clone(), why })
    }

    /// Its server.
    pub fn endpoint(&self) -> Result<ModelEndpoint, ModelError> {
        self.connect_to_server()
            .map_err(|error| ModelError::Endpoint { id: self.id.clone(), error })
    }

    pub(super) fn connect_to_server(&self) -> Result<ModelEndpoint, ModelEndpointError> {
        let mut endpoint = ModelEndpoint::new(&self.base_url)?.with_api(self.api);
        if let Some(seconds) = self.stall_s {
            let stall = Duration::from_secs(seconds);
            endpoint = endpoint.with_timeouts(Timeouts::default().with_stall(stall));
        }
        if let Some(key) = self.key() {
            endpoint = endpoint.with_key(key);
        }
        if let Some(header) = &self.key_header {
            endpoint = endpoint.with_key_header(header)?;
        }
        let query = self.query.iter();
        endpoint = endpoint.with_query(query.map(|(name, value)| (name.as_str(), value.as_str())));
        for (name, value) in &self.headers {
            endpoint = endpoint.with_header(name, value)?;
        }
        Ok(endpoint)
    }

    /// Where its key is found, if it has one.
    fn key(&self) -> Option<ApiKey> {
        let env = self.key_env.clone().map(ApiKey::from_environment);
        let file = || {
            if self.is_real_key_file {
                self.key_file.clone().map(ApiKey::from_real_file)
            } else {
                self.key_file.clone().map(ApiKey::from_file)
            }
        };
        let command = || self.key_command.clone().map(ApiKey::from_command);
        env.or_else(file).or_else(command)
    }

    /// Whether this is another name for the same model: the same at the same server, and what it leaves out is left to the other.
    pub fn is_at(&self, other: &Self) -> bool {
        let (own, others) = (self.server_name(), other.server_name());
        self.api == other.api && self.base_url == other.base_url && own == others
    }

    /// The address of its server as `--model` takes it, without the model's name.
    pub fn address(&self) -> String {
        if self.api.is_default() {
            self.base_url.clone()
        } else {
            format!("{}+{}", self.api.name(), self.base_url)
        }
    }

    /// What its server calls it.
    pub fn server_name(&self) -> &str {
        self.model.as_deref().unwrap_or(&self.id)
    }

    /// As clients see it.
    pub fn info(&self) -> ModelInfo {
        let mut details = wire::Object::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                details.insert(key.to_owned(), value);
            }
        };
        let facts = self.facts();
        put("maxContextWindow", facts.context_tokens.map(Value::from));
        put("maxOutputTokens", facts.output_tokens.map(Value::from));
        put("supportsVision", facts.image.map(Value::from));
        let schema = self.config_schema();
        debug_assert!(schema.is_ok(), "models are checked when they are configured");
        put("configSchema", schema.unwrap_or_default());
        let mut meta = wire::Object::new();
        if let Some(prices) = facts.prices {
            meta.insert("greenroom.prices".to_owned(), json!(prices));
        }
        if let Some(variable) = self.key_env.as_ref().filter(|_| self.is_of_environment) {
            meta.insert(wire::meta::KEY_VARIABLE.to_owned(), json!(variable));
        }
        if let (Some(variable), Ok(endpoint)) = (self.address_variable, self.endpoint()) {
            let server = json!({"variable": variable, "authority": endpoint.authority()});
            meta.insert(wire::meta::SERVER.to_owned(), server);
        }
        put("_meta", (!meta.is_empty()).then_some(Value::Object(meta)));
        ModelInfo {
            id: self.id.clone(),
            name: self.name.clone().unwrap_or_else(|| self.id.clone()),
            details,
        }
    }
}

/// What stands before the name of a model, and the name; the usual model of a vendor if no other is named.
fn split_name(text: &str) -> Result<(&str, &str), ModelError> {
    let named = text.rsplit_once('#').filter(|(_, id)| !id.is_empty());
    let usual = || Some((text, model_data::default_model(text)?));
    named.or_else(usual).ok_or_else(|| ModelError::NoName(text.to_owned()))
}

/// The wire format before an address, and the address.
fn split_api(text: &str) -> Result<(Api, &str), ModelError> {
    let scheme = text.split("://").next().unwrap_or("");
    match scheme.split_once('+') {
        None => Ok((Api::default(), text)),
        Some((name, _)) => {
            let api = Api::from_name(name).ok_or_else(|| ModelError::NoApi(name.to_owned()))?;
            Ok((api, &text[name.len() + 1..]))
        }
    }
}

#[cfg(test)]
mod tests;
