//! What is new in a chat since it was last looked at, as someone who reads along needs to know it.
//!
//! Promises: every part is told once, in order, text as it grows; a part that is not finished holds back those behind it.
//! What was missed, cut back or taken up again is said. Looking at the same state twice tells nothing the second time.
//! Must not know: terminals, connections.

use std::collections::HashSet;

use serde_json::Value;
use wire::Object;
use wire::state::{ChatState, Outcome, Turn};

/// Something to tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    /// Earlier turns are there and are not told.
    LeftOut {
        turns: usize,
    },
    /// A turn began with this message.
    Began(Value),
    /// A turn that had failed goes on.
    Resumed,
    /// More of a text; the first piece says that a part begins.
    Text {
        kind: TextKind,
        place: Place,
        text: String,
    },
    /// Nothing more comes of the text.
    TextEnded,
    /// Any other part, once it is finished.
    Part(Object),
    Ended(Outcome),
    /// What was told last is not there any more.
    CutBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Markdown,
    Reasoning,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Begins,
    GoesOn,
}

/// How far a chat was told.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    /// Turns that were told, or left out on purpose.
    known: HashSet<String>,
    at: Option<At>,
    opened: bool,
}

/// How far the last turn was told.
#[derive(Debug)]
struct At {
    turn: String,
    /// Parts that are finished with.
    parts: usize,
    /// Bytes told of the text part after them.
    text: Option<usize>,
    phase: Phase,
    /// The turn as it was when its end was told.
    ended: Option<Turn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Over,
}

fn part_count(turn: &Turn) -> usize {
    turn.value()["responseParts"].as_array().map_or(0, Vec::len)
}

impl Follow {
    /// Tells what is new. Of the history that is there at the first look, the last `history_max` turns.
    pub(crate) fn look(&mut self, chat: &ChatState, history_max: usize) -> Vec<Seen> {
        let mut seen = Vec::new();
        let turns = chat.turns.as_slice();
        if !self.opened {
            self.opened = true;
            let out = turns.len().saturating_sub(history_max);
            self.known
                .extend(turns[..out].iter().map(|turn| turn.id.clone()));
            // Older ones may even lie outside of what the host sent.
            if out > 0 || chat.turns_next_cursor.is_some() {
                seen.push(Seen::LeftOut { turns: out });
            }
        }
        self.notice_cut(chat, &mut seen);
        let news = turns
            .iter()
            .rev()
            .take_while(|turn| !self.is_told(turn))
            .count();
        for turn in &turns[turns.len() - news..] {
            self.completed(turn, &mut seen);
        }
        if let Some(active) = &chat.active_turn {
            self.begin(&active.id, &active.message, &mut seen);
            let told = self.at.as_ref().map_or(0, |at| at.parts);
            // From the end: there may be many behind us.
            let news = active.parts.len().saturating_sub(told);
            let mut parts: Vec<&Object> = active
                .parts
                .iter()
                .rev()
                .take(news)
                .map(|part| &part.0)
                .collect();
            parts.reverse();
            self.parts(&parts, Phase::Running, &mut seen);
        }
        seen
    }

    /// The parts of the active turn that are not finished with, the first perhaps told in part.
    pub(crate) fn open_parts<'a>(&self, chat: &'a ChatState) -> Vec<&'a Object> {
        let (Some(active), Some(at)) = (&chat.active_turn, &self.at) else {
            return Vec::new();
        };
        if active.id != at.turn {
            return Vec::new();
        }
        let open = active.parts.len().saturating_sub(at.parts);
        let mut parts: Vec<&Object> = active
            .parts
            .iter()
            .rev()
            .take(open)
            .map(|part| &part.0)
            .collect();
        parts.reverse();
        parts
    }

    fn is_told(&self, turn: &Turn) -> bool {
        let at = self.at.as_ref().filter(|at| at.turn == turn.id);
        match at {
            None => self.known.contains(&turn.id),
            Some(at) => {
                at.phase == Phase::Over
                    // One that failed may have been taken up again and have ended since the last look.
                    && (at.ended.as_ref() == Some(turn) || part_count(turn) <= at.parts)
            }
        }
    }

    /// A turn that was told and is neither running nor completed was taken away: truncated, or refused after all.
    fn notice_cut(&mut self, chat: &ChatState, seen: &mut Vec<Seen>) {
        let Some(at) = &self.at else {
            return;
        };
        let turns = chat.turns.as_slice();
        let running = chat.active_turn.as_ref();
        if running.is_some_and(|turn| turn.id == at.turn)
            || turns.iter().rev().any(|turn| turn.id == at.turn)
        {
            return;
        }
        if at.text.is_some() {
            seen.push(Seen::TextEnded);
        }
        // So much was missed that the host did not send all of it.
        let missed = chat.turns_next_cursor.is_some()
            && !turns.is_empty()
            && turns.iter().all(|turn| !self.known.contains(&turn.id));
        seen.push(match missed {
            true => Seen::LeftOut { turns: 0 },
            false => Seen::CutBack,
        });
        self.known.remove(&at.turn.clone());
        self.at = None;
    }

    fn begin(&mut self, id: &str, message: &Value, seen: &mut Vec<Seen>) {
        match &mut self.at {
            Some(at) if at.turn == id => {
                if at.phase == Phase::Over {
                    at.phase = Phase::Running;
                    seen.push(Seen::Resumed);
                }
            }
            _ => {
                self.known.insert(id.to_owned());
                self.at = Some(At {
                    turn: id.to_owned(),
                    parts: 0,
                    text: None,
                    phase: Phase::Running,
                    ended: None,
                });
                seen.push(Seen::Began(message.clone()));
            }
        }
    }

    fn completed(&mut self, turn: &Turn, seen: &mut Vec<Seen>) {
        let json = turn.value();
        self.begin(&turn.id, &json["message"], seen);
        let told = self.at.as_ref().map_or(0, |at| at.parts);
        let parts = json["responseParts"].as_array();
        let parts: Vec<&Object> = parts
            .into_iter()
            .flatten()
            .skip(told)
            .filter_map(Value::as_object)
            .collect();
        self.parts(&parts, Phase::Over, seen);
        if let Some(at) = &mut self.at {
            at.phase = Phase::Over;
            at.ended = Some(turn.clone());
        }
        seen.push(Seen::Ended(turn.outcome));
    }

    /// Goes on telling with the parts that are not finished with.
    fn parts(&mut self, parts: &[&Object], phase: Phase, seen: &mut Vec<Seen>) {
        let Some(at) = &mut self.at else {
            return;
        };
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            let kind = match part["kind"].as_str() {
                Some("markdown") => Some(TextKind::Markdown),
                Some("reasoning") => Some(TextKind::Reasoning),
                _ => None,
            };
            let finished = phase == Phase::Over
                || if kind.is_some() {
                    !last
                } else {
                    is_finished(part)
                };
            if let Some(kind) = kind {
                tell_text(&mut at.text, kind, part, seen);
                if finished {
                    seen.push(Seen::TextEnded);
                }
            } else if finished {
                seen.push(Seen::Part((*part).clone()));
            }
            if !finished {
                return;
            }
            at.parts += 1;
            at.text = None;
        }
    }
}

fn tell_text(told: &mut Option<usize>, kind: TextKind, part: &Object, seen: &mut Vec<Seen>) {
    let content = part.get("content").and_then(Value::as_str).unwrap_or("");
    let place = match told {
        None => Place::Begins,
        Some(_) => Place::GoesOn,
    };
    let from = told.unwrap_or(0);
    let text = content.get(from..).unwrap_or("");
    if place == Place::Begins || !text.is_empty() {
        let text = text.to_owned();
        seen.push(Seen::Text { kind, place, text });
    }
    *told = Some(from.max(content.len()));
}

/// Whether a part that is no text stays as it is.
fn is_finished(part: &Object) -> bool {
    match part["kind"].as_str() {
        Some("toolCall") => matches!(
            part["toolCall"]["status"].as_str(),
            Some("completed" | "cancelled")
        ),
        Some("inputRequest") => part.get("response").is_some_and(Value::is_string),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::reduce::reduce_chat;
    use wire::{Action, ActionKind};

    use super::*;

    struct Chat {
        state: ChatState,
        follow: Follow,
    }

    impl Chat {
        fn new() -> Self {
            Self {
                state: ChatState::new("ahp-chat:/c", "", 1, String::new()),
                follow: Follow::default(),
            }
        }

        fn act(&mut self, name: &str, fields: Value) -> &mut Self {
            reduce_chat(
                &mut self.state,
                &Action::host(ActionKind::from_name(name), fields),
            );
            self
        }

        fn begin(&mut self, id: &str) -> &mut Self {
            self.act(
                "chat/turnStarted",
                json!({"turnId": id, "startedAt": "2026-11-15T08:00:00Z", "message": {"text": id}}),
            )
        }

        fn part(&mut self, id: &str, part: Value) -> &mut Self {
            self.act("chat/responsePart", json!({"turnId": id, "part": part}))
        }

        fn complete(&mut self, id: &str) -> &mut Self {
            self.act("chat/turnComplete", json!({"turnId": id, "duration": 1}))
        }

        fn seen(&mut self) -> Vec<String> {
            let seen = self.follow.look(&self.state, 2);
            let seen: Vec<String> = seen.iter().map(words).collect();
            assert_eq!(
                self.follow.look(&self.state, 2),
                [],
                "nothing is told twice"
            );
            seen
        }
    }

    fn words(seen: &Seen) -> String {
        match seen {
            Seen::LeftOut { turns } => format!("left out {turns}"),
            Seen::Began(message) => format!("began {}", message["text"]),
            Seen::Resumed => "resumed".to_owned(),
            Seen::Text { kind, place, text } => format!("{kind:?} {place:?} {text}"),
            Seen::TextEnded => "text ended".to_owned(),
            Seen::Part(part) => format!("part {}", part["kind"]),
            Seen::Ended(outcome) => format!("ended {}", outcome.wire_name()),
            Seen::CutBack => "cut back".to_owned(),
        }
        .replace('"', "")
    }

    #[test]
    fn text_is_told_as_it_grows_and_ends_with_the_next_part() {
        let mut chat = Chat::new();
        assert_eq!(chat.seen(), [""; 0]);
        chat.begin("t1").part(
            "t1",
            json!({"kind": "reasoning", "id": "p1", "content": ""}),
        );
        assert_eq!(chat.seen(), ["began t1", "Reasoning Begins "]);
        let delta = json!({"turnId": "t1", "partId": "p1", "content": "hm"});
        chat.act("chat/reasoning", delta);
        assert_eq!(chat.seen(), ["Reasoning GoesOn hm"]);
        chat.part(
            "t1",
            json!({"kind": "markdown", "id": "p2", "content": "a"}),
        );
        assert_eq!(chat.seen(), ["text ended", "Markdown Begins a"]);
        chat.complete("t1");
        assert_eq!(chat.seen(), ["text ended", "ended complete"]);
        chat.begin("t2").complete("t2").begin("t3");
        assert_eq!(chat.seen(), ["began t2", "ended complete", "began t3"]);
    }

    #[test]
    fn an_unfinished_part_holds_back_the_next() {
        let mut chat = Chat::new();
        chat.begin("t");
        let call = json!({"turnId": "t", "toolCallId": "c", "toolName": "x", "displayName": "X"});
        chat.act("chat/toolCallStart", call)
            .part("t", json!({"kind": "markdown", "id": "p", "content": "a"}));
        assert_eq!(chat.seen(), ["began t"]);
        assert_eq!(chat.follow.open_parts(&chat.state).len(), 2);
        let ready = json!({"turnId": "t", "toolCallId": "c", "invocationMessage": "", "confirmed": "not-needed"});
        let result = json!({"success": true, "pastTenseMessage": "did"});
        chat.act("chat/toolCallReady", ready).act(
            "chat/toolCallComplete",
            json!({"turnId": "t", "toolCallId": "c", "result": result}),
        );
        assert_eq!(chat.seen(), ["part toolCall", "Markdown Begins a"]);
        assert_eq!(chat.follow.open_parts(&chat.state).len(), 1);
    }

    #[test]
    fn history_is_told_from_its_end() {
        let mut chat = Chat::new();
        for id in ["t1", "t2", "t3"] {
            chat.begin(id).complete(id);
        }
        chat.begin("t4");
        assert_eq!(
            chat.seen(),
            [
                "left out 1",
                "began t2",
                "ended complete",
                "began t3",
                "ended complete",
                "began t4",
            ]
        );
    }

    #[test]
    fn a_failed_turn_that_is_resumed_goes_on_where_it_stopped() {
        let mut chat = Chat::new();
        let error = json!({"error": {"errorType": "e", "message": "m"}, "resumable": true});
        chat.begin("t")
            .part("t", json!({"kind": "markdown", "id": "p", "content": "a"}))
            .act(
                "chat/error",
                json!({"turnId": "t", "duration": 1, "part": error}),
            );
        let told = [
            "began t",
            "Markdown Begins a",
            "text ended",
            "part error",
            "ended error",
        ];
        assert_eq!(chat.seen(), told);
        chat.act("chat/turnResume", json!({"turnId": "t"}))
            .part("t", json!({"kind": "markdown", "id": "q", "content": "b"}));
        assert_eq!(chat.seen(), ["resumed", "Markdown Begins b"]);
        chat.complete("t");
        assert_eq!(chat.seen(), ["text ended", "ended complete"]);
    }

    #[test]
    fn a_turn_resumed_and_ended_between_two_looks_is_told() {
        let mut chat = Chat::new();
        let error = json!({"error": {"errorType": "e", "message": "m"}, "resumable": true});
        let error = json!({"turnId": "t", "duration": 1, "part": error});
        chat.begin("t").act("chat/error", error.clone());
        chat.seen();
        assert_eq!(chat.seen(), [""; 0]);
        chat.act("chat/turnResume", json!({"turnId": "t"}))
            .act("chat/error", error);
        assert_eq!(chat.seen(), ["resumed", "part error", "ended error"]);
        chat.act("chat/turnResume", json!({"turnId": "t"}))
            .part("t", json!({"kind": "markdown", "id": "q", "content": "b"}))
            .complete("t");
        let rest = [
            "resumed",
            "Markdown Begins b",
            "text ended",
            "ended complete",
        ];
        assert_eq!(chat.seen(), rest);
        assert_eq!(chat.seen(), [""; 0]);
    }

    #[test]
    fn what_is_taken_away_is_told() {
        let mut chat = Chat::new();
        chat.begin("t1").complete("t1").begin("t2");
        chat.part("t2", json!({"kind": "markdown", "id": "p", "content": "a"}));
        chat.seen();
        chat.act("chat/truncated", json!({"turnId": "t1"}));
        assert_eq!(chat.seen(), ["text ended", "cut back"]);
        chat.begin("t3");
        assert_eq!(chat.seen(), ["began t3"]);
        chat.act("chat/truncated", json!({}));
        assert_eq!(chat.seen(), ["cut back"]);
    }

    #[test]
    fn turns_that_were_missed_and_not_sent_are_said_to_be_left_out() {
        let mut chat = Chat::new();
        chat.begin("t1").complete("t1");
        chat.seen();
        let mut later = Chat::new();
        later.begin("t8").complete("t8");
        later.state.turns_next_cursor = Some("before:t8".to_owned());
        chat.state = later.state;
        assert_eq!(chat.seen(), ["left out 0", "began t8", "ended complete"]);
    }

    #[test]
    fn many_turns_missed_at_once_are_all_told() {
        let mut chat = Chat::new();
        chat.begin("t1").complete("t1");
        chat.seen();
        for id in ["t2", "t3", "t4"] {
            chat.begin(id).complete(id);
        }
        assert_eq!(chat.seen().len(), 6);
    }
}
