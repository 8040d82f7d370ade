//! What people do when an agent waits for them: allow, deny, review, answer, work.

use serde_json::{Value, json};

use agent_api::AgentReply;

use crate::scenario::Scenario;
use crate::scenario_client::ScenarioClient;

impl Scenario {
    /// The decisions agents got about their tool calls: approved or not, in order.
    pub fn tool_decisions(&self) -> Vec<bool> {
        let world = self.look();
        let decided = world.models.replies.iter().filter_map(|(_, reply)| match reply {
            AgentReply::ToolDecided { approved, .. } => Some(*approved),
            _ => None,
        });
        decided.collect()
    }

    /// Results of tools that agents got, in order.
    pub fn tool_results(&self) -> Vec<Value> {
        let world = self.look();
        let ended = world.models.replies.iter().filter_map(|(_, reply)| match reply {
            AgentReply::ToolEnded { result, .. } => {
                Some(Value::Object(result.clone().into_object()))
            }
            _ => None,
        });
        ended.collect()
    }
}

impl ScenarioClient {
    /// The status of its chat, without the flags of reading and archiving.
    pub fn chat_status(&self) -> u64 {
        let status = self.sees(&self.chat())["status"].as_u64();
        status.expect("a chat has a status") & 31
    }

    /// The parts of the running turn of its chat, as this client sees them.
    pub fn running_parts(&self) -> Vec<Value> {
        let chat = self.sees(&self.chat());
        let parts = chat["activeTurn"]["responseParts"].as_array().cloned();
        parts.unwrap_or_default()
    }

    /// All tool calls of the latest turn of its chat, running or done.
    pub fn calls(&self) -> Vec<Value> {
        let parts =
            self.latest_turn()["responseParts"].as_array().cloned().unwrap_or_default().into_iter();
        let calls = parts.filter(|part| part["kind"] == "toolCall");
        calls.map(|part| part["toolCall"].clone()).collect()
    }

    /// The first call in this state.
    #[track_caller]
    pub fn call_that_is(&self, status: &str) -> Value {
        let calls = self.calls();
        let call = calls.iter().find(|call| call["status"] == status);
        match call {
            Some(call) => call.clone(),
            None => panic!("no call is {status}: {calls:?}"),
        }
    }

    /// An action that names a call of the latest turn.
    pub fn about(&self, call: &Value, kind: &str, more: Value) -> Value {
        let mut action = json!({
            "type": kind,
            "turnId": self.latest_turn()["id"],
            "toolCallId": call["toolCallId"],
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            action[field] = value.clone();
        }
        action
    }

    /// Allows the call that waits for it.
    pub fn confirms(&self) -> Result<(), String> {
        self.confirms_with(json!({}))
    }

    /// Allows the call, and more.
    pub fn confirms_with(&self, more: Value) -> Result<(), String> {
        let action = self.confirmation(more);
        self.tries(&self.chat(), action)
    }

    pub fn confirmation(&self, more: Value) -> Value {
        let call = self.call_that_is("pending-confirmation");
        let mut fields = json!({"approved": true, "confirmed": "user-action"});
        for (field, value) in more.as_object().into_iter().flatten() {
            fields[field] = value.clone();
        }
        self.about(&call, "chat/toolCallConfirmed", fields)
    }

    pub fn denies(&self) -> Result<(), String> {
        self.denies_with(json!({}))
    }

    pub fn denies_with(&self, more: Value) -> Result<(), String> {
        let call = self.call_that_is("pending-confirmation");
        let mut fields = json!({"approved": false, "reason": "denied"});
        for (field, value) in more.as_object().into_iter().flatten() {
            fields[field] = value.clone();
        }
        let action = self.about(&call, "chat/toolCallConfirmed", fields);
        self.tries(&self.chat(), action)
    }

    /// Says whether a result may be used.
    pub fn reviews(&self, approved: bool) -> Result<(), String> {
        let call = self.call_that_is("pending-result-confirmation");
        let fields = json!({"approved": approved});
        let action = self.about(&call, "chat/toolCallResultConfirmed", fields);
        self.tries(&self.chat(), action)
    }

    /// Is active in its session with tools of these names.
    pub fn offers(&self, tools: &[&str]) -> Result<(), String> {
        let client = self.with(|client| client.id.clone());
        let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
        let entry = json!({"clientId": client, "tools": tools});
        self.tries(
            &self.session(),
            json!({"type": "session/activeClientSet", "activeClient": entry}),
        )
    }

    /// Does the work of its own tool: the running call of the latest turn.
    pub fn completes_tool(&self, text: &str) -> Result<(), String> {
        let call = self.call_that_is("running");
        let result = json!({"success": true, "pastTenseMessage": "did it",
            "content": [{"type": "text", "text": text}]});
        let action = self.about(&call, "chat/toolCallComplete", json!({"result": result}));
        self.tries(&self.chat(), action)
    }

    pub fn fails_tool(&self, why: &str) -> Result<(), String> {
        let call = self.call_that_is("running");
        let result = json!({"success": false, "pastTenseMessage": "could not",
            "error": {"message": why}});
        let action = self.about(&call, "chat/toolCallComplete", json!({"result": result}));
        self.tries(&self.chat(), action)
    }

    /// The question that is open in its chat.
    #[track_caller]
    pub fn question(&self) -> Value {
        let parts = self.running_parts();
        let open = |part: &&Value| part["kind"] == "inputRequest" && part.get("response").is_none();
        match parts.iter().find(open) {
            Some(part) => part["request"].clone(),
            None => panic!("nothing is asked: {parts:?}"),
        }
    }

    /// Ends the open question this way, with these final answers.
    pub fn answers(&self, response: &str, answers: Value) -> Result<(), String> {
        let mut action = json!({
            "type": "chat/inputCompleted",
            "requestId": self.question()["id"],
            "response": response,
        });
        if !answers.is_null() {
            action["answers"] = answers;
        }
        self.tries(&self.chat(), action)
    }

    /// Accepts with a text as the answer to question `q`.
    pub fn answers_text(&self, text: &str) -> Result<(), String> {
        self.answers("accept", json!({"q": text_answer("submitted", text)}))
    }

    /// Tells what it is about to answer.
    pub fn drafts_answer(&self, question: &str, answer: Value) -> Result<(), String> {
        let mut action = json!({
            "type": "chat/inputAnswerChanged",
            "requestId": self.question()["id"],
            "questionId": question,
        });
        if !answer.is_null() {
            action["answer"] = answer;
        }
        self.tries(&self.chat(), action)
    }

    /// What its session says is waited for.
    pub fn needs(&self) -> Vec<Value> {
        let needed = self.sees(&self.session())["inputNeeded"].as_array().cloned();
        needed.unwrap_or_default()
    }

    /// Kinds of what its session says is waited for.
    pub fn needed_kinds(&self) -> Vec<String> {
        let kind = |entry: &Value| entry["kind"].as_str().unwrap_or("").to_owned();
        self.needs().iter().map(kind).collect()
    }
}

/// An answer in words.
pub fn text_answer(state: &str, text: &str) -> Value {
    json!({"state": state, "value": {"kind": "text", "value": text}})
}
