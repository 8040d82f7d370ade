//! Tool calls, as an agent makes them: its own, and those it asks a client to carry out (G-07, H-196 to H-200).

use agent_api::{AgentError, AgentEvent, ToolStart};
use serde_json::{Value, json};
use wire::published::state::{ToolCallClientContributor, ToolCallContributor};
use wire::reduce::Reduced;
use wire::{Action, ChannelUri, Object};

use crate::Kernel;
use crate::channel::chat::{Call, Executor};
use crate::io::{RunId, Timer};

impl Kernel {
    /// An agent's word about one of its tool calls.
    pub(crate) fn tool_event(
        &mut self,
        uri: &ChannelUri,
        turn_id: &str,
        run: RunId,
        event: AgentEvent,
    ) {
        match event {
            AgentEvent::ToolStarted { call, start } => {
                self.start_call(uri, turn_id, call, Executor::Agent, *start);
            }
            AgentEvent::ToolInput { call, text } => {
                self.on_call(
                    uri,
                    turn_id,
                    call,
                    "chat/toolCallDelta",
                    json!({"content": text}),
                );
            }
            AgentEvent::ToolReady { call, ready } => {
                let fields = Value::Object(ready.into_object());
                if self.on_call(uri, turn_id, call, "chat/toolCallReady", fields) {
                    self.chat_followed(uri);
                }
            }
            AgentEvent::ToolContent { call, content } => {
                let fields = json!({"content": content});
                self.on_call(uri, turn_id, call, "chat/toolCallContentChanged", fields);
            }
            AgentEvent::ToolCompleted {
                call,
                result,
                review,
            } => {
                let mut fields = json!({"result": result.into_object()});
                if review {
                    fields["requiresResultConfirmation"] = json!(true);
                }
                if self.on_call(uri, turn_id, call, "chat/toolCallComplete", fields) {
                    self.chat_followed(uri);
                }
            }
            AgentEvent::ClientTool {
                call,
                name,
                input,
                timeout_ms,
            } => self.call_client(uri, turn_id, (run, call), &name, &input, timeout_ms),
            AgentEvent::PartOpened { .. }
            | AgentEvent::Text { .. }
            | AgentEvent::Notice { .. }
            | AgentEvent::Usage(_)
            | AgentEvent::Title(_)
            | AgentEvent::Activity(_)
            | AgentEvent::Checkpoint(_)
            | AgentEvent::Notes(_)
            | AgentEvent::Compacted { .. }
            | AgentEvent::ContentRef(_)
            | AgentEvent::InputRequested { .. }
            | AgentEvent::SteerPoint { .. }
            | AgentEvent::SettingsRequested { .. }
            | AgentEvent::Render { .. }
            | AgentEvent::Spawned { .. }
            | AgentEvent::Completed
            | AgentEvent::Failed(_) => {} // not about a call
        }
    }

    /// Announces a call; its id comes from the seq that creates it (G-26).
    pub(crate) fn start_call(
        &mut self,
        uri: &ChannelUri,
        turn_id: &str,
        number: u64,
        by: Executor,
        start: ToolStart,
    ) -> Option<String> {
        let id = format!("c{}", self.seq.0 + 1);
        let fields = json!({
            "turnId": turn_id,
            "toolCallId": id,
            "toolName": start.name,
            "displayName": start.display_name,
            "intention": start.intention,
            "contributor": start.contributor,
            "_meta": start.meta,
        });
        if !self.agent_acts(uri, "chat/toolCallStart", fields) {
            return None;
        }
        if let Some(run) = self.chat_mut(uri).and_then(|chat| chat.run.as_mut()) {
            let call = Call { id: id.clone(), by };
            run.calls.insert(number, call);
        }
        Some(id)
    }

    /// An action on a call the agent names by its number. A number it never started means nothing.
    fn on_call(
        &mut self,
        uri: &ChannelUri,
        turn_id: &str,
        number: u64,
        name: &str,
        mut fields: Value,
    ) -> bool {
        let run = self.chat(uri).and_then(|chat| chat.run.as_ref());
        let Some(call) = run.and_then(|run| run.calls.get(&number)) else {
            return false;
        };
        fields["turnId"] = json!(turn_id);
        fields["toolCallId"] = json!(call.id);
        self.agent_acts(uri, name, fields)
    }

    /// Records what an agent says. What no client could read is not sent: the turn ends, and says why (H-078).
    pub(crate) fn agent_acts(&mut self, uri: &ChannelUri, name: &str, fields: Value) -> bool {
        let action = Action::host(name, fields);
        match Action::decode(Value::Object(action.body)) {
            Ok(action) => self.act(uri, action, None) == Reduced::Changed,
            Err(error) => {
                self.stop_run(uri);
                let failure = AgentError {
                    error_type: "agentUnreadable".to_owned(),
                    message: format!("the agent said what nobody can read: {error}"),
                    resumable: false,
                };
                self.end_turn_in_error(uri, failure);
                false
            }
        }
    }

    /// A tool that an active client offers: called by whoever started the turn if it has it, else by the first that is
    /// connected, else by the first that may come back.
    fn call_client(
        &mut self,
        uri: &ChannelUri,
        turn_id: &str,
        (run, number): (RunId, u64),
        name: &str,
        input: &Value,
        timeout_ms: u64,
    ) {
        let owner = self.owner_of(uri, name);
        let (by, contributor) = match &owner {
            Some((client_id, _)) => (
                Executor::Client,
                Some(ToolCallContributor::Client(ToolCallClientContributor {
                    client_id: client_id.clone(),
                })),
            ),
            None => (Executor::Client, None),
        };
        let title = owner.as_ref().and_then(|(_, tool)| tool["title"].as_str());
        let start = ToolStart {
            name: name.to_owned(),
            display_name: title.unwrap_or(name).to_owned(),
            contributor,
            ..ToolStart::default()
        };
        let Some(id) = self.start_call(uri, turn_id, number, by, start) else {
            return;
        };
        let fields = json!({
            "turnId": turn_id,
            "toolCallId": id,
            "invocationMessage": format!("Running {}", title.unwrap_or(name)),
            "toolInput": input_text(input),
            "confirmed": "not-needed",
        });
        if !self.agent_acts(uri, "chat/toolCallReady", fields) {
            return;
        }
        if owner.is_none() {
            let why = format!("no client that is active in this session offers `{name}`");
            return self.fail_call(uri, &id, &why);
        }
        self.chat_followed(uri);
        let timer = Timer::ClientTool {
            run,
            tool_call_id: id,
        };
        self.wake_in(timer, timeout_ms);
    }

    /// The active client that is to carry out a tool, and its definition of it.
    fn owner_of(&self, uri: &ChannelUri, name: &str) -> Option<(String, Value)> {
        let chat = self.chat(uri)?;
        let session = self.session_state(&chat.session)?;
        let offers = session.active_clients.iter().filter_map(|client| {
            let tools = client["tools"].as_array()?;
            let tool = tools.iter().find(|tool| tool["name"] == name)?;
            Some((client["clientId"].as_str()?.to_owned(), tool.clone()))
        });
        let offers: Vec<(String, Value)> = offers.collect();
        let place = |client_id: &String| {
            let started = chat.author.as_ref() == Some(client_id);
            let there = self.clients.contains_key(client_id);
            (!started, !there)
        };
        offers
            .into_iter()
            .min_by_key(|(client_id, _)| place(client_id))
    }

    /// A call that somebody else was to carry out comes to nothing, and the agent is told.
    pub(crate) fn fail_call(&mut self, uri: &ChannelUri, id: &str, why: &str) {
        let Some(turn_id) = self.active_turn_id(uri) else {
            return;
        };
        let mut result = json!({
            "success": false,
            "pastTenseMessage": why,
            "error": {"message": why},
        });
        // What it had shown so far stays: of a worker, that is its chat (H-152).
        if let Some(content) = self.call_of(uri, id).and_then(|call| call.get("content")) {
            result["content"] = content.clone();
        }
        let fields = json!({"turnId": turn_id, "toolCallId": id, "result": result});
        if self.act(uri, Action::host("chat/toolCallComplete", fields), None) == Reduced::Changed {
            self.chat_followed(uri);
            self.tell_if_over(uri, id);
        }
    }

    /// A client had its time.
    pub(crate) fn client_tool_timed_out(&mut self, run: RunId, id: &str) {
        let Some(uri) = self.runs.get(&run).cloned() else {
            return;
        };
        let waits = self
            .call_of(&uri, id)
            .is_some_and(|call| is_with_client(call, None));
        if waits {
            self.fail_call(&uri, id, "the client did not answer in time"); // H-198
        }
    }

    /// A client is not active in a session any more: what it was carrying out there comes to nothing (H-126).
    pub(crate) fn client_left(&mut self, session: &ChannelUri, client_id: &str) {
        for chat in self.chats_in_memory(session) {
            let turn = self
                .chat_state(&chat)
                .and_then(|state| state.active_turn.as_ref());
            let Some(turn) = turn else { continue };
            let calls = turn.parts.iter().filter_map(|part| {
                let call = part.0.get("toolCall")?.as_object()?;
                let id = call.get("toolCallId")?.as_str()?;
                is_with_client(call, Some(client_id)).then(|| id.to_owned())
            });
            let calls: Vec<String> = calls.collect();
            for id in calls {
                self.fail_call(&chat, &id, "the client that offers this tool has left");
            }
        }
    }
}

fn is_with_client(call: &Object, client_id: Option<&str>) -> bool {
    let status = call.get("status").and_then(Value::as_str);
    let Some(contributor) = call.get("contributor") else {
        return false;
    };
    matches!(status, Some("running" | "pending-confirmation"))
        && contributor["kind"] == "client"
        && client_id.is_none_or(|wanted| contributor["clientId"] == wanted)
}

/// Inputs travel as text; one that is text already stays what it is.
fn input_text(input: &Value) -> String {
    match input {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
