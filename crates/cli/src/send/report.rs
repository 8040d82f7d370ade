//! What is printed of the turn: its text for people, JSON Lines for programs, and at the end how it went.

use client::chat::{AnswerTextKind, AskedInput, PendingInput, TurnEvent};
use serde_json::{Value, json};
use wire::state::Outcome;

use super::turn::{SentTurn, TurnEnd};
use crate::exit::Exit;
use crate::output::print_json;
use crate::terminal::{escape, escape_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendFormat {
    Text,
    Json,
}

impl SentTurn {
    pub(super) fn print_start(&self) -> std::io::Result<()> {
        match self.format {
            SendFormat::Text => Ok(()),
            SendFormat::Json => print_json(&json!({
                "type": "start",
                "session": self.chat.session().as_str(),
                "chat": self.chat.chat().as_str(),
                "turnId": self.turn_id,
            })),
        }
    }

    pub(super) fn print_event(&mut self, event: &TurnEvent) -> std::io::Result<()> {
        match self.format {
            SendFormat::Json => event_json(event).map_or(Ok(()), |line| print_json(&line)),
            SendFormat::Text => match event {
                TurnEvent::Text { kind, position, text } => {
                    self.output.text(*kind, *position, text)
                }
                TurnEvent::Part(part)
                    if part.get("kind").is_some_and(|kind| kind == "systemNotification") =>
                {
                    let content = part.get("content");
                    let text = content.and_then(|content| {
                        content.as_str().or_else(|| content["markdown"].as_str())
                    });
                    self.output.note(text.unwrap_or(""))
                }
                // Only the answer is printed; what is asked is asked by itself.
                _ => Ok(()),
            },
        }
    }

    /// Says what the agent is at while nothing of its answer comes: that the model is silent, or that it summarises.
    pub(super) fn print_activity(&mut self, activity: Option<String>) -> std::io::Result<()> {
        if activity == self.activity {
            return Ok(()); // it was said
        }
        self.activity = activity;
        match (self.format, &self.activity) {
            (SendFormat::Json, activity) => {
                print_json(&json!({"type": "activity", "text": activity}))
            }
            (SendFormat::Text, Some(activity)) => self.output.note(activity),
            (SendFormat::Text, None) => Ok(()),
        }
    }

    /// Says that something was not consented to.
    pub(super) fn report_denied(&mut self, asked: &AskedInput) -> anyhow::Result<()> {
        let field = |name: &str| asked.part().get(name).cloned().unwrap_or_default();
        let (kind, what) = match &asked.input {
            PendingInput::Confirmation(_) => ("toolCall", call_title(&field("toolCall"))),
            PendingInput::Questions(_) => ("question", question_text(&field("request"))),
        };
        if self.format == SendFormat::Json {
            let chat = asked.chat().as_str();
            print_json(&json!({"type": "denied", "kind": kind, "chat": chat, "what": what}))?;
            return Ok(());
        }
        // A question may have several lines, and this is one.
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let what = escape_line(&what);
        self.output.note(&match kind {
            "toolCall" => format!("Denied, nobody could be asked: {what}"),
            _ => format!("Dismissed, nobody could be asked: {what}"),
        })?;
        Ok(())
    }

    /// Says how the turn ended: on standard error, and as JSON if that is wanted.
    pub(super) fn report(&self, end: TurnEnd) -> anyhow::Result<Exit> {
        let outcome = match end {
            TurnEnd::Turn(outcome) => outcome,
            TurnEnd::Refused(reason) => {
                let reason = escape(&reason);
                eprintln!("greenroom: the host refused the message: {reason}");
                self.print_no_outcome("refused")?;
                return Ok(Exit::NoHost);
            }
            TurnEnd::NotAwaited if self.is_timed_out => {
                eprintln!(
                    "greenroom: the turn took too long, and did not end when it was cancelled"
                );
                self.print_no_outcome("unknown")?;
                return Ok(Exit::TimedOut);
            }
            TurnEnd::NotAwaited => {
                self.print_no_outcome("unknown")?;
                return Ok(Exit::Cancelled);
            }
        };
        if self.format == SendFormat::Json {
            print_json(&self.to_json(outcome))?;
        }
        Ok(match outcome {
            Outcome::Complete if self.denied > 0 => {
                eprintln!("{}", denied_advice(self.denied));
                Exit::Denied
            }
            Outcome::Complete => Exit::Complete,
            Outcome::Cancelled if self.is_timed_out => {
                eprintln!("cancelled: it took longer than --timeout allows");
                Exit::TimedOut
            }
            Outcome::Cancelled => {
                eprintln!("cancelled");
                Exit::Cancelled
            }
            Outcome::Error { resumable } => {
                self.report_failure(resumable);
                Exit::Failed
            }
        })
    }

    /// The last line for programs where the end of the turn was not seen.
    fn print_no_outcome(&self, state: &str) -> std::io::Result<()> {
        match self.format {
            SendFormat::Text => Ok(()),
            SendFormat::Json => print_json(&self.result_line(state)),
        }
    }

    fn report_failure(&self, resumable: bool) {
        let session = escape_line(self.chat.session().as_str());
        let message = escape(self.error_field("message"));
        eprintln!("greenroom: the turn failed: {message}");
        if resumable {
            eprintln!(
                "It can be resumed: `/resume` in `greenroom chat --session {session}`. With `greenroom send --session {session}` you \
                 send another message."
            );
        } else {
            eprintln!(
                "It cannot be resumed. With `greenroom send --session {session}` you send another message."
            );
        }
    }

    fn error_field(&self, field: &str) -> &str {
        let error = self.error.as_ref().and_then(|part| part.get("error"));
        error.map_or("unknown", |error| error[field].as_str().unwrap_or("unknown"))
    }

    fn to_json(&self, outcome: Outcome) -> Value {
        let mut result = self.result_line(outcome.wire_name());
        if let Outcome::Error { resumable } = outcome {
            result["error"] = json!({
                "errorType": self.error_field("errorType"),
                "message": self.error_field("message"),
                "resumable": resumable,
            });
        }
        result
    }
}

impl SentTurn {
    fn result_line(&self, state: &str) -> Value {
        json!({
            "type": "result",
            "session": self.chat.session().as_str(),
            "chat": self.chat.chat().as_str(),
            "turnId": self.turn_id,
            "state": state,
            "text": self.answer,
            "denied": self.denied,
        })
    }
}

/// An event as a line for programs; none if it says nothing about this turn.
fn event_json(event: &TurnEvent) -> Option<Value> {
    Some(match event {
        TurnEvent::Text { kind: AnswerTextKind::Markdown, text, .. } if !text.is_empty() => {
            json!({"type": "text", "text": text})
        }
        TurnEvent::Text { kind: AnswerTextKind::Reasoning, text, .. } if !text.is_empty() => {
            json!({"type": "reasoning", "text": text})
        }
        TurnEvent::TextEnded => json!({"type": "textEnd"}),
        TurnEvent::Part(part) => json!({"type": "part", "part": part}),
        // The start and the result have lines of their own; a turn that was just sent is neither resumed nor rewound.
        TurnEvent::Text { .. }
        | TurnEvent::Started { .. }
        | TurnEvent::Ended { .. }
        | TurnEvent::Resumed
        | TurnEvent::Rewound
        | TurnEvent::Omitted { .. } => return None,
    })
}

fn call_title(call: &Value) -> String {
    let text = |value: &Value| {
        let text = value.as_str().or_else(|| value["markdown"].as_str());
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let fields = ["invocationMessage", "displayName", "toolName"];
    let title = fields.iter().find_map(|field| text(&call[*field]));
    title.unwrap_or_else(|| "a tool call".to_owned())
}

fn question_text(request: &Value) -> String {
    let message = request["message"].as_str();
    let first = request["questions"][0]["message"].as_str();
    message.or(first).unwrap_or("a question").to_owned()
}

fn denied_advice(denied: usize) -> String {
    let what = match denied {
        1 => "One thing was denied".to_owned(),
        count => format!("{count} things were denied"),
    };
    format!(
        "{what}: run this on a terminal to be asked, or say with --approvals what needs no asking"
    )
}
