//! What a node does about its leases: heartbeats, whom it may speak for, which spaces it takes and drops.
//!
//! A pure state machine: `node_driver` runs it over a database, the simulation over a model of the tables (ADR 0096).
//!
//! Promises: it is trusted until a fixed time after the last heartbeat that was answered was *sent*; it says of no space that it
//! is here before it was taken, nor after it was taken away; it asks nothing for a space that nobody wants.
//! Must not know: SQL, sockets, kernels, any clock.

use std::collections::{BTreeMap, BTreeSet};

use super::failed_spaces::FailedSpaces;
use super::lease_table::{
    BootInstant, FoundLease, HeartbeatRow, LeaseAnswer, LeaseAsk, NodeId, SpaceId, TakenLease,
};
pub(crate) use super::node_messages::{
    LEASE_TIMES, LeaseTimes, NodeCommand, NodeInput, NodeStanding, SpaceFinding,
};
use crate::sorted_map::SortedMap;

/// Spaces of nodes that are gone that are taken at a time.
pub(crate) const TAKEOVERS_MAX: u32 = 50;
/// Before another heartbeat when one was not answered.
const BEAT_AGAIN_MS: u64 = 100;
/// How often a space is looked up again when another was faster.
const LOOKUPS_MAX: u8 = 3;
/// Before the second time, and twice that before the third: the first may be at once, as the row says who was faster.
const LOOKUP_PAUSE_MS: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldSpace {
    /// It is being looked up or taken.
    Asking {
        lookups: u8,
    },
    /// Taken, and being started; told apart by when it was taken.
    Loading {
        hold: u64,
    },
    Here {
        hold: u64,
    },
    /// Being ended; `is_wanted`: it is looked up again when it has.
    Ending {
        is_wanted: bool,
    },
}

/// One node.
#[derive(Debug)]
pub(crate) struct NodeMachine {
    times: LeaseTimes,
    id: NodeId,
    standing: NodeStanding,
    trusted_until: BootInstant,
    next_beat: BootInstant,
    /// When the heartbeat that is under way was sent.
    beat_sent: Option<BootInstant>,
    /// How often spaces were taken from this node, as far as it has dealt with that.
    taken: i64,
    /// The number that the list of what it holds is asked for.
    listing_taken: Option<(i64, u64)>,
    spaces: BTreeMap<SpaceId, HeldSpace>,
    holds: u64,
    /// Nodes that are gone whose work was taken over.
    surveyed: BTreeSet<NodeId>,
    /// Those whose work is asked for at the moment, and that of spaces that nobody has.
    surveying: Option<BTreeSet<NodeId>>,
    /// The last list of work was full: there may be more.
    has_more_work: bool,
    /// There may be work in spaces that nobody has: since this node was started, or since something was taken from it.
    may_have_free_work: bool,
    /// The spaces of the last list.
    listed_work: Vec<SpaceId>,
    /// Spaces that failed here: others leave them to this node, so it looks for them with its heartbeats.
    failed: FailedSpaces,
    /// When spaces are looked up again.
    lookups_due: SortedMap<SpaceId, BootInstant>,
    /// Nodes that lived when the last heartbeat was answered.
    living: BTreeSet<NodeId>,
    is_draining: bool,
}

impl NodeMachine {
    /// A node that was registered by a statement that was sent at a moment.
    pub(crate) fn registered(id: NodeId, sent: BootInstant, times: LeaseTimes) -> Self {
        Self {
            times,
            id,
            standing: NodeStanding::Trusted,
            trusted_until: sent.plus(times.trust_ms),
            next_beat: sent.plus(times.beat_ms),
            beat_sent: None,
            taken: 0,
            listing_taken: None,
            spaces: BTreeMap::new(),
            holds: 0,
            surveyed: BTreeSet::new(),
            surveying: None,
            has_more_work: false,
            may_have_free_work: true,
            listed_work: Vec::new(),
            failed: FailedSpaces::default(),
            lookups_due: SortedMap::default(),
            living: BTreeSet::new(),
            is_draining: false,
        }
    }

    pub(crate) fn trusted_until(&self) -> BootInstant {
        self.trusted_until
    }

    pub(crate) fn standing(&self) -> NodeStanding {
        self.standing
    }

    /// Whether something may be said or begun at a moment.
    #[cfg(test)]
    pub(crate) fn may_speak(&self, now: BootInstant) -> bool {
        self.standing == NodeStanding::Trusted && now < self.trusted_until
    }

    /// When it wants to be woken, if not by an answer.
    pub(crate) fn next_wake(&self) -> Option<BootInstant> {
        let beat = self.beat_sent.is_none().then_some(self.next_beat);
        let silence = (self.standing == NodeStanding::Trusted).then_some(self.trusted_until);
        let lookup = self.lookups_due.values().min().copied();
        match self.standing {
            NodeStanding::Ended => None,
            NodeStanding::Trusted | NodeStanding::Silent => {
                [beat, silence, lookup].into_iter().flatten().min()
            }
        }
    }

    pub(crate) fn handle(&mut self, input: NodeInput, now: BootInstant) -> Vec<NodeCommand> {
        let mut todo = Vec::new();
        // Before anything else: whoever slept must not act on what it believed before.
        self.fall_silent(now, &mut todo);
        if self.standing == NodeStanding::Ended {
            // Whoever waits hears that nobody serves it here; what runs has been told to end.
            if let NodeInput::Wanted(space) = input {
                todo.push(NodeCommand::Tell(space, SpaceFinding::Unavailable));
            }
            return todo;
        }
        match input {
            NodeInput::Woke => {}
            NodeInput::Answered { ask, sent, answer } => {
                self.take_answer(ask, sent, answer, now, &mut todo)
            }
            NodeInput::Wanted(space) => self.want(space, now, &mut todo),
            NodeInput::Loaded(space) => self.note_loaded(space, &mut todo),
            NodeInput::Ended(space) => self.note_ended(space, now, &mut todo),
            NodeInput::Failed(space) => {
                self.failed.note(space, now);
                self.note_ended(space, now, &mut todo);
            }
            NodeInput::Unwanted(space) => {
                if let Some(HeldSpace::Here { .. }) = self.spaces.get(&space) {
                    let ending = HeldSpace::Ending { is_wanted: false };
                    self.spaces.insert(space, ending);
                    todo.push(NodeCommand::Unload(space));
                }
            }
            NodeInput::Drain => self.is_draining = true,
        }
        self.look_up_due(now, &mut todo);
        self.beat(now, &mut todo);
        todo
    }

    fn fall_silent(&mut self, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        if self.standing == NodeStanding::Trusted && now >= self.trusted_until {
            self.stand(NodeStanding::Silent, todo);
        }
    }

    /// Sends a heartbeat when it is time.
    fn beat(&mut self, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        if self.beat_sent.is_none() && now >= self.next_beat && self.standing != NodeStanding::Ended
        {
            self.beat_sent = Some(now);
            self.next_beat = now.plus(self.times.beat_ms);
            todo.push(NodeCommand::Ask(LeaseAsk::Heartbeat));
        }
    }

    fn stand(&mut self, standing: NodeStanding, todo: &mut Vec<NodeCommand>) {
        if self.standing != standing {
            self.standing = standing;
            todo.push(NodeCommand::Stand);
        }
    }

    fn take_answer(
        &mut self,
        ask: LeaseAsk,
        sent: BootInstant,
        answer: LeaseAnswer,
        now: BootInstant,
        todo: &mut Vec<NodeCommand>,
    ) {
        match (ask, answer) {
            (LeaseAsk::Heartbeat, answer) => {
                self.beat_sent = None;
                match answer {
                    LeaseAnswer::Heartbeat(Some(row)) => self.note_heartbeat(row, sent, now, todo),
                    LeaseAnswer::Heartbeat(None) => self.end(todo),
                    _ => self.next_beat = now.plus(BEAT_AGAIN_MS), // not known: another soon
                }
            }
            (LeaseAsk::ListOwned, LeaseAnswer::Owned(owned)) => self.note_owned(&owned, now, todo),
            (LeaseAsk::ListOwned, _) => self.listing_taken = None, // asked again after the next heartbeat
            (LeaseAsk::ListWork { limit }, LeaseAnswer::Work(work)) => {
                self.note_work(work, limit, todo);
            }
            (LeaseAsk::ListWork { .. }, _) => {
                // The next heartbeat asks again.
                self.surveying = None;
                self.may_have_free_work = true;
            }
            (LeaseAsk::Find { space }, LeaseAnswer::Found(found)) => {
                self.note_found(space, found, todo);
            }
            (LeaseAsk::Take { space, .. }, LeaseAnswer::Taken(Some(lease))) => {
                self.note_taken(space, lease, todo);
            }
            // Another was faster, or nobody knows: its row says who has it now.
            (LeaseAsk::Take { space, .. } | LeaseAsk::Find { space }, _) => {
                self.look_up_again(space, now, todo);
            }
        }
    }

    /// It is the moment of sending that counts: the answer may have taken any time.
    fn note_heartbeat(
        &mut self,
        row: HeartbeatRow,
        sent: BootInstant,
        now: BootInstant,
        todo: &mut Vec<NodeCommand>,
    ) {
        let trusted_until = sent.plus(self.times.trust_ms);
        if trusted_until > self.trusted_until {
            self.trusted_until = trusted_until;
            todo.push(NodeCommand::Stand);
        }
        if row.taken != self.taken {
            // Something was taken: what is left is to be known before anything more is said. After a leap nobody has it.
            self.may_have_free_work = true;
            if self.listing_taken.is_none() {
                self.listing_taken = Some((row.taken, self.holds));
                todo.push(NodeCommand::Ask(LeaseAsk::ListOwned));
            }
        } else if now < self.trusted_until {
            self.stand(NodeStanding::Trusted, todo);
        }
        let living: BTreeSet<NodeId> = row.living.into_iter().collect();
        if !self.living.is_subset(&living) {
            // A node that has left freed what it still had; nobody took that from this one.
            self.may_have_free_work = true;
        }
        self.living = living;
        let expired: BTreeSet<NodeId> =
            row.expired.into_iter().filter(|id| *id != self.id).collect();
        self.surveyed.retain(|node| expired.contains(node));
        let is_new = expired.iter().any(|node| !self.surveyed.contains(node));
        let may_take = !self.is_draining && self.standing == NodeStanding::Trusted;
        // What this node has lost is no free work before it knows that.
        let is_free_due = self.may_have_free_work && self.listing_taken.is_none();
        let is_due = is_new || is_free_due || self.has_more_work;
        if may_take && self.surveying.is_none() && is_due {
            self.surveying = Some(expired);
            self.may_have_free_work = false;
            let limit = TAKEOVERS_MAX;
            todo.push(NodeCommand::Ask(LeaseAsk::ListWork { limit }));
        }
        if may_take {
            self.load_failed_anew(now, todo);
        }
    }

    fn load_failed_anew(&mut self, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        for space in self.failed.due(now) {
            if !self.spaces.contains_key(&space) {
                self.want(space, now, todo);
            }
        }
    }

    fn end(&mut self, todo: &mut Vec<NodeCommand>) {
        self.stand(NodeStanding::Ended, todo);
        self.failed.forget_all();
        self.lookups_due.clear();
        for (space, held) in std::mem::take(&mut self.spaces) {
            match held {
                HeldSpace::Asking { .. } => {
                    todo.push(NodeCommand::Tell(space, SpaceFinding::Unavailable));
                }
                HeldSpace::Loading { .. } | HeldSpace::Here { .. } | HeldSpace::Ending { .. } => {
                    todo.push(NodeCommand::Tell(space, SpaceFinding::Unavailable));
                    todo.push(NodeCommand::Drop(space));
                }
            }
        }
    }

    /// Drops what is not this node's any more. What was taken after the list was asked for is not judged by it.
    fn note_owned(&mut self, owned: &[SpaceId], now: BootInstant, todo: &mut Vec<NodeCommand>) {
        let Some((taken, before)) = self.listing_taken.take() else {
            return; // nobody asked: the answer to a list that was given up
        };
        self.taken = taken;
        for (space, held) in &mut self.spaces {
            let is_loading = matches!(held, HeldSpace::Loading { .. });
            let (HeldSpace::Loading { hold } | HeldSpace::Here { hold }) = held else {
                continue; // it is not this node's yet, or no more
            };
            if *hold > before || owned.contains(space) {
                continue; // it is this node's
            }
            *held = HeldSpace::Ending { is_wanted: false };
            todo.push(NodeCommand::Drop(*space));
            if is_loading {
                // Its end is told to those who come from now on.
                todo.push(NodeCommand::Tell(*space, SpaceFinding::Unavailable));
            }
        }
        if now < self.trusted_until {
            self.stand(NodeStanding::Trusted, todo);
        }
    }

    fn note_work(
        &mut self,
        work: Vec<(SpaceId, Option<NodeId>)>,
        limit: u32,
        todo: &mut Vec<NodeCommand>,
    ) {
        let listed: Vec<SpaceId> = work.iter().map(|(space, _)| *space).collect();
        let is_full = u32::try_from(work.len()).is_ok_and(|found| found >= limit);
        // A list that stays the same though nothing is under way is of spaces that cannot be started: to ask for it for ever helps
        // nobody.
        let is_under_way = listed.iter().any(|space| self.spaces.contains_key(space));
        self.has_more_work = is_full && (is_under_way || listed != self.listed_work);
        self.listed_work = listed;
        let surveyed = self.surveying.take().unwrap_or_default();
        if !self.has_more_work {
            self.surveyed.extend(surveyed);
        }
        for (space, seen) in work {
            match self.spaces.get(&space) {
                // It has lost its lease and is to be ended first.
                Some(HeldSpace::Ending { .. }) => self.may_have_free_work = true,
                Some(_) => {}                  // it is being dealt with
                None if self.is_draining => {} // it is for another node
                None => {
                    let asking = HeldSpace::Asking { lookups: 0 };
                    self.spaces.insert(space, asking);
                    todo.push(NodeCommand::Ask(LeaseAsk::Take { space, seen }));
                }
            }
        }
    }

    fn want(&mut self, space: SpaceId, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        match self.spaces.get_mut(&space) {
            Some(HeldSpace::Here { .. }) => {
                todo.push(NodeCommand::Tell(space, SpaceFinding::Here));
            }
            Some(HeldSpace::Ending { is_wanted }) => *is_wanted = true,
            Some(HeldSpace::Asking { .. } | HeldSpace::Loading { .. }) => {} // told when that is over
            None => {
                if !self.failed.may_be_tried(space, now) {
                    todo.push(NodeCommand::Tell(space, SpaceFinding::Unavailable));
                    return;
                }
                let asking = HeldSpace::Asking { lookups: 0 };
                self.spaces.insert(space, asking);
                todo.push(NodeCommand::Ask(LeaseAsk::Find { space }));
            }
        }
    }

    fn note_found(
        &mut self,
        space: SpaceId,
        found: Option<FoundLease>,
        todo: &mut Vec<NodeCommand>,
    ) {
        let Some(HeldSpace::Asking { .. }) = self.spaces.get(&space) else {
            return; // nobody waits for it any more
        };
        let finding = match found {
            None => SpaceFinding::Missing,
            // Its own, from a take whose answer was lost, is taken anew.
            Some(FoundLease { alive: Some(node), .. }) if node.id != self.id => {
                SpaceFinding::At(node)
            }
            // Who asks there has it taken: its turns can run there and not here.
            Some(FoundLease { alive: None, offering: Some(node), .. }) => SpaceFinding::At(node),
            Some(_) if self.is_draining => SpaceFinding::Unavailable,
            Some(FoundLease { holder: seen, .. }) => {
                todo.push(NodeCommand::Ask(LeaseAsk::Take { space, seen }));
                return;
            }
        };
        // Another has it, or nobody needs it; a node that drains loads nothing anew.
        self.failed.forget(space);
        self.spaces.remove(&space);
        todo.push(NodeCommand::Tell(space, finding));
    }

    fn note_taken(&mut self, space: SpaceId, lease: TakenLease, todo: &mut Vec<NodeCommand>) {
        self.holds += 1;
        let hold = self.holds;
        self.spaces.insert(space, HeldSpace::Loading { hold });
        todo.push(NodeCommand::Load(space, lease));
    }

    /// Asks for what was to be looked up again by now.
    fn look_up_due(&mut self, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        let due = self.lookups_due.iter().filter(|(_, at)| **at <= now);
        for space in due.map(|(space, _)| *space).collect::<Vec<_>>() {
            self.lookups_due.remove(&space);
            if let Some(HeldSpace::Asking { .. }) = self.spaces.get(&space) {
                todo.push(NodeCommand::Ask(LeaseAsk::Find { space }));
            }
        }
    }

    fn look_up_again(&mut self, space: SpaceId, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        match self.spaces.get_mut(&space) {
            Some(HeldSpace::Asking { lookups }) if *lookups < LOOKUPS_MAX => {
                let pause = LOOKUP_PAUSE_MS * u64::from(*lookups);
                *lookups += 1;
                self.lookups_due.insert(space, now.plus(pause));
            }
            Some(HeldSpace::Asking { .. }) => {
                self.spaces.remove(&space);
                // It may be work of a node that is gone, which cannot be judged yet or could not be asked about: once more.
                self.surveyed.clear();
                self.may_have_free_work = true;
                todo.push(NodeCommand::Tell(space, SpaceFinding::Unavailable));
            }
            // It was taken meanwhile, or is not wanted any more.
            Some(_) | None => {}
        }
    }

    fn note_loaded(&mut self, space: SpaceId, todo: &mut Vec<NodeCommand>) {
        if let Some(HeldSpace::Loading { hold }) = self.spaces.get(&space) {
            let here = HeldSpace::Here { hold: *hold };
            self.spaces.insert(space, here);
            self.failed.forget(space);
            todo.push(NodeCommand::Tell(space, SpaceFinding::Here));
        }
    }

    fn note_ended(&mut self, space: SpaceId, now: BootInstant, todo: &mut Vec<NodeCommand>) {
        match self.spaces.remove(&space) {
            Some(HeldSpace::Ending { is_wanted: true }) => self.want(space, now, todo),
            Some(HeldSpace::Loading { .. }) => {
                todo.push(NodeCommand::Tell(space, SpaceFinding::Unavailable));
            }
            Some(HeldSpace::Asking { .. } | HeldSpace::Here { .. } | HeldSpace::Ending { .. })
            | None => {}
        }
    }
}
