//! Tool calls as an agent makes them: how a call starts, what it is ready to do, and its result.
//!
//! Promises: what is built here has every field that clients need. Blocks inside (contents, edits, options) stay JSON, so
//! that fields the protocol does not know are handed on, and large bodies can be detached in place.
//! Must not know: which tools there are.

use std::time::SystemTime;

use serde_json::{Value, json};
use wire::Object;
use wire::published::common::StringOrMarkdown;
use wire::published::state::{ToolCallConfirmationReason, ToolCallContributor, ToolInput};

/// How a tool call is announced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolStart {
    pub name: String,
    pub display_name: String,
    pub intention: Option<String>,
    /// Who carries it out. The host finds the client that is to carry out a client's tool.
    pub executor: ToolExecutor,
    /// An MCP server.
    pub contributor: Option<ToolCallContributor>,
    pub meta: Option<Object>,
    /// When it began, where that is earlier than the event.
    pub began: Option<SystemTime>,
}

/// Who carries out a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolExecutor {
    #[default]
    Agent,
    /// An active client that offers a tool of this name. [`crate::AgentEvent::ClientToolAwaited`] waits for it.
    Client,
}

/// A tool that an active client offers: a `ToolDefinition` as far as a model needs it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClientToolOffer {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Option<Value>,
}

/// A call whose input is complete: the fields of `chat/toolCallReady` without its ids.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolReady {
    pub invocation_message: StringOrMarkdown,
    pub tool_input: Option<ToolInput>,
    /// Set if the call runs without anybody being asked.
    pub confirmed: Option<ToolCallConfirmationReason>,
    pub confirmation_title: Option<StringOrMarkdown>,
    /// `FileEdit`s to be shown before the decision.
    pub edits: Vec<Value>,
    /// Whether who decides may edit the input.
    pub editable: bool,
    /// `ConfirmationOption`s.
    pub options: Vec<Value>,
    /// Further fields of the action.
    pub extra: Object,
}

/// A `ToolCallResult`, as the JSON object that is sent: it has `success` and `pastTenseMessage`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult(Object);

/// JSON that is not what the protocol asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is missing or has the wrong type")]
pub struct MalformedField(pub &'static str);

impl ToolReady {
    /// A call that runs without anybody being asked.
    pub fn confirmed(invocation_message: impl Into<StringOrMarkdown>, input: String) -> Self {
        Self {
            confirmed: Some(ToolCallConfirmationReason::NotNeeded),
            ..Self::unconfirmed(invocation_message, input)
        }
    }

    /// A call that waits for a decision.
    pub fn unconfirmed(invocation_message: impl Into<StringOrMarkdown>, input: String) -> Self {
        Self {
            invocation_message: invocation_message.into(),
            tool_input: Some(ToolInput::Inline(input)),
            ..Self::default()
        }
    }

    /// Reads the fields of `chat/toolCallReady` that came as JSON.
    pub fn from_object(mut fields: Object) -> Result<Self, MalformedField> {
        let edits = match take::<Object>(&mut fields, "edits")? {
            None => Vec::new(),
            Some(mut edits) => take(&mut edits, "items")?.ok_or(MalformedField("edits"))?,
        };
        Ok(Self {
            invocation_message: take(&mut fields, "invocationMessage")?
                .ok_or(MalformedField("invocationMessage"))?,
            tool_input: take(&mut fields, "toolInput")?,
            confirmed: take(&mut fields, "confirmed")?,
            confirmation_title: take(&mut fields, "confirmationTitle")?,
            edits,
            editable: take(&mut fields, "editable")?.unwrap_or(false),
            options: take(&mut fields, "options")?.unwrap_or_default(),
            extra: fields,
        })
    }

    /// The fields of `chat/toolCallReady`, without its ids.
    pub fn into_object(self) -> Object {
        let mut fields = Object::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("invocationMessage", json!(self.invocation_message));
        if let Some(input) = self.tool_input {
            put("toolInput", json!(input));
        }
        if let Some(confirmed) = self.confirmed {
            put("confirmed", json!(confirmed));
        }
        if let Some(title) = self.confirmation_title {
            put("confirmationTitle", json!(title));
        }
        if !self.edits.is_empty() {
            put("edits", json!({"items": self.edits}));
        }
        if self.editable {
            put("editable", json!(true));
        }
        if !self.options.is_empty() {
            put("options", Value::Array(self.options));
        }
        fields.extend(self.extra);
        fields
    }
}

impl ToolResult {
    pub fn new(success: bool, past_tense_message: impl Into<StringOrMarkdown>) -> Self {
        let message = past_tense_message.into();
        let mut fields = Object::new();
        fields.insert("success".to_owned(), json!(success));
        fields.insert("pastTenseMessage".to_owned(), json!(message));
        Self(fields)
    }

    /// A call that came to nothing, and why.
    pub fn failed(past_tense_message: impl Into<StringOrMarkdown>, why: &str) -> Self {
        Self::new(false, past_tense_message).with_error(json!({"message": why}))
    }

    /// `ToolResultContent` blocks.
    pub fn with_content(mut self, content: Vec<Value>) -> Self {
        self.0.insert("content".to_owned(), Value::Array(content));
        self
    }

    pub fn with_structured_content(mut self, content: Object) -> Self {
        let content = Value::Object(content);
        self.0.insert("structuredContent".to_owned(), content);
        self
    }

    pub fn with_error(mut self, error: Value) -> Self {
        self.0.insert("error".to_owned(), error);
        self
    }

    /// Takes a `ToolCallResult` that came as JSON.
    pub fn from_object(fields: Object) -> Result<Self, MalformedField> {
        if !fields.get("success").is_some_and(Value::is_boolean) {
            return Err(MalformedField("success"));
        }
        let is_message = match fields.get("pastTenseMessage") {
            Some(Value::String(_)) => true,
            Some(Value::Object(message)) => message.get("markdown").is_some_and(Value::is_string),
            _ => false,
        };
        if is_message { Ok(Self(fields)) } else { Err(MalformedField("pastTenseMessage")) }
    }

    pub fn success(&self) -> bool {
        self.0.get("success") == Some(&Value::Bool(true))
    }

    /// The `ToolResultContent` blocks.
    pub fn content(&self) -> &[Value] {
        self.0.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// The object, for detaching large bodies from it.
    pub fn object_mut(&mut self) -> &mut Object {
        &mut self.0
    }

    pub fn into_object(self) -> Object {
        self.0
    }
}

fn take<T: serde::de::DeserializeOwned>(
    fields: &mut Object,
    name: &'static str,
) -> Result<Option<T>, MalformedField> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match serde_json::from_value(value) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(MalformedField(name)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn ready_fields_go_through_unchanged() {
        let fields = object(json!({
            "invocationMessage": {"markdown": "**go**"},
            "toolInput": "ls",
            "confirmationTitle": "Run",
            "edits": {"items": [{"after": {"uri": "file:///a", "own": 1}}]},
            "editable": true,
            "options": [{"id": "yes", "label": "Yes", "kind": "approve", "own": 2}],
            "_meta": {"own": 3},
        }));
        let ready = ToolReady::from_object(fields.clone()).unwrap();
        assert_eq!(ready.confirmed, None);
        assert_eq!(ready.into_object(), fields);
    }

    #[test]
    fn values_that_clients_could_not_read_are_refused() {
        for (fields, name) in [
            (json!({}), "invocationMessage"),
            (json!({"invocationMessage": 7}), "invocationMessage"),
            (json!({"invocationMessage": "m", "options": "none"}), "options"),
            (json!({"invocationMessage": "m", "edits": {}}), "edits"),
        ] {
            let read = ToolReady::from_object(object(fields));
            assert_eq!(read, Err(MalformedField(name)));
        }
        for (fields, name) in [
            (json!({}), "success"),
            (json!({"success": "yes", "pastTenseMessage": "m"}), "success"),
            (json!({"success": true}), "pastTenseMessage"),
            (json!({"success": true, "pastTenseMessage": 1}), "pastTenseMessage"),
        ] {
            let read = ToolResult::from_object(object(fields));
            assert_eq!(read, Err(MalformedField(name)));
        }
    }
}
