//! Runs git as a child process: with an environment of our own, a deadline, and a bound on what it prints.
//!
//! Promises: the child asks nobody anything (no terminal prompt, no helper for passwords, no editor, no pager) and speaks to no other
//! machine. It and what it started are ended when the time is over or nobody waits any more.
//! Must not know: what is run.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::GitError;
use crate::Cancellation;

/// How long a call that only reads may take, and one that runs what the user asked for.
pub(super) const READ_TIME: Duration = Duration::from_secs(30);
pub(super) const WRITE_TIME: Duration = Duration::from_secs(120);

/// What a call may print.
pub(super) const OUTPUT_BYTES_MAX: usize = 64 * 1_024 * 1_024;
const SAID_BYTES_MAX: u64 = 64 * 1_024;

/// How often it is looked whether anybody still waits.
const CHECK_TIME: Duration = Duration::from_millis(25);

/// What git gets to clean up after itself before it is killed.
const GRACE_TIME: Duration = Duration::from_secs(2);

/// Variables of ours that a child gets: who the user is, and where programs and settings lie.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// What every child gets.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_MERGE_AUTOEDIT", "no"),
];

/// One call of git.
pub(super) struct GitCall<'a> {
    command: Command,
    input: Option<Vec<u8>>,
    time: Duration,
    cancellation: &'a Cancellation,
}

/// What a call came to.
pub(super) struct GitOutput {
    pub status: ExitStatus,
    pub printed: Vec<u8>,
    /// On its standard error.
    pub said: Vec<u8>,
}

impl<'a> GitCall<'a> {
    /// A call in a directory, with settings that take precedence over all files.
    pub(super) fn new(
        directory: &Path,
        settings: &[(OsString, OsString)],
        cancellation: &'a Cancellation,
    ) -> Self {
        let mut command = Command::new(program());
        command.current_dir(directory).env_clear().process_group(0);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(ENVIRONMENT.iter().copied());
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (index, (key, value)) in settings.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        Self { command, input: None, time: READ_TIME, cancellation }
    }

    pub(super) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    pub(super) fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// What it printed; an error if it failed.
    pub(super) fn output(self) -> Result<Vec<u8>, GitError> {
        let output = self.run()?;
        if output.status.success() {
            Ok(output.printed)
        } else {
            Err(GitError::of_output(&output.said))
        }
    }

    /// Runs it, whatever it comes to.
    pub(super) fn run(mut self) -> Result<GitOutput, GitError> {
        let stdin = match self.input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            self.command.spawn().map_err(|error| GitError::NotStarted(error.to_string()))?;
        if let (Some(input), Some(mut stdin)) = (self.input, child.stdin.take()) {
            // A child that ends without reading all of it says so by its status.
            std::thread::spawn(move || stdin.write_all(&input));
        }
        let printed = child.stdout.take().map(|pipe| collect(pipe, OUTPUT_BYTES_MAX as u64 + 1));
        let said = child.stderr.take().map(|pipe| collect(pipe, SAID_BYTES_MAX));
        let deadline = Instant::now() + self.time;
        let wait = |pipe: Option<Receiver<Vec<u8>>>| match pipe {
            Some(pipe) => receive(&pipe, deadline, self.time, self.cancellation),
            None => Ok(Vec::new()),
        };
        let result = wait(printed).and_then(|printed| {
            if printed.len() > OUTPUT_BYTES_MAX {
                let mib = OUTPUT_BYTES_MAX / 1_024 / 1_024;
                return Err(GitError::TooMuch { mib });
            }
            let said = wait(said)?;
            let status = wait_for_exit(&mut child, deadline, self.time, self.cancellation)?;
            Ok(GitOutput { status, printed, said })
        });
        if result.is_err() {
            end(&mut child);
        }
        result
    }
}

/// Where git lies. Named by its path it is started without a copy of this process's tables of memory, which takes long in a
/// host that holds much; a name that is yet to be looked for in a new environment is not.
fn program() -> PathBuf {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| path.is_absolute() && path.is_file();
    let mut candidates = std::env::split_paths(&directories).map(|path| path.join("git"));
    candidates.find(is_program).unwrap_or_else(|| "git".into())
}

/// Reads a pipe in a thread of its own, which ends with it.
fn collect(pipe: impl Read + Send + 'static, bytes_max: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(bytes_max);
        // What was read until an error counts; the child's status tells the rest.
        let _ = pipe.read_to_end(&mut bytes);
        let is_full = bytes.len() as u64 >= bytes_max;
        let _ = sender.send(bytes); // nobody waits any more
        if is_full {
            let _ = std::io::copy(&mut pipe.into_inner(), &mut std::io::sink());
        }
    });
    receiver
}

fn receive(
    pipe: &Receiver<Vec<u8>>,
    deadline: Instant,
    time: Duration,
    cancellation: &Cancellation,
) -> Result<Vec<u8>, GitError> {
    loop {
        match pipe.recv_timeout(CHECK_TIME) {
            Ok(bytes) => return Ok(bytes),
            Err(RecvTimeoutError::Timeout) => check_time(deadline, time, cancellation)?,
            Err(RecvTimeoutError::Disconnected) => return Err(GitError::Unreadable),
        }
    }
}

fn wait_for_exit(
    child: &mut Child,
    deadline: Instant,
    time: Duration,
    cancellation: &Cancellation,
) -> Result<ExitStatus, GitError> {
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => check_time(deadline, time, cancellation)?,
            Err(error) => return Err(GitError::NotStarted(error.to_string())),
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(CHECK_TIME);
    }
}

fn check_time(
    deadline: Instant,
    time: Duration,
    cancellation: &Cancellation,
) -> Result<(), GitError> {
    if cancellation.is_cancelled() {
        return Err(GitError::Cancelled);
    }
    if Instant::now() < deadline {
        Ok(())
    } else {
        Err(GitError::TimedOut { seconds: time.as_secs() })
    }
}

/// Ends a child and what it started: git removes its lock files if it is asked to end.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| {
        if let Some(group) = group {
            // It may be gone by now.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    };
    signal(Signal::TERM);
    let never = Cancellation::default();
    let deadline = Instant::now() + GRACE_TIME;
    let ended = wait_for_exit(child, deadline, GRACE_TIME, &never);
    signal(Signal::KILL);
    if ended.is_err() {
        let _ = child.wait(); // killed: it cannot take long
    }
}
