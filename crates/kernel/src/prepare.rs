//! Prepare: what must happen before an action can be recorded. Bodies that are too large for state are kept by the
//! host first; then the action is checked again and recorded with references in their place (G-32, house 2).

use serde_json::Value;
use wire::dispatchable::ChatAction;
use wire::{Action, ChannelUri, Object};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::bodies::{self, Body, Room, clip_content, lift_message, lift_result};
use crate::errand::Errand;
use crate::load::Memo;

/// How far preparing got.
pub(crate) enum Prepared<T> {
    /// To be recorded.
    Ready(T),
    Errand(Errand),
}

impl Kernel {
    /// Moves out of a client's action what is too large for state.
    pub(crate) fn prepare(
        &mut self,
        chat: &ChannelUri,
        verb: ChatAction,
        Permit(mut action): Permit,
        memo: &Memo,
    ) -> Result<Prepared<Action>, Refusal> {
        let field = match verb {
            ChatAction::TurnStarted | ChatAction::PendingMessageSet => "message",
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

    /// The same for a message that comes with a request.
    pub(crate) fn prepare_message(
        &mut self,
        session: &ChannelUri,
        mut message: Object,
        memo: &Memo,
    ) -> Result<Prepared<Object>, Refusal> {
        let (bodies, stays) = self.lift(session, &mut message, "", memo);
        let prepared = composed(message, bodies, memo)?;
        if matches!(prepared, Prepared::Ready(_)) {
            self.count_embedded(session, stays);
        }
        Ok(prepared)
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
    let names = match memo.composed() {
        None => return Ok(Prepared::Errand(Errand::Compose(bodies))),
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
        return Ok(Prepared::Errand(Errand::Compose(bodies)));
    };
    let mut whole = Value::Object(whole);
    bodies::fill(&mut whole, names);
    match whole {
        Value::Object(whole) => Ok(Prepared::Ready(whole)),
        _ => Err(Refusal::because("not an object")),
    }
}
