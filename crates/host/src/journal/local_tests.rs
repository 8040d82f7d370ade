//! A journal on this machine behind its handle: answers, closing, and what happens when writing or reading panics.

use bytes::Bytes;
use kernel::{ChannelId, Record, Seq};

use super::*;
use crate::journal::{Fault, Faulty, JournalHandle, Memory};

fn batch(seq: u64) -> Batch {
    let envelope = Bytes::from_static(b"{}");
    let action = Record::Action { seq: Seq(seq), channel: ChannelId::ROOT, envelope };
    Batch { seq: Seq(seq), records: vec![action] }
}

fn all() -> Query {
    let floors = vec![(ChannelId::ROOT, Seq(0))];
    Query::Log { floors, through: Seq(u64::MAX), bytes_max: u64::MAX }
}

async fn count(journal: &JournalHandle) -> usize {
    match journal.read(all()).await.unwrap() {
        Answer::Log(slice) => slice.actions.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_was_appended_is_read_back() {
    let (journal, boot) = JournalHandle::start(Box::new(Memory::new())).unwrap();
    assert_eq!(boot.seq, Seq(0));
    for seq in 1..=3 {
        journal.append(batch(seq)).await.unwrap();
        assert_eq!(count(&journal).await, seq as usize);
    }
    assert_eq!(journal.stats().commits, 3);
    assert_eq!(journal.probe().await, Ok(()));
}

#[tokio::test]
async fn closing_writes_what_was_handed_over_and_refuses_the_rest() {
    let memory = Memory::new();
    let (faulty, faults) = Faulty::new(Box::new(memory.clone()));
    faults.then(Fault::Stall);
    let (journal, _) = JournalHandle::start(Box::new(faulty)).unwrap();
    let other = journal.clone();
    let (first, second) = (journal.append(batch(1)), journal.append(batch(2)));
    let closing = async {
        faults.wait_until_stalled();
        faults.release();
        other.close().await;
    };
    let (first, second, ()) = tokio::join!(biased; first, second, closing);
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert!(other.append(batch(3)).await.is_err() && other.read(all()).await.is_err());
    assert_eq!(memory.clone().boot().unwrap().seq, Seq(2));
}

#[tokio::test]
async fn a_refused_append_is_told_and_the_next_one_works() {
    let (faulty, faults) = Faulty::new(Box::new(Memory::new()));
    faults.then(Fault::Refuse);
    let (journal, _) = JournalHandle::start(Box::new(faulty)).unwrap();
    assert!(journal.append(batch(1)).await.is_err());
    assert!(journal.append(batch(1)).await.is_ok());
    assert_eq!(journal.stats().commits, 1);
}

#[tokio::test]
async fn reads_go_on_while_a_write_stalls() {
    let (faulty, faults) = Faulty::new(Box::new(Memory::new()));
    faults.then(Fault::Stall);
    let (journal, _) = JournalHandle::start(Box::new(faulty)).unwrap();
    let reading = async {
        let seen = count(&journal).await;
        faults.release();
        seen
    };
    let (written, seen) = tokio::join!(biased; journal.append(batch(1)), reading);
    assert_eq!((written, seen), (Ok(()), 0));
}

#[tokio::test]
async fn nothing_is_written_between_the_question_and_the_removal() {
    let (journal, _) = LocalJournal::start(Box::new(Memory::new())).unwrap();
    let (kept, gone) = (Digest::new([1; 32]), Digest::new([2; 32]));
    let mut referring = batch(1);
    referring.records.push(Record::Reference {
        channel: ChannelId::ROOT,
        turn: None,
        digest: kept,
        content_type: None,
    });
    let (sender, removed) = std::sync::mpsc::channel();
    let shared = Arc::clone(&journal.shared);
    let remove = move |digests: &[Digest]| {
        assert!(shared.journal.try_lock().is_none(), "nobody can write now");
        sender.send(digests.to_vec()).unwrap();
    };
    let collecting = journal.collect(vec![kept, gone], Box::new(remove));
    assert_eq!(journal.append(referring).await, Ok(()));
    assert_eq!(collecting.await, Ok(()));
    assert_eq!(removed.recv(), Ok(vec![gone]));
}

struct Panicking;

impl Journal for Panicking {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        Ok(Boot::default())
    }
    fn append(&mut self, _: &Batch) -> Result<(), JournalError> {
        panic!("scripted")
    }
    fn probe(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        Ok(digests.to_vec())
    }
    fn release_space(&mut self) -> Result<bool, JournalError> {
        Ok(false)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        Memory::new().reader()
    }
}

#[tokio::test]
async fn a_write_that_panics_leaves_nobody_waiting_and_is_reported() {
    let (journal, _) = JournalHandle::start(Box::new(Panicking)).unwrap();
    assert_eq!(journal.failure(), None);
    let (first, second) = tokio::join!(journal.append(batch(1)), journal.append(batch(2)));
    assert!(first.is_err() && second.is_err());
    assert!(journal.append(batch(3)).await.is_err());
    let reason = journal.wait_for_failure().await;
    assert_eq!(reason, "writing panicked: scripted");
    assert_eq!(journal.failure(), Some(reason));
    journal.close().await;
}

struct PanickingReader;

impl JournalReader for PanickingReader {
    fn read(&mut self, _: &Query) -> Result<Answer, JournalError> {
        panic!("scripted")
    }
}

struct Unreadable;

impl Journal for Unreadable {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        Ok(Boot::default())
    }
    fn append(&mut self, _: &Batch) -> Result<(), JournalError> {
        Ok(())
    }
    fn probe(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        Ok(digests.to_vec())
    }
    fn release_space(&mut self) -> Result<bool, JournalError> {
        Ok(false)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        Ok(Box::new(PanickingReader))
    }
}

#[tokio::test]
async fn a_reader_that_panics_is_reported_too() {
    let (journal, _) = JournalHandle::start(Box::new(Unreadable)).unwrap();
    assert!(journal.read(all()).await.is_err());
    let reason = journal.wait_for_failure().await;
    assert!(reason.starts_with("the thread journal-read-"), "{reason}");
}

#[tokio::test]
async fn a_batch_with_a_record_that_cannot_be_written_comes_back_whole() {
    let (faulty, faults) = Faulty::new(Box::new(Memory::new()));
    let (journal, _) = JournalHandle::start(Box::new(faulty)).unwrap();
    faults.then(Fault::BadRecord(0));
    let refused = journal.commit(batch(1)).await.unwrap_err();
    assert!(matches!(refused.error, JournalError::BadRecord { index: 0, .. }));
    assert_eq!(refused.batch.records.len(), 1);
    journal.commit(refused.batch).await.unwrap();
    assert_eq!(count(&journal).await, 1);
}

#[tokio::test]
async fn a_note_that_cannot_be_written_is_nobody_s_failure() {
    let (faulty, faults) = Faulty::new(Box::new(Memory::new()));
    let (journal, _) = JournalHandle::start(Box::new(faulty)).unwrap();
    for record in batch(7).records {
        journal.note(record);
    }
    faults.then(Fault::BadRecord(1));
    assert_eq!(journal.append(batch(1)).await, Ok(()));
    assert_eq!(count(&journal).await, 1);
}

#[tokio::test]
async fn the_kernel_s_thread_writes_in_place() {
    let (journal, _) = LocalJournal::start(Box::new(Memory::new())).unwrap();
    let written = journal.commit(batch(1));
    assert!(matches!(written, Commit::Done(Ok(()))), "nothing is left to wait for");
}
