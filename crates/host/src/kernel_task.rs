//! The loop around the kernel: take inputs, step (here), write (`commit`), send frames, start effects (`act`). Never in another
//! order (ADR 0002).
//!
//! Over a journal on this machine it has a thread of its own, which waits for inputs, timers and the disk, and nothing else
//! (ADR 0069); over a database it is a task of the host's runtime (ADR 0115).
//!
//! Promises: no frame is sent and no effect started before its batch is on disk; what a failed write undid is answered
//! with what the kernel says instead.
//! Must not know: why anything is allowed, how anything is encoded.

mod act;
mod commit;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use std::time::Duration;

use agent_api::AgentEvent;
use kernel::{Input, Kernel, Output, RunId, Timer};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::cluster::Tenure;
use crate::config::LogLevelHook;
use crate::delivery::Delivery;
use crate::effects::Effects;
use crate::journal::JournalHandle;
use crate::kernel_queue::QueuedInput;
use crate::limits::ServerLimits;
use crate::stream_batcher::{DueEvents, RunState, StreamBatcher};
use crate::telemetry::MetricCounter;

/// How long a kernel that shares its threads with others takes inputs before it commits: what came meanwhile goes with the next batch.
const STEPS_TIME_MAX: Duration = Duration::from_millis(2);

/// The output of a step, and since when what caused it has waited.
struct SteppedInput {
    output: Output,
    since: Instant,
    /// The run whose agent caused it.
    run: Option<RunId>,
    /// Telemetry caused it, which is not counted: counting what tells of the counters would change them for ever, and no idle
    /// host would rest.
    is_telemetry: bool,
}

/// A timer that is set; those of one moment come in the order in which they were set.
struct SetTimer {
    at: Instant,
    number: u64,
    timer: Timer,
}

impl SetTimer {
    fn place(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for SetTimer {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for SetTimer {}

impl PartialOrd for SetTimer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SetTimer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// Drives one kernel.
pub(crate) struct KernelTask {
    kernel: Kernel,
    clock: Clock,
    journal: JournalHandle,
    queue: mpsc::Receiver<QueuedInput>,
    delivery: Delivery,
    effects: Effects,
    timers: BinaryHeap<Reverse<SetTimer>>,
    timers_set: u64,
    /// Pieces of streams that wait, before they are stepped.
    streams: Arc<StreamBatcher>,
    /// What was stepped and goes with the next commit.
    stepped: Vec<SteppedInput>,
    batch_max: usize,
    /// It is one task of many: it steps for so long, and others have their turn.
    steps_max: Option<Duration>,
    on_log_level: Option<LogLevelHook>,
    /// Where effects run: not on the kernel's thread.
    effects_runtime: Handle,
    /// Where the space may be served by another node: whether it is still this one.
    tenure: Option<Tenure>,
}

impl KernelTask {
    pub(crate) fn new(
        kernel: Kernel,
        clock: Clock,
        journal: JournalHandle,
        queue: mpsc::Receiver<QueuedInput>,
        effects: Effects,
        limits: &ServerLimits,
        on_log_level: Option<LogLevelHook>,
    ) -> Self {
        let streams = Arc::clone(&effects.streams);
        let steps_max = (!journal.is_local()).then_some(STEPS_TIME_MAX);
        Self {
            kernel,
            clock,
            journal,
            queue,
            delivery: Delivery::default(),
            effects,
            timers: BinaryHeap::new(),
            timers_set: 0,
            streams,
            stepped: Vec::new(),
            batch_max: limits.batch_inputs_max,
            steps_max,
            on_log_level,
            effects_runtime: Handle::current(),
            tenure: None,
        }
    }

    /// The same for a space that is served under a lease.
    pub(crate) fn under(mut self, tenure: Option<Tenure>) -> Self {
        self.tenure = tenure;
        self
    }

    /// Writes what boot decided and goes on until nothing of the last run is left open.
    pub(crate) async fn finish_boot(&mut self, boot: Output) {
        self.stepped.push(SteppedInput {
            output: boot,
            since: Instant::now(),
            run: None,
            is_telemetry: false,
        });
        self.commit().await;
        let never = CancellationToken::new();
        while !self.kernel.is_settled() && self.run_once(&never).await {}
    }

    /// Serves until told to stop; then what has arrived is still processed, written and sent.
    pub(crate) async fn run(mut self: Box<Self>, stop: CancellationToken) {
        while self.run_once(&stop).await {}
        match &self.tenure {
            None => self.delivery.close_all(1001, "the host is going down"),
            Some(tenure) => {
                // Also where it ends in order: what still runs for the space must not go on beside the next owner.
                self.effects.stop_all();
                tenure.set_busy(false);
                if !tenure.is_lost() {
                    // Before anybody hears of it: whoever connects again finds a space that is free, and loaded where it went.
                    Box::pin(self.journal.close()).await;
                    if !self.delivery.is_empty() {
                        Box::pin(tenure.load_elsewhere()).await;
                    }
                }
                self.delivery.close_all(1012, "this space is served elsewhere now; connect again");
            }
        }
    }

    /// Takes whatever has arrived, up to the bound, and commits it. What arrives meanwhile goes with the next commit, so an
    /// idle host answers at once and a busy one batches by itself (G-47). Returns whether there is more.
    async fn run_once(&mut self, stop: &CancellationToken) -> bool {
        let timer = self.timers.peek().map(|Reverse(set)| set.at);
        let due = [timer, self.streams.next_due()].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = wait_until_silent(self.tenure.as_ref()) => return self.wait_until_heard().await,
            // Before the queue, which a busy space never empties.
            () = stop.cancelled() => {
                Box::pin(self.finish_arrived()).await;
                return false;
            }
            () = wait_until(due) => {}
            item = self.queue.recv() => match item {
                Some(item) => self.take(item),
                None => return false,
            },
        }
        self.step_due();
        self.take_arrived(usize::MAX);
        // Boxed: most kernels wait for something to come, and a commit takes more room than that.
        Box::pin(self.commit()).await;
        !self.is_lost()
    }

    /// Processes, writes and sends what has arrived by now, the word to stop among it; what comes later comes too late.
    async fn finish_arrived(&mut self) {
        let mut left = self.queue.len();
        loop {
            self.step_due();
            left -= self.take_arrived(left);
            self.commit().await;
            if left == 0 || self.is_lost() || !self.wait_until_heard().await {
                return;
            }
        }
    }

    fn step_due(&mut self) {
        let now = Instant::now();
        while let Some(timer) = self.take_timer(now) {
            self.step(Input::Woke(timer), now);
        }
        for due in self.streams.take_due(now) {
            self.step_events(due);
        }
    }

    /// Takes at most so many inputs that have arrived, and no more than go into one batch; how many that were.
    fn take_arrived(&mut self, most: usize) -> usize {
        let began = Instant::now();
        let mut taken = 0;
        while taken < most
            && self.stepped.len() < self.batch_max
            && self.steps_max.is_none_or(|most| began.elapsed() < most)
        {
            let Ok(item) = self.queue.try_recv() else {
                break; // nothing more has arrived yet
            };
            self.take(item);
            taken += 1;
        }
        taken
    }

    /// The next timer that is due.
    fn take_timer(&mut self, now: Instant) -> Option<Timer> {
        let first = self.timers.peek_mut()?;
        (first.0.at <= now).then(|| PeekMut::pop(first).0.timer)
    }

    fn is_lost(&self) -> bool {
        self.tenure.as_ref().is_some_and(Tenure::is_lost)
    }

    /// Says nothing and begins nothing until this node may speak for the space again; `false`: it never will.
    async fn wait_until_heard(&self) -> bool {
        let Some(tenure) = &self.tenure else {
            return true; // no other node can have it
        };
        if tenure.may_speak() {
            return true;
        }
        if !tenure.is_lost() {
            self.delivery.close_all(1013, "the host cannot reach its database; try again later");
        }
        tenure.wait_until_heard().await
    }

    fn take(&mut self, item: QueuedInput) {
        let now = Instant::now();
        match item {
            QueuedInput::Connected { peer, role, link } => {
                self.effects.pace.add_peer(peer, Arc::clone(&link));
                self.delivery.add(peer, link);
                self.step(Input::Connected { peer, role }, now);
            }
            QueuedInput::Agent { run, event, may_join } => {
                self.take_event(run, *event, may_join, now)
            }
            QueuedInput::Input(input) => self.take_input(*input, now),
        }
    }

    fn take_input(&mut self, input: Input, now: Instant) {
        match input {
            Input::Agent { run, event } => return self.take_event(run, event, false, now),
            Input::Stopping => {
                // Agents say nothing after this.
                for due in self.streams.take_all() {
                    self.step_events(due);
                }
            }
            _ => {}
        }
        self.step(input, now);
    }

    fn take_event(&mut self, run: RunId, event: AgentEvent, may_join: bool, now: Instant) {
        let state = if self.kernel.is_working(run) { RunState::Working } else { RunState::Stopped };
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
        let is_telemetry = matches!(input, Input::Telemetry(_));
        if !is_telemetry {
            self.count(MetricCounter::Steps, 1);
        }
        let output = self.kernel.step(input, self.clock.now());
        if let Some(run) = run {
            self.effects.pace.record_recipients(run, &output.frames);
        }
        self.stepped.push(SteppedInput { output, since, run, is_telemetry });
    }

    fn count(&self, counter: MetricCounter, count: u64) {
        if let Some(telemetry) = &self.effects.telemetry {
            telemetry.metrics.add(counter, count);
        }
    }
}

async fn wait_until_silent(tenure: Option<&Tenure>) {
    match tenure {
        Some(tenure) => tenure.wait_until_silent().await,
        None => std::future::pending().await,
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
