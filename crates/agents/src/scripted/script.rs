//! A script: scenes and when they are played.
//!
//! Promises: what loads can be played. What does not load is reported with its location, as in `scenes[2].steps[0]`.
//! Must not know: how a scene is played.

use std::path::Path;

use regex::Regex;
use serde_json::Value;

use super::step::ScriptStep;
use super::substitute::Scope;
use wire::Object;

/// The model of a script that names none.
const MODEL_DEFAULT: &str = "scripted-1";

/// What the scripted agent plays.
#[derive(Debug)]
pub struct Script {
    pub(super) model: String,
    pub(super) scenes: Vec<Scene>,
}

#[derive(Debug)]
pub(super) struct Scene {
    /// Without it the scene matches everything.
    when: Option<Regex>,
    pub(super) steps: Vec<ScriptStep>,
}

/// Why a script cannot be played; the operator reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("the script {path} cannot be read: {why}")]
    Unreadable { path: String, why: String },
    #[error("the script is not JSON: {0}")]
    NotJson(String),
    #[error("{location}: {what}")]
    At { location: String, what: String },
    #[error("the script {path} cannot be used: {why}")]
    InFile { path: String, why: Box<ScriptError> },
}

/// An error at a location of the script.
pub(super) fn at(location: &str, what: impl Into<String>) -> ScriptError {
    ScriptError::At { location: location.to_owned(), what: what.into() }
}

impl Script {
    /// Reads a script file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError::Unreadable {
            path: name.clone(),
            why: error.to_string(),
        })?;
        Self::parse(&text).map_err(|why| ScriptError::InFile { path: name, why: Box::new(why) })
    }

    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| ScriptError::NotJson(error.to_string()))?;
        let script = object(&value, "script")?;
        only_keys(script, "script", &["model", "scenes"])?;
        let model = match script.get("model") {
            None => MODEL_DEFAULT.to_owned(),
            Some(Value::String(model)) if !model.trim().is_empty() => model.clone(),
            Some(_) => return Err(at("model", "must be a string that is not empty")),
        };
        let scenes = list(script.get("scenes"), "scenes")?.iter().enumerate();
        let scenes = scenes.map(|(n, scene)| Scene::parse(scene, &format!("scenes[{n}]")));
        Ok(Self { model, scenes: scenes.collect::<Result<_, _>>()? })
    }

    /// The first scene that matches the text, its number, and what its placeholders stand for.
    pub(super) fn scene_for(&self, text: &str) -> Option<(usize, &Scene, Scope)> {
        self.scenes.iter().enumerate().find_map(|(n, scene)| {
            let groups = scene.groups(text)?;
            Some((n, scene, Scope::new(text, groups)))
        })
    }
}

impl Scene {
    fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let scene = object(value, location)?;
        only_keys(scene, location, &["when", "steps"])?;
        let when_location = format!("{location}.when");
        let when = match scene.get("when") {
            None => None,
            Some(Value::String(pattern)) => Some(Regex::new(pattern).map_err(|error| {
                at(
                    &when_location,
                    format!("not a regular expression: {}", one_line(&error.to_string())),
                )
            })?),
            Some(_) => return Err(at(&when_location, "must be a string: a regular expression")),
        };
        let steps_location = format!("{location}.steps");
        let steps = list(scene.get("steps"), &steps_location)?;
        Ok(Self { when, steps: ScriptStep::parse_all(steps, &steps_location)? })
    }

    /// The capture groups from the first on, if the text matches.
    fn groups(&self, text: &str) -> Option<Vec<String>> {
        let Some(when) = &self.when else { return Some(Vec::new()) };
        let captures = when.captures(text)?;
        let group =
            |group: Option<regex::Match>| group.map_or("", |matched| matched.as_str()).to_owned();
        Some(captures.iter().skip(1).map(group).collect())
    }
}

pub(super) fn object<'a>(value: &'a Value, location: &str) -> Result<&'a Object, ScriptError> {
    value.as_object().ok_or_else(|| at(location, "must be a JSON object"))
}

pub(super) fn list<'a>(
    value: Option<&'a Value>,
    location: &str,
) -> Result<&'a [Value], ScriptError> {
    match value {
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(at(location, "must be a list")),
        None => Err(at(location, "is missing")),
    }
}

/// A misspelt key would silently do nothing, so it is refused.
pub(super) fn only_keys(
    object: &Object,
    location: &str,
    known: &[&str],
) -> Result<(), ScriptError> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            Err(at(location, format!("unknown key `{key}`; known here: {}", known.join(", "))))
        }
        None => Ok(()),
    }
}

/// The regex crate draws its errors over several lines; the last one says what is wrong.
fn one_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Script::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_script_is_reported_with_its_position() {
        for (script, expected) in [
            ("{", "the script is not JSON: EOF while parsing an object at line 1 column 1"),
            ("[]", "script: must be a JSON object"),
            ("{}", "scenes: is missing"),
            (r#"{"scenes": {}}"#, "scenes: must be a list"),
            (r#"{"model": 7, "scenes": []}"#, "model: must be a string that is not empty"),
            (
                r#"{"scenes": [], "acts": []}"#,
                "script: unknown key `acts`; known here: model, scenes",
            ),
            (r#"{"scenes": [7]}"#, "scenes[0]: must be a JSON object"),
            (r#"{"scenes": [{}]}"#, "scenes[0].steps: is missing"),
            (
                r#"{"scenes": [{"wen": "x", "steps": []}]}"#,
                "scenes[0]: unknown key `wen`; known here: when, steps",
            ),
            (
                r#"{"scenes": [{"when": 7, "steps": []}]}"#,
                "scenes[0].when: must be a string: a regular expression",
            ),
            (
                r#"{"scenes": [{"steps": []}, {"when": "a(", "steps": []}]}"#,
                "scenes[1].when: not a regular expression: unclosed group",
            ),
        ] {
            assert_eq!(error(script), expected);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let path = Path::new("no/such/script.json");
        let message = Script::load(path).unwrap_err().to_string();
        assert!(
            message.starts_with("the script no/such/script.json cannot be read: "),
            "{message}"
        );
    }

    #[test]
    fn the_first_scene_that_matches_is_played() {
        let script = Script::parse(
            r#"{"scenes": [
                {"when": "^hello (\\w+)( there)?", "steps": []},
                {"when": "hello", "steps": []},
                {"steps": []}
            ]}"#,
        )
        .unwrap();
        let played = |text: &str| script.scene_for(text).map(|(n, _, scope)| (n, scope));
        let (n, scope) = played("hello you").unwrap();
        assert_eq!((n, scope.substitute("$1|$2|")), (0, "you||".to_owned()));
        assert_eq!(played("oh, hello").unwrap().0, 1);
        assert_eq!(played("").unwrap().0, 2);
    }
}
