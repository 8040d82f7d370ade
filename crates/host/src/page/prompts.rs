//! What models were sent in a chat, for devices that may see it (G-37).
//!
//! Promises: the text of a restricted section is in no answer, neither by itself nor inside of a request; where it cannot be found to
//! be taken out, the request is withheld. Read from the journal, beside the kernel.
//! Must not know: HTTP, who may ask.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use wire::{ChannelUri, Timestamp};

use crate::blobs::{Blobs, digest_of};
use crate::journal::{Archive, ArchivedChat, ArchivedRender, JournalError};
use crate::sent_request::{SentCall, call_json, read_call, transform_json};

/// The newest renders that are shown beside the calls of a chat.
const RENDERS_MAX: usize = 10;

/// Reads them.
#[derive(Clone)]
pub(crate) struct PromptReader {
    data: PathBuf,
    blobs: Arc<dyn Blobs>,
    restricted: Arc<[String]>,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PromptError {
    #[error("`chat` is not the URI of a chat of this host")]
    UnknownChat,
    #[error("no call of this number is stored")]
    UnknownCall,
    #[error("what is stored cannot be read: {0}")]
    Journal(#[from] JournalError),
}

impl PromptReader {
    pub(super) fn new(data: PathBuf, blobs: Arc<dyn Blobs>, restricted: &[String]) -> Self {
        Self { data, blobs, restricted: restricted.into() }
    }

    /// The calls of a chat and its newest renders, or one call whole. Blocks.
    pub(crate) fn read(&self, chat: &str, call: Option<u64>) -> Result<Value, PromptError> {
        let uri = ChannelUri::parse(chat).map_err(|_| PromptError::UnknownChat)?;
        let archive = Archive::open(&self.data)?;
        let session = archive.session(&uri)?.ok_or(PromptError::UnknownChat)?;
        let is_meant = |it: &&ArchivedChat| it.state.resource == chat;
        let found = session.chats.iter().find(is_meant).ok_or(PromptError::UnknownChat)?;
        let calls = archive.calls(found)?;
        let Some(number) = call else {
            let renders = archive.renders(found)?;
            let skipped = renders.len().saturating_sub(RENDERS_MAX);
            let renders = renders.iter().skip(skipped);
            return Ok(json!({
                "chat": chat,
                "calls": calls.iter().map(|call| call_json(chat, call)).collect::<Value>(),
                "renders": renders.map(|render| self.describe_render(render)).collect::<Value>(),
            }));
        };
        let call =
            calls.iter().find(|call| call.number == number).ok_or(PromptError::UnknownCall)?;
        let sent = read_call(&archive, &*self.blobs, found, call)?;
        Ok(self.describe_call(&sent))
    }

    fn describe_render(&self, render: &ArchivedRender) -> Value {
        let sections = render.before.iter().map(|(id, before)| {
            let rewritten = render.rewritten.iter().find(|(other, _)| other == id);
            let after = rewritten.map_or(before, |(_, after)| after);
            self.describe_section(id, before, after)
        });
        json!({
            "turnId": render.turn_id,
            "at": Timestamp(render.at).to_rfc3339(),
            "sections": sections.collect::<Value>(),
            "transform": transform_json(render),
        })
    }

    fn describe_call(&self, sent: &SentCall) -> Value {
        let mut shown = call_json(&sent.chat, &sent.call);
        let sections = sections_of(&sent.details);
        let texts: Vec<RestrictedText> = sections
            .iter()
            .filter(|section| self.is_restricted(section.id))
            .flat_map(SectionTexts::to_hide)
            .collect();
        let mut request = sent.outline.clone();
        let mut decisions = sent.details["decisions"].clone();
        hide(&mut decisions, &texts, &mut vec![false; texts.len()]);
        let mut is_found = vec![false; texts.len()];
        hide(&mut request, &texts, &mut is_found);
        let is_complete = texts.iter().zip(&is_found).all(|(text, found)| *found || !text.was_sent);
        shown["request"] = if is_complete { request } else { Value::Null };
        shown["withheld"] = if is_complete {
            Value::Null
        } else {
            json!("a restricted section cannot be taken out of this request")
        };
        shown["url"] = sent.details["url"].clone();
        shown["isAsSent"] = json!(sent.fault.is_none());
        shown["fault"] = json!(sent.fault);
        shown["transform"] = json!(sent.render.as_ref().map(transform_json));
        let described = sections
            .iter()
            .map(|section| self.describe_section(section.id, section.before, section.after));
        shown["sections"] = described.collect();
        shown["parts"] = decisions;
        shown
    }

    fn is_restricted(&self, id: &str) -> bool {
        self.restricted.iter().any(|restricted| restricted == id)
    }

    fn describe_section(&self, id: &str, before: &str, after: &str) -> Value {
        if self.is_restricted(id) {
            let sha256 = digest_of(after.as_bytes()).to_hex();
            return json!({"id": id, "restricted": true, "bytes": after.len(), "sha256": sha256});
        }
        json!({"id": id, "before": before, "after": after})
    }
}

struct SectionTexts<'a> {
    id: &'a str,
    before: &'a str,
    after: &'a str,
}

/// A text that must not be shown, and what stands in its place.
struct RestrictedText {
    text: String,
    instead: String,
    /// The request holds it.
    was_sent: bool,
}

impl SectionTexts<'_> {
    fn to_hide(&self) -> impl Iterator<Item = RestrictedText> {
        let one = |text: &str, was_sent: bool| {
            let text = text.trim();
            let sha256 = digest_of(text.as_bytes());
            RestrictedText {
                text: text.to_owned(),
                instead: format!(
                    "<restricted section {}, {} bytes, sha256 {sha256}>",
                    self.id,
                    text.len()
                ),
                was_sent,
            }
        };
        let all = [one(self.after, true), one(self.before, false)];
        all.into_iter().filter(|one| !one.text.is_empty())
    }
}

fn sections_of(details: &Value) -> Vec<SectionTexts<'_>> {
    let sections = details["sections"].as_array().into_iter().flatten();
    let texts = sections.filter_map(|section| {
        Some(SectionTexts {
            id: section["id"].as_str()?,
            before: section["before"].as_str().unwrap_or(""),
            after: section["after"].as_str().unwrap_or(""),
        })
    });
    texts.collect()
}

/// Replaces texts in all strings of a value; notes which were there. JSON that was read is not deep.
fn hide(value: &mut Value, texts: &[RestrictedText], is_found: &mut [bool]) {
    match value {
        Value::String(string) => {
            for (text, found) in texts.iter().zip(is_found) {
                if string.contains(&text.text) {
                    *found = true;
                    *string = string.replace(&text.text, &text.instead);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, texts, is_found)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(_, field)| hide(field, texts, is_found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;
