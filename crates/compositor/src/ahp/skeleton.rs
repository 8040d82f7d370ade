//! The skeleton of a message that was made from parts: which stretch of the text, which attachment or which part of its
//! own each of them is (3.3).
//!
//! Anybody can write one. It is taken only if it fits the message it is in, and nothing in it is taken twice: what comes
//! out is never larger than what came in.

use std::ops::Range;

use serde_json::{Value, json};
use wire::{Digest, Object};

use super::MESSAGE_KEY;
use crate::position::{PositionConverter, SurrogateRounding};
use crate::version::SCHEMA_VERSION;

pub(super) const TEXT: &str = "$text";
pub(super) const ATTACHMENT: &str = "$attachment";
pub(super) const PART: &str = "$part";
pub(super) const AS: &str = "as";

/// Where a part is found.
#[derive(Debug)]
pub(super) enum PartLocation {
    Text(Range<usize>),
    Attachment { index: usize, read_as: ReadAs },
    Part(Object),
}

/// How an attachment is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadAs {
    /// As what it looks like.
    Plain,
    /// It looks like a reference and is an attachment whose body is in the blob store.
    Stored,
}

pub(super) enum Skeleton {
    Absent,
    Fits(Vec<PartLocation>),
    DoesNotFit(&'static str),
}

/// Reads the skeleton of a message; bodies of its attachments may be out of it already.
pub(super) fn read(message: &Object, text: &str, attachments: &[Value]) -> Skeleton {
    let skeleton = message.get("_meta").and_then(|meta| meta.get(MESSAGE_KEY));
    let Some(skeleton) = skeleton else { return Skeleton::Absent };
    match entries(skeleton, text, attachments) {
        Ok(entries) => Skeleton::Fits(entries),
        Err(why) => Skeleton::DoesNotFit(why),
    }
}

fn entries(
    skeleton: &Value,
    text: &str,
    attachments: &[Value],
) -> Result<Vec<PartLocation>, &'static str> {
    if skeleton["schema_version"] != json!(SCHEMA_VERSION) {
        return Err("their version is not known");
    }
    if skeleton["text_sha256"] != json!(text_digest(text)) {
        return Err("the text was changed");
    }
    let parts = skeleton["parts"].as_array();
    let ruler = PositionConverter::new(text);
    let mut free = vec![true; attachments.len()];
    let mut text_from = 0;
    let mut entries = Vec::new();
    for entry in parts.ok_or("there are none")? {
        let entry = if let Some(span) = entry.get(TEXT) {
            let range = span_of(span, &ruler, text_from).ok_or("a stretch of text is not there")?;
            text_from = range.end;
            PartLocation::Text(range)
        } else if let Some(index) = entry.get(ATTACHMENT) {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            let index = index
                .filter(|index| free.get(*index) == Some(&true))
                .ok_or("an attachment is not there")?;
            free[index] = false;
            let is_stored = entry.get(AS).is_some_and(|it| it == "file-attachment");
            let read_as = if is_stored { ReadAs::Stored } else { ReadAs::Plain };
            PartLocation::Attachment { index, read_as }
        } else {
            PartLocation::Part(part_of(entry.get(PART)).ok_or("one cannot be read")?)
        };
        entries.push(entry);
    }
    if free.contains(&true) {
        return Err("an attachment was added");
    }
    Ok(entries)
}

fn span_of(span: &Value, ruler: &PositionConverter<'_>, from: usize) -> Option<Range<usize>> {
    let [start, end] = span.as_array()?.as_slice() else { return None };
    // Nothing of ours begins or ends in the middle of a character.
    let byte = |units: &Value| {
        let units = units.as_u64()?;
        let down = ruler.byte_of_unit(units, SurrogateRounding::Down)?;
        (ruler.byte_of_unit(units, SurrogateRounding::Up) == Some(down)).then_some(down)
    };
    let (start, end) = (byte(start)?, byte(end)?);
    (from <= start && start <= end).then_some(start..end)
}

/// A part of its own. Bodies travel as attachments, where they are seen.
fn part_of(part: Option<&Value>) -> Option<Object> {
    let part = part?.as_object()?;
    let kind = part.get("type")?.as_str()?;
    let hides_body = kind == "file-attachment" && part.get("data").is_some_and(Value::is_string);
    (!hides_body).then(|| part.clone())
}

pub(super) fn text_digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_hex()
}
