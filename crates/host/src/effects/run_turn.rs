//! One task per turn: the agent works in a task of its own, so that its death is an outcome and not ours.
//!
//! Promises: every turn that is started ends with `Completed` or `Failed`, unless it is cancelled.
//! Must not know: what events mean.

use std::sync::Arc;

use agent_api::{
    Agent, AgentError, AgentEvent, COMMAND_PREFIX, EventSink, HostServices, Lowering, ModelOutput,
    SessionFacts, SharedSources, TurnInput, UserMessage,
};
use agents::lower::lower_message;
use agents::sink::{PendingReplies, TurnSink};
use agents::user_command;
use compositor::lower::{Capabilities, Target, text_of};
use futures_util::FutureExt;
use kernel::{ComposedMessage, Input, RunId, TurnRun};
use tokio::task::JoinSet;
use tracing::Instrument;
use workspace::Workspace;

use super::kernel_sink::{EventFlow, KernelSink};
use super::messages::TurnMessages;
use super::resources::ResourceReader;
use super::services::TurnServices;
use super::turn_log::TurnLog;
use super::{history, past_turns, restore, send};
use crate::accounts::BoundedSlot;
use crate::changes::{ChangesGuard, TurnChanges};
use crate::kernel_queue::KernelQueue;
use crate::task;

/// Runs a turn to its end. Dropping this future (a cancel) drops the agent's work with it.
pub(super) async fn run(
    agent: Option<Arc<dyn Agent>>,
    mut turn: TurnRun,
    replies: PendingReplies,
    arrivals: KernelQueue,
    mut services: TurnServices,
    flow: EventFlow,
) {
    let run = turn.run;
    // Dropped with this future by a cancel.
    let mut log = TurnLog::begin(&turn, services.telemetry.clone());
    if let Some(task) = turn.restore.clone() {
        let changes = watch_files(&turn, &mut services, false);
        let finish = ChangesGuard::new(changes, arrivals.clone());
        let sink = KernelSink::new(&turn, arrivals.clone(), services.clone(), flow.clone(), false);
        let sink = TurnSink::new(sink, replies);
        let work = restore::run(task, turn, services, sink).instrument(log.span());
        let event = outcome_of(work).await;
        tell_unseen(&arrivals, run, finish.finish().await).await;
        log.record_end(&event);
        send(&arrivals, Input::Agent { run, event }).await;
        return flow.pace.end_run(run);
    }
    let Some(agent) = agent else {
        let event = AgentEvent::Failed(AgentError {
            error_type: "agentMissing".to_owned(),
            message: format!("this host has no agent `{}` any more", turn.provider),
            resumable: true,
        });
        log.record_end(&event);
        return send(&arrivals, Input::Agent { run, event }).await;
    };
    let place = match prepare(&*agent, &turn, &mut services).await {
        Ok(place) => place,
        Err(error) => {
            let event = AgentEvent::Failed(error);
            log.record_end(&event);
            return send(&arrivals, Input::Agent { run, event }).await;
        }
    };
    services.resources = Some(Arc::new(resource_reader(&agent, &turn, &services)));
    let changes = watch_files(&turn, &mut services, agent.changes_files_unannounced());
    let finish = ChangesGuard::new(Arc::clone(&changes), arrivals.clone());
    changes.begin();
    let sink = KernelSink::new(
        &turn,
        arrivals.clone(),
        services.clone(),
        flow.clone(),
        agent.joins_text(),
    );
    let sink = TurnSink::new(sink, replies);
    let command = command_of(&turn);
    let composed = turn.composed.take();
    let is_unnamed = turn.untitled && turn.reaches_model && command.is_none();
    let unnamed = is_unnamed.then(|| (turn.clone(), services.clone()));
    let event = match command {
        Some(command) => {
            let work = run_command(command, turn, services, sink);
            outcome_of(work.instrument(log.span())).await
        }
        None => {
            let work = play(Arc::clone(&agent), turn, composed, services, sink);
            outcome_of(work.instrument(log.span())).await
        }
    };
    tell_unseen(&arrivals, run, finish.finish().await).await;
    drop(place);
    log.record_end(&event);
    let is_complete = event == AgentEvent::Completed;
    send(&arrivals, Input::Agent { run, event }).await;
    flow.pace.end_run(run);
    if let Some((turn, services)) = unnamed.filter(|_| is_complete) {
        let sink = KernelSink::new(&turn, arrivals.clone(), services, flow, false);
        // Nobody waits for it, and it outlives the turn.
        task::spawn(suggest_title(agent, turn, sink, arrivals));
    }
}

/// The place that a turn has until it ends; its directories are there then.
async fn prepare(
    agent: &dyn Agent,
    turn: &TurnRun,
    services: &mut TurnServices,
) -> Result<Option<BoundedSlot>, AgentError> {
    let place = take_place(turn, services).await?;
    prepare_directories(agent, turn, services).await?;
    Ok(place)
}

/// A place among the turns of the space, where it may run so many. Workers run in the place of the turn that started them.
async fn take_place(
    turn: &TurnRun,
    services: &TurnServices,
) -> Result<Option<BoundedSlot>, AgentError> {
    let Some(bounds) = services.bounds.as_ref().filter(|_| turn.brief.is_none()) else {
        return Ok(None);
    };
    let place = bounds.begin_turn().await.map_err(|refusal| AgentError {
        error_type: refusal.error_type.to_owned(),
        message: refusal.message,
        resumable: true,
    });
    place.map(Some)
}

fn resource_reader(
    agent: &Arc<dyn Agent>,
    turn: &TurnRun,
    services: &TurnServices,
) -> ResourceReader {
    ResourceReader {
        agent: Arc::clone(agent),
        facts: SessionFacts {
            conversation: turn.session.to_string(),
            chat: turn.chat.to_string(),
            principal: turn.principal.clone(),
            working_directories: turn.working_directories.clone(),
            attachments: services.staging.clone(),
            plugins: services.bodies.plugins().of(&turn.session),
        },
        switched_off: turn.switched_off.clone(),
    }
}

/// The command that the user gave instead of a message for the agent. What a model or an agent says is never one: the task of a
/// worker is a message, too.
fn command_of(turn: &TurnRun) -> Option<String> {
    if turn.brief.is_some() || turn.message["origin"]["kind"] != "user" {
        return None;
    }
    let text = turn.message["text"].as_str()?;
    let command = text.strip_prefix(COMMAND_PREFIX)?;
    // Who writes with `!` alone, or begins with `!=`, has something to say.
    let is_command = !command.trim().is_empty() && !command.starts_with(['=', '!', '[']);
    is_command.then(|| command.to_owned())
}

/// Runs a command of the user in a terminal.
async fn run_command(
    command: String,
    turn: TurnRun,
    services: TurnServices,
    events: TurnSink<KernelSink>,
) -> Result<(), AgentError> {
    if turn.resume.is_some() {
        return Err(AgentError {
            error_type: "interrupted".to_owned(),
            message: "the command was interrupted; send it again to run it again".to_owned(),
            resumable: false,
        });
    }
    let confinement = services.bodies.confinement().clone();
    let directories = turn.working_directories;
    let opening = task::spawn_blocking(move || {
        Workspace::open(&directories, &confinement).map_err(|error| AgentError {
            error_type: "workspace".to_owned(),
            message: error.to_string(),
            resumable: true,
        })
    });
    let workspace = match opening.await {
        Ok(workspace) => workspace?,
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    };
    let secrets = services.terminals.secret_variables();
    user_command::run(&command, &workspace, &secrets, &events).await
}

/// Says in the turn that git failed, so that what commands changed is not known. What follows from the size of a directory is not said
/// in every turn: its changeset says it.
async fn tell_unseen(arrivals: &KernelQueue, run: RunId, failures: Vec<String>) {
    if failures.is_empty() {
        return; // all of it was seen
    }
    let text = format!(
        "What commands changed in this turn is not known and cannot be taken back: {}.",
        failures.join("; ")
    );
    let event = AgentEvent::Notice { text };
    send(arrivals, Input::Agent { run, event }).await;
}

/// Makes the recorder of a turn's changes to files, for the sink that gets its calls.
fn watch_files(turn: &TurnRun, services: &mut TurnServices, is_unseen: bool) -> Arc<TurnChanges> {
    let changes = Arc::new(TurnChanges::new(
        turn,
        services.bodies.clone(),
        services.journal.clone(),
        Arc::clone(&services.session_changes),
        services.looks.clone(),
        is_unseen,
    ));
    services.changes = Some(Arc::clone(&changes));
    changes
}

/// Asks an agent for a better title of a session whose first turn is over. What that takes counts to the turn.
async fn suggest_title(
    agent: Arc<dyn Agent>,
    turn: TurnRun,
    sink: KernelSink,
    arrivals: KernelQueue,
) {
    let text = turn.message["text"].as_str().unwrap_or("").to_owned();
    if let Some(suggested) = agent.suggest_title(text, &sink).await {
        let chat = turn.chat;
        send(&arrivals, Input::TitleSuggested { chat, suggested }).await;
    }
}

/// Does the work on a turn, in a task of its own; how it ended.
async fn outcome_of(
    work: impl Future<Output = Result<(), AgentError>> + Send + 'static,
) -> AgentEvent {
    // The set aborts its task when it is dropped: a cancelled turn leaves nobody working.
    let mut tasks = JoinSet::new();
    tasks.spawn(work.boxed());
    match tasks.join_next().await {
        Some(Ok(Ok(()))) => AgentEvent::Completed,
        Some(Ok(Err(error))) => AgentEvent::Failed(error),
        Some(Err(_)) | None => AgentEvent::Failed(AgentError {
            error_type: "agentCrashed".to_owned(),
            message: "the agent crashed; resume the turn to continue".to_owned(),
            resumable: true,
        }),
    }
}

/// Checks that the session may work in its directories, by what they are now (G-23), and makes room for copies of its
/// attachments if the agent's tools open them.
async fn prepare_directories(
    agent: &dyn Agent,
    turn: &TurnRun,
    services: &mut TurnServices,
) -> Result<(), AgentError> {
    let staging = services.staging.take().filter(|_| agent.needs_attachment_files());
    let own = staging.map(|staging| staging.join(turn.session_id.0.to_string()));
    services.staging = own.clone();
    let confinement = services.bodies.confinement().clone();
    let directories = turn.working_directories.clone();
    let work = task::spawn_blocking(move || {
        confinement.check(&directories).map_err(|error| AgentError {
            error_type: "workingDirectoryNotAllowed".to_owned(),
            message: error.to_string(),
            resumable: false,
        })?;
        let made = own.map_or(Ok(()), std::fs::create_dir_all);
        made.map_err(|error| AgentError {
            error_type: "workspace".to_owned(),
            message: format!("no directory for copies of attachments can be made: {error}"),
            resumable: true,
        })
    });
    match work.await {
        Ok(prepared) => prepared,
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    }
}

async fn play(
    agent: Arc<dyn Agent>,
    turn: TurnRun,
    composed: Option<Arc<ComposedMessage>>,
    services: TurnServices,
    events: TurnSink<KernelSink>,
) -> Result<(), AgentError> {
    let messages = services.messages(turn.history.chat, &turn.working_directories);
    let (history, outputs) = if agent.needs_history() {
        (
            past_turns::read(&services.journal, &messages, &turn.history).await?,
            read_own_outputs(&services, &turn).await?,
        )
    } else {
        (Vec::new(), Vec::new())
    };
    let user = match composed {
        // Whoever else has it is about to let go of it.
        Some(composed) => messages.use_composed(Arc::unwrap_or_clone(composed)).await?,
        None => read_own_message(&messages, &turn).await?,
    };
    let sources = SharedSources::shared(messages.sources);
    let text = if agent.lowers_messages() {
        turn.message["text"].as_str().unwrap_or("").to_owned()
    } else {
        lower_text(&sources, &user, &events).await
    };
    let facts = SessionFacts {
        plugins: services.bodies.plugins().of(&turn.session),
        conversation: turn.session.to_string(),
        chat: turn.chat.to_string(),
        principal: turn.principal,
        working_directories: turn.working_directories,
        attachments: services.staging,
    };
    let mut session = agent.open(facts).await?;
    let compacted = turn.history.compacted;
    let input = TurnInput {
        switched_off: turn.switched_off,
        turn_id: turn.turn_id,
        last_turn_id: turn.last_turn_id,
        text,
        message: turn.message,
        custom_agent: turn.custom_agent,
        user,
        reaches_model: turn.reaches_model,
        compact: turn.compact,
        sources,
        summarised_rounds: compacted.as_ref().map_or(0, |compacted| compacted.rounds),
        summary: compacted.and_then(|compacted| compacted.summary),
        config: turn.config,
        resume: turn.resume,
        brief: turn.brief,
        history,
        response_parts: turn.said,
        usage: turn.usage,
        untitled: turn.untitled,
        chat_notes: turn.chat_notes,
        refusals: turn.refusals,
        outputs,
    };
    session.turn(input, &events as &dyn EventSink).await
}

/// What was recorded of the model's answers in a turn that is resumed.
async fn read_own_outputs(
    services: &TurnServices,
    turn: &TurnRun,
) -> Result<Vec<ModelOutput>, AgentError> {
    let ids = vec![turn.turn_id.clone()];
    let mut outputs = history::read_outputs(&services.journal, turn.history.chat, ids).await?;
    Ok(outputs.remove(&turn.turn_id).unwrap_or_default())
}

/// The message of this turn, from its rows: it was resumed, waited in the queue, or began before the host was started.
async fn read_own_message(
    messages: &TurnMessages,
    turn: &TurnRun,
) -> Result<Arc<UserMessage>, AgentError> {
    let by_turn = messages.read_turns(vec![turn.turn_id.clone()]).await?;
    let own = by_turn.get(&turn.turn_id);
    // A turn from before messages had rows means what its text says.
    let text = turn.message["text"].as_str().unwrap_or("");
    let own = own.and_then(|messages| messages.first());
    Ok(own.map_or_else(|| Arc::new(UserMessage::text(text)), Arc::clone))
}

/// The text of a message as scripts see it (G-06). What did not go as meant is there for whoever inspects the turn.
async fn lower_text(
    sources: &SharedSources,
    user: &Arc<UserMessage>,
    host: &dyn HostServices,
) -> String {
    let target = Target::OpenaiChat;
    let capabilities = Capabilities::built_in(target);
    let lowered = lower_message(sources, Arc::clone(user), target, capabilities).await;
    let text = text_of(&lowered);
    if !lowered.diagnostics.is_empty() {
        let lowering = Lowering {
            target: target.name(),
            model: String::new(),
            blocks: lowered.blocks,
            diagnostics: lowered.diagnostics,
        };
        host.record_lowering(lowering).await;
    }
    text
}
