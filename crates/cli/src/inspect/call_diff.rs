//! What changed from one request to another: in a few sentences, and line by line.
//!
//! Promises: what is said about the cache is derived from what was sent, never guessed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::anyhow;
use host::sent_request::SentCall;
use markup::diff::{self, DiffBody, DiffRow};
use serde_json::{Value, json};

use super::pretty::pretty;
use super::sent_call::shown_request;
use crate::terminal::escape_line;

/// Where servers are told to cache: they move along with a conversation and are no part of it.
const CACHE_MARK: &str = "cache_control";

/// The fields that hold the conversation, by wire format.
const CONVERSATION: [&str; 3] = ["messages", "input", "contents"];

/// What changed.
pub(super) struct CallDiff {
    calls: (u64, u64),
    summary: DiffSummary,
    lines: String,
}

struct DiffSummary {
    messages_same: usize,
    messages_removed: usize,
    messages_added: usize,
    sections_changed: Vec<String>,
    tools_added: Vec<String>,
    tools_removed: Vec<String>,
    tools_changed: Vec<String>,
    fields_changed: Vec<String>,
    /// How many bytes at the beginning are the same, cache marks apart, of how many.
    prefix_bytes: usize,
    bytes: usize,
}

impl DiffSummary {
    /// What a server has cached of the first request is still the beginning of the second.
    fn keeps_cache(&self) -> bool {
        self.messages_removed == 0
            && self.sections_changed.is_empty()
            && self.tools_added.is_empty()
            && self.tools_removed.is_empty()
            && self.tools_changed.is_empty()
            && !self.fields_changed.iter().any(|field| field == "model")
    }
}

pub(super) fn compare(
    before: &SentCall,
    after: &SentCall,
    with_bodies: bool,
) -> anyhow::Result<CallDiff> {
    let (old, new) = (shown_request(before, with_bodies)?, shown_request(after, with_bodies)?);
    let (old_text, new_text) = (pretty(&without_marks(&old)), pretty(&without_marks(&new)));
    let compared =
        diff::compare(old_text.as_bytes(), new_text.as_bytes(), "request", diff::CONTEXT);
    let lines = match compared {
        Ok(diff) => write_rows(&diff.body),
        Err(too_large) => return Err(anyhow!("the requests cannot be compared: {too_large}")),
    };
    Ok(CallDiff {
        calls: (before.call.number, after.call.number),
        summary: summarise(
            ShownCall { sent: before, request: &old },
            ShownCall { sent: after, request: &new },
        ),
        lines,
    })
}

/// A sent call and its request as it is shown.
#[derive(Clone, Copy)]
struct ShownCall<'a> {
    sent: &'a SentCall,
    request: &'a Value,
}

fn summarise(before: ShownCall<'_>, after: ShownCall<'_>) -> DiffSummary {
    let (old, new) = (before.request, after.request);
    let (old_messages, new_messages) = (messages_of(old), messages_of(new));
    let pairs = old_messages.iter().zip(&new_messages);
    let same = pairs.take_while(|(old, new)| old == new).count();
    let (old_tools, new_tools) = (tools_of(old), tools_of(new));
    let missing = |from: &BTreeMap<String, Value>, there: &BTreeMap<String, Value>| {
        let names = there.keys().filter(|name| !from.contains_key(*name));
        names.cloned().collect()
    };
    let changed = old_tools
        .iter()
        .filter(|(name, tool)| new_tools.get(*name).is_some_and(|new| new != *tool));
    let (old_bytes, new_bytes) = (bytes_of(before), bytes_of(after));
    let pairs = old_bytes.bytes().zip(new_bytes.bytes());
    DiffSummary {
        messages_same: same,
        messages_removed: old_messages.len() - same,
        messages_added: new_messages.len() - same,
        sections_changed: changed_sections(&before.sent.details, &after.sent.details),
        tools_added: missing(&old_tools, &new_tools),
        tools_removed: missing(&new_tools, &old_tools),
        tools_changed: changed.map(|(name, _)| name.clone()).collect(),
        fields_changed: changed_fields(old, new),
        prefix_bytes: pairs.take_while(|(old, new)| old == new).count(),
        bytes: old_bytes.len(),
    }
}

/// The messages of a request without cache marks.
fn messages_of(request: &Value) -> Vec<Value> {
    let messages = CONVERSATION.iter().filter_map(|name| request[*name].as_array());
    messages.flatten().map(without_marks).collect()
}

fn without_marks(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_marks).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != CACHE_MARK)
            .map(|(name, value)| (name.clone(), without_marks(value)))
            .collect(),
        other => other.clone(),
    }
}

/// The tools of a request by name.
fn tools_of(request: &Value) -> BTreeMap<String, Value> {
    let listed = request["tools"].as_array().into_iter().flatten();
    let single = listed.flat_map(|tool| match tool["functionDeclarations"].as_array() {
        Some(declared) => declared.iter().collect::<Vec<_>>(),
        None => vec![tool],
    });
    let named = single.map(|tool| {
        let names = [&tool["name"], &tool["function"]["name"], &tool["type"]];
        let name = names
            .iter()
            .find_map(|name| name.as_str())
            .map_or_else(|| tool.to_string(), str::to_owned);
        (name, without_marks(tool))
    });
    named.collect()
}

/// The ids of sections that the model reads differently.
fn changed_sections(old: &Value, new: &Value) -> Vec<String> {
    let sections_of = |details: &Value| -> BTreeMap<String, String> {
        let sections = details["sections"].as_array().into_iter().flatten();
        let named = sections.filter_map(|section| {
            let after = section["after"].as_str().unwrap_or("");
            Some((section["id"].as_str()?.to_owned(), after.to_owned()))
        });
        named.collect()
    };
    let (old, new) = (sections_of(old), sections_of(new));
    let mut ids: Vec<&String> = old.keys().chain(new.keys()).collect();
    ids.sort_unstable();
    ids.dedup();
    let empty = String::new();
    let differs = |id: &&String| old.get(*id).unwrap_or(&empty) != new.get(*id).unwrap_or(&empty);
    ids.into_iter().filter(differs).cloned().collect()
}

/// Other fields of the request that differ.
fn changed_fields(old: &Value, new: &Value) -> Vec<String> {
    let described = ["tools", "system", "instructions", "systemInstruction"];
    let names = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let mut all = names(old);
    all.extend(names(new));
    all.sort_unstable();
    all.dedup();
    all.retain(|name| {
        let is_described =
            described.contains(&name.as_str()) || CONVERSATION.contains(&name.as_str());
        !is_described && old[name.as_str()] != new[name.as_str()]
    });
    all
}

/// What was sent, without cache marks; with names for bodies if it is not whole any more.
fn bytes_of(call: ShownCall<'_>) -> String {
    let body = call.sent.body.as_deref();
    let whole = body.and_then(|body| serde_json::from_slice::<Value>(body).ok());
    without_marks(whole.as_ref().unwrap_or(call.request)).to_string()
}

fn write_rows(body: &DiffBody) -> String {
    let DiffBody::Rows(rows) = body else {
        return "Not text: cannot be compared line by line.\n".to_owned();
    };
    let mut text = String::new();
    for row in rows {
        // Writing into a string does not fail.
        let _ = match row {
            DiffRow::Context { line, .. } => writeln!(text, " {}", line.text),
            DiffRow::Removed { line, .. } => writeln!(text, "-{}", line.text),
            DiffRow::Added { line, .. } => writeln!(text, "+{}", line.text),
            DiffRow::Folded { old, new, lines } => {
                writeln!(text, "@@ -{old} +{new}: {lines} lines unchanged @@")
            }
            DiffRow::LeftOut { lines } => writeln!(text, "@@ {lines} more lines @@"),
        };
    }
    text
}

impl CallDiff {
    pub(super) fn to_json(&self) -> Value {
        let summary = &self.summary;
        json!({
            "before": self.calls.0,
            "after": self.calls.1,
            "messages": {
                "same": summary.messages_same,
                "removed": summary.messages_removed,
                "added": summary.messages_added,
            },
            "sectionsChanged": summary.sections_changed,
            "tools": {
                "added": summary.tools_added,
                "removed": summary.tools_removed,
                "changed": summary.tools_changed,
            },
            "fieldsChanged": summary.fields_changed,
            "prefixBytes": summary.prefix_bytes,
            "bytes": summary.bytes,
            "keepsCache": summary.keeps_cache(),
            "diff": self.lines,
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        let summary = &self.summary;
        let list = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => escape_line(&names.join(", ")),
        };
        // Writing into a string does not fail.
        let _ = writeln!(text, "From call {} to call {}", self.calls.0, self.calls.1);
        let _ = writeln!(
            text,
            "  messages: the first {} are the same, {} removed, {} added",
            summary.messages_same, summary.messages_removed, summary.messages_added
        );
        let _ = writeln!(text, "  sections changed: {}", list(&summary.sections_changed));
        let _ = writeln!(
            text,
            "  tools: added {}; removed {}; changed {}",
            list(&summary.tools_added),
            list(&summary.tools_removed),
            list(&summary.tools_changed)
        );
        let _ = writeln!(text, "  other fields changed: {}", list(&summary.fields_changed));
        let kept = if summary.keeps_cache() {
            "all of it is the beginning of the later prompt: the server's cache is kept"
        } else {
            "the server's cache is kept only up to the first change"
        };
        let _ = writeln!(
            text,
            "  the first {} of {} bytes are the same, cache marks apart; {kept}\n",
            summary.prefix_bytes, summary.bytes
        );
        if self.lines.is_empty() {
            text.push_str("The requests are the same.\n")
        } else {
            text.push_str(&self.lines)
        }
        text
    }
}
