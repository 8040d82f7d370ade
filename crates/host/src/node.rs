//! One process: a listener, and the spaces behind it.
//!
//! Promises: no connection is accepted before every space has booted; a space that was lost to another node, or whose journal has
//! what its kernel does not know, is loaded anew; one that cannot go on ends the node, with its reason; clients find each space
//! through the endpoint file of its data directory.
//! Must not know: what happens in a space.

mod reload;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::accounts::Accounts;
use crate::cluster::{ClusterNode, PeerService, Relays};
use crate::config::Config;
use crate::credentials::{EndpointFile, EndpointRecord};
use crate::devices::Devices;
use crate::net::{self, DescribeMetrics, SpaceHandle, SpaceHandles};
use crate::server::{ServeError, ServerReady, VERSION};
use crate::space_entry::FIRST_SPACE;
use crate::space_host::{PreparedSpace, SpaceHost};
use crate::task;
use crate::telemetry::export_log_while_running;

/// A process that serves one or more spaces.
pub(crate) struct Node {
    config: Config,
    listener: Option<TcpListener>,
    /// That of the data directory.
    first: SpaceHost,
    /// Those of the settings, by name.
    others: Vec<(String, SpaceHost)>,
    /// This process among the nodes on its database, if it has one: further spaces are found through it.
    cluster: Option<Arc<ClusterNode>>,
    /// Of the database, if there is one.
    accounts: Option<Arc<Accounts>>,
    /// Ends the export of the log, which is that of all spaces.
    _exporting: Option<DropGuard>,
}

impl Node {
    /// Opens all spaces and starts their kernels. No connection is accepted yet.
    pub(crate) async fn start(
        config: &Config,
        mut first: PreparedSpace,
        cluster: Option<Arc<ClusterNode>>,
    ) -> Result<Self, ServeError> {
        let mut facts = Vec::new();
        first.share_facts(&mut facts);
        let mut prepared = Vec::new();
        for entry in &config.spaces {
            let mut space =
                SpaceHost::prepare(&config.of_space(entry), &entry.name, cluster.as_ref()).await?;
            space.share_facts(&mut facts);
            space.admission = space.admission.sharing_room_of(&first.admission);
            prepared.push((entry.name.clone(), space));
        }
        check_tokens(&first, &prepared)?;
        if let Some(cluster) = &cluster {
            cluster.set_room(&first.admission.room);
        }
        let listener = if config.stdio { None } else { Some(bind(config)?) };
        let others = prepared.into_iter().map(|(name, space)| Ok((name, space.start()?)));
        let accounts = match &cluster {
            Some(cluster) => Some(Accounts::open(cluster.database()).await?),
            None => None,
        };
        Ok(Self {
            config: config.clone(),
            accounts,
            listener,
            others: others.collect::<Result<_, ServeError>>()?,
            first: first.start()?,
            cluster,
            _exporting: export_log(config),
        })
    }

    /// Serves until `shutdown` resolves: then turns end, readers are flushed, journals are closed.
    pub(crate) async fn serve(
        mut self,
        on_ready: impl FnOnce(ServerReady),
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let mut shutdown = std::pin::pin!(shutdown);
        tokio::select! {
            booted = self.wait_until_booted() => booted?,
            () = &mut shutdown => {
                for space in self.into_spaces() {
                    space.supervisor.abort().await;
                }
                return Ok(());
            }
        }
        let served = match self.listener.take() {
            Some(listener) => self.serve_sockets(listener, on_ready, shutdown).await,
            None => {
                let space = &mut self.first;
                serve_stdio(&self.config, space, on_ready, shutdown).await
            }
        };
        // After a failure nothing is worth waiting for: a batch that is being written is written whole or not at all.
        served?;
        let mut closed = Ok(());
        let cluster = self.cluster.take();
        for space in self.into_spaces() {
            closed = closed.and(space.close().await);
        }
        if let Some(cluster) = cluster {
            cluster.leave().await;
        }
        closed
    }

    fn into_spaces(self) -> impl Iterator<Item = SpaceHost> {
        let others = self.others.into_iter().map(|(_, space)| space);
        std::iter::once(self.first).chain(others)
    }

    fn spaces_mut(&mut self) -> impl Iterator<Item = &mut SpaceHost> {
        let others = self.others.iter_mut().map(|(_, space)| space);
        std::iter::once(&mut self.first).chain(others)
    }

    /// All spaces with their names.
    fn named_spaces(&self) -> impl Iterator<Item = (&str, &SpaceHost)> {
        let others = self.others.iter().map(|(name, space)| (name.as_str(), space));
        std::iter::once((FIRST_SPACE, &self.first)).chain(others)
    }

    async fn wait_until_booted(&mut self) -> Result<(), ServeError> {
        for space in self.spaces_mut() {
            space.supervisor.wait_until_booted().await?;
        }
        Ok(())
    }

    fn set_ready(&self, ready: bool) {
        for (_, space) in self.named_spaces() {
            space.admission.set_ready(ready);
        }
    }

    fn handles(&self) -> SpaceHandles {
        let handle = |(name, space): (&str, &SpaceHost)| {
            let admission = Arc::clone(&space.admission);
            SpaceHandle::new(name, admission, space.supervisor.queue())
        };
        let first = handle((FIRST_SPACE, &self.first));
        if let Some(cluster) = &self.cluster {
            for (name, space) in self.named_spaces() {
                let name = self.config.name_in_database(name);
                cluster.add_handle(&name, handle((&name, space)));
            }
        }
        let handles = SpaceHandles::new(first, self.named_spaces().skip(1).map(handle).collect());
        handles.with_accounts(self.accounts.clone())
    }

    /// Tells local clients where each space is.
    fn write_endpoints(&self, url: &str) -> Result<Vec<EndpointFile>, ServeError> {
        let write = |(name, space): (&str, &SpaceHost)| {
            // Whoever asks for a proof must say of which token.
            let url = match name {
                FIRST_SPACE => url.to_owned(),
                name => format!("{url}?space={name}"),
            };
            let endpoint = EndpointRecord {
                url,
                token: space.admission.token.clone(),
                pid: std::process::id(),
                version: VERSION.to_owned(),
            };
            EndpointFile::write(&space.data, &endpoint).map_err(|error| ServeError::Data {
                path: space.data.clone(),
                message: error.to_string(),
            })
        };
        self.named_spaces().map(write).collect()
    }

    /// Takes connections of other nodes, and follows what operators want of this one.
    fn join_peers(&self, stop: &CancellationToken) -> PeerTasks {
        let Some(cluster) = &self.cluster else { return PeerTasks::default() };
        let room = Arc::clone(&self.first.admission.room);
        let relays = Arc::new(cluster.relays());
        let (mut peers, mut service) = (None, None);
        if let Some((listener, opened)) = cluster.open_to_peers(&relays, &room) {
            service = Some(Arc::clone(&opened));
            peers = Some(task::spawn(opened.serve(listener, stop.clone())));
        }
        let orders = Arc::clone(cluster).follow_orders(move || room.set_draining());
        PeerTasks {
            metrics: Some(cluster.metrics(&relays, &self.first.admission.room)),
            relays: Some(relays),
            service,
            peers,
            orders: Some(task::spawn(orders)),
        }
    }

    /// Gives the spaces of a cluster away before anything of this node ends.
    async fn drain(&self) {
        if let Some(cluster) = &self.cluster {
            self.first.admission.room.set_draining();
            let limits = &self.config.limits.server;
            // Spaces end within their own limit each; whoever waits longer waits for a database that is away.
            let limit = Duration::from_secs(limits.drain_turns_s + DRAIN_GRACE_S);
            if tokio::time::timeout(limit, cluster.drain_spaces()).await.is_err() {
                tracing::warn!("some spaces were not given back in time; others take them over");
            }
        }
    }

    async fn serve_sockets(
        &mut self,
        listener: TcpListener,
        on_ready: impl FnOnce(ServerReady),
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let address = listener
            .local_addr()
            .map_err(|source| ServeError::Listen { address: self.config.listen, source })?;
        let url = format!("ws://{}/", reachable_address(address));
        let _endpoints = self.write_endpoints(&url)?;
        self.set_ready(true);
        let stop = CancellationToken::new();
        let peers = self.join_peers(&stop);
        let handles = self.handles().with_relays(peers.relays.clone());
        let handles = Arc::new(handles.with_node_metrics(peers.metrics.clone()));
        if let Some(service) = &peers.service {
            service.serve_clients(Arc::clone(&handles));
        }
        let serving = net::serve_spaces(listener, Arc::clone(&handles), stop.clone());
        let mut listening = task::spawn(serving);
        let devices = self.named_spaces();
        let devices: Vec<Arc<Devices>> =
            devices.map(|(_, space)| Arc::clone(&space.admission.devices)).collect();
        let saving = task::spawn(save_device_uses(devices.clone()));
        on_ready(ServerReady { url, token: self.first.admission.token.clone(), version: VERSION });
        if let Err(failure) = self.serve_until(shutdown, &handles).await {
            self.set_ready(false);
            listening.abort();
            saving.abort();
            peers.abort();
            return Err(failure);
        }
        self.drain().await;
        self.set_ready(false);
        // Half of the time for turns and the journal, half for readers: five seconds in all by contract.
        let half = Duration::from_millis(self.config.limits.server.shutdown_ms / 2);
        let cluster = self.cluster.clone();
        let giving_back = async {
            if let Some(cluster) = cluster {
                cluster.give_all_back().await;
            }
        };
        let stopping = self.spaces_mut().map(|space| space.stop(half));
        let stopping = futures_util::future::join_all(stopping);
        let (stopped, _in_time) = tokio::join!(stopping, tokio::time::timeout(half, giving_back));
        stop.cancel();
        if tokio::time::timeout(half, &mut listening).await.is_err() {
            tracing::debug!("some connections did not close in time and are dropped");
        }
        saving.abort();
        peers.end(half).await;
        save_uses(&devices).await;
        stopped.into_iter().collect()
    }
}

/// Time to give spaces back, beside that for turns, in seconds.
const DRAIN_GRACE_S: u64 = 20;

/// What a node of a cluster does beside serving clients.
#[derive(Default)]
struct PeerTasks {
    relays: Option<Arc<Relays>>,
    metrics: Option<DescribeMetrics>,
    /// What answers other nodes.
    service: Option<Arc<PeerService>>,
    peers: Option<JoinHandle<()>>,
    orders: Option<JoinHandle<()>>,
}

impl PeerTasks {
    fn abort(&self) {
        self.peers.iter().chain(&self.orders).for_each(JoinHandle::abort);
    }

    /// Lets connections of peers end, for at most so long.
    async fn end(mut self, limit: Duration) {
        if let Some(peers) = &mut self.peers
            && tokio::time::timeout(limit, peers).await.is_err()
        {
            tracing::debug!("some connections of other nodes did not close in time");
        }
        self.abort();
    }
}

/// Begins to export the log to the collector, if there is one and no space does it.
fn export_log(config: &Config) -> Option<DropGuard> {
    let endpoint = config.otlp_endpoint.clone().filter(|_| !config.spaces.is_empty())?;
    let stop = CancellationToken::new();
    task::spawn(export_log_while_running(endpoint, stop.clone()));
    Some(stop.drop_guard())
}

/// A token names the space that a client is for, so no two may have the same.
fn check_tokens(
    first: &PreparedSpace,
    others: &[(String, PreparedSpace)],
) -> Result<(), ServeError> {
    let mut seen = vec![&first.admission.token];
    for (name, space) in others {
        if seen.contains(&&space.admission.token) {
            return Err(ServeError::Spaces(format!(
                "the space {name} has the token of another; delete {} to have one made",
                space.config.data.join("token").display()
            )));
        }
        seen.push(&space.admission.token);
    }
    Ok(())
}

/// Connections that the system holds until they are accepted. Beyond it a client waits for a second at least, so a burst of
/// others must fit.
const ACCEPT_BACKLOG: u32 = 4_096;

pub(crate) fn bind(config: &Config) -> Result<TcpListener, ServeError> {
    let listen = || {
        let socket = match config.listen {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A host that was just stopped does not keep the next one from its port.
        socket.set_reuseaddr(true)?;
        socket.bind(config.listen)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listen().map_err(|source| ServeError::Listen { address: config.listen, source })
}

/// How often it is written when devices were used: often enough for people, seldom enough for disks.
const USES_SAVED_EVERY: Duration = Duration::from_secs(60);

async fn save_device_uses(devices: Vec<Arc<Devices>>) {
    let mut due = tokio::time::interval(USES_SAVED_EVERY);
    due.tick().await; // the first is at once
    loop {
        due.tick().await;
        save_uses(&devices).await;
    }
}

async fn save_uses(devices: &[Arc<Devices>]) {
    let devices = devices.to_vec();
    let save = move || devices.iter().try_for_each(|devices| devices.save_uses());
    let saved = task::spawn_blocking(save).await;
    match saved {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "when devices were last used is not saved"),
        Err(error) => tracing::error!(%error, "saving when devices were last used panicked"),
    }
}

/// An address that means "all of them" cannot be connected to: its loopback address can.
fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn serve_stdio(
    config: &Config,
    space: &mut SpaceHost,
    on_ready: impl FnOnce(ServerReady),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    on_ready(ServerReady { url: "stdio:".to_owned(), token: None, version: VERSION });
    let (admission, supervisor) = (&space.admission, &mut space.supervisor);
    let stop = CancellationToken::new();
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let queue = supervisor.queue();
    let mut client =
        std::pin::pin!(net::stdio::serve(input, output, admission, queue, stop.clone()));
    let half = Duration::from_millis(config.limits.server.shutdown_ms / 2);
    tokio::select! {
        // End of input is a graceful stop (G-31).
        () = &mut client => supervisor.stop(half).await,
        () = shutdown => {
            let stopped = supervisor.stop(half).await;
            stop.cancel();
            client.await;
            stopped
        }
        failure = supervisor.wait_for_failure() => Err(failure),
    }
}
