//! Writing what was stepped, in one transaction, and what follows if it cannot be written.

use kernel::{Batch, Output};
use tokio::time::Instant;

use super::{KernelTask, SteppedInput};
use crate::cluster::{ServedSpace, Tenure};
use crate::journal::{JournalError, RefusedBatch};
use crate::telemetry::MetricCounter;

impl KernelTask {
    /// Writes, sends, starts effects. If it cannot be written, the kernel says what is sent and started instead.
    pub(super) async fn commit(&mut self) {
        if self.stepped.is_empty() {
            return; // everything that came waits with its stream
        }
        let stepped = std::mem::take(&mut self.stepped);
        let now = Instant::now();
        for SteppedInput { output, run, .. } in &stepped {
            if let Some(run) = run {
                let recipients = output.frames.iter();
                let recipients = recipients.flat_map(|frame| frame.recipients.as_slice());
                let window_ms = recipients.map(|to| to.window_ms).min().unwrap_or(0);
                self.streams.note_commit(*run, window_ms, now);
            }
        }
        if stepped.iter().all(|stepped| !stepped.output.wrote) {
            self.kernel.committed();
            return self.speak(stepped).await;
        }
        let (causes, mut outputs): (Vec<_>, Vec<Output>) =
            stepped.into_iter().map(|it| ((it.since, it.run, it.is_telemetry), it.output)).unzip();
        let written = self.write(&mut outputs).await;
        let micros = u64::try_from(now.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count(MetricCounter::CommitMicroseconds, micros);
        let stepped = match written {
            Ok(()) => {
                self.count(MetricCounter::Commits, 1);
                self.kernel.committed();
                let outputs = causes.into_iter().zip(outputs);
                outputs
                    .map(|((since, run, is_telemetry), output)| SteppedInput {
                        output,
                        since,
                        run,
                        is_telemetry,
                    })
                    .collect()
            }
            Err(JournalError::Lost(reason)) if self.tenure.is_some() => {
                // Final: nothing of it is said, and nothing more is done.
                tracing::warn!(
                    served = ?self.served(),
                    reason,
                    "a batch was refused; the space is not served here any more"
                );
                return self.tenure.iter().for_each(Tenure::lose);
            }
            Err(error) => {
                self.count(MetricCounter::CommitFailures, 1);
                tracing::error!(served = ?self.served(), %error, "the journal cannot be written; changes are refused and it is tried again");
                let output = self.kernel.rolled_back(outputs, &error.to_string());
                vec![SteppedInput { output, since: now, run: None, is_telemetry: false }]
            }
        };
        self.speak(stepped).await;
    }

    /// Which space it is, where a node has many.
    fn served(&self) -> Option<ServedSpace> {
        self.tenure.as_ref().map(|tenure| tenure.served)
    }

    /// Sends and acts, unless the space is another node's; while this one may not speak, it waits.
    async fn speak(&mut self, stepped: Vec<SteppedInput>) {
        if !self.wait_until_heard().await {
            return; // `run` ends
        }
        self.send_and_start_effects(stepped);
        if let Some(tenure) = &self.tenure {
            tenure.set_busy(self.effects.has_terminals() || !self.kernel.running().is_empty());
        }
    }

    /// Writes what some steps want to have written, in one transaction. A step with a record that can never be written is
    /// left out, with those that rest on it: the kernel says what is sent instead, and the others are written.
    async fn write(&mut self, outputs: &mut [Output]) -> Result<(), JournalError> {
        loop {
            let counts: Vec<usize> = outputs.iter().map(|output| output.records.len()).collect();
            let mut records = Vec::with_capacity(counts.iter().sum());
            for output in &mut *outputs {
                records.append(&mut output.records);
            }
            let seq = self.kernel.seq();
            let written = self.journal.commit(Batch { seq, records }).await;
            let Err(RefusedBatch { error, batch }) = written else { return Ok(()) };
            let mut records = batch.records.into_iter();
            for (output, count) in outputs.iter_mut().zip(&counts) {
                output.records = records.by_ref().take(*count).collect();
            }
            let JournalError::BadRecord { index, reason } = error else { return Err(error) };
            let Some((step, record)) = find_step(&counts, index) else {
                return Err(JournalError::Unwritable(reason)); // no record of ours: something else is wrong
            };
            tracing::error!(served = ?self.served(), %reason, "a record cannot be written; its step is refused, the others go on");
            self.kernel.step_failed(outputs, step, record, &reason);
        }
    }
}

/// The step whose record stands at `index` of a batch, and the record's place in it.
fn find_step(counts: &[usize], mut index: usize) -> Option<(usize, usize)> {
    for (step, count) in counts.iter().enumerate() {
        if index < *count {
            return Some((step, index));
        }
        index -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_batch_is_found_in_its_step() {
        let counts = [2, 0, 3];
        let found: Vec<_> = (0..6).map(|index| find_step(&counts, index)).collect();
        let expected = [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)].map(Some);
        assert_eq!(found[..5], expected);
        assert_eq!(found[5], None);
    }
}
