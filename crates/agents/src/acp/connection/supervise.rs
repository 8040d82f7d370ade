//! The end of a process: by itself, or because it is stopped (AG-12, AG-21).
//!
//! Promises: whatever the end was, all who wait are told once, after all that the process said before was heard; nothing of its group is left
//! by then.
//! Must not know: who waits for what.

use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{RequestError, RequestWaiter, SharedConnection};
use crate::acp::process::{ChildProcess, StderrTail, describe_exit};

/// How long is still read what a process said before it ended. What it started may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long an agent may take to close its sessions before it is stopped.
const CLOSE_STEP: Duration = Duration::from_secs(1);

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct ConnectionEnd {
    pub(in super::super) kind: EndKind,
    /// How the process ended, for people.
    pub(in super::super) exit: String,
    /// The last line that it printed for people.
    pub(in super::super) last_line: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum EndKind {
    /// By itself.
    Exited,
    /// It did not speak the protocol; the text says how.
    Protocol(String),
    /// Nobody needed it any more, or the host stops.
    Stopped,
    /// It did not answer after a cancel.
    Hung,
    /// It did not start in time.
    SlowStart,
}

impl ConnectionEnd {
    pub(super) fn new(kind: EndKind, status: Option<ExitStatus>, tail: &StderrTail) -> Self {
        Self { kind, exit: describe_exit(status), last_line: tail.last_line() }
    }

    pub(super) fn unknown(tail: &StderrTail) -> Self {
        Self::new(EndKind::Stopped, None, tail)
    }
}

impl std::fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            EndKind::Exited => write!(f, "ended: {}", self.exit)?,
            EndKind::Protocol(how) => write!(f, "was stopped, because {how}")?,
            EndKind::Stopped => write!(f, "was stopped")?,
            EndKind::Hung => write!(f, "was stopped, because it did not answer after a cancel")?,
            EndKind::SlowStart => write!(f, "was stopped, because it did not start in time")?,
        }
        match &self.last_line {
            Some(line) => write!(f, ". It last printed: {line}"),
            None => Ok(()),
        }
    }
}

pub(super) async fn supervise(
    shared: Arc<SharedConnection>,
    mut process: ChildProcess,
    reading: JoinHandle<()>,
    errors: JoinHandle<()>,
) {
    let abort = reading.abort_handle();
    let exited = tokio::select! {
        status = process.wait() => Some(status.ok()),
        () = shared.stop_wanted.notified() => None,
    };
    let (kind, status) = match exited {
        Some(status) => {
            // What it said before is heard first; what cannot be read in time is lost with it.
            let _ = timeout(LAST_WORDS, reading).await;
            let _ = timeout(LAST_WORDS, errors).await;
            drop(process); // and what it left behind
            (stop_reason(&shared).unwrap_or(EndKind::Exited), status)
        }
        None => {
            close_sessions(&shared).await;
            shared.writer.close();
            let status = process.stop().await;
            (stop_reason(&shared).unwrap_or(EndKind::Stopped), status)
        }
    };
    abort.abort();
    announce(&shared, ConnectionEnd::new(kind, status, &shared.tail));
}

/// Answers what is open, and lets the agent close what it can.
async fn close_sessions(shared: &SharedConnection) {
    let sessions: Vec<String> = shared.table.lock().sessions.keys().cloned().collect();
    let mut closing = Vec::new();
    for session in sessions {
        shared.cancel_questions(&session);
        if shared.closes_sessions.load(Ordering::Relaxed) {
            let (caller, answer) = oneshot::channel();
            let params = json!({"sessionId": session});
            let sent = shared.send_request("session/close", &params, RequestWaiter::Caller(caller));
            closing.extend(sent.is_ok().then_some(answer));
        }
    }
    let all = async {
        for answer in closing {
            // Whatever the answer is, the process ends next.
            let _ = answer.await;
        }
    };
    let _ = timeout(CLOSE_STEP, all).await;
}

fn stop_reason(shared: &SharedConnection) -> Option<EndKind> {
    shared.stop.lock().clone()
}

/// Tells everybody who waits.
pub(super) fn announce(shared: &SharedConnection, end: ConnectionEnd) {
    let end = Arc::new(end);
    let (waiting, sessions) = {
        let mut table = shared.table.lock();
        // Under the lock: who asks from now on finds it.
        shared.end.send_replace(Some(Arc::clone(&end)));
        table.questions.clear();
        (std::mem::take(&mut table.waiting), std::mem::take(&mut table.sessions))
    };
    shared.writer.close();
    for (_, waiter) in waiting {
        let ended = || RequestError::Ended(Arc::clone(&end));
        match waiter {
            // Who asked may have stopped waiting.
            RequestWaiter::Caller(caller) => drop(caller.send(Err(ended()))),
            RequestWaiter::NewSession(new) => drop(new.caller.send(Err(ended()))),
            RequestWaiter::Prompt(_) => {} // its inbox is told
        }
    }
    for inbox in sessions.into_values() {
        inbox.end(Arc::clone(&end));
    }
}
