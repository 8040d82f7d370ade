//! A model's input: parsed and checked here, for every tool.
//!
//! Promises: arguments that a tool does not know are ignored, since models add some of their own; one that is wrong is
//! answered with what is right. No path and no command
//! holds a character that is obeyed instead of shown (G-49): what people consent to is what they read, in whatever
//! client.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use workspace::{Cancellation, IgnoreMode, Workspace};

use super::ToolError;
use super::blocking::run_blocking;

/// The input of a tool.
pub(super) trait ToolInput: DeserializeOwned + Send + 'static {
    /// An input as it should be, for a model that sent another.
    const EXAMPLE: &'static str;

    /// JSON Schema.
    fn schema() -> Value;

    /// Paths and commands, with the names of their fields: texts that must be readable as they are.
    fn readable_texts(&self) -> Vec<(&'static str, &str)>;
}

pub(super) fn parse<T: ToolInput>(input: &Value) -> Result<T, ToolError> {
    if !input.is_object() {
        return Err(ToolError("the input must be a JSON object".to_owned()));
    }
    let input = T::deserialize(input).map_err(|error| {
        let problem = find_problem(&T::schema(), input, "").unwrap_or_else(|| error.to_string());
        let example = T::EXAMPLE;
        ToolError(format!("the input does not fit: {problem}. For example: {example}"))
    })?;
    for (field, text) in input.readable_texts() {
        check_readable(field, text)?;
    }
    Ok(input)
}

/// Parses an input and does the tool's work with it, on a thread that may block.
pub(super) async fn parse_and_run<T: ToolInput, Out: Send + 'static>(
    input: &Value,
    workspace: &Workspace,
    work: impl FnOnce(&T, &Workspace, &Cancellation) -> Result<Out, ToolError> + Send + 'static,
) -> Result<Out, ToolError> {
    let (input, workspace) = (parse::<T>(input)?, workspace.clone());
    run_blocking(move |cancellation| work(&input, &workspace, cancellation)).await
}

fn check_readable(field: &str, text: &str) -> Result<(), ToolError> {
    let is_obeyed = |c: char| {
        let is_control = c.is_control() && !matches!(c, '\t' | '\n');
        // These show text in another order than it has.
        is_control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.chars().find(|c| is_obeyed(*c)) {
        None => Ok(()),
        Some(c) => Err(ToolError(format!(
            "`{field}` has the control character U+{:04X}; of these only tab and newline can be in it",
            u32::from(c)
        ))),
    }
}

/// The first thing in an input that is not as its schema says, in words that name it.
fn find_problem(schema: &Value, input: &Value, name: &str) -> Option<String> {
    let wanted = schema["type"].as_str()?;
    if !has_type(input, wanted) {
        let (wanted, given) = (name_of_type(wanted), name_of_value(input));
        return Some(format!("`{name}` must be {wanted}, and is {given}"));
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(input)
    {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return Some(format!("`{name}` must be one of {}", values.join(", ")));
    }
    let items = input.as_array().into_iter().flatten().enumerate();
    for (index, item) in items {
        let problem = find_problem(&schema["items"], item, &format!("{name}[{index}]"));
        if problem.is_some() {
            return problem;
        }
    }
    let field =
        |field: &str| if name.is_empty() { field.to_owned() } else { format!("{name}.{field}") };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut problems = properties.filter_map(|(property, schema)| match input.get(property) {
        None | Some(Value::Null) => None,
        Some(value) => find_problem(schema, value, &field(property)),
    });
    if let Some(problem) = problems.next() {
        return Some(problem);
    }
    let mut required =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required.find(|name| input.get(name).is_none_or(Value::is_null))?;
    let wanted = schema["properties"][missing]["type"].as_str().unwrap_or("");
    let wanted = name_of_type(wanted);
    Some(format!("missing field `{}`, {wanted}", field(missing)))
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn name_of_type(name: &str) -> &'static str {
    match name {
        "string" => "a text",
        "boolean" => "true or false",
        "integer" => "a whole number from 0 on",
        "number" => "a number",
        "array" => "a list",
        "object" => "an object",
        _ => "a value",
    }
}

fn name_of_value(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "another number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The field `include_ignored`.
pub(super) fn ignore_mode(include_ignored: Option<bool>) -> IgnoreMode {
    match include_ignored {
        Some(true) => IgnoreMode::Disregard,
        Some(false) | None => IgnoreMode::Apply,
    }
}

/// A list of texts; models also send a single one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "OneOrMany")]
pub(super) struct Texts(pub(super) Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    None,
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(texts: OneOrMany) -> Self {
        Self(match texts {
            OneOrMany::None => Vec::new(),
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}},
                    "required": ["old"],
                }},
            },
            "required": ["path"],
        });
        for (input, expected) in [
            (json!({}), "missing field `path`, a text"),
            (json!({"path": 7}), "`path` must be a text, and is another number"),
            (
                json!({"path": "a", "limit": "9"}),
                "`limit` must be a whole number from 0 on, and is a text",
            ),
            (
                json!({"path": "a", "limit": -1}),
                "`limit` must be a whole number from 0 on, and is another number",
            ),
            (json!({"path": "a", "mode": "c"}), "`mode` must be one of \"a\", \"b\""),
            (
                json!({"path": "a", "edits": [{"old": "x"}, {}]}),
                "missing field `edits[1].old`, a text",
            ),
            (json!({"path": "a", "edits": "x"}), "`edits` must be a list, and is a text"),
        ] {
            let problem = find_problem(&schema, &input, "");
            assert_eq!(problem.as_deref(), Some(expected), "{input}");
        }
        assert_eq!(find_problem(&schema, &json!({"path": "a"}), ""), None);
    }

    #[test]
    fn a_text_is_readable_if_nothing_in_it_is_obeyed() {
        for text in ["", "ls -l\n\techo 'é 漢 👩‍🚀'", "a\\x1b"] {
            assert_eq!(check_readable("x", text), Ok(()), "{text:?}");
        }
        for (text, named) in [
            ("a\u{1b}]b", "U+001B"),
            ("a\0", "U+0000"),
            ("a\rb", "U+000D"),
            ("\u{7f}", "U+007F"),
            ("\u{9b}2J", "U+009B"),
            ("a\u{202e}b", "U+202E"),
            ("\u{2067}", "U+2067"),
        ] {
            let error = check_readable("path", text).unwrap_err().0;
            assert!(error.contains("`path`") && error.contains(named), "{error}");
        }
    }
}
