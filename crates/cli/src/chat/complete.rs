//! What a half typed word may become, as the host proposes it, and what of that was taken.
//!
//! Promises: what was accepted and still stands in the text when it is sent goes along as the host made it, with where it
//! stands (3.4). What people typed over is forgotten.
//! Must not know: terminals, connections.

use std::ops::Range;

use serde_json::{Value, json};

use crate::terminal::clean_line;

/// Proposals that are looked at.
const ITEMS_MAX: usize = 50;

/// What marks the end of a sentence, not of a name.
const PROSE_AFTER: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}'];

/// What the word at the cursor may become.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completing {
    /// The text before anything was proposed, and where the cursor was in it.
    pub(crate) before: (String, usize),
    items: Vec<Item>,
    at: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Item {
    typed: String,
    replaces: Range<usize>,
    attachment: Value,
    about: String,
}

/// Whether the word at the cursor is one that hosts complete.
pub(crate) fn may_complete(text: &str, cursor: usize) -> bool {
    let Some(before) = text.get(..cursor) else {
        return false;
    };
    let is_command = before.starts_with('/') && !before.contains(char::is_whitespace);
    let line = before.rsplit('\n').next().unwrap_or(before);
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    let is_quoted = line.rsplit_once('"').is_some_and(|(prose, _)| {
        prose.ends_with("@file:") || prose.ends_with("@skill:") || prose.ends_with('@')
    });
    is_command || word.contains('@') || is_quoted
}

/// The params of the request.
pub(crate) fn params(chat: &str, text: &str, cursor: usize) -> Value {
    let before = text.get(..cursor).unwrap_or(text);
    json!({
        "channel": chat,
        "kind": "userMessage",
        "text": text,
        "offset": before.encode_utf16().count(),
    })
}

impl Completing {
    /// What the host answered; `None` if it has nothing to propose.
    pub(crate) fn read(answer: &Value, text: &str, cursor: usize) -> Option<Self> {
        let items = answer["items"].as_array()?.iter().take(ITEMS_MAX);
        let items: Vec<Item> = items
            .filter_map(|item| Item::read(item, text, cursor))
            .collect();
        (!items.is_empty()).then(|| Self {
            before: (text.to_owned(), cursor),
            items,
            at: 0,
        })
    }

    pub(crate) fn is_only(&self) -> bool {
        self.items.len() == 1
    }

    pub(crate) fn next(&mut self) {
        self.at = (self.at + 1) % self.items.len();
    }

    /// The text with the proposal in it, and where the cursor is then.
    pub(crate) fn text(&self) -> (String, usize) {
        let item = &self.items[self.at];
        let mut text = self.before.0.clone();
        text.replace_range(item.replaces.clone(), &item.typed);
        (text, item.replaces.start + item.typed.len())
    }

    /// What is said about the proposal.
    pub(crate) fn words(&self) -> String {
        let item = &self.items[self.at];
        let (name, about) = (item.typed.trim_end(), &item.about);
        let about = match about.is_empty() {
            true => String::new(),
            false => format!("  {about}"),
        };
        match self.is_only() {
            true => format!("{name}{about}"),
            false => format!(
                "{} of {}: {name}{about} · Tab: next",
                self.at + 1,
                self.items.len()
            ),
        }
    }
}

impl Item {
    fn read(item: &Value, text: &str, cursor: usize) -> Option<Self> {
        let at = |field: &str| match &item[field] {
            Value::Null => Some(cursor),
            offset => byte_of(text, offset.as_u64()?),
        };
        let replaces = at("rangeStart")?..at("rangeEnd")?;
        let typed = item["insertText"].as_str()?;
        // What a host proposes must not control the terminal.
        let is_clean = !typed.chars().any(|c| c.is_control() && c != '\n');
        (is_clean && replaces.start <= replaces.end).then(|| Self {
            typed: typed.to_owned(),
            replaces,
            attachment: item["attachment"].clone(),
            about: about(item),
        })
    }
}

/// What a host says about an item: `[file]  Reviews a file`.
fn about(item: &Value) -> String {
    let about = &item["_meta"]["compositor/about"];
    let words = ["argumentHint", "description"].map(|field| about[field].as_str().unwrap_or(""));
    clean_line(words.join("  ").trim())
}

/// A command of the host and what it does, for a list of them.
pub(crate) fn commands(answer: &Value) -> Vec<(String, String)> {
    let items = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
    let named = items.iter().take(ITEMS_MAX).filter_map(|item| {
        let name = item["insertText"].as_str()?.trim();
        Some((clean_line(name), about(item)))
    });
    named.collect()
}

fn byte_of(text: &str, offset: u64) -> Option<usize> {
    let mut units = 0;
    for (byte, char) in text.char_indices() {
        if units >= offset {
            return (units == offset).then_some(byte);
        }
        units += char.len_utf16() as u64;
    }
    (units == offset).then_some(text.len())
}

/// What was accepted since the last message went off.
#[derive(Debug, Default)]
pub(crate) struct Accepted(Vec<(String, Value)>);

impl Accepted {
    pub(crate) fn take_in(&mut self, completing: &Completing) {
        let item = &completing.items[completing.at];
        let typed = item.typed.trim_end().to_owned();
        if item.attachment.is_object() && !typed.is_empty() {
            self.0.push((typed, item.attachment.clone()));
        }
    }

    /// The attachments of what still stands in a text, in its order, each with its range.
    pub(crate) fn go_with(&mut self, text: &str) -> Vec<Value> {
        let mut found: Vec<(Range<usize>, Value)> = Vec::new();
        for (typed, attachment) in self.0.drain(..) {
            let free = |range: &Range<usize>| {
                found
                    .iter()
                    .all(|(other, _)| range.end <= other.start || other.end <= range.start)
            };
            let places = text
                .match_indices(&typed)
                .map(|(at, _)| at..at + typed.len());
            let mut places = places.filter(|range| stands_alone(text, range) && free(range));
            if let Some(range) = places.next() {
                found.push((range, attachment));
            }
        }
        found.sort_by_key(|(range, _)| range.start);
        let ranged = found.into_iter().map(|(range, mut attachment)| {
            attachment["range"] = json!({
                "start": position(text, range.start),
                "end": position(text, range.end),
            });
            attachment
        });
        ranged.collect()
    }
}

/// Whether nothing was typed on to a token, and a command still comes first.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let after = text[range.end..].trim_start_matches(PROSE_AFTER);
    let ends = after.chars().next().is_none_or(char::is_whitespace);
    let is_command = text[range.clone()].starts_with('/');
    ends && (!is_command || range.start == 0)
}

fn position(text: &str, byte: usize) -> Value {
    let before = &text[..byte];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or(before);
    json!({"line": line, "character": column.encode_utf16().count()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(typed: &str, start: u64, end: u64) -> Value {
        json!({
            "insertText": typed, "rangeStart": start, "rangeEnd": end,
            "attachment": {"type": "simple", "label": typed.trim(), "_meta": {"k": typed.trim()}},
            "_meta": {"compositor/about": {"description": "Does\u{7} it", "argumentHint": "FILE"}},
        })
    }

    #[test]
    fn words_that_hosts_complete_are_known() {
        for text in [
            "/",
            "/rev",
            "@",
            "see @src",
            "(@x",
            "@file:\"my fi",
            "a\n@x",
        ] {
            assert!(may_complete(text, text.len()), "{text:?}");
        }
        for text in ["", "hello", "see /x", "/review x", "@x y"] {
            assert!(!may_complete(text, text.len()), "{text:?}");
        }
        assert_eq!(params("c:/1", "👍 @x", 6)["offset"], 4);
    }

    #[test]
    fn proposals_are_gone_through_and_come_round() {
        let answer = json!({"items": [item("@file:a ", 3, 5), item("@file:b ", 3, 5)]});
        let mut completing = Completing::read(&answer, "👍 @x!", 6).unwrap();
        assert_eq!(completing.text(), ("👍 @file:a !".to_owned(), 13));
        assert_eq!(
            completing.words(),
            "1 of 2: @file:a  FILE  Does it · Tab: next"
        );
        completing.next();
        assert_eq!(completing.text().0, "👍 @file:b !");
        completing.next();
        assert_eq!(completing.text().0, "👍 @file:a !");
        assert_eq!(completing.before, ("👍 @x!".to_owned(), 6));
    }

    #[test]
    fn what_makes_no_sense_is_not_proposed() {
        for bad in [
            json!({}),
            json!({"items": []}),
            json!({"items": [{"insertText": 1}]}),
            json!({"items": [item("\u{1b}[2J", 0, 1)]}),
            json!({"items": [item("x", 1, 9)]}),
            json!({"items": [item("x", 2, 1)]}),
        ] {
            assert_eq!(Completing::read(&bad, "@x", 2), None, "{bad}");
        }
        let inside = json!({"items": [item("x", 1, 2)]});
        assert_eq!(
            Completing::read(&inside, "👍", 4),
            None,
            "between the halves of a pair"
        );
    }

    #[test]
    fn what_still_stands_in_the_text_goes_along() {
        let accepted = |typed: &[&str]| {
            let mut accepted = Accepted::default();
            for typed in typed {
                let answer = json!({"items": [item(typed, 0, 0)]});
                accepted.take_in(&Completing::read(&answer, "", 0).unwrap());
            }
            accepted
        };
        let ranges = |typed: &[&str], text: &str| {
            let attachments = accepted(typed).go_with(text);
            let shown = |attachment: &Value| {
                let (start, end) = (&attachment["range"]["start"], &attachment["range"]["end"]);
                assert_eq!(attachment["_meta"]["k"], attachment["label"]);
                format!(
                    "{} {}:{}-{}:{}",
                    attachment["label"].as_str().unwrap(),
                    start["line"],
                    start["character"],
                    end["line"],
                    end["character"],
                )
            };
            attachments.iter().map(shown).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(ranges(&["/review "], "/review x"), "/review 0:0-0:7");
        assert_eq!(ranges(&["/review "], "so /review x"), "");
        assert_eq!(
            ranges(&["@file:a "], "👍 é\n👍 @file:a."),
            "@file:a 1:3-1:10"
        );
        assert_eq!(
            ranges(&["@file:b ", "@file:a "], "@file:a and @file:b"),
            "@file:a 0:0-0:7, @file:b 0:12-0:19"
        );
        assert_eq!(ranges(&["@file:a "], "@file:a/b @file:abc"), "");
        assert_eq!(
            ranges(&["@file:a ", "@file:a "], "@file:a @file:a"),
            "@file:a 0:0-0:7, @file:a 0:8-0:15"
        );
        assert_eq!(
            ranges(&["@file:a ", "@file:a "], "@file:a"),
            "@file:a 0:0-0:7"
        );
        assert_eq!(ranges(&["@file:a "], "other"), "");
    }

    #[test]
    fn commands_of_the_host_are_listed() {
        let answer = json!({"items": [item("/review ", 0, 1), {"insertText": null}]});
        let expected = ("/review".to_owned(), "FILE  Does it".to_owned());
        assert_eq!(commands(&answer), [expected]);
        assert_eq!(commands(&json!(null)), []);
    }
}
