//! An agent gets to work on the active turn, once its session is ready and the host has done what the message wants of it.

use bytes::Bytes;
use serde_json::Value;
use wire::{ChannelUri, Object};

use super::end::{STOPPED, end_without_agent};
use crate::channels::Chat;
use crate::customization::{named_agent, survey, switched_off};
use crate::host_command::{self, TurnTask};
use crate::io::{Effect, HistoryAt, RunId, TurnRun};
use crate::record::ChannelId;
use crate::sessions::NEW_SESSION_TITLE;
use crate::state::{Kernel, Step};

/// Starts the agent on the active turn, unless it works already or its session is not ready yet.
pub(crate) fn start_agent(step: &mut Step, uri: &ChannelUri, resume: Option<Option<Bytes>>) {
    let Some(chat) = step.find_chat(uri) else {
        return; // it was disposed of in this step
    };
    let idle = chat.state().active_turn.is_none();
    if idle || chat.run().is_some() || !step.session_of(uri).is_ready() {
        return; // nothing to do, somebody is at it, or it starts when the session is ready
    }
    if step.runs().is_stopping() {
        return end_without_agent(step, uri, "hostStopped", STOPPED);
    }
    // The host's own work comes first; it may have to wait, or be all there was.
    if let Some(task) = host_command::carry_out(step, uri) {
        let run = step.start_run(uri);
        // Not for the run that restores files: it needs none of it, and the agent comes after it.
        let composed = match &task.restore {
            None => host_command::take_composed(step, uri),
            Some(_) => None,
        };
        let turn = TurnRun {
            composed: composed.filter(|_| resume.is_none()),
            ..turn_for_agent(step, uri, run, task, resume)
        };
        step.effect(Effect::RunTurn(Box::new(turn)));
        let session = step.chat(uri).session().clone();
        survey(step, &session);
    }
}

fn turn_for_agent(
    kernel: &Kernel,
    uri: &ChannelUri,
    run: RunId,
    task: TurnTask,
    resume: Option<Option<Bytes>>,
) -> TurnRun {
    let (chat, session) = (kernel.chat(uri), kernel.session_of(uri));
    let (state, private) = (chat.state(), chat.private());
    let (message, turn_id, parts, usage) = match &state.active_turn {
        Some(turn) => {
            (turn.message.clone(), turn.id.clone(), Some(&turn.parts), turn.usage.clone())
        }
        None => unreachable!("an agent works on an active turn"),
    };
    let (author, principal) = match private.author.clone() {
        Some(author) => (Some(author.client_id), author.principal),
        None => (None, None),
    };
    let usage = usage.filter(|_| resume.is_some());
    let said = parts.filter(|_| resume.is_some()).into_iter().flat_map(|parts| parts.iter());
    TurnRun {
        run,
        provider: session.state().provider.clone(),
        session: chat.session().clone(),
        session_id: kernel.id_of(chat.session()),
        chat: uri.clone(),
        custom_agent: custom_agent_of(kernel, chat.session(), &message),
        message,
        composed: None,
        // Whoever resumes a turn did not choose the addresses that its message names.
        author: author.filter(|_| resume.is_none()),
        principal,
        config: settings_of(kernel, uri),
        working_directories: directories_of(kernel, uri),
        switched_off: switched_off(kernel, chat.session()),
        said: said.map(|part| Value::Object(part.0.clone())).collect(),
        usage,
        resume,
        brief: private.brief.clone(),
        history: HistoryAt {
            chat: kernel.id_of(uri),
            before_n: chat.next_n(),
            context_n: private.context_n,
            compacted: private.compacted.clone(),
        },
        untitled: session.state().title == NEW_SESSION_TITLE,
        chat_notes: private.agent_notes.clone().map(Bytes::from),
        refusals: private.refusals.clone().map(Bytes::from),
        turn_id,
        last_turn_id: state.turns.last().map(|turn| turn.id.clone()),
        budget_turn: budget_turn(kernel, uri),
        compact: task.compact,
        reaches_model: task.reaches_model,
        restore: task.restore,
    }
}

/// The custom agent that a message names. If it no longer exists, the agent that runs the turn reports that.
fn custom_agent_of(kernel: &Kernel, session: &ChannelUri, message: &Value) -> Option<String> {
    let named = named_agent(kernel, session, message.as_object()?).ok().flatten();
    named.and_then(|entry| entry["name"].as_str().map(str::to_owned))
}

/// The turn that a worker works for, through all workers between; of any other chat its own.
fn budget_turn(kernel: &Kernel, uri: &ChannelUri) -> (ChannelId, String) {
    let mut top = uri.clone();
    for _ in 0..=kernel.limits().worker_depth_max {
        let parent = kernel.chat(&top).parent();
        // A worker that somebody talks to later works for nobody.
        let at_work = |parent: &ChannelUri| {
            let run = kernel.find_chat(parent).and_then(Chat::run);
            run.is_some_and(|run| run.call_of_worker(&top).is_some())
        };
        match parent.filter(at_work) {
            Some(parent) => top = parent,
            None => break,
        }
    }
    let turn_id = kernel.active_turn_id(&top).unwrap_or_default();
    (kernel.id_of(&top), turn_id)
}

/// The configuration values of a chat's session.
pub(crate) fn settings_of(kernel: &Kernel, chat: &ChannelUri) -> Object {
    let config = kernel.session_of(chat).state().config.as_ref();
    config.map(|config| config.values.clone()).unwrap_or_default()
}

/// A chat works in its own directories, which may be none (H-146); otherwise in those of its session.
pub(crate) fn directories_of(kernel: &Kernel, chat: &ChannelUri) -> Vec<String> {
    let own = kernel.chat(chat).state().working_directories.clone();
    let session = kernel.session_of(chat).state();
    own.or_else(|| session.working_directories.clone()).unwrap_or_default()
}
