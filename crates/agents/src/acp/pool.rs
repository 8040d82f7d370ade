//! Which process a chat's turn works in (AG-10, AG-13, AG-21, AG-22).
//!
//! Promises: one process for a directory and its credentials, or one for a chat; never two that start at once for the same. One that nobody
//! uses is stopped; one that ends at once again and again is left alone for a while.
//! Must not know: what is said to a process after it is ready.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_api::AgentError;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use super::agent_core::ProcessCredentials;
use super::agent_process::{AgentProcess, Lease};
use super::config::{AcpAgentConfig, AcpAuth, Share};
use super::connection::{self, AcpConnection, ClientOffer, ConnectionEnd, EndKind, RequestError};
use super::environment::{self, ProcessEnvironment};
use super::errors;
use super::process::{Launch, StderrTail};
use crate::task;

/// An end so soon after the start is a failed start.
const EARLY_END: Duration = Duration::from_secs(5);

/// So many failed starts in so long, and nothing is tried for a while.
const EARLY_ENDS_MAX: usize = 3;
const EARLY_ENDS_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(30);

/// Who shares a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PoolKey {
    directory: PathBuf,
    /// Set if each chat has its own.
    chat: Option<String>,
    credentials: ProcessCredentials,
}

pub(super) struct ProcessPool {
    config: Arc<AcpAgentConfig>,
    slots: Mutex<BTreeMap<PoolKey, Arc<PoolSlot>>>,
    early_ends: Arc<Mutex<VecDeque<Instant>>>,
    /// What the process that ended last had printed.
    last_tail: Mutex<Option<StderrTail>>,
    /// Sessions that hang, and the process that still runs for others.
    abandoned: Mutex<Vec<(String, Weak<AgentProcess>)>>,
}

#[derive(Default)]
struct PoolSlot {
    /// Held while a process is started.
    starting: tokio::sync::Mutex<()>,
    current: Mutex<Option<Arc<AgentProcess>>>,
    /// Those that take no new work and are not over.
    retired: Mutex<Vec<Arc<AgentProcess>>>,
}

impl PoolSlot {
    fn current(&self) -> Option<Arc<AgentProcess>> {
        self.current.lock().clone().filter(|process| process.is_usable())
    }

    fn running_old_processes(&self) -> Vec<Arc<AgentProcess>> {
        let retired = self.retired.lock();
        let running = retired.iter().filter(|old| !old.connection.is_over());
        running.cloned().collect()
    }

    fn set_current(&self, process: Option<Arc<AgentProcess>>) {
        *self.current.lock() = process;
    }

    /// Its process takes no new work from now on, if it is one of these; which one that is.
    fn put_aside(&self, is_it: impl Fn(&Arc<AgentProcess>) -> bool) -> Option<Arc<AgentProcess>> {
        let mut current = self.current.lock();
        let process = current.take_if(|process| is_it(process))?;
        let mut retired = self.retired.lock();
        retired.retain(|old| !old.connection.is_over());
        retired.push(Arc::clone(&process));
        Some(process)
    }
}

impl ProcessPool {
    pub(super) fn new(config: Arc<AcpAgentConfig>) -> Self {
        Self {
            config,
            slots: Mutex::default(),
            early_ends: Arc::default(),
            last_tail: Mutex::default(),
            abandoned: Mutex::default(),
        }
    }

    fn slot(&self, key: &PoolKey) -> Arc<PoolSlot> {
        let mut slots = self.slots.lock();
        // What is over is forgotten here: nothing else grows with the number of directories.
        slots.retain(|other, slot| {
            let is_used = || slot.current().is_some() || !slot.running_old_processes().is_empty();
            other == key || Arc::strong_count(slot) > 1 || is_used()
        });
        Arc::clone(slots.entry(key.clone()).or_default())
    }

    /// The process for a chat in a directory, started if there is none.
    pub(super) async fn process(
        &self,
        directory: &Path,
        chat: &str,
        token: Option<&str>,
        credentials: ProcessCredentials,
    ) -> Result<(Arc<AgentProcess>, Lease), AgentError> {
        let key = PoolKey {
            directory: directory.to_owned(),
            chat: (self.config.share == Share::Chat).then(|| chat.to_owned()),
            credentials,
        };
        let slot = self.slot(&key);
        let _starting = slot.starting.lock().await;
        if let Some(process) = slot.current() {
            let lease = process.lease();
            // Looked at once more: from here on it is not stopped for being idle.
            if process.is_usable() {
                return Ok((process, lease));
            }
        }
        self.check_early_ends()?;
        let process = self.start(directory, token).await?;
        let lease = process.lease();
        slot.set_current(Some(Arc::clone(&process)));
        task::spawn(Box::pin(watch(
            Arc::downgrade(&process),
            process.connection.subscribe_end(),
            self.config.idle,
            Arc::clone(&self.early_ends),
        )));
        Ok((process, lease))
    }

    fn check_early_ends(&self) -> Result<(), AgentError> {
        let mut ends = self.early_ends.lock();
        ends.retain(|end| end.elapsed() < EARLY_ENDS_WITHIN);
        match ends.back() {
            Some(last) if ends.len() >= EARLY_ENDS_MAX && last.elapsed() < PAUSE => {
                Err(errors::unavailable(&self.config, PAUSE.saturating_sub(last.elapsed())))
            }
            _ => Ok(()),
        }
    }

    async fn start(
        &self,
        directory: &Path,
        token: Option<&str>,
    ) -> Result<Arc<AgentProcess>, AgentError> {
        let config = &self.config;
        let Some(program) = config.find_program() else { return Err(errors::missing(config)) };
        let token = match (&config.auth, token) {
            (Some(AcpAuth::Resource { token_env, .. }), Some(token)) => {
                Some((token_env.clone(), token.to_owned()))
            }
            _ => None,
        };
        let environment = environment::of_agent(config, token).await;
        let ProcessEnvironment { variables, secrets } =
            environment.map_err(|why| errors::start_failed(config, &why))?;
        let launch = Launch {
            program,
            args: config.args.clone(),
            variables,
            directory: directory.to_owned(),
        };
        let tail = StderrTail::new(secrets);
        *self.last_tail.lock() = Some(tail.clone());
        let started = Instant::now();
        let connection = AcpConnection::start(&launch, tail, config.line_bytes_max)
            .map_err(|error| errors::start_failed(config, &error.to_string()))?;
        let offer = ClientOffer { files: config.fs };
        match connection::initialize(&connection, offer, config.start_timeout).await {
            Ok(abilities) => Ok(AgentProcess::new(connection, abilities)),
            Err(error) => {
                if let RequestError::Ended(_) = &error {
                    note_early_end(&self.early_ends, started);
                }
                let error = errors::start(config, &connection, &error);
                connection.stop(EndKind::SlowStart);
                Err(error)
            }
        }
    }

    /// A session of this process hangs: it is used no more, and stopped once nobody else works in it.
    pub(super) fn give_up(&self, process: &Arc<AgentProcess>, session: &str) {
        let slots = self.slots.lock();
        for slot in slots.values() {
            slot.put_aside(|current| Arc::ptr_eq(current, process));
        }
        drop(slots);
        if process.idle_since().is_none() {
            let hanging = (session.to_owned(), Arc::downgrade(process));
            self.lock_abandoned().push(hanging);
        }
        process.retire(EndKind::Hung);
    }

    /// Other credentials of a principal count from now on: processes that were started with older ones end once nobody works in
    /// them. So do those of nobody if the people of the host sign in: others are left theirs.
    pub(super) fn retire_other_credentials(&self, principal: Option<&str>, now: Option<u64>) {
        let slots = self.slots.lock();
        let is_older = |credentials: &ProcessCredentials| match credentials {
            Some((owner, generation)) => owner.as_deref() == principal && Some(*generation) != now,
            None => principal.is_none(),
        };
        let older = slots.iter().filter(|(key, _)| is_older(&key.credentials));
        for process in older.filter_map(|(_, slot)| slot.put_aside(|_| true)) {
            process.retire(EndKind::Stopped);
        }
    }

    /// Those whose process is not over.
    fn lock_abandoned(&self) -> MutexGuard<'_, Vec<(String, Weak<AgentProcess>)>> {
        let mut abandoned = self.abandoned.lock();
        let runs = |process: Arc<AgentProcess>| !process.connection.is_over();
        abandoned.retain(|(_, process)| process.upgrade().is_some_and(runs));
        abandoned
    }

    /// Whether a session was given up while its process goes on.
    pub(super) fn is_abandoned(&self, session: &str) -> bool {
        let abandoned = self.lock_abandoned();
        abandoned.iter().any(|(hanging, _)| hanging == session)
    }

    /// All processes that run; those that take no new work come last.
    pub(super) fn processes(&self) -> Vec<Arc<AgentProcess>> {
        let slots = self.slots.lock();
        let current = slots.values().filter_map(|slot| slot.current());
        let retired = slots.values().flat_map(|slot| slot.running_old_processes());
        current.chain(retired).collect()
    }

    /// What the process that was started last has printed.
    pub(super) fn log_tail(&self) -> String {
        self.last_tail.lock().as_ref().map(StderrTail::text).unwrap_or_default()
    }
}

fn note_early_end(ends: &Mutex<VecDeque<Instant>>, started: Instant) {
    if started.elapsed() < EARLY_END {
        let mut ends = ends.lock();
        ends.push_back(Instant::now());
        if ends.len() > EARLY_ENDS_MAX {
            ends.pop_front();
        }
    }
}

/// Stops a process that nobody uses, and notes one that ended at once.
async fn watch(
    process: Weak<AgentProcess>,
    mut end: watch::Receiver<Option<Arc<ConnectionEnd>>>,
    idle: Duration,
    early_ends: Arc<Mutex<VecDeque<Instant>>>,
) {
    let started = Instant::now();
    loop {
        let Some(idle_since) = process.upgrade().map(|process| process.idle_since()) else {
            return; // nobody holds it: it is being stopped
        };
        let idle_until = idle_since.unwrap_or_else(Instant::now) + idle;
        tokio::select! {
            end = end.wait_for(Option::is_some) => {
                let kind = end.ok().and_then(|end| end.as_ref().map(|end| end.kind.clone()));
                if kind == Some(EndKind::Exited) {
                    note_early_end(&early_ends, started);
                }
                return;
            }
            () = tokio::time::sleep_until(idle_until) => {
                let process = process.upgrade();
                let is_idle = |process: &Arc<AgentProcess>| {
                    process.idle_since().is_some_and(|since| since.elapsed() >= idle)
                };
                if let Some(process) = process.filter(is_idle) {
                    process.retire(EndKind::Stopped);
                }
            }
        }
    }
}
