//! Runs the node's state machine over the database: asks what it wants asked, and does what it decides.
//!
//! Promises: every answer reaches the machine once, with the moment before it was asked; whoever waits for a space is told; a
//! heartbeat waits for no space, and none is sent for spaces that stand still.
//! Must not know: why the machine decides what it does.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::heartbeat::{ServedSpace, Tenure, boot_now};
use super::lease_table::{BootInstant, LeaseAnswer, LeaseAsk, SpaceId, TakenLease};
use super::node::ClusterShared;
use super::node_machine::{NodeCommand, NodeInput, NodeMachine, SpaceFinding};
use super::node_spaces::{HeldJournal, SpaceControl, serve_space};
use super::successor::Successor;
use crate::journal::SpaceJournal;
use crate::net::SpaceHandle;
use crate::sorted_map::SortedMap;
use crate::task;

/// Before it is looked again whether spaces still stand still.
const STALLED_AGAIN: Duration = Duration::from_millis(200);

/// What reaches the driver.
pub(super) enum DriverInput {
    Machine(NodeInput),
    /// Somebody wants to know where a space is.
    Wanted {
        space: SpaceId,
        waiter: oneshot::Sender<SpaceFinding>,
    },
    /// The node wants a space for as long as it runs.
    Hold {
        space: SpaceId,
        holder: oneshot::Sender<HeldJournal>,
        waiter: oneshot::Sender<SpaceFinding>,
    },
    Started {
        space: SpaceId,
        name: String,
        handle: SpaceHandle,
    },
    /// Which spaces are here?
    List(oneshot::Sender<Vec<LoadedSpace>>),
    /// A space is to be given back, or all are; `done` is sent when it is.
    GiveBack {
        space: Option<SpaceId>,
        done: oneshot::Sender<()>,
    },
}

/// A space that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoadedSpace {
    pub id: SpaceId,
    /// It is the node's for as long as that runs, whoever wants it elsewhere.
    pub is_held: bool,
    /// `None`: it is still being started.
    pub name: Option<String>,
    /// Turns or terminals run.
    pub is_busy: bool,
    /// Connections, and other holders of the handle.
    pub users: usize,
}

/// A space that is here or about to be.
struct DrivenSpace {
    control: SpaceControl,
    name: Option<String>,
    /// It is the node's for as long as that runs.
    is_held: bool,
    idle_since: Option<Instant>,
}

/// The node's state machine at work.
pub(super) struct NodeDriver {
    node: Arc<ClusterShared>,
    machine: NodeMachine,
    spaces: BTreeMap<SpaceId, DrivenSpace>,
    waiters: SortedMap<SpaceId, Vec<oneshot::Sender<SpaceFinding>>>,
    holders: SortedMap<SpaceId, oneshot::Sender<HeldJournal>>,
    /// Who waits until a space, or all, are given back.
    leaving: Vec<(Option<SpaceId>, oneshot::Sender<()>)>,
}

impl NodeDriver {
    pub(super) fn new(node: Arc<ClusterShared>, machine: NodeMachine) -> Self {
        Self {
            node,
            machine,
            spaces: BTreeMap::new(),
            waiters: SortedMap::default(),
            holders: SortedMap::default(),
            leaving: Vec::new(),
        }
    }

    pub(super) async fn run(mut self, mut arrivals: mpsc::Receiver<DriverInput>) {
        let idle = Duration::from_secs(self.node.config.limits.server.space_idle_s);
        let mut look = tokio::time::interval((idle / 4).max(Duration::from_millis(250)));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.node.stop.clone();
        loop {
            let now = boot_now();
            let wake = self.machine.next_wake();
            let wait = wake.map(|wake| Duration::from_millis(wake.0.saturating_sub(now.0)));
            tokio::select! {
                input = arrivals.recv() => match input {
                    Some(input) => self.take(input),
                    None => return, // nobody can want anything any more
                },
                () = stop.cancelled() => return self.drop_all(),
                () = wait_for(wait) => self.step(NodeInput::Woke),
                _at = look.tick() => self.unload_idle(idle),
            }
        }
    }

    fn take(&mut self, input: DriverInput) {
        match input {
            DriverInput::Machine(input) => {
                if let NodeInput::Ended(space) | NodeInput::Failed(space) = input {
                    self.forget(space);
                }
                if let NodeInput::Answered {
                    sent, answer: LeaseAnswer::Heartbeat(Some(row)), ..
                } = &input
                {
                    self.node.living.note(*sent, &row.living);
                }
                self.step(input);
            }
            DriverInput::Wanted { space, waiter } => {
                self.add_waiter(space, waiter);
                self.step(NodeInput::Wanted(space));
            }
            DriverInput::Hold { space, holder, waiter } => {
                self.holders.insert(space, holder);
                self.add_waiter(space, waiter);
                self.step(NodeInput::Wanted(space));
            }
            DriverInput::Started { space, name, handle } => {
                if let Some(driven) = self.spaces.get_mut(&space) {
                    driven.name = Some(name.clone());
                }
                self.node.handles.lock().insert(name, handle);
                self.step(NodeInput::Loaded(space));
                let mut leaving = self.leaving.iter();
                if leaving.any(|(wanted, _)| wanted.is_none_or(|wanted| wanted == space)) {
                    self.unload(space);
                }
            }
            DriverInput::List(done) => {
                // Whoever asked may have gone.
                let _gone = done.send(self.list_loaded());
            }
            DriverInput::GiveBack { space, done } => {
                self.leaving.push((space, done));
                let all: Vec<SpaceId> = self
                    .spaces
                    .iter()
                    .filter(|(_, driven)| !driven.is_held)
                    .map(|(space, _)| *space)
                    .collect();
                for one in all {
                    if space.is_none_or(|space| space == one) {
                        self.unload(one);
                    }
                }
                self.tell_left();
            }
        }
    }

    /// Those who gave up meanwhile are forgotten, so that one space that nobody answers for gathers no more than wait for it.
    fn add_waiter(&mut self, space: SpaceId, waiter: oneshot::Sender<SpaceFinding>) {
        let waiters = self.waiters.get_or_insert_with(space, Vec::new);
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(waiter);
    }

    fn list_loaded(&self) -> Vec<LoadedSpace> {
        let handles = self.node.handles.lock();
        let loaded = self.spaces.iter().map(|(space, driven)| {
            let name = driven.name.clone();
            let handle = name.as_ref().and_then(|name| handles.get(name));
            LoadedSpace {
                id: *space,
                is_held: driven.is_held,
                is_busy: driven.control.tenure.is_busy(),
                users: handle.map_or(0, SpaceHandle::users),
                name,
            }
        });
        loaded.collect()
    }

    fn step(&mut self, input: NodeInput) {
        let now = boot_now();
        for command in self.machine.handle(input, now) {
            self.perform(command, now);
        }
    }

    fn perform(&mut self, command: NodeCommand, now: BootInstant) {
        match command {
            NodeCommand::Ask(ask) => {
                let node = Arc::clone(&self.node);
                task::spawn(async move {
                    let answer = ask_database(&node, &ask, now).await;
                    let sent = now;
                    let answered = NodeInput::Answered { ask, sent, answer };
                    node.tell(DriverInput::Machine(answered)).await;
                });
            }
            NodeCommand::Load(space, lease) => self.load(space, lease),
            NodeCommand::Unload(space) => {
                if let Some(driven) = self.spaces.get(&space) {
                    driven.control.unload.cancel();
                }
            }
            NodeCommand::Drop(space) => self.drop_space(space),
            NodeCommand::Tell(space, finding) => {
                for waiter in self.waiters.remove(&space).unwrap_or_default() {
                    // Whoever asked may have gone.
                    let _gone = waiter.send(finding.clone());
                }
                // A remaining waiter is not answered by this finding; dropping it tells it so.
                self.holders.remove(&space);
            }
            NodeCommand::Stand => {
                let (standing, until) = (self.machine.standing(), self.machine.trusted_until());
                self.node.trust.set(standing, until);
            }
        }
    }

    fn load(&mut self, space: SpaceId, lease: TakenLease) {
        let served = ServedSpace { node: self.node.id, space, epoch: lease.epoch };
        let holder = self.holders.remove(&space);
        let tenure = Tenure::new(Arc::clone(&self.node.trust), served);
        let control = SpaceControl {
            tenure: match holder {
                Some(_) => tenure, // it goes nowhere
                None => tenure.with_successor(Successor::new(&self.node, space)),
            },
            unload: CancellationToken::new(),
        };
        let driven = DrivenSpace {
            control: control.clone(),
            name: None,
            is_held: holder.is_some(),
            idle_since: None,
        };
        self.spaces.insert(space, driven);
        let node = Arc::clone(&self.node);
        let runtime = self.node.runtime.clone();
        match holder {
            Some(holder) => {
                task::spawn_on(&runtime, hand_over(node, space, lease, control.tenure, holder))
            }
            None => task::spawn_on(&runtime, serve_space(node, space, lease, control)),
        };
    }

    fn drop_space(&mut self, space: SpaceId) {
        let Some(driven) = self.spaces.get(&space) else {
            return; // it has ended
        };
        driven.control.tenure.lose();
        if let Some(name) = &driven.name {
            self.node.handles.lock().remove(name);
        }
    }

    /// The node is gone without having left: nothing is served any more, and others find out by themselves.
    fn drop_all(&mut self) {
        for space in self.spaces.keys().copied().collect::<Vec<_>>() {
            self.drop_space(space);
        }
    }

    fn forget(&mut self, space: SpaceId) {
        if let Some(DrivenSpace { name: Some(name), .. }) = self.spaces.remove(&space) {
            self.node.handles.lock().remove(&name);
        }
        self.tell_left();
    }

    fn unload(&mut self, space: SpaceId) {
        if let Some(DrivenSpace { name: Some(name), .. }) = self.spaces.get(&space) {
            self.node.handles.lock().remove(name);
        }
        self.step(NodeInput::Unwanted(space));
    }

    /// Tells those who wait for the end of what has ended.
    fn tell_left(&mut self) {
        let spaces = &self.spaces;
        let is_left = |space: &Option<SpaceId>| match space {
            Some(space) => !spaces.contains_key(space),
            None => spaces.values().all(|driven| driven.is_held),
        };
        for (space, done) in std::mem::take(&mut self.leaving) {
            if is_left(&space) {
                // The waiter may have gone.
                _ = done.send(());
            } else {
                self.leaving.push((space, done));
            }
        }
    }

    /// Ends what nobody used for long. Who has a handle is a user; while one is looked for, none is handed out.
    fn unload_idle(&mut self, limit: Duration) {
        let now = Instant::now();
        let mut idle = Vec::new();
        for (space, driven) in &mut self.spaces {
            let Some(name) = driven.name.as_ref().filter(|_| !driven.is_held) else {
                continue; // it is being started, or stays
            };
            let mut handles = self.node.handles.lock();
            let is_used = handles.get(name).is_some_and(SpaceHandle::is_used);
            if is_used || driven.control.tenure.is_busy() {
                driven.idle_since = None;
                continue;
            }
            if now.duration_since(*driven.idle_since.get_or_insert(now)) >= limit {
                handles.remove(name);
                idle.push(*space);
            }
        }
        for space in idle {
            self.step(NodeInput::Unwanted(space));
        }
    }
}

/// Runs a driver on a thread of its own: kernels share the threads of the host's runtime, and however busy they are, heartbeats are
/// sent (ADR 0120).
pub(super) fn drive_on_a_thread(
    driver: NodeDriver,
    arrivals: mpsc::Receiver<DriverInput>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let thread = thread::Builder::new().name("heartbeats".to_owned());
    let started = thread.spawn(move || runtime.block_on(driver.run(arrivals)));
    started.map(drop)
}

async fn ask_database(node: &ClusterShared, ask: &LeaseAsk, now: BootInstant) -> LeaseAnswer {
    if *ask == LeaseAsk::Heartbeat && node.pulse.is_stalled(now) {
        tracing::warn!(
            node = node.id,
            "this process was stalled for long: no heartbeat is sent, so that others take its spaces"
        );
        // What is asked again soon must not be asked all the time.
        tokio::time::sleep(STALLED_AGAIN).await;
        return LeaseAnswer::Unknown;
    }
    node.database.ask(node.id, ask).await
}

/// Hands the journal of a space to the node itself, which serves it until it ends.
async fn hand_over(
    node: Arc<ClusterShared>,
    space: SpaceId,
    lease: TakenLease,
    tenure: Tenure,
    holder: oneshot::Sender<HeldJournal>,
) {
    let journal = node.database.journal_of(space, node.id, lease);
    let booted = journal.boot().await;
    let ended = match booted {
        Ok(boot) => {
            let journal = journal.clone();
            let held = HeldJournal { journal, boot, tenure };
            holder.send(held).is_err()
        }
        Err(error) => {
            tracing::error!(node = node.id, space, %error, "a space could not be read");
            true
        }
    };
    let input = if ended {
        journal.close().await;
        NodeInput::Ended(space) // its waiters try again
    } else {
        NodeInput::Loaded(space)
    };
    node.tell(DriverInput::Machine(input)).await;
}

async fn wait_for(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
