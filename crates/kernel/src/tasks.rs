//! Background tasks: what the host does of its own accord in channels that may have to be loaded first.

use agent_api::Worker;
use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::host_command::{finish_branch, try_branch};
use crate::io::{ReadFailed, RunId, Timer};
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, NotLoaded};
use crate::queries::Waiter;
use crate::state::Step;
use crate::turn::end::end_without_agent;
use crate::{agents, changesets, chats, pending, sessions, terminal, worker, working_directories};

/// How long a task that failed to read waits before it is tried again.
const RETRY_MS: u64 = 10_000;

/// Goes on with a task as far as it goes.
pub(crate) fn run(step: &mut Step, task: BackgroundTask, answers: &HandlerAnswers) {
    let uri = task.channel().clone();
    let exists = match need_channel(step, &uri, answers) {
        Ok(exists) => Ok(exists),
        Err(NotLoaded::Failed(failed)) => Err(failed),
        Err(NotLoaded::Read(queries)) => {
            for query in queries {
                step.ask(query, Waiter::Task(Box::new(task.clone())));
            }
            return;
        }
    };
    match task {
        BackgroundTask::StartWorker { run, call, worker, .. } => {
            start_worker(step, &uri, run, call, *worker, exists)
        }
        BackgroundTask::Branch { from, turn_id, title, .. } => match exists {
            Ok(true) => try_branch(step, &from, title, &next_name(&uri)),
            Ok(false) => finish_branch(step, &from, &turn_id, Ok((uri, title))),
            Err(failed) => finish_branch(step, &from, &turn_id, Err(failed.to_string())),
        },
        BackgroundTask::RecordChanges(changed) if exists.is_ok() => {
            changesets::record_turn(step, *changed, exists == Ok(true));
        }
        task => run_in_channel(step, &uri, task, exists),
    }
}

/// A worker whose URI is free, taken, or unknown.
fn start_worker(
    step: &mut Step,
    uri: &ChannelUri,
    run: RunId,
    call: u64,
    worker: Worker,
    taken: Result<bool, ReadFailed>,
) {
    match taken {
        Ok(true) => worker::try_worker(step, run, call, worker, &next_name(uri)),
        Ok(false) => worker::create_worker(step, uri, run, call, worker),
        Err(failed) => worker::fail_start(step, run, call, &worker, &failed.to_string()),
    }
}

/// A task that wants its channel to be there.
fn run_in_channel(
    step: &mut Step,
    uri: &ChannelUri,
    task: BackgroundTask,
    exists: Result<bool, ReadFailed>,
) {
    match exists {
        // What cannot be written now is done when it can be.
        Ok(true) if step.unwritable().is_some() => step.recovery_mut().postpone(task),
        Ok(true) => {
            step.recovery_mut().note_done(task.clone());
            carry_out(step, uri, task);
        }
        // What is gone needs no care.
        Ok(false) => {
            step.recovery_mut().remove_interrupted(uri);
        }
        // What cannot be read now is tried again, like what cannot be written.
        Err(_) => {
            step.recovery_mut().remove_interrupted(uri);
            step.recovery_mut().postpone(task);
            let retry_ms = step.limits().journal_retry_ms.max(RETRY_MS);
            step.wake_in(Timer::Probe, retry_ms);
        }
    }
}

fn carry_out(step: &mut Step, uri: &ChannelUri, task: BackgroundTask) {
    match task {
        BackgroundTask::CloseInterruptedTurn(_) => close_interrupted_turn(step, uri),
        BackgroundTask::CloseInterruptedTerminal(_) => terminal::close_interrupted(step, uri),
        BackgroundTask::ApplyTerminal(_, changes) => terminal::apply_changes(step, uri, changes),
        BackgroundTask::ReviveSession(_) => sessions::revive(step, uri),
        BackgroundTask::FinishSessionStart(_, result) => sessions::finish_start(step, uri, result),
        BackgroundTask::ReplaceTitle(_, suggested) => {
            sessions::replace_title(step, uri, &suggested);
        }
        BackgroundTask::AnnounceAgents(_) => agents::announce_changed(step),
        BackgroundTask::ApplyNews(news) => sessions::apply_news(step, uri, news),
        BackgroundTask::EndGrace { client_id, .. } => sessions::end_grace(step, uri, &client_id),
        BackgroundTask::DisposeIfEmpty(_) => sessions::dispose_if_empty(step, uri),
        BackgroundTask::StartQueue(_) => pending::start_next(step, uri),
        BackgroundTask::RemoveActiveClient { client_id, .. } => {
            sessions::remove_active_client(step, uri, &client_id);
        }
        BackgroundTask::SetMovable(_) => chats::set_movable(step, uri),
        BackgroundTask::LoseDirectory { directory, replacement, .. } => {
            working_directories::lose(step, uri, &directory, replacement.as_deref())
        }
        BackgroundTask::StartWorker { .. }
        | BackgroundTask::Branch { .. }
        | BackgroundTask::RecordChanges(_) => {
            unreachable!("these want a URI that is free")
        }
    }
}

/// A turn without an agent ends in an error that can be resumed; one that waits for its session to be created does not.
fn close_interrupted_turn(step: &mut Step, uri: &ChannelUri) {
    let unrecorded = step.recovery_mut().remove_interrupted(uri);
    let without_agent = step.find_chat(uri).is_some_and(|chat| chat.run().is_none());
    if without_agent && !step.session_of(uri).is_creating() {
        let (error_type, message) = match &unrecorded {
            Some(why) => ("notRecorded", why.as_str()),
            None => ("interrupted", "the host was interrupted; resume the turn to go on"),
        };
        end_without_agent(step, uri, error_type, message);
    }
}

/// `worker-7`, `worker-7-1`, `worker-7-2`; branches likewise.
fn next_name(taken: &ChannelUri) -> String {
    let text = taken.as_str();
    let numbered = text.rsplit_once('-').and_then(|(base, number)| {
        (base.contains("worker-") || base.contains("branch-"))
            .then(|| number.parse::<u64>().ok())
            .flatten()
            .map(|number| format!("{base}-{}", number + 1))
    });
    numbered.unwrap_or_else(|| format!("{text}-1"))
}
