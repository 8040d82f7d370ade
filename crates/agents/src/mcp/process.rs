//! The process of a server: started without a shell, in a session of its own, and ended with all that it started (MC-17).
//!
//! Promises: dropping it kills everything that has its mark; when the host itself is killed, one watcher for all servers does.
//! Must not know: what is said over its pipes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::error::McpError;
use super::program::{find_program, find_system_program};
use crate::tool::{Mark, command_environment, end_marked, kill_session, new_mark};

/// How long a process may take to exit when its input is closed, and again when it is asked to.
const GRACE: Duration = Duration::from_secs(3);

/// Kills what has the mark of this host's servers when its input ends: when the host is gone, for whatever reason.
const WATCHER: &str = r#"
trap '' INT TERM HUP
read -r _
for pass in 1 2 3; do
  for environ in /proc/[0-9]*/environ; do
    process=${environ#/proc/}
    process=${process%/environ}
    if grep -qsF "GREENROOM_CALL=$1" "$environ"; then kill -KILL "$process" 2>/dev/null; fi
  done
done
"#;

/// What is to be started.
pub(super) struct ServerCommand<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, String>,
    pub directory: &'a Path,
}

/// A server's process.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    leader: Option<Pid>,
    mark: Mark,
}

/// The ends of its pipes.
pub(super) struct Pipes {
    pub input: ChildStdin,
    pub output: ChildStdout,
    pub errors: ChildStderr,
}

impl ServerCommand<'_> {
    pub(super) fn start(&self) -> Result<(ServerProcess, Pipes), McpError> {
        let program = find_program(self.command, self.env, self.directory)
            .ok_or_else(|| McpError::CommandMissing { command: self.command.to_owned() })?;
        let prefix = watch().map_err(|error| McpError::NotStarted(error.to_string()))?;
        let mark = Mark::named(format!("{prefix}-{}", new_mark()));
        let mut child =
            self.spawn(&program, &mark).map_err(|error| McpError::NotStarted(error.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let process = ServerProcess { child, leader: leader.and_then(Pid::from_raw), mark };
        match pipes {
            (Some(input), Some(output), Some(errors)) => {
                let pipes = Pipes { input, output, errors };
                Ok((process, pipes))
            }
            _ => Err(McpError::NotStarted("it has no pipes".to_owned())),
        }
    }

    fn spawn(&self, program: &Path, mark: &Mark) -> io::Result<Child> {
        // Not by a PATH that the declaration sets: what it names there was not agreed to.
        let leader = match find_system_program("setsid") {
            Some(setsid) => {
                let mut leader = process::Command::new(setsid);
                leader.arg(program);
                leader
            }
            None => {
                // Without `setsid` processes that make groups of their own are found by their mark alone.
                let mut leader = process::Command::new(program);
                leader.process_group(0);
                leader
            }
        };
        self.spawn_as(leader, mark)
    }

    fn spawn_as(&self, mut leader: process::Command, mark: &Mark) -> io::Result<Child> {
        leader
            .args(self.args)
            .env_clear()
            .envs(command_environment(&[]))
            .envs(self.env)
            .env(Mark::VARIABLE, mark.value())
            .env("PWD", self.directory)
            .current_dir(self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Command::from(leader).spawn()
    }
}

impl ServerProcess {
    /// Lets it go by itself now that its input is closed; kills it if it does not.
    pub(super) async fn stop(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_ok() {
            return; // what it left running is killed by the drop
        }
        if let Some(leader) = self.leader.filter(|_| self.child.id().is_some()) {
            let _ = rustix::process::kill_process_group(leader, Signal::TERM);
        }
        let _ = timeout(GRACE, self.child.wait()).await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        match self.leader.filter(|_| self.child.id().is_some()) {
            // It was not reaped: the number is its own.
            Some(leader) => kill_session(leader, &self.mark),
            None => {
                end_marked(&self.mark);
            }
        }
    }
}

/// Starts the watcher with the first server; returns how all marks begin. It reads from a pipe that only this process holds
/// open.
fn watch() -> io::Result<&'static str> {
    static PREFIX: OnceLock<String> = OnceLock::new();
    static WATCHING: Mutex<Option<process::Child>> = Mutex::new(None);
    let prefix = PREFIX.get_or_init(new_mark);
    let mut watching = WATCHING.lock();
    let is_alive = match watching.as_mut() {
        Some(watcher) => watcher.try_wait()?.is_none(),
        None => false,
    };
    if !is_alive {
        *watching = Some(start_watcher(prefix)?);
    }
    Ok(prefix)
}

fn start_watcher(prefix: &str) -> io::Result<process::Child> {
    let start = |program: &str, first: &[&str]| {
        let mut watcher = process::Command::new(program);
        watcher
            .args(first)
            .args(["-c", WATCHER, "sh", prefix])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(OsStr::new("/"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    };
    match start("setsid", &["sh"]) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => start("sh", &[]),
        started => started,
    }
}
