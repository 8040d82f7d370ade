//! The process group of an agent: signals to all of it, and its end when the host is gone.
//!
//! Promises: the group's number is nobody else's as long as this exists: a watcher is a member of it. When the host is gone, for
//! whatever reason, the watcher kills what has not gone by itself. Dropping kills all of it.
//! Must not know: what the processes do.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

/// Waits for the end of its input, which the host holds open, and then a while for the agent to go by itself: its input has ended, too.
const WATCHER: &str = "trap '' TERM INT HUP; read -r _; sleep 3; kill -KILL 0";

#[derive(Debug)]
pub(super) struct AgentProcessGroup {
    leader: Pid,
    /// Held for its input, which ends with the host, and for its membership.
    watcher: Child,
}

impl AgentProcessGroup {
    /// Of a leader that was just started in a group of its own and is not reaped.
    pub(super) fn watch(leader: Pid) -> io::Result<Self> {
        let watcher = Command::new("/bin/sh")
            .args(["-c", WATCHER])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .process_group(leader.as_raw_nonzero().get())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match watcher {
            Ok(watcher) => Ok(Self { leader, watcher }),
            Err(error) => {
                signal(leader, Signal::KILL);
                Err(error)
            }
        }
    }

    /// Asks all of it to end.
    pub(super) fn terminate(&self) {
        signal(self.leader, Signal::TERM);
    }

    pub(super) fn kill(&self) {
        signal(self.leader, Signal::KILL);
    }
}

impl Drop for AgentProcessGroup {
    fn drop(&mut self) {
        self.kill();
        // Dead by now, so this does not wait.
        let _ = self.watcher.wait();
    }
}

fn signal(leader: Pid, signal: Signal) {
    // A group that is gone needs none.
    let _ = rustix::process::kill_process_group(leader, signal);
}
