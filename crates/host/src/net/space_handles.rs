//! The spaces that one listener leads to, and how a request finds its own: by the token it shows.
//!
//! Promises: a secret of one space opens no other; where there is one space, nothing is looked for; a space that was loaded anew
//! is found in its place.
//! Must not know: HTTP, what a space holds.

use std::sync::Arc;

use parking_lot::RwLock;

use super::admission::Admission;
use crate::accounts::Accounts;
use crate::cluster::Relays;
use crate::kernel_queue::KernelQueue;
use crate::limits::ServerLimits;

/// The way into one space.
#[derive(Clone)]
pub(crate) struct SpaceHandle {
    pub(crate) name: Arc<str>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) queue: KernelQueue,
    /// Shared by all clones: a space stays loaded while somebody has one.
    users: Arc<()>,
    /// It is loaded when it is wanted, and given back when nobody wants it.
    is_on_demand: bool,
}

impl SpaceHandle {
    pub(crate) fn new(name: &str, admission: Arc<Admission>, queue: KernelQueue) -> Self {
        let name = Arc::from(name);
        Self { name, admission, queue, users: Arc::default(), is_on_demand: false }
    }

    /// The same for a space that is loaded when it is wanted.
    pub(crate) fn on_demand(mut self) -> Self {
        self.is_on_demand = true;
        self
    }

    pub(crate) fn is_on_demand(&self) -> bool {
        self.is_on_demand
    }

    /// Whether anybody has a clone of this handle.
    pub(crate) fn is_used(&self) -> bool {
        self.users() > 0
    }

    /// How many have one.
    pub(crate) fn users(&self) -> usize {
        Arc::strong_count(&self.users) - 1
    }
}

/// All of them. What belongs to the listener and not to a space (names it answers to, limits, the certificate) is the same in
/// each, and is asked of the first.
pub(crate) struct SpaceHandles {
    first: RwLock<SpaceHandle>,
    others: Vec<RwLock<SpaceHandle>>,
    limits: Arc<ServerLimits>,
    /// The way to other nodes on the same database.
    relays: Option<Arc<Relays>>,
    /// Whose tokens name spaces, beside those of data directories.
    accounts: Option<Arc<Accounts>>,
    /// What a node of a cluster counts, as text.
    node_metrics: Option<DescribeMetrics>,
}

/// Writes metrics down as they are now.
pub(crate) type DescribeMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// The handle that is there now.
fn current(handle: &RwLock<SpaceHandle>) -> SpaceHandle {
    handle.read().clone()
}

impl SpaceHandles {
    pub(crate) fn new(first: SpaceHandle, others: Vec<SpaceHandle>) -> Self {
        Self {
            limits: Arc::clone(&first.admission.limits),
            first: RwLock::new(first),
            others: others.into_iter().map(RwLock::new).collect(),
            relays: None,
            accounts: None,
            node_metrics: None,
        }
    }

    /// The same on a node of a cluster.
    pub(crate) fn with_relays(self, relays: Option<Arc<Relays>>) -> Self {
        Self { relays, ..self }
    }

    pub(crate) fn relays(&self) -> Option<&Arc<Relays>> {
        self.relays.as_ref()
    }

    /// The same, with what the node counts.
    pub(crate) fn with_node_metrics(self, node_metrics: Option<DescribeMetrics>) -> Self {
        Self { node_metrics, ..self }
    }

    pub(crate) fn node_metrics(&self) -> Option<String> {
        self.node_metrics.as_ref().map(|describe| describe())
    }

    /// The same, with the accounts of a database.
    pub(crate) fn with_accounts(self, accounts: Option<Arc<Accounts>>) -> Self {
        Self { accounts, ..self }
    }

    pub(crate) fn accounts(&self) -> Option<&Arc<Accounts>> {
        self.accounts.as_ref()
    }

    pub(crate) fn first(&self) -> SpaceHandle {
        current(&self.first)
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    fn places(&self) -> impl Iterator<Item = &RwLock<SpaceHandle>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SpaceHandle> {
        self.places().map(current)
    }

    /// The space of the same name is behind this handle from now on.
    pub(crate) fn replace(&self, handle: &SpaceHandle) {
        for place in self.places() {
            let mut place = place.write();
            if place.name == handle.name {
                *place = handle.clone();
            }
        }
    }

    /// The handle of the space with a name; of the first without one.
    pub(crate) fn named(&self, name: Option<&str>) -> Option<SpaceHandle> {
        match name {
            None => Some(self.first()),
            Some(name) => self.iter().find(|handle| &*handle.name == name),
        }
    }

    /// The first handle that opens, with what is behind it; otherwise why the first does not.
    pub(crate) fn open<T, E>(
        &self,
        mut open: impl FnMut(&SpaceHandle) -> Result<T, E>,
    ) -> Result<(SpaceHandle, T), E> {
        let first = self.first();
        let refusal = match open(&first) {
            Ok(opened) => return Ok((first, opened)),
            Err(refusal) => refusal,
        };
        for handle in self.iter().skip(1) {
            if let Ok(opened) = open(&handle) {
                return Ok((handle, opened));
            }
        }
        Err(refusal)
    }

    /// Whether every space is served, and new ones are taken.
    pub(crate) fn is_ready(&self) -> bool {
        !self.first().admission.room.is_draining()
            && self.iter().all(|handle| handle.admission.is_ready())
    }
}
