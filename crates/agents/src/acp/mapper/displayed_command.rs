//! A command as a call showed it to who decided about it (AG-52).
//!
//! Promises: nothing is left out that could decide what runs. An input that has a field which is not known here shows no command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::acp::errors::quote;

/// Names that agents have for the directory of a command.
const DIRECTORY_FIELDS: [&str; 7] =
    ["cwd", "workdir", "working_directory", "workingDirectory", "directory", "dir_path", "dir"];

/// Names that agents have for its variables.
const VARIABLE_FIELDS: [&str; 2] = ["env", "environment"];

/// What changes nothing of what runs: words for people, and how long the agent itself waits.
const WORD_FIELDS: [&str; 5] =
    ["description", "explanation", "justification", "timeout", "timeout_ms"];

/// Whether the agent waits for it at all. What runs is the same, and goes on when the agent is done.
const BACKGROUND_FIELDS: [&str; 2] = ["run_in_background", "is_background"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct DisplayedCommand {
    /// What a shell gets.
    pub(in super::super) line: String,
    /// Absent: where commands run if nothing is said.
    pub(in super::super) directory: Option<PathBuf>,
    pub(in super::super) variables: BTreeMap<String, String>,
}

impl DisplayedCommand {
    /// The command of a call's input. None: it is no command, or something about it is not understood.
    pub(in super::super) fn of_input(input: &Value) -> Option<Self> {
        let fields = input.as_object()?;
        let mut args = Vec::new();
        let mut directory: Option<PathBuf> = None;
        let mut variables = BTreeMap::new();
        for (name, value) in fields {
            let name = name.as_str();
            let is_of_agent = WORD_FIELDS.contains(&name) || BACKGROUND_FIELDS.contains(&name);
            if name == "command" || value.is_null() || is_of_agent {
                continue;
            }
            if name == "args" {
                let texts: Option<Vec<String>> =
                    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect();
                args = texts?;
            } else if DIRECTORY_FIELDS.contains(&name) {
                let path = Path::new(value.as_str()?);
                let is_other = directory.as_deref().is_some_and(|known| known != path);
                if !path.is_absolute() || is_other {
                    return None;
                }
                directory = Some(path.to_owned());
            } else if VARIABLE_FIELDS.contains(&name) {
                for (name, value) in read_variables(value)? {
                    let before = variables.insert(name, value.clone());
                    if before.is_some_and(|before| before != value) {
                        return None; // which of both is meant?
                    }
                }
            } else {
                return None;
            }
        }
        Some(Self { line: line_of(fields.get("command")?.as_str()?, &args), directory, variables })
    }
}

/// Whether an input is the command that people are asked about by another input, in other words for people; `usual` is the directory of
/// commands that name none. Naming it is saying more. Leaving out one that was named is not: a shell that is kept from command to
/// command may be elsewhere by now.
pub(super) fn is_same_command(asked: &Value, now: &Value, usual: Option<&Path>) -> bool {
    let commands = DisplayedCommand::of_input(asked).zip(DisplayedCommand::of_input(now));
    let Some((before, after)) = commands else {
        return false; // not understood: every word of it may decide what runs
    };
    let is_place = before.directory == after.directory
        || (before.directory.is_none() && after.directory.as_deref() == usual);
    is_place
        && before.variables == after.variables
        && decisive_fields(asked) == decisive_fields(now)
}

/// The fields that are to be the same, word by word: a line is another thing to a shell than a program and its arguments, and whoever
/// reads the input may take a field that is null for something else than one that is absent.
fn decisive_fields(input: &Value) -> BTreeMap<&str, &Value> {
    let fields =
        input.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value));
    let is_compared_otherwise = |name: &str| {
        let lists: [&[&str]; 3] = [&WORD_FIELDS, &DIRECTORY_FIELDS, &VARIABLE_FIELDS];
        lists.iter().any(|list| list.contains(&name))
    };
    let decisive = fields.filter(|(name, _)| !is_compared_otherwise(name));
    decisive.collect()
}

/// An object of texts, or a list of names and values.
fn read_variables(value: &Value) -> Option<Vec<(String, String)>> {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let pair = |(name, value): (&String, &Value)| Some((name.clone(), text_of(value)?));
            fields.map(pair).collect()
        }
        Value::Array(items) => {
            let items = items.iter();
            let pair =
                |item: &Value| Some((text_of(item.get("name")?)?, text_of(item.get("value")?)?));
            items.map(pair).collect()
        }
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The line that a shell gets of a command and its arguments. A command without any is taken as a line, as agents send whole lines.
pub(in super::super) fn line_of(command: &str, args: &[String]) -> String {
    if args.is_empty() {
        return command.to_owned();
    }
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let quoted: Vec<String> = words.map(quote).collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ag_52_an_input_shows_its_line_its_directory_and_its_variables() {
        let plain =
            DisplayedCommand::of_input(&json!({"command": "ls", "description": "d", "cwd": null}))
                .unwrap();
        assert_eq!((plain.line.as_str(), plain.directory), ("ls", None));
        assert!(plain.variables.is_empty());
        let whole = json!({"command": "rm", "args": ["a b"], "cwd": "/w/sub", "env": {"CI": "1"}});
        let whole = DisplayedCommand::of_input(&whole).unwrap();
        assert_eq!(whole.line, "rm 'a b'");
        assert_eq!(whole.directory.as_deref(), Some(Path::new("/w/sub")));
        assert_eq!(whole.variables["CI"], "1");
        let listed = json!({"command": "ls", "env": [{"name": "CI", "value": "1"}]});
        assert_eq!(DisplayedCommand::of_input(&listed).unwrap().variables["CI"], "1");
    }

    #[test]
    fn ag_52_an_input_that_is_not_understood_shows_no_command() {
        for input in [
            json!("ls"),
            json!({"command": ["ls"]}),
            json!({"args": ["ls"]}),
            json!({"command": "ls", "args": [1]}),
            json!({"command": "ls", "cwd": "sub"}),
            json!({"command": "ls", "cwd": ""}),
            json!({"command": "ls", "cwd": "/a", "workdir": "/b"}),
            json!({"command": "ls", "env": {"A": 1}}),
            json!({"command": "ls", "env": "A=1"}),
            json!({"command": "ls", "env": {"A": "1"}, "environment": {"A": "2"}}),
            json!({"command": "ls", "host": "other"}),
        ] {
            assert_eq!(DisplayedCommand::of_input(&input), None, "{input}");
        }
    }
}
