//! Values that go out on the wire as the script wrote them: held to the protocol's shapes.
//!
//! Promises: what no client could read is refused when the script is loaded, or, where substitution decides, when the
//! step is played; fields the protocol does not know are handed on. A numeric field also takes a string that is a
//! number after substitution (G-03).

use serde_json::{Value, from_value, json};
use wire::published::common::StringOrMarkdown;
use wire::published::state as ahp;

use super::script::{ScriptError, at};
use super::substitute::{Scope, may_change};

/// What a value of a script must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `StringOrMarkdown`
    Words,
    /// `ConfirmationOption`
    Choice,
    /// `ChatInputQuestion`
    Question,
    /// `FileEdit`
    Edit,
    /// `ToolResultContent`
    Content,
}

/// A value of a script with its shape, still as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapedValue {
    shape: Shape,
    value: Value,
}

/// Fields that are numbers wherever they occur in these shapes.
const NUMERIC: [&str; 7] = ["group", "min", "max", "sizeHint", "added", "removed", "exitCode"];

impl ShapedValue {
    pub(super) fn parse(shape: Shape, value: &Value, location: &str) -> Result<Self, ScriptError> {
        // What substitution decides is let through here, and read again when it is played.
        let supposed = |text: &str| number(text).or_else(|| may_change(text).then(|| json!(0)));
        let read = with_numbers(value, &supposed);
        shape.check(&read).map_err(|what| at(location, what))?;
        Ok(Self { shape, value: value.clone() })
    }

    /// The value in a scene that is being played.
    pub(super) fn value(&self, scope: &Scope) -> Result<Value, String> {
        let value = with_numbers(&scope.substitute_in(&self.value), &number);
        self.shape.check(&value)?;
        Ok(value)
    }

    /// The same, of a value whose shape is [`Shape::Words`].
    pub(super) fn markdown(&self, scope: &Scope) -> Result<StringOrMarkdown, String> {
        from_value(self.value(scope)?).map_err(|error| error.to_string())
    }

    /// A field that is a string, as written.
    pub(super) fn field(&self, key: &str) -> Option<&str> {
        self.value[key].as_str()
    }
}

impl Shape {
    fn check(self, value: &Value) -> Result<(), String> {
        let checked = match self {
            Self::Words => {
                let read = from_value::<StringOrMarkdown>(value.clone());
                return read
                    .map(drop)
                    .map_err(|_| "must be a string or {\"markdown\": \"...\"}".to_owned());
            }
            _ if !value.is_object() => return Err("must be a JSON object".to_owned()),
            Self::Choice => return choice(value),
            Self::Question => question(value)?,
            Self::Edit if value.get("before").is_none() && value.get("after").is_none() => {
                return Err("needs `before`, `after` or both".to_owned());
            }
            Self::Edit => from_value::<ahp::FileEdit>(value.clone()).map(drop),
            Self::Content => content(value)?,
        };
        checked.map_err(|error| error.to_string())
    }
}

fn choice(value: &Value) -> Result<(), String> {
    let choice: ahp::ConfirmationOption =
        from_value(value.clone()).map_err(|error| error.to_string())?;
    match choice.kind {
        ahp::ConfirmationOptionKind::Unknown(kind) => {
            Err(format!("unknown kind {kind:?}; known here: approve, deny"))
        }
        _ if choice.id.is_empty() => Err("`id` must not be empty".to_owned()),
        _ => Ok(()),
    }
}

/// The published union takes a known kind with a bad payload for an unknown one: each is read by itself.
fn question(value: &Value) -> Result<serde_json::Result<()>, String> {
    let kind = value["kind"].as_str().ok_or("`kind` is missing")?;
    let value = value.clone();
    Ok(match kind {
        "text" => from_value::<ahp::ChatInputTextQuestion>(value).map(drop),
        "number" | "integer" => from_value::<ahp::ChatInputNumberQuestion>(value).map(drop),
        "boolean" => from_value::<ahp::ChatInputBooleanQuestion>(value).map(drop),
        "single-select" => from_value::<ahp::ChatInputSingleSelectQuestion>(value).map(drop),
        "multi-select" => from_value::<ahp::ChatInputMultiSelectQuestion>(value).map(drop),
        _ => {
            return Err(format!(
                "unknown kind {kind:?}; known here: text, number, integer, boolean, single-select, multi-select"
            ));
        }
    })
}

fn content(value: &Value) -> Result<serde_json::Result<()>, String> {
    let kind = value["type"].as_str().ok_or("`type` is missing")?;
    let value = value.clone();
    Ok(match kind {
        "text" => from_value::<ahp::ToolResultTextContent>(value).map(drop),
        "embeddedResource" => from_value::<ahp::ToolResultEmbeddedResourceContent>(value).map(drop),
        "resource" => from_value::<ahp::ToolResultResourceContent>(value).map(drop),
        "fileEdit" => from_value::<ahp::ToolResultFileEditContent>(value).map(drop),
        "terminal" => from_value::<ahp::ToolResultTerminalContent>(value).map(drop),
        "subagent" => from_value::<ahp::ToolResultSubagentContent>(value).map(drop),
        _ => {
            return Err(format!(
                "unknown type {kind:?}; known here: text, embeddedResource, resource, fileEdit, terminal, subagent"
            ));
        }
    })
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    let whole = text.parse::<i64>().map(Value::from).ok();
    whole.or_else(|| text.parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number))
}

/// The value with strings in numeric fields read as numbers where they are some.
fn with_numbers(value: &Value, read: &dyn Fn(&str) -> Option<Value>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| with_numbers(item, read)).collect(),
        Value::Object(fields) => {
            let counts = matches!(value["kind"].as_str(), Some("number" | "integer"));
            let is_numeric =
                |key: &str| NUMERIC.contains(&key) || (key == "defaultValue" && counts);
            let fields = fields.iter().map(|(key, value)| {
                let value = match value {
                    Value::String(text) if is_numeric(key) => {
                        read(text).unwrap_or_else(|| value.clone())
                    }
                    _ if key == "_meta" => value.clone(),
                    _ => with_numbers(value, read),
                };
                (key.clone(), value)
            });
            fields.collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_outcome(shape: Shape, value: Value) -> String {
        match ShapedValue::parse(shape, &value, "here") {
            Ok(_) => "loads".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_script_that_clients_could_not_read_does_not_load() {
        let mut lines = String::new();
        for (shape, value) in [
            (Shape::Words, json!("plain")),
            (Shape::Words, json!({"markdown": "**bold**"})),
            (Shape::Words, json!(7)),
            (Shape::Choice, json!({"id": "a", "label": "A", "kind": "approve", "group": "$1"})),
            (Shape::Choice, json!("approve")),
            (Shape::Choice, json!({"id": "a", "kind": "approve"})),
            (Shape::Choice, json!({"id": "", "label": "A", "kind": "deny"})),
            (Shape::Choice, json!({"id": "a", "label": "A", "kind": "maybe"})),
            (Shape::Choice, json!({"id": "a", "label": "A", "kind": "deny", "group": "one"})),
            (Shape::Question, json!({"kind": "integer", "id": "n", "message": "?", "min": 1})),
            (Shape::Question, json!({"kind": "colour", "id": "n", "message": "?"})),
            (Shape::Question, json!({"id": "n", "message": "?"})),
            (Shape::Question, json!({"kind": "text", "id": "n"})),
            (Shape::Question, json!({"kind": "single-select", "id": "n", "message": "?"})),
            (Shape::Edit, json!({})),
            (Shape::Edit, json!({"after": {"uri": "file:///a"}})),
            (Shape::Edit, json!({"after": {"uri": "file:///a", "content": {"uri": "x:/y"}}})),
            (Shape::Content, json!({"type": "text", "text": "t"})),
            (Shape::Content, json!({"type": "text"})),
            (Shape::Content, json!({"type": "song"})),
            (Shape::Content, json!({"text": "t"})),
        ] {
            lines.push_str(&parse_outcome(shape, value));
            lines.push('\n');
        }
        expect_test::expect![[r#"
            loads
            loads
            here: must be a string or {"markdown": "..."}
            loads
            here: must be a JSON object
            here: missing field `label`
            here: `id` must not be empty
            here: unknown kind "maybe"; known here: approve, deny
            here: invalid type: string "one", expected i64
            loads
            here: unknown kind "colour"; known here: text, number, integer, boolean, single-select, multi-select
            here: `kind` is missing
            here: missing field `message`
            here: missing field `options`
            here: needs `before`, `after` or both
            here: missing field `content`
            loads
            loads
            here: missing field `text`
            here: unknown type "song"; known here: text, embeddedResource, resource, fileEdit, terminal, subagent
            here: `type` is missing
        "#]].assert_eq(&lines);
    }

    #[test]
    fn numbers_may_be_placeholders_and_strings_stay_strings() {
        let scope = Scope::new("", vec!["3".to_owned(), "many".to_owned()]);
        let question = json!({"kind": "integer", "id": "$1", "message": "$1", "min": "$1", "max": "4.5",
            "defaultValue": "2", "_meta": {"min": "$1"}});
        let question = ShapedValue::parse(Shape::Question, &question, "here").unwrap();
        let expected = json!({"kind": "integer", "id": "3", "message": "3", "min": 3, "max": 4.5,
            "defaultValue": 2, "_meta": {"min": "3"}});
        assert_eq!(question.value(&scope), Ok(expected));

        let text = json!({"kind": "text", "id": "t", "message": "?", "defaultValue": "2"});
        let text = ShapedValue::parse(Shape::Question, &text, "here").unwrap();
        assert_eq!(text.value(&scope).unwrap()["defaultValue"], json!("2"));

        let choice = json!({"id": "a", "label": "A", "kind": "deny", "group": "$2"});
        let choice = ShapedValue::parse(Shape::Choice, &choice, "here").unwrap();
        let what = choice.value(&scope).unwrap_err();
        assert!(what.contains("many"), "{what}");
    }
}
