//! An answer as Anthropic's Messages sends it: blocks that begin, grow and end.
//!
//! Promises: blocks go back as they came, signatures included; an answer is whole only if the server said why it stopped.

use serde_json::{Map, Value, json};

use super::super::answer_stream::{
    END_MARK, ReadAnswer, error_from_json, interrupted_error, invalid, push,
};
use super::super::items::{input_object, is_blank_text, link};
use super::super::sources::CitedSources;
use super::super::{ModelEvent, ProviderError, StopReason, Usage};

/// More blocks than this in one answer are no answer.
const BLOCKS_MAX: usize = 1_024;

/// Citations of one block that go back.
const CITATIONS_MAX: usize = 256;

const REFUSAL: &str = "refusal";

/// Calls of tools that the server carries out itself, and of those of MCP servers that it knows.
const SERVER_TOOL: &str = "server_tool_use";
const SERVER_MCP_TOOL: &str = "mcp_tool_use";

/// The events of one answer.
#[derive(Default)]
pub(crate) struct MessageReader {
    blocks: Vec<AnswerBlock>,
    /// How many calls began.
    calls: usize,
    usage: Map<String, Value>,
    stop: Option<String>,
    done: bool,
}

/// A block of the answer.
#[derive(Default)]
struct AnswerBlock {
    /// Its number at the server, which need not begin with 0: gateways leave blocks out.
    at: u64,
    /// As it began.
    value: Value,
    /// What came since.
    text: String,
    thinking: String,
    signature: String,
    input: String,
    /// Which of the calls it is.
    call: Option<usize>,
    sources: CitedSources,
}

impl ReadAnswer for MessageReader {
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if data.trim() == END_MARK {
            return Ok(()); // of a gateway; the answer has its own end
        }
        let event: Value = serde_json::from_str(data).map_err(|_| invalid(data))?;
        match event["type"].as_str().unwrap_or("") {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => {
                self.begin_block(event["index"].as_u64(), &event["content_block"], events)?;
            }
            "content_block_delta" => self.grow(&event, events),
            "content_block_stop" => self.end_block(&event, events),
            "message_delta" => {
                self.count(&event["usage"]);
                self.stop_for(&event["delta"], events);
            }
            "message_stop" => self.conclude(events)?,
            "error" => {
                return Err(error_from_json(&event));
            }
            // Signs of life, and what later versions may add.
            _ => {}
        }
        Ok(())
    }

    fn take_document(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let message: Value = serde_json::from_str(text).map_err(|_| invalid(text))?;
        let Some(content) = message["content"].as_array() else { return Err(invalid(text)) };
        self.count(&message["usage"]);
        for block in content {
            let at = self.blocks.len() as u64;
            self.begin_block(Some(at), block, events)?;
            self.end_block(&json!({"index": at}), events);
        }
        self.stop_for(&message, events);
        self.conclude(events)
    }

    fn conclude(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.done = true;
        let usage = self.usage();
        let Some(stop) = self.stop.take() else {
            events.extend(usage.map(ModelEvent::Usage));
            return Err(interrupted_error());
        };
        let items: Vec<Value> = std::mem::take(&mut self.blocks)
            .into_iter()
            .map(AnswerBlock::into_item)
            .filter(|item| !is_blank_text(item))
            .collect();
        if !items.is_empty() {
            events.push(ModelEvent::Items(items));
        }
        events.extend(usage.map(ModelEvent::Usage));
        events.push(ModelEvent::Stopped(match stop.as_str() {
            "end_turn" | "stop_sequence" | "tool_use" if self.calls > 0 => StopReason::ToolCalls,
            "end_turn" | "stop_sequence" | "tool_use" => StopReason::End,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            REFUSAL => StopReason::Refusal,
            "pause_turn" => StopReason::Paused,
            other => StopReason::Other(other.to_owned()),
        }));
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }
}

impl MessageReader {
    /// Why the model stopped; a refusal may say why in words.
    fn stop_for(&mut self, said: &Value, events: &mut Vec<ModelEvent>) {
        let Some(stop) = said["stop_reason"].as_str() else {
            return; // figures alone
        };
        let why = said["stop_details"]["explanation"].as_str();
        if let Some(why) = why.filter(|_| stop == REFUSAL && self.stop.is_none()) {
            let has_text = self.blocks.iter().any(AnswerBlock::has_text);
            let separator = if has_text { "\n\n" } else { "" };
            push(events, ModelEvent::Refusal, &format!("{separator}{why}"));
        }
        self.stop = Some(stop.to_owned());
    }

    /// Figures come at the beginning and again at the end; the last of each counts.
    fn count(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten() {
            if value.is_u64() {
                self.usage.insert(name.clone(), value.clone());
            }
        }
    }

    /// The server counts what it read from the cache and wrote to it apart (G-60).
    fn usage(&self) -> Option<Usage> {
        let at = |name: &str| self.usage.get(name).and_then(Value::as_u64);
        let (read, written) = (at("cache_read_input_tokens"), at("cache_creation_input_tokens"));
        let fresh = at("input_tokens");
        let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
        let usage = Usage {
            input_tokens: fresh.map(|fresh| fresh.saturating_add(cached)),
            output_tokens: at("output_tokens"),
            cache_read_tokens: read,
            cache_write_tokens: written,
        };
        (usage != Usage::default()).then_some(usage)
    }

    fn begin_block(
        &mut self,
        at: Option<u64>,
        block: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if self.blocks.len() == BLOCKS_MAX {
            return Err(invalid("more blocks than an answer can have"));
        }
        let mut block = AnswerBlock {
            at: at.unwrap_or(self.blocks.len() as u64),
            value: block.clone(),
            ..AnswerBlock::default()
        };
        let word = |name: &str| block.value[name].as_str().unwrap_or("").to_owned();
        let (kind, id) = (word("type"), word("id"));
        // Some servers send the whole input with the beginning.
        let input = &block.value["input"];
        let input = if input.as_object().is_some_and(|input| !input.is_empty()) {
            input.to_string()
        } else {
            String::new()
        };
        match kind.as_str() {
            "text" => push(events, ModelEvent::Text, &word("text")),
            "thinking" => push(events, ModelEvent::Reasoning, &word("thinking")),
            "tool_use" => {
                let index = self.calls;
                self.calls += 1;
                let name = word("name");
                events.push(ModelEvent::CallStarted { index, id, name });
                if !input.is_empty() {
                    let text = input.clone();
                    events.push(ModelEvent::CallInput { index, text });
                }
                block.call = Some(index);
                block.input = input;
            }
            SERVER_TOOL | SERVER_MCP_TOOL => block.input = input,
            kind if kind.ends_with("_tool_result") => {
                events.push(server_result(&block.value));
            }
            // Thoughts that nobody can read, and kinds that came later: they go back as they are.
            _ => {}
        }
        self.blocks.push(block);
        Ok(())
    }

    fn grow(&mut self, event: &Value, events: &mut Vec<ModelEvent>) {
        let Some(block) = block_at(&mut self.blocks, event) else {
            return; // of a block that never began: there is nowhere to put it
        };
        let delta = &event["delta"];
        let word = |name: &str| delta[name].as_str().unwrap_or("");
        match word("type") {
            "text_delta" => {
                block.text.push_str(word("text"));
                push(events, ModelEvent::Text, word("text"));
            }
            "thinking_delta" => {
                block.thinking.push_str(word("thinking"));
                push(events, ModelEvent::Reasoning, word("thinking"));
            }
            "signature_delta" => block.signature.push_str(word("signature")),
            "input_json_delta" => {
                let text = word("partial_json").to_owned();
                block.input.push_str(&text);
                if let Some(index) = block.call
                    && !text.is_empty()
                {
                    events.push(ModelEvent::CallInput { index, text });
                }
            }
            "citations_delta" => {
                let citation = &delta["citation"];
                block.add_citation(citation);
                let title = citation["title"].as_str();
                let url = citation["url"].as_str();
                let link = url.and_then(|url| block.sources.cite(title, url));
                events.extend(link.map(ModelEvent::Text));
            }
            _ => {}
        }
    }

    fn end_block(&mut self, event: &Value, events: &mut Vec<ModelEvent>) {
        let Some(block) = block_at(&mut self.blocks, event) else {
            return; // of a block that never began
        };
        if block.is_server_call() {
            let word = |name: &str| block.value[name].as_str().unwrap_or("").to_owned();
            events.push(ModelEvent::ServerCall {
                id: word("id"),
                name: word("name"),
                input: block.input.clone(),
            });
        }
    }
}

fn block_at<'a>(blocks: &'a mut [AnswerBlock], event: &Value) -> Option<&'a mut AnswerBlock> {
    match event["index"].as_u64() {
        Some(at) => blocks.iter_mut().rev().find(|block| block.at == at),
        // What has no number belongs to what began last.
        None => blocks.last_mut(),
    }
}

impl AnswerBlock {
    /// Whether people read something of it.
    fn has_text(&self) -> bool {
        let began = self.value["text"].as_str();
        !self.text.is_empty() || began.is_some_and(|text| !text.is_empty())
    }

    /// Whether it is a call of a tool that the server carries out itself, or has an MCP server carry out.
    fn is_server_call(&self) -> bool {
        let kind = self.value["type"].as_str();
        matches!(kind, Some(SERVER_TOOL | SERVER_MCP_TOOL))
    }

    /// Keeps a citation, so that it goes back with the block.
    fn add_citation(&mut self, citation: &Value) {
        let Some(block) = self.value.as_object_mut() else {
            return; // a block that is no object has no sources
        };
        let citations = block.entry("citations").or_insert_with(|| Value::Array(Vec::new()));
        if !citations.is_array() {
            *citations = Value::Array(Vec::new());
        }
        if let Some(citations) = citations.as_array_mut()
            && citations.len() < CITATIONS_MAX
            && !citations.contains(citation)
        {
            citations.push(citation.clone());
        }
    }

    /// As it goes back.
    fn into_item(self) -> Value {
        let Value::Object(mut block) = self.value else { return self.value };
        for (field, more) in
            [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)]
        {
            if !more.is_empty() {
                let before = block.get(field).and_then(Value::as_str).unwrap_or("");
                let whole = format!("{before}{more}");
                block.insert(field.to_owned(), Value::String(whole));
            }
        }
        let kind = block.get("type").and_then(Value::as_str);
        if matches!(kind, Some("tool_use" | SERVER_TOOL | SERVER_MCP_TOOL)) {
            block.insert("input".to_owned(), input_object(&self.input));
        }
        Value::Object(block)
    }
}

/// The result of a tool of the server, as people read it: what it found or printed, or why it failed.
fn server_result(block: &Value) -> ModelEvent {
    let content = &block["content"];
    let found = content.as_array().into_iter().flatten();
    let lines: Vec<String> = found.chain([content]).filter_map(result_line).collect();
    let code = content["error_code"].as_str();
    ModelEvent::ServerResult {
        id: block["tool_use_id"].as_str().unwrap_or("").to_owned(),
        success: code.is_none() && block["is_error"] != true,
        text: code.map_or_else(|| lines.join("\n"), str::to_owned),
    }
}

/// A page that was found or fetched, a text, or what a command printed.
fn result_line(it: &Value) -> Option<String> {
    if let Some(url) = it["url"].as_str() {
        return link(it["title"].as_str(), url).map(|link| format!("-{link}"));
    }
    let texts = [it, &it["text"], &it["stdout"], &it["stderr"]];
    let said = texts.into_iter().filter_map(Value::as_str);
    let said: Vec<&str> = said.filter(|said| !said.is_empty()).collect();
    (!said.is_empty()).then(|| said.join("\n"))
}
