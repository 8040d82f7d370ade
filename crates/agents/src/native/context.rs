//! How much of a model's context window a conversation takes: as its server counted it, and estimated for what came since.
//!
//! Promises: what a server reports wins over estimates; an estimate is rough, and says so to nobody.
//! Must not know: what is done about it.

use agent_api::model_call::{PICTURE_TOKENS, TOKEN_BYTES};
use agent_api::{PastTurn, Section};
use compositor::part::View;
use compositor::resolve::Resolved;

use super::Model;
use super::model_view::HistoryEntry;
use super::usage::SUMMARY_CALL;
use crate::provider::{Api, ModelMessage, ToolSpec, Usage};

/// What a picture counts for, in bytes of text.
const PICTURE_BYTES: usize = PICTURE_TOKENS * TOKEN_BYTES;

/// Room for an answer, where the configuration does not say: what requests over this wire format ask for, or usual sizes.
const OUTPUT_TOKENS: u64 = 8_192;
const OUTPUT_TOKENS_ANTHROPIC: u64 = 32_000;

/// When conversations are summarised by themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionSettings {
    pub auto: bool,
    /// The part of the context window, less the room for an answer, at which it is done.
    pub at: f64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self { auto: true, at: 0.85 }
    }
}

impl CompactionSettings {
    /// Says what cannot work.
    pub fn check(&self) -> Result<(), String> {
        if (0.1..=1.0).contains(&self.at) {
            Ok(())
        } else {
            Err(format!("auto_compact_at must be between 0.1 and 1.0, not {}", self.at))
        }
    }
}

/// The window of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// All of it.
    pub size: u64,
    /// What a request may take.
    pub input: u64,
    /// What a request may take before the conversation is summarised.
    pub comfortable: u64,
}

impl Window {
    pub(super) fn new(model: &Model, settings: CompactionSettings) -> Self {
        let size = model.context();
        let room = model.answer_tokens().unwrap_or(match model.api {
            Api::Anthropic => OUTPUT_TOKENS_ANTHROPIC,
            Api::Chat | Api::Responses | Api::Gemini => OUTPUT_TOKENS,
        });
        let input = size - room.min(size / 4);
        Self { size, input, comfortable: (input as f64 * settings.at) as u64 }
    }
}

/// What a conversation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ContextMeter {
    /// The tokens that the server counted, and how many entries of the conversation they cover.
    reported: Option<(u64, usize)>,
}

impl ContextMeter {
    /// At the beginning of a turn: what the last call before it took, if that was to the same model and was about all of the
    /// conversation. `counted` is the turn of that call, and how many of the earlier entries are told through it. A turn that
    /// stopped at a limit has results of tools that no call was made with, and turns after it were in no call at all: they come on top.
    pub(super) fn resume(
        counted: Option<(&PastTurn, usize)>,
        model: &Model,
        earlier: &[HistoryEntry],
    ) -> Self {
        let (last, through) = counted.unzip();
        let usage = last.map(|past| &past.turn["usage"]);
        let usage = usage.filter(|usage| {
            usage["model"] == model.id.as_str() && usage["_meta"][SUMMARY_CALL] != true
        });
        let tokens = usage.and_then(|usage| usage["_meta"]["contextUsed"].as_u64());
        let answers = |entry: &HistoryEntry| {
            matches!(entry, HistoryEntry::Model(ModelMessage::Assistant { .. }))
        };
        let covered_entries = through.and_then(|through| earlier.get(..through)).unwrap_or(earlier);
        let covered = covered_entries.iter().rposition(answers).map_or(0, |at| at + 1);
        Self { reported: tokens.map(|tokens| (tokens, covered)) }
    }

    /// A call was answered; its answer becomes the next entry. A server that counts nothing leaves it to estimates.
    pub(super) fn report(&mut self, usage: Usage, entries: usize) {
        let Some(input) = usage.input_tokens else {
            self.reported = None;
            return;
        };
        let tokens = input.saturating_add(usage.output_tokens.unwrap_or(0));
        self.reported = Some((tokens, entries + 1));
    }

    /// The conversation is another one now.
    pub(super) fn reset(&mut self) {
        self.reported = None;
    }

    /// The tokens of a conversation as it would be sent now.
    pub(super) fn tokens(
        self,
        entries: &[HistoryEntry],
        system: &[Section],
        tools: &[ToolSpec],
    ) -> u64 {
        match self.reported {
            Some((tokens, covered)) => {
                let new = entries.get(covered..).unwrap_or_default();
                tokens.saturating_add(estimate_tokens(new))
            }
            None => {
                let system = system.iter().map(|section| section.content.len());
                let tools = tools.iter().map(|tool| {
                    tool.description.len() + wire::rpc::to_json(&tool.parameters).len()
                });
                let bytes: usize = system.chain(tools).sum();
                to_tokens(bytes).saturating_add(estimate_tokens(entries))
            }
        }
    }
}

/// A number of tokens, for people.
pub(super) fn show_tokens(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        _ => format!("{}k", tokens / 1_000),
    }
}

fn to_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(TOKEN_BYTES)).unwrap_or(u64::MAX)
}

/// Roughly the tokens of entries.
pub(super) fn estimate_tokens(entries: &[HistoryEntry]) -> u64 {
    to_tokens(entries.iter().map(estimate_bytes).sum())
}

/// Roughly what an entry takes. A picture counts as many tokens as models count for one.
pub(super) fn estimate_bytes(entry: &HistoryEntry) -> usize {
    match entry {
        HistoryEntry::User(message) => {
            let parts = message.parts.iter().enumerate();
            let sizes = parts.map(|(index, part)| match message.resolved.get(&index) {
                Some(Resolved::Text { text, .. }) => text.len(),
                Some(Resolved::Media { .. }) => PICTURE_BYTES,
                Some(Resolved::Omitted { .. } | Resolved::Unavailable { .. }) | None => {
                    match part.view() {
                        View::Attachment(_) => PICTURE_BYTES,
                        _ => wire::rpc::to_json(part.object()).len(),
                    }
                }
            });
            sizes.sum()
        }
        HistoryEntry::Result { text, media, .. } => {
            text.len() + media.parts.len().saturating_mul(PICTURE_BYTES)
        }
        HistoryEntry::Model(ModelMessage::User(content)) => content.to_string().len(),
        HistoryEntry::Model(ModelMessage::ToolResult { text, blocks, .. }) => {
            text.len() + blocks.len().saturating_mul(PICTURE_BYTES)
        }
        // What its server wants back is sent instead of the rest.
        HistoryEntry::Model(ModelMessage::Assistant { items: Some(items), .. }) => {
            items.iter().map(|item| wire::rpc::to_json(item).len()).sum()
        }
        HistoryEntry::Model(ModelMessage::Assistant { text, calls, .. }) => {
            let calls = calls.iter().map(|call| call.name.len() + call.input.len());
            text.len() + calls.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::memory::ChatMemory;
    use super::super::outputs::OutputSource;
    use super::*;

    fn said(text: &str, items: Option<serde_json::Value>) -> HistoryEntry {
        HistoryEntry::Model(ModelMessage::Assistant {
            text: text.to_owned(),
            calls: Vec::new(),
            items: items.map(|item| Arc::new(vec![item])),
        })
    }

    #[test]
    fn what_only_the_server_can_read_takes_its_space() {
        let signed = json!({"type": "thinking", "signature": "s".repeat(4_000)});
        assert_eq!(estimate_tokens(&[said("four", None)]), 1);
        let tokens = estimate_tokens(&[said("four", Some(signed))]);
        assert!(tokens > 1_000, "{tokens}");
    }

    #[test]
    fn what_is_reported_wins_and_the_rest_is_estimated() {
        let mut meter = ContextMeter::default();
        let entries = [said(&"x".repeat(400), None), said(&"y".repeat(40), None)];
        let system = [Section::new("identity", "z".repeat(80))];
        assert_eq!(meter.tokens(&entries, &system, &[]), 20 + 110);
        let usage = Usage { input_tokens: Some(5_000), output_tokens: Some(7), ..Usage::default() };
        meter.report(usage, 0);
        assert_eq!(meter.tokens(&entries, &system, &[]), 5_007 + 10);
        meter.report(Usage::default(), 1);
        assert_eq!(meter.tokens(&entries, &system, &[]), 20 + 110);
    }

    #[test]
    fn results_after_the_last_answer_are_not_covered_by_its_count() {
        let toml = "id = \"m\"\nbase_url = \"http://h/v1\"\n";
        let model: Model = toml::from_str(toml).unwrap();
        let past = PastTurn {
            turn: json!({"usage": {"model": "m", "_meta": {"contextUsed": 5_000}}}),
            ..PastTurn::default()
        };
        let result = HistoryEntry::Model(ModelMessage::ToolResult {
            id: "1".to_owned(),
            text: "x".repeat(4_000),
            blocks: Vec::new(),
        });
        let stopped = [said("I look.", None), result];
        let meter = ContextMeter::resume(Some((&past, 2)), &model, &stopped);
        assert_eq!(meter.tokens(&stopped, &[], &[]), 6_000);
        let meter = ContextMeter::resume(Some((&past, 1)), &model, &stopped[..1]);
        assert_eq!(meter.tokens(&stopped[..1], &[], &[]), 5_000);
    }

    /// A turn of the host alone, or one that stopped before its first call, does not make the count of the turn before it unknown.
    #[test]
    fn a_turn_without_a_call_comes_on_top_of_the_last_count() {
        let toml = "id = \"m\"\nbase_url = \"http://h/v1\"\n";
        let model: Model = toml::from_str(toml).unwrap();
        let turn = |text: &str, answer: &str, usage: serde_json::Value| PastTurn {
            turn: json!({"message": {"text": text}, "usage": usage,
                "responseParts": [{"kind": "markdown", "content": answer}]}),
            ..PastTurn::default()
        };
        let counted = json!({"model": "m", "_meta": {"contextUsed": 5_000}});
        let turns = [
            turn("one", "x", json!(null)),
            turn("two", "y", counted),
            turn("three", &"z".repeat(4_000), json!(null)),
        ];
        let memory = ChatMemory { summary: None, summarised_rounds: 0, turns: &turns };
        let source =
            OutputSource { api: Api::Chat, model: "m".to_owned(), findings: Default::default() };
        let entries = memory.recall(u64::MAX, &source).entries;
        assert_eq!(entries.len(), 6);
        let counted = memory.last_counted(&source);
        assert_eq!(counted.as_ref().map(|(_, through)| *through), Some(4));
        let meter = ContextMeter::resume(counted, &model, &entries);
        let tokens = meter.tokens(&entries, &[], &[]);
        assert!((6_000..6_100).contains(&tokens), "{tokens}");
        let meter = ContextMeter::resume(None, &model, &entries);
        assert!(meter.tokens(&entries, &[], &[]) < 1_200);
    }

    #[test]
    fn a_window_leaves_room_for_the_answer() {
        let toml = "id = \"m\"\nbase_url = \"http://h/v1\"\ncontext_tokens = 100000\noutput_tokens = 20000\n";
        let model: Model = toml::from_str(toml).unwrap();
        let settings = CompactionSettings::default();
        let window = Window::new(&model, settings);
        assert_eq!((window.input, window.comfortable), (80_000, 68_000));
        let mut small = model;
        small.context_tokens = Some(4_000);
        assert_eq!(Window::new(&small, settings).input, 3_000);
        for wrong in [0.0, 1.5, f64::NAN] {
            let settings = CompactionSettings { at: wrong, ..settings };
            assert!(settings.check().is_err(), "{wrong}");
        }
    }
}
