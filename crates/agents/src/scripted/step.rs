//! One step of a scene, as its script says it.
//!
//! Promises: every field is checked when the script is loaded. A step that the contract knows and this version does
//! not build is refused by name, so that no scene is played with a hole in it.

use serde_json::Value;

use super::number::Number;
use super::script::{ScriptError, at, list, object, only_keys};
use wire::Object;

/// What is done next. Strings and numbers are still as written: substitution comes when the scene is played.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Say(Vec<String>),
    Think(Vec<String>),
    Stream(Stream),
    Parts(Number),
    WaitMs(Number),
    Usage(Vec<(String, UsageField)>),
    Title(String),
    /// `None` clears it.
    Activity(Option<String>),
    Notify(String),
    Fail(Fail),
    Hang,
    Crash,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    pub(super) chunks: Number,
    pub(super) size: Number,
    pub(super) every_ms: Number,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fail {
    pub(super) error_type: Option<String>,
    pub(super) message: Option<String>,
    pub(super) resumable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum UsageField {
    Count(Number),
    /// Handed on, with its strings substituted.
    Other(Value),
}

const BUILT: [&str; 12] = [
    "say", "think", "stream", "parts", "wait_ms", "usage", "title", "activity", "notify", "fail",
    "hang", "crash",
];
const LATER: [&str; 8] = [
    "tool",
    "client_tool",
    "ask",
    "spawn",
    "steer",
    "content_ref",
    "show_prompt",
    "show_lowered",
];
/// The size of a streamed chunk that names none.
const STREAM_SIZE_DEFAULT: u64 = 40;

impl Step {
    pub(super) fn parse(value: &Value, place: &str) -> Result<Self, ScriptError> {
        let step = object(value, place)?;
        let mut keys = step.iter();
        let (Some((name, value)), None) = (keys.next(), keys.next()) else {
            let what = format!("a step has exactly one key; this one has {}", step.len());
            return Err(at(place, what));
        };
        if LATER.contains(&name.as_str()) {
            return Err(at(place, format!("the step `{name}` is not built yet")));
        }
        let inner = format!("{place}.{name}");
        let place_of_step = place;
        let place = inner.as_str();
        match name.as_str() {
            "say" => texts(value, place).map(Self::Say),
            "think" => texts(value, place).map(Self::Think),
            "stream" => Stream::parse(value, place).map(Self::Stream),
            "parts" => number(value, place).map(Self::Parts),
            "wait_ms" => number(value, place).map(Self::WaitMs),
            "usage" => usage(value, place).map(Self::Usage),
            "title" => text(value, place).map(Self::Title),
            "activity" if value.is_null() => Ok(Self::Activity(None)),
            "activity" => text(value, place).map(|text| Self::Activity(Some(text))),
            "notify" => text(value, place).map(Self::Notify),
            "fail" => Fail::parse(value, place).map(Self::Fail),
            "hang" => only_true(value, place).map(|()| Self::Hang),
            "crash" => only_true(value, place).map(|()| Self::Crash),
            _ => {
                let what = format!("unknown step `{name}`; known here: {}", BUILT.join(", "));
                Err(at(place_of_step, what))
            }
        }
    }
}

impl Stream {
    fn parse(value: &Value, place: &str) -> Result<Self, ScriptError> {
        let stream = object(value, place)?;
        only_keys(stream, place, &["chunks", "size", "every_ms"])?;
        let field = |name: &str| {
            let place = format!("{place}.{name}");
            stream
                .get(name)
                .map(|value| number(value, &place))
                .transpose()
        };
        Ok(Self {
            chunks: field("chunks")?.ok_or_else(|| at(&format!("{place}.chunks"), "is missing"))?,
            size: field("size")?.unwrap_or(Number::Fixed(STREAM_SIZE_DEFAULT)),
            every_ms: field("every_ms")?.unwrap_or(Number::Fixed(0)),
        })
    }
}

impl Fail {
    fn parse(value: &Value, place: &str) -> Result<Self, ScriptError> {
        let fail = object(value, place)?;
        only_keys(fail, place, &["type", "message", "resumable"])?;
        let resumable = match fail.get("resumable") {
            None => false, // G-04
            Some(Value::Bool(resumable)) => *resumable,
            Some(_) => return Err(at(&format!("{place}.resumable"), "must be true or false")),
        };
        let error_type = optional_text(fail, "type", place)?;
        let message = optional_text(fail, "message", place)?;
        Ok(Self {
            error_type,
            message,
            resumable,
        })
    }
}

fn usage(value: &Value, place: &str) -> Result<Vec<(String, UsageField)>, ScriptError> {
    let fields = object(value, place)?.iter();
    let fields = fields.map(|(key, value)| {
        let field = match key.as_str() {
            "inputTokens" | "outputTokens" | "cacheReadTokens" => {
                UsageField::Count(number(value, &format!("{place}.{key}"))?)
            }
            _ => UsageField::Other(value.clone()),
        };
        Ok((key.clone(), field))
    });
    fields.collect()
}

fn texts(value: &Value, place: &str) -> Result<Vec<String>, ScriptError> {
    let chunks = list(Some(value), place)?.iter().enumerate();
    chunks
        .map(|(n, chunk)| text(chunk, &format!("{place}[{n}]")))
        .collect()
}

fn text(value: &Value, place: &str) -> Result<String, ScriptError> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| at(place, "must be a string"))
}

fn optional_text(object: &Object, key: &str, place: &str) -> Result<Option<String>, ScriptError> {
    object
        .get(key)
        .map(|value| text(value, &format!("{place}.{key}")))
        .transpose()
}

fn number(value: &Value, place: &str) -> Result<Number, ScriptError> {
    Number::parse(value).map_err(|what| at(place, what))
}

fn only_true(value: &Value, place: &str) -> Result<(), ScriptError> {
    match value {
        Value::Bool(true) => Ok(()),
        _ => Err(at(place, "must be true")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_step_of_this_version_loads() {
        for step in [
            json!({"say": ["a", "b"]}),
            json!({"think": []}),
            json!({"stream": {"chunks": 3, "size": "10", "every_ms": "$1"}}),
            json!({"stream": {"chunks": "$1"}}),
            json!({"parts": 3}),
            json!({"wait_ms": "$1"}),
            json!({"usage": {"inputTokens": 1, "model": "m", "_meta": {"x": [1]}}}),
            json!({"title": "t"}),
            json!({"activity": "a"}),
            json!({"activity": null}),
            json!({"notify": "n"}),
            json!({"fail": {}}),
            json!({"fail": {"type": "t", "message": "m", "resumable": true}}),
            json!({"hang": true}),
            json!({"crash": true}),
        ] {
            assert!(Step::parse(&step, "here").is_ok(), "{step}");
        }
    }

    #[test]
    fn a_bad_step_is_told_with_its_place() {
        let mut told = String::new();
        for step in [
            json!(7),
            json!({}),
            json!({"say": ["a"], "title": "t"}),
            json!({"shout": ["a"]}),
            json!({"say": "a"}),
            json!({"say": ["a", 1]}),
            json!({"stream": 3}),
            json!({"stream": {"size": 3}}),
            json!({"stream": {"chunks": "many"}}),
            json!({"stream": {"chunks": 1, "sice": 3}}),
            json!({"wait_ms": -5}),
            json!({"usage": {"inputTokens": true}}),
            json!({"title": null}),
            json!({"fail": {"resumable": "yes"}}),
            json!({"fail": {"message": 3}}),
            json!({"hang": false}),
        ] {
            told.push_str(
                &Step::parse(&step, "scenes[2].steps[0]")
                    .unwrap_err()
                    .to_string(),
            );
            told.push('\n');
        }
        expect_test::expect![[r#"
            scenes[2].steps[0]: must be a JSON object
            scenes[2].steps[0]: a step has exactly one key; this one has 0
            scenes[2].steps[0]: a step has exactly one key; this one has 2
            scenes[2].steps[0]: unknown step `shout`; known here: say, think, stream, parts, wait_ms, usage, title, activity, notify, fail, hang, crash
            scenes[2].steps[0].say: must be a list
            scenes[2].steps[0].say[1]: must be a string
            scenes[2].steps[0].stream: must be a JSON object
            scenes[2].steps[0].stream.chunks: is missing
            scenes[2].steps[0].stream.chunks: "many" is not a whole number of at least 0
            scenes[2].steps[0].stream: unknown key `sice`; known here: chunks, size, every_ms
            scenes[2].steps[0].wait_ms: -5 is not a whole number of at least 0
            scenes[2].steps[0].usage.inputTokens: true is not a whole number of at least 0
            scenes[2].steps[0].title: must be a string
            scenes[2].steps[0].fail.resumable: must be true or false
            scenes[2].steps[0].fail.message: must be a string
            scenes[2].steps[0].hang: must be true
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn a_step_of_a_later_version_is_refused_by_name() {
        for name in LATER {
            let step = json!({name: true});
            let message = Step::parse(&step, "scenes[0].steps[1]")
                .unwrap_err()
                .to_string();
            assert_eq!(
                message,
                format!("scenes[0].steps[1]: the step `{name}` is not built yet")
            );
        }
    }
}
