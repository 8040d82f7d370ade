//! An answer as OpenAI's Responses sends it: items that are added, grow and are done.
//!
//! Promises: items go back as they were when they were done, reasoning as the server encrypted it included; an answer
//! is whole only if the server said that it is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::answer_stream::{
    END_MARK, ReadAnswer, error_from_json, interrupted_error, invalid, push,
};
use super::super::sources::CitedSources;
use super::super::{ModelEvent, ProviderError, StopReason, Usage};

/// More items than this in one answer are no answer.
const ITEMS_MAX: u64 = 1_024;

/// Position of an item in an answer. Gateways give all items the same index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OutputPosition {
    index: u64,
    /// How many items stood at this index before.
    before: u64,
}

/// The events of one answer.
#[derive(Default)]
pub(crate) struct ResponseReader {
    /// How many items are over at an index where another one began.
    replaced: BTreeMap<u64, u64>,
    /// Items that are done, by their positions.
    items: BTreeMap<OutputPosition, Value>,
    /// The calls that began, by the positions of their items: their numbers, and how much of their input has come.
    calls: BTreeMap<OutputPosition, (usize, usize)>,
    /// Positions of items of which text has come.
    texts: BTreeMap<OutputPosition, usize>,
    sources: CitedSources,
    refused: bool,
    /// Whether the last event was a thought: another part of thoughts begins a paragraph.
    thinks: bool,
    done: bool,
}

impl ReadAnswer for ResponseReader {
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if data.trim() == END_MARK {
            return Ok(()); // some servers end as Chat Completions does; the answer has its own end
        }
        let event: Value = serde_json::from_str(data).map_err(|_| invalid(data))?;
        let at = self.position_of(&event)?;
        let delta = event["delta"].as_str().unwrap_or("");
        let thinks = std::mem::take(&mut self.thinks);
        match event["type"].as_str().unwrap_or("") {
            "response.output_item.added" => self.begin(at, &event["item"], events),
            "response.output_text.delta" => self.add_text(at, delta, events),
            "response.refusal.delta" => {
                self.refused = true;
                push(events, ModelEvent::Refusal, delta);
            }
            "response.reasoning_summary_part.added" if thinks => {
                self.thinks = true;
                push(events, ModelEvent::Reasoning, "\n\n");
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thinks = true;
                push(events, ModelEvent::Reasoning, delta);
            }
            // The end of a part of thoughts says it whole once more.
            "response.reasoning_summary_text.done" | "response.reasoning_summary_part.done" => {
                self.thinks = thinks;
            }
            "response.function_call_arguments.delta" => self.add_input(at, delta, events),
            "response.output_text.annotation.added" => self.cite(&event["annotation"], events),
            "response.output_item.done" => self.finish(at, &event["item"], events),
            "response.completed" | "response.incomplete" => {
                self.end_with(&event["response"], events)?;
            }
            "response.failed" => {
                return Err(error_from_json(&event["response"]));
            }
            "error" => {
                return Err(error_from_json(&event));
            }
            // Signs of progress, and what later versions may add.
            _ => {}
        }
        Ok(())
    }

    fn take_document(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let response: Value = serde_json::from_str(text).map_err(|_| invalid(text))?;
        let Some(output) = response["output"].as_array() else { return Err(invalid(text)) };
        for (index, item) in (0..ITEMS_MAX).zip(output) {
            let at = OutputPosition { index, before: 0 };
            self.begin(at, item, events);
            self.finish(at, item, events);
        }
        self.end_with(&response, events)
    }

    /// The connection ended before the answer did.
    fn conclude(&mut self, _: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.done = true;
        Err(interrupted_error())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_stopped(&self) -> bool {
        self.done
    }
}

impl ResponseReader {
    /// Where the item stands that an event is about.
    fn position_of(&mut self, event: &Value) -> Result<OutputPosition, ProviderError> {
        let index = event["output_index"].as_u64().unwrap_or(0);
        let before = self.replaced.get(&index).copied().unwrap_or(0);
        let at = OutputPosition { index, before };
        let begins = event["item"].is_object();
        let is_other = |done: &Value| !is_same(done, &event["item"]);
        let at = match self.items.get(&at) {
            Some(done) if begins && is_other(done) => OutputPosition { index, before: before + 1 },
            Some(_) | None => at,
        };
        if index >= ITEMS_MAX || at.before >= ITEMS_MAX {
            return Err(invalid("more items than an answer can have"));
        }
        if begins {
            self.replaced.insert(index, at.before);
        }
        Ok(at)
    }

    fn begin(&mut self, at: OutputPosition, item: &Value, events: &mut Vec<ModelEvent>) {
        if item["type"] != "function_call" || self.calls.contains_key(&at) {
            return; // what is said of other items comes as it grows
        }
        let index = self.calls.len();
        self.calls.insert(at, (index, 0));
        let word = |name: &str| item[name].as_str().unwrap_or("").to_owned();
        let (id, name) = (word("call_id"), word("name"));
        events.push(ModelEvent::CallStarted { index, id, name });
    }

    fn add_text(&mut self, at: OutputPosition, text: &str, events: &mut Vec<ModelEvent>) {
        *self.texts.entry(at).or_default() += text.len();
        push(events, ModelEvent::Text, text);
    }

    fn add_input(&mut self, at: OutputPosition, text: &str, events: &mut Vec<ModelEvent>) {
        let Some((index, came)) = self.calls.get_mut(&at) else {
            return; // of a call that never began: its item comes whole when it is done
        };
        *came += text.len();
        if !text.is_empty() {
            let (index, text) = (*index, text.to_owned());
            events.push(ModelEvent::CallInput { index, text });
        }
    }

    fn cite(&mut self, annotation: &Value, events: &mut Vec<ModelEvent>) {
        let Some(url) = annotation["url"].as_str() else {
            return; // a source that has no address
        };
        let link = self.sources.cite(annotation["title"].as_str(), url);
        events.extend(link.map(ModelEvent::Text));
    }

    /// An item is whole. What did not come in pieces comes now.
    fn finish(&mut self, at: OutputPosition, item: &Value, events: &mut Vec<ModelEvent>) {
        if self.items.contains_key(&at) {
            return; // it was whole before: what is said twice is not done twice
        }
        match item["type"].as_str().unwrap_or("") {
            "function_call" => {
                self.begin(at, item, events);
                let input = item["arguments"].as_str().unwrap_or("");
                let came = self.calls.get(&at).map_or(0, |(_, came)| *came);
                if let Some(rest) = input.get(came..) {
                    self.add_input(at, rest, events);
                }
            }
            "message" => {
                let parts = item["content"].as_array().into_iter().flatten();
                let came = self.texts.get(&at).copied().unwrap_or(0);
                for part in parts {
                    let text = part["text"].as_str().filter(|_| came == 0);
                    self.add_text(at, text.unwrap_or(""), events);
                    if part["type"] == "refusal" && !self.refused {
                        self.refused = true;
                        let words = part["refusal"].as_str().unwrap_or("");
                        push(events, ModelEvent::Refusal, words);
                    }
                    for annotation in part["annotations"].as_array().into_iter().flatten() {
                        self.cite(annotation, events);
                    }
                }
            }
            "reasoning" => {}
            kind if kind.ends_with("_call") => push_server_call(kind, item, events),
            _ => {}
        }
        self.items.insert(at, item.clone());
    }

    fn end_with(
        &mut self,
        response: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        self.done = true;
        if response["status"] == "failed" {
            return Err(error_from_json(response));
        }
        let items: Vec<Value> =
            std::mem::take(&mut self.items).into_values().filter(can_go_back).collect();
        if !items.is_empty() {
            events.push(ModelEvent::Items(items));
        }
        events.extend(usage(&response["usage"]).map(ModelEvent::Usage));
        let reason = response["incomplete_details"]["reason"].as_str();
        events.push(ModelEvent::Stopped(match reason {
            Some("max_output_tokens" | "max_tokens") => StopReason::Length,
            Some("content_filter") => StopReason::ContentFilter,
            Some(other) => StopReason::Other(other.to_owned()),
            None if !self.calls.is_empty() => StopReason::ToolCalls,
            None if self.refused => StopReason::Refusal,
            None => StopReason::End,
        }));
        Ok(())
    }
}

/// Whether two items are one: servers say some things twice.
fn is_same(a: &Value, b: &Value) -> bool {
    let has_same_id = a["id"].is_string() && a["id"] == b["id"] && a["type"] == b["type"];
    a == b || has_same_id
}

/// Thoughts that the server neither kept nor encrypted mean nothing to it later.
fn can_go_back(item: &Value) -> bool {
    item["type"] != "reasoning" || item["encrypted_content"].is_string()
}

/// A tool of the server, as people see it: what it did, once it is done.
fn push_server_call(kind: &str, item: &Value, events: &mut Vec<ModelEvent>) {
    let id = item["id"].as_str().unwrap_or("").to_owned();
    let name = item["name"].as_str().unwrap_or(kind.trim_end_matches("_call"));
    let inputs = ["action", "queries", "code", "arguments", "input"];
    let input = inputs.map(|name| &item[name]).into_iter().find(|it| !it.is_null());
    let error = &item["error"];
    events.push(ModelEvent::ServerCall {
        id: id.clone(),
        name: name.to_owned(),
        input: input.map_or_else(String::new, text_of),
    });
    events.push(ModelEvent::ServerResult {
        id,
        text: server_result(item),
        success: item["status"] != "failed" && error.is_null(),
    });
}

/// Its result, as people read it: why it failed, what an MCP server answered, what code printed.
fn server_result(item: &Value) -> String {
    let error = &item["error"];
    let whole = [&error["message"], error, &item["output"]];
    if let Some(text) = whole.into_iter().find_map(Value::as_str) {
        return text.to_owned();
    }
    let printed = item["outputs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|output| output["logs"].as_str());
    printed.collect::<Vec<_>>().join("\n")
}

/// A text as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn usage(value: &Value) -> Option<Usage> {
    let at = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let usage = Usage {
        input_tokens: at("/input_tokens"),
        output_tokens: at("/output_tokens"),
        cache_read_tokens: at("/input_tokens_details/cached_tokens"),
        cache_write_tokens: None,
    };
    (usage != Usage::default()).then_some(usage)
}
