//! A model of the tables `node`, `lease` and the journal: each statement does at one moment what its SQL does.

use std::collections::BTreeMap;

use super::PlantedBug;
use super::node::SimEntry;
use crate::cluster::lease::EpochRange;
use crate::cluster::lease_table::{
    FoundLease, HeartbeatRow, LeaseAnswer, LeaseAsk, NodeId, PeerNode, SpaceId, TakenLease,
};
use crate::cluster::node_machine::LEASE_TIMES;

#[derive(Debug, Clone)]
struct NodeModel {
    home: u64,
    expires: u64,
    steady_since: u64,
    taken: i64,
    /// The last moment at which its time was over, as an observer of the table saw it.
    unwell_at: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct LeaseModel {
    node: Option<NodeId>,
    epoch: i64,
    batch: i64,
    seq: u64,
}

/// A batch in the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredBatch {
    pub epoch: i64,
    pub batch: i64,
    /// No two batches have the same value.
    pub entry: SimEntry,
}

/// A batch on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentBatch {
    pub epoch: i64,
    pub number: i64,
    pub entry: SimEntry,
}

pub(super) struct TableModel {
    bug: PlantedBug,
    nodes: BTreeMap<NodeId, NodeModel>,
    leases: BTreeMap<SpaceId, LeaseModel>,
    journal: BTreeMap<SpaceId, Vec<StoredBatch>>,
    last_node: NodeId,
    pub takeovers: u64,
}

impl TableModel {
    pub(super) fn new(spaces: i64, bug: PlantedBug) -> Self {
        Self {
            bug,
            nodes: BTreeMap::new(),
            leases: (1..=spaces).map(|space| (space, LeaseModel::default())).collect(),
            journal: BTreeMap::new(),
            last_node: 0,
            takeovers: 0,
        }
    }

    /// Notes whose time is over; called before every statement.
    pub(super) fn observe(&mut self, now: u64) {
        for node in self.nodes.values_mut().filter(|node| node.expires < now) {
            node.unwell_at = Some(now);
        }
    }

    /// A clock that is told back has not seen what it showed before: by it, nobody was unwell later than now.
    pub(super) fn forget_unwell(&mut self) {
        for node in self.nodes.values_mut() {
            node.unwell_at = None;
        }
    }

    pub(super) fn register(&mut self, home: u64, now: u64) -> NodeId {
        let before: Vec<NodeId> = {
            let of_home = self.nodes.iter().filter(|(_, node)| node.home == home);
            of_home.map(|(id, _)| *id).collect()
        };
        for id in before {
            self.nodes.remove(&id);
            for lease in self.leases.values_mut().filter(|lease| lease.node == Some(id)) {
                lease.node = None;
            }
        }
        self.last_node += 1;
        let node = NodeModel {
            home,
            expires: now + LEASE_TIMES.ttl_ms,
            steady_since: now,
            taken: 0,
            unwell_at: Some(now),
        };
        self.nodes.insert(self.last_node, node);
        self.last_node
    }

    /// Answers, or says which rule was broken.
    pub(super) fn ask(
        &mut self,
        me: NodeId,
        ask: &LeaseAsk,
        now: u64,
    ) -> Result<LeaseAnswer, String> {
        Ok(match ask {
            LeaseAsk::Heartbeat => LeaseAnswer::Heartbeat(self.beat(me, now)),
            LeaseAsk::Find { space } => LeaseAnswer::Found(self.leases.get(space).map(|lease| {
                let is_alive =
                    |id: &NodeId| self.nodes.get(id).is_some_and(|node| node.expires > now);
                let alive = lease.node.filter(is_alive);
                FoundLease {
                    holder: lease.node,
                    alive: alive.map(peer),
                    offering: None, // no space of the model names a mount
                }
            })),
            LeaseAsk::Take { space, seen } => {
                LeaseAnswer::Taken(self.take(me, *space, *seen, now)?)
            }
            LeaseAsk::ListOwned => {
                let owned = self.leases.iter().filter(|(_, lease)| lease.node == Some(me));
                LeaseAnswer::Owned(owned.map(|(space, _)| *space).collect())
            }
            // Every space has work, which is the hardest case.
            LeaseAsk::ListWork { limit } => {
                let work = self.leases.iter().filter_map(|(space, lease)| {
                    let Some(holder) = lease.node else { return Some((*space, None)) };
                    let node = self.nodes.get(&holder).filter(|_| holder != me)?;
                    (node.expires < now).then_some((*space, Some(holder)))
                });
                LeaseAnswer::Work(work.take(*limit as usize).collect())
            }
        })
    }

    fn beat(&mut self, me: NodeId, now: u64) -> Option<HeartbeatRow> {
        let node = self.nodes.get_mut(&me)?;
        if node.expires < now {
            node.steady_since = now;
        }
        node.expires = now + LEASE_TIMES.ttl_ms;
        let taken = node.taken;
        let expired = self.nodes.iter().filter(|(id, node)| {
            let holds = || self.leases.values().any(|lease| lease.node == Some(**id));
            node.expires < now && **id != me && holds()
        });
        let living = self.nodes.iter().filter(|(_, node)| node.expires > now);
        Some(HeartbeatRow {
            taken,
            expired: expired.map(|(id, _)| *id).collect(),
            living: living.map(|(id, _)| *id).collect(),
        })
    }

    fn take(
        &mut self,
        me: NodeId,
        space: SpaceId,
        seen: Option<NodeId>,
        now: u64,
    ) -> Result<Option<TakenLease>, String> {
        let (Some(judge), Some(lease)) = (self.nodes.get(&me), self.leases.get_mut(&space)) else {
            return Ok(None); // the node was ended
        };
        if lease.node != seen || judge.expires <= now {
            return Ok(None);
        }
        let is_free = lease.node.is_none() || lease.node == Some(me);
        if !is_free {
            let is_alive = |id: NodeId| self.nodes.get(&id).is_some_and(|node| node.expires > now);
            let is_steady = judge.steady_since + LEASE_TIMES.ttl_ms <= now;
            if lease.node.is_some_and(is_alive)
                || (!is_steady && self.bug != PlantedBug::JudgeUnwell)
            {
                return Ok(None);
            }
            if judge.unwell_at.is_some_and(|at| at + LEASE_TIMES.ttl_ms > now) {
                return Err(format!("{me} was unwell itself and judged {seen:?}"));
            }
            self.takeovers += 1;
        }
        lease.node = Some(me);
        lease.epoch += 1;
        let (epoch, batch) = (lease.epoch, lease.batch);
        if let Some(old) =
            seen.filter(|seen| *seen != me).and_then(|seen| self.nodes.get_mut(&seen))
        {
            old.taken += 1;
        }
        Ok(Some(TakenLease { epoch, batch }))
    }

    /// What a kernel begins with, if the space is the asker's.
    pub(super) fn boot(&self, me: NodeId, space: SpaceId) -> Option<u64> {
        let lease = self.leases.get(&space)?;
        (lease.node == Some(me)).then_some(lease.seq)
    }

    /// Whether it was written; an error if that broke a rule.
    pub(super) fn append(&mut self, space: SpaceId, sent: SentBatch) -> Result<bool, String> {
        let Some(lease) = self.leases.get_mut(&space) else { return Ok(false) };
        let is_owner = lease.epoch == sent.epoch && lease.batch == sent.number;
        if !is_owner && self.bug != PlantedBug::AppendUnchecked {
            return Ok(false);
        }
        let seq = sent.entry.seq;
        let journal = self.journal.entry(space).or_default();
        if let Some(last) = journal.last() {
            if sent.epoch < last.epoch {
                return Err(format!("epoch {} wrote after {} in {space}", sent.epoch, last.epoch));
            }
            if seq <= last.entry.seq || sent.number <= last.batch {
                return Err(format!("{sent:?} was written after {last:?} in {space}"));
            }
        }
        lease.batch = sent.number + 1;
        lease.seq = seq;
        journal.push(StoredBatch { epoch: sent.epoch, batch: sent.number, entry: sent.entry });
        Ok(true)
    }

    pub(super) fn renew(
        &mut self,
        me: NodeId,
        space: SpaceId,
        epochs: EpochRange,
    ) -> Option<(i64, i64)> {
        let lease = self.own(me, space, epochs)?;
        lease.epoch += 1;
        Some((lease.epoch, lease.batch))
    }

    pub(super) fn give_back(&mut self, me: NodeId, space: SpaceId, epoch: i64) {
        let epochs = EpochRange { first: epoch, last: epoch };
        if let Some(lease) = self.own(me, space, epochs) {
            lease.node = None;
        }
    }

    fn own(&mut self, me: NodeId, space: SpaceId, epochs: EpochRange) -> Option<&mut LeaseModel> {
        let lease = self.leases.get_mut(&space)?;
        let is_own = lease.node == Some(me) && (epochs.first..=epochs.last).contains(&lease.epoch);
        is_own.then_some(lease)
    }

    pub(super) fn owner(&self, space: SpaceId) -> Option<NodeId> {
        self.leases.get(&space)?.node
    }

    /// Whether a batch is in the journal as it was heard.
    pub(super) fn has(&self, space: SpaceId, entry: SimEntry) -> bool {
        let journal = self.journal.get(&space);
        journal.is_some_and(|journal| journal.iter().any(|stored| stored.entry == entry))
    }
}

fn peer(id: NodeId) -> PeerNode {
    PeerNode { id, name: String::new(), address: String::new(), fingerprint: Vec::new() }
}
