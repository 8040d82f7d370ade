//! The agent's own sessions, one file each. A prompt is on disk before it is worked on; what was answered only when it is whole.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What is kept of a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub directory: String,
    /// The texts of its prompts.
    pub prompts: Vec<String>,
    /// Updates that tell the past again.
    pub past: Vec<Value>,
    /// What was set: `mode`, `model`, options by id.
    pub values: Map<String, Value>,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    directory: PathBuf,
}

impl Sessions {
    pub(crate) fn open(state: &Path) -> Result<Self> {
        let directory = state.join("sessions");
        std::fs::create_dir_all(&directory).context("cannot make the directory of sessions")?;
        Ok(Self { directory })
    }

    pub(crate) fn create(&self, stored: &Stored) -> Result<String> {
        for number in 0_u64.. {
            let id = format!("session-{}-{number}", std::process::id());
            if !self.path(&id).exists() {
                self.save(&id, stored)?;
                return Ok(id);
            }
        }
        anyhow::bail!("no number is left for a session")
    }

    /// A session of a process in this directory; none elsewhere, as with agents that look by directory.
    pub(crate) fn find(&self, id: &str, directory: &str) -> Option<Stored> {
        let is_name = !id.is_empty() && !id.contains(['/', '\\', '.']);
        let text = std::fs::read_to_string(self.path(id).as_path());
        let stored: Stored = serde_json::from_str(&text.ok()?).ok()?;
        (is_name && stored.directory == directory).then_some(stored)
    }

    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut Stored)) -> Result<Stored> {
        let text = std::fs::read_to_string(self.path(id)).context("the session is gone")?;
        let mut stored: Stored = serde_json::from_str(&text)?;
        change(&mut stored);
        self.save(id, &stored)?;
        Ok(stored)
    }

    fn save(&self, id: &str, stored: &Stored) -> Result<()> {
        let new = self.directory.join(format!("{id}.new"));
        std::fs::write(&new, serde_json::to_vec(stored)?)?;
        Ok(std::fs::rename(new, self.path(id))?)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }
}

impl Stored {
    /// The script's fields of a session result with what was set since.
    pub(crate) fn apply_values(&self, fields: &Map<String, Value>) -> Map<String, Value> {
        let mut fields = fields.clone();
        if let Some(mode) = self.values.get("mode")
            && let Some(modes) = fields.get_mut("modes")
        {
            modes["currentModeId"] = mode.clone();
        }
        if let Some(model) = self.values.get("model")
            && let Some(models) = fields.get_mut("models")
        {
            models["currentModelId"] = model.clone();
        }
        let options = fields.get_mut("configOptions").and_then(Value::as_array_mut);
        for option in options.into_iter().flatten() {
            let id = option["id"].as_str().unwrap_or_default();
            if let Some(value) = self.values.get(id) {
                option["currentValue"] = value.clone();
            }
        }
        fields
    }

    /// The prompts, for `{{history}}`.
    pub(crate) fn history(&self) -> String {
        json!(self.prompts).to_string()
    }
}
