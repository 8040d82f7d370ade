//! This node among those on the same database: what the rest of the host asks of it.
//!
//! Promises: a space that is here is found without a statement; every question where a space is gets an answer.
//! Must not know: how leases are kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kernel::HostFacts;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::heartbeat::{NodeTrust, boot_now};
use super::lease_table::{NodeId, SpaceId};
use super::living_nodes::LivingNodes;
use super::load_report::report_loads;
use super::node_driver::{DriverInput, NodeDriver, drive_on_a_thread};
use super::node_home::load_home;
use super::node_machine::{LEASE_TIMES, NodeInput, NodeMachine, SpaceFinding};
use super::node_metrics::NodeCounters;
use super::node_spaces::{SpaceLocation, SpaceUnavailable};
use super::peer_identity::PeerIdentity;
use super::peer_listener::PeerService;
use super::relay::Relays;
use super::runtime_pulse::{RuntimePulse, keep_pulse};
use super::space_directory::SpaceDirectory;
use super::space_telemetry::tell_telemetry;
use super::successor::Successor;
use crate::config::{ClusterSettings, Config};
use crate::journal::{DirectoryLock, JournalError, NodeRegistration, PostgresNode, SpaceFacts};
use crate::mounts::MountEntry;
use crate::net::{ConnectionCapacity, DescribeMetrics, SpaceHandle};
use crate::server::ServeError;
use crate::space_host::PreparedSpace;
use crate::startup::make_private_directory;
use crate::task;

/// Inputs that may wait for the driver; a sender that finds no room waits.
const INPUTS_MAX: usize = 1_024;
/// Spaces that are started at the same time.
const LOADING_MAX: usize = 8;
/// Those of them whose files are read: threads that do it take memory of their own.
const PREPARING_MAX: usize = 2;
/// After this time a question where a space is gets the answer that nobody serves it: taking and loading one takes less.
const FINDING_WAIT: Duration = Duration::from_secs(10);

/// This node among those on the same database.
pub(crate) struct ClusterNode {
    shared: Arc<ClusterShared>,
}

pub(super) struct ClusterShared {
    pub config: Config,
    pub database: Arc<PostgresNode>,
    pub id: NodeId,
    pub loading: Semaphore,
    pub preparing: Semaphore,
    pub trust: Arc<NodeTrust>,
    pub living: Arc<LivingNodes>,
    pub identity: Arc<PeerIdentity>,
    pub counters: NodeCounters,
    /// Where peers connect, until it is served.
    pub peers: Mutex<Option<TcpListener>>,
    /// The driver ends with the node.
    pub stop: CancellationToken,
    /// No space is taken any more.
    draining: AtomicBool,
    /// Where spaces are served. Heartbeats have a thread of their own, and nothing else runs there.
    pub runtime: Handle,
    /// Whether anything goes on in it.
    pub pulse: RuntimePulse,
    inputs: mpsc::Sender<DriverInput>,
    /// The ways into the spaces that are here, by name.
    pub handles: Mutex<BTreeMap<String, SpaceHandle>>,
    /// The facts that kernels get of the host, shared by all that get the same.
    facts: Mutex<Vec<Arc<HostFacts>>>,
    room: OnceLock<Arc<ConnectionCapacity>>,
    /// Who holds it is the only process in the data directory.
    _lock: DirectoryLock,
}

impl ClusterShared {
    pub(super) async fn tell(&self, input: DriverInput) {
        if self.inputs.send(input).await.is_err() {
            tracing::debug!("the node has left its cluster");
        }
    }

    /// No space is taken any more.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Gives a space what all spaces of the node share.
    pub(super) fn share(&self, space: &mut PreparedSpace) {
        space.share_facts(&mut self.facts.lock());
        if let Some(room) = self.room.get() {
            space.admission.share_room(room);
        }
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl ClusterNode {
    /// Registers this process as a node, in place of whatever ran in its data directory before.
    pub(crate) async fn join(
        config: &Config,
        database: Arc<PostgresNode>,
    ) -> Result<Arc<Self>, ServeError> {
        let unusable = |error: std::io::Error| ServeError::Data {
            path: config.data.clone(),
            message: error.to_string(),
        };
        make_private_directory(&config.data).map_err(unusable)?;
        let directory = DirectoryLock::take(&config.data)?;
        let home = load_home(&config.data).map_err(unusable)?;
        let cluster = config.cluster.clone().unwrap_or_default();
        let identity =
            PeerIdentity::make().map_err(|error| ServeError::Spaces(error.to_string()))?;
        check_mounts(&config.mounts, &home, &database).await?;
        let (peers, address) = listen_for_peers(&cluster).await?;
        let registration = NodeRegistration {
            name: cluster.name.unwrap_or_else(|| home.clone()),
            home,
            address,
            fingerprint: identity.fingerprint().as_bytes().to_vec(),
            mounts: config.mounts.iter().map(MountEntry::to_column).collect(),
        };
        let sent = boot_now();
        let id = database.register(&registration).await?;
        tracing::info!(node = id, "this process is a node");
        let machine = NodeMachine::registered(id, sent, LEASE_TIMES);
        let (inputs, arrivals) = mpsc::channel(INPUTS_MAX);
        let shared = Arc::new(ClusterShared {
            config: config.clone(),
            database,
            id,
            loading: Semaphore::new(LOADING_MAX),
            preparing: Semaphore::new(PREPARING_MAX),
            trust: Arc::new(NodeTrust::new(machine.trusted_until())),
            living: Arc::default(),
            identity: Arc::new(identity),
            counters: NodeCounters::default(),
            peers: Mutex::new(peers),
            stop: CancellationToken::new(),
            draining: AtomicBool::new(false),
            runtime: Handle::current(),
            pulse: RuntimePulse::new(sent),
            inputs,
            handles: Mutex::default(),
            facts: Mutex::default(),
            room: OnceLock::new(),
            _lock: directory,
        });
        let driver = NodeDriver::new(Arc::clone(&shared), machine);
        let started = drive_on_a_thread(driver, arrivals);
        started
            .map_err(|error| ServeError::Spaces(format!("no thread for heartbeats: {error}")))?;
        task::spawn(keep_pulse(Arc::clone(&shared)));
        task::spawn(report_loads(Arc::clone(&shared)));
        task::spawn(tell_telemetry(Arc::clone(&shared)));
        Ok(Arc::new(Self { shared }))
    }

    pub(super) fn shared(&self) -> &ClusterShared {
        &self.shared
    }

    /// The way from this node to the others.
    pub(crate) fn relays(self: &Arc<Self>) -> Relays {
        let directory: Arc<dyn SpaceDirectory> = Arc::clone(self) as _;
        Relays::new(Arc::clone(&self.shared.identity), directory)
    }

    /// What answers peers, and where; once.
    pub(crate) fn open_to_peers(
        self: &Arc<Self>,
        relays: &Arc<Relays>,
        room: &Arc<ConnectionCapacity>,
    ) -> Option<(TcpListener, Arc<PeerService>)> {
        let listener = self.shared.peers.lock().take()?;
        let directory: Arc<dyn SpaceDirectory> = Arc::clone(self) as _;
        let describe = self.metrics(relays, room);
        let identity = Arc::clone(&self.shared.identity);
        let handle = PeerService::new(identity, directory, move || describe());
        Some((listener, Arc::new(handle)))
    }

    /// What operators ask for.
    pub(crate) fn metrics(
        self: &Arc<Self>,
        relays: &Arc<Relays>,
        room: &Arc<ConnectionCapacity>,
    ) -> DescribeMetrics {
        let (node, relays, room) = (Arc::downgrade(self), Arc::clone(relays), Arc::clone(room));
        Arc::new(move || {
            let node = node.upgrade();
            node.map_or_else(String::new, |node| node.describe_metrics(&relays, room.connections()))
        })
    }

    pub(crate) fn database(&self) -> &Arc<PostgresNode> {
        &self.shared.database
    }

    /// Whether this node holds the lock of a directory as its own.
    pub(crate) fn has_directory(&self, data: &Path) -> bool {
        self.shared.config.data == data
    }

    /// Connections to spaces that are loaded later count against the same room.
    pub(crate) fn set_room(&self, room: &Arc<ConnectionCapacity>) {
        // The first stays: there is one listener.
        let _was_set = self.shared.room.set(Arc::clone(room));
    }

    /// The way into a space that the node holds for as long as it runs.
    pub(crate) fn add_handle(&self, name: &str, handle: SpaceHandle) {
        self.shared.handles.lock().insert(name.to_owned(), handle);
    }

    /// Where a space is; it is taken and loaded here if nobody serves it, or where it is to be taken if this node drains. No
    /// statement is made for one that is here.
    pub(crate) async fn space(&self, name: &str) -> Result<SpaceLocation, SpaceUnavailable> {
        if let Some(handle) = self.handle(name)? {
            return Ok(SpaceLocation::Here(handle));
        }
        let failed = |error: JournalError| SpaceUnavailable::Failed(error.to_string());
        let found = self.shared.database.find_space(name).await.map_err(failed)?;
        let SpaceFacts { id: space, .. } = found.ok_or(SpaceUnavailable::Missing)?;
        match self.find(space).await {
            Ok(SpaceFinding::Here) => match self.handle(name)? {
                Some(handle) => Ok(SpaceLocation::Here(handle)),
                None => Err(SpaceUnavailable::Nobody), // it ended in this moment
            },
            Ok(SpaceFinding::At(node)) => Ok(SpaceLocation::At(node)),
            Ok(SpaceFinding::Missing) => Err(SpaceUnavailable::Missing),
            Ok(SpaceFinding::Unavailable) => self.find_taker(space).await,
            Err(unavailable) => Err(unavailable),
        }
    }

    /// Takes a space and loads it, if nobody serves it; whether it is here now.
    pub(super) async fn take_space(&self, space: SpaceId) -> bool {
        matches!(self.find(space).await, Ok(SpaceFinding::Here))
    }

    /// What is known of a space, or why nobody knows.
    async fn find(&self, space: SpaceId) -> Result<SpaceFinding, SpaceUnavailable> {
        let (waiter, finding) = oneshot::channel();
        self.shared.tell(DriverInput::Wanted { space, waiter }).await;
        match timeout(FINDING_WAIT, finding).await {
            // Nobody answers if the driver is gone, or the space is not here for others.
            Ok(finding) => Ok(finding.unwrap_or(SpaceFinding::Unavailable)),
            Err(_) => {
                tracing::warn!(
                    node = self.shared.id,
                    space,
                    "the owner of a space was not found in time"
                );
                Err(SpaceUnavailable::Nobody)
            }
        }
    }

    /// The way to the node that a space goes to.
    pub(super) fn successor_of(&self, space: SpaceId) -> Successor {
        Successor::new(&self.shared, space)
    }

    /// Where a space goes that nobody serves and that this node does not take because it drains, or because it is ordered
    /// elsewhere: whoever asks there has it taken.
    async fn find_taker(&self, space: SpaceId) -> Result<SpaceLocation, SpaceUnavailable> {
        let (database, node) = (&self.shared.database, self.shared.id);
        let taker = database.find_taker(node, space, self.shared.is_draining());
        match taker.await {
            Ok(Some(node)) => Ok(SpaceLocation::At(node)),
            Ok(None) => Err(SpaceUnavailable::Nobody), // it is the only one, or takes spaces itself
            Err(error) => Err(SpaceUnavailable::Failed(error.to_string())),
        }
    }

    /// The way into a space that is here; nobody is let in while the node may not speak for it.
    fn handle(&self, name: &str) -> Result<Option<SpaceHandle>, SpaceUnavailable> {
        let handle = self.shared.handles.lock().get(name).cloned();
        match handle {
            Some(handle) if !handle.admission.may_speak() => Err(SpaceUnavailable::Nobody),
            handle => Ok(handle),
        }
    }

    /// The spaces that are here.
    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        self.shared.handles.lock().keys().cloned().collect()
    }

    pub(crate) fn id(&self) -> NodeId {
        self.shared.id
    }

    /// Takes no space any more.
    pub(crate) async fn drain(&self) -> Result<(), JournalError> {
        self.shared.draining.store(true, Ordering::Relaxed);
        let input = DriverInput::Machine(NodeInput::Drain);
        self.shared.tell(input).await;
        let database = &self.shared.database;
        database.set_draining(self.shared.id, true).await
    }

    /// Ends a space here in order and gives its lease back; returns when that is done. One that is not here is nobody's loss.
    #[cfg(test)]
    pub(crate) async fn give_back(&self, name: &str) -> Result<(), JournalError> {
        let found = self.shared.database.find_space(name).await?;
        if let Some(SpaceFacts { id, .. }) = found {
            self.give_back_some(Some(id)).await;
        }
        Ok(())
    }

    pub(super) async fn give_back_some(&self, space: Option<SpaceId>) {
        let (done, given) = oneshot::channel();
        self.shared.tell(DriverInput::GiveBack { space, done }).await;
        // Nobody answers if the driver is gone: nothing is held then.
        let _gone = given.await;
    }

    /// The same for all spaces that are loaded when they are wanted; none is taken any more.
    pub(crate) async fn give_all_back(&self) {
        if let Err(error) = self.drain().await {
            tracing::debug!(%error, "other nodes could not be told that this node is going down");
        }
        self.give_back_some(None).await;
    }

    /// Takes the node out of the table; what it still holds is free.
    pub(crate) async fn leave(&self) {
        let left = self.shared.database.unregister(self.shared.id).await;
        if let Err(error) = left {
            tracing::debug!(%error, "the node is still listed; others find it gone after a while");
        }
    }

    /// Waits until another process has taken this node's place.
    pub(crate) async fn wait_until_ended(&self) {
        self.shared.trust.wait_until_ended().await;
    }
}

/// What this node offers is there, and no other that lives offers another directory under the same label.
async fn check_mounts(
    mounts: &[MountEntry],
    home: &str,
    database: &PostgresNode,
) -> Result<(), ServeError> {
    for mount in mounts {
        let wrong = |message: String| ServeError::Workspace { path: mount.path.clone(), message };
        let found = tokio::fs::metadata(&mount.path).await;
        if !found.map_err(|error| wrong(error.to_string()))?.is_dir() {
            return Err(wrong("it is not a directory".to_owned()));
        }
    }
    let Some((node, other)) = database.find_other_path(home, mounts).await? else { return Ok(()) };
    Err(ServeError::Spaces(format!(
        "[[mounts]]: the node {node} offers `{}` at {}; a mount is at the same path on every node, or has another label",
        other.label,
        other.path.display()
    )))
}

/// Listens where peers connect, and says what they connect to; nowhere, if the settings name no address.
async fn listen_for_peers(
    cluster: &ClusterSettings,
) -> Result<(Option<TcpListener>, String), ServeError> {
    let Some(address) = cluster.address.clone() else { return Ok((None, String::new())) };
    let listen = cluster.listen.clone().unwrap_or_else(|| address.clone());
    let wrong = |error: std::io::Error| {
        ServeError::Spaces(format!("[cluster]: cannot listen on {listen} for other nodes: {error}"))
    };
    let listener = TcpListener::bind(&listen).await.map_err(wrong)?;
    let bound = listener.local_addr().map_err(wrong)?;
    // The system chose a port.
    let address = match address.strip_suffix(":0") {
        Some(name) => format!("{name}:{}", bound.port()),
        None => address,
    };
    Ok((Some(listener), address))
}
