//! What goes wrong: links, the host itself, the disk.

use agent_api::AgentError;
use host::journal::Fault;
use testkit::Kill;

use crate::simulation::Simulation;

impl Simulation {
    pub(crate) fn inject_fault(&mut self) {
        let peers: Vec<_> = self.world.links.keys().copied().collect();
        let peer = self.rng.pick(&peers).copied();
        match (self.rng.below(12), peer) {
            (0..=2, Some(peer)) => {
                // A cut: some of what was on the way still arrives, the tail is lost.
                for _ in 0..self.rng.below(6) {
                    self.world.carry_to_client(peer);
                }
                let read = self.rng.index(4);
                self.world.cut(peer, read);
            }
            (3, Some(peer)) => {
                let stalled = self.rng.percent(50);
                if let Some(link) = self.world.links.get_mut(&peer) {
                    link.stalled = stalled;
                }
            }
            (4, Some(peer)) => {
                // The client has a new connection before the host knows that the old one is dead.
                let client = self.world.links[&peer].client;
                if self.world.is_up() {
                    self.connect_client(client);
                }
            }
            (5, _) if self.world.is_up() => {
                let points =
                    [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct, Kill::AfterCompose];
                self.world.kill_at = self.rng.pick(&points).copied();
            }
            (6, _) if self.world.is_up() && self.rng.percent(60) => self.world.kill(),
            (7, _) if !self.windows => {
                let bad_record = Fault::BadRecord(self.rng.index(16));
                let fault = *self
                    .rng
                    .pick(&[Fault::Refuse, Fault::Tear, bad_record, bad_record])
                    .unwrap_or(&Fault::Refuse);
                self.world.faults.then(fault);
            }
            (8, _) if !self.windows => {
                self.world.faults.break_disk();
                self.world.blobs.break_disk();
            }
            (9, _) => {
                self.world.faults.mend_disk();
                self.world.faults.mend_reads();
                self.world.blobs.mend_disk();
            }
            (10, _) if self.rng.percent(40) => self.world.faults.break_reads(),
            (11, _) => self.world.starts.push_back(Err(AgentError {
                error_type: "noAgent".to_owned(),
                message: "the agent did not start".to_owned(),
                resumable: false,
            })),
            _ => {}
        }
    }
}
