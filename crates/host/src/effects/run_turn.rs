//! One task per turn: the agent works in a task of its own, so that its death is an outcome and not ours.

use std::sync::Arc;

use agents::{
    Agent, AgentError, AgentEvent, AgentReply, EventSink, Replies, SessionFacts, TurnInput,
};
use kernel::{AgentFailure, Input, RunId, TurnEvent, TurnRun};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Bodies, history, send, words};
use crate::arrival::Arrivals;
use crate::journal::JournalThread;
use crate::pace::{Pace, Patience};

/// Events of one agent that may wait for the kernel; the agent waits when it is full.
const AGENT_EVENTS_MAX: usize = 256;

/// Runs a turn to its end. Dropping this future (a cancel) drops the agent's work with it.
pub(super) async fn run(
    agent: Option<Arc<dyn Agent>>,
    turn: TurnRun,
    replies: Replies,
    arrivals: Arrivals,
    (journal, bodies): (JournalThread, Bodies),
    pace: Arc<Pace>,
) {
    let run = turn.run;
    let Some(agent) = agent else {
        let message = format!("this host has no agent `{}` any more", turn.provider);
        let failure = AgentFailure {
            error_type: "agentMissing".to_owned(),
            message,
            resumable: true,
        };
        return send(
            &arrivals,
            Input::Agent {
                run,
                event: TurnEvent::Failed(failure),
            },
        )
        .await;
    };
    let (events, mut heard) = mpsc::channel(AGENT_EVENTS_MAX);
    // The set aborts its task when it is dropped: a cancelled turn leaves nobody working.
    let mut work = JoinSet::new();
    let events = EventSink::new(events, replies.clone());
    let room = events.room();
    work.spawn(play(agent, turn, journal, events));
    let mut batch = Vec::with_capacity(AGENT_EVENTS_MAX);
    let mut patience = Patience::default();
    while heard.recv_many(&mut batch, AGENT_EVENTS_MAX).await > 0 {
        pace.wait(run, &mut patience).await;
        for event in batch.drain(..) {
            let bytes = event.weight();
            tell(&arrivals, &bodies, &replies, run, event).await;
            room.leave(bytes);
        }
    }
    let end = match work.join_next().await {
        Some(Ok(Ok(()))) => TurnEvent::Completed,
        Some(Ok(Err(error))) => TurnEvent::Failed(AgentFailure {
            error_type: error.error_type,
            message: error.message,
            resumable: error.resumable,
        }),
        Some(Err(_)) | None => TurnEvent::Failed(AgentFailure {
            error_type: "agentCrashed".to_owned(),
            message: "the agent died; resume the turn to go on".to_owned(),
            resumable: true,
        }),
    };
    send(&arrivals, Input::Agent { run, event: end }).await;
    pace.ended(run);
}

async fn play(
    agent: Arc<dyn Agent>,
    turn: TurnRun,
    journal: JournalThread,
    events: EventSink,
) -> Result<(), AgentError> {
    let history = match agent.remembers() {
        true => history::read(&journal, &turn.history).await?,
        false => Vec::new(),
    };
    let facts = SessionFacts {
        conversation: turn.session.to_string(),
        working_directories: turn.working_directories,
    };
    let mut session = agent.open(facts).await?;
    let input = TurnInput {
        text: turn.message["text"].as_str().unwrap_or("").to_owned(), // G-06
        message: turn.message,
        config: turn.config,
        resume: turn
            .resume
            .map(|checkpoint| checkpoint.map(|data| data.to_vec())),
        brief: turn.brief.map(|brief| brief.to_vec()),
        history,
        said: turn.said,
        untitled: turn.untitled,
        notes: turn.notes.map(|notes| notes.to_vec()),
    };
    session.turn(input, &events).await
}

/// Hands what the agent said to the kernel. What must be kept before it can be recorded is kept first (G-32).
async fn tell(
    arrivals: &Arrivals,
    bodies: &Bodies,
    replies: &Replies,
    run: RunId,
    event: AgentEvent,
) {
    let event = match event {
        AgentEvent::Keep {
            keep,
            body,
            content_type,
        } => {
            let kept = bodies.keep_body(body, &content_type).await;
            let reference = kept.map(Value::Object).map_err(|failed| failed.to_string());
            if replies
                .deliver(AgentReply::Kept { keep, reference })
                .is_err()
            {
                tracing::debug!(?run, "a body was kept that nobody waits for any more");
            }
            return;
        }
        AgentEvent::Content { body, content_type } => bodies.keep(body, content_type).await,
        event => bodies.keep_bodies_of(words::event(event)).await,
    };
    send(arrivals, Input::Agent { run, event }).await;
}
