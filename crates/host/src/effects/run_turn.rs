//! One task per turn: the agent works in a task of its own, so that its death is an outcome and not ours. What it says
//! goes to the kernel from there: no word waits for another task to be woken.

use std::sync::Arc;

use agents::{
    Agent, AgentError, AgentEvent, AgentReply, Ear, EventSink, PastTurn, Replies, SessionFacts,
    TurnInput, TurnOver, UserMessage, without_bodies,
};
use async_trait::async_trait;
use bytes::Bytes;
use compositor::lower::{Capabilities, Target, text_of};
use kernel::{AgentFailure, ChannelId, Input, LoweredRecord, Record, RunId, TurnEvent, TurnRun};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use wire::rpc;

use super::shelves::Shelves;
use super::{history, send, words};
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::pacer::{Pacer, SlowReaders};

/// Events of one agent after which it is looked whether its hearers can follow.
const LOOK_EVENTS: u32 = 64;

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
    arrivals: KernelQueue,
    shelves: Shelves,
    pace: Arc<Pacer>,
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
    let ear = KernelEar {
        arrivals: arrivals.clone(),
        shelves: shelves.clone(),
        replies: replies.clone(),
        run,
        scene: Scene {
            chat: turn.history.chat,
            turn_id: turn.turn_id.clone(),
        },
        pace: Arc::clone(&pace),
        hearing: Mutex::default(),
    };
    // The set aborts its task when it is dropped: a cancelled turn leaves nobody working.
    let mut work = JoinSet::new();
    work.spawn(play(agent, turn, shelves, EventSink::new(ear, replies)));
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
    pace.end_run(run);
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
    // Copies are made for tools: an agent that asks no model has none (C-032).
    let staging = shelves.staging.filter(|_| agent.remembers());
    let shelves = Shelves { staging, ..shelves };
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
    let text = match agent.remembers() {
        // It lowers what it sends itself, for the model it asks.
        true => text.to_owned(),
        false => match lowered_text(&outside, &user, &events).await {
            Ok(text) => text,
            Err(TurnOver) => return Ok(()),
        },
    };
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

/// The kernel's end of what an agent says.
struct KernelEar {
    arrivals: KernelQueue,
    shelves: Shelves,
    replies: Replies,
    run: RunId,
    scene: Scene,
    pace: Arc<Pacer>,
    /// Held while an event is handed over: they come one after the other, in the order they were said.
    hearing: Mutex<Hearing>,
}

#[derive(Default)]
struct Hearing {
    patience: SlowReaders,
    events: u32,
}

#[async_trait]
impl Ear for KernelEar {
    async fn hear(&self, event: AgentEvent) -> Result<(), TurnOver> {
        let mut hearing = self.hearing.lock().await;
        if hearing.events.is_multiple_of(LOOK_EVENTS) {
            self.pace
                .wait_for_readers(self.run, &mut hearing.patience)
                .await;
        }
        hearing.events = hearing.events.wrapping_add(1);
        let Some(event) = self.kept(event).await else {
            return Ok(());
        };
        let run = self.run;
        let told = QueuedInput::Input(Input::Agent { run, event });
        self.arrivals.send(told).await.map_err(|_| TurnOver)
    }

    async fn deaf(&self) {
        self.arrivals.closed().await;
    }
}

impl KernelEar {
    /// What the kernel is told of an event, if anything. What must be kept before it can be recorded is kept first
    /// (G-32).
    async fn kept(&self, event: AgentEvent) -> Option<TurnEvent> {
        let bodies = &self.shelves.bodies;
        Some(match event {
            AgentEvent::Keep {
                keep,
                body,
                content_type,
            } => {
                let kept = bodies.keep_body(body, &content_type).await;
                let reference = kept.map(Value::Object).map_err(|failed| failed.to_string());
                let kept = AgentReply::Kept { keep, reference };
                if self.replies.deliver(kept).is_err() {
                    tracing::debug!(run = ?self.run, "a body was kept that nobody waits for any more");
                }
                return None;
            }
            AgentEvent::Lowered {
                target,
                model,
                blocks,
                diagnostics,
            } => {
                let lowered = LoweredRecord {
                    chat: self.scene.chat,
                    turn_id: self.scene.turn_id.clone(),
                    at: bodies.now(),
                    target: target.to_owned(),
                    model,
                    blocks: Bytes::from(rpc::to_json(&without_bodies(Value::Array(blocks)))),
                    diagnostics: Bytes::from(rpc::to_json(&diagnostics)),
                };
                self.shelves.keep_beside(Record::Lowered(lowered)).await;
                return None;
            }
            AgentEvent::Content { body, content_type } => bodies.keep(body, content_type).await,
            event => bodies.keep_bodies_of(words::event(event)).await,
        })
    }
}

/// The text of a message as scripts see it (G-06). What did not go as meant is there for whoever inspects the turn.
async fn lowered_text(
    outside: &agents::Outside,
    user: &Arc<UserMessage>,
    events: &EventSink,
) -> Result<String, TurnOver> {
    let target = Target::OpenaiChat;
    let capabilities = Capabilities::built_in(target);
    let lowered = outside.lower(Arc::clone(user), target, capabilities).await;
    let text = text_of(&lowered);
    if !lowered.diagnostics.is_empty() {
        let event = AgentEvent::Lowered {
            target: target.name(),
            model: String::new(),
            blocks: lowered.blocks,
            diagnostics: lowered.diagnostics,
        };
        events.send(event).await?;
    }
    Ok(text)
}
