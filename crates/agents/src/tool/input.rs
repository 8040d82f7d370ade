//! A model's input: parsed and checked here, for every tool.
//!
//! Promises: arguments that a tool does not know are ignored, since models add some of their own. No path and no command
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
    /// Paths and commands, with the names of their fields: texts that must be readable as they are.
    fn readable_texts(&self) -> Vec<(&'static str, &str)>;
}

pub(super) fn parse<T: ToolInput>(input: &Value) -> Result<T, ToolError> {
    if !input.is_object() {
        return Err(ToolError("the input must be a JSON object".to_owned()));
    }
    let input = T::deserialize(input)
        .map_err(|error| ToolError(format!("the input does not fit: {error}")))?;
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
