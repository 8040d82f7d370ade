//! The kernel task as the host plays it: steps, then write, then send, then act; and where a host can die in between.

use host::journal::JournalError;
use kernel::{Batch, Output};

use super::{AfterFrames, Kill, World};

impl World {
    /// One batch of at most `most` inputs. Whether there was anything to do.
    pub fn batch(&mut self, most: usize) -> bool {
        if self.kernel.is_none() || self.queue.is_empty() {
            return false;
        }
        let mut outputs = Vec::new();
        for _ in 0..most.max(1) {
            let (Some(input), Some(kernel)) = (self.queue.pop_front(), self.kernel.as_mut()) else {
                break;
            };
            self.connections.note_input(&input);
            outputs.push(kernel.step(input, self.now));
        }
        self.release(outputs);
        true
    }

    pub(super) fn dies_at(&mut self, point: Kill) -> bool {
        if self.kill_at == Some(point) {
            self.kill();
            return true;
        }
        false
    }

    pub(super) fn release(&mut self, mut outputs: Vec<Output>) {
        let Some(kernel) = self.kernel.as_mut() else { return };
        if outputs.iter().all(|output| !output.wrote) {
            kernel.committed();
            self.send_and_act(outputs, AfterFrames::Act);
            return;
        }
        if self.dies_at(Kill::BeforeWrite) {
            return;
        }
        match self.write(&mut outputs) {
            Ok(()) => {
                if let Some(kernel) = self.kernel.as_mut() {
                    kernel.committed();
                }
                self.look_at_blocks();
                if !self.dies_at(Kill::BeforeSend) {
                    let dies = self.kill_at == Some(Kill::BeforeAct);
                    self.send_and_act(
                        outputs,
                        if dies { AfterFrames::Die } else { AfterFrames::Act },
                    );
                }
            }
            Err(error) => {
                let text = error.to_string();
                self.log(|| format!("batch fails: {text}"));
                if let Some(kernel) = self.kernel.as_mut() {
                    let instead = kernel.rolled_back(outputs, &text);
                    self.note_frames(&instead);
                    for different in self.rollback_differences() {
                        self.ledger.violations.push(format!(
                            "after a failed write, against a fresh start: {different}"
                        ));
                    }
                    self.send_and_act(vec![instead], AfterFrames::Act);
                }
            }
        }
    }

    /// Writes the records of some steps; one that can never be written fails its own step and those that rest on it.
    fn write(&mut self, outputs: &mut [Output]) -> Result<(), JournalError> {
        loop {
            let kernel = self.kernel.as_mut().expect("the host is up");
            let records = outputs.iter().flat_map(|output| output.records.clone());
            let batch = Batch { seq: kernel.seq(), records: records.collect() };
            let (mut index, reason) = match self.journal.append(&batch) {
                Err(JournalError::BadRecord { index, reason }) => (index, reason),
                Err(error) => return Err(error),
                Ok(()) => {
                    self.ledger.written(&batch);
                    return Ok(());
                }
            };
            let step = outputs
                .iter()
                .position(|output| {
                    let is_here = index < output.records.len();
                    if !is_here {
                        index -= output.records.len();
                    }
                    is_here
                })
                .expect("the record is one of these");
            let left = kernel.running().len();
            kernel.step_failed(outputs, step, index, &reason);
            let ended = left - kernel.running().len();
            self.log(|| format!("step {step} cannot be written; {ended} runs end"));
        }
    }

    fn send_and_act(&mut self, outputs: Vec<Output>, then: AfterFrames) {
        let mut effects = Vec::new();
        for output in outputs {
            self.note_frames(&output);
            for outgoing in output.frames {
                let bytes = outgoing.frame.to_bytes();
                for to in outgoing.recipients.as_slice() {
                    self.hash_frame(to.peer.0, &bytes);
                    if let Some(link) = self.links.get_mut(&to.peer) {
                        link.to_client.push_back((bytes.clone(), to.window_ms));
                    }
                }
            }
            effects.extend(output.effects);
        }
        if then == AfterFrames::Die {
            // What was spoken is on the wire and may arrive before the end is noticed.
            for peer in self.links.keys().copied().collect::<Vec<_>>() {
                while self.links.get(&peer).is_some_and(|link| !link.to_client.is_empty())
                    && self.carry_to_client(peer)
                {}
            }
            return self.kill();
        }
        for effect in effects {
            self.act(effect);
        }
    }

    fn note_frames(&mut self, output: &Output) {
        let mut connections = std::mem::take(&mut self.connections);
        for outgoing in &output.frames {
            let frame = outgoing.frame.to_bytes();
            for to in outgoing.recipients.as_slice() {
                connections.note_frame(to.peer, &frame, output.seq.0, |client_id| {
                    self.stored_client(client_id)
                });
            }
        }
        self.connections = connections;
    }
}
