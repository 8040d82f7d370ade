//! What stands for something else in a declaration: `${workspaceFolder}`, `${env:NAME}` (TR-3).
//!
//! Promises: a file of a directory gets no variable that commands do not get, and none that its question does not name.
//! Must not know: where declarations come from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::tool::is_allowed_variable;

/// Expands the texts of one declaration.
pub(super) trait Expander {
    fn expand(&self, text: &str) -> Result<String, String>;

    /// What was answered to an input of the declaration's file.
    fn input(&self, id: &str) -> Option<&str>;

    /// Whether the declaration is the user's own.
    fn is_users(&self) -> bool;
}

/// What users answered to the inputs of one file, by their ids.
pub type FileInputs = BTreeMap<String, String>;

/// The same of all files, by their paths: what was answered to one is not for another.
pub type McpInputs = BTreeMap<PathBuf, FileInputs>;

/// In a file of the user's own: every variable of the host.
pub(super) struct UserExpander<'a> {
    pub directory: &'a Path,
    pub inputs: &'a FileInputs,
}

/// In a file of a directory.
pub(super) struct DirectoryExpander<'a> {
    pub directory: &'a Path,
    pub inputs: &'a FileInputs,
}

impl Expander for UserExpander<'_> {
    fn expand(&self, text: &str) -> Result<String, String> {
        expand(text, self.directory, self.inputs, &|name| {
            let value = std::env::var(name);
            value.map_err(|_| format!("the variable {name} is not set where the host was started"))
        })
    }

    fn input(&self, id: &str) -> Option<&str> {
        self.inputs.get(id).map(String::as_str)
    }

    fn is_users(&self) -> bool {
        true
    }
}

impl Expander for DirectoryExpander<'_> {
    fn expand(&self, text: &str) -> Result<String, String> {
        expand(text, self.directory, self.inputs, &|name| {
            if !is_allowed_variable(name) {
                return Err(format!(
                    "it wants the variable {name}, which no file of a directory gets; declare the server in greenroom.toml"
                ));
            }
            std::env::var(name).map_err(|_| format!("the variable {name} is not set"))
        })
    }

    fn input(&self, id: &str) -> Option<&str> {
        self.inputs.get(id).map(String::as_str)
    }

    fn is_users(&self) -> bool {
        false
    }
}

/// What is in the placeholders of a text, found as they are when it is expanded.
fn insides(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (inside, after) = rest.split_once("${")?.1.split_once('}')?;
        rest = after;
        Some(inside)
    })
}

/// The names of the variables that a text wants.
pub(super) fn wanted_variables(text: &str) -> Vec<String> {
    insides(text).filter_map(variable_of).map(|(name, _)| name.to_owned()).collect()
}

/// The variable that a placeholder means, and what stands for it if it is not set.
fn variable_of(inside: &str) -> Option<(&str, Option<&str>)> {
    let name = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, otherwise) = match name.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (name, None),
    };
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name != WORKSPACE;
    is_name.then_some((name, otherwise))
}

const WORKSPACE: &str = "workspaceFolder";
const INPUT: &str = "input:";

/// The ids of the inputs that a text wants.
pub(super) fn wanted_inputs(text: &str) -> Vec<String> {
    let ids = insides(text).filter_map(|inside| inside.strip_prefix(INPUT));
    ids.map(str::to_owned).collect()
}

fn expand(
    text: &str,
    directory: &Path,
    inputs: &FileInputs,
    variable: &dyn Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            expanded.push_str("${");
            rest = after;
            break;
        };
        if inside == WORKSPACE {
            let directory = directory.to_str();
            expanded.push_str(directory.ok_or("the name of the directory is no text")?);
        } else if let Some((name, otherwise)) = variable_of(inside) {
            match (variable(name), otherwise) {
                (Ok(value), _) => expanded.push_str(&value),
                (Err(_), Some(otherwise)) => expanded.push_str(otherwise),
                (Err(why), None) => return Err(why),
            }
        } else if let Some(input) = inside.strip_prefix(INPUT) {
            match inputs.get(input) {
                Some(value) => expanded.push_str(value),
                None => {
                    let input = input.escape_debug();
                    return Err(format!(
                        "it wants the input `{input}`, which was not given; answer its question, or declare the server in greenroom.toml"
                    ));
                }
            }
        } else {
            return Err(format!("`${{{inside}}}` is not known"));
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gets_no_secrets() {
        let directory = Path::new("/w");
        let inputs = FileInputs::from([("region".to_owned(), "north".to_owned())]);
        let own = UserExpander { directory, inputs: &inputs };
        let other = DirectoryExpander { directory, inputs: &inputs };
        assert_eq!(other.expand("-${input:region}-"), Ok("-north-".to_owned()));
        assert_eq!(wanted_inputs("${input:a} ${b} ${input:c"), ["a"]);
        assert_eq!(wanted_inputs("${input:a${b} ${input:c}"), ["a${b", "c"]);
        for expand in [&own as &dyn Expander, &other] {
            assert_eq!(expand.expand("a/${workspaceFolder}/b"), Ok("a//w/b".to_owned()));
            assert_eq!(expand.expand("no $HOME ${x"), Ok("no $HOME ${x".to_owned()));
            assert!(expand.expand("${input:key}").unwrap_err().contains("`key`"));
            let path = std::env::var("PATH").unwrap();
            assert_eq!(expand.expand("${env:PATH}"), Ok(path));
        }
        // Cargo sets it for tests.
        assert!(own.expand("${CARGO_MANIFEST_DIR}").is_ok());
        let refused = other.expand("${env:CARGO_MANIFEST_DIR}").unwrap_err();
        assert!(refused.contains("CARGO_MANIFEST_DIR"), "{refused}");
        assert_eq!(other.expand("${NOT_SET_AT_ALL:-x}"), Ok("x".to_owned()));
        assert_eq!(wanted_variables("${env:A} ${B:-c} ${workspaceFolder} ${d"), ["A", "B"]);
    }
}
