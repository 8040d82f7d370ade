//! Commands of a chat that run in the background: each by its id, with what it printed since somebody last looked.
//!
//! Promises: output that waits is bounded, and what was dropped of it is said; how many run is bounded; dropping the list
//! kills all of them. They run on threads of their own: a runtime that ends does not wait for them. A command whose thread
//! dies has ended, and nobody waits for it any longer.
//! Must not know: tools, models.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use terminals::{
    CommandEnd, CommandHandle, KillOnDrop, OutputSink, ProcessRecord, ShellCommand, run_to_end,
};
use tokio::sync::{Notify, mpsc, oneshot};

use super::super::ToolError;
use super::super::format::group_digits;
use super::call_scope::{ShowRequest, current_mark};
use super::capture::{after_boundary, before_boundary};
use super::in_terminal::TerminalCommand;
use crate::task;

/// Commands of one chat that run at once.
const RUNNING_MAX: usize = 16;

/// Commands of one chat that are remembered: those that ended longest ago are forgotten first.
const KNOWN_MAX: usize = 32;

/// Output that waits to be looked at; of more, the beginning is dropped.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Output that is shown at once.
const SHOWN_BYTES_MAX: usize = super::super::TEXT_BYTES_MAX / 2;

/// The background commands of a chat.
#[derive(Default)]
pub(in super::super) struct BackgroundCommands(Mutex<Vec<BackgroundCommand>>);

impl std::fmt::Debug for BackgroundCommands {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<String> = self.0.lock().iter().map(|known| known.id.clone()).collect();
        formatter.debug_tuple("BackgroundCommands").field(&ids).finish()
    }
}

struct BackgroundCommand {
    id: String,
    text: String,
    shared: Arc<SharedOutput>,
    life: CommandLife,
}

/// What keeps a command running: it is killed when this is dropped.
enum CommandLife {
    Piped(KillOnDrop),
    InTerminal(Arc<TerminalCommand>),
}

impl CommandLife {
    fn kill(&self) {
        match self {
            Self::Piped(life) => life.kill(),
            Self::InTerminal(life) => life.kill(),
        }
    }

    /// Whether a person held its terminal at some time.
    fn was_taken(&self) -> bool {
        match self {
            Self::Piped(_) => false,
            Self::InTerminal(life) => life.was_taken(),
        }
    }
}

impl Drop for CommandLife {
    fn drop(&mut self) {
        match self {
            Self::Piped(life) => life.kill(),
            // Who follows it has it too.
            Self::InTerminal(life) => life.let_go(),
        }
    }
}

/// What the thread that follows a command and those who look at it share.
#[derive(Debug, Default)]
struct SharedOutput {
    state: Mutex<OutputState>,
    /// Something was printed, or it ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct OutputState {
    waiting: VecDeque<u8>,
    /// Bytes that were dropped since somebody last looked.
    dropped: u64,
    end: Option<Result<CommandEnd, String>>,
}

/// What a look at a command shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandOutput {
    /// The command.
    pub(super) command: String,
    /// What it printed since the last look, as far as it is shown.
    pub(super) text: String,
    /// How it ended, if it did and all of its output was shown.
    pub(super) end: Option<Result<CommandEnd, String>>,
    /// There is more to look at.
    pub(super) has_more: bool,
    /// A person held its terminal at some time.
    pub(super) was_taken: bool,
}

impl SharedOutput {}

struct BackgroundSink(Arc<SharedOutput>);

impl OutputSink for BackgroundSink {
    fn push(&mut self, bytes: &[u8]) {
        self.0.state.lock().push(bytes);
        self.0.changed.notify_waiters();
    }
}

impl OutputState {
    fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
        let beyond = self.waiting.len().saturating_sub(WAITING_BYTES_MAX);
        self.waiting.drain(..beyond);
        self.dropped += beyond as u64;
    }

    /// Takes what is to be shown now.
    fn take(&mut self) -> (String, bool) {
        let mut text = String::new();
        let waiting = self.waiting.make_contiguous();
        let cut = if self.dropped > 0 {
            let dropped = group_digits(self.dropped);
            text.push_str(&format!(
                "[{dropped} bytes were dropped here: they were printed long before anybody looked]\n"
            ));
            waiting.len() - after_boundary(waiting).len()
        } else {
            0
        };
        let has_more = waiting.len() - cut > SHOWN_BYTES_MAX;
        let shown = &waiting[cut..waiting.len().min(cut + SHOWN_BYTES_MAX)];
        // A character that is not whole yet waits for its end, unless there is none to come.
        let shown = if has_more || self.end.is_none() { before_boundary(shown) } else { shown };
        text.push_str(&String::from_utf8_lossy(shown));
        let taken = cut + shown.len();
        self.waiting.drain(..taken);
        self.dropped = 0;
        (text, has_more)
    }
}

impl BackgroundCommands {
    /// Starts a command; its id and its process.
    pub(super) async fn start(
        &self,
        command: ShellCommand,
    ) -> Result<(String, ProcessRecord), ToolError> {
        self.make_space()?;
        let shared = Arc::new(SharedOutput::default());
        let handle = CommandHandle::new(current_mark());
        let kill = KillOnDrop(handle.clone());
        let text = command.text.clone();
        let (started, has_started) = oneshot::channel();
        let follower = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("background command".to_owned());
        let spawned = thread.spawn(move || follow(&command, &handle, &follower, started));
        let failed = |why: String| ToolError(format!("the command could not be started: {why}"));
        spawned.map_err(|error| failed(error.to_string()))?;
        let Ok(process) = has_started.await else {
            let end = shared.state.lock().end.take();
            let why = end.and_then(Result::err);
            return Err(failed(
                why.unwrap_or_else(|| "internal error while running it".to_owned()),
            ));
        };
        let id = self.add(process, text, shared, CommandLife::Piped(kill));
        Ok((id, process))
    }

    /// Starts a command in a terminal; its id, its process, and the URI of the terminal if it is shown.
    pub(super) async fn start_in_terminal(
        &self,
        command: ShellCommand,
        title: String,
        shower: &mpsc::Sender<ShowRequest>,
    ) -> Result<(String, ProcessRecord, Option<String>), ToolError> {
        self.make_space()?;
        let shared = Arc::new(SharedOutput::default());
        let text = command.text.clone();
        let sink = Box::new(BackgroundSink(Arc::clone(&shared)));
        let running = TerminalCommand::start(command, title, shower, sink).await?;
        let (process, resource) = (running.process(), running.resource.clone());
        let id = self.follow_terminal(running, text, shared);
        Ok((id, process, resource))
    }

    /// Takes a command over that runs in a terminal already.
    pub(super) fn adopt(
        &self,
        running: TerminalCommand,
        text: String,
    ) -> Result<(String, ProcessRecord), ToolError> {
        self.make_space()?;
        let shared = Arc::new(SharedOutput::default());
        running.redirect(Box::new(BackgroundSink(Arc::clone(&shared))));
        let process = running.process();
        Ok((self.follow_terminal(running, text, shared), process))
    }

    fn follow_terminal(
        &self,
        running: TerminalCommand,
        text: String,
        shared: Arc<SharedOutput>,
    ) -> String {
        let process = running.process();
        let running = Arc::new(running);
        let (followed, follower) = (Arc::clone(&running), Arc::clone(&shared));
        task::spawn(Box::pin(async move {
            let _end = EndOnDrop(&follower);
            let end = followed.ended().await;
            follower.state.lock().end = Some(Ok(end));
        }));
        self.add(process, text, shared, CommandLife::InTerminal(running))
    }

    fn add(
        &self,
        process: ProcessRecord,
        text: String,
        shared: Arc<SharedOutput>,
        life: CommandLife,
    ) -> String {
        let id = format!("b{}", process.pid);
        let mut commands = self.0.lock();
        commands.retain(|known| known.id != id);
        commands.push(BackgroundCommand { id: id.clone(), text, shared, life });
        id
    }

    fn make_space(&self) -> Result<(), ToolError> {
        let mut commands = self.0.lock();
        let is_running = |command: &BackgroundCommand| command.shared.state.lock().end.is_none();
        let running: Vec<&BackgroundCommand> =
            commands.iter().filter(|command| is_running(command)).collect();
        if running.len() >= RUNNING_MAX {
            let ids: Vec<&str> = running.iter().map(|command| command.id.as_str()).collect();
            return Err(ToolError(format!(
                "{RUNNING_MAX} commands run in the background already: {}; `bash_kill` ends one",
                ids.join(", ")
            )));
        }
        while commands.len() >= KNOWN_MAX {
            let ended = commands.iter().position(|command| !is_running(command));
            // More are known than may run, so one of them has ended.
            commands.remove(ended.unwrap_or(0));
        }
        Ok(())
    }

    /// What a command printed since the last look; waits for something new at most so long.
    pub(super) async fn look(&self, id: &str, wait: Duration) -> Result<CommandOutput, ToolError> {
        let (shared, command) = self.find(id)?;
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let is_quiet = {
            let state = shared.state.lock();
            state.waiting.is_empty() && state.end.is_none()
        };
        if is_quiet && !wait.is_zero() {
            // Nothing came in time: then that is what is shown.
            let _ = tokio::time::timeout(wait, changed).await;
        }
        // Before the output is locked: elsewhere the list is locked first.
        let was_taken = self.was_taken(id);
        let mut state = shared.state.lock();
        let (text, has_more) = state.take();
        Ok(CommandOutput {
            command,
            text,
            end: state.end.clone().filter(|_| !has_more),
            has_more,
            was_taken,
        })
    }

    fn was_taken(&self, id: &str) -> bool {
        let commands = self.0.lock();
        let command = commands.iter().find(|command| command.id == id);
        command.is_some_and(|command| command.life.was_taken())
    }

    /// Kills a command, and waits until it is gone.
    pub(super) async fn kill(&self, id: &str) -> Result<CommandOutput, ToolError> {
        let (shared, _) = self.find(id)?;
        loop {
            let changed = shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if shared.state.lock().end.is_some() {
                return self.look(id, Duration::ZERO).await;
            }
            if let Some(command) = self.0.lock().iter().find(|known| known.id == id) {
                command.life.kill();
            }
            changed.await;
        }
    }

    fn find(&self, id: &str) -> Result<(Arc<SharedOutput>, String), ToolError> {
        let commands = self.0.lock();
        let command = commands.iter().find(|command| command.id == id);
        command
            .map(|command| (Arc::clone(&command.shared), command.text.clone()))
            .ok_or_else(|| {
                let ids: Vec<&str> = commands.iter().map(|known| known.id.as_str()).collect();
                let known = if ids.is_empty() { "there is none".to_owned() } else { format!("there are: {}", ids.join(", ")) };
                ToolError(format!(
                    "there is no background command `{id}` in this chat; {known}. Those of before a restart of the host \
                     have ended"
                ))
            })
    }

    pub(in super::super) fn is_any_running(&self) -> bool {
        self.0.lock().iter().any(|command| command.shared.state.lock().end.is_none())
    }

    /// Kills all of them.
    pub(in super::super) fn kill_all(&self) {
        self.0.lock().clear();
    }
}

fn follow(
    command: &ShellCommand,
    handle: &CommandHandle,
    shared: &Arc<SharedOutput>,
    started: oneshot::Sender<ProcessRecord>,
) {
    let _end = EndOnDrop(shared);
    let mut sink = BackgroundSink(Arc::clone(shared));
    let mut started = Some(started);
    let end = run_to_end(command, handle, &mut sink, &mut |process| {
        // Who started it may be gone: then it is killed, and this ends.
        if let Some(started) = started.take() {
            let _ = started.send(process);
        }
    });
    shared.state.lock().end = Some(end.map_err(|error| error.to_string()));
}

/// Ends the waits for a command when its follower ends, for whatever reason.
struct EndOnDrop<'a>(&'a SharedOutput);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        let unknown = || Err("internal error while running it".to_owned());
        self.0.state.lock().end.get_or_insert_with(unknown);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_whose_thread_dies_has_ended() {
        let shared = Arc::new(SharedOutput::default());
        let follower = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let _end = EndOnDrop(&follower);
            panic!("a defect");
        });
        assert!(thread.join().is_err());
        let end = shared.state.lock().end.clone();
        assert_eq!(end, Some(Err("internal error while running it".to_owned())));
        // What is known of an end stays.
        shared.state.lock().end = Some(Err("its own".to_owned()));
        drop(EndOnDrop(&shared));
        assert_eq!(shared.state.lock().end, Some(Err("its own".to_owned())));
    }

    #[test]
    fn output_that_waits_is_bounded_and_shown_in_whole_characters() {
        let mut state = OutputState::default();
        state.push("ä".as_bytes());
        state.push(&"ö".as_bytes()[..1]);
        assert_eq!(state.take(), ("ä".to_owned(), false));
        state.push(&"ö".as_bytes()[1..]);
        assert_eq!(state.take(), ("ö".to_owned(), false));
        state.push("é".repeat(WAITING_BYTES_MAX / 2).as_bytes());
        state.push(b"abc");
        let (text, has_more) = state.take();
        assert!(has_more && !text.contains('\u{fffd}'));
        assert!(text.starts_with("[3 bytes were dropped here"), "{}", &text[..80]);
        let mut rest = String::new();
        while !state.waiting.is_empty() {
            rest.push_str(&state.take().0);
        }
        assert!(rest.ends_with("éabc") && !rest.contains("dropped"));
    }
}
