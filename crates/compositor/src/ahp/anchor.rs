//! Where attachments stand in the text (3.2 steps 2 and 3, 3.4).

use std::ops::Range;

use serde_json::Value;
use wire::Object;

use super::attachment::{Found, insert_text, label};
use crate::diagnostics::{Diagnostics, quoted};
use crate::part::Part;
use crate::position::{Ruler, read_range};

/// How much text is looked through for attachments that do not say where they stand.
const LOOK_BYTES_MAX: usize = 64 * 1_048_576;

/// Which attachments stand where, in the order of the text, and which stand nowhere, in their own order.
pub(super) struct Anchors {
    pub placed: Vec<(Range<usize>, usize)>,
    pub loose: Vec<usize>,
}

pub(super) fn anchors(
    text: &str,
    attachments: &[Value],
    parts: &[Found],
    said: &mut Diagnostics,
) -> Anchors {
    let ruler = Ruler::new(text);
    let mut room = LOOK_BYTES_MAX;
    let mut placed = Vec::new();
    let mut loose = Vec::new();
    for (index, attachment) in attachments.iter().enumerate() {
        let range = match attachment.get("range").filter(|range| !range.is_null()) {
            Some(range) => {
                let range = read_range(range).and_then(|range| ruler.bytes(&range));
                if range.is_none() {
                    let label = quoted(label(attachment));
                    said.say(|| {
                        format!("attachment: {label} stands outside of the text (unanchored)")
                    });
                }
                range
            }
            None => locate(text, &parts[index].part, &mut room),
        };
        match range {
            Some(range) => placed.push((range, index)),
            None => loose.push(index),
        }
    }
    placed.sort_by_key(|(range, index)| (range.start, range.end, *index));
    let mut end = 0;
    placed.retain(|(range, index)| {
        let is_free = range.start >= end;
        if is_free {
            end = range.end;
        } else {
            loose.push(*index);
            let label = quoted(label(&attachments[*index]));
            said.say(|| {
                format!("attachment: {label} overlaps another one in the text (unanchored)")
            });
        }
        is_free
    });
    loose.sort_unstable();
    Anchors { placed, loose }
}

/// Where the text names a part of which the client did not say where it stands; it must do so exactly once.
fn locate(text: &str, part: &Object, room: &mut usize) -> Option<Range<usize>> {
    let token = insert_text(&Part::read(Value::Object(part.clone())).ok()?)?;
    let token = token.trim_end();
    if token.is_empty() || text.len() > *room {
        return None;
    }
    *room -= text.len();
    let ends = |end: usize| {
        let beyond = text[end..].trim_start_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
        beyond.chars().next().is_none_or(char::is_whitespace)
    };
    let begins = |at: usize| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '@' || c == '/')
    };
    let mut found = text
        .match_indices(token)
        .map(|(at, _)| at..at + token.len())
        .filter(|range| begins(range.start) && ends(range.end));
    let only = found.next()?;
    found.next().is_none().then_some(only)
}
