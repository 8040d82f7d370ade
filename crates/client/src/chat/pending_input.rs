//! What an agent waits for in a chat: a decision about a tool call, or answers to questions.
//!
//! Promises: there is one exactly while something waits; one that another client answered goes away by itself.
//! Must not know: connections.

use serde_json::{Value, json};
use wire::Object;
use wire::state::{ChatState, ResponsePart, status};

use super::{Confirmation, QuestionForm};

#[derive(Debug, Clone, PartialEq)]
pub enum PendingInput {
    Confirmation(Confirmation),
    Questions(QuestionForm),
}

impl PendingInput {
    /// The first thing that waits.
    pub fn first_of(chat: &ChatState) -> Option<Self> {
        Self::waiting_in(chat).next().map(|(_, first)| first)
    }

    /// Everything that waits, with the part that does, in the order of the turn.
    pub fn all_of(chat: &ChatState) -> Vec<(&ResponsePart, Self)> {
        Self::waiting_in(chat).collect()
    }

    fn waiting_in(chat: &ChatState) -> impl Iterator<Item = (&ResponsePart, Self)> {
        let is_waiting = chat.status & status::ACTIVITY_MASK == status::INPUT_NEEDED;
        let turn = chat.active_turn.as_ref().filter(|_| is_waiting);
        turn.into_iter().flat_map(|turn| {
            turn.parts.iter().filter_map(|part| Some((part, Self::of_part(&turn.id, &part.0)?)))
        })
    }

    /// What a part waits for, if it does.
    pub(super) fn of_part(turn_id: &str, part: &Object) -> Option<Self> {
        match part.get("kind")?.as_str()? {
            "toolCall" => {
                let call = part.get("toolCall")?.as_object()?;
                Confirmation::of(turn_id, call).map(Self::Confirmation)
            }
            "inputRequest" if !part.get("response").is_some_and(Value::is_string) => {
                Some(Self::Questions(QuestionForm::new(part.get("request")?)))
            }
            _ => None,
        }
    }

    /// The field that names it in the action that answers it, and its value.
    pub(super) fn address(&self) -> (&'static str, Value) {
        match self {
            Self::Confirmation(confirmation) => ("toolCallId", json!(confirmation.call_id())),
            Self::Questions(form) => ("requestId", form.id().clone()),
        }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Confirmation(one), Self::Confirmation(other)) => one.is_same(other),
            (Self::Questions(one), Self::Questions(other)) => one.is_same(other),
            (Self::Confirmation(_), Self::Questions(_))
            | (Self::Questions(_), Self::Confirmation(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::reduce::reduce_chat;
    use wire::{Action, ActionKind};

    use super::*;
    use crate::chat::Progress;

    fn chat() -> ChatState {
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        let message = json!({"text": "go"});
        act(
            &mut chat,
            "chat/turnStarted",
            json!({"turnId": "t", "startedAt": "2026-11-15T08:00:00Z", "message": message}),
        );
        chat
    }

    fn act(chat: &mut ChatState, name: &str, fields: Value) {
        reduce_chat(chat, &Action::host(ActionKind::from_name(name), fields));
    }

    #[test]
    fn a_question_is_pending_until_it_is_answered() {
        let mut chat = chat();
        assert_eq!(PendingInput::first_of(&chat), None);
        let questions = json!([
            {"kind": "text", "id": "a", "message": "A?"},
            {"kind": "text", "id": "b", "message": "B?"},
        ]);
        let request = json!({"id": "r", "questions": questions});
        act(&mut chat, "chat/inputRequested", json!({"request": request}));
        let mut pending = PendingInput::first_of(&chat);
        let Some(PendingInput::Questions(form)) = &mut pending else { panic!("{pending:?}") };
        assert_eq!(form.answer_text("x"), Ok(Progress::Next));
        let now = PendingInput::first_of(&chat).unwrap();
        assert!(pending.unwrap().is_same(&now), "what was answered stays");
        act(&mut chat, "chat/inputCompleted", json!({"requestId": "r", "response": "cancel"}));
        assert_eq!(PendingInput::first_of(&chat), None);
    }

    #[test]
    fn a_call_that_asks_again_is_another_decision() {
        let mut chat = chat();
        let call = |more: Value| {
            let mut fields = json!({"turnId": "t", "toolCallId": "c"});
            for (key, value) in more.as_object().unwrap() {
                fields[key] = value.clone();
            }
            fields
        };
        act(&mut chat, "chat/toolCallStart", call(json!({"toolName": "x", "displayName": "X"})));
        let ready = json!({"invocationMessage": "Run", "toolInput": "{}", "editable": true});
        act(&mut chat, "chat/toolCallReady", call(ready));
        let Some(PendingInput::Confirmation(mut confirmation)) = PendingInput::first_of(&chat)
        else {
            panic!("it waits")
        };
        confirmation.edit_input("{\"a\":1}".to_owned());
        let edited = PendingInput::Confirmation(confirmation);
        let is_same =
            |chat: &ChatState| PendingInput::first_of(chat).map(|now| edited.is_same(&now));
        assert_eq!(is_same(&chat), Some(true));
        let again = json!({"invocationMessage": "Run", "toolInput": "{\"other\":1}"});
        act(&mut chat, "chat/toolCallReady", call(again));
        assert_eq!(is_same(&chat), Some(false));
        act(
            &mut chat,
            "chat/toolCallConfirmed",
            call(json!({"approved": true, "confirmed": "user-action"})),
        );
        assert_eq!(PendingInput::first_of(&chat), None);
    }
}
