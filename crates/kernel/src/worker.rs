//! Worker chats: a tool call that is another chat at work. Its origin and the call's content name each other (H-152), and how
//! deep and how many is bounded (H-153).

use agent_api::{ToolStart, Worker};
use serde_json::{Value, json};
use wire::meta::TOOL_KIND;
use wire::state::Outcome;
use wire::{ActionKind, ChannelUri, Object};

use crate::agent_action::record_agent_action;
use crate::background_task::BackgroundTask;
use crate::channels::Executor;
use crate::chats::{NewChat, create_chat};
use crate::io::RunId;
use crate::record_message::record_plain_message;
use crate::state::{Kernel, Step};
use crate::tool_call::agent::start_call;
use crate::tool_call::reply::{call_of, fail_call, report_if_over};
use crate::turn::end::{end_turn, stop_run};
use crate::turn::start::begin_turn;

/// The tool that starts workers and its kind, as clients see them.
const TOOL_NAME: &str = "subagent";

/// How much of a worker's last answer goes into the result of its call; the rest is in its chat.
const LAST_WORDS_BYTES: usize = 16 * 1_024;

/// An agent wants a worker. Its URI must be free, also among chats that are not in memory (G-26).
pub(crate) fn start_worker(step: &mut Step, run: RunId, call: u64, worker: Worker) {
    let name = format!("ahp-chat:/worker-{}", step.seq().0 + 1);
    try_worker(step, run, call, worker, &name);
}

/// Tries a URI for a worker.
pub(crate) fn try_worker(step: &mut Step, run: RunId, call: u64, worker: Worker, name: &str) {
    match ChannelUri::parse(name) {
        Ok(chat) => step.start_task(BackgroundTask::StartWorker {
            chat,
            run,
            call,
            worker: Box::new(worker),
        }),
        Err(error) => fail_start(step, run, call, &worker, &error.to_string()),
    }
}

/// The chat and the turn of a run; `None` if the turn is over.
fn turn_of_run(kernel: &Kernel, run: RunId) -> Option<(ChannelUri, String)> {
    let chat = kernel.runs().chat_of(run)?.clone();
    let turn_id = kernel.active_turn_id(&chat)?;
    Some((chat, turn_id))
}

/// Fails the call of a worker that cannot be started: the agent is answered in any case.
pub(crate) fn fail_start(step: &mut Step, run: RunId, call: u64, worker: &Worker, why: &str) {
    // A turn that is over waits for no worker.
    if let Some((parent, turn_id)) = turn_of_run(step, run)
        && let Some(id) = announce(step, &parent, &turn_id, call, Executor::Client, worker)
    {
        fail_call(step, &parent, &id, why);
    }
}

/// The call that a worker is seen by: one that the agent made for it and that runs, or a new one. `None` if no client could
/// read it: then the turn ended.
fn announce(
    step: &mut Step,
    parent: &ChannelUri,
    turn_id: &str,
    call: u64,
    executor: Executor,
    worker: &Worker,
) -> Option<String> {
    if let Some(run) = step.run_mut(parent)
        && let Some(id) = run.hand_over_call(call, &executor)
    {
        return Some(id);
    }
    let meta = Object::from_iter([(TOOL_KIND.to_owned(), json!(TOOL_NAME))]);
    let start = ToolStart {
        name: TOOL_NAME.to_owned(),
        display_name: worker.title.clone(),
        meta: Some(meta.clone()),
        ..ToolStart::default()
    };
    let id = start_call(step, parent, turn_id, call, executor, start)?;
    if let Some(run) = step.run_mut(parent) {
        run.await_call(call);
    }
    let fields = json!({
        "turnId": turn_id,
        "toolCallId": id,
        "invocationMessage": worker.title,
        "toolInput": worker.task,
        "confirmed": "not-needed",
        "_meta": meta,
    });
    record_agent_action(step, parent, ActionKind::ChatToolCallReady, fields).then_some(id)
}

/// The URI is free: the call, the chat and its first turn, in one step.
pub(crate) fn create_worker(
    step: &mut Step,
    uri: &ChannelUri,
    run: RunId,
    call: u64,
    worker: Worker,
) {
    let Some((parent, turn_id)) = turn_of_run(step, run) else {
        return; // the turn is over
    };
    let executor = Executor::Worker(uri.clone());
    let Some(id) = announce(step, &parent, &turn_id, call, executor, &worker) else {
        return; // the turn ended in an error that says why
    };
    if let Some(why) = too_many_workers(step, &parent, &worker) {
        return fail_call(step, &parent, &id, &why);
    }
    let chat = step.chat(&parent);
    let (session, author) = (chat.session().clone(), chat.private().author.clone());
    let mut message = json!({"text": worker.task, "origin": {"kind": "tool"}});
    let own = chat.state().active_turn.as_ref().and_then(|turn| turn.message.get("model"));
    if let Some(model) = worker.model.as_ref().or(own) {
        message["model"] = model.clone();
    }
    let content = subagent(uri, &worker.title, worker.agent_name.as_deref());
    let interactivity = worker.interactivity.as_deref().unwrap_or("read-only");
    let new = NewChat {
        uri: uri.clone(),
        title: worker.title,
        origin: json!({"kind": "tool", "chat": parent.as_str(), "toolCallId": id}),
        interactivity: Some(interactivity.to_owned()),
        working_directories: chat.state().working_directories.clone(),
        source: None,
        brief: Some(worker.brief),
        depth: chat.private().depth + 1,
        meta: None,
    };
    create_chat(step, &session, new);
    let fields = json!({"turnId": turn_id, "toolCallId": id, "content": [content]});
    record_agent_action(step, &parent, ActionKind::ChatToolCallContentChanged, fields);
    let worker_turn = step.chat(uri).free_turn_id(step.seq());
    let fields = json!({
        "turnId": worker_turn,
        "startedAt": step.now().to_rfc3339(),
        "message": message,
    });
    let started = step.act_as_host(uri, ActionKind::ChatTurnStarted, fields);
    assert!(started, "a new chat takes a turn");
    let submitted = record_plain_message(step, uri, &message, &worker_turn);
    begin_turn(step, uri, author, submitted);
}

/// Why no more workers may be started here.
fn too_many_workers(kernel: &Kernel, parent: &ChannelUri, worker: &Worker) -> Option<String> {
    let limits = kernel.limits();
    if worker.brief.len() > limits.checkpoint_bytes_max {
        let most = limits.checkpoint_bytes_max;
        return Some(format!("a worker's brief has at most {most} bytes"));
    }
    let chat = kernel.chat(parent);
    if chat.private().depth >= limits.worker_depth_max {
        let most = limits.worker_depth_max;
        return Some(format!("workers may start workers at most {most} deep"));
    }
    if kernel.session(chat.session()).state().chats.len() >= limits.chats_max {
        let most = limits.chats_max;
        return Some(format!("a session has at most {most} chats"));
    }
    let chats = kernel.channels().chats_in_memory(chat.session());
    let working = chats
        .into_iter()
        .filter(|chat| kernel.chat(chat).run().is_some() && parent_of(kernel, chat).is_some());
    let most = limits.workers_max;
    (working.count() >= most).then(|| format!("at most {most} workers of a session work at once"))
}

/// The chat whose tool call started this one.
fn parent_of(kernel: &Kernel, uri: &ChannelUri) -> Option<ChannelUri> {
    kernel.find_chat(uri)?.parent()
}

/// The running call that waits for a worker: its chat and its id.
fn call_for(kernel: &Kernel, uri: &ChannelUri) -> Option<(ChannelUri, String)> {
    let parent = parent_of(kernel, uri)?;
    let id = kernel.find_chat(&parent)?.run()?.call_of_worker(uri)?.to_owned();
    Some((parent, id))
}

/// A worker's turn is over: so is the call that waited for it, if one did.
pub(crate) fn report(step: &mut Step, uri: &ChannelUri) {
    let Some((parent, id)) = call_for(step, uri) else {
        return; // not a worker, or nobody waits for it any more
    };
    let state = step.chat(uri).state();
    let (Some(turn), Some(turn_id)) = (state.turns.last(), step.active_turn_id(&parent)) else {
        return; // a next turn began before the report, or the parent's turn is over
    };
    let title = &state.title;
    let (success, message) = match turn.outcome {
        Outcome::Complete => (true, format!("{title}: done")),
        Outcome::Cancelled => (false, format!("{title}: cancelled")),
        Outcome::Error { .. } => (false, format!("{title}: failed")),
    };
    let agent_name = call_of(step, &parent, &id)
        .and_then(|call| call.get("content")?.get(0)?["agentName"].as_str().map(str::to_owned));
    let mut content = vec![subagent(uri, title, agent_name.as_deref())];
    if let Some(text) = last_words(&turn.value()) {
        content.push(json!({"type": "text", "text": text}));
    }
    let mut result = json!({"success": success, "pastTenseMessage": message, "content": content});
    if !success {
        result["error"] = json!({"message": message});
    }
    let fields = json!({"turnId": turn_id, "toolCallId": id, "result": result});
    if record_agent_action(step, &parent, ActionKind::ChatToolCallComplete, fields) {
        report_if_over(step, &parent, &id);
    }
}

/// A worker has no turn any more that could end: the call that waits for it fails.
pub(crate) fn fail_call_of(step: &mut Step, uri: &ChannelUri, why: &str) {
    if let Some((parent, id)) = call_for(step, uri) {
        fail_call(step, &parent, &id, why);
    }
}

/// Cancels the workers of a turn that is over.
pub(crate) fn cancel(step: &mut Step, workers: Vec<ChannelUri>) {
    for chat in workers {
        if let Some(turn_id) = step.active_turn_id(&chat) {
            stop_run(step, &chat);
            let fields = json!({"turnId": turn_id});
            end_turn(step, &chat, ActionKind::ChatTurnCancelled, fields);
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

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
