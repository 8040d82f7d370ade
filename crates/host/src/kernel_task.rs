//! The loop around the kernel: take inputs, step, write, send frames, start effects. Never in another order (ADR 0002).
//!
//! Over a journal on this machine it has a thread of its own, which waits for inputs, timers and the disk, and nothing else
//! (ADR 0069); over a database it is a task of the host's runtime (ADR 0115).
//!
//! Promises: no frame is sent and no effect started before its batch is on disk; what a failed write undid is answered
//! with what the kernel says instead.
//! Must not know: why anything is allowed, how anything is encoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::AgentEvent;
use kernel::{Batch, CloseReason, Effect, Input, Kernel, Output, RunId, Timer};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::cluster::Tenure;
use crate::config::LogLevelHook;
use crate::delivery::Delivery;
use crate::effects::Effects;
use crate::journal::{JournalError, JournalHandle, RefusedBatch};
use crate::kernel_queue::QueuedInput;
use crate::limits::ServerLimits;
use crate::stream_batcher::{DueEvents, RunState, StreamBatcher};
use crate::telemetry::MetricCounter;

/// The output of a step, and since when what caused it has waited.
struct Stepped {
    output: Output,
    since: Instant,
    /// The run whose agent caused it.
    run: Option<RunId>,
    /// Telemetry caused it, which is not counted: counting what tells of the counters would change them for ever, and no idle
    /// host would rest.
    is_telemetry: bool,
}

/// Drives one kernel.
pub(crate) struct KernelTask {
    kernel: Kernel,
    clock: Clock,
    journal: JournalHandle,
    queue: mpsc::Receiver<QueuedInput>,
    delivery: Delivery,
    effects: Effects,
    timers: BTreeMap<(Instant, u64), Timer>,
    timers_set: u64,
    /// Pieces of streams that wait, before they are stepped.
    streams: Arc<StreamBatcher>,
    /// What was stepped and goes with the next commit.
    stepped: Vec<Stepped>,
    batch_max: usize,
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
        Self {
            kernel,
            clock,
            journal,
            queue,
            delivery: Delivery::default(),
            effects,
            timers: BTreeMap::new(),
            timers_set: 0,
            streams,
            stepped: Vec::new(),
            batch_max: limits.batch_inputs_max,
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
        self.stepped.push(Stepped {
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
                    // Before anybody hears of it: whoever connects again finds a space that is free.
                    Box::pin(self.journal.close()).await;
                }
                self.delivery
                    .close_all(1012, "this space is served elsewhere now; connect again");
            }
        }
    }

    /// Takes whatever has arrived, up to the bound, and commits it. What arrives meanwhile goes with the next commit, so an
    /// idle host answers at once and a busy one batches by itself (G-47). Returns whether there is more.
    async fn run_once(&mut self, stop: &CancellationToken) -> bool {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let due = [timer, self.streams.next_due()].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = wait_until_silent(self.tenure.as_ref()) => return self.wait_until_heard().await,
            () = wait_until(due) => {}
            item = self.queue.recv() => match item {
                Some(item) => self.take(item),
                None => return false,
            },
            () = stop.cancelled() => {
                Box::pin(self.commit()).await;
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
        // Boxed: most kernels wait for something to come, and a commit takes more room than that.
        Box::pin(self.commit()).await;
        !self.is_lost()
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
            self.delivery
                .close_all(1013, "the host cannot reach its database; try again later");
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
            QueuedInput::Agent {
                run,
                event,
                may_join,
            } => self.take_event(run, *event, may_join, now),
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
        let is_telemetry = matches!(input, Input::Telemetry(_));
        if !is_telemetry {
            self.count(MetricCounter::Steps, 1);
        }
        let output = self.kernel.step(input, self.clock.now());
        if let Some(run) = run {
            self.effects.pace.record_recipients(run, &output.frames);
        }
        self.stepped.push(Stepped {
            output,
            since,
            run,
            is_telemetry,
        });
    }

    fn count(&self, counter: MetricCounter, count: u64) {
        if let Some(telemetry) = &self.effects.services.telemetry {
            telemetry.metrics.add(counter, count);
        }
    }

    /// Writes, sends, starts effects. If it cannot be written, the kernel says what is sent and started instead.
    async fn commit(&mut self) {
        if self.stepped.is_empty() {
            return; // everything that came waits with its stream
        }
        let stepped = std::mem::take(&mut self.stepped);
        let now = Instant::now();
        for Stepped { output, run, .. } in &stepped {
            if let Some(run) = run {
                let recipients = output.frames.iter();
                let recipients = recipients.flat_map(|frame| frame.recipients.as_slice());
                let window_ms = recipients.map(|to| to.window_ms).min().unwrap_or(0);
                self.streams.note_commit(*run, window_ms, now);
            }
        }
        if stepped.iter().all(|stepped| !stepped.output.wrote) {
            self.kernel.committed();
            return self.speak(stepped).await;
        }
        let (causes, mut outputs): (Vec<_>, Vec<Output>) = stepped
            .into_iter()
            .map(|it| ((it.since, it.run, it.is_telemetry), it.output))
            .unzip();
        let written = self.write(&mut outputs).await;
        let micros = u64::try_from(now.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count(MetricCounter::CommitMicroseconds, micros);
        let stepped = match written {
            Ok(()) => {
                self.count(MetricCounter::Commits, 1);
                self.kernel.committed();
                let outputs = causes.into_iter().zip(outputs);
                outputs
                    .map(|((since, run, is_telemetry), output)| Stepped {
                        output,
                        since,
                        run,
                        is_telemetry,
                    })
                    .collect()
            }
            Err(JournalError::Lost(reason)) if self.tenure.is_some() => {
                // Final: nothing of it is said, and nothing more is done.
                tracing::warn!(
                    reason,
                    "a batch was refused; the space is not served here any more"
                );
                return self.tenure.iter().for_each(Tenure::lose);
            }
            Err(error) => {
                self.count(MetricCounter::CommitFailures, 1);
                tracing::error!(%error, "the journal cannot be written; changes are refused and it is tried again");
                let output = self.kernel.rolled_back(outputs, &error.to_string());
                vec![Stepped {
                    output,
                    since: now,
                    run: None,
                    is_telemetry: false,
                }]
            }
        };
        self.speak(stepped).await;
    }

    /// Sends and acts, unless the space is another node's; while this one may not speak, it waits.
    async fn speak(&mut self, stepped: Vec<Stepped>) {
        if !self.wait_until_heard().await {
            return; // `run` ends
        }
        self.send_and_start_effects(stepped);
        if let Some(tenure) = &self.tenure {
            let has_terminals = !self.effects.services.terminals.is_empty();
            tenure.set_busy(has_terminals || !self.kernel.running().is_empty());
        }
    }

    /// Writes what some steps want to have written, in one transaction. A step with a record that can never be written is
    /// left out, with those that rest on it: the kernel says what is sent instead, and the others are written.
    async fn write(&mut self, outputs: &mut [Output]) -> Result<(), JournalError> {
        loop {
            let counts: Vec<usize> = outputs.iter().map(|output| output.records.len()).collect();
            let mut records = Vec::with_capacity(counts.iter().sum());
            for output in &mut *outputs {
                records.append(&mut output.records);
            }
            let seq = self.kernel.seq();
            let written = self.journal.commit(Batch { seq, records }).await;
            let Err(RefusedBatch { error, batch }) = written else {
                return Ok(());
            };
            let mut records = batch.records.into_iter();
            for (output, count) in outputs.iter_mut().zip(&counts) {
                output.records = records.by_ref().take(*count).collect();
            }
            let JournalError::BadRecord { index, reason } = error else {
                return Err(error);
            };
            let Some((step, record)) = find_step(&counts, index) else {
                return Err(JournalError::Unwritable(reason)); // no record of ours: something else is wrong
            };
            tracing::error!(%reason, "a record cannot be written; its step is refused, the others go on");
            self.kernel.step_failed(outputs, step, record, &reason);
        }
    }

    fn send_and_start_effects(&mut self, stepped: Vec<Stepped>) {
        let mut effects = Vec::new();
        for Stepped {
            output,
            since,
            is_telemetry,
            ..
        } in stepped
        {
            let waited_ms = u32::try_from(since.elapsed().as_millis()).unwrap_or(u32::MAX);
            if !is_telemetry {
                self.count(MetricCounter::Frames, output.frames.len() as u64);
            }
            for outgoing in output.frames {
                self.delivery.put(outgoing, waited_ms);
            }
            effects.extend(output.effects);
        }
        self.delivery.hand_over();
        let runtime = self.effects_runtime.clone();
        let _entered = runtime.enter();
        for effect in effects {
            self.start_effect(effect);
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    fn start_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Read { ticket, query } => self.effects.read(ticket, query),
            Effect::Complete { ticket, complete } => self.effects.complete(ticket, *complete),
            Effect::CheckMessage { ticket, check } => self.effects.check_message(ticket, *check),
            Effect::ChangeModels { ticket, change } => self.effects.change_models(ticket, *change),
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
            Effect::Survey(survey) => self.effects.survey(*survey),
            Effect::ClientAnswered { ask, answer, hold } => {
                self.effects.asker.deliver(ask, answer, hold);
            }
            Effect::RecordRender { session, rendered } => {
                self.effects.record_render(&session, rendered)
            }
            Effect::RunTurn(turn) => {
                self.streams.begin(turn.run);
                self.effects.run_turn(*turn);
            }
            Effect::StopTurn { run } => {
                self.streams.end(run);
                self.effects.stop_turn(run);
            }
            Effect::Reply { run, reply } => self.effects.reply(run, reply),
            Effect::EndChat { chat } => self.effects.end_chat(&chat),
            Effect::UnloadChat { chat } => self.effects.unload_chat(&chat),
            Effect::RemoveWorktree(facts) => self.effects.remove_worktree(facts),
            Effect::LookAtWorktree { ticket, facts } => {
                self.effects.look_at_worktree(ticket, facts);
            }
            Effect::ComputeChangeset(place) => self.effects.compute_changeset(*place),
            Effect::OperateChangeset { ticket, operation } => {
                self.effects.operate_changeset(ticket, *operation);
            }
            Effect::ListSettingValues { ticket, question } => {
                self.effects.list_setting_values(ticket, question);
            }
            Effect::UseFiles { ticket, task } => self.effects.use_files(ticket, *task),
            Effect::BeginWatch { ticket, task } => self.effects.begin_watch(ticket, *task),
            Effect::EndWatch { watch } => self.effects.end_watch(&watch),
            Effect::CallNamed { run, call, id } => self.effects.name_call(run, call, id),
            Effect::SettingsChanged {
                session,
                provider,
                values,
            } => self.effects.tell_settings(&session, &provider, &values),
            Effect::TitleChanged {
                chat,
                provider,
                title,
            } => self.effects.tell_title(&chat, &provider, &title),
            Effect::RequestMcp(wish) => self.effects.request_mcp(&wish),
            Effect::Authenticate(brought) => self.effects.authenticate(brought),
            Effect::Terminal { terminal, act } => {
                self.effects.services.terminals.act(terminal, act);
            }
            Effect::WakeAt { timer, at } => self.set_timer(timer, at),
            Effect::Close { peer, why } => self.close(peer, why),
            Effect::Forget { peer } => {
                self.effects.pace.remove_peer(peer);
                self.delivery.remove(peer);
            }
            Effect::Pause { peer } => {
                if let Some(link) = self.delivery.link(peer) {
                    link.pause();
                }
            }
            Effect::Resume { peer } => {
                if let Some(link) = self.delivery.link(peer) {
                    link.resume();
                }
            }
            Effect::Probe => self.effects.probe(),
            Effect::Collect { buckets, before } => self.effects.collect(buckets, before),
            Effect::Configure { values } => self.configure(&values),
        }
    }

    fn set_timer(&mut self, timer: kernel::Timer, at: wire::Timestamp) {
        self.timers_set += 1;
        let due = (self.clock.instant_of(at), self.timers_set);
        self.timers.insert(due, timer);
    }

    fn close(&self, peer: kernel::PeerId, why: CloseReason) {
        if let Some(link) = self.delivery.link(peer) {
            let (code, reason) = match why {
                CloseReason::Superseded => (1008, "another connection took this client id"),
                CloseReason::UnsupportedVersion => (1002, "no acceptable protocol version"),
                CloseReason::Policy => (1008, "a limit was exceeded"),
            };
            link.close(code, reason);
        }
    }

    fn configure(&self, values: &wire::Object) {
        if let (Some(hook), Some(level)) = (&self.on_log_level, values.get("logLevel")) {
            hook(level.as_str().unwrap_or("info"));
        }
    }
}

/// The step whose record stands at `index` of a batch, and the record's place in it.
fn find_step(counts: &[usize], mut index: usize) -> Option<(usize, usize)> {
    for (step, count) in counts.iter().enumerate() {
        if index < *count {
            return Some((step, index));
        }
        index -= count;
    }
    None
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
