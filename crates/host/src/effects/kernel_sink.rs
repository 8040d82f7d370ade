//! The host's end of what an agent sends: events go on to the kernel, the rest is done here.
//!
//! Promises: events reach the kernel in the order they were sent; a body is stored before an event refers to it (G-32).
//! An agent is slowed down while most of its watchers cannot follow. Nothing is accepted, and no call begun, for a space that
//! this node has lost; while the node may not speak, whoever asks waits.
//! Must not know: what events mean.

use std::sync::Arc;

use agent_api::{
    AgentEvent, CallEnd, CallEstimate, CallId, CallKind, CallPermit, CallUsage, ClientFileCall,
    ClientFileFailure, ClientFileReply, HostServices, Lowering, ModelCall, ModelOutput, PastTurn,
    StoreError, TerminalOffer, TurnOver, UserMessage,
};
use agents::sink::EventReceiver;
use async_trait::async_trait;
use bytes::Bytes;
use kernel::{
    Batch, ChannelId, HistoryAt, LoweredRecord, ModelOutputRecord, Record, RunId, Seq, TurnRun,
    WorkFailed,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;
use wire::published::state::ContentRef;
use wire::{NamedBody, rpc};

use super::services::TurnServices;
use super::{past_turns, turn_client};
use crate::budget::TurnBudget;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::pacer::{Pacer, SlowReaders};
use crate::sent_request::{CallIdentity, end_record};
use crate::stream_batcher::StreamBatcher;

/// Events of one agent between two checks whether its watchers can follow.
const EVENTS_PER_CHECK: u32 = 64;

/// Longest string of a block that is recorded as it is; of a longer one size and digest are.
const RECORDED_STRING_BYTES_MAX: usize = 64 * 1_024;

/// Flow of a turn's events to the kernel: as fast as its readers follow, and in batches.
#[derive(Clone)]
pub(super) struct EventFlow {
    pub(super) pace: Arc<Pacer>,
    pub(super) streams: Arc<StreamBatcher>,
}

/// Takes the events of one turn.
pub(super) struct KernelSink {
    arrivals: KernelQueue,
    services: TurnServices,
    run: RunId,
    turn: TurnRef,
    flow: EventFlow,
    /// Whether texts that go together may become one.
    may_join: bool,
    /// What the turn may spend, if that is limited.
    budget: Option<TurnBudget>,
    /// Held while an event is handed over: that keeps them in order.
    throttle: Mutex<Throttle>,
}

/// Which turn it is, for what is recorded about it.
struct TurnRef {
    chat: ChannelId,
    /// The client that began it.
    author: Option<String>,
    history: HistoryAt,
    turn_id: String,
    working_directories: Vec<String>,
}

#[derive(Default)]
struct Throttle {
    patience: SlowReaders,
    events: u32,
}

impl KernelSink {
    fn not_stored(&self, failed: &WorkFailed) -> StoreError {
        tracing::error!(run = ?self.run, error = %failed, "a body of an agent is not stored");
        StoreError(failed.to_string())
    }

    pub(super) fn new(
        turn: &TurnRun,
        arrivals: KernelQueue,
        services: TurnServices,
        flow: EventFlow,
        may_join: bool,
    ) -> Self {
        let budget = services.budget.as_ref();
        Self {
            budget: budget.map(|budget| TurnBudget::new(budget, turn)),
            arrivals,
            services,
            run: turn.run,
            turn: TurnRef {
                chat: turn.history.chat,
                author: turn.author.clone(),
                history: turn.history.clone(),
                turn_id: turn.turn_id.clone(),
                working_directories: turn.working_directories.clone(),
            },
            flow,
            may_join,
            throttle: Mutex::default(),
        }
    }
}

#[async_trait]
impl EventReceiver for KernelSink {
    async fn accept(&self, event: AgentEvent) -> Result<(), TurnOver> {
        let mut throttle = self.throttle.lock().await;
        if throttle.events.is_multiple_of(EVENTS_PER_CHECK) {
            self.flow.pace.wait_for_readers(self.run, &mut throttle.patience).await;
        }
        throttle.events = throttle.events.wrapping_add(1);
        if !self.services.may_act().await {
            return Err(TurnOver); // the node that has the space now shows it as interrupted
        }
        if let (AgentEvent::Usage(usage), Some(budget)) = (&event, &self.budget)
            && let Err(error) = budget.record_usage(usage).await
        {
            // What was set aside stays spent, and the next call is not begun if that cannot be written either.
            tracing::warn!(run = ?self.run, %error, "what a call used is not counted to the budget");
        }
        let event = self.services.bodies.detach_bodies(event).await;
        if let Some(changes) = &self.services.changes {
            changes.before(&event).await;
        }
        if let Some(telemetry) = &self.services.telemetry {
            telemetry.observe_event(self.run, &event);
        }
        let (run, may_join) = (self.run, self.may_join);
        let held = self.flow.streams.hold(run, event, may_join, Instant::now());
        let Some(event) = held else {
            return Ok(()); // it waits for the pieces after it
        };
        let input = QueuedInput::Agent { run, event: Box::new(event), may_join };
        self.arrivals.send(input).await.map_err(|_| TurnOver)
    }

    async fn closed(&self) {
        self.arrivals.closed().await;
    }

    fn pause_work(&self) {
        if let Some(budget) = &self.budget {
            budget.pause_work();
        }
    }

    fn resume_work(&self) {
        if let Some(budget) = &self.budget {
            budget.resume_work();
        }
    }

    fn settings_read(&self, settings: &wire::Object) {
        if let Some(budget) = &self.budget {
            budget.read_settings(settings);
        }
    }
}

#[async_trait]
impl HostServices for KernelSink {
    async fn store_body(
        &self,
        body: Vec<u8>,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        let stored = self.services.bodies.store_body(body, content_type).await;
        stored.map_err(|failed| self.not_stored(&failed))
    }

    async fn store_named_body(
        &self,
        body: NamedBody,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        let bodies = &self.services.bodies;
        bodies.store_named_body(body, content_type).await.map_err(|failed| self.not_stored(&failed))
    }

    async fn show_terminal(&self, offer: TerminalOffer) -> Result<String, StoreError> {
        if !self.services.may_act().await {
            return Err(lost_space());
        }
        let shown = self.services.terminals.show(self.run, offer).await;
        shown
            .map(|terminal| terminal.to_string())
            .ok_or_else(|| StoreError("the host is going down".to_owned()))
    }

    async fn use_client_file(
        &self,
        call: ClientFileCall,
    ) -> Result<ClientFileReply, ClientFileFailure> {
        if !self.services.may_act().await {
            return Err(lost_space().into());
        }
        let author = self.turn.author.as_deref();
        turn_client::use_file(&self.services.asker, author, call).await
    }

    async fn read_message(&self, id: String) -> Option<Arc<UserMessage>> {
        let directories = &self.turn.working_directories;
        self.services.messages(self.turn.chat, directories).read_one(id).await
    }

    async fn read_history(&self) -> Result<Vec<PastTurn>, StoreError> {
        let directories = &self.turn.working_directories;
        let messages = self.services.messages(self.turn.chat, directories);
        let read = past_turns::read(&self.services.journal, &messages, &self.turn.history).await;
        read.map_err(|error| StoreError(error.message))
    }

    async fn record_lowering(&self, lowering: Lowering) {
        let blocks: Vec<Value> = lowering.blocks.into_iter().map(digest_long_strings).collect();
        let record = LoweredRecord {
            chat: self.turn.chat,
            turn_id: self.turn.turn_id.clone(),
            at: self.services.bodies.now(),
            target: lowering.target.to_owned(),
            model: lowering.model,
            blocks: Bytes::from(rpc::to_json(&blocks)),
            diagnostics: Bytes::from(rpc::to_json(&lowering.diagnostics)),
        };
        let record = Record::Lowered(record);
        self.services.append_inspection_record(record).await;
    }

    async fn record_output(&self, output: ModelOutput) {
        let record = Record::ModelOutput(ModelOutputRecord {
            chat: self.turn.chat,
            turn_id: self.turn.turn_id.clone(),
            round: output.round,
            json: output.json,
        });
        let batch = Batch { seq: Seq(0), records: vec![record] };
        if let Err(error) = self.services.journal.append(batch).await {
            tracing::warn!(run = ?self.run, %error, "data that a model's server wants with later requests could not be recorded");
        }
    }

    async fn record_call(&self, call: ModelCall) -> Option<CallId> {
        let retention = self.services.calls;
        if retention.calls_max == 0 {
            return None; // the operator wants none
        }
        let mut key = [0; 8];
        if let Err(error) = getrandom::fill(&mut key) {
            tracing::warn!(run = ?self.run, %error, "a call of a model is not recorded");
            return None;
        }
        // SQLite's numbers have a sign.
        let key = u64::from_le_bytes(key) >> 1;
        let recorded_as =
            CallIdentity { chat: self.turn.chat, turn_id: self.turn.turn_id.clone(), key };
        let bodies = &self.services.bodies;
        match bodies.record_call(call, recorded_as, retention).await {
            Ok(record) => self.services.append_inspection_record(record).await,
            Err(error) => {
                tracing::warn!(run = ?self.run, %error, "a call of a model is not recorded");
                return None;
            }
        }
        Some(CallId(key))
    }

    fn record_call_end(&self, call: CallId, end: CallEnd) {
        let record = end_record(call.0, &end, self.services.bodies.now());
        self.services.journal.note(record);
    }

    async fn begin_call(
        &self,
        estimate: CallEstimate,
        kind: CallKind,
    ) -> Result<CallPermit, StoreError> {
        if !self.services.may_act().await {
            return Err(lost_space());
        }
        match &self.budget {
            Some(budget) => budget.begin_call(estimate, kind).await,
            None => Ok(CallPermit::Granted { unpriced: false }),
        }
    }

    async fn release_call(&self) {
        if let Some(budget) = &self.budget
            && let Err(error) = budget.release_call().await
        {
            tracing::warn!(run = ?self.run, %error, "the budget reserved for a failed model call could not be released; it counts as spent");
        }
    }

    async fn settle_call(&self, used: CallUsage) {
        if let Some(budget) = &self.budget
            && let Err(error) = budget.settle_call(used).await
        {
            tracing::warn!(run = ?self.run, %error, "what a call used is not counted to the budget");
        }
    }

    async fn extend_budget(&self) -> Result<(), StoreError> {
        match &self.budget {
            Some(budget) => budget.extend().await,
            None => Ok(()),
        }
    }
}

fn lost_space() -> StoreError {
    StoreError("another node serves this space now".to_owned())
}

/// A block whose long strings are named by their digest: what was sent can be proved without being stored twice.
fn digest_long_strings(block: Value) -> Value {
    match block {
        Value::String(text) if text.len() > RECORDED_STRING_BYTES_MAX => {
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({"$sha256": hex, "bytes": text.len()})
        }
        Value::Array(items) => items.into_iter().map(digest_long_strings).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, digest_long_strings(value))).collect()
        }
        other => other,
    }
}
