//! What clients want and what goes wrong, as seeds choose it.

use super::node::SimNode;
use super::world::{FAULTS_MS, LeaseWorld, NODES, SPACES, SimEvent, SimNodeEvent};

/// The database's clock does not jump later than this before all is quiet.
const JUMPS_MS: u64 = 10_000;

/// What happened in a run.
#[derive(Debug, Default)]
pub(super) struct SimFigures {
    pub(super) heard: u64,
    pub(super) lost_answers: u64,
    pub(super) late_packets: u64,
    pub(super) pauses: u64,
    pub(super) kills: u64,
    pub(super) table_restarts: u64,
    pub(super) clock_jumps: u64,
    pub(super) takeovers: u64,
    pub(super) unloads: u64,
    pub(super) silences: u64,
}

impl SimFigures {
    pub(super) fn counts(&self) -> [(&'static str, u64); 10] {
        [
            ("heard batches", self.heard),
            ("lost answers", self.lost_answers),
            ("late packets", self.late_packets),
            ("pauses", self.pauses),
            ("kills", self.kills),
            ("restarts of the table", self.table_restarts),
            ("clock jumps", self.clock_jumps),
            ("takeovers", self.takeovers),
            ("unloads", self.unloads),
            ("silences", self.silences),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.heard += other.heard;
        self.lost_answers += other.lost_answers;
        self.late_packets += other.late_packets;
        self.pauses += other.pauses;
        self.kills += other.kills;
        self.table_restarts += other.table_restarts;
        self.clock_jumps += other.clock_jumps;
        self.takeovers += other.takeovers;
        self.unloads += other.unloads;
        self.silences += other.silences;
    }
}

impl LeaseWorld {
    pub(super) fn ask_for_space(&mut self) {
        self.turn += 1;
        let (pair, after) = if self.is_quiet() {
            // everything is wanted everywhere
            (self.turn, 20)
        } else {
            (self.next(), 20 + self.below(100))
        };
        let space = 1 + i64::try_from(pair % SPACES as u64).unwrap_or(0);
        let index = usize::try_from(pair / SPACES as u64 % NODES as u64).unwrap_or(0);
        let start = self.places[index].start;
        self.at(0, SimEvent::Node(index, start, SimNodeEvent::Wanted(space)));
        if !self.is_quiet() && self.draw_percent(5) {
            let here = self.places[index].node.as_ref().map(SimNode::here);
            if let Some(space) = here.and_then(|here| here.first().copied()) {
                self.figures.unloads += 1;
                self.at(1, SimEvent::Node(index, start, SimNodeEvent::Unwanted(space)));
            }
        }
        self.at(after, SimEvent::Client);
    }

    pub(super) fn inject_fault(&mut self) {
        let index = usize::try_from(self.below(NODES as u64)).unwrap_or(0);
        let left = FAULTS_MS.saturating_sub(self.now);
        match self.below(10) {
            0..=3 => {
                // Often a moment, sometimes longer than anybody waits for it.
                let long = [300, 2_000, 5_500, 9_000, 15_000];
                let long = long[usize::try_from(self.below(5)).unwrap_or(0)];
                let pause = self.below(long).min(left);
                self.figures.pauses += 1;
                self.places[index].paused_until = self.now + pause;
            }
            4..=6 if !self.places[index].is_up => {} // it is dead, and will be started
            4..=6 => {
                self.figures.kills += 1;
                self.kill(index);
                // One may stay away for good; two are enough to go on.
                if self.draw_percent(10) && self.gone.is_none() {
                    self.gone = Some(index);
                } else if self.gone != Some(index) {
                    let after = self.below(12_000).min(left);
                    self.at(after, SimEvent::Start(index));
                }
            }
            7..=8 => {
                self.figures.table_restarts += 1;
                let long = if self.draw_percent(30) { 9_000 } else { 1_500 };
                let down = self.below(long).min(left);
                self.table_down_until = self.now + down;
                self.at(down, SimEvent::TableUp);
            }
            _ if left < JUMPS_MS => {}
            _ => {
                // Another primary, with another clock; it is not told backwards so far that nobody is ever judged again.
                self.figures.clock_jumps += 1;
                self.jumped_at = Some(self.now);
                if self.draw_percent(50) {
                    self.skew += self.below(8_000)
                } else {
                    self.skew -= self.below(2_000);
                    self.table.forget_unwell();
                }
            }
        }
        let after = 200 + self.below(4_000);
        if self.now + after < FAULTS_MS {
            self.at(after, SimEvent::Fault);
        }
    }
}
