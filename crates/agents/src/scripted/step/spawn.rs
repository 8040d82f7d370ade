//! The step that starts a worker: a scene of its own, played in a chat of its own.

use serde_json::Value;

use super::super::script::{ScriptError, list};
use super::ScriptStep;
use super::field::{StepFields, name, one_of};

/// A worker and what it plays.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Spawn {
    pub(in super::super) title: Option<String>,
    /// `ChatInteractivity`
    pub(in super::super) interactivity: Option<&'static str>,
    pub(in super::super) agent: Option<String>,
    /// As written: they are handed over as they are, and were checked.
    pub(in super::super) steps: Vec<Value>,
}

const INTERACTIVITY: [(&str, &str); 3] =
    [("full", "full"), ("read-only", "read-only"), ("hidden", "hidden")];

impl Spawn {
    pub(super) fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let fields =
            StepFields::of(value, location, &["title", "interactivity", "agent", "steps"])?;
        let steps_location = fields.at("steps");
        let steps = list(fields.object.get("steps"), &steps_location)?;
        ScriptStep::parse_all(steps, &steps_location)?;
        Ok(Self {
            title: fields.optional("title", name)?,
            interactivity: fields.optional("interactivity", |value, location| {
                one_of(value, location, &INTERACTIVITY)
            })?,
            agent: fields.optional("agent", name)?,
            steps: steps.to_vec(),
        })
    }
}
