//! What an agent waits for in a chat: a decision about a tool call, or answers to questions.
//!
//! Promises: there is a dialog exactly while something waits; one that somebody else answered goes away by itself.
//! Must not know: terminals, connections.

use serde_json::Value;
use wire::state::{ChatState, status};

use super::confirm::Confirm;
use super::questions::Questions;
use super::styled::Line;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Dialog {
    Confirm(Confirm),
    Questions(Questions),
}

impl Dialog {
    /// The first thing that waits.
    pub(crate) fn of(chat: &ChatState) -> Option<Self> {
        if chat.status & status::ACTIVITY_MASK != status::INPUT_NEEDED {
            return None;
        }
        let turn = chat.active_turn.as_ref()?;
        turn.parts.iter().find_map(|part| match part.kind() {
            "toolCall" => {
                let call = part.0.get("toolCall")?.as_object()?;
                Confirm::of(&turn.id, call).map(Self::Confirm)
            }
            "inputRequest" if !part.0.get("response").is_some_and(Value::is_string) => {
                let request = part.0.get("request")?;
                Some(Self::Questions(Questions::of(request)))
            }
            _ => None,
        })
    }

    /// What waits now, keeping what was answered so far if it is still the same.
    pub(crate) fn refreshed(current: Option<Self>, chat: &ChatState) -> Option<Self> {
        let next = Self::of(chat)?;
        match current {
            Some(current) if current.is_same(&next) => Some(current),
            _ => Some(next),
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Confirm(one), Self::Confirm(other)) => one.is_same(other),
            (Self::Questions(one), Self::Questions(other)) => one.is_same(other),
            (Self::Confirm(_), Self::Questions(_)) | (Self::Questions(_), Self::Confirm(_)) => {
                false
            }
        }
    }

    /// What is asked, and how to answer. What it is about stands above, as part of the chat.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        match self {
            Self::Confirm(confirm) => confirm.lines(width),
            Self::Questions(questions) => questions.lines(width),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::reduce::reduce_chat;
    use wire::{Action, ActionKind};

    use super::*;
    use crate::chat::questions::Answered;

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
    fn a_question_lasts_until_somebody_answers_it() {
        let mut chat = chat();
        assert_eq!(Dialog::of(&chat), None);
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
        let mut dialog = Dialog::refreshed(None, &chat);
        let Some(Dialog::Questions(questions)) = &mut dialog else {
            panic!("{dialog:?}")
        };
        assert_eq!(questions.line("x"), Answered::Next);
        let half = dialog.clone();
        let dialog = Dialog::refreshed(dialog, &chat);
        assert_eq!(dialog, half, "what was answered stays");
        act(
            &mut chat,
            "chat/inputCompleted",
            json!({"requestId": "r", "response": "cancel"}),
        );
        assert_eq!(Dialog::refreshed(dialog, &chat), None);
    }

    #[test]
    fn a_call_that_asks_again_is_another_dialog() {
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
        let Some(Dialog::Confirm(mut confirm)) = Dialog::of(&chat) else {
            panic!("it waits")
        };
        confirm.set_edited("{\"a\":1}".to_owned());
        let edited = Some(Dialog::Confirm(confirm));
        assert_eq!(Dialog::refreshed(edited.clone(), &chat), edited);
        let again = json!({"invocationMessage": "Run", "toolInput": "{\"other\":1}"});
        act(&mut chat, "chat/toolCallReady", call(again));
        assert_ne!(Dialog::refreshed(edited, &chat), None);
        act(
            &mut chat,
            "chat/toolCallConfirmed",
            call(json!({"approved": true, "confirmed": "user-action"})),
        );
        assert_eq!(Dialog::of(&chat), None);
    }
}
