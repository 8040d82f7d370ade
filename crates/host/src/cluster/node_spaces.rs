//! The spaces of this node: each is loaded when it is wanted, served, and ended in order or at once.
//!
//! Promises: a lease that was taken is given back whatever goes wrong while its space is started; the end of a space is told
//! after its last batch.
//! Must not know: why a space is taken or given up.

use std::sync::Arc;
use std::time::Duration;

use kernel::Boot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::heartbeat::Tenure;
use super::lease_table::{LeaseAnswer, LeaseAsk, PeerNode, SpaceId, TakenLease};
use super::node::ClusterShared;
use super::node_driver::DriverInput;
use super::node_machine::NodeInput;
use crate::accounts::{SpaceBounds, SpaceLimits};
use crate::blobs::Blobs;
use crate::config::{Config, TokenChoice};
use crate::journal::{JournalHandle, PostgresJournal, SpaceFacts, SpaceJournal};
use crate::mounts::SpaceMount;
use crate::net::SpaceHandle;
use crate::server::ServeError;
use crate::space_agents::{SettingsSource, SpaceAgents};
use crate::space_entry::{SpaceEntry, is_space_name};
use crate::space_host::{PreparedSpace, SpaceHost};
use crate::startup::{OpenedJournal, Parts, Stores, create_agents, make_private_directory};
use crate::supervisor::SpaceEnd;
use crate::task;

/// It is only counted who lost what: nothing waits longer to know.
const HOLDER_WAIT: Duration = Duration::from_secs(1);

/// Where the directories of spaces are in a node's data directory.
const SPACES_DIRECTORY: &str = "spaces";

/// Where a space is served.
#[derive(Clone)]
pub(crate) enum SpaceLocation {
    /// Here; it stays loaded while the handle is held.
    Here(SpaceHandle),
    /// By another node.
    At(PeerNode),
}

/// Why nobody serves a space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpaceUnavailable {
    #[error("there is no space of this name")]
    Missing,
    /// Worth another try in a moment: its node is gone and not yet judged, or this one may not speak.
    #[error("nobody serves this space at the moment; try again")]
    Nobody,
    #[error("{0}")]
    Failed(String),
}

/// The journal of a space that this node holds, and its last state.
pub(crate) struct HeldJournal {
    pub journal: PostgresJournal,
    pub boot: Boot,
    pub tenure: Tenure,
}

/// How a space that is served is ended.
#[derive(Clone)]
pub(super) struct SpaceControl {
    pub tenure: Tenure,
    /// In order: turns end, what arrived is written, the lease is given back.
    pub unload: CancellationToken,
}

/// Serves a space whose lease was taken, from its start to its end.
pub(super) async fn serve_space(
    node: Arc<ClusterShared>,
    space: SpaceId,
    lease: TakenLease,
    control: SpaceControl,
) {
    // Boxed, as is whatever happens once: it takes much more than waiting for the end, and thousands wait.
    let ended = match Box::pin(begin_space(&node, space, lease, &control.tenure)).await {
        Ok(host) => end_space(&node, space, host, &control).await,
        Err(failed) => failed,
    };
    Box::pin(node.tell(DriverInput::Machine(ended))).await;
}

/// Starts a space and reports it; returns what its node must know if that fails.
async fn begin_space(
    node: &Arc<ClusterShared>,
    space: SpaceId,
    lease: TakenLease,
    tenure: &Tenure,
) -> Result<Box<SpaceHost>, NodeInput> {
    let room = node.loading.acquire().await;
    let started = start_space(node, space, lease, tenure).await;
    drop(room);
    match started {
        Ok((name, host)) => {
            tracing::info!(node = node.id, space, epoch = lease.epoch, "a space is served here");
            node.counters.note_taken();
            let handle =
                SpaceHandle::new(&name, Arc::clone(&host.admission), host.supervisor.queue())
                    .on_demand();
            node.tell(DriverInput::Started { space, name, handle }).await;
            Ok(host)
        }
        Err(error) => {
            tracing::error!(node = node.id, space, %error, "a space could not be started");
            Err(match error {
                ServeError::Journal(_) | ServeError::JournalStopped(_) => NodeInput::Failed(space),
                _ => NodeInput::Ended(space), // trying again changes nothing
            })
        }
    }
}

async fn start_space(
    node: &Arc<ClusterShared>,
    space: SpaceId,
    lease: TakenLease,
    tenure: &Tenure,
) -> Result<(String, Box<SpaceHost>), ServeError> {
    let journal = node.database.journal_of(space, node.id, lease);
    let started = start_over(node, space, &journal, tenure).await;
    if started.is_err() {
        journal.close().await;
    }
    started
}

async fn start_over(
    node: &Arc<ClusterShared>,
    space: SpaceId,
    journal: &PostgresJournal,
    tenure: &Tenure,
) -> Result<(String, Box<SpaceHost>), ServeError> {
    let facts = node.database.name_space(space).await?;
    let removed = || ServeError::Spaces("the space was removed".to_owned());
    let SpaceFacts { name, mount, .. } = facts.ok_or_else(removed)?;
    if !is_space_name(&name) {
        let text = format!("{name:?} is no name for a space");
        return Err(ServeError::Spaces(text));
    }
    let mount = SpaceMount::find(mount, &node.config.mounts);
    let boot = journal.boot().await?;
    let held = HeldJournal { journal: journal.clone(), boot, tenure: tenure.clone() };
    let own_name = name.clone();
    let room = node.preparing.acquire().await;
    // Files are read and written for it: others have something to do meanwhile.
    let preparing = Arc::clone(node);
    let prepared =
        task::spawn_blocking(move || prepare_space(&preparing, own_name, mount, held)).await;
    drop(room);
    let died = |error| ServeError::Spaces(format!("a space was not prepared: {error}"));
    let mut prepared = prepared.map_err(died)??;
    node.share(&mut prepared);
    prepared.read_limits().await;
    let mut host = Box::new(prepared.start_untold()?);
    host.supervisor.wait_until_booted().await?;
    host.admission.set_ready(true);
    Ok((name, host))
}

/// The settings of a space of this node.
fn config_of(node: &ClusterShared, name: &str, mount: &SpaceMount) -> Config {
    let mut config = node.config.of_space(&SpaceEntry {
        data: node.config.data.join(SPACES_DIRECTORY).join(name),
        name: name.to_owned(),
        workspaces: mount.workspaces(),
    });
    config.without_workspaces = mount.missing().is_some();
    config.token = TokenChoice::Unstored;
    config
}

/// Has agents and settings of a space made when they are wanted: most spaces that are loaded are at rest.
fn make_on_demand(parts: &mut Parts, node: &Arc<ClusterShared>, name: &str, mount: &SpaceMount) {
    // Not held: the node has what has these.
    let node = Arc::downgrade(node);
    let (name, mount) = (name.to_owned(), mount.clone());
    let settings = SettingsSource::on_demand(move || {
        let ended = || ServeError::Spaces("this node has left its cluster".to_owned());
        let node = node.upgrade().ok_or_else(ended)?;
        Ok(config_of(&node, &name, &mount))
    });
    let (source, confinement) = (settings.clone(), parts.confinement.clone());
    let make = move || create_agents(&source.get()?, &confinement);
    parts.agents = SpaceAgents::on_demand(Box::new(make));
    parts.settings = settings;
}

/// Everything of a space but its kernel. Blocks.
fn prepare_space(
    node: &Arc<ClusterShared>,
    name: String,
    mount: SpaceMount,
    held: HeldJournal,
) -> Result<PreparedSpace, ServeError> {
    let HeldJournal { journal, boot, tenure } = held;
    let database = Arc::clone(&node.database);
    let config = &config_of(node, &name, &mount);
    make_private_directory(&config.data).map_err(|error| ServeError::Data {
        path: config.data.clone(),
        message: error.to_string(),
    })?;
    // It lies in the node's data directory, which is locked, and the node has each space once.
    let blobs: Arc<dyn Blobs> = Arc::new(journal.blobs());
    let handle = JournalHandle::over(Arc::new(journal.clone()));
    let stores = Stores { journal: OpenedJournal::Elsewhere(handle, boot), blobs };
    let mut parts = Parts::assemble(config, stores, None)?;
    make_on_demand(&mut parts, node, &name, &mount);
    parts.tenure = Some(tenure);
    parts.address_secret = Some(database.address_secret(&name));
    let limits = &config.limits.server;
    let defaults = SpaceLimits::from(limits);
    let bounds = SpaceBounds::new(database, name, defaults, journal.counters())
        .with_append_slow_ms(limits.append_slow_ms);
    parts.bounds = Some(Arc::new(bounds.without_mount(mount.missing())));
    PreparedSpace::over(config, parts)
}

/// Whether another node took a space; one whose journal failed here was lost to nobody.
async fn is_held_elsewhere(node: &ClusterShared, space: SpaceId) -> bool {
    let (database, id) = (Arc::clone(&node.database), node.id);
    // A task of its own: a question that nobody waits for any more keeps its connection all the same.
    let asking = task::spawn_for(async move { database.ask(id, &LeaseAsk::Find { space }).await });
    match timeout(HOLDER_WAIT, asking).await {
        Ok(Ok(LeaseAnswer::Found(Some(found)))) => {
            found.holder.is_some_and(|holder| holder != node.id)
        }
        Ok(_) | Err(_) => false, // nobody knows
    }
}

/// Waits until a space is to end, or ends by itself, and gives its lease back unless it is lost. What is returned is told to the
/// node once all of it has ended.
async fn end_space(
    node: &ClusterShared,
    space: SpaceId,
    mut host: Box<SpaceHost>,
    control: &SpaceControl,
) -> NodeInput {
    let limit = Duration::from_millis(node.config.limits.server.shutdown_ms);
    let end = tokio::select! {
        () = control.unload.cancelled() => {
            host.admission.set_ready(false);
            Box::pin(host.stop(limit)).await.err().map(|error| SpaceEnd::Kernel(error.to_string()))
        }
        end = host.supervisor.wait_for_end() => Some(end),
    };
    // Whatever still runs for it must find that it is over.
    let is_lost = control.tenure.is_lost();
    control.tenure.lose();
    let ended = match end {
        Some(SpaceEnd::Journal(reason)) => {
            tracing::warn!(
                node = node.id,
                space,
                reason,
                "a space is loaded anew, here or where it was taken"
            );
            let looking = async { is_lost || Box::pin(is_held_elsewhere(node, space)).await };
            let over = Box::pin(host.supervisor.wait_until_over(limit));
            let (is_elsewhere, ()) = tokio::join!(looking, over);
            if is_elsewhere {
                node.counters.note_lost();
            }
            NodeInput::Failed(space)
        }
        Some(SpaceEnd::Kernel(_)) if is_lost => {
            node.counters.note_lost();
            tracing::warn!(node = node.id, space, "a space was lost to another node");
            NodeInput::Ended(space)
        }
        Some(SpaceEnd::Kernel(reason)) => {
            tracing::error!(node = node.id, space, reason, "a space ended by itself");
            NodeInput::Ended(space)
        }
        None => {
            tracing::info!(node = node.id, space, "a space is given back");
            NodeInput::Ended(space)
        }
    };
    if let Err(error) = Box::pin((*host).close()).await {
        tracing::debug!(node = node.id, space, %error, "the journal of a space had ended");
    }
    ended
}
