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

/// What a node sends to the table. `hold` tells apart the times a node has had a space.
#[derive(Debug, Clone)]
pub(super) enum SimStatement {
    Register,
    Lease { ask: LeaseAsk, sent: BootInstant },
    Boot { space: SpaceId, hold: u64 },
    Append { space: SpaceId, hold: u64, batch: SentBatch },
    Renew { space: SpaceId, hold: u64, epochs: EpochRange },
    GiveBack { space: SpaceId, hold: u64, epoch: i64 },
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
        space: SpaceId,
        hold: u64,
        seq: u64,
        value: u64,
    },
    /// Something is written into the space a moment later.
    Write {
        space: SpaceId,
        hold: u64,
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
    seq: u64,
    value: u64,
    since: BootInstant,
}

#[derive(Debug)]
struct SimSpace {
    hold: u64,
    lease: SpaceLease,
    is_here: bool,
    is_ending: bool,
    /// The last seq that the kernel has committed.
    seq: u64,
    open: Option<OpenBatch>,
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
        let hold = self.holds;
        let held = SimSpace {
            hold,
            lease: SpaceLease::from_row(lease.epoch, lease.batch),
            is_here: false,
            is_ending: false,
            seq: 0,
            open: None,
        };
        self.spaces.insert(space, held);
        SimRequest::Send(SimStatement::Boot { space, hold })
    }

    fn space(&mut self, space: SpaceId, hold: u64) -> Option<&mut SimSpace> {
        self.spaces.get_mut(&space).filter(|it| it.hold == hold)
    }

    /// Whether the space is served here, by this hold of it.
    pub(super) fn serves(&self, space: SpaceId, hold: Option<u64>) -> bool {
        let held = self.spaces.get(&space);
        held.is_some_and(|it| {
            it.is_here && !it.is_ending && hold.is_none_or(|hold| it.hold == hold)
        })
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
            Some(epoch) => {
                wishes.push(SimRequest::Send(SimStatement::GiveBack { space, hold, epoch }))
            }
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
        (space, hold): (SpaceId, u64),
        value: u64,
        now: BootInstant,
    ) -> Vec<SimRequest> {
        let mut wishes = Vec::new();
        if let Some(held) =
            self.space(space, hold).filter(|it| it.is_here && !it.is_ending && it.open.is_none())
        {
            let seq = held.seq + 1;
            let since = now;
            held.open = Some(OpenBatch { seq, value, since });
            self.go_on(space, now, &mut wishes);
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
                let batch = SentBatch { epoch, number, seq: open.seq, value: open.value };
                wishes.push(SimRequest::Send(SimStatement::Append { space, hold, batch }));
            }
            LeaseStep::Renew(_) if now.0 > open.since.0 + PATIENCE_MS => {
                // The sender is told that it failed, and takes it back.
                held.lease.give_up();
                held.open = None;
                if held.is_ending {
                    self.close(space, wishes)
                } else {
                    wishes.push(SimRequest::Write { space, hold, after_ms: 500 })
                }
            }
            LeaseStep::Renew(epochs) => {
                held.lease.begin_renewal();
                wishes.push(SimRequest::Send(SimStatement::Renew { space, hold, epochs }));
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
            (SimStatement::Boot { space, hold }, SimAnswer::Boot(Some(seq))) => {
                if let Some(held) = self.space(space, hold) {
                    (held.is_here, held.seq) = (true, seq);
                    wishes.push(SimRequest::Write { space, hold, after_ms: 20 });
                    wishes.extend(self.handle(NodeInput::Loaded(space), now));
                }
            }
            (SimStatement::Boot { space, hold }, _) => {
                if self.space(space, hold).is_some() {
                    self.close(space, &mut wishes);
                }
            }
            (SimStatement::Append { space, hold, batch }, answer) => {
                self.note_append((space, hold, batch), &answer, now, &mut wishes);
            }
            (SimStatement::Renew { space, hold, .. }, answer) => {
                self.note_renewal((space, hold), &answer, now, &mut wishes);
            }
            (SimStatement::GiveBack { space, hold, .. }, _) => {
                if self.space(space, hold).is_some() {
                    self.lose(space, &mut wishes);
                }
            }
            (SimStatement::Register, _) => {} // the world makes a node of it
        }
        wishes
    }

    fn note_append(
        &mut self,
        (space, hold, batch): (SpaceId, u64, SentBatch),
        answer: &SimAnswer,
        now: BootInstant,
        wishes: &mut Vec<SimRequest>,
    ) {
        let Some(held) = self.space(space, hold) else {
            return; // the space was dropped meanwhile
        };
        match answer {
            SimAnswer::Append(true) => {
                held.lease.note_written();
                self.committed(space, (batch.seq, batch.value), wishes);
            }
            SimAnswer::Append(false) => {
                held.lease.lose();
                self.lose(space, wishes);
            }
            _ => {
                held.lease.note_unknown();
                self.go_on(space, now, wishes);
            }
        }
    }

    fn note_renewal(
        &mut self,
        (space, hold): (SpaceId, u64),
        answer: &SimAnswer,
        now: BootInstant,
        wishes: &mut Vec<SimRequest>,
    ) {
        let Some(held) = self.space(space, hold) else {
            return; // the space was dropped meanwhile
        };
        let SimAnswer::Renewed(row) = answer else {
            return self.go_on(space, now, wishes); // once more
        };
        let Some(open) = held.open else {
            return; // its sender was told that it failed, and the next one asks
        };
        match held.lease.apply_renewal(*row) {
            RenewedLease::Written => self.committed(space, (open.seq, open.value), wishes),
            RenewedLease::NotWritten => self.go_on(space, now, wishes),
            RenewedLease::Lost => self.lose(space, wishes),
        }
    }

    fn committed(
        &mut self,
        space: SpaceId,
        (seq, value): (u64, u64),
        wishes: &mut Vec<SimRequest>,
    ) {
        let Some(held) = self.spaces.get_mut(&space) else {
            return; // it was dropped meanwhile
        };
        held.seq = seq;
        held.open = None;
        let hold = held.hold;
        if held.is_ending {
            self.close(space, wishes)
        } else {
            wishes.push(SimRequest::Speak { space, hold, seq, value })
        }
    }
}
