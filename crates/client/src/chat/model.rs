//! The models of a chat: which its agent offers, and which one the next message is for.
//!
//! Promises: a chat stays with the model that its last message was for, until somebody chooses another one; one that the
//! agent does not offer any more is reported as gone, never replaced in silence.

use serde_json::{Map, Value};
use wire::state::ChatState;

use super::{ModelSetting, OpenChat};

/// Names that are listed of many.
const NAMES_MAX: usize = 8;

/// A model that the agent of a chat offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOffer {
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Tokens it can look at.
    pub context_tokens: Option<u64>,
    /// Why it cannot be used now, if that is so.
    pub unavailable: Option<&'static str>,
    /// What can be chosen about it.
    pub settings: Vec<ModelSetting>,
}

/// The model that the next message is for.
#[derive(Debug, Clone, PartialEq)]
pub enum CurrentModel {
    Offered(ModelOffer),
    /// It was chosen or used before, and the agent does not offer it any more.
    Gone {
        id: String,
    },
    /// The agent has no models to choose from.
    None,
}

/// A model, and what was chosen about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelSelection {
    pub id: String,
    pub settings: Map<String, Value>,
}

impl OpenChat {
    /// The model that messages are for from now on; the agent's default if absent.
    pub fn set_model(&mut self, model: Option<String>) {
        self.model = model.map(|id| ModelSelection { id, ..ModelSelection::default() });
    }

    /// The same, with settings.
    pub fn select_model(&mut self, model: ModelSelection) {
        self.model = Some(model);
    }

    /// The models of the agent; none if the agent is gone or has none.
    pub fn models(&self) -> Vec<ModelOffer> {
        let Some(provider) = self.session_state().map(|session| session.provider.clone()) else {
            return Vec::new(); // the session is not there: neither are its models
        };
        let root = self.live.root();
        let mut agents = root
            .iter()
            .flat_map(|root| root.agents.iter())
            .filter(|agent| agent["provider"] == provider.as_str());
        let models =
            agents.next().and_then(|agent| agent["models"].as_array()).into_iter().flatten();
        models.filter_map(ModelOffer::read).collect()
    }

    /// Whether the host still has the agent of this session.
    pub fn has_agent(&self) -> bool {
        let session = self.session_state();
        let root = self.live.root();
        match (session, root) {
            (Some(session), Some(root)) => {
                let mut agents = root.agents.iter();
                agents.any(|agent| agent["provider"] == session.provider.as_str())
            }
            // Nothing is known: nothing is reported as gone.
            _ => true,
        }
    }

    /// What people call the agent of this session.
    pub fn agent_name(&self) -> Option<String> {
        let session = self.session_state()?;
        let root = self.live.root();
        let mut agents = root
            .iter()
            .flat_map(|root| root.agents.iter())
            .filter(|agent| agent["provider"] == session.provider.as_str());
        let name = agents.find_map(|agent| agent["displayName"].as_str().map(str::to_owned));
        Some(name.unwrap_or_else(|| session.provider.clone()))
    }

    /// The model that the next message is for.
    pub fn current_model(&self) -> CurrentModel {
        let models = self.models();
        let chosen = self.wanted_model().map(|model| model.id);
        match chosen {
            Some(id) => match models.into_iter().find(|model| model.id == id) {
                Some(model) => CurrentModel::Offered(model),
                None => CurrentModel::Gone { id },
            },
            // An agent's first model is its default.
            None => match models.into_iter().next() {
                Some(model) => CurrentModel::Offered(model),
                None => CurrentModel::None,
            },
        }
    }

    /// Tokens that the model of the next message can look at, if that is known.
    pub fn context_tokens(&self) -> Option<u64> {
        match self.current_model() {
            CurrentModel::Offered(model) => model.context_tokens,
            CurrentModel::Gone { .. } | CurrentModel::None => None,
        }
    }

    /// What was chosen about the model that the next message is for.
    pub fn model_settings(&self) -> Map<String, Value> {
        self.wanted_model().unwrap_or_default().settings
    }

    /// Goes on with the model that the chat used last. Returns what is to be said if that, or the agent, is gone.
    pub(super) fn resume_model(&mut self) -> Option<String> {
        self.model = None;
        if !self.has_agent() {
            let provider = self.session_state()?.provider.clone();
            let root = self.live.root()?;
            let agents = root.agents.iter().filter_map(|agent| agent["provider"].as_str());
            return Some(format!(
                "the host has no agent `{provider}` now, so nobody can answer here; it has: {}",
                name_some(agents.collect())
            ));
        }
        let CurrentModel::Gone { id } = self.current_model() else {
            return None; // it is there, or the chat used none
        };
        let models = self.models();
        let ids = models.iter().map(|model| model.id.as_str());
        Some(format!(
            "the model `{id}` that this chat used is not there any more. Nothing is sent to another until you choose it; \
             there are: {}",
            name_some(ids.collect())
        ))
    }

    /// The model that a message names. One that the chat used and that is gone is not named: the host says so then, and
    /// asks nobody else in its place.
    pub(super) fn next_model(&self) -> Option<ModelSelection> {
        if self.model.is_some() {
            return self.model.clone();
        }
        let wanted = self.wanted_model()?;
        self.models().iter().any(|model| model.id == wanted.id).then_some(wanted)
    }

    /// The model that was chosen here, else that of the last message.
    fn wanted_model(&self) -> Option<ModelSelection> {
        if self.model.is_some() {
            return self.model.clone();
        }
        let chat = self.confirmed()?;
        self.last_model.of(&chat)
    }
}

fn name_some(names: Vec<&str>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).copied().collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 if shown.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl ModelOffer {
    fn read(model: &Value) -> Option<Self> {
        let id = model["id"].as_str()?.to_owned();
        let name = model["name"].as_str().filter(|name| !name.is_empty());
        let properties = model["configSchema"]["properties"].as_object();
        let settings = properties.into_iter().flatten();
        Some(Self {
            name: name.unwrap_or(&id).to_owned(),
            context_tokens: model["maxContextWindow"].as_u64(),
            unavailable: match model["policyState"].as_str() {
                Some("disabled") => Some("not available"),
                Some("unconfigured") => Some("not set up"),
                _ => None,
            },
            settings: settings
                .filter_map(|(key, schema)| ModelSetting::read(key, schema))
                .collect(),
            id,
        })
    }
}

/// The model that a chat used last, read once for each turn: turns are kept as text. Messages that ask no model, such as a
/// command of the host, name none.
#[derive(Debug, Default)]
pub(super) struct LastModel(parking_lot::Mutex<Option<(String, Option<ModelSelection>)>>);

impl LastModel {
    fn of(&self, chat: &ChatState) -> Option<ModelSelection> {
        let active = chat.active_turn.as_ref();
        if let Some(active) = active.and_then(|active| read_selection(&active.message)) {
            return Some(active);
        }
        let last = chat.turns.last()?;
        let mut known = self.0.lock();
        match &*known {
            Some((turn, model)) if *turn == last.id => model.clone(),
            _ => {
                let mut newest_first = chat.turns.as_slice().iter().rev();
                let model = newest_first.find_map(|turn| read_selection(&turn.value()["message"]));
                *known = Some((last.id.clone(), model.clone()));
                model
            }
        }
    }
}

fn read_selection(message: &Value) -> Option<ModelSelection> {
    let model = &message["model"];
    let settings = model["config"].as_object().cloned();
    Some(ModelSelection {
        id: model["id"].as_str()?.to_owned(),
        settings: settings.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_model_is_read_with_what_can_be_chosen_about_it() {
        let model = ModelOffer::read(&json!({
            "id": "m", "name": "Model M", "maxContextWindow": 8192, "policyState": "disabled",
            "configSchema": {"type": "object", "properties": {
                "effort": {"type": "string", "title": "Effort", "enum": ["low", "high"], "default": "low"},
                "fast": {"type": "boolean", "title": "Fast"},
                "temperature": {"type": "number", "title": "Temperature"},
            }},
        })).unwrap();
        assert_eq!(model.name, "Model M");
        assert_eq!(model.context_tokens, Some(8192));
        assert_eq!(model.unavailable, Some("not available"));
        let settings: Vec<(&str, usize)> = model
            .settings
            .iter()
            .map(|setting| (setting.title.as_str(), setting.values().len()))
            .collect();
        assert_eq!(settings, [("Effort", 2), ("Fast", 2), ("Temperature", 0)]);
        assert_eq!(model.settings[0].default, Some(json!("low")));
        assert_eq!(ModelOffer::read(&json!({"id": "x"})).unwrap().name, "x");
        assert_eq!(ModelOffer::read(&json!({"name": "x"})), None);
    }

    #[test]
    fn the_last_message_tells_the_model() {
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        let known = LastModel::default();
        assert_eq!(known.of(&chat), None);
        let turn = json!({
            "id": "t", "state": "complete", "responseParts": [],
            "message": {"text": "x", "model": {"id": "m", "config": {"effort": "high"}}},
        });
        let turn = wire::state::Turn::from_value(&turn).unwrap();
        chat.turns = std::sync::Arc::new(wire::state::TurnList::new(vec![turn.into()]));
        let model = known.of(&chat).unwrap();
        assert_eq!((model.id.as_str(), &model.settings["effort"]), ("m", &json!("high")));
        assert_eq!(known.of(&chat), Some(model), "read once");
    }
}
