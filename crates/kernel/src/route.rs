//! Where inputs and follow-ups go: to the handler that knows what they mean.

use crate::background_task::BackgroundTask;
use crate::follow_up::FollowUp;
use crate::frame::Frame;
use crate::inbox::finish_work;
use crate::io::{Effect, Input, Timer};
use crate::pause::{HandlerAnswers, HostWorkResult};
use crate::state::Step;
use crate::tool_call::client_tool::time_out_client_tool;
use crate::turn::agent::start_agent;
use crate::turn::end::{STOPPED, end_without_agent};
use crate::turn::size::bound_turn;
use crate::{
    agent_event, agents, ask_client, changesets, clients, customization, inbox, loading, pending,
    render, resource_watch, reverse_request, sweep, tasks, telemetry, terminal, worker,
};

/// One input.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn input(step: &mut Step, input: Input) {
    match input {
        Input::Connected { peer, role } => step.peers_mut().connect(peer, role),
        Input::Identified { peer, holder } => step.peers_mut().identify(peer, holder),
        Input::Received { peer, received } => inbox::receive(step, peer, received),
        Input::Telemetry(batch) => telemetry::send(step, &batch),
        Input::Malformed { peer, malformed } => {
            step.send(peer, Frame::error(&malformed.id, &malformed.error));
        }
        Input::Disconnected { peer } => clients::disconnect(step, peer),
        Input::Read { ticket, answer } => loading::finish_read(step, ticket, answer),
        Input::Completed { ticket, completed } => {
            finish_work(step, ticket, HostWorkResult::Completed(completed));
        }
        Input::ModelsChanged { ticket, changed } => {
            let answer = changed.map(|changed| agents::replace(step, *changed));
            finish_work(step, ticket, HostWorkResult::ModelsChanged(answer));
        }
        Input::Fetched { ticket, fetched } => {
            finish_work(step, ticket, HostWorkResult::Fetched(fetched));
        }
        Input::BodiesStored { ticket, stored } => {
            finish_work(step, ticket, HostWorkResult::BodiesStored(stored));
        }
        Input::Composed { ticket, composed } => {
            finish_work(step, ticket, HostWorkResult::Composed(composed));
        }
        Input::MessageChecked { ticket, checked } => {
            finish_work(step, ticket, HostWorkResult::MessageChecked(checked));
        }
        Input::SettingValues { ticket, values } => {
            finish_work(step, ticket, HostWorkResult::SettingValues(values));
        }
        Input::FilesUsed { ticket, used } => {
            finish_work(step, ticket, HostWorkResult::FilesUsed(used));
        }
        Input::WatchBegun { ticket, begun } => {
            finish_work(step, ticket, HostWorkResult::WatchBegun(begun));
        }
        Input::WorktreeChecked { ticket, kept_because } => {
            finish_work(step, ticket, HostWorkResult::WorktreeChecked(kept_because));
        }
        Input::ResourcesChanged { watch, seen } => resource_watch::report(step, &watch, seen),
        Input::AgentChanged(changed) => agents::replace_one(step, *changed),
        Input::TokenEnded { provider, principal, resource } => {
            agents::announce_token_end(step, &provider, principal.as_deref(), &resource)
        }
        Input::PrincipalRevoked { principal } => agents::forget_tokens(step, principal),
        Input::News(news) => step.start_task(BackgroundTask::ApplyNews(news)),
        Input::SessionStarted { session, result } => {
            step.start_task(BackgroundTask::FinishSessionStart(session, result));
        }
        Input::OpeningPrompt { session, sections } => {
            render::render_opening(step, &session, sections);
        }
        Input::Surveyed { session, found } => customization::publish(step, &session, found),
        Input::PluginsRead { session } => customization::survey_plugins(step, &session, None),
        Input::AskClient { ask, client_id, question } => {
            ask_client::ask_for_host(step, ask, &client_id, question)
        }
        Input::Changes(changes) => changesets::take(step, changes),
        Input::ChangesetOperated { ticket, outcome } => {
            finish_work(step, ticket, HostWorkResult::Operated(outcome));
        }
        Input::TitleSuggested { chat, suggested } => {
            step.start_task(BackgroundTask::ReplaceTitle(chat, suggested));
        }
        Input::Agent { run, event } => agent_event::handle(step, run, event),
        Input::Terminal { terminal, changes } => terminal::change(step, &terminal, changes),
        Input::TerminalShown { run, facts } => terminal::show(step, run, facts),
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
            step.upkeep_mut().disarm_idle();
            step.unload_idle();
        }
        Timer::Sweep => {
            // When it is due again is known at the end of each step.
            sweep::sweep(step);
        }
        Timer::Grace { session, client_id } => {
            step.start_task(BackgroundTask::EndGrace { session, client_id });
        }
        Timer::TerminalGrace { terminal, client_id } => {
            terminal::end_grace(step, &terminal, &client_id)
        }
        Timer::ClientTool { run, tool_call_id } => {
            // While nothing can be written no run works, so nobody waits for the tool.
            if step.unwritable().is_none() {
                time_out_client_tool(step, run, &tool_call_id);
            }
        }
        Timer::UnusedWatch { watch } => resource_watch::end_if_unused(step, &watch),
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
        let is_left = step.runs().chats().any(|other| *other == chat);
        assert!(!is_left, "a run that was stopped is not stopped again");
        step.follow_up(FollowUp::StopRuns);
    }
}
