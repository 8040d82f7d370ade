//! One node of the simulation: the state machines of a real one, and the kernels in between as far as leases matter to them.

use std::collections::BTreeMap;

use super::table::SentBatch;
use crate::cluster::lease::{EpochRange, LeaseStep, RenewedLease, SpaceLease};
use crate::cluster::lease_table::{
    BootInstant, LeaseAnswer, LeaseAsk, NodeId, SpaceId, TakenLease,
};
use crate::cluster::node_machine::{NodeCommand, NodeInput, NodeMachine, SpaceFinding};

/// As `journal_patience_ms`.
const PATIENCE_MS: u64 = 2_000;

/// One time that a node has a space; `number` tells it apart from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpaceHold {
    pub space: SpaceId,
    pub number: u64,
}

/// Entry of a space's journal, as clients hear it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimEntry {
    pub seq: u64,
    pub value: u64,
}

/// Statement that a node sends to the table.
#[derive(Debug, Clone)]
pub(super) enum SimStatement {
    Register,
    Lease { ask: LeaseAsk, sent: BootInstant },
    Boot(SpaceHold),
    Append { hold: SpaceHold, batch: SentBatch },
    Renew { hold: SpaceHold, epochs: EpochRange },
    GiveBack { hold: SpaceHold, epoch: i64 },
}

#[derive(Debug, Clone)]
pub(super) enum SimAnswer {
    Registered(NodeId),
    Lease(LeaseAnswer),
    Boot(Option<u64>),
    Append(bool),
    Renewed(Option<(i64, i64)>),
    GivenBack,
    Unknown,
}

/// What a node wants done.
#[derive(Debug)]
pub(super) enum SimRequest {
    Send(SimStatement),
    /// A batch is committed; it is said a moment later.
    Speak {
        hold: SpaceHold,
        entry: SimEntry,
    },
    /// Something is written into the space a moment later.
    Write {
        hold: SpaceHold,
        after_ms: u64,
    },
    /// The machine is told a moment later that a space has ended.
    End {
        space: SpaceId,
    },
    Told(SpaceId, SpaceFinding),
}

/// A batch that its sender waits for.
#[derive(Debug, Clone, Copy)]
struct OpenBatch {
    entry: SimEntry,
    since: BootInstant,
}

#[derive(Debug)]
struct SimSpace {
    hold: SpaceHold,
    lease: SpaceLease,
    is_here: bool,
    is_ending: bool,
    /// The last seq that the kernel has committed.
    seq: u64,
    open: Option<OpenBatch>,
}

impl SimSpace {
    fn is_served(&self) -> bool {
        self.is_here && !self.is_ending
    }
}

pub(super) struct SimNode {
    pub id: NodeId,
    pub machine: NodeMachine,
    spaces: BTreeMap<SpaceId, SimSpace>,
    holds: u64,
}

impl SimNode {
    pub(super) fn new(id: NodeId, machine: NodeMachine, first_hold: u64) -> Self {
        Self { id, machine, spaces: BTreeMap::new(), holds: first_hold }
    }

    pub(super) fn handle(&mut self, input: NodeInput, now: BootInstant) -> Vec<SimRequest> {
        let mut wishes = Vec::new();
        for command in self.machine.handle(input, now) {
            match command {
                NodeCommand::Ask(ask) => {
                    wishes.push(SimRequest::Send(SimStatement::Lease { ask, sent: now }));
                }
                NodeCommand::Load(space, lease) => wishes.push(self.load(space, lease)),
                NodeCommand::Unload(space) => self.unload(space, &mut wishes),
                NodeCommand::Drop(space) => {
                    self.spaces.remove(&space);
                    wishes.push(SimRequest::End { space });
                }
                NodeCommand::Tell(space, finding) => wishes.push(SimRequest::Told(space, finding)),
                NodeCommand::Stand => {}
            }
        }
        wishes
    }

    fn load(&mut self, space: SpaceId, lease: TakenLease) -> SimRequest {
        self.holds += 1;
        let hold = SpaceHold { space, number: self.holds };
        let held = SimSpace {
            hold,
            lease: SpaceLease::from_row(lease.epoch, lease.batch),
            is_here: false,
            is_ending: false,
            seq: 0,
            open: None,
        };
        self.spaces.insert(space, held);
        SimRequest::Send(SimStatement::Boot(hold))
    }

    fn held(&mut self, hold: SpaceHold) -> Option<&mut SimSpace> {
        self.spaces.get_mut(&hold.space).filter(|it| it.hold == hold)
    }

    pub(super) fn serves(&self, space: SpaceId) -> bool {
        self.spaces.get(&space).is_some_and(SimSpace::is_served)
    }

    /// Whether the space is served here, and has been since this hold of it began.
    pub(super) fn serves_since(&self, hold: SpaceHold) -> bool {
        self.spaces.get(&hold.space).is_some_and(|it| it.is_served() && it.hold == hold)
    }

    pub(super) fn here(&self) -> Vec<SpaceId> {
        let here = self.spaces.iter().filter(|(_, it)| it.is_here);
        here.map(|(space, _)| *space).collect()
    }

    fn unload(&mut self, space: SpaceId, wishes: &mut Vec<SimRequest>) {
        let Some(held) = self.spaces.get_mut(&space) else {
            return; // it was lost in this moment, and its end is on its way
        };
        held.is_ending = true;
        if held.open.is_none() {
            self.close(space, wishes);
        }
    }

    fn close(&mut self, space: SpaceId, wishes: &mut Vec<SimRequest>) {
        let Some(held) = self.spaces.get_mut(&space) else {
            return; // as above
        };
        held.is_ending = true;
        let hold = held.hold;
        match held.lease.close() {
            Some(epoch) => wishes.push(SimRequest::Send(SimStatement::GiveBack { hold, epoch })),
            None => self.lose(space, wishes),
        }
    }

    fn lose(&mut self, space: SpaceId, wishes: &mut Vec<SimRequest>) {
        self.spaces.remove(&space);
        wishes.push(SimRequest::End { space });
    }

    /// The kernel has something to write, unless something else is under way.
    pub(super) fn write(
        &mut self,
        hold: SpaceHold,
        value: u64,
        now: BootInstant,
    ) -> Vec<SimRequest> {
        let mut wishes = Vec::new();
        if let Some(held) = self.held(hold).filter(|it| it.is_served() && it.open.is_none()) {
            let entry = SimEntry { seq: held.seq + 1, value };
            held.open = Some(OpenBatch { entry, since: now });
            self.go_on(hold.space, now, &mut wishes);
        }
        wishes
    }

    /// As `PostgresJournal` does: what was left open first, then the batch.
    fn go_on(&mut self, space: SpaceId, now: BootInstant, wishes: &mut Vec<SimRequest>) {
        let Some(held) = self.spaces.get_mut(&space) else {
            return; // it was lost in this moment
        };
        let Some(open) = held.open else {
            return; // nothing waits to be written
        };
        let hold = held.hold;
        match held.lease.next() {
            LeaseStep::Write { epoch, number } => {
                let batch = SentBatch { epoch, number, entry: open.entry };
                wishes.push(SimRequest::Send(SimStatement::Append { hold, batch }));
            }
            LeaseStep::Renew(_) if now.0 > open.since.0 + PATIENCE_MS => {
                // The sender is told that it failed, and takes it back.
                held.lease.give_up();
                held.open = None;
                if held.is_ending {
                    self.close(space, wishes)
                } else {
                    wishes.push(SimRequest::Write { hold, after_ms: 500 })
                }
            }
            LeaseStep::Renew(epochs) => {
                held.lease.begin_renewal();
                wishes.push(SimRequest::Send(SimStatement::Renew { hold, epochs }));
            }
            LeaseStep::Lost | LeaseStep::Closed => self.lose(space, wishes),
        }
    }

    pub(super) fn take_answer(
        &mut self,
        statement: SimStatement,
        answer: SimAnswer,
        now: BootInstant,
    ) -> Vec<SimRequest> {
        let mut wishes = Vec::new();
        match (statement, answer) {
            (SimStatement::Lease { ask, sent }, answer) => {
                let answer = match answer {
                    SimAnswer::Lease(answer) => answer,
                    _ => LeaseAnswer::Unknown,
                };
                wishes = self.handle(NodeInput::Answered { ask, sent, answer }, now);
            }
            (SimStatement::Boot(hold), SimAnswer::Boot(Some(seq))) => {
                if let Some(held) = self.held(hold) {
                    (held.is_here, held.seq) = (true, seq);
                    wishes.push(SimRequest::Write { hold, after_ms: 20 });
                    wishes.extend(self.handle(NodeInput::Loaded(hold.space), now));
                }
            }
            (SimStatement::Boot(hold), _) => {
                if self.held(hold).is_some() {
                    self.close(hold.space, &mut wishes);
                }
            }
            (SimStatement::Append { hold, batch }, answer) => {
                self.note_append(hold, batch, &answer, now, &mut wishes);
            }
            (SimStatement::Renew { hold, .. }, answer) => {
                self.note_renewal(hold, &answer, now, &mut wishes);
            }
            (SimStatement::GiveBack { hold, .. }, _) => {
                if self.held(hold).is_some() {
                    self.lose(hold.space, &mut wishes);
                }
            }
            (SimStatement::Register, _) => {} // the world makes a node of it
        }
        wishes
    }

    fn note_append(
        &mut self,
        hold: SpaceHold,
        batch: SentBatch,
        answer: &SimAnswer,
        now: BootInstant,
        wishes: &mut Vec<SimRequest>,
    ) {
        let Some(held) = self.held(hold) else {
            return; // the space was dropped meanwhile
        };
        match answer {
            SimAnswer::Append(true) => {
                held.lease.note_written();
                self.committed(hold.space, batch.entry, wishes);
            }
            SimAnswer::Append(false) => {
                held.lease.lose();
                self.lose(hold.space, wishes);
            }
            _ => {
                held.lease.note_unknown();
                self.go_on(hold.space, now, wishes);
            }
        }
    }

    fn note_renewal(
        &mut self,
        hold: SpaceHold,
        answer: &SimAnswer,
        now: BootInstant,
        wishes: &mut Vec<SimRequest>,
    ) {
        let space = hold.space;
        let Some(held) = self.held(hold) else {
            return; // the space was dropped meanwhile
        };
        let SimAnswer::Renewed(row) = answer else {
            return self.go_on(space, now, wishes); // once more
        };
        let Some(open) = held.open else {
            return; // its sender was told that it failed, and the next one asks
        };
        match held.lease.apply_renewal(*row) {
            RenewedLease::Written => self.committed(space, open.entry, wishes),
            RenewedLease::NotWritten => self.go_on(space, now, wishes),
            RenewedLease::Lost => self.lose(space, wishes),
        }
    }

    fn committed(&mut self, space: SpaceId, entry: SimEntry, wishes: &mut Vec<SimRequest>) {
        let Some(held) = self.spaces.get_mut(&space) else {
            return; // it was dropped meanwhile
        };
        held.seq = entry.seq;
        held.open = None;
        let hold = held.hold;
        if held.is_ending {
            self.close(space, wishes)
        } else {
            wishes.push(SimRequest::Speak { hold, entry })
        }
    }
}
