//! What the host does of its own accord in channels that may have to be loaded first.

use agent_api::{AgentError, Worker};
use wire::{Action, ChannelUri};

use crate::Kernel;
use crate::io::{RunId, Timer};
use crate::load::{Flow, Memo, Waiter};

/// A piece of work that may have to wait for the journal's answer.
#[derive(Debug, Clone)]
pub(crate) enum Chore {
    /// A chat may have an active turn without an agent: it ends in a resumable error (H-090).
    CloseOrphan(ChannelUri),
    /// A session from before the restart: start its agent if it was being created, start grace periods afresh.
    Revive(ChannelUri),
    SessionStarted(ChannelUri, Result<(), AgentError>),
    EndGrace {
        session: ChannelUri,
        client_id: String,
    },
    DisposeIfEmpty(ChannelUri),
    /// A queue was set while its session was being created, and that is ready now.
    StartQueue(ChannelUri),
    /// An agent wants a worker, under a URI that must be free.
    Spawn {
        chat: ChannelUri,
        run: RunId,
        call: u64,
        worker: Box<Worker>,
    },
    /// A chat is to be branched, into one whose URI must be free.
    Branch {
        chat: ChannelUri,
        from: ChannelUri,
        turn_id: String,
        title: String,
    },
    /// A client left a session while that could not be recorded.
    RemoveActive {
        session: ChannelUri,
        client_id: String,
    },
}

/// How long a chore that failed to read waits before it is tried again.
const RETRY_MS: u64 = 10_000;

/// `worker-7`, `worker-7-1`, `worker-7-2`; branches likewise.
fn next_name(taken: &ChannelUri) -> String {
    let text = taken.as_str();
    let numbered = text.rsplit_once('-').and_then(|(base, number)| {
        (base.contains("worker-") || base.contains("branch-"))
            .then(|| number.parse::<u64>().ok())
            .flatten()
            .map(|number| format!("{base}-{}", number + 1))
    });
    numbered.unwrap_or_else(|| format!("{text}-1"))
}

impl Kernel {
    pub(crate) fn begin_chore(&mut self, chore: Chore) {
        self.go_on_with(chore, Memo::default());
    }

    pub(crate) fn go_on_with(&mut self, chore: Chore, memo: Memo) {
        let uri = match &chore {
            Chore::CloseOrphan(uri)
            | Chore::Revive(uri)
            | Chore::SessionStarted(uri, _)
            | Chore::DisposeIfEmpty(uri)
            | Chore::StartQueue(uri)
            | Chore::Spawn { chat: uri, .. }
            | Chore::Branch { chat: uri, .. }
            | Chore::RemoveActive { session: uri, .. }
            | Chore::EndGrace { session: uri, .. } => uri.clone(),
        };
        let flow = self.need_channel(&uri, &memo);
        if let Chore::Spawn {
            run, call, worker, ..
        } = &chore
            && let Flow::Ready(taken) = flow
        {
            let (run, call, worker) = (*run, *call, Worker::clone(worker));
            return match taken {
                true => self.try_spawn(run, call, worker, &next_name(&uri)),
                false => self.found_worker(uri, run, call, worker),
            };
        }
        if let (
            Chore::Spawn {
                run, call, worker, ..
            },
            Flow::Failed(failed),
        ) = (&chore, &flow)
        {
            return self.fail_spawn(*run, *call, worker, &failed.to_string());
        }
        if let Chore::Branch {
            from,
            turn_id,
            title,
            ..
        } = &chore
        {
            let (from, turn_id, title) = (from.clone(), turn_id.clone(), title.clone());
            match flow {
                Flow::Ready(true) => return self.try_branch(&from, title, &next_name(&uri)),
                Flow::Ready(false) => return self.branched(&from, &turn_id, Ok((uri, title))),
                Flow::Failed(failed) => {
                    return self.branched(&from, &turn_id, Err(failed.to_string()));
                }
                Flow::Ask(_) => {}
            }
        }
        match flow {
            Flow::Ready(true) => self.do_chore(chore, &uri),
            // What is gone needs no care.
            Flow::Ready(false) => {
                self.orphans.remove(&uri);
            }
            // What cannot be read now is tried again, like what cannot be written.
            Flow::Failed(_) => {
                self.orphans.remove(&uri);
                self.postponed.push(chore);
                self.wake_in(Timer::Probe, self.limits.journal_retry_ms.max(RETRY_MS));
            }
            Flow::Ask(queries) => self.ask(queries, Waiter::Chore(chore), memo),
        }
    }

    fn do_chore(&mut self, chore: Chore, uri: &ChannelUri) {
        if self.unwritable().is_some() {
            self.postponed.push(chore);
            return;
        }
        self.undo.chores.push(chore.clone());
        match chore {
            Chore::CloseOrphan(_) => {
                self.orphans.remove(uri);
                let without_agent = self.chat(uri).is_some_and(|chat| chat.run.is_none());
                if without_agent && !self.turn_waits_for_session(uri) {
                    self.end_without_agent(
                        uri,
                        "interrupted",
                        "the host was interrupted; resume the turn to go on",
                    );
                }
            }
            Chore::Revive(_) => self.revive(uri),
            Chore::SessionStarted(_, result) => self.session_started(uri, result),
            Chore::EndGrace { client_id, .. } => self.end_grace(uri, &client_id),
            Chore::DisposeIfEmpty(_) => self.dispose_if_empty(uri),
            Chore::StartQueue(_) => self.start_queued(uri),
            Chore::Spawn { .. } | Chore::Branch { .. } => {} // done above: they want what is not there
            Chore::RemoveActive { client_id, .. } => self.remove_active_client(uri, &client_id),
        }
    }

    fn revive(&mut self, uri: &ChannelUri) {
        let Some(state) = self.session_state(uri) else {
            return;
        };
        let creating = state.lifecycle == "creating";
        let clients: Vec<String> = state
            .active_clients
            .iter()
            .filter_map(|client| client["clientId"].as_str().map(str::to_owned))
            .collect();
        if creating {
            self.start_session(uri);
        }
        for client_id in clients {
            self.lost.insert(client_id.clone(), self.now); // grace starts afresh at boot (G-07)
            let timer = Timer::Grace {
                session: uri.clone(),
                client_id,
            };
            self.wake_in(timer, self.limits.active_client_grace_ms);
        }
    }

    fn end_grace(&mut self, session: &ChannelUri, client_id: &str) {
        let grace = self.limits.active_client_grace_ms;
        let due = self
            .lost
            .get(client_id)
            .is_none_or(|lost| lost.plus_ms(grace) <= self.now);
        if self.clients.contains_key(client_id) || !due {
            return;
        }
        self.remove_active_client(session, client_id);
    }

    pub(crate) fn remove_active_client(&mut self, session: &ChannelUri, client_id: &str) {
        let fields = serde_json::json!({"clientId": client_id});
        self.act(
            session,
            Action::host("session/activeClientRemoved", fields),
            None,
        );
        self.forget_active(session, client_id);
        self.client_left(session, client_id);
    }
}
