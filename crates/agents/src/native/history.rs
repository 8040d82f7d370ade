//! What the model is shown of what was said: turns of the journal, and what a resumed turn said so far.
//!
//! Promises: what a model said and what its tools answered is shown as it was, in order; every call has a result, for
//! servers refuse a conversation in which one is missing; the oldest turns go first when there is no room.

use std::sync::Arc;

use agent_api::{PastTurn, UserMessage};
use compositor::part::View;
use compositor::resolve::Resolved;
use serde_json::Value;

use super::shown::Told;
use crate::provider::{ModelMessage, ToolUse};

/// Rough size of a token, in bytes of text: good enough to decide what to leave out.
const TOKEN_BYTES: usize = 4;

/// What a picture counts for, in bytes of text.
const PICTURE_BYTES: usize = 1_500 * TOKEN_BYTES;

/// Said of a call whose end nobody saw.
const INTERRUPTED: &str = "The call was interrupted; what it did until then is not known.";

/// The messages of the turns, oldest first, as many of the newest as fit.
pub(super) fn of_turns(turns: &[PastTurn], tokens_max: u64) -> Vec<Told> {
    let room = usize::try_from(tokens_max)
        .unwrap_or(usize::MAX)
        .saturating_mul(TOKEN_BYTES);
    let mut used = 0;
    let mut shown = Vec::new();
    for turn in turns.iter().rev() {
        let messages = of_turn(turn);
        used += messages.iter().map(size_of).sum::<usize>();
        if used > room && !shown.is_empty() {
            break;
        }
        shown.push(messages);
    }
    shown.into_iter().rev().flatten().collect()
}

fn of_turn(past: &PastTurn) -> Vec<Told> {
    let mut said = past.messages.iter().cloned();
    let text = past.turn["message"]["text"].as_str().unwrap_or("");
    let mut messages = vec![match said.next() {
        Some(message) => Told::User(message),
        None => Told::user(text),
    }];
    let parts = past.turn["responseParts"].as_array();
    let parts = parts.map_or(&[][..], Vec::as_slice);
    messages.extend(of_parts(parts, &mut said));
    messages
}

/// An answer as rounds: text and the calls after it make one assistant message, then come the results. `said` is what the
/// user said in between, as far as its meaning was kept.
pub(super) fn of_parts(
    parts: &[Value],
    said: &mut dyn Iterator<Item = Arc<UserMessage>>,
) -> Vec<Told> {
    let mut messages = Vec::new();
    let mut round = Round::default();
    for part in parts {
        match part["kind"].as_str().unwrap_or("") {
            "markdown" => {
                let text = part["content"].as_str().unwrap_or("");
                if !text.is_empty() {
                    round.says(text, &mut messages);
                }
            }
            "toolCall" => round.calls(&part["toolCall"], &mut messages),
            // What the user said in between was heard between two rounds.
            "systemNotification" => {
                if let Some(message) = part["_meta"].get(wire::meta::STEERING) {
                    std::mem::take(&mut round).end(&mut messages);
                    let text = message["text"].as_str().unwrap_or("");
                    messages.push(match said.next() {
                        Some(message) => Told::User(message),
                        None => Told::user(text),
                    });
                }
            }
            _ => {}
        }
    }
    round.end(&mut messages);
    messages
}

#[derive(Default)]
struct Round {
    text: String,
    calls: Vec<(ToolUse, String)>,
    /// Which one its calls say it is; those of other agents do not say.
    number: Option<u64>,
}

impl Round {
    /// Text after calls belongs to the next round.
    fn says(&mut self, text: &str, messages: &mut Vec<Told>) {
        if !self.calls.is_empty() {
            std::mem::take(self).end(messages);
        }
        self.text.push_str(text);
    }

    /// So does a call that was made when others had their results.
    fn calls(&mut self, call: &Value, messages: &mut Vec<Told>) {
        // A call whose input never came whole was never made.
        if call["status"] == "cancelled" && call["toolInput"].is_null() {
            return;
        }
        let number = call["_meta"][super::round::ROUND].as_u64();
        if !self.calls.is_empty() && self.number != number {
            std::mem::take(self).end(messages);
        }
        self.number = number;
        let id = call["toolCallId"].as_str().unwrap_or("").to_owned();
        let name = call["toolName"].as_str().unwrap_or("").to_owned();
        let input = call["toolInput"].as_str().unwrap_or("{}").to_owned();
        let told = ToolUse { id, name, input };
        self.calls.push((told, result_text(call)));
    }

    fn end(self, messages: &mut Vec<Told>) {
        if self.text.is_empty() && self.calls.is_empty() {
            return;
        }
        let (calls, results): (Vec<ToolUse>, Vec<String>) = self.calls.into_iter().unzip();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        messages.push(Told::Model(ModelMessage::Assistant {
            text: self.text,
            calls,
        }));
        let results = ids.into_iter().zip(results);
        let results = results.map(|(id, text)| ModelMessage::ToolResult { id, text });
        messages.extend(results.map(Told::Model));
    }
}

/// What the model was told of a call: its text content, or why there is none.
fn result_text(call: &Value) -> String {
    match call["status"].as_str().unwrap_or("") {
        "completed" => {
            let content = call["content"].as_array();
            let texts: Vec<&str> = content
                .into_iter()
                .flatten()
                .filter(|block| block["type"] == "text")
                .filter_map(|block| block["text"].as_str())
                .collect();
            match texts.is_empty() {
                true => plain(&call["pastTenseMessage"]),
                false => texts.join("\n"),
            }
        }
        "cancelled" if call["reason"] != "skipped" => {
            let suggestion = call["userSuggestion"]["text"].as_str();
            super::consent::denied_text(suggestion)
        }
        _ => INTERRUPTED.to_owned(),
    }
}

fn plain(text: &Value) -> String {
    let text = text.as_str().or_else(|| text["markdown"].as_str());
    text.unwrap_or("").to_owned()
}

/// Roughly what an entry takes. A picture counts as many tokens as models count for one.
fn size_of(told: &Told) -> usize {
    match told {
        Told::User(message) => {
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
        Told::Model(ModelMessage::User(content)) => content.to_string().len(),
        Told::Model(ModelMessage::ToolResult { text, .. }) => text.len(),
        Told::Model(ModelMessage::Assistant { text, calls }) => {
            let calls = calls.iter().map(|call| call.name.len() + call.input.len());
            text.len() + calls.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(text: &str, parts: Value) -> PastTurn {
        PastTurn {
            turn: json!({"message": {"text": text}, "responseParts": parts}),
            messages: Vec::new(),
        }
    }

    fn said(text: &str) -> Told {
        Told::Model(ModelMessage::Assistant {
            text: text.to_owned(),
            calls: Vec::new(),
        })
    }

    fn of_parts(parts: &[Value]) -> Vec<Told> {
        super::of_parts(parts, &mut std::iter::empty())
    }

    #[test]
    fn rounds_are_told_apart_and_every_call_has_a_result() {
        let parts = json!([
            {"kind": "reasoning", "content": "hm"},
            {"kind": "markdown", "content": "Let me "},
            {"kind": "markdown", "content": "look."},
            {"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": "a", "toolName": "read",
                "toolInput": "{\"path\":\"x\"}", "content": [{"type": "text", "text": "one"}, {"type": "resource"}]}},
            {"kind": "toolCall", "toolCall": {"status": "cancelled", "reason": "denied", "toolCallId": "b",
                "toolName": "bash", "toolInput": "{}", "userSuggestion": {"text": "no, use ls"}}},
            {"kind": "markdown", "content": "Done."},
            {"kind": "toolCall", "toolCall": {"status": "cancelled", "reason": "skipped", "toolCallId": "c",
                "toolName": "bash", "toolInput": "{}"}},
        ]);
        let messages = of_turns(&[turn("hi", parts)], 1_000);
        let calls = |id: &str, name: &str, input: &str| ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
        };
        let result = |id: &str, text: &str| {
            Told::Model(ModelMessage::ToolResult {
                id: id.to_owned(),
                text: text.to_owned(),
            })
        };
        assert_eq!(
            messages,
            vec![
                Told::user("hi"),
                Told::Model(ModelMessage::Assistant {
                    text: "Let me look.".to_owned(),
                    calls: vec![
                        calls("a", "read", "{\"path\":\"x\"}"),
                        calls("b", "bash", "{}")
                    ],
                }),
                result("a", "one"),
                result("b", &super::super::consent::denied_text(Some("no, use ls"))),
                Told::Model(ModelMessage::Assistant {
                    text: "Done.".to_owned(),
                    calls: vec![calls("c", "bash", "{}")],
                }),
                result("c", INTERRUPTED),
            ]
        );
    }

    #[test]
    fn calls_without_a_word_between_them_are_told_apart_by_their_rounds() {
        let call = |id: &str, round: u64| {
            json!({"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": id, "toolName": "read",
                "toolInput": "{}", "content": [], "_meta": {super::super::round::ROUND: round}}})
        };
        let parts = [call("a", 0), call("b", 0), call("c", 1)];
        let calls_of = |told: &Told| match told {
            Told::Model(ModelMessage::Assistant { calls, .. }) => Some(calls.len()),
            Told::Model(_) | Told::User(_) => None,
        };
        let calls: Vec<usize> = of_parts(&parts).iter().filter_map(calls_of).collect();
        assert_eq!(calls, [2, 1]);
    }

    #[test]
    fn what_was_said_in_between_stands_where_it_was_taken() {
        let call = |id: &str, round: u64| {
            json!({"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": id, "toolName": "read",
                "toolInput": "{}", "content": [], "_meta": {super::super::round::ROUND: round}}})
        };
        let steered = |text: &str| {
            json!({"kind": "systemNotification", "content": format!("Said in between: {text}"),
                "_meta": {wire::meta::STEERING: {"text": text, "origin": {"kind": "user"}}}})
        };
        let notice = json!({"kind": "systemNotification", "content": "tried again"});
        let parts = [
            call("a", 0),
            steered("left"),
            call("b", 1),
            notice,
            steered("right"),
        ];
        let users = |told: &Told| match told {
            Told::User(message) => {
                let text = message.parts[0].object()["text"].as_str();
                text.unwrap().to_owned()
            }
            Told::Model(ModelMessage::ToolResult { id, .. }) => id.clone(),
            Told::Model(_) => "-".to_owned(),
        };
        let told: Vec<String> = of_parts(&parts).iter().map(users).collect();
        assert_eq!(told, ["-", "a", "left", "-", "b", "right"]);
    }

    #[test]
    fn the_oldest_turns_go_first_but_the_newest_stays() {
        let turns: Vec<PastTurn> = (0..4)
            .map(|n| {
                turn(
                    &format!("question {n}"),
                    json!([{"kind": "markdown", "content": "x".repeat(400)}]),
                )
            })
            .collect();
        let messages = of_turns(&turns, 255);
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[0], Told::user("question 2"));
        assert_eq!(messages[3], said(&"x".repeat(400)));
        assert_eq!(of_turns(&turns, 0).len(), 2);
    }
}
