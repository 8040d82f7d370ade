//! The loop around the kernel: take inputs, step, write, send frames, start effects. Never in another order (ADR 0002).
//!
//! Promises: no frame is sent and no effect started before its batch is on disk; what a failed write undid is answered
//! with what the kernel says instead.
//! Must not know: why anything is allowed, how anything is encoded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kernel::{Batch, CloseReason, Effect, Frame, Input, Kernel, Output, PeerId, Timer};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::LogLevelHook;
use crate::effects::Effects;
use crate::journal::JournalThread;
use crate::kernel_queue::QueuedInput;
use crate::net::Link;

/// Upper bound on batching delay: a crash must not cost more than what was stepped in this time.
const BATCHING_MS_MAX: u32 = 25;

/// Capacity for frames that stays with a connection between batches.
const FRAMES_CAPACITY: usize = 4;

/// A connection, and the frames of the current batch for it.
struct Recipient {
    link: Arc<Link>,
    frames: Vec<(Frame, u32)>,
}

/// Drives one kernel.
pub(crate) struct KernelTask {
    kernel: Kernel,
    clock: Clock,
    journal: JournalThread,
    queue: mpsc::Receiver<QueuedInput>,
    links: HashMap<PeerId, Recipient>,
    effects: Effects,
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
    /// Outputs of steps that wait to be written: everybody they are sent to gave a delivery window.
    held: Vec<Output>,
    held_since: Instant,
    deadline: CommitDeadline,
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
        batch_max: usize,
        on_log_level: Option<LogLevelHook>,
    ) -> Self {
        Self {
            kernel,
            clock,
            journal,
            queue,
            links: HashMap::new(),
            effects,
            timers: BTreeMap::new(),
            timers_set: 0,
            held: Vec::new(),
            held_since: Instant::now(),
            deadline: CommitDeadline::NoRecipients,
            batch_max,
            on_log_level,
        }
    }

    /// Writes what boot decided and goes on until nothing of the last run is left open.
    pub(crate) async fn finish_boot(&mut self, boot: Output) {
        self.held.push(boot);
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

    /// Takes whatever has arrived, up to the bound, and releases it when it must be. Returns whether there is more.
    async fn run_once(&mut self, stop: &CancellationToken) -> bool {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let due = [timer, self.commit_due()].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = wait_until(due) => {}
            item = self.queue.recv() => match item {
                Some(item) => self.step(item),
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
            self.step(QueuedInput::Input(Input::Woke(timer)));
        }
        while self.held.len() < self.batch_max {
            let Ok(item) = self.queue.try_recv() else {
                break; // nothing more has arrived yet
            };
            self.step(item);
        }
        let must = self
            .commit_due()
            .is_none_or(|until| until <= Instant::now());
        if must || self.held.len() >= self.batch_max {
            self.commit().await;
        }
        true
    }

    fn step(&mut self, item: QueuedInput) {
        if self.held.is_empty() {
            self.held_since = Instant::now();
        }
        let output = self.apply(item);
        self.deadline = self.deadline.with(&output);
        self.held.push(output);
    }

    /// Until when what is held may wait to be written; `None` if it may not.
    fn commit_due(&self) -> Option<Instant> {
        match self.deadline {
            // Most of the window is for the commit, the rest for the network.
            CommitDeadline::Window(ms) => Some(
                self.held_since + Duration::from_millis(ms.min(BATCHING_MS_MAX).into()) * 4 / 5,
            ),
            CommitDeadline::NoRecipients | CommitDeadline::Now => None,
        }
    }

    fn apply(&mut self, item: QueuedInput) -> Output {
        let input = match item {
            QueuedInput::Connected { peer, link } => {
                self.effects.pace.add_peer(peer, Arc::clone(&link));
                let frames = Vec::new();
                self.links.insert(peer, Recipient { link, frames });
                Input::Connected { peer }
            }
            QueuedInput::Input(input) => input,
        };
        let run = match &input {
            Input::Agent { run, .. } => Some(*run),
            _ => None,
        };
        let output = self.kernel.step(input, self.clock.now());
        if let Some(run) = run {
            self.effects.pace.record_recipients(run, &output.frames);
        }
        output
    }

    /// Writes, sends, starts effects. If it cannot be written, the kernel says what is sent and started instead.
    async fn commit(&mut self) {
        let mut outputs = std::mem::take(&mut self.held);
        self.deadline = CommitDeadline::NoRecipients;
        let mut batch = Batch {
            seq: self.kernel.seq(),
            records: Vec::new(),
        };
        for output in &mut outputs {
            batch.records.append(&mut output.records);
        }
        if outputs.iter().all(|output| !output.wrote) {
            self.kernel.committed();
            return self.send_and_start_effects(outputs);
        }
        match self.journal.append(batch).await {
            Ok(()) => {
                self.kernel.committed();
                self.send_and_start_effects(outputs);
            }
            Err(error) => {
                tracing::error!(%error, "the journal cannot be written; changes are refused and it is tried again");
                let instead = self.kernel.rolled_back(outputs, &error.to_string());
                self.send_and_start_effects(vec![instead]);
            }
        }
    }

    fn send_and_start_effects(&mut self, outputs: Vec<Output>) {
        let mut effects = Vec::new();
        let waited_ms = u32::try_from(self.held_since.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut recipients = Vec::new();
        for output in outputs {
            for outgoing in output.frames {
                let Some(recipient) = self.links.get_mut(&outgoing.peer) else {
                    continue; // it disconnected since the step
                };
                if recipient.frames.is_empty() {
                    recipients.push(outgoing.peer);
                }
                // What is left of the window; too little to be worth another timer means now.
                let left_ms = outgoing.window_ms.saturating_sub(waited_ms);
                let worth_it = left_ms * 2 >= outgoing.window_ms;
                let window_ms = if worth_it { left_ms } else { 0 };
                recipient.frames.push((outgoing.frame, window_ms));
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
            Effect::StopTurn { run } => self.effects.stop_turn(run),
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

/// How long steps may wait to be written. A delivery window that every recipient gave makes the batch larger, so that one
/// commit serves for all of it (H-047).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitDeadline {
    /// Nothing is sent to anybody.
    NoRecipients,
    /// The shortest window of the recipients.
    Window(u32),
    /// Somebody wants it at once, or an effect waits for it.
    Now,
}

impl CommitDeadline {
    fn with(self, output: &Output) -> Self {
        let shortest = output.frames.iter().map(|frame| frame.window_ms).min();
        match (self, shortest) {
            (Self::Now, _) | (_, Some(0)) => Self::Now,
            _ if !output.effects.is_empty() => Self::Now,
            (deadline, None) => deadline,
            (Self::NoRecipients, Some(window)) => Self::Window(window),
            (Self::Window(before), Some(window)) => Self::Window(before.min(window)),
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
