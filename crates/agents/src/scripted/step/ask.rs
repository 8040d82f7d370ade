//! The step that asks the user.

use serde_json::Value;

use super::super::script::{ScriptError, at};
use super::super::shape::{Shape, ShapedValue};
use super::field::{StepFields, each, text};
use super::tool::unique;

/// An input request.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Ask {
    pub(in super::super) message: Option<String>,
    pub(in super::super) url: Option<String>,
    pub(in super::super) questions: Vec<ShapedValue>,
}

impl Ask {
    pub(super) fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let fields = StepFields::of(value, location, &["message", "questions", "url"])?;
        if fields.object.is_empty() {
            return Err(at(location, "asks nothing: needs message, questions or url"));
        }
        Ok(Self {
            message: fields.optional("message", text)?,
            url: fields.optional("url", text)?,
            questions: fields.optional("questions", questions)?.unwrap_or_default(),
        })
    }
}

fn questions(value: &Value, location: &str) -> Result<Vec<ShapedValue>, ScriptError> {
    let read = |value: &Value, location: &str| ShapedValue::parse(Shape::Question, value, location);
    let questions = each(value, location, read)?;
    unique(&questions, "id", location)?;
    Ok(questions)
}
