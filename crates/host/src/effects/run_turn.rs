//! One task per turn: the agent works in a task of its own, so that its death is an outcome and not ours.

use std::sync::Arc;

use agents::{
    Agent, AgentError, AgentEvent, AgentReply, EventSink, PastTurn, Replies, SessionFacts,
    TurnInput, UserMessage,
};
use bytes::Bytes;
use compositor::lower::{Capabilities, Target, text_of};
use kernel::{AgentFailure, ChannelId, Input, LoweredRecord, Record, RunId, TurnEvent, TurnRun};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wire::rpc;

use super::shelves::Shelves;
use super::{history, send, words};
use crate::arrival::Arrivals;
use crate::pace::{Pace, Patience};

/// Events of one agent that may wait for the kernel; the agent waits when it is full.
const AGENT_EVENTS_MAX: usize = 256;

/// Which turn it is, for what is kept beside it.
struct Scene {
    chat: ChannelId,
    turn_id: String,
}

/// Runs a turn to its end. Dropping this future (a cancel) drops the agent's work with it.
pub(super) async fn run(
    agent: Option<Arc<dyn Agent>>,
    turn: TurnRun,
    replies: Replies,
    arrivals: Arrivals,
    shelves: Shelves,
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
    let scene = Scene {
        chat: turn.history.chat,
        turn_id: turn.turn_id.clone(),
    };
    work.spawn(play(agent, turn, shelves.clone(), events));
    let mut batch = Vec::with_capacity(AGENT_EVENTS_MAX);
    let mut patience = Patience::default();
    while heard.recv_many(&mut batch, AGENT_EVENTS_MAX).await > 0 {
        pace.wait(run, &mut patience).await;
        for event in batch.drain(..) {
            let bytes = event.weight();
            tell(&arrivals, &shelves, &replies, (run, &scene), event).await;
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
    shelves: Shelves,
    events: EventSink,
) -> Result<(), AgentError> {
    let past = match agent.remembers() {
        true => history::read(&shelves.journal, &turn.history).await?,
        false => Vec::new(),
    };
    let messages = shelves.messages(turn.history.chat, &turn.working_directories);
    let ids = past.iter().map(|past| past.id.clone());
    let mut said = messages
        .of_turns(ids.chain([turn.turn_id.clone()]).collect())
        .await?;
    let text = turn.message["text"].as_str().unwrap_or("");
    let user = said.get(&turn.turn_id).and_then(|said| said.first());
    // A turn from before messages had rows meant what its text says.
    let user = user.map_or_else(|| Arc::new(UserMessage::text(text)), Arc::clone);
    let history = past.into_iter().map(|past| PastTurn {
        messages: said.remove(&past.id).unwrap_or_default(),
        turn: past.turn,
    });
    let history = history.collect();
    let outside = agents::Outside::shared(messages.outside);
    let target = Target::OpenaiChat;
    let capabilities = Capabilities::built_in(target);
    let lowered = outside.lower(Arc::clone(&user), target, capabilities).await;
    let text = text_of(&lowered); // G-06
    // What did not go as meant is there for whoever inspects the turn; an agent that sends it on tells the user.
    if !lowered.diagnostics.is_empty() {
        let event = AgentEvent::Lowered {
            target: target.name(),
            model: String::new(),
            blocks: lowered.blocks,
            diagnostics: lowered.diagnostics,
        };
        if events.send(event).await.is_err() {
            return Ok(());
        }
    }
    let facts = SessionFacts {
        conversation: turn.session.to_string(),
        working_directories: turn.working_directories,
    };
    let mut session = agent.open(facts).await?;
    let input = TurnInput {
        text,
        message: turn.message,
        user,
        reaches_model: turn.reaches_model,
        compact: turn.compact,
        outside,
        summary: turn
            .history
            .compacted
            .and_then(|compacted| compacted.summary),
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
    shelves: &Shelves,
    replies: &Replies,
    (run, scene): (RunId, &Scene),
    event: AgentEvent,
) {
    let bodies = &shelves.bodies;
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
        AgentEvent::Lowered {
            target,
            model,
            blocks,
            diagnostics,
        } => {
            let lowered = LoweredRecord {
                chat: scene.chat,
                turn_id: scene.turn_id.clone(),
                at: bodies.now(),
                target: target.to_owned(),
                model,
                blocks: Bytes::from(rpc::to_json(&blocks)),
                diagnostics: Bytes::from(rpc::to_json(&diagnostics)),
            };
            return shelves.keep_beside(Record::Lowered(lowered)).await;
        }
        AgentEvent::Content { body, content_type } => bodies.keep(body, content_type).await,
        event => bodies.keep_bodies_of(words::event(event)).await,
    };
    send(arrivals, Input::Agent { run, event }).await;
}
