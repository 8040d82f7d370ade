//! What an agent waits for in a chat: a decision about a tool call, or answers to questions.
//!
//! Promises: there is one exactly while something waits; one that another client answered goes away by itself.
//! Must not know: connections.

use serde_json::Value;
use wire::state::{ChatState, status};

use super::{Confirmation, QuestionForm};

#[derive(Debug, Clone, PartialEq)]
pub enum PendingInput {
    Confirmation(Confirmation),
    Questions(QuestionForm),
}

impl PendingInput {
    /// The first thing that waits.
    pub fn first_of(chat: &ChatState) -> Option<Self> {
        if chat.status & status::ACTIVITY_MASK != status::INPUT_NEEDED {
            return None;
        }
        let turn = chat.active_turn.as_ref()?;
        turn.parts.iter().find_map(|part| match part.kind() {
            "toolCall" => {
                let call = part.0.get("toolCall")?.as_object()?;
                Confirmation::of(&turn.id, call).map(Self::Confirmation)
            }
            "inputRequest" if !part.0.get("response").is_some_and(Value::is_string) => {
                let request = part.0.get("request")?;
                Some(Self::Questions(QuestionForm::new(request)))
            }
            _ => None,
        })
    }

    /// What waits now, keeping what was answered so far if it is still the same.
    pub fn refresh(current: Option<Self>, chat: &ChatState) -> Option<Self> {
        let next = Self::first_of(chat)?;
        match current {
            Some(current) if current.is_same(&next) => Some(current),
            _ => Some(next),
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
        act(
            &mut chat,
            "chat/inputRequested",
            json!({"request": request}),
        );
        let mut pending = PendingInput::refresh(None, &chat);
        let Some(PendingInput::Questions(form)) = &mut pending else {
            panic!("{pending:?}")
        };
        assert_eq!(form.answer("x"), Ok(Progress::Next));
        let half = pending.clone();
        let pending = PendingInput::refresh(pending, &chat);
        assert_eq!(pending, half, "what was answered stays");
        act(
            &mut chat,
            "chat/inputCompleted",
            json!({"requestId": "r", "response": "cancel"}),
        );
        assert_eq!(PendingInput::refresh(pending, &chat), None);
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
        act(
            &mut chat,
            "chat/toolCallStart",
            call(json!({"toolName": "x", "displayName": "X"})),
        );
        let ready = json!({"invocationMessage": "Run", "toolInput": "{}", "editable": true});
        act(&mut chat, "chat/toolCallReady", call(ready));
        let Some(PendingInput::Confirmation(mut confirmation)) = PendingInput::first_of(&chat)
        else {
            panic!("it waits")
        };
        confirmation.edit_input("{\"a\":1}".to_owned());
        let edited = Some(PendingInput::Confirmation(confirmation));
        assert_eq!(PendingInput::refresh(edited.clone(), &chat), edited);
        let again = json!({"invocationMessage": "Run", "toolInput": "{\"other\":1}"});
        act(&mut chat, "chat/toolCallReady", call(again));
        assert_ne!(PendingInput::refresh(edited.clone(), &chat), edited);
        act(
            &mut chat,
            "chat/toolCallConfirmed",
            call(json!({"approved": true, "confirmed": "user-action"})),
        );
        assert_eq!(PendingInput::first_of(&chat), None);
    }
}
