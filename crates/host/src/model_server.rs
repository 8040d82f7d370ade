//! Asks a model server, before anybody talks to a model of it: is it there, does it accept the key, which models does it have?
//!
//! Promises: bounded in time and size; no key is in what it says.
//! Must not know: configurations, hosts.

use agents::model_data::ModelFacts;
use agents::provider::{self, ProviderError, ProviderErrorKind};

use crate::config::Model;

/// What a server says of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerModels {
    Listed(Vec<String>),
    /// It takes requests, but has no list, or none that can be read; why.
    Unlisted(String),
}

/// Why a server cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelServerError {
    pub message: String,
    pub advice: Option<&'static str>,
}

impl From<ProviderError> for ModelServerError {
    fn from(error: ProviderError) -> Self {
        Self { message: error.message, advice: error.advice }
    }
}

impl ServerModels {
    /// Whether the server has a model; unknown if it has no list.
    pub fn has(&self, name: &str) -> Option<bool> {
        match self {
            // Some servers list a name with a tag that they do not ask for.
            Self::Listed(names) => Some(
                names
                    .iter()
                    .any(|known| known == name || known.strip_suffix(":latest") == Some(name)),
            ),
            Self::Unlisted(_) => None,
        }
    }
}

/// Asks the server of a model which models it has.
pub async fn ask(model: &Model) -> Result<ServerModels, ModelServerError> {
    let endpoint = model
        .endpoint()
        .map_err(|error| ModelServerError { message: error.to_string(), advice: None })?;
    let error = match provider::list_models(&endpoint).await {
        Ok(names) => return Ok(ServerModels::Listed(names)),
        Err(error) => error,
    };
    let may_have_none =
        matches!(error.kind, ProviderErrorKind::Rejected | ProviderErrorKind::Unreadable);
    if may_have_none && provider::takes_requests(&endpoint).await? {
        Ok(ServerModels::Unlisted(error.message))
    } else {
        Err(error.into())
    }
}

/// The models that the server of a model lists. Asks nothing else of it: who knows what it is.
pub async fn list(model: &Model) -> Result<Vec<String>, ModelServerError> {
    let endpoint = model
        .endpoint()
        .map_err(|error| ModelServerError { message: error.to_string(), advice: None })?;
    Ok(provider::list_models(&endpoint).await?)
}

/// Asks a model's server what it says of the model: sizes, what it takes, prices. Nothing said is nothing known.
pub async fn describe(model: &Model) -> Result<ModelFacts, ModelServerError> {
    let endpoint = model
        .endpoint()
        .map_err(|error| ModelServerError { message: error.to_string(), advice: None })?;
    Ok(provider::ask_facts(&endpoint, model.server_name()).await?)
}

/// Asks a model's server whether it is there, accepts the key and has the model.
pub async fn check(model: &Model) -> Result<(), ModelServerError> {
    const NAMES_SHOWN_MAX: usize = 20;
    let models = ask(model).await?;
    let name = model.server_name();
    let (Some(false), ServerModels::Listed(names)) = (models.has(name), &models) else {
        return Ok(());
    };
    let shown: Vec<&str> = names.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(ModelServerError {
        message: if shown.is_empty() {
            format!("the server has no model `{name}`, nor any other")
        } else {
            format!("the server has no model `{name}`; it has: {}{more}", shown.join(", "))
        },
        advice: None,
    })
}
