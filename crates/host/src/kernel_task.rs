//! The loop: take inputs, step, append, release frames, start effects. Never in another order (ADR 0002).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kernel::{Batch, CloseReason, Effect, Input, Kernel, Output, PeerId, Timer};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::arrival::Arrival;
use crate::clock::Clock;
use crate::config::LogLevelHook;
use crate::effects::Effects;
use crate::journal::JournalThread;
use crate::net::Link;

/// Drives one kernel.
pub(crate) struct KernelTask {
    kernel: Kernel,
    clock: Clock,
    journal: JournalThread,
    arrivals: mpsc::Receiver<Arrival>,
    links: HashMap<PeerId, Arc<Link>>,
    effects: Effects,
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
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
            batch_max,
            on_log_level,
        }
    }

    /// Writes what boot said and goes on until nothing of the last run is left open.
    pub async fn settle(&mut self, boot: Output) {
        self.release(vec![boot]).await;
        let never = CancellationToken::new();
        while !self.kernel.is_settled() {
            self.turn_once(&never).await;
        }
    }

    /// Serves until told to stop; then what has arrived is still processed, written and spoken.
    pub async fn run(mut self, stop: CancellationToken) {
        while self.turn_once(&stop).await {}
        for (_, link) in self.links {
            link.close(1001, "the host is going down");
        }
    }

    /// One batch: whatever has arrived, up to the bound. Returns whether there is more to come.
    async fn turn_once(&mut self, stop: &CancellationToken) -> bool {
        let mut outputs = Vec::new();
        let due = self.timers.first_key_value().map(|((at, _), _)| *at);
        tokio::select! {
            biased;
            () = wait_until(due) => {}
            arrival = self.arrivals.recv() => match arrival {
                Some(arrival) => outputs.push(self.take(arrival)),
                None => return false,
            },
            () = stop.cancelled() => return false,
        }
        let now = Instant::now();
        while let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            outputs.push(self.kernel.step(Input::Woke(timer), self.clock.now()));
        }
        while outputs.len() < self.batch_max {
            let Ok(arrival) = self.arrivals.try_recv() else { break };
            outputs.push(self.take(arrival));
        }
        self.release(outputs).await;
        true
    }

    fn take(&mut self, arrival: Arrival) -> Output {
        let input = match arrival {
            Arrival::Joined { peer, link } => {
                self.effects.pace.join(peer, Arc::clone(&link));
                self.links.insert(peer, link);
                Input::Connected { peer }
            }
            Arrival::Input(input) => input,
        };
        self.kernel.step(input, self.clock.now())
    }

    /// Write, speak, act. If it cannot be written, what is spoken and done instead is what the kernel says then.
    async fn release(&mut self, mut outputs: Vec<Output>) {
        let mut batch = Batch { seq: self.kernel.seq(), records: Vec::new() };
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
        for output in outputs {
            for outgoing in output.frames {
                if let Some(link) = self.links.get(&outgoing.peer) {
                    link.push(outgoing.frame, outgoing.window_ms);
                }
            }
            effects.extend(output.effects);
        }
        for effect in effects {
            self.start(effect);
        }
    }

    fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Read { ticket, query } => self.effects.read(ticket, query),
            Effect::StartSession { session, provider } => self.effects.start_session(session, provider),
            Effect::RunTurn(turn) => self.effects.run_turn(*turn),
            Effect::StopTurn { run } => self.effects.stop_turn(run),
            Effect::WakeAt { timer, at } => {
                self.timers_set += 1;
                self.timers.insert((self.clock.instant_of(at), self.timers_set), timer);
            }
            Effect::Close { peer, why } => {
                if let Some(link) = self.links.get(&peer) {
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
                if let Some(link) = self.links.get(&peer) {
                    link.pause();
                }
            }
            Effect::Resume { peer } => {
                if let Some(link) = self.links.get(&peer) {
                    link.resume();
                }
            }
            Effect::Probe => self.effects.probe(),
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
