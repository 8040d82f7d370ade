//! What is new in a chat since it was last followed, as someone who reads along needs to know it.
//!
//! Promises: every part is reported once, in order, text as it grows; a part that is not finished holds back those behind it,
//! unless that is turned off. What was missed, rewound or resumed is reported. Following the same
//! state twice reports nothing the second time.
//! Must not know: connections, how events are shown.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::Value;
use wire::Object;
use wire::state::{ActiveTurn, ChatState, Outcome, Turn};

#[derive(Debug, Clone, PartialEq)]
pub enum TurnEvent {
    /// Earlier turns are there and are not reported.
    Omitted { turns: usize },
    /// A turn started with this message.
    Started { turn_id: String, message: Value },
    /// A turn that had failed goes on.
    Resumed,
    /// More of a text; the first piece says that a part begins.
    Text { kind: AnswerTextKind, position: TextPosition, text: String },
    /// Nothing more comes of the text.
    TextEnded,
    /// Any other part, once it is finished.
    Part(Object),
    Ended {
        turn_id: String,
        outcome: Outcome,
        /// What the agent said that it used, if it did.
        usage: Option<Value>,
        duration_ms: Option<u64>,
    },
    /// What was reported last is not part of the chat any more.
    Rewound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTextKind {
    Markdown,
    Reasoning,
}

/// Where a piece of text stands in its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPosition {
    Start,
    Continuation,
}

/// How far a chat was followed.
#[derive(Debug, Default)]
pub struct TurnFollower {
    /// Turns that were reported, or omitted on purpose. As many as the chat has had while it was followed.
    known: HashSet<String>,
    last: Option<LastTurn>,
    is_open: bool,
    calls: UnfinishedCalls,
}

/// What a tool call or a question that is not finished does to the parts behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum UnfinishedCalls {
    #[default]
    HoldBack,
    PassBy,
}

/// How far the last turn was followed.
#[derive(Debug)]
struct LastTurn {
    id: String,
    /// Parts that are finished with.
    parts: usize,
    /// Bytes reported of the text part after them.
    text: Option<usize>,
    phase: FollowerPhase,
    /// The turn as it was when its end was reported.
    ended: Option<Turn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowerPhase {
    Running,
    Over,
}

fn part_count(turn: &Turn) -> usize {
    turn.value()["responseParts"].as_array().map_or(0, Vec::len)
}

impl TurnFollower {
    /// One for readers of the text alone: calls and questions are reported when they begin and hold nothing back.
    pub fn without_waiting_for_calls() -> Self {
        Self { calls: UnfinishedCalls::PassBy, ..Self::default() }
    }

    /// Takes everything that is in a chat for reported.
    pub fn skip(&mut self, chat: &ChatState) {
        let _ = self.follow(chat, 0);
    }

    /// Reports what is new. Of the history that is there at the first call, the last `history_max` turns.
    pub fn follow(&mut self, chat: &ChatState, history_max: usize) -> Vec<TurnEvent> {
        let mut events = Vec::new();
        let turns = chat.turns.as_slice();
        if !self.is_open {
            self.is_open = true;
            let omitted = turns.len().saturating_sub(history_max);
            self.known.extend(turns[..omitted].iter().map(|turn| turn.id.clone()));
            // Older ones may even lie outside of what the host sent.
            if omitted > 0 || chat.turns_next_cursor.is_some() {
                events.push(TurnEvent::Omitted { turns: omitted });
            }
        }
        self.notice_rewind(chat, &mut events);
        let new = turns.iter().rev().take_while(|turn| !self.is_reported(turn)).count();
        for turn in &turns[turns.len() - new..] {
            self.follow_completed(turn, &mut events);
        }
        if let Some(active) = &chat.active_turn {
            let calls = self.calls;
            let last = self.begin_turn(&active.id, &active.message, &mut events);
            let parts = parts_from(active, last.parts);
            last.follow_parts(&parts, FollowerPhase::Running, calls, &mut events);
        }
        events
    }

    /// The parts of the active turn that are not finished with, the first perhaps reported in part.
    pub fn open_parts<'a>(&self, chat: &'a ChatState) -> Vec<&'a Object> {
        match (&chat.active_turn, &self.last) {
            (Some(active), Some(last)) if active.id == last.id => parts_from(active, last.parts),
            _ => Vec::new(),
        }
    }

    fn is_reported(&self, turn: &Turn) -> bool {
        match self.last.as_ref().filter(|last| last.id == turn.id) {
            None => self.known.contains(&turn.id),
            Some(last) => {
                last.phase == FollowerPhase::Over
                    // One that failed may have been resumed and have ended since the last call.
                    && (last.ended.as_ref() == Some(turn) || part_count(turn) <= last.parts)
            }
        }
    }

    /// A turn that was reported and is neither running nor completed was taken away: truncated, or refused after all.
    fn notice_rewind(&mut self, chat: &ChatState, events: &mut Vec<TurnEvent>) {
        let turns = chat.turns.as_slice();
        let is_there = |id: &str| {
            let active = chat.active_turn.as_ref();
            active.is_some_and(|turn| turn.id == id) || turns.iter().rev().any(|turn| turn.id == id)
        };
        let Some(last) = self.last.take_if(|last| !is_there(&last.id)) else {
            return; // nothing was reported yet, or it is still there
        };
        if last.text.is_some() {
            events.push(TurnEvent::TextEnded);
        }
        // So much was missed that the host did not send all of it.
        let is_missed = chat.turns_next_cursor.is_some()
            && !turns.is_empty()
            && turns.iter().all(|turn| !self.known.contains(&turn.id));
        events.push(if is_missed { TurnEvent::Omitted { turns: 0 } } else { TurnEvent::Rewound });
        self.known.remove(&last.id);
    }

    /// The turn that is followed now; a new one is announced, and so is one that goes on.
    fn begin_turn(
        &mut self,
        id: &str,
        message: &Value,
        events: &mut Vec<TurnEvent>,
    ) -> &mut LastTurn {
        let last = self.last.take_if(|last| last.id == id);
        let last = match last {
            Some(mut last) => {
                if last.phase == FollowerPhase::Over {
                    last.phase = FollowerPhase::Running;
                    events.push(TurnEvent::Resumed);
                }
                last
            }
            None => {
                self.known.insert(id.to_owned());
                events
                    .push(TurnEvent::Started { turn_id: id.to_owned(), message: message.clone() });
                LastTurn {
                    id: id.to_owned(),
                    parts: 0,
                    text: None,
                    phase: FollowerPhase::Running,
                    ended: None,
                }
            }
        };
        self.last.insert(last)
    }

    fn follow_completed(&mut self, turn: &Turn, events: &mut Vec<TurnEvent>) {
        let calls = self.calls;
        let json = turn.value();
        let last = self.begin_turn(&turn.id, &json["message"], events);
        let parts = json["responseParts"].as_array();
        let parts: Vec<&Object> =
            parts.into_iter().flatten().skip(last.parts).filter_map(Value::as_object).collect();
        last.follow_parts(&parts, FollowerPhase::Over, calls, events);
        last.phase = FollowerPhase::Over;
        last.ended = Some(turn.clone());
        events.push(TurnEvent::Ended {
            turn_id: turn.id.clone(),
            outcome: turn.outcome,
            usage: json.get("usage").filter(|usage| usage.is_object()).cloned(),
            duration_ms: json["duration"].as_u64(),
        });
    }
}

impl LastTurn {
    /// Reports the parts that are not finished with.
    fn follow_parts(
        &mut self,
        parts: &[&Object],
        phase: FollowerPhase,
        calls: UnfinishedCalls,
        events: &mut Vec<TurnEvent>,
    ) {
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let kind = match part.get("kind").and_then(Value::as_str) {
                Some("markdown") => Some(AnswerTextKind::Markdown),
                Some("reasoning") => Some(AnswerTextKind::Reasoning),
                _ => None,
            };
            let is_finished = phase == FollowerPhase::Over
                || match (kind, calls) {
                    (Some(_), _) => !is_last,
                    (None, UnfinishedCalls::PassBy) => true,
                    (None, UnfinishedCalls::HoldBack) => is_finished(part),
                };
            if let Some(kind) = kind {
                self.follow_text(kind, part, events);
                if is_finished {
                    events.push(TurnEvent::TextEnded);
                }
            } else if is_finished {
                events.push(TurnEvent::Part((*part).clone()));
            }
            if !is_finished {
                return; // it holds back what is behind it
            }
            self.parts += 1;
            self.text = None;
        }
    }

    fn follow_text(&mut self, kind: AnswerTextKind, part: &Object, events: &mut Vec<TurnEvent>) {
        let content = part.get("content").and_then(Value::as_str).unwrap_or("");
        let position = match self.text {
            None => TextPosition::Start,
            Some(_) => TextPosition::Continuation,
        };
        let from = self.text.unwrap_or(0);
        let text = content.get(from..).unwrap_or("");
        if position == TextPosition::Start || !text.is_empty() {
            events.push(TurnEvent::Text { kind, position, text: text.to_owned() });
        }
        self.text = Some(from.max(content.len()));
    }
}

/// The parts of a running turn from this one on; read from the end, since there may be many before.
fn parts_from(active: &ActiveTurn, first: usize) -> Vec<&Object> {
    let count = active.parts.len().saturating_sub(first);
    let mut parts: Vec<&Object> =
        active.parts.iter().rev().take(count).map(|part| &part.0).collect();
    parts.reverse();
    parts
}

/// Whether a part that is no text stays as it is.
fn is_finished(part: &Object) -> bool {
    match part.get("kind").and_then(Value::as_str) {
        Some("toolCall") => {
            let call = part.get("toolCall");
            let status = call.and_then(|call| call["status"].as_str());
            matches!(status, Some("completed" | "cancelled"))
        }
        Some("inputRequest") => part.get("response").is_some_and(Value::is_string),
        _ => true,
    }
}
