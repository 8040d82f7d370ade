//! The loop: take inputs, step, append, release frames, start effects. Never in another order (ADR 0002).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kernel::{Batch, CloseReason, Effect, Frame, Input, Kernel, Output, PeerId, Timer};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::arrival::Arrival;
use crate::clock::Clock;
use crate::config::LogLevelHook;
use crate::effects::Effects;
use crate::journal::JournalThread;
use crate::net::Link;

/// However patient the hearers are, what was stepped is written after this: a crash must not cost more.
const HOLD_MS_MAX: u32 = 25;

/// Room for frames that a reader keeps between batches.
const SPEECH_KEPT: usize = 4;

/// A connection, and what the current batch says to it.
struct Reader {
    link: Arc<Link>,
    speech: Vec<(Frame, u32)>,
}

/// Drives one kernel.
pub(crate) struct KernelTask {
    kernel: Kernel,
    clock: Clock,
    journal: JournalThread,
    arrivals: mpsc::Receiver<Arrival>,
    links: HashMap<PeerId, Reader>,
    effects: Effects,
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
    /// Steps that were taken and wait to be written: all who will hear of them gave a delivery window.
    held: Vec<Output>,
    held_since: Instant,
    patience: Patience,
    batch_max: usize,
    on_log_level: Option<LogLevelHook>,
}

impl KernelTask {
    pub fn new(
        kernel: Kernel,
        clock: Clock,
        journal: JournalThread,
        arrivals: mpsc::Receiver<Arrival>,
        effects: Effects,
        batch_max: usize,
        on_log_level: Option<LogLevelHook>,
    ) -> Self {
        Self {
            kernel,
            clock,
            journal,
            arrivals,
            links: HashMap::new(),
            effects,
            timers: BTreeMap::new(),
            timers_set: 0,
            held: Vec::new(),
            held_since: Instant::now(),
            patience: Patience::Unheard,
            batch_max,
            on_log_level,
        }
    }

    /// Writes what boot said and goes on until nothing of the last run is left open.
    pub async fn settle(&mut self, boot: Output) {
        self.held.push(boot);
        self.release().await;
        let never = CancellationToken::new();
        while !self.kernel.is_settled() {
            self.turn_once(&never).await;
        }
    }

    /// Serves until told to stop; then what has arrived is still processed, written and spoken.
    pub async fn run(mut self, stop: CancellationToken) {
        while self.turn_once(&stop).await {}
        for Reader { link, .. } in self.links.into_values() {
            link.close(1001, "the host is going down");
        }
    }

    /// Takes whatever has arrived, up to the bound, and releases it when it must be. Returns whether there is more.
    async fn turn_once(&mut self, stop: &CancellationToken) -> bool {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let due = [timer, self.may_wait_until()].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = wait_until(due) => {}
            arrival = self.arrivals.recv() => match arrival {
                Some(arrival) => self.hold(arrival),
                None => return false,
            },
            () = stop.cancelled() => {
                self.release().await;
                return false;
            }
        }
        let now = Instant::now();
        while let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            self.hold(Arrival::Input(Input::Woke(timer)));
        }
        while self.held.len() < self.batch_max {
            let Ok(arrival) = self.arrivals.try_recv() else {
                break;
            };
            self.hold(arrival);
        }
        let must = self
            .may_wait_until()
            .is_none_or(|until| until <= Instant::now());
        if must || self.held.len() >= self.batch_max {
            self.release().await;
        }
        true
    }

    fn hold(&mut self, arrival: Arrival) {
        if self.held.is_empty() {
            self.held_since = Instant::now();
        }
        let output = self.take(arrival);
        self.patience = self.patience.with(&output);
        self.held.push(output);
    }

    /// Until when what is held may wait; `None` if it may not.
    fn may_wait_until(&self) -> Option<Instant> {
        match self.patience {
            // Most of the window is for the commit, the rest for the way.
            Patience::Window(ms) => {
                Some(self.held_since + Duration::from_millis(ms.min(HOLD_MS_MAX).into()) * 4 / 5)
            }
            Patience::Unheard | Patience::None => None,
        }
    }

    fn take(&mut self, arrival: Arrival) -> Output {
        let input = match arrival {
            Arrival::Joined { peer, link } => {
                self.effects.pace.join(peer, Arc::clone(&link));
                let speech = Vec::new();
                self.links.insert(peer, Reader { link, speech });
                Input::Connected { peer }
            }
            Arrival::Input(input) => input,
        };
        let run = match &input {
            Input::Agent { run, .. } => Some(*run),
            _ => None,
        };
        let output = self.kernel.step(input, self.clock.now());
        if let Some(run) = run {
            self.effects.pace.heard(run, &output.frames);
        }
        output
    }

    /// Write, speak, act. If it cannot be written, what is spoken and done instead is what the kernel says then.
    async fn release(&mut self) {
        let mut outputs = std::mem::take(&mut self.held);
        self.patience = Patience::Unheard;
        let mut batch = Batch {
            seq: self.kernel.seq(),
            records: Vec::new(),
        };
        for output in &mut outputs {
            batch.records.append(&mut output.records);
        }
        if outputs.iter().all(|output| !output.wrote) {
            self.kernel.committed();
            return self.speak_and_act(outputs);
        }
        match self.journal.append(batch).await {
            Ok(()) => {
                self.kernel.committed();
                self.speak_and_act(outputs);
            }
            Err(error) => {
                tracing::error!(%error, "nothing can be recorded; clients are told and it is tried again");
                let instead = self.kernel.rolled_back(outputs, &error.to_string());
                self.speak_and_act(vec![instead]);
            }
        }
    }

    fn speak_and_act(&mut self, outputs: Vec<Output>) {
        let mut effects = Vec::new();
        let waited_ms = u32::try_from(self.held_since.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut spoken_to = Vec::new();
        for output in outputs {
            for outgoing in output.frames {
                let Some(reader) = self.links.get_mut(&outgoing.peer) else {
                    continue;
                };
                if reader.speech.is_empty() {
                    spoken_to.push(outgoing.peer);
                }
                // What is left of the window; too little to be worth another timer means now.
                let left_ms = outgoing.window_ms.saturating_sub(waited_ms);
                let worth_it = left_ms * 2 >= outgoing.window_ms;
                let window_ms = if worth_it { left_ms } else { 0 };
                reader.speech.push((outgoing.frame, window_ms));
            }
            effects.extend(output.effects);
        }
        // All that a batch says to one reader is handed over at once: one lock and one wake for each.
        for peer in spoken_to {
            if let Some(reader) = self.links.get_mut(&peer) {
                reader.link.push_all(reader.speech.drain(..));
                reader.speech.shrink_to(SPEECH_KEPT);
            }
        }
        for effect in effects {
            self.start(effect);
        }
    }

    fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Read { ticket, query } => self.effects.read(ticket, query),
            Effect::Complete { ticket, complete } => self.effects.complete(ticket, *complete),
            Effect::Fetch { ticket, fetch } => self.effects.fetch(ticket, fetch),
            Effect::Keep { ticket, bodies } => self.effects.keep(ticket, bodies),
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
                if let Some(Reader { link, .. }) = self.links.get(&peer) {
                    let (code, reason) = match why {
                        CloseReason::Superseded => (1008, "another connection took this client id"),
                        CloseReason::UnsupportedVersion => (1002, "no acceptable protocol version"),
                        CloseReason::Policy => (1008, "a limit was exceeded"),
                    };
                    link.close(code, reason);
                }
            }
            Effect::Forget { peer } => {
                self.effects.pace.leave(peer);
                self.links.remove(&peer);
            }
            Effect::Pause { peer } => {
                if let Some(Reader { link, .. }) = self.links.get(&peer) {
                    link.pause();
                }
            }
            Effect::Resume { peer } => {
                if let Some(Reader { link, .. }) = self.links.get(&peer) {
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

/// How long steps may wait to be written. A delivery window that every hearer gave makes the batch larger, so that one
/// commit serves for all of it (H-047).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Nobody hears of it.
    Unheard,
    /// The shortest window of those who will.
    Window(u32),
    /// Somebody wants it at once, or something is to be done.
    None,
}

impl Patience {
    fn with(self, output: &Output) -> Self {
        let shortest = output.frames.iter().map(|frame| frame.window_ms).min();
        match (self, shortest) {
            (Self::None, _) | (_, Some(0)) => Self::None,
            _ if !output.effects.is_empty() => Self::None,
            (patience, None) => patience,
            (Self::Unheard, Some(window)) => Self::Window(window),
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
