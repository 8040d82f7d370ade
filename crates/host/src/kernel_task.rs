//! The loop around the kernel: take inputs, step, write, send frames, start effects. Never in another order (ADR 0002).
//!
//! Promises: no frame is sent and no effect started before its batch is on disk; what a failed write undid is answered
//! with what the kernel says instead.
//! Must not know: why anything is allowed, how anything is encoded.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use agent_api::AgentEvent;
use kernel::{Batch, CloseReason, Effect, Frame, Input, Kernel, Output, PeerId, RunId, Timer};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::LogLevelHook;
use crate::effects::Effects;
use crate::journal::JournalThread;
use crate::kernel_queue::QueuedInput;
use crate::limits::ServerLimits;
use crate::net::Link;
use crate::stream_batcher::{DueEvents, RunState, StreamBatcher};

/// Capacity for frames that stays with a connection between batches.
const FRAMES_CAPACITY: usize = 64;

/// A connection, and the frames of the current batch for it.
struct Recipient {
    link: Arc<Link>,
    frames: Vec<(Frame, u32)>,
}

/// Peers are numbered by the host one after the other, so their numbers need no further hashing.
type PeerHasher = BuildHasherDefault<PeerNumber>;

#[derive(Default)]
struct PeerNumber(u64);

impl Hasher for PeerNumber {
    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(false, "a peer's number is one integer");
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The table takes its bucket from the low bits and its tag from the high ones.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The output of a step, and since when what caused it has waited.
struct Stepped {
    output: Output,
    since: Instant,
    /// The run whose agent caused it.
    run: Option<RunId>,
}

/// Drives one kernel.
pub(crate) struct KernelTask {
    kernel: Kernel,
    clock: Clock,
    journal: JournalThread,
    queue: mpsc::Receiver<QueuedInput>,
    links: HashMap<PeerId, Recipient, PeerHasher>,
    effects: Effects,
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
    /// Pieces of streams that wait, before they are stepped.
    streams: StreamBatcher,
    /// What was stepped and goes with the next commit.
    stepped: Vec<Stepped>,
    batch_max: usize,
    on_log_level: Option<LogLevelHook>,
}

impl KernelTask {
    pub(crate) fn new(
        kernel: Kernel,
        clock: Clock,
        journal: JournalThread,
        queue: mpsc::Receiver<QueuedInput>,
        effects: Effects,
        limits: &ServerLimits,
        on_log_level: Option<LogLevelHook>,
    ) -> Self {
        let coalesce = Duration::from_millis(limits.stream_coalesce_ms);
        Self {
            kernel,
            clock,
            journal,
            queue,
            links: HashMap::default(),
            effects,
            timers: BTreeMap::new(),
            timers_set: 0,
            streams: StreamBatcher::new(coalesce),
            stepped: Vec::new(),
            batch_max: limits.batch_inputs_max,
            on_log_level,
        }
    }

    /// Writes what boot decided and goes on until nothing of the last run is left open.
    pub(crate) async fn finish_boot(&mut self, boot: Output) {
        self.stepped.push(Stepped {
            output: boot,
            since: Instant::now(),
            run: None,
        });
        self.commit().await;
        let never = CancellationToken::new();
        while !self.kernel.is_settled() {
            self.run_once(&never).await;
        }
    }

    /// Serves until told to stop; then what has arrived is still processed, written and sent.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while self.run_once(&stop).await {}
        for Recipient { link, .. } in self.links.into_values() {
            link.close(1001, "the host is going down");
        }
    }

    /// Takes whatever has arrived, up to the bound, and commits it. What arrives meanwhile goes with the next commit, so an
    /// idle host answers at once and a busy one batches by itself (G-47). Returns whether there is more.
    async fn run_once(&mut self, stop: &CancellationToken) -> bool {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let due = [timer, self.streams.next_due()].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = wait_until(due) => {}
            item = self.queue.recv() => match item {
                Some(item) => self.take(item),
                None => return false,
            },
            () = stop.cancelled() => {
                self.commit().await;
                return false;
            }
        }
        let now = Instant::now();
        while let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            self.step(Input::Woke(timer), now);
        }
        for due in self.streams.take_due(now) {
            self.step_events(due);
        }
        while self.stepped.len() < self.batch_max {
            let Ok(item) = self.queue.try_recv() else {
                break; // nothing more has arrived yet
            };
            self.take(item);
        }
        self.commit().await;
        true
    }

    fn take(&mut self, item: QueuedInput) {
        let now = Instant::now();
        match item {
            QueuedInput::Connected { peer, link } => {
                self.effects.pace.add_peer(peer, Arc::clone(&link));
                let frames = Vec::new();
                self.links.insert(peer, Recipient { link, frames });
                self.step(Input::Connected { peer }, now);
            }
            QueuedInput::Agent {
                run,
                event,
                may_join,
            } => self.take_event(run, event, may_join, now),
            QueuedInput::Input(Input::Agent { run, event }) => {
                self.take_event(run, event, false, now);
            }
            QueuedInput::Input(input) => {
                if matches!(input, Input::Stopping) {
                    // Agents say nothing after this.
                    for due in self.streams.take_all() {
                        self.step_events(due);
                    }
                }
                self.step(input, now);
            }
        }
    }

    fn take_event(&mut self, run: RunId, event: AgentEvent, may_join: bool, now: Instant) {
        let state = match self.kernel.is_working(run) {
            true => RunState::Working,
            false => RunState::Stopped,
        };
        if let Some(due) = self.streams.take(run, state, event, may_join, now) {
            self.step_events(due);
        }
    }

    fn step_events(&mut self, due: DueEvents) {
        let run = due.run;
        for event in due.events {
            self.step(Input::Agent { run, event }, due.since);
        }
    }

    fn step(&mut self, input: Input, since: Instant) {
        let run = match &input {
            Input::Agent { run, .. } => Some(*run),
            _ => None,
        };
        let output = self.kernel.step(input, self.clock.now());
        if let Some(run) = run {
            self.effects.pace.record_recipients(run, &output.frames);
        }
        self.stepped.push(Stepped { output, since, run });
    }

    /// Writes, sends, starts effects. If it cannot be written, the kernel says what is sent and started instead.
    async fn commit(&mut self) {
        if self.stepped.is_empty() {
            return; // everything that came waits with its stream
        }
        let mut stepped = std::mem::take(&mut self.stepped);
        let mut batch = Batch {
            seq: self.kernel.seq(),
            records: Vec::new(),
        };
        let now = Instant::now();
        for Stepped { output, run, .. } in &mut stepped {
            batch.records.append(&mut output.records);
            if let Some(run) = run {
                let recipients = output.frames.iter();
                let recipients = recipients.flat_map(|frame| frame.recipients.as_slice());
                let window_ms = recipients.map(|to| to.window_ms).min().unwrap_or(0);
                self.streams.note_commit(*run, window_ms, now);
            }
        }
        if stepped.iter().all(|stepped| !stepped.output.wrote) {
            self.kernel.committed();
            return self.send_and_start_effects(stepped);
        }
        match self.journal.append(batch).await {
            Ok(()) => {
                self.kernel.committed();
                self.send_and_start_effects(stepped);
            }
            Err(error) => {
                tracing::error!(%error, "the journal cannot be written; changes are refused and it is tried again");
                let outputs = stepped.into_iter().map(|stepped| stepped.output).collect();
                let output = self.kernel.rolled_back(outputs, &error.to_string());
                self.send_and_start_effects(vec![Stepped {
                    output,
                    since: now,
                    run: None,
                }]);
            }
        }
    }

    fn send_and_start_effects(&mut self, stepped: Vec<Stepped>) {
        let mut effects = Vec::new();
        let mut recipients = Vec::new();
        for Stepped { output, since, .. } in stepped {
            let waited_ms = u32::try_from(since.elapsed().as_millis()).unwrap_or(u32::MAX);
            for outgoing in output.frames {
                for to in outgoing.recipients.as_slice() {
                    let Some(recipient) = self.links.get_mut(&to.peer) else {
                        continue; // it disconnected since the step
                    };
                    if recipient.frames.is_empty() {
                        recipients.push(to.peer);
                    }
                    // What is left of the window; too little to be worth another timer means now.
                    let left_ms = to.window_ms.saturating_sub(waited_ms);
                    let worth_it = left_ms * 2 >= to.window_ms;
                    let window_ms = if worth_it { left_ms } else { 0 };
                    recipient.frames.push((outgoing.frame.clone(), window_ms));
                }
            }
            effects.extend(output.effects);
        }
        // All frames of a batch for one connection are handed over at once: one lock and one wake for each.
        for peer in recipients {
            if let Some(recipient) = self.links.get_mut(&peer) {
                recipient.link.push_all(recipient.frames.drain(..));
                recipient.frames.shrink_to(FRAMES_CAPACITY);
            }
        }
        for effect in effects {
            self.start_effect(effect);
        }
    }

    fn start_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Read { ticket, query } => self.effects.read(ticket, query),
            Effect::Complete { ticket, complete } => self.effects.complete(ticket, *complete),
            Effect::Fetch { ticket, fetch } => self.effects.fetch(ticket, fetch),
            Effect::StoreBodies { ticket, bodies } => self.effects.store_bodies(ticket, bodies),
            Effect::Compose { ticket, compose } => self.effects.compose(ticket, *compose),
            Effect::StartSession {
                session,
                provider,
                config,
                working_directories,
            } => {
                let effects = &self.effects;
                effects.start_session(session, provider, config, working_directories);
            }
            Effect::RecordRender { session, rendered } => {
                self.effects.record_render(&session, rendered)
            }
            Effect::RunTurn(turn) => self.effects.run_turn(*turn),
            Effect::StopTurn { run } => {
                self.streams.end(run);
                self.effects.stop_turn(run);
            }
            Effect::Reply { run, reply } => self.effects.reply(run, reply),
            Effect::WakeAt { timer, at } => {
                self.timers_set += 1;
                self.timers
                    .insert((self.clock.instant_of(at), self.timers_set), timer);
            }
            Effect::Close { peer, why } => {
                if let Some(Recipient { link, .. }) = self.links.get(&peer) {
                    let (code, reason) = match why {
                        CloseReason::Superseded => (1008, "another connection took this client id"),
                        CloseReason::UnsupportedVersion => (1002, "no acceptable protocol version"),
                        CloseReason::Policy => (1008, "a limit was exceeded"),
                    };
                    link.close(code, reason);
                }
            }
            Effect::Forget { peer } => {
                self.effects.pace.remove_peer(peer);
                self.links.remove(&peer);
            }
            Effect::Pause { peer } => {
                if let Some(Recipient { link, .. }) = self.links.get(&peer) {
                    link.pause();
                }
            }
            Effect::Resume { peer } => {
                if let Some(Recipient { link, .. }) = self.links.get(&peer) {
                    link.resume();
                }
            }
            Effect::Probe => self.effects.probe(),
            Effect::Collect { buckets, before } => self.effects.collect(buckets, before),
            Effect::Configure { values } => {
                if let (Some(hook), Some(level)) = (&self.on_log_level, values.get("logLevel")) {
                    hook(level.as_str().unwrap_or("info"));
                }
            }
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
