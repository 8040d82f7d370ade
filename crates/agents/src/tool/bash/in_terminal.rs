//! A command in a terminal that people can see, take over and type in.
//!
//! Promises: the model gets what it would get behind a pipe, and hears if somebody took the terminal over. Dropping the call kills the
//! command, unless a person holds its terminal by then: it is killed when that person lets go. The time of a command stands still
//! while a person holds its terminal.
//! Must not know: models, channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_api::{ShownTerminal, TerminalChange, TerminalHolder, TerminalOffer};
use async_trait::async_trait;
use parking_lot::Mutex;
use terminals::{
    CommandEnd, OutputSink, Program, RunningTerminal, ShellCommand, StartDirectory, TerminalEvent,
    TerminalLaunch, TerminalSize,
};
use tokio::sync::{Notify, mpsc, oneshot};

use super::super::ToolError;
use super::call_scope::{ShowRequest, current_mark};
use super::plain_lines::PlainLines;
use crate::task;

const COLUMNS: i64 = 120;
const ROWS: i64 = 30;

/// How long a line without an end waits for it.
const LINE_WAIT: Duration = Duration::from_secs(1);

/// A command in its terminal. Killed when dropped, unless a person holds it.
pub(crate) struct TerminalCommand {
    terminal: Arc<CommandTerminal>,
    /// The URI of its channel, if it is shown.
    pub(crate) resource: Option<String>,
    tap: SharedTap,
}

/// The terminal as the host shows it.
struct CommandTerminal {
    running: RunningTerminal,
    hold: Mutex<TerminalHold>,
    /// A person held it at least once.
    was_taken: AtomicBool,
    changed: Notify,
}

/// Who holds a terminal. Under one lock: the agent may let go while a person gives back.
struct TerminalHold {
    holder: TerminalHolder,
    /// The agent let go of it while a person held it: it ends with that.
    is_abandoned: bool,
}

/// Why nobody waits for a command any more.
pub(super) enum CommandWaitEnd {
    Ended(CommandEnd),
    /// Somebody wants it to go on while the agent does too.
    Released,
}

impl TerminalCommand {
    /// Starts a command in a terminal and has it shown; `sink` gets what it prints as plain lines.
    pub(crate) async fn start(
        command: ShellCommand,
        title: String,
        show: &mpsc::Sender<ShowRequest>,
        sink: Box<dyn OutputSink + Send>,
    ) -> Result<Self, ToolError> {
        let tap = SharedTap::new(sink);
        let directory = command.directory.name.to_string_lossy().into_owned();
        let launch = TerminalLaunch {
            program: Program::Command { text: command.text, timeout: command.timeout },
            directory: StartDirectory::Open(command.directory),
            variables: command.variables,
            size: TerminalSize::clamped(COLUMNS, ROWS),
        };
        let opened = terminals::open(launch, current_mark(), Some(Box::new(tap.clone()))).await;
        let running = opened
            .map_err(|error| ToolError(format!("the command could not be started: {error}")))?;
        let terminal = Arc::new(CommandTerminal {
            running,
            hold: Mutex::new(TerminalHold { holder: TerminalHolder::Call, is_abandoned: false }),
            was_taken: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let mut started = Self { terminal, resource: None, tap };
        started.resource = started.show(title, directory, show).await;
        Ok(started)
    }

    async fn show(
        &self,
        title: String,
        directory: String,
        show: &mpsc::Sender<ShowRequest>,
    ) -> Option<String> {
        let terminal: Arc<dyn ShownTerminal> = Arc::clone(&self.terminal) as _;
        let offer =
            TerminalOffer { call: 0, title, directory, columns: COLUMNS, rows: ROWS, terminal };
        let (shown, is_shown) = oneshot::channel();
        let resource = match show.send(ShowRequest { offer, shown }).await {
            Ok(()) => is_shown.await.ok().flatten(),
            Err(_) => None, // the turn is over, and this will be dropped
        };
        if resource.is_none() {
            // Nobody sees it, but somebody must read it.
            let unseen = Arc::clone(&self.terminal);
            task::spawn(Box::pin(async move { while unseen.next().await.is_some() {} }));
        }
        resource
    }

    pub(super) fn process(&self) -> terminals::ProcessRecord {
        self.terminal.running.process()
    }

    /// Whether a person held it at some time.
    pub(super) fn was_taken(&self) -> bool {
        self.terminal.was_taken.load(Ordering::Relaxed)
    }

    /// Waits for the end, or until somebody lets the agent go on without it.
    pub(super) async fn wait(&self) -> CommandWaitEnd {
        loop {
            let changed = self.terminal.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.terminal.holder() == TerminalHolder::Chat {
                return CommandWaitEnd::Released;
            }
            tokio::select! {
                end = self.terminal.running.ended() => {
                    self.tap.finish();
                    return CommandWaitEnd::Ended(end);
                }
                () = changed => {}
            }
        }
    }

    pub(crate) async fn ended(&self) -> CommandEnd {
        let end = self.terminal.running.ended().await;
        self.tap.finish();
        end
    }

    /// From now on another gets what it prints.
    pub(super) fn redirect(&self, sink: Box<dyn OutputSink + Send>) {
        self.tap.0.lock().sink = sink;
    }

    pub(super) fn kill(&self) {
        self.terminal.running.kill();
    }

    /// Has it killed, without waiting for that.
    pub(crate) fn request_kill(&self) {
        self.terminal.running.request_kill();
    }

    /// The agent needs it no longer: it ends, at the latest when no person holds it.
    pub(crate) fn let_go(&self) {
        let mut hold = self.terminal.hold.lock();
        hold.is_abandoned = hold.holder == TerminalHolder::Client;
        let is_held = hold.is_abandoned;
        drop(hold);
        if !is_held {
            self.kill();
        }
    }

    /// Whether it was let go of while a person held it.
    pub(crate) fn is_left_to_person(&self) -> bool {
        self.terminal.hold.lock().is_abandoned
    }
}

impl Drop for TerminalCommand {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl CommandTerminal {
    fn holder(&self) -> TerminalHolder {
        self.hold.lock().holder
    }
}

#[async_trait]
impl ShownTerminal for CommandTerminal {
    async fn next(&self) -> Option<Vec<TerminalChange>> {
        let output = self.running.next().await?;
        Some(output.into_iter().map(terminal_change).collect())
    }

    fn write(&self, text: &str) -> bool {
        self.running.write(text).is_ok()
    }

    fn resize(&self, columns: i64, rows: i64) {
        self.running.resize(TerminalSize::clamped(columns, rows));
    }

    fn clear(&self) {
        self.running.clear();
    }

    fn redraw(&self) {
        self.running.redraw();
    }

    fn kill(&self) {
        self.running.request_kill();
    }

    fn set_holder(&self, holder: TerminalHolder) {
        let by_a_person = holder == TerminalHolder::Client;
        let is_abandoned = {
            let mut hold = self.hold.lock();
            hold.holder = holder;
            hold.is_abandoned
        };
        if is_abandoned && !by_a_person {
            // Nobody waits for it any more, and nobody else would end it.
            self.running.request_kill();
        }
        self.was_taken.fetch_or(by_a_person, Ordering::Relaxed);
        self.running.hold_time(by_a_person);
        self.changed.notify_waiters();
    }
}

/// What happened in a terminal, for the host.
pub fn terminal_change(output: TerminalEvent) -> TerminalChange {
    match output {
        TerminalEvent::Data(text) => TerminalChange::Data(text),
        TerminalEvent::Cleared => TerminalChange::Cleared,
        TerminalEvent::CommandDetection => TerminalChange::CommandDetection,
        TerminalEvent::CommandStarted { id, line, at } => {
            TerminalChange::CommandStarted { id, line, at }
        }
        TerminalEvent::CommandFinished { id, exit_code, duration } => {
            TerminalChange::CommandFinished {
                id,
                exit_code: exit_code.map(i64::from),
                duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            }
        }
        TerminalEvent::Title(title) => TerminalChange::Title(title),
        TerminalEvent::Directory(directory) => TerminalChange::Directory(directory),
        TerminalEvent::Ended(CommandEnd::Exited(code)) => {
            TerminalChange::Exited { exit_code: Some(i64::from(code)) }
        }
        TerminalEvent::Ended(CommandEnd::Signalled(_) | CommandEnd::TimedOut(_)) => {
            TerminalChange::Exited { exit_code: None }
        }
    }
}

/// Gets what the terminal prints, and hands it on as plain lines.
#[derive(Clone)]
struct SharedTap(Arc<Mutex<TapState>>);

struct TapState {
    lines: PlainLines,
    sink: Box<dyn OutputSink + Send>,
    pushed: Instant,
}

impl SharedTap {
    fn new(sink: Box<dyn OutputSink + Send>) -> Self {
        Self(Arc::new(Mutex::new(TapState {
            lines: PlainLines::default(),
            sink,
            pushed: Instant::now(),
        })))
    }

    /// The last line may have no end.
    fn finish(&self) {
        self.0.lock().push_rest();
    }
}

impl TapState {
    fn push_rest(&mut self) {
        let rest = self.lines.take_rest();
        if !rest.is_empty() {
            self.sink.push(&rest);
        }
    }
}

impl OutputSink for SharedTap {
    fn push(&mut self, bytes: &[u8]) {
        let mut state = self.0.lock();
        let plain = state.lines.push(bytes);
        state.pushed = Instant::now();
        if !plain.is_empty() {
            state.sink.push(&plain);
        }
    }

    fn due(&self) -> Option<Instant> {
        let state = self.0.lock();
        let line = (!state.lines.is_empty()).then(|| state.pushed + LINE_WAIT);
        [line, state.sink.due()].into_iter().flatten().min()
    }

    fn flush(&mut self) {
        let mut state = self.0.lock();
        if !state.lines.is_empty() && state.pushed.elapsed() >= LINE_WAIT {
            state.push_rest();
        }
        state.sink.flush();
    }
}
