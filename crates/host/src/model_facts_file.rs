//! What model servers said of their models when they were last asked: a file of the data directory beside the configuration.
//!
//! Promises: the file is replaced whole; it is bounded; one that cannot be read costs what was said, and nothing else.
//! Must not know: how servers are asked.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agents::model_data::ModelFacts;
use agents::native::ReportedFacts;
use serde::{Deserialize, Serialize};

use crate::config::{Api, Model};
use crate::private_file;

/// The file in the data directory.
pub const MODEL_FACTS_FILE: &str = "model-facts.json";

/// The largest file, and the most models of it.
const FILE_BYTES_MAX: u64 = 1 << 20;
const MODELS_MAX: usize = 500;

/// The version of the format; a file of another is not read.
const VERSION: u64 = 1;

/// What servers said, newest last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFactsFile {
    version: u64,
    models: Vec<ServerModelFacts>,
}

/// What a server said of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerModelFacts {
    api: Api,
    base_url: String,
    model: String,
    /// When: RFC 3339.
    asked: String,
    facts: ModelFacts,
}

impl Default for ModelFactsFile {
    fn default() -> Self {
        Self { version: VERSION, models: Vec::new() }
    }
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelFactsFileError {
    #[error("{path} cannot be read or written: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} is not what `greenroom models refresh` writes ({why}); remove it and refresh again"
    )]
    Unreadable { path: PathBuf, why: String },
}

impl ModelFactsFile {
    /// What the file of a data directory holds; nothing if it is not there.
    pub fn load(data: &Path) -> Result<Self, ModelFactsFileError> {
        let path = data.join(MODEL_FACTS_FILE);
        let unreadable = |why: String| ModelFactsFileError::Unreadable { path: path.clone(), why };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(source) => return Err(ModelFactsFileError::Io { path, source }),
        };
        let mut text = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text);
        read.map_err(|source| ModelFactsFileError::Io { path: path.clone(), source })?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(unreadable(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        let reported: Self =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        match reported.version {
            VERSION => Ok(reported),
            other => Err(unreadable(format!("it is of version {other}"))),
        }
    }

    /// Notes what the server of a model said of it; the oldest goes where there are too many.
    pub fn insert(&mut self, model: &Model, facts: ModelFacts, asked: String) {
        let is_same = |reported: &ServerModelFacts| {
            reported.api == model.api
                && reported.base_url == model.base_url
                && reported.model == model.server_name()
        };
        self.models.retain(|reported| !is_same(reported));
        self.models.push(ServerModelFacts {
            api: model.api,
            base_url: model.base_url.clone(),
            model: model.server_name().to_owned(),
            asked,
            facts,
        });
        let surplus = self.models.len().saturating_sub(MODELS_MAX);
        self.models.drain(..surplus);
    }

    /// Replaces the file of a data directory, which is there.
    pub fn save(&self, data: &Path) -> Result<(), ModelFactsFileError> {
        let path = data.join(MODEL_FACTS_FILE);
        let text = wire::rpc::to_json(self);
        let written = private_file::replace(&path, text.as_ref());
        written.map_err(|source| ModelFactsFileError::Io { path, source })
    }

    /// For the native agent.
    pub fn facts(&self) -> ReportedFacts {
        let mut facts = ReportedFacts::default();
        for reported in &self.models {
            let parsed = Model::parse(&format!(
                "{}+{}#{}",
                reported.api.name(),
                reported.base_url,
                reported.model
            ));
            // An address that no model can have belongs to none.
            if let Ok(mut model) = parsed {
                model.base_url.clone_from(&reported.base_url);
                facts.insert(model, reported.facts.clone());
            }
        }
        facts
    }
}

/// What the file of a data directory says. One that cannot be used is reported and does without.
pub(crate) fn load_facts(data: &Path) -> ReportedFacts {
    match ModelFactsFile::load(data) {
        Ok(reported) => reported.facts(),
        Err(error) => {
            // The path of a user is not for the log.
            let why = match error {
                ModelFactsFileError::Io { source, .. } => source.to_string(),
                ModelFactsFileError::Unreadable { why, .. } => why,
            };
            tracing::warn!(%why, "{MODEL_FACTS_FILE} cannot be used; `greenroom models refresh` writes it again");
            ReportedFacts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(tokens: u64) -> ModelFacts {
        ModelFacts { context_tokens: Some(tokens), ..ModelFacts::default() }
    }

    #[test]
    fn what_was_said_is_found_again_and_replaced() {
        let data = tempfile::tempdir().unwrap();
        let mut reported = ModelFactsFile::load(data.path()).unwrap();
        assert_eq!(reported, ModelFactsFile::default());
        let model = Model::parse("anthropic+http://h/v1#m").unwrap();
        let mut renamed = model.clone();
        renamed.id = "mine".to_owned();
        renamed.model = Some("m".to_owned());
        reported.insert(&model, facts(1), "t".to_owned());
        reported.insert(&renamed, facts(2), "t".to_owned());
        reported.save(data.path()).unwrap();
        let again = ModelFactsFile::load(data.path()).unwrap();
        assert_eq!(again, reported);
        assert_eq!(again.models.len(), 1);
        assert_eq!(again.facts().of(&renamed), facts(2));
        let other = Model::parse("http://h/v1#m").unwrap();
        assert_eq!(again.facts().of(&other), ModelFacts::default(), "another wire format");
    }

    #[test]
    fn a_file_that_is_something_else_is_named_and_costs_nothing() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(MODEL_FACTS_FILE);
        for text in ["", "[]", "{\"version\": 2, \"models\": []}", "{\"version\": 1}"] {
            std::fs::write(&path, text).unwrap();
            let error = ModelFactsFile::load(data.path()).unwrap_err().to_string();
            assert!(error.contains(MODEL_FACTS_FILE) && error.contains("refresh"), "{error}");
            assert_eq!(load_facts(data.path()), ReportedFacts::default());
        }
        std::fs::write(&path, vec![b' '; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(ModelFactsFile::load(data.path()).is_err());
    }

    #[test]
    fn the_number_is_bounded() {
        let mut reported = ModelFactsFile::default();
        for n in 0..MODELS_MAX + 3 {
            let model = Model::parse(&format!("http://h/v1#m{n}")).unwrap();
            reported.insert(&model, facts(1), String::new());
        }
        assert_eq!(reported.models.len(), MODELS_MAX);
        assert_eq!(reported.models[0].model, "m3");
    }
}
