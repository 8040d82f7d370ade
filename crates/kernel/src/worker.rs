//! Worker chats: a tool call that is another chat at work. Its origin and the call's content name each other (H-152),
//! and how deep and how many is bounded (H-153).

use agent_api::{ToolStart, Worker};
use serde_json::{Value, json};
use wire::reduce::Reduced;
use wire::state::Outcome;
use wire::{Action, ChannelUri};

use crate::Kernel;
use crate::channel::chat::{Executor, Run};
use crate::chats::NewChat;
use crate::chore::Chore;
use crate::io::RunId;

/// The tool that starts workers, as clients see it.
const TOOL_NAME: &str = "subagent";

/// How much of a worker's last words goes into the result of its call; the rest is in its chat.
const LAST_WORDS_BYTES: usize = 16 * 1_024;

impl Kernel {
    /// An agent wants a worker. Its URI must be free, also among chats that are not in memory (G-26).
    pub(crate) fn spawn(&mut self, run: RunId, call: u64, worker: Worker) {
        let seq = self.seq.0 + 1;
        self.try_spawn(run, call, worker, &format!("ahp-chat:/worker-{seq}"));
    }

    pub(crate) fn try_spawn(&mut self, run: RunId, call: u64, worker: Worker, name: &str) {
        match ChannelUri::parse(name) {
            Ok(chat) => self.begin_chore(Chore::Spawn {
                chat,
                run,
                call,
                worker: Box::new(worker),
            }),
            Err(error) => self.fail_spawn(run, call, &worker, &error.to_string()),
        }
    }

    /// A worker that cannot be started is a call that failed: the agent is told in any case.
    pub(crate) fn fail_spawn(&mut self, run: RunId, call: u64, worker: &Worker, why: &str) {
        let Some(parent) = self.runs.get(&run).cloned() else {
            return;
        };
        let Some(turn_id) = self.active_turn_id(&parent) else {
            return;
        };
        if let Some(id) = self.announce(&parent, &turn_id, call, Executor::Client, worker) {
            self.fail_call(&parent, &id, why);
        }
    }

    /// The call that a worker is seen by.
    fn announce(
        &mut self,
        parent: &ChannelUri,
        turn_id: &str,
        call: u64,
        by: Executor,
        worker: &Worker,
    ) -> Option<String> {
        let start = ToolStart {
            name: TOOL_NAME.to_owned(),
            display_name: worker.title.clone(),
            ..ToolStart::default()
        };
        let id = self.start_call(parent, turn_id, call, by, start)?;
        let fields = json!({
            "turnId": turn_id,
            "toolCallId": id,
            "invocationMessage": worker.title,
            "toolInput": worker.task,
            "confirmed": "not-needed",
        });
        self.agent_acts(parent, "chat/toolCallReady", fields)
            .then_some(id)
    }

    /// The URI is free: the call, the chat and its first turn, in one step.
    pub(crate) fn found_worker(&mut self, uri: ChannelUri, run: RunId, call: u64, worker: Worker) {
        let Some(parent) = self.runs.get(&run).cloned() else {
            return; // its turn is over
        };
        let Some(turn_id) = self.active_turn_id(&parent) else {
            return;
        };
        let by = Executor::Worker(uri.clone());
        let Some(id) = self.announce(&parent, &turn_id, call, by, &worker) else {
            return;
        };
        if let Some(why) = self.too_many_workers(&parent, &worker) {
            return self.fail_call(&parent, &id, &why);
        }
        let Some(chat) = self.chat(&parent) else {
            return;
        };
        let (session, author, depth) = (chat.session.clone(), chat.author.clone(), chat.depth);
        let directories = chat.state.working_directories.clone();
        let mut message = json!({"text": worker.task, "origin": {"kind": "tool"}});
        if let Some(turn) = &chat.state.active_turn
            && let Some(model) = turn.message.get("model")
        {
            message["model"] = model.clone();
        }
        let content = subagent(&uri, &worker.title, worker.agent_name.as_deref());
        let interactivity = worker.interactivity.as_deref().unwrap_or("read-only");
        self.found_chat(
            &session,
            NewChat {
                uri: uri.clone(),
                title: worker.title,
                origin: json!({"kind": "tool", "chat": parent.as_str(), "toolCallId": id}),
                interactivity: Some(interactivity.to_owned()),
                working_directories: directories,
                source: None,
                brief: Some(worker.brief),
                depth: depth + 1,
            },
        );
        let fields = json!({"turnId": turn_id, "toolCallId": id, "content": [content]});
        self.agent_acts(&parent, "chat/toolCallContentChanged", fields);
        let worker_turn = self.free_turn_id(&uri);
        let fields = json!({
            "turnId": worker_turn,
            "startedAt": self.now.to_rfc3339(),
            "message": message,
        });
        if self.act(&uri, Action::host("chat/turnStarted", fields), None) == Reduced::Changed {
            let submitted = self.record_plain(&uri, &message, &worker_turn);
            self.turn_started(&uri, author, submitted);
        }
    }

    /// Why no more workers may be started here.
    fn too_many_workers(&self, parent: &ChannelUri, worker: &Worker) -> Option<String> {
        if worker.brief.len() > self.limits.checkpoint_bytes_max {
            let most = self.limits.checkpoint_bytes_max;
            return Some(format!("a worker's brief has at most {most} bytes"));
        }
        if self.chat(parent).map_or(0, |chat| chat.depth) >= self.limits.worker_depth_max {
            let most = self.limits.worker_depth_max;
            return Some(format!("workers may start workers at most {most} deep"));
        }
        let session = self.chat(parent).map(|chat| chat.session.clone())?;
        let working = self.chats_in_memory(&session).into_iter().filter(|chat| {
            let running = self.chat(chat).is_some_and(|chat| chat.run.is_some());
            running && self.parent_of(chat).is_some()
        });
        let chats = self
            .session_state(&session)
            .map_or(0, |session| session.chats.len());
        if chats >= self.limits.chats_max {
            let most = self.limits.chats_max;
            return Some(format!("a session has at most {most} chats"));
        }
        let most = self.limits.workers_max;
        (working.count() >= most)
            .then(|| format!("at most {most} workers of a session work at once"))
    }

    /// The chat whose tool call started this one.
    fn parent_of(&self, uri: &ChannelUri) -> Option<ChannelUri> {
        let origin = self.chat_state(uri)?.extra.get("origin")?;
        if origin["kind"] != "tool" {
            return None;
        }
        ChannelUri::parse(origin["chat"].as_str()?).ok()
    }

    /// The running call that waits for a worker: its chat and its id.
    fn call_for(&self, uri: &ChannelUri) -> Option<(ChannelUri, String)> {
        let parent = self.parent_of(uri)?;
        let run = self.chat(&parent)?.run.as_ref()?;
        let mut calls = run.calls.values();
        let call = calls.find(|call| matches!(&call.by, Executor::Worker(chat) if chat == uri))?;
        let id = call.id.clone();
        Some((parent, id))
    }

    /// A worker's turn is over: so is the call that waited for it.
    pub(crate) fn worker_ended(&mut self, uri: &ChannelUri) {
        let Some((parent, id)) = self.call_for(uri) else {
            return;
        };
        let (Some(state), Some(turn_id)) = (self.chat_state(uri), self.active_turn_id(&parent))
        else {
            return;
        };
        let Some(turn) = state.turns.last() else {
            return;
        };
        let title = &state.title;
        let (success, message) = match turn.outcome {
            Outcome::Complete => (true, format!("{title}: done")),
            Outcome::Cancelled => (false, format!("{title}: cancelled")),
            Outcome::Error { .. } => (false, format!("{title}: failed")),
        };
        let agent_name = self.call_of(&parent, &id).and_then(|call| {
            let content = call.get("content")?.get(0)?;
            content["agentName"].as_str().map(str::to_owned)
        });
        let mut content = vec![subagent(uri, title, agent_name.as_deref())];
        if let Some(text) = last_words(&turn.value()) {
            content.push(json!({"type": "text", "text": text}));
        }
        let mut result =
            json!({"success": success, "pastTenseMessage": message, "content": content});
        if !success {
            result["error"] = json!({"message": message});
        }
        let fields = json!({"turnId": turn_id, "toolCallId": id, "result": result});
        if self.agent_acts(&parent, "chat/toolCallComplete", fields) {
            self.chat_followed(&parent);
            self.tell_if_over(&parent, &id);
        }
    }

    /// A worker has no turn any more that could end.
    pub(crate) fn worker_gone(&mut self, uri: &ChannelUri, why: &str) {
        if let Some((parent, id)) = self.call_for(uri) {
            self.fail_call(&parent, &id, why);
        }
    }

    /// A turn is over: whoever still works for it stops.
    pub(crate) fn end_workers(&mut self, run: &Run) {
        for call in run.calls.values() {
            let Executor::Worker(chat) = &call.by else {
                continue;
            };
            if let Some(turn_id) = self.active_turn_id(chat) {
                self.stop_run(chat);
                self.end_turn(chat, "chat/turnCancelled", json!({"turnId": turn_id}));
            }
        }
    }
}

fn subagent(chat: &ChannelUri, title: &str, agent_name: Option<&str>) -> Value {
    let mut content = json!({"type": "subagent", "resource": chat.as_str(), "title": title});
    if let Some(agent_name) = agent_name {
        content["agentName"] = json!(agent_name);
    }
    content
}

/// The last text of a turn, cut to a bound.
fn last_words(turn: &Value) -> Option<String> {
    let parts = turn["responseParts"].as_array()?;
    let part = parts.iter().rev().find(|part| part["kind"] == "markdown")?;
    let text = part["content"].as_str().filter(|text| !text.is_empty())?;
    let end = text.floor_char_boundary(LAST_WORDS_BYTES);
    Some(text[..end].to_owned())
}
