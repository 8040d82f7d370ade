//! Vendors that can be named instead of an address, and the models that a key in the environment is enough for (G-70).
//!
//! Promises: a variable is looked at for whether it holds a key, and the key goes nowhere from here. A variable that names
//! another server gets no key sent unencrypted to another machine.
//! Must not know: configurations.

use super::models::{Model, ModelError};
use crate::model_data;
use crate::provider::{Api, with_version};

/// A vendor of models: where its server is, what it speaks, and where people keep its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vendor {
    pub name: &'static str,
    api: Api,
    base_url: &'static str,
    /// The variable that names another server, as the vendor's own tools read it.
    base_url_env: &'static str,
    /// The variables that hold its key, the usual one first.
    key_envs: &'static [&'static str],
    /// Whether the vendor's tools name the server without the version that its addresses begin with.
    adds_version: Option<&'static str>,
}

/// Whether a variable of this name holds a key of a model, as far as vendors name theirs.
pub fn is_key_variable(name: &str) -> bool {
    let mut names = VENDORS.iter().flat_map(|vendor| vendor.key_envs);
    names.any(|known| *known == name)
}

/// In the order in which they are asked.
const VENDORS: [Vendor; 4] = [
    Vendor {
        name: "anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        base_url_env: "ANTHROPIC_BASE_URL",
        key_envs: &["ANTHROPIC_API_KEY"],
        adds_version: Some("v1"),
    },
    Vendor {
        name: "openai",
        api: Api::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_env: "OPENAI_BASE_URL",
        key_envs: &["OPENAI_API_KEY"],
        adds_version: None,
    },
    Vendor {
        name: "gemini",
        api: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        base_url_env: "GOOGLE_GEMINI_BASE_URL",
        key_envs: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        adds_version: Some("v1beta"),
    },
    Vendor {
        name: "openrouter",
        api: Api::Chat,
        base_url: "https://openrouter.ai/api/v1",
        base_url_env: "OPENROUTER_BASE_URL",
        key_envs: &["OPENROUTER_API_KEY"],
        adds_version: None,
    },
];

/// The vendor of a name.
pub(super) fn find(name: &str) -> Option<Vendor> {
    VENDORS.into_iter().find(|vendor| vendor.name == name)
}

/// The variable of the environment by its name; one that holds nothing is none.
pub(super) fn of_environment(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

impl Vendor {
    /// A model of the vendor, where these variables say that its server is.
    pub(super) fn model(
        &self,
        id: &str,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Model, ModelError> {
        let keys = self.key_envs.iter();
        let key = keys.clone().find(|name| read(name).is_some()).or_else(|| keys.clone().next());
        let named = read(self.base_url_env).map(|named| match self.adds_version {
            Some(version) => with_version(&named, version),
            None => named,
        });
        let address = named.as_deref().unwrap_or(self.base_url);
        let model = Model {
            api: self.api,
            key_env: key.map(|name| (*name).to_owned()),
            address_variable: named.as_ref().map(|_| self.base_url_env),
            ..Model::at(address, id)
        };
        let checked = model.connect_to_server().and_then(|endpoint| endpoint.check_encrypted());
        checked.map_err(|error| ModelError::Address { variable: self.base_url_env, error })?;
        Ok(model)
    }
}

/// The models that can be asked because the environment holds a key, the default first: one of each vendor. One whose server
/// cannot be asked is left out, with what is wrong with it.
pub fn models_of_environment(
    read: &dyn Fn(&str) -> Option<String>,
) -> (Vec<Model>, Vec<super::ModelError>) {
    let mut models: Vec<Model> = Vec::new();
    let mut problems = Vec::new();
    for vendor in VENDORS {
        let has_key = vendor.key_envs.iter().any(|name| read(name).is_some());
        let default = model_data::default_model(vendor.name);
        let Some(default) = default.filter(|_| has_key) else {
            continue; // nobody can ask it
        };
        let model = vendor.model(default, read);
        let model = model.map(|model| Model { is_of_environment: true, ..model });
        match model.and_then(|model| model.check().map(|()| model)) {
            Ok(model) => models.push(model),
            Err(problem) => problems.push(problem),
        }
    }
    (models, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(variables: &[(&str, &str)]) -> Vec<Model> {
        let read = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        models_of_environment(&read).0
    }

    #[test]
    fn a_key_is_enough_and_vendors_have_an_order() {
        assert!(models(&[]).is_empty());
        let all = models(&[
            ("OPENROUTER_API_KEY", "d"),
            ("GEMINI_API_KEY", "c"),
            ("OPENAI_API_KEY", "b"),
            ("ANTHROPIC_API_KEY", "a"),
        ]);
        let keys: Vec<&str> = all.iter().filter_map(|it| it.key_env.as_deref()).collect();
        assert_eq!(
            keys,
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"]
        );
        for model in &all {
            assert!(model.facts().prices.is_some(), "{}", model.id);
            assert!(model.is_of_environment);
        }
        let google = models(&[("GOOGLE_API_KEY", "c")]);
        assert_eq!(google[0].key_env.as_deref(), Some("GOOGLE_API_KEY"));
    }

    #[test]
    fn another_server_is_named_as_the_vendors_tools_name_it() {
        let address = |variable: &str, url: &str| {
            let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
            let mut variables: Vec<(&str, &str)> = keys.iter().map(|key| (*key, "k")).collect();
            variables.push((variable, url));
            models(&variables).into_iter().map(|model| model.base_url).collect::<Vec<_>>()
        };
        assert_eq!(address("ANTHROPIC_BASE_URL", "http://localhost:1")[0], "http://localhost:1/v1");
        assert_eq!(address("ANTHROPIC_BASE_URL", "https://h/x/")[0], "https://h/x/v1");
        assert_eq!(address("ANTHROPIC_BASE_URL", "https://h/v1/")[0], "https://h/v1");
        assert_eq!(
            address("ANTHROPIC_BASE_URL", "https://h?api-version=v2")[0],
            "https://h/v1?api-version=v2"
        );
        assert_eq!(address("OPENAI_BASE_URL", "https://h/v1")[1], "https://h/v1");
        assert_eq!(address("GOOGLE_GEMINI_BASE_URL", "https://h")[2], "https://h/v1beta");
    }

    #[test]
    fn a_variable_sends_no_key_unencrypted_to_another_machine() {
        let read = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("k".to_owned()),
            "ANTHROPIC_BASE_URL" => Some("http://proxy.example:8080".to_owned()),
            _ => None,
        };
        let (models, problems) = models_of_environment(&read);
        assert!(models.is_empty(), "{models:?}");
        let message = problems[0].to_string();
        for words in ["ANTHROPIC_BASE_URL", "proxy.example:8080", "https://"] {
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_asked_is_named() {
        let read = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("k".to_owned()),
            "ANTHROPIC_BASE_URL" => Some("nowhere".to_owned()),
            _ => None,
        };
        let (models, problems) = models_of_environment(&read);
        assert!(models.is_empty());
        assert!(problems[0].to_string().contains("http"), "{problems:?}");
    }
}
