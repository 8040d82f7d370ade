//! What a half typed word may become, as the host suggests it, and what of that was accepted.
//!
//! Promises: what was accepted and is still in the text when it is sent goes along as the host made it, with its position
//!. What people typed over is forgotten.
//! Must not know: connections, beyond the request itself.

use std::ops::Range;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{ChatError, OpenChat};

/// Suggestions that are read.
const ITEMS_MAX: usize = 50;
/// How long a user waits for a completion.
const COMPLETIONS_TIMEOUT: Duration = Duration::from_secs(3);
/// What marks the end of a sentence, not of a name.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}'];

/// Something that goes along with a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageAttachment(pub(super) Value);

impl MessageAttachment {
    /// A file whose bytes go along with the message.
    pub fn embedded(label: &str, content_type: &str, bytes: &[u8]) -> Self {
        Self(json!({
            "type": "embeddedResource",
            "label": label,
            "contentType": content_type,
            "data": STANDARD.encode(bytes),
        }))
    }
}

/// What the word at the cursor may become.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    pub insert_text: String,
    /// The bytes of the text it replaces.
    pub replaces: Range<usize>,
    /// What goes along with the message once it is accepted.
    pub attachment: Option<MessageAttachment>,
    /// The arguments a command takes, `[file]`.
    pub argument_hint: String,
    pub description: String,
}

/// Whether the word at the cursor is one that hosts complete.
pub fn is_completable(text: &str, cursor: usize) -> bool {
    let Some(before) = text.get(..cursor) else { return false };
    let is_command = before.starts_with('/') && !before.contains(char::is_whitespace);
    let line = before.rsplit('\n').next().unwrap_or(before);
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    let is_quoted = line.rsplit_once('"').is_some_and(|(prose, _)| {
        ["@file:", "@skill:", "@", "#file:", "#"].iter().any(|begin| prose.ends_with(begin))
    });
    is_command || word.contains(['@', '#']) || is_quoted
}

impl OpenChat {
    /// What the host suggests for the word at the cursor, which is a byte of the text. What is returned does not borrow the
    /// chat: it can be waited for while the chat is used.
    pub fn completions(
        &self,
        text: &str,
        cursor: usize,
    ) -> impl Future<Output = Result<Vec<Completion>, ChatError>> + Send + use<> {
        let params = params(self.chat.as_str(), text, cursor);
        let (live, text) = (self.live.clone(), text.to_owned());
        async move {
            let asked = live.request("completions", params);
            match tokio::time::timeout(COMPLETIONS_TIMEOUT, asked).await {
                Ok(result) => Ok(read_all(&result?, &text, cursor)),
                Err(_) => Err(ChatError::CompletionsTimedOut),
            }
        }
    }

    /// The commands that the host knows here.
    pub async fn commands(&self) -> Result<Vec<Completion>, ChatError> {
        self.completions("/", 1).await
    }
}

fn params(chat: &str, text: &str, cursor: usize) -> Value {
    let before = text.get(..cursor).unwrap_or(text);
    json!({
        "channel": chat,
        "kind": "userMessage",
        "text": text,
        "offset": before.encode_utf16().count(),
    })
}

/// The suggestions of an answer that make sense for this text.
fn read_all(answer: &Value, text: &str, cursor: usize) -> Vec<Completion> {
    let items = answer["items"].as_array().map_or(&[][..], Vec::as_slice).iter().take(ITEMS_MAX);
    items.filter_map(|item| Completion::read(item, text, cursor)).collect()
}

impl Completion {
    fn read(item: &Value, text: &str, cursor: usize) -> Option<Self> {
        let at = |field: &str| match &item[field] {
            Value::Null => Some(cursor),
            offset => byte_at(text, offset.as_u64()?),
        };
        let replaces = at("rangeStart")?..at("rangeEnd")?;
        let about = &item["_meta"]["compositor/about"];
        let about = |field: &str| about[field].as_str().unwrap_or("").to_owned();
        let attachment = &item["attachment"];
        // A word of a command is a part of the command's text.
        let is_argument = attachment["displayKind"] == "argument";
        let completion = Self {
            insert_text: item["insertText"].as_str()?.to_owned(),
            attachment: (attachment.is_object() && !is_argument)
                .then(|| MessageAttachment(attachment.clone())),
            argument_hint: about("argumentHint"),
            description: about("description"),
            replaces,
        };
        (completion.replaces.start <= completion.replaces.end).then_some(completion)
    }
}

/// The byte at an offset of UTF-16 code units; none if it is outside of the text or inside of a character.
fn byte_at(text: &str, offset: u64) -> Option<usize> {
    let mut units = 0;
    for (byte, char) in text.char_indices() {
        if units >= offset {
            return (units == offset).then_some(byte);
        }
        units += char.len_utf16() as u64;
    }
    (units == offset).then_some(text.len())
}

/// What was accepted since the last message was sent.
#[derive(Debug, Default)]
pub struct AcceptedCompletions(Vec<(String, MessageAttachment)>);

impl AcceptedCompletions {
    pub fn accept(&mut self, completion: &Completion) {
        let inserted = completion.insert_text.trim_end().to_owned();
        if let Some(attachment) = &completion.attachment
            && !inserted.is_empty()
        {
            self.0.push((inserted, attachment.clone()));
        }
    }

    /// Something attached by words of the text that stand for it, in brackets.
    pub fn accept_attachment(&mut self, label: String, attachment: MessageAttachment) {
        self.0.push((label, attachment));
    }

    /// Takes over what a message carries that is typed on: what its attachments stand for in its text.
    pub(super) fn accept_all_of(&mut self, message: &Value) {
        let text = message["text"].as_str().unwrap_or("");
        let attachments = message["attachments"].as_array().into_iter().flatten();
        for attachment in attachments {
            let (start, end) = (&attachment["range"]["start"], &attachment["range"]["end"]);
            if let (Some(start), Some(end)) = (byte_of(text, start), byte_of(text, end))
                && let Some(words) = text.get(start..end).filter(|words| !words.is_empty())
            {
                self.0.push((words.to_owned(), MessageAttachment(attachment.clone())));
            }
        }
    }

    /// The attachments of what is still in a text, in its order, each with its range; all are forgotten here.
    pub fn take_attachments(&mut self, text: &str) -> Vec<MessageAttachment> {
        let mut accepted: Vec<(Range<usize>, MessageAttachment)> = Vec::new();
        for (inserted, attachment) in self.0.drain(..) {
            let is_free = |range: &Range<usize>| {
                accepted
                    .iter()
                    .all(|(other, _)| range.end <= other.start || other.end <= range.start)
            };
            let mut matches = text
                .match_indices(&inserted)
                .map(|(at, _)| at..at + inserted.len())
                .filter(|range| is_whole(text, range) && is_free(range));
            if let Some(range) = matches.next() {
                accepted.push((range, attachment));
            }
        }
        accepted.sort_by_key(|(range, _)| range.start);
        let ranged = accepted.into_iter().map(|(range, MessageAttachment(mut attachment))| {
            attachment["range"] = json!({
                "start": position(text, range.start),
                "end": position(text, range.end),
            });
            MessageAttachment(attachment)
        });
        ranged.collect()
    }
}

/// Whether nothing was typed on to a token, and a command still comes first. Brackets end by themselves.
fn is_whole(text: &str, range: &Range<usize>) -> bool {
    if text[range.clone()].starts_with('[') {
        return true;
    }
    let after = text[range.end..].trim_start_matches(PUNCTUATION);
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

/// The byte of a position; none if the text has no such position.
fn byte_of(text: &str, position: &Value) -> Option<usize> {
    let line = usize::try_from(position["line"].as_u64()?).ok()?;
    let start = match line {
        0 => 0,
        _ => text.match_indices('\n').nth(line - 1)?.0 + 1,
    };
    let rest = text.get(start..)?;
    let rest = rest.split('\n').next().unwrap_or(rest);
    Some(start + byte_at(rest, position["character"].as_u64()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(typed: &str, start: u64, end: u64) -> Value {
        json!({
            "insertText": typed, "rangeStart": start, "rangeEnd": end,
            "attachment": {"type": "simple", "label": typed.trim(), "_meta": {"k": typed.trim()}},
            "_meta": {"compositor/about": {"description": "Does it", "argumentHint": "FILE"}},
        })
    }

    #[test]
    fn completable_words_are_recognised() {
        for text in [
            "/",
            "/rev",
            "@",
            "see @src",
            "(@x",
            "@file:\"my fi",
            "a\n@x",
            "see #src",
            "#file:\"my fi",
        ] {
            assert!(is_completable(text, text.len()), "{text:?}");
        }
        for text in ["", "hello", "see /x", "/review x", "@x y"] {
            assert!(!is_completable(text, text.len()), "{text:?}");
        }
        assert_eq!(params("c:/1", "👍 @x", 6)["offset"], 4);
    }

    #[test]
    fn suggestions_are_read_with_their_ranges_in_bytes() {
        let answer = json!({"items": [item("@file:a ", 3, 5), {"insertText": null}]});
        let [completion] = &read_all(&answer, "👍 @x!", 6)[..] else { panic!("one makes sense") };
        assert_eq!(completion.insert_text, "@file:a ");
        assert_eq!(completion.replaces, 5..7);
        assert_eq!(completion.argument_hint, "FILE");
        assert_eq!(completion.description, "Does it");
        assert_eq!(read_all(&json!(null), "", 0), []);
    }

    #[test]
    fn invalid_items_are_not_suggested() {
        for bad in [
            json!({}),
            json!({"items": []}),
            json!({"items": [{"insertText": 1}]}),
            json!({"items": [item("x", 1, 9)]}),
            json!({"items": [item("x", 2, 1)]}),
        ] {
            assert_eq!(read_all(&bad, "@x", 2), [], "{bad}");
        }
        let inside = json!({"items": [item("x", 1, 2)]});
        assert_eq!(read_all(&inside, "👍", 4), [], "between the halves of a pair");
    }

    #[test]
    fn completions_still_in_the_text_are_sent() {
        let accepted = |typed: &[&str]| {
            let mut accepted = AcceptedCompletions::default();
            for typed in typed {
                let answer = json!({"items": [item(typed, 0, 0)]});
                accepted.accept(&read_all(&answer, "", 0)[0]);
            }
            accepted
        };
        let ranges = |typed: &[&str], text: &str| {
            let attachments = accepted(typed).take_attachments(text);
            let describe = |MessageAttachment(attachment): &MessageAttachment| {
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
            attachments.iter().map(describe).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(ranges(&["/review "], "/review x"), "/review 0:0-0:7");
        assert_eq!(ranges(&["/review "], "so /review x"), "");
        assert_eq!(ranges(&["@file:a "], "👍 é\n👍 @file:a."), "@file:a 1:3-1:10");
        assert_eq!(
            ranges(&["@file:b ", "@file:a "], "@file:a and @file:b"),
            "@file:a 0:0-0:7, @file:b 0:12-0:19"
        );
        assert_eq!(ranges(&["@file:a "], "@file:a/b @file:abc"), "");
        assert_eq!(
            ranges(&["@file:a ", "@file:a "], "@file:a @file:a"),
            "@file:a 0:0-0:7, @file:a 0:8-0:15"
        );
        assert_eq!(ranges(&["@file:a ", "@file:a "], "@file:a"), "@file:a 0:0-0:7");
        assert_eq!(ranges(&["@file:a "], "other"), "");
        assert_eq!(ranges(&["[image a]"], "x[image a]y"), "[image a] 0:1-0:10");
    }

    #[test]
    fn what_a_message_carried_goes_along_when_it_is_sent_again() {
        let text = "👍 é\n👍 @file:a and more";
        let attachment = json!({"type": "resource", "range": {
            "start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 10},
        }});
        let message = json!({"text": text, "attachments": [attachment, {"type": "resource"}]});
        let mut accepted = AcceptedCompletions::default();
        accepted.accept_all_of(&message);
        let [MessageAttachment(sent)] = &accepted.take_attachments("again: @file:a")[..] else {
            panic!("one has a range")
        };
        assert_eq!(sent["range"]["start"]["character"], 7);
    }
}
