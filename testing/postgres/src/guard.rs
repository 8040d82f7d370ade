//! A process that ends a server when whoever started it is gone, however that happened.
//!
//! Promises: the server ends, and its directory goes, when this value is dropped and when the process that has it dies, even by
//! `kill -9`: both close the pipe that the guard reads. It has a process group of its own, so that a signal to the tests spares it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// Waits for the end of its input, runs the command that it is given, and removes the directory.
const WAIT: &str = r#"directory=$1; shift; read -r _; "$@"; rm -rf "$directory""#;

pub(crate) struct ServerGuard {
    shell: Child,
}

impl ServerGuard {
    /// Runs `end` and removes the directory when this process is gone.
    pub(crate) fn start(end: &Command, directory: &Path) -> Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", WAIT, "sh"]).arg(directory);
        shell.arg(end.get_program()).args(end.get_args());
        shell.stdin(Stdio::piped());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let shell = shell.process_group(0).spawn();
        Ok(Self { shell: shell.context("sh")? })
    }
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It is only for tests: a guard that somebody killed has ended as well.
        let _ended = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guard itself is what outlives whoever started it.
    #[test]
    fn what_was_started_ends_when_its_process_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let guarded = directory.path().join("guarded");
        std::fs::create_dir(&guarded).unwrap();
        let ended = directory.path().join("ended");
        let mut end = Command::new("touch");
        end.arg(&ended);
        // A process that holds the other end of the pipe, as the tests do.
        let mut guard = ServerGuard::start(&end, &guarded).unwrap();
        let pipe = guard.shell.stdin.take().unwrap();
        let mut holder = Command::new("sh")
            .args(["-c", "read -r _"])
            .stdin(Stdio::piped())
            .stdout(pipe)
            .spawn()
            .unwrap();
        assert!(!ended.exists(), "its process lives");
        holder.kill().unwrap();
        holder.wait().unwrap();
        guard.shell.wait().unwrap();
        assert!(ended.exists() && !guarded.exists());
    }
}
