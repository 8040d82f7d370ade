//! A running process of an agent: its connection, what it can do, and the sessions that chats have in it.
//!
//! Promises: who works in it is counted; one that is retired ends with the last who works in it (AG-22).
//! Must not know: how a process is found for a chat.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::connection::{Abilities, AcpConnection, EndKind};
use super::live_session::LiveSession;

/// How long an answer is waited for that nothing depends on.
const FORGOTTEN_LIMIT: Duration = Duration::from_secs(10);

/// Notices that are remembered as shown.
const NOTICES_MAX: usize = 256;

/// Terminals that an agent may have at once, in all its sessions, with those that it still asks for.
pub(super) const TERMINALS_MAX: usize = 32;

pub(super) struct AgentProcess {
    pub(super) connection: AcpConnection,
    pub(super) abilities: Abilities,
    /// By chat.
    sessions: Mutex<HashMap<String, Arc<LiveSession>>>,
    notices: Mutex<BTreeSet<String>>,
    workers: AtomicUsize,
    last_used: Mutex<Instant>,
    is_retired: AtomicBool,
    terminal_places: Arc<Semaphore>,
}

/// Somebody works in a process.
pub(super) struct Lease(Arc<AgentProcess>);

impl AgentProcess {
    pub(super) fn new(connection: AcpConnection, abilities: Abilities) -> Arc<Self> {
        Arc::new(Self {
            connection,
            abilities,
            sessions: Mutex::default(),
            notices: Mutex::default(),
            workers: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            is_retired: AtomicBool::new(false),
            terminal_places: Arc::new(Semaphore::new(TERMINALS_MAX)),
        })
    }

    pub(super) fn session(&self, chat: &str) -> Option<Arc<LiveSession>> {
        self.sessions.lock().get(chat).cloned()
    }

    pub(super) fn all_sessions(&self) -> Vec<Arc<LiveSession>> {
        self.sessions.lock().values().cloned().collect()
    }

    pub(super) fn set_session(&self, chat: &str, session: Arc<LiveSession>) {
        let session_id = session.inbox.session.clone();
        let before = self.sessions.lock().insert(chat.to_owned(), session);
        if let Some(before) = before
            && before.inbox.session != session_id
        {
            self.connection.forget(&before.inbox.session);
        }
    }

    /// The chat has no session here any more. One that can be closed is: agents hold memory for it (AG-13).
    pub(super) fn close_session(&self, chat: &str) {
        let Some(session) = self.sessions.lock().remove(chat) else {
            return; // it has none here
        };
        let id = session.inbox.session.clone();
        self.connection.forget(&id);
        if self.abilities.close && !self.connection.is_over() {
            self.ask_and_forget("session/close", json!({"sessionId": id}));
        }
    }

    /// The user named a chat: the agent's own list of sessions is to say the same, where it can be told.
    pub(super) fn set_title(&self, chat: &str, title: &str) {
        let Some(session) = self.session(chat).filter(|_| self.abilities.set_title) else {
            return; // it has none here, or nothing can be told
        };
        let params = json!({"sessionId": session.inbox.session, "title": title});
        self.ask_and_forget("session/set_title", params);
    }

    /// Whatever the answer is, nothing depends on it.
    fn ask_and_forget(&self, method: &'static str, params: serde_json::Value) {
        let connection = self.connection.clone();
        self.connection.spawn(Box::pin(async move {
            let asked = connection.request::<serde_json::Value>(method, &params, FORGOTTEN_LIMIT);
            let _ = asked.await;
        }));
    }

    /// Whether a notice of this title is new in this process.
    pub(super) fn is_new_notice(&self, title: &str) -> bool {
        let mut notices = self.notices.lock();
        if notices.len() >= NOTICES_MAX {
            return !notices.contains(title);
        }
        notices.insert(title.to_owned())
    }

    /// A place for one more terminal, until it is dropped. None: the agent has as many as it may.
    pub(super) fn take_terminal_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.terminal_places).try_acquire_owned().ok()
    }

    pub(super) fn lease(self: &Arc<Self>) -> Lease {
        self.workers.fetch_add(1, Ordering::SeqCst);
        Lease(Arc::clone(self))
    }

    /// When it was last used, if nobody works in it.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let last_used = *self.last_used.lock();
        (self.workers.load(Ordering::SeqCst) == 0).then_some(last_used)
    }

    /// It takes no new work, and ends when nobody works in it.
    pub(super) fn retire(&self, why: EndKind) {
        self.is_retired.store(true, Ordering::SeqCst);
        if self.workers.load(Ordering::SeqCst) == 0 {
            self.connection.stop(why);
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.is_retired.load(Ordering::SeqCst) && !self.connection.is_over()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let process = &self.0;
        *process.last_used.lock() = Instant::now();
        let left = process.workers.fetch_sub(1, Ordering::SeqCst) - 1;
        if left == 0 && process.is_retired.load(Ordering::SeqCst) {
            process.connection.stop(EndKind::Hung);
        }
    }
}
