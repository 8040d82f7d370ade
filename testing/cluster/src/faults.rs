//! What goes wrong, chosen by a seed, and how it is done to real processes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use host::cluster::ClusterAdmin;
use postgres_server::PostgresServer;
use testkit::rng::SeededRng;
use tokio::time::interval;

use crate::checked_client::NodeUrls;
use crate::node_process::NodeProcess;
use crate::run::DATABASE;
use crate::space_history::{CurrentFault, SpaceHistory};

/// Between two looks at whether something has happened.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// For what is certain to happen, on a machine that does much else.
const CERTAIN: Duration = Duration::from_secs(120);

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`; started again at once, or when others have taken over.
    Kill {
        node: usize,
        is_quick: bool,
    },
    /// Stopped past its lease, then woken up.
    Freeze {
        node: usize,
    },
    RestartDatabase {
        is_crash: bool,
    },
    EndBackends,
    /// `SIGTERM`, then started again.
    Drain {
        node: usize,
    },
    Move {
        space: usize,
        node: usize,
    },
    /// Connections of other nodes to this one end, and there are no new ones for a while.
    CutRelays {
        node: usize,
    },
    /// A space is ordered away, and the database is restarted before it is there.
    MoveAndRestartDatabase {
        space: usize,
        node: usize,
    },
    /// One node is stopped, and the next is killed before anybody knows: the third is alone for a while.
    FreezeAndKill {
        node: usize,
    },
    /// The database is restarted while a node gives its spaces away.
    DrainAndRestartDatabase {
        node: usize,
    },
}

impl Fault {
    /// In a word.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Kill { is_quick: false, .. } => "kill",
            Self::Kill { is_quick: true, .. } => "restart",
            Self::Freeze { .. } => "freeze",
            Self::RestartDatabase { .. } => "database",
            Self::EndBackends => "backends",
            Self::Drain { .. } => "drain",
            Self::Move { .. } => "move",
            Self::CutRelays { .. } => "relays",
            Self::MoveAndRestartDatabase { .. } => "move and database",
            Self::FreezeAndKill { .. } => "freeze and kill",
            Self::DrainAndRestartDatabase { .. } => "drain and database",
        }
    }

    /// One of each first, in an order of the seed's choice; then whatever comes.
    pub(crate) fn plan(rng: &mut SeededRng, nodes: usize, spaces: usize) -> Vec<Self> {
        let mut each = vec![
            Self::Kill { node: rng.index(nodes), is_quick: false },
            Self::Kill { node: rng.index(nodes), is_quick: true },
            Self::Freeze { node: rng.index(nodes) },
            Self::RestartDatabase { is_crash: true },
            Self::RestartDatabase { is_crash: false },
            Self::EndBackends,
            Self::Drain { node: rng.index(nodes) },
            Self::Move { space: rng.index(spaces), node: rng.index(nodes) },
            Self::CutRelays { node: rng.index(nodes) },
            Self::MoveAndRestartDatabase { space: rng.index(spaces), node: rng.index(nodes) },
            Self::FreezeAndKill { node: rng.index(nodes) },
            Self::DrainAndRestartDatabase { node: rng.index(nodes) },
        ];
        for end in (1..each.len()).rev() {
            each.swap(end, rng.index(end + 1));
        }
        each
    }
}

/// What faults are done to.
pub(crate) struct Cluster {
    pub(crate) server: PostgresServer,
    pub(crate) nodes: Vec<NodeProcess>,
    pub(crate) spaces: Vec<String>,
    pub(crate) admin: ClusterAdmin,
    pub(crate) urls: NodeUrls,
    pub(crate) fault: CurrentFault,
    /// Of every space that has clients.
    pub(crate) histories: Vec<Arc<SpaceHistory>>,
}

impl Cluster {
    /// Clients know of all nodes; those that do not answer are tried in vain.
    pub(crate) fn publish(&self) {
        self.urls.set(self.nodes.iter().map(|it| it.url.clone()).collect());
    }

    fn node(&mut self, index: usize) -> Result<&mut NodeProcess> {
        self.nodes.get_mut(index).context("a node")
    }

    /// Waits until clients of every space have heard so much more.
    pub(crate) async fn wait_for_progress(&self, actions: usize) -> Result<()> {
        let began = Instant::now();
        let before: Vec<usize> = self.histories.iter().map(|it| it.count()).collect();
        let mut look = interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let mut spaces = self.histories.iter().zip(&before);
            let waiting = spaces.position(|(it, before)| it.count() < before + actions);
            let Some(waiting) = waiting else { return Ok(()) };
            ensure!(began.elapsed() < CERTAIN, "nothing happens in {:?}", self.spaces.get(waiting));
        }
    }

    /// Waits until nobody believes any more that a node lives.
    async fn wait_until_judged(&self, name: &str) -> Result<()> {
        let began = Instant::now();
        let mut look = interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let nodes = self.admin.nodes().await?;
            let lives = |node: &host::cluster::ListedNode| node.expires_in > 0.0;
            if !nodes.iter().any(|node| node.name == name && lives(node)) {
                return Ok(());
            }
            ensure!(began.elapsed() < CERTAIN, "{name} lives on");
        }
    }

    /// Waits until a space is served by a node.
    pub(crate) async fn wait_until_placed(&mut self, space: usize, node: usize) -> Result<()> {
        let name = self.node(node)?.name.clone();
        let space = self.spaces.get(space).context("a space")?;
        let began = Instant::now();
        let mut look = interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let place = self.admin.place_of(space).await?;
            if place.as_deref() == Some(&*name) {
                return Ok(());
            }
            ensure!(began.elapsed() < CERTAIN, "{space} is on {place:?}");
        }
    }

    /// Waits until others serve what a node that is gone has served, so that everybody hears something new.
    async fn wait_for_takeover(&mut self, node: usize) -> Result<()> {
        let name = self.node(node)?.name.clone();
        self.wait_until_judged(&name).await?;
        self.wait_for_progress(1).await
    }

    /// Does it and undoes it: afterwards all nodes run.
    pub(crate) async fn suffer(&mut self, fault: Fault) -> Result<()> {
        self.fault.set(fault.kind());
        match fault {
            Fault::Kill { node, is_quick } => {
                self.node(node)?.kill()?;
                if !is_quick {
                    self.wait_for_takeover(node).await?;
                }
                self.node(node)?.start_again()?;
            }
            Fault::Freeze { node } => {
                self.node(node)?.freeze()?;
                // It stays so until everybody has heard something new, from others: those who were relayed through it, too.
                self.wait_for_takeover(node).await?;
                self.node(node)?.thaw()?;
            }
            Fault::RestartDatabase { is_crash } => {
                self.server.restart(if is_crash { "immediate" } else { "fast" })?
            }
            Fault::EndBackends => self.server.end_backends(DATABASE)?,
            Fault::Drain { node } => {
                self.node(node)?.stop()?;
                self.node(node)?.start_again()?;
            }
            Fault::Move { space, node } => {
                let node = self.node(node)?.name.clone();
                let space = self.spaces.get(space).context("a space")?;
                self.admin.move_space(space, &node).await?;
            }
            Fault::CutRelays { node } => {
                self.node(node)?.proxy.cut();
                // Whoever was relayed there finds its space all the same, on the node itself.
                self.wait_for_progress(1).await?;
                self.node(node)?.proxy.mend();
            }
            Fault::MoveAndRestartDatabase { space, node } => {
                let node = self.node(node)?.name.clone();
                let space = self.spaces.get(space).context("a space")?;
                self.admin.move_space(space, &node).await?;
                self.server.restart("fast")?;
            }
            Fault::FreezeAndKill { node } => {
                let killed = (node + 1) % self.nodes.len();
                self.node(node)?.freeze()?;
                self.node(killed)?.kill()?;
                let name = self.node(killed)?.name.clone();
                self.wait_until_judged(&name).await?;
                self.wait_for_takeover(node).await?;
                self.node(killed)?.start_again()?;
                self.node(node)?.thaw()?;
            }
            Fault::DrainAndRestartDatabase { node } => {
                self.node(node)?.begin_stop()?;
                self.server.restart("fast")?;
                self.node(node)?.finish_stop()?;
                self.node(node)?.start_again()?;
            }
        }
        self.publish();
        Ok(())
    }
}
