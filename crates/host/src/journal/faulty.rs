//! A journal that fails on demand, in every way a disk can fail.
//!
//! Promises: without a script it is the journal it wraps; each scripted fault happens once, in order, at an append.
//! Must not know: which journal it wraps.

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{Answer, Batch, Boot, Query, Record};
use parking_lot::{Condvar, Mutex, MutexGuard};
use wire::Digest;

use super::{Journal, JournalError, JournalReader};

/// What happens to one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Refused before anything is written.
    Refuse,
    /// Cut off in the middle: nothing of it is there afterwards.
    Tear,
    /// Written, but reported as failed: what a crash between commit and answer looks like.
    WrittenUnheard,
    /// Held until [`Faults::release`], then written.
    Stall,
    /// Nothing is written because of one record, the one at this place (counted around): it can never be. Passes if there is
    /// no record.
    BadRecord(usize),
    /// Nothing: lets one append pass before the next fault.
    Pass,
}

#[derive(Debug, Default)]
struct FaultScript {
    next: VecDeque<Fault>,
    disk_broken: bool,
    /// Envelopes and turns over so many bytes can never be written.
    record_bytes_max: Option<usize>,
    reads_broken: bool,
    stalled: u32,
    releases: u32,
}

/// The switch: scripts what a [`Faulty`] journal does. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    shared: Arc<(Mutex<FaultScript>, Condvar)>,
}

impl Faults {
    /// Adds a fault for the next append that has none yet.
    pub fn then(&self, fault: Fault) -> &Self {
        self.script().next.push_back(fault);
        self
    }

    /// Every append and probe fails until [`Faults::mend_disk`]: a full disk (G-15).
    pub fn break_disk(&self) {
        self.script().disk_broken = true;
    }

    pub fn mend_disk(&self) {
        self.script().disk_broken = false;
    }

    /// From now on no envelope and no turn over so many bytes can be written: what SQLite's largest row looks like.
    pub fn limit_records(&self, bytes_max: usize) {
        self.script().record_bytes_max = Some(bytes_max);
    }

    /// The first record of a batch that is over the limit.
    fn find_too_large(&self, batch: &Batch) -> Option<usize> {
        let bytes_max = self.script().record_bytes_max?;
        let bytes = |record: &Record| match record {
            Record::Action { envelope, .. } => envelope.len(),
            Record::Turn { turn, .. } => turn.json.len(),
            _ => 0,
        };
        let mut records = batch.records.iter();
        records.position(|record| bytes(record) > bytes_max)
    }

    pub fn break_reads(&self) {
        self.script().reads_broken = true;
    }

    pub fn mend_reads(&self) {
        self.script().reads_broken = false;
    }

    /// Lets one stalled append go on, now or when it comes.
    pub fn release(&self) {
        self.script().releases += 1;
        self.shared.1.notify_all();
    }

    /// Waits until an append is being held.
    pub fn wait_until_stalled(&self) {
        self.shared.1.wait_while(&mut self.script(), |script| script.stalled == 0);
    }

    fn script(&self) -> MutexGuard<'_, FaultScript> {
        self.shared.0.lock()
    }

    fn take(&self) -> Fault {
        let mut script = self.script();
        match script.next.pop_front() {
            _ if script.disk_broken => Fault::Refuse,
            Some(fault) => fault,
            None => Fault::Pass,
        }
    }

    fn hold(&self) {
        let mut script = self.script();
        script.stalled += 1;
        self.shared.1.notify_all();
        self.shared.1.wait_while(&mut script, |script| script.releases == 0);
        script.releases -= 1;
        script.stalled -= 1;
    }
}

/// A journal with a switch.
pub struct Faulty {
    inner: Box<dyn Journal>,
    faults: Faults,
}

impl Faulty {
    pub fn new(inner: Box<dyn Journal>) -> (Self, Faults) {
        let faults = Faults::default();
        (Self::with(inner, faults.clone()), faults)
    }

    /// The same switch for another journal: after a simulated crash, the one that is opened next.
    pub fn with(inner: Box<dyn Journal>, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

impl Journal for Faulty {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        self.inner.boot()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), JournalError> {
        if let Some(index) = self.faults.find_too_large(batch) {
            return Err(bad_record(index));
        }
        match self.faults.take() {
            Fault::BadRecord(at) if !batch.records.is_empty() => {
                Err(bad_record(at % batch.records.len()))
            }
            Fault::BadRecord(_) => self.inner.append(batch),
            Fault::Refuse => Err(unwritable("the disk is full")),
            Fault::Tear => Err(unwritable("the write was cut off")),
            Fault::WrittenUnheard => {
                self.inner.append(batch)?;
                Err(unwritable("the answer was lost"))
            }
            Fault::Stall => {
                self.faults.hold();
                self.inner.append(batch)
            }
            Fault::Pass => self.inner.append(batch),
        }
    }

    fn probe(&mut self) -> Result<(), JournalError> {
        if self.faults.script().disk_broken {
            return Err(unwritable("the disk is full"));
        }
        self.inner.probe()
    }

    fn release_space(&mut self) -> Result<bool, JournalError> {
        if self.faults.script().disk_broken {
            return Err(unwritable("the disk is full"));
        }
        self.inner.release_space()
    }

    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        if self.faults.script().reads_broken {
            return Err(JournalError::Unreadable("the disk does not answer".to_owned()));
        }
        self.inner.find_unreferenced(digests)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        Ok(Box::new(FaultyReader { inner: self.inner.reader()?, faults: self.faults.clone() }))
    }
}

struct FaultyReader {
    inner: Box<dyn JournalReader>,
    faults: Faults,
}

impl JournalReader for FaultyReader {
    fn read(&mut self, query: &Query) -> Result<Answer, JournalError> {
        if self.faults.script().reads_broken {
            return Err(JournalError::Unreadable("the disk does not answer".to_owned()));
        }
        self.inner.read(query)
    }
}

fn bad_record(index: usize) -> JournalError {
    JournalError::BadRecord { index, reason: "it is too large".to_owned() }
}

fn unwritable(reason: &str) -> JournalError {
    JournalError::Unwritable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use kernel::Seq;

    use super::*;
    use crate::journal::Memory;

    fn batch(seq: u64) -> Batch {
        Batch { seq: Seq(seq), records: Vec::new() }
    }

    fn seq(journal: &mut Faulty) -> u64 {
        journal.boot().unwrap().seq.0
    }

    #[test]
    fn each_fault_happens_once_and_in_order() {
        let (mut journal, faults) = Faulty::new(Box::new(Memory::new()));
        faults.then(Fault::Refuse).then(Fault::Tear).then(Fault::Pass).then(Fault::WrittenUnheard);
        let heard: Vec<bool> = (1..=5).map(|n| journal.append(&batch(n)).is_ok()).collect();
        assert_eq!(heard, [false, false, true, false, true]);
    }

    #[test]
    fn a_torn_batch_is_not_there_and_an_unheard_one_is() {
        let (mut journal, faults) = Faulty::new(Box::new(Memory::new()));
        faults.then(Fault::Tear).then(Fault::WrittenUnheard);
        assert!(journal.append(&batch(1)).is_err());
        assert_eq!(seq(&mut journal), 0);
        assert!(journal.append(&batch(2)).is_err());
        assert_eq!(seq(&mut journal), 2);
    }

    #[test]
    fn a_broken_disk_refuses_until_it_is_mended() {
        let (mut journal, faults) = Faulty::new(Box::new(Memory::new()));
        faults.break_disk();
        assert!(journal.append(&batch(1)).is_err() && journal.probe().is_err());
        faults.mend_disk();
        assert!(journal.probe().is_ok() && journal.append(&batch(1)).is_ok());
    }

    #[test]
    fn a_bad_record_is_named_and_the_disk_is_in_order() {
        let (mut journal, faults) = Faulty::new(Box::new(Memory::new()));
        let with = |sizes: &[usize]| Batch {
            seq: Seq(1),
            records: sizes
                .iter()
                .zip(1..)
                .map(|(bytes, seq)| Record::Action {
                    seq: Seq(seq),
                    channel: kernel::ChannelId(1),
                    envelope: vec![b'x'; *bytes].into(),
                })
                .collect(),
        };
        faults.then(Fault::BadRecord(4)).then(Fault::BadRecord(0));
        assert_eq!(journal.append(&with(&[1, 1, 1])), Err(bad_record(1)));
        assert_eq!(journal.append(&batch(1)), Ok(()), "there is no record");
        faults.limit_records(10);
        assert_eq!(journal.append(&with(&[10, 11])), Err(bad_record(1)));
        assert!(journal.probe().is_ok() && journal.append(&with(&[10])).is_ok());
    }

    #[test]
    fn broken_reads_fail_and_writes_go_on() {
        let (mut journal, faults) = Faulty::new(Box::new(Memory::new()));
        let mut reader = journal.reader().unwrap();
        let query = Query::Sessions { after: None, limit: 1 };
        faults.break_reads();
        assert!(reader.read(&query).is_err() && journal.append(&batch(1)).is_ok());
        faults.mend_reads();
        assert!(reader.read(&query).is_ok());
    }

    #[test]
    fn a_stalled_append_is_written_when_it_is_released() {
        let (mut journal, faults) = Faulty::new(Box::new(Memory::new()));
        faults.then(Fault::Stall);
        let writer = std::thread::spawn(move || {
            journal.append(&batch(1)).unwrap();
            seq(&mut journal)
        });
        faults.wait_until_stalled();
        faults.release();
        assert_eq!(writer.join().unwrap(), 1);
    }
}
