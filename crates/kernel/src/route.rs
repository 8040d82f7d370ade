//! Where inputs and follow-ups go: to the handler that knows what they mean.

use crate::background_task::BackgroundTask;
use crate::follow_up::FollowUp;
use crate::frame::Frame;
use crate::io::{Effect, Input, Timer};
use crate::pause::{HandlerAnswers, WorkDone};
use crate::state::Step;
use crate::tool_call::client_tool::time_out_client_tool;
use crate::turn::agent::start_agent;
use crate::turn::end::{STOPPED, end_without_agent};
use crate::turn::size::bound_turn;
use crate::{
    agent_event, agents, clients, customization, inbox, loading, pending, render, reverse_request,
    sweep, tasks, worker,
};

/// One input.
pub(crate) fn input(step: &mut Step, input: Input) {
    match input {
        Input::Connected { peer } => step.peers_mut().connect(peer),
        Input::Received { peer, received } => inbox::receive(step, peer, received),
        Input::Malformed { peer, malformed } => {
            step.send(peer, Frame::error(&malformed.id, &malformed.error));
        }
        Input::Disconnected { peer } => clients::disconnect(step, peer),
        Input::Read { ticket, answer } => loading::finish_read(step, ticket, answer),
        Input::Completed { ticket, completed } => {
            inbox::finish_work(step, ticket, WorkDone::Completed(completed));
        }
        Input::ModelsChanged { ticket, changed } => {
            let answer = changed.map(|changed| agents::replace(step, *changed));
            inbox::finish_work(step, ticket, WorkDone::ModelsChanged(answer));
        }
        Input::Fetched { ticket, fetched } => {
            inbox::finish_work(step, ticket, WorkDone::Fetched(fetched));
        }
        Input::BodiesStored { ticket, stored } => {
            inbox::finish_work(step, ticket, WorkDone::BodiesStored(stored));
        }
        Input::Composed { ticket, composed } => {
            inbox::finish_work(step, ticket, WorkDone::Composed(composed));
        }
        Input::MessageChecked { ticket, checked } => {
            inbox::finish_work(step, ticket, WorkDone::MessageChecked(checked));
        }
        Input::SettingValues { ticket, values } => {
            inbox::finish_work(step, ticket, WorkDone::SettingValues(values));
        }
        Input::AgentChanged(changed) => agents::replace_one(step, *changed),
        Input::News(news) => step.start_task(BackgroundTask::ApplyNews(news)),
        Input::SessionStarted { session, result } => {
            step.start_task(BackgroundTask::FinishSessionStart(session, result));
        }
        Input::OpeningPrompt { session, sections } => {
            render::render_opening(step, &session, sections);
        }
        Input::Surveyed { session, found } => customization::publish(step, &session, found),
        Input::TitleSuggested { chat, suggested } => {
            step.start_task(BackgroundTask::ReplaceTitle(chat, suggested));
        }
        Input::Agent { run, event } => agent_event::handle(step, run, event),
        Input::Woke(timer) => wake(step, timer),
        Input::Probed { writable } => finish_probe(step, writable),
        Input::Stopping => {
            step.stop_runs();
            stop_newest_run(step);
        }
    }
}

/// What follows from what was done.
pub(crate) fn follow_up(step: &mut Step, follow_up: FollowUp) {
    match follow_up {
        FollowUp::StartAgent { chat, resume } => start_agent(step, &chat, resume),
        FollowUp::BoundTurn(chat) => bound_turn(step, &chat),
        FollowUp::StartQueue(chat) => pending::start_next(step, &chat),
        FollowUp::CancelWorkers(workers) => worker::cancel(step, workers),
        FollowUp::ReportWorker(chat) => worker::report(step, &chat),
        FollowUp::FailWorkerCall { chat, why } => worker::fail_call_of(step, &chat, why),
        FollowUp::Task { task, answer } => {
            let mut answers = HandlerAnswers::default();
            if let Some((query, answer)) = answer {
                answers.add_read(query, answer);
            }
            tasks::run(step, *task, &answers);
        }
        FollowUp::StopRuns => stop_newest_run(step),
        FollowUp::ResumePeer(peer) => inbox::resume(step, peer),
        FollowUp::NextMessage { peer, received } => inbox::begin(step, peer, *received),
    }
}

/// A timer is due.
fn wake(step: &mut Step, timer: Timer) {
    match timer {
        Timer::Idle => {
            step.unload_idle();
            let idle_ms = step.limits().channel_idle_ms;
            step.wake_in(Timer::Idle, idle_ms / 2);
        }
        Timer::Sweep => {
            sweep::sweep(step);
            // There may be more to trim than one step takes: come back soon.
            let sweep_ms = step.limits().sweep_ms;
            let ms = match sweep::is_log_long(step) {
                true => sweep_ms.min(1_000),
                false => sweep_ms,
            };
            step.wake_in(Timer::Sweep, ms);
        }
        Timer::Grace { session, client_id } => {
            step.start_task(BackgroundTask::EndGrace { session, client_id });
        }
        Timer::ClientTool { run, tool_call_id } => {
            // While nothing can be written no run works, so nobody waits for the tool.
            if step.unwritable().is_none() {
                time_out_client_tool(step, run, &tool_call_id);
            }
        }
        Timer::Request { request } => reverse_request::time_out(step, request),
        Timer::Probe => step.effect(Effect::Probe),
        Timer::Postponed => start_postponed(step),
    }
}

/// Whether the journal can be written again.
fn finish_probe(step: &mut Step, writable: bool) {
    if !writable {
        let retry_ms = step.limits().journal_retry_ms;
        return step.wake_in(Timer::Probe, retry_ms);
    }
    let tasks = step.recovery_mut().recover();
    agents::announce(step);
    clients::rewrite_volatile(step);
    for task in tasks {
        step.start_task(task);
    }
}

/// One at a time: if its step cannot be written, it alone is to blame. While nothing can be written all wait for the probe.
fn start_postponed(step: &mut Step) {
    if let Some((task, more)) = step.recovery_mut().take_postponed() {
        if more {
            step.wake_in(Timer::Postponed, 0);
        }
        step.start_task(task);
    }
}

/// The host is going down: running turns end as resumable errors, so that nobody watches a spinner meanwhile. One ends at a
/// time, the newest first: workers were started after the turns they work for, and those hear of their end.
fn stop_newest_run(step: &mut Step) {
    let newest = step.runs().chats().next_back().cloned();
    if let Some(chat) = newest {
        end_without_agent(step, &chat, "hostStopped", STOPPED);
        step.follow_up(FollowUp::StopRuns);
    }
}
