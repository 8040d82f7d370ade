//! The history of a chat as entries for the model: completed turns, and the response of a resumed turn so far.
//!
//! Promises: a model's text and its tools' results stay as they were, in order; every call has a result, for
//! servers refuse a conversation in which one is missing; the oldest turns go first when there is no space left, several at
//! once, so that later requests begin with the same bytes until the next time.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use agent_api::model_call::TOKEN_BYTES;
use agent_api::{PastTurn, UserMessage};
use compositor::Part;
use compositor::part::View;
use serde_json::{Value, json};
use wire::Digest;

use super::answer::CallAnswer;
use super::context::estimate_bytes;
use super::model_view::HistoryEntry;
use super::notices::{notices_in, with_notices};
use super::offered_tools::model_name;
use super::outputs::{OutputSource, TurnOutputs};
use super::refused_turns;
use super::trim::first_kept;
use crate::provider::{ModelMessage, ToolUse};

/// The result of a call whose end is unknown.
const INTERRUPTED: &str = "The call was interrupted; what it did until then is not known.";

/// What stands before what is known of a call that the host did not see end.
const INTERRUPTED_BY_HOST: &str = "The host was stopped before this was over.";

/// Earlier turns as the model gets them.
#[derive(Debug, PartialEq, Default)]
pub(super) struct RecalledHistory {
    pub entries: Vec<HistoryEntry>,
    /// The host's notices in the last of them: they go into the message that comes next.
    pub notices: Vec<String>,
}

/// The turns, oldest first, from the one on that [`first_kept`] says. Of the first one, some rounds are told elsewhere.
pub(super) fn recall_turns(
    turns: &[PastTurn],
    summarised_rounds: u64,
    tokens_max: u64,
    source: &OutputSource,
) -> RecalledHistory {
    let summarised = |index: usize| if index == 0 { summarised_rounds } else { 0 };
    let first = match usize::try_from(tokens_max) {
        Ok(tokens) if tokens_max < u64::MAX => {
            let sizes = turns.iter().enumerate().map(|(index, turn)| {
                let entries = entries_of_turn(turn, summarised(index), &[], source);
                entries.iter().map(estimate_bytes).sum()
            });
            first_kept(sizes, tokens.saturating_mul(TOKEN_BYTES))
        }
        _ => 0, // all of them
    };
    let mut recalled = RecalledHistory::default();
    for (index, turn) in turns.iter().enumerate().skip(first) {
        let entries = entries_of_turn(turn, summarised(index), &recalled.notices, source);
        if !entries.is_empty() {
            recalled.notices.clear();
        }
        recalled.entries.extend(entries);
        if let Some(notice) = refused_turns::notice_of(turn, source) {
            recalled.notices.push(notice);
            continue;
        }
        let notices = notices_in(parts_of(turn)).map(str::to_owned);
        recalled.notices.extend(notices);
    }
    recalled
}

fn parts_of(past: &PastTurn) -> &[Value] {
    past.turn["responseParts"].as_array().map_or(&[][..], Vec::as_slice)
}

/// The entries of a turn; none if it was between the user and the host alone.
fn entries_of_turn(
    past: &PastTurn,
    summarised_rounds: u64,
    notices: &[String],
    source: &OutputSource,
) -> Vec<HistoryEntry> {
    if refused_turns::notice_of(past, source).is_some() {
        return Vec::new();
    }
    let mut users = past.messages.iter().cloned();
    let text = past.turn["message"]["text"].as_str().unwrap_or("");
    let message = users.next().unwrap_or_else(|| Arc::new(UserMessage::text(text)));
    let reaches_model = reaches_model(&message);
    let outputs = TurnOutputs::read(&past.outputs, source);
    let response = entries_of_parts(parts_of(past), summarised_rounds, &mut users, outputs);
    if !reaches_model && response.is_empty() {
        return Vec::new();
    }
    let mut messages = vec![HistoryEntry::User(with_notices(message, notices))];
    messages.extend(response);
    messages
}

/// Whether a message says anything but commands of the host.
fn reaches_model(message: &UserMessage) -> bool {
    let is_command = |part: &Part| matches!(part.view(), View::Command(_));
    let is_for_model = |part: &Part| match part.view() {
        View::Command(_) | View::EditorContext(_) => false,
        View::Text(text) => !text.text.trim().is_empty(),
        _ => true,
    };
    message.parts.iter().any(is_for_model) || !message.parts.iter().any(is_command)
}

/// The entries of a response, by rounds: text and the calls after it make one assistant message, then come the results.
/// `steering` are the typed messages that steered the turn, `outputs` the model's answers, as far as they are stored. The
/// first rounds are left out, with what came before and between them, if they are told elsewhere.
pub(super) fn entries_of_parts(
    parts: &[Value],
    summarised_rounds: u64,
    steering: &mut dyn Iterator<Item = Arc<UserMessage>>,
    outputs: TurnOutputs,
) -> Vec<HistoryEntry> {
    let mut messages = Entries { entries: Vec::new(), outputs, next_round: 0, summarised_rounds };
    let mut round = Round::default();
    for part in parts {
        match part["kind"].as_str().unwrap_or("") {
            "markdown" => {
                let text = part["content"].as_str().unwrap_or("");
                if !text.is_empty() {
                    round.add_text(text, &mut messages);
                }
            }
            // What the host did to files at the user's command is in a notice.
            "toolCall" if part["toolCall"]["_meta"][wire::meta::RESTORE].is_object() => {}
            "toolCall" => round.add_call(&part["toolCall"], &mut messages),
            // A steering message was taken between two rounds.
            "systemNotification" => {
                if let Some(message) = part["_meta"].get(wire::meta::STEERING) {
                    std::mem::take(&mut round).finish(&mut messages);
                    let text = message["text"].as_str().unwrap_or("");
                    messages.entries.push(match steering.next() {
                        Some(message) => HistoryEntry::User(message),
                        None => HistoryEntry::user(text),
                    });
                }
            }
            _ => {}
        }
    }
    round.finish(&mut messages);
    messages.entries
}

/// The entries of a response so far, and what goes with those to come.
struct Entries {
    entries: Vec<HistoryEntry>,
    outputs: TurnOutputs,
    /// The number of the round that comes next, if its calls do not say.
    next_round: u64,
    /// Rounds below this are left out.
    summarised_rounds: u64,
}

#[derive(Default)]
struct Round {
    text: String,
    calls: Vec<(ToolUse, CallAnswer)>,
    /// Which one its calls say it is; those of other agents do not say.
    number: Option<u64>,
}

impl Round {
    /// Text after calls belongs to the next round.
    fn add_text(&mut self, text: &str, messages: &mut Entries) {
        if !self.calls.is_empty() {
            std::mem::take(self).finish(messages);
        }
        self.text.push_str(text);
    }

    /// So does a call that was made when others had their results.
    fn add_call(&mut self, call: &Value, messages: &mut Entries) {
        // A call whose input never came whole was never made: the model does not miss it.
        if call["status"] == "cancelled" && call["toolInput"].is_null() {
            return;
        }
        if call["_meta"][super::answer::SERVER_TOOL] == true {
            return; // the model's server made it, and has its result
        }
        let number = call["_meta"][super::answer::ROUND].as_u64();
        if !self.calls.is_empty() && self.number != number {
            std::mem::take(self).finish(messages);
        }
        self.number = number;
        let id = call["toolCallId"].as_str().unwrap_or("").to_owned();
        let name = call["toolName"].as_str().unwrap_or("");
        let name = if call["contributor"]["kind"] == "client" {
            model_name(name).into_owned()
        } else {
            name.to_owned()
        };
        let input = call["toolInput"].as_str().unwrap_or("{}").to_owned();
        let tool_use = ToolUse { id, name, input };
        let answer =
            CallAnswer { text: result_text(call, &messages.outputs), media: media_of_result(call) };
        self.calls.push((tool_use, answer));
    }

    fn finish(self, messages: &mut Entries) {
        if self.text.is_empty() && self.calls.is_empty() {
            return; // no round began
        }
        let (mut calls, results): (Vec<ToolUse>, Vec<CallAnswer>) = self.calls.into_iter().unzip();
        let number = self.number.unwrap_or(messages.next_round);
        messages.next_round = number + 1;
        if number < messages.summarised_rounds {
            messages.entries.clear();
            return;
        }
        let items = messages.outputs.restore(number, &self.text, &mut calls);
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let answer = HistoryEntry::Model(ModelMessage::Assistant { text: self.text, calls, items });
        let results = ids
            .into_iter()
            .zip(results)
            .map(|(id, it)| HistoryEntry::result(id, it.text, it.media));
        messages.entries.push(answer);
        messages.entries.extend(results);
    }
}

/// The result of a call as the model got it: its text content, or why there is none.
fn result_text(call: &Value, outputs: &TurnOutputs) -> String {
    match call["status"].as_str().unwrap_or("") {
        "completed" => text_of_result(call),
        "cancelled" if call["reason"] != "skipped" => {
            let suggestion = call["userSuggestion"]["text"].as_str();
            if call["toolName"] == super::exit_plan::NAME {
                super::exit_plan::keep_planning_text(suggestion)
            } else {
                super::consent::denied_text(suggestion)
            }
        }
        _ => {
            let id = call["toolCallId"].as_str().unwrap_or("");
            match outputs.finding(id) {
                Some(finding) => format!("{INTERRUPTED_BY_HOST} {finding}"),
                None => INTERRUPTED.to_owned(),
            }
        }
    }
}

/// The text of a `ToolCallResult` for the model.
pub(super) fn text_of_result(result: &Value) -> String {
    let content = result["content"].as_array();
    let texts: Vec<&str> = content
        .into_iter()
        .flatten()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect();
    if !texts.is_empty() {
        return texts.join("\n");
    }
    let structured = &result["structuredContent"];
    let error = result["error"]["message"].as_str();
    match (result["success"] == false, error) {
        (true, Some(error)) => error.to_owned(),
        _ if structured.is_object() => structured.to_string(),
        _ => plain_text(&result["pastTenseMessage"]),
    }
}

/// The bodies in a `ToolCallResult` that a model may be able to see or hear.
pub(super) fn media_of_result(result: &Value) -> Vec<Part> {
    let content = result["content"].as_array().into_iter().flatten();
    let media = content.filter_map(|block| {
        let mime = block["contentType"].as_str()?;
        let is_media = mime.starts_with("image/")
            || mime.starts_with("audio/")
            || mime.starts_with("video/")
            || mime == "application/pdf";
        if !is_media {
            return None; // texts are read as texts
        }
        let mut part = json!({"type": "file-attachment", "name": "result", "mime": mime});
        match block["type"].as_str()? {
            "embeddedResource" => part["data"] = block["data"].clone(),
            "resource" => {
                let digest = Digest::from_uri(block["uri"].as_str()?)?;
                part["content_id"] = json!(format!("sha256:{}", digest.to_hex()));
            }
            _ => return None,
        }
        Part::from_value(part).ok()
    });
    media.collect()
}

fn plain_text(text: &Value) -> String {
    let text = text.as_str().or_else(|| text["markdown"].as_str());
    text.unwrap_or("").to_owned()
}
