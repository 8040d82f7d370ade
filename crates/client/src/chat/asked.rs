//! Everything a user of this chat is asked: what its own turn waits for, and what the workers it started wait for.
//!
//! Promises: in the order of the chat, its own first. What was answered here and is not confirmed yet is not asked again,
//! unless the host refuses the answer.
//! Must not know: how it is shown.

use serde_json::{Value, json};
use wire::state::{ChatState, SessionState};
use wire::{ChannelUri, Object};

use crate::ClientError;

use super::{InputResponse, OpenChat, PendingInput, ToolDecision};

/// Workers of workers that are looked through to find who started whom.
const WORKER_DEPTH_MAX: usize = 16;

/// Something a user is asked, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedInput {
    pub input: PendingInput,
    /// The title of the worker that waits; none if this chat itself does.
    pub worker: Option<String>,
    chat: ChannelUri,
    /// What it is about, as a part of its chat.
    part: Object,
}

impl AskedInput {
    /// The chat that waits.
    pub fn chat(&self) -> &ChannelUri {
        &self.chat
    }

    /// The part of its chat that waits.
    pub fn part(&self) -> &Object {
        &self.part
    }

    /// What is asked now: the same as before with what was answered so far while it still waits, else the first.
    pub fn refresh(before: Option<Self>, asked: &[Self]) -> Option<Self> {
        let still = before.and_then(|before| {
            let now = asked.iter().find(|asked| asked.is_same(&before))?;
            Some(Self {
                input: before.input,
                // What is known about it may have grown.
                ..now.clone()
            })
        });
        still.or_else(|| asked.first().cloned())
    }

    /// Whether the same is asked as before, or nothing now as then.
    pub fn is_unchanged(before: Option<&Self>, now: Option<&Self>) -> bool {
        match (before, now) {
            (Some(before), Some(now)) => before.is_same(now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// The same question, whatever was answered or edited meanwhile?
    pub fn is_same(&self, other: &Self) -> bool {
        self.chat == other.chat && self.input.is_same(&other.input)
    }
}

impl OpenChat {
    /// What is asked now.
    pub fn asked_inputs(&self) -> Vec<AskedInput> {
        let Some(chat) = self.ahead() else {
            return Vec::new(); // between two connections the chat may not be held
        };
        let mut asked = of_chat(&self.chat, &chat);
        if let Some(session) = self.session_state() {
            asked.extend(of_workers(&self.chat, &session));
            asked.retain(|asked| asked.worker.is_none() || !self.is_answered(asked));
        }
        asked
    }

    /// Whether an answer from here is on its way.
    fn is_answered(&self, asked: &AskedInput) -> bool {
        let (field, id) = asked.input.address();
        self.live.read(|replica| {
            let mut pending = replica.pending();
            pending.any(|pending| {
                pending.channel == asked.chat.as_str() && pending.action.get(field) == Some(&id)
            })
        })
    }

    /// Tells the host what was decided about a tool call.
    pub fn confirm(&self, asked: &AskedInput, decision: &ToolDecision) -> Result<(), ClientError> {
        self.live.dispatch(&asked.chat, decision.action()).map(drop)
    }

    /// Answers, declines or dismisses an agent's questions.
    pub fn answer(&self, asked: &AskedInput, response: &InputResponse) -> Result<(), ClientError> {
        self.live.dispatch(&asked.chat, response.action()).map(drop)
    }

    /// Another chat of the session, no worker of this one, in which a user is asked something.
    pub fn input_needed_elsewhere(&self) -> Option<String> {
        let session = self.session_state()?;
        let mut elsewhere = session.input_needed.iter().filter_map(|needed| {
            let chat = needed["chat"].as_str()?;
            // A tool that a client runs is no question to people.
            let is_question = needed["kind"] != "toolClientExecution";
            let is_ours = chat == self.chat.as_str() || is_worker(&session, &self.chat, chat);
            (is_question && !is_ours).then(|| chat.to_owned())
        });
        elsewhere.next()
    }
}

fn of_chat(uri: &ChannelUri, chat: &ChatState) -> Vec<AskedInput> {
    let asked = PendingInput::all_of(chat).into_iter();
    asked
        .map(|(part, input)| AskedInput {
            input,
            worker: None,
            chat: uri.clone(),
            part: part.0.clone(),
        })
        .collect()
}

/// The session says what its chats wait for: the workers need not be watched.
fn of_workers(parent: &ChannelUri, session: &SessionState) -> Vec<AskedInput> {
    let asked = session.input_needed.iter().filter_map(|needed| {
        let chat = needed["chat"].as_str()?;
        if !is_worker(session, parent, chat) {
            return None;
        }
        let part = match needed["kind"].as_str()? {
            "chatInput" => json!({"kind": "inputRequest", "request": needed["request"]}),
            "toolConfirmation" | "toolAuthentication" => {
                json!({"kind": "toolCall", "toolCall": needed["toolCall"]})
            }
            _ => return None,
        };
        let Value::Object(part) = part else { return None };
        let turn_id = needed["turnId"].as_str().unwrap_or("");
        let title = session.chat(chat).map(|chat| chat.title.clone());
        Some(AskedInput {
            input: PendingInput::of_part(turn_id, &part)?,
            worker: Some(title.unwrap_or_default()),
            chat: ChannelUri::parse(chat).ok()?,
            part,
        })
    });
    asked.collect()
}

/// Whether a chat was started by a tool call of another one, or by a worker of it.
pub(super) fn is_worker(session: &SessionState, parent: &ChannelUri, chat: &str) -> bool {
    let mut chat = chat;
    for _ in 0..WORKER_DEPTH_MAX {
        let origin = session.chat(chat).and_then(|chat| chat.extra.get("origin"));
        let Some(origin) = origin.filter(|origin| origin["kind"] == "tool") else { return false };
        match origin["chat"].as_str() {
            Some(starter) if starter == parent.as_str() => return true,
            Some(starter) => chat = starter,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(needed: Value) -> SessionState {
        let chat = |uri: &str, starter: Option<&str>| {
            let mut chat = json!({
                "resource": uri, "title": format!("Title of {uri}"), "status": 1, "modifiedAt": "",
            });
            if let Some(starter) = starter {
                chat["origin"] = json!({"kind": "tool", "chat": starter, "toolCallId": "c"});
            }
            chat
        };
        SessionState::from_value(json!({
            "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [],
            "chats": [
                chat("c:/main", None), chat("c:/worker", Some("c:/main")),
                chat("c:/deep", Some("c:/worker")), chat("c:/side", None),
            ],
            "inputNeeded": needed,
        }))
        .unwrap()
    }

    #[test]
    fn questions_of_workers_and_their_workers_are_asked_and_no_others() {
        let call = |id: &str| json!({"toolCallId": id, "status": "pending-confirmation"});
        let needed = |chat: &str, id: &str| json!({"kind": "toolConfirmation", "chat": chat, "turnId": "t", "toolCall": call(id)});
        let session = session(json!([
            needed("c:/worker", "a"),
            needed("c:/side", "b"),
            {"kind": "chatInput", "chat": "c:/deep", "request": {"id": "r"}},
            {"kind": "toolClientExecution", "chat": "c:/worker", "toolCall": call("d")},
        ]));
        let asked = of_workers(&ChannelUri::parse("c:/main").unwrap(), &session);
        let [first, second] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(first.worker.as_deref(), Some("Title of c:/worker"));
        assert_eq!(first.input.address(), ("toolCallId", json!("a")));
        assert_eq!(second.chat().as_str(), "c:/deep");
        assert_eq!(second.input.address(), ("requestId", json!("r")));
    }

    #[test]
    fn what_becomes_known_about_a_question_is_taken_over() {
        let asked = |risk: Value| {
            let call = json!({"toolCallId": "a", "status": "pending-confirmation", "riskAssessment": risk});
            let needed = json!([{"kind": "toolConfirmation", "chat": "c:/worker", "turnId": "t", "toolCall": call}]);
            of_workers(&ChannelUri::parse("c:/main").unwrap(), &session(needed))
        };
        let before = asked(json!({})).pop();
        let now = AskedInput::refresh(before, &asked(json!({"safety": 0.1}))).unwrap();
        assert_eq!(now.part()["toolCall"]["riskAssessment"]["safety"], 0.1);
    }
}
