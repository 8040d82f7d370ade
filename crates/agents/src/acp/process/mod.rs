//! The process of an agent, from its start to the death of everything it started (AG-11, AG-12).
//!
//! Promises: it runs in a group of its own, in its directory, with the environment it was given and no other; when this is dropped,
//! or the host is gone, nothing of the group is left.
//! Must not know: what is said on the pipes.

mod group;
mod stderr_tail;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use group::AgentProcessGroup;
pub(super) use stderr_tail::StderrTail;

/// How long an agent may take to go when its input has ended, and again when it is told to.
const STOP_STEP: Duration = Duration::from_secs(3);

/// How long what an agent started may take to go after it.
const CHILDREN_STEP: Duration = Duration::from_millis(200);

/// What is started.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    /// Absolute.
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// All of them.
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) directory: PathBuf,
}

#[derive(Debug)]
pub(super) struct ChildProcess {
    child: Child,
    group: AgentProcessGroup,
}

#[derive(Debug)]
pub(super) struct AgentPipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl ChildProcess {
    pub(super) fn start(launch: &Launch) -> io::Result<(Self, AgentPipes)> {
        let mut child = Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(launch.variables.iter().map(|(name, value)| (name, value)))
            .env("PWD", &launch.directory)
            .current_dir(&launch.directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = id.and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        let group = AgentProcessGroup::watch(leader)?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((stdin, stdout), stderr) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        let pipes = AgentPipes { stdin, stdout, stderr };
        Ok((Self { child, group }, pipes))
    }

    /// Waits for its end. Nothing is lost if the future is dropped.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends it, and all that it started. Its input must have been closed.
    pub(super) async fn stop(mut self) -> Option<ExitStatus> {
        if timeout(STOP_STEP, self.child.wait()).await.is_err() {
            self.group.terminate();
            // What is left is killed next.
            let _ = timeout(STOP_STEP, self.child.wait()).await;
        } else {
            self.group.terminate();
            tokio::time::sleep(CHILDREN_STEP).await;
        }
        self.group.kill();
        self.child.wait().await.ok()
    }
}

/// How a process ended, for people.
pub(super) fn describe_exit(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exit code {code}"),
        Some((None, Some(signal))) => format!("killed by signal {signal}"),
        Some((None, None)) | None => "exit status unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests;
