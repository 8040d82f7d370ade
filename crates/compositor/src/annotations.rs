//! Annotations that a message refers to: comments on files, shown to the model with file, lines and text.
//!
//! A message names them by the channel that holds them. What they say is filled in by whoever can read that channel, when the
//! message is sent; here they are found in a part and given their form.

use serde_json::{Value, json};

use crate::part::{Part, View};
use crate::position;

/// The kind of editor context they are.
pub const KIND: &str = "annotations";

/// A reference to annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationsReference<'a> {
    /// The channel that holds them.
    pub uri: &'a str,
    /// Which of them; all of them if none are named.
    pub ids: Option<Vec<&'a str>>,
}

impl<'a> AnnotationsReference<'a> {
    /// The reference in a part, if it is one.
    pub fn of(part: &'a Part) -> Option<Self> {
        match part.view() {
            View::EditorContext(context) if context.kind == KIND => Some(Self {
                uri: context.source?,
                ids: context.payload.get("annotationIds").and_then(ids_in),
            }),
            _ => None,
        }
    }

    /// The reference in an attachment of a message, if it is one.
    pub fn of_attachment(attachment: &'a Value) -> Option<Self> {
        (attachment["type"] == KIND).then_some(())?;
        Some(Self {
            uri: attachment["resource"].as_str()?,
            ids: attachment.get("annotationIds").and_then(ids_in),
        })
    }

    pub fn names(&self, id: &str) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.contains(&id))
    }
}

fn ids_in(value: &Value) -> Option<Vec<&str>> {
    Some(value.as_array()?.iter().filter_map(Value::as_str).collect())
}

/// What a model reads of one annotation. `range` is a range of the protocol, which counts lines from zero; without one it is
/// about the whole file.
pub fn describe(file: &str, range: Option<&Value>, resolved: bool, comments: &[&str]) -> Value {
    let mut described = json!({"file": file});
    if let Some((first, last)) = range.and_then(position::lines_of_range) {
        described["lines"] = if first == last {
            json!(format!("{first}"))
        } else {
            json!(format!("{first}-{last}"))
        };
    }
    if resolved {
        described["resolved"] = json!(true);
    }
    described["comments"] = json!(comments);
    described
}

/// The part with what the annotations say now; without any if they cannot be read, and it says so.
pub fn with_annotations(part: Part, described: Option<Vec<Value>>) -> Part {
    let mut value = part.into_value();
    match described {
        Some(described) => value["payload"]["annotations"] = Value::Array(described),
        None => value["payload"]["unreadable"] = json!(true),
    }
    Part::new(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_described_with_file_lines_and_text() {
        let at = |line: u32, character: u32| json!({"line": line, "character": character});
        let range = json!({"start": at(3, 0), "end": at(5, 2)});
        let described = describe("src/main.rs", Some(&range), false, &["why?", "because"]);
        assert_eq!(
            described,
            json!({"file": "src/main.rs", "lines": "4-6", "comments": ["why?", "because"]})
        );
        let whole = describe("a.md", None, true, &["done"]);
        assert_eq!(whole, json!({"file": "a.md", "resolved": true, "comments": ["done"]}));
    }

    #[test]
    fn a_reference_names_some_or_all() {
        let attachment =
            json!({"type": "annotations", "label": "l", "resource": "x:/s/annotations"});
        let all = AnnotationsReference::of_attachment(&attachment).unwrap();
        assert!(all.names("any"));
        let part = json!({"type": "editor-context", "kind": "annotations", "source": "x:/s/annotations",
            "payload": {"annotationIds": ["a1"], "annotations": []}});
        let part = Part::new(part);
        let some = AnnotationsReference::of(&part).unwrap();
        assert_eq!(
            (some.uri, some.names("a1"), some.names("a2")),
            ("x:/s/annotations", true, false)
        );
        let filled = with_annotations(part, Some(vec![json!({"file": "f"})]));
        assert_eq!(filled.object()["payload"]["annotations"], json!([{"file": "f"}]));
    }
}
