//! Finds where in the text attachments are anchored.

use std::ops::Range;

use serde_json::Value;
use wire::Object;

use super::attachment::{AttachmentPart, insert_text, label};
use crate::diagnostics::{Diagnostics, quoted};
use crate::part::Part;
use crate::position::{PositionConverter, read_range};

/// How much text is searched for attachments without a range.
const SEARCHED_BYTES_MAX: usize = 64 * 1_048_576;

/// Anchored attachments in the order of the text, and the others in their own order.
pub(super) struct Anchors {
    pub anchored: Vec<(Range<usize>, usize)>,
    pub unanchored: Vec<usize>,
}

pub(super) fn find_anchors(
    text: &str,
    attachments: &[Value],
    parts: &[AttachmentPart],
    diagnostics: &mut Diagnostics,
) -> Anchors {
    let ruler = PositionConverter::new(text);
    let mut budget = SEARCHED_BYTES_MAX;
    let mut anchored = Vec::new();
    let mut unanchored = Vec::new();
    for (index, attachment) in attachments.iter().enumerate() {
        let range = match attachment.get("range").filter(|range| !range.is_null()) {
            Some(range) => {
                let range = read_range(range).and_then(|range| ruler.bytes(&range));
                if range.is_none() {
                    let label = quoted(label(attachment));
                    diagnostics.report(|| {
                        format!("attachment: {label} is outside of the text (unanchored)")
                    });
                }
                range
            }
            None => locate(text, &parts[index].part, &mut budget),
        };
        match range {
            Some(range) => anchored.push((range, index)),
            None => unanchored.push(index),
        }
    }
    anchored.sort_by_key(|(range, index)| (range.start, range.end, *index));
    let mut end = 0;
    anchored.retain(|(range, index)| {
        let is_free = range.start >= end;
        if is_free {
            end = range.end;
        } else {
            unanchored.push(*index);
            let label = quoted(label(&attachments[*index]));
            diagnostics.report(|| {
                format!("attachment: {label} overlaps another one in the text (unanchored)")
            });
        }
        is_free
    });
    unanchored.sort_unstable();
    Anchors { anchored, unanchored }
}

/// Finds the anchor of a part without a range: the text must name it exactly once.
fn locate(text: &str, part: &Object, budget: &mut usize) -> Option<Range<usize>> {
    let token = insert_text(&Part::from_value(Value::Object(part.clone())).ok()?)?;
    let token = token.trim_end();
    if token.is_empty() || text.len() > *budget {
        return None;
    }
    *budget -= text.len();
    // An editor may have typed it with its own sigil.
    let other = token.strip_prefix("@file:").map(|path| format!("#file:{path}"));
    let ends = |end: usize| {
        let beyond = text[end..].trim_start_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
        beyond.chars().next().is_none_or(char::is_whitespace)
    };
    let begins = |at: usize| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_@#/".contains(c))
    };
    let tokens = [Some(token), other.as_deref()];
    let mut matches = tokens.into_iter().flatten().flat_map(|token| {
        text.match_indices(token)
            .map(|(at, found)| at..at + found.len())
            .filter(|range| begins(range.start) && ends(range.end))
    });
    let only = matches.next()?;
    matches.next().is_none().then_some(only)
}
