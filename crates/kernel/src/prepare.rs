//! Prepare: what must happen before an action can be recorded. Bodies that are too large for state are kept by the
//! host first; then the action is checked again and recorded with references in their place (G-32, house 2).

use serde_json::Value;
use wire::action::ChatAction;
use wire::{Action, ChannelUri, Object};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::bodies::{self, Body, Room, clip_content, lift_message, lift_result};
use crate::errand::Errand;
use crate::load::Memo;
use crate::submit::Submission;

/// How far preparing got.
pub(crate) enum Prepared<T> {
    /// To be recorded.
    Ready(T),
    Errand(Errand),
}

impl Kernel {
    /// Moves out of a client's action what is too large for state, and finds out what a message means. `sent` is the
    /// action as it came: what the host fills in is no part of what the user said.
    pub(crate) fn prepare(
        &mut self,
        chat: &ChannelUri,
        verb: ChatAction,
        Permit(action): Permit,
        sent: &Object,
        memo: &Memo,
    ) -> Result<Prepared<(Action, Option<Submission>)>, Refusal> {
        match verb {
            ChatAction::TurnStarted | ChatAction::PendingMessageSet => {
                self.prepare_submission(chat, action, sent, memo)
            }
            _ => Ok(match self.prepare_bodies(chat, verb, action, memo)? {
                Prepared::Ready(action) => Prepared::Ready((action, None)),
                Prepared::Errand(errand) => Prepared::Errand(errand),
            }),
        }
    }

    fn prepare_submission(
        &mut self,
        chat: &ChannelUri,
        mut action: Action,
        sent: &Object,
        memo: &Memo,
    ) -> Result<Prepared<(Action, Option<Submission>)>, Refusal> {
        let (Some(session), Some(Value::Object(sent))) = (
            self.chat(chat).map(|chat| chat.session.clone()),
            sent.get("message"),
        ) else {
            return Ok(Prepared::Ready((action, None)));
        };
        let directories = self.directories_of(chat);
        let understood = self.understand(&session, &directories, sent, "/message", memo)?;
        let mut submission = match understood {
            Prepared::Ready(submission) => submission,
            Prepared::Errand(errand) => return Ok(Prepared::Errand(errand)),
        };
        if action.text("kind") == Some("steering") && !submission.actions.is_empty() {
            let name = &submission.actions[0].name;
            return Err(Refusal(format!(
                "{name} cannot steer a turn: send it when the turn is over"
            )));
        }
        let Some(channel) = self.chat(chat) else {
            return Ok(Prepared::Ready((action, None)));
        };
        self.check_message(channel, &mut submission.message, memo)?;
        let message = Value::Object(submission.message.clone());
        action.body.insert("message".to_owned(), message);
        self.count_embedded(&session, submission.inline_bytes);
        Ok(Prepared::Ready((action, Some(submission))))
    }

    fn prepare_bodies(
        &mut self,
        chat: &ChannelUri,
        verb: ChatAction,
        mut action: Action,
        memo: &Memo,
    ) -> Result<Prepared<Action>, Refusal> {
        let field = match verb {
            ChatAction::DraftChanged => "draft",
            ChatAction::ToolCallConfirmed => "userSuggestion",
            ChatAction::ToolCallComplete => {
                let bodies = match action.body.get_mut("result") {
                    Some(Value::Object(result)) => {
                        lift_result(result, self.limits.inline_result_bytes)
                    }
                    _ => Vec::new(),
                };
                let bodies = bodies.into_iter().map(|body| Body {
                    place: format!("/result{}", body.place),
                    ..body
                });
                return self.composed(action, bodies.collect(), memo);
            }
            ChatAction::ToolCallContentChanged => {
                if let Some(Value::Array(content)) = action.body.get_mut("content") {
                    clip_content(content, self.limits.inline_result_bytes);
                }
                return Ok(Prepared::Ready(action));
            }
            _ => return Ok(Prepared::Ready(action)),
        };
        let Some(session) = self.chat(chat).map(|chat| chat.session.clone()) else {
            return Ok(Prepared::Ready(action));
        };
        let Some(Value::Object(message)) = action.body.get_mut(field) else {
            return Ok(Prepared::Ready(action));
        };
        let (bodies, stays) = self.lift(&session, message, &format!("/{field}"), memo);
        let prepared = self.composed(action, bodies, memo)?;
        // A draft is replaced whole, time and again; it is counted when it is sent.
        if matches!(prepared, Prepared::Ready(_)) && verb != ChatAction::DraftChanged {
            self.count_embedded(&session, stays);
        }
        Ok(prepared)
    }

    /// The same for the message that a new chat begins with, to be checked like any other.
    pub(crate) fn prepare_message(
        &mut self,
        session: &ChannelUri,
        directories: &[String],
        sent: &Object,
        check: impl FnOnce(&Self, &mut Object) -> Result<(), Refusal>,
        memo: &Memo,
    ) -> Result<Prepared<Submission>, Refusal> {
        let mut submission = match self.understand(session, directories, sent, "", memo)? {
            Prepared::Ready(submission) => submission,
            Prepared::Errand(errand) => return Ok(Prepared::Errand(errand)),
        };
        check(self, &mut submission.message)?;
        self.count_embedded(session, submission.inline_bytes);
        Ok(Prepared::Ready(submission))
    }

    fn lift(
        &self,
        session: &ChannelUri,
        message: &mut Object,
        at: &str,
        memo: &Memo,
    ) -> (Vec<Body>, usize) {
        let embedded = self.session(session).map_or(0, |session| session.embedded);
        let room = Room {
            each: self.limits.inline_body_bytes,
            all: self.limits.inline_session_bytes.saturating_sub(embedded),
        };
        lift_message(message, at, room, &memo.lifted)
    }

    fn composed(
        &self,
        action: Action,
        bodies: Vec<Body>,
        memo: &Memo,
    ) -> Result<Prepared<Action>, Refusal> {
        let Action { kind, body } = action;
        Ok(match composed(body, bodies, memo)? {
            Prepared::Ready(body) => Prepared::Ready(Action { kind, body }),
            Prepared::Errand(errand) => Prepared::Errand(errand),
        })
    }

    fn count_embedded(&mut self, session: &ChannelUri, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if let Some(channel) = self.session_mut(session) {
            channel.embedded = channel.embedded.saturating_add(bytes);
            self.undo.touch(session);
            self.dirty.insert(session.clone());
        }
    }
}

/// Fills in the names of bodies if all of them were kept; otherwise they are to be kept first. More may have to go than
/// before: others may have used the room meanwhile.
fn composed(whole: Object, bodies: Vec<Body>, memo: &Memo) -> Result<Prepared<Object>, Refusal> {
    if bodies.is_empty() {
        return Ok(Prepared::Ready(whole));
    }
    let names = match memo.kept() {
        None => return Ok(Prepared::Errand(Errand::Keep(bodies))),
        Some(Err(failed)) => return Err(Refusal(failed.to_string())),
        Some(Ok(names)) => names,
    };
    let of_body = |body: &Body| {
        names
            .iter()
            .find(|(place, _)| *place == body.place)
            .cloned()
    };
    let Some(names) = bodies.iter().map(of_body).collect::<Option<Vec<_>>>() else {
        return Ok(Prepared::Errand(Errand::Keep(bodies)));
    };
    let mut whole = Value::Object(whole);
    bodies::fill(&mut whole, names);
    match whole {
        Value::Object(whole) => Ok(Prepared::Ready(whole)),
        _ => Err(Refusal::because("not an object")),
    }
}
