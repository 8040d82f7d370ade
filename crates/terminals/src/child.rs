//! A command from its start to the death of everything it started.
//!
//! Promises: when who waits for it is gone, the shell and all that it started are killed before the drop returns, and what
//! was born meanwhile right after; when the host itself is killed, a watcher in the session kills it. A process that keeps the
//! output open does not keep the call waiting once the shell is gone.
//! Must not know: tools, models, what becomes of the output.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use workspace::CommandDirectory;

use crate::process_record::ProcessRecord;
use crate::pty::PtyPair;
use crate::session::{self, Mark};

/// How long output is still read when the shell is gone and all that can be killed is killed.
pub(crate) const DRAIN_MAX: Duration = Duration::from_millis(250);

pub(crate) const CHUNK_BYTES: usize = 64 * 1_024;

/// Begins as the leader of the session and becomes the shell. A watcher beside it, which is not its child, kills
/// the session, and what has its mark, when its input ends: when the host is gone, for whatever reason.
const PRELUDE: &str = r#"
exec 3<&0 0<>"${2:-/dev/null}"
(
  {
    trap '' HUP INT QUIT TERM TSTP
    read -r _ <&3
    read -r self _ </proc/self/stat
    for stat in /proc/[0-9]*/stat; do
      read -r line <"$stat" || continue
      set -- ${line##*) }
      process=${stat#/proc/}
      process=${process%/stat}
      [ "$process" != "$self" ] || continue
      if [ "$4" = "$$" ] || grep -qsF "GREENROOM_CALL=$GREENROOM_CALL" "/proc/$process/environ"; then
        kill -KILL "$process"
      fi
    done
    kill -KILL 0
  } >/dev/null 2>&1 &
)
exec 3<&-
if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi
exec sh -c "$1"
"#;

/// What a watcher is recognised by: it waits for the end of its input.
pub(crate) const WATCHER: &str = "read -r _ <&3";

pub struct ShellCommand {
    pub text: String,
    pub directory: CommandDirectory,
    pub variables: Vec<(OsString, OsString)>,
    /// Absent: it runs until it ends or is killed.
    pub timeout: Option<Duration>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    Exited(i32),
    Signalled(i32),
    TimedOut(Duration),
}

/// Takes what a command prints, piece by piece.
pub trait OutputSink {
    fn push(&mut self, bytes: &[u8]);

    /// When [`OutputSink::flush`] should be called, if nothing else happens before.
    fn due(&self) -> Option<Instant> {
        None
    }

    fn flush(&mut self) {}
}

/// What the task that waits and the thread that follows the process share.
#[derive(Debug, Clone)]
pub struct CommandHandle {
    state: Arc<Mutex<ProcessState>>,
    mark: Mark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ProcessState {
    #[default]
    NotStarted,
    /// Not reaped: the number is the shell's own.
    Running(Pid),
    /// Reaped, or never to be started.
    Ended,
}

impl CommandHandle {
    pub fn new(mark: Mark) -> Self {
        let state = Arc::default();
        Self { state, mark }
    }

    pub(crate) fn mark(&self) -> &Mark {
        &self.mark
    }
}

/// Kills the command when its caller is gone.
#[derive(Debug)]
pub struct KillOnDrop(pub CommandHandle);

impl KillOnDrop {
    /// Kills the command now. What it had started meanwhile is killed by who runs it.
    pub fn kill(&self) {
        let mut state = self.0.state.lock();
        match *state {
            ProcessState::NotStarted => *state = ProcessState::Ended,
            ProcessState::Running(leader) => session::kill_now(leader, &self.0.mark),
            ProcessState::Ended => {}
        }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell that runs. Killed and reaped when dropped, with its session.
pub(crate) struct LeadingProcess<'a> {
    child: Child,
    pub(crate) leader: Pid,
    /// Becomes readable at the end, without reaping.
    pub(crate) process: OwnedFd,
    handle: &'a CommandHandle,
    status: Option<ExitStatus>,
}

impl<'a> LeadingProcess<'a> {
    /// Starts what `spawn` starts, unless it was killed before.
    pub(crate) fn start(
        handle: &'a CommandHandle,
        spawn: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<Self> {
        let mut state = handle.state.lock();
        if *state == ProcessState::Ended {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let child = spawn()?;
        let leader = Pid::from_child(&child);
        *state = ProcessState::Running(leader);
        let process = match rustix::process::pidfd_open(leader, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(errno) => {
                session::kill_group(leader);
                *state = ProcessState::Ended;
                return Err(errno.into());
            }
        };
        drop(state);
        Ok(Self { child, leader, process, handle, status: None })
    }

    /// Kills the session. Its end is seen like any other.
    pub(crate) fn kill(&self) {
        if self.status.is_none() {
            session::kill_all(self.leader, &self.handle.mark);
        }
    }

    /// Kills the session and reaps the leader.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        session::kill_all(self.leader, &self.handle.mark);
        self.reap()
    }

    /// Waits for the leader alone.
    pub(crate) fn reap(&mut self) -> io::Result<ExitStatus> {
        poll([Some(self.process.as_fd())], None)?;
        let mut state = self.handle.state.lock();
        // Reaping frees the process id: it must not be used for killing any more.
        *state = ProcessState::Ended;
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for LeadingProcess<'_> {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.end();
        }
    }
}

/// How the shell becomes a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    /// A session of its own, without a terminal.
    BySetsid,
    /// Where there is no `setsid`: processes that make groups of their own are then out of reach.
    OfGroupOnly,
}

impl ShellCommand {
    /// Spawns it behind a pipe, in a session of its own where that is possible.
    fn spawn_piped(&self, mark: &Mark, output: &PipeWriter) -> io::Result<Child> {
        let outlet = || Ok(output.try_clone()?.into());
        match self.spawn(Leader::BySetsid, mark, &outlet, None) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.spawn(Leader::OfGroupOnly, mark, &outlet, None)
            }
            spawned => spawned,
        }
    }

    /// Spawns it in a session of its own, with this terminal.
    pub(crate) fn spawn_in(&self, mark: &Mark, pty: &PtyPair) -> io::Result<Child> {
        let outlet = || Ok(pty.end.try_clone()?.into());
        self.spawn(Leader::BySetsid, mark, &outlet, Some(&pty.name))
    }

    fn spawn(
        &self,
        leader: Leader,
        mark: &Mark,
        outlet: &dyn Fn() -> io::Result<Stdio>,
        terminal: Option<&str>,
    ) -> io::Result<Child> {
        let mut shell = match leader {
            Leader::BySetsid => {
                let mut setsid = process::Command::new("setsid");
                setsid.arg("sh");
                setsid
            }
            Leader::OfGroupOnly => {
                let mut sh = process::Command::new("sh");
                sh.process_group(0);
                sh
            }
        };
        shell
            .args(["-c", PRELUDE, "sh", &self.text])
            .args(terminal)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("PWD", &self.directory.name)
            .env(session::MARK, mark.value())
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(outlet()?)
            .stderr(outlet()?)
            .spawn()
    }
}

/// Starts a command, reads its output, and ends it. `started` hears which process it is.
pub fn run_to_end(
    command: &ShellCommand,
    handle: &CommandHandle,
    sink: &mut dyn OutputSink,
    started: &mut dyn FnMut(ProcessRecord),
) -> io::Result<CommandEnd> {
    let (reader, writer) = io::pipe()?;
    let mut reader = OutputReader::new(reader)?;
    let spawn = || command.spawn_piped(&handle.mark, &writer);
    let mut shell = LeadingProcess::start(handle, spawn)?;
    drop(writer);
    started(session::record_of(shell.leader));
    // A time that no clock reaches is none.
    let timeout = command.timeout;
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let timed_out = loop {
        let until = [sink.due(), deadline].into_iter().flatten().min();
        let [printed, ended] = poll([reader.open(), Some(shell.process.as_fd())], until)?;
        if printed {
            reader.read(sink)?;
        }
        if ended {
            break false;
        }
        sink.flush();
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break true;
        }
    };
    let status = shell.end()?;
    let drained = Instant::now() + DRAIN_MAX;
    while reader.open().is_some() && Instant::now() < drained {
        if let [true] = poll([reader.open()], Some(drained))? {
            reader.read(sink)?;
        }
    }
    Ok(if timed_out {
        CommandEnd::TimedOut(command.timeout.unwrap_or_default())
    } else {
        CommandEnd::of(status)
    })
}

impl CommandEnd {
    pub(crate) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Signalled(signal.unwrap_or(0)),
        }
    }
}

/// The output of a command.
struct OutputReader {
    /// Absent once all writers are closed.
    pipe: Option<PipeReader>,
    buffer: Vec<u8>,
}

impl OutputReader {
    fn new(pipe: PipeReader) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe: Some(pipe), buffer: vec![0; CHUNK_BYTES] })
    }

    fn open(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    fn read(&mut self, sink: &mut dyn OutputSink) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            // All writers are closed.
            return Ok(());
        };
        match pipe.read(&mut self.buffer) {
            Ok(0) => self.pipe = None,
            Ok(bytes) => sink.push(&self.buffer[..bytes]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Waits until one of these can be read, or until the deadline; returns which can.
fn poll<const N: usize>(
    sources: [Option<BorrowedFd<'_>>; N],
    until: Option<Instant>,
) -> io::Result<[bool; N]> {
    poll_for(sources.map(|source| source.map(|source| (source, PollFlags::IN))), until)
}

/// Waits until one of these is ready for what is wanted of it, or until the deadline; returns which are.
pub(crate) fn poll_for<const N: usize>(
    sources: [Option<(BorrowedFd<'_>, PollFlags)>; N],
    until: Option<Instant>,
) -> io::Result<[bool; N]> {
    let mut waiting: Vec<PollFd<'_>> = sources
        .iter()
        .flatten()
        .map(|(source, wanted)| PollFd::from_borrowed_fd(*source, *wanted))
        .collect();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(|left| Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    match rustix::event::poll(&mut waiting, left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut ready = waiting.iter().map(|source| !source.revents().is_empty());
    Ok(sources.map(|source| source.is_some() && ready.next() == Some(true)))
}
