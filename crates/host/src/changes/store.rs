//! Where changes are kept: their rows in the journal, their contents in the blob store.
//!
//! Promises: a row and the references to what it names are written together.
//! Must not know: how changes are found, and what they are for.

use kernel::{Answer, ChannelId, FileChangesRecord, Query, Record};
use wire::Digest;
use workspace::{DiffStats, FILE_BYTES_MAX, is_binary};

use super::{ChangedSide, FileChanges};
use crate::blobs::{BlobError, Blobs, BodyHold, Found};
use crate::effects::Bodies;
use crate::journal::{JournalError, JournalHandle};

/// Content that is compared to count lines at once.
const COMPARED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// What a turn changed, or a session by an empty turn id; nothing if nothing is known. An error is not nothing: what is written after one
/// would take the place of a row that is there.
pub(crate) async fn read(
    journal: &JournalHandle,
    channel: ChannelId,
    turn_id: &str,
) -> Result<FileChanges, JournalError> {
    let query = Query::FileChanges { channel, turn_ids: vec![turn_id.to_owned()] };
    match journal.read(query).await? {
        Answer::FileChanges(rows) => match rows.first() {
            Some(row) => FileChanges::from_json(&row.json)
                .map_err(|damage| JournalError::Unreadable(damage.to_string())),
            None => Ok(FileChanges::default()),
        },
        _ => Err(JournalError::Unreadable(
            "it answered something else than what was changed".to_owned(),
        )),
    }
}

/// The row of changes, and what it refers to.
pub(crate) fn records_of(channel: ChannelId, turn_id: &str, changes: &FileChanges) -> Vec<Record> {
    let row = Record::FileChanges(FileChangesRecord {
        channel,
        turn_id: turn_id.to_owned(),
        json: changes.to_json(),
    });
    let references = changes.digests().map(|digest| Record::Reference {
        channel,
        turn: None,
        digest,
        content_type: None,
    });
    std::iter::once(row).chain(references).collect()
}

/// Keeps contents in the blob store.
pub(crate) fn keep_in(bodies: &Bodies) -> impl FnMut(&Digest, &[u8]) -> Result<(), String> {
    let (store, time) = (bodies.store(), bodies.now());
    move |digest, content| store.put_named(digest, content, time).map_err(|error| error.to_string())
}

/// Keeps contents in the blob store that nothing refers to before a turn is over, however long that takes. Most of them nothing refers to
/// then either: they are not durable before [`make_durable`].
pub(crate) fn keep_and_hold(
    bodies: &Bodies,
    hold: &BodyHold,
) -> impl FnMut(&Digest, &[u8]) -> Result<(), String> {
    let (store, time, hold) = (bodies.store(), bodies.now(), hold.clone());
    move |digest, content| {
        hold.add(*digest);
        store.put_unsynced(digest, content, time).map_err(|error| error.to_string())
    }
}

/// Makes the contents durable that changes refer to, before anybody is told of them. One that cannot be is not referred to any more, and
/// is a problem of theirs.
pub(crate) fn make_durable(changes: &mut FileChanges, bodies: &Bodies) {
    let store = bodies.store();
    let mut failure = None;
    for file in changes.files.values_mut() {
        for side in [&mut file.before, &mut file.after].into_iter().flatten() {
            let Some(digest) = side.digest else {
                continue; // it was never kept
            };
            let Err(error) = store.make_durable(&digest) else { continue };
            // A store that cannot be asked now has what it was given.
            if !matches!(error, BlobError::Unreadable(_)) {
                side.digest = None;
            }
            failure.get_or_insert(error);
        }
    }
    if let Some(error) = failure {
        tracing::warn!(%error, "the content of a changed file is not durable; it is shown without");
        let problem = format!("contents of files cannot be kept: {error}");
        changes.problems.push(problem);
    }
}

/// Counts the lines that each file has more and less.
pub(crate) fn count_lines(changes: &mut FileChanges, bodies: &Bodies) {
    let store = bodies.store();
    let mut left = COMPARED_BYTES_MAX;
    for file in changes.files.values_mut() {
        let mut read = |side: &mut Option<ChangedSide>| match side {
            None => Some(Vec::new()),
            Some(side) => {
                let content = read_content(&*store, side.digest?)?;
                side.bytes = content.len() as u64;
                left = left.checked_sub(content.len())?;
                Some(content)
            }
        };
        let (before, after) = (read(&mut file.before), read(&mut file.after));
        file.stats = match before.zip(after) {
            Some((before, after)) if !is_binary(&before) && !is_binary(&after) => {
                DiffStats::between(Some(&before), &after)
            }
            Some(_) | None => DiffStats::default(),
        };
    }
}

/// A content that was kept.
pub(crate) fn read_content(store: &dyn Blobs, digest: Digest) -> Option<Vec<u8>> {
    match store.read(&digest, FILE_BYTES_MAX) {
        Ok(Found::Body(content)) => Some(content),
        Ok(Found::Missing | Found::TooLarge { .. }) => None,
        Err(error) => {
            tracing::error!(%error, "the content of a changed file cannot be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use kernel::{Batch, Limits, Seq};
    use wire::Timestamp;

    use super::*;
    use crate::blobs::MemoryBlobs;
    use crate::clock::Clock;
    use crate::journal::Memory;

    #[tokio::test]
    async fn a_damaged_row_is_an_error_and_none_is_nothing() {
        let (journal, _) = JournalHandle::start(Box::new(Memory::new())).unwrap();
        let channel = ChannelId(1);
        assert_eq!(read(&journal, channel, "t").await.unwrap(), FileChanges::default());
        let row = FileChangesRecord {
            channel,
            turn_id: "t".to_owned(),
            json: Bytes::from_static(b"{\"files\": [7]"),
        };
        let batch = Batch { seq: Seq(0), records: vec![Record::FileChanges(row)] };
        journal.append(batch).await.unwrap();
        let error = read(&journal, channel, "t").await.unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn a_content_that_is_gone_is_a_problem_and_the_others_are_durable() {
        let blobs = MemoryBlobs::new();
        let bodies = Bodies::new(Arc::new(blobs.clone()), Clock::start(), &Limits::default());
        let kept = crate::blobs::digest_of(b"after");
        keep_and_hold(&bodies, &bodies.hold())(&kept, b"after").unwrap();
        let gone = Digest::new([1; 32]);
        let content = |digest| agent_api::FileContent { digest, mode: None };
        let mut changes = FileChanges::default();
        changes.add_edit(&agent_api::RecordedEdit {
            uri: "file:///project/file".to_owned(),
            before: Some(content(gone)),
            after: Some(content(kept)),
            new_directories: 0,
            is_made: false,
        });
        make_durable(&mut changes, &bodies);
        blobs.lose_unsynced();
        assert_eq!(blobs.digests(), [kept]);
        let named: Vec<Digest> = changes.digests().collect();
        assert_eq!(named, [kept], "what is not on the disk is not named");
        let [problem] = &changes.problems[..] else {
            panic!("{:?}", changes.problems);
        };
        assert!(problem.contains(&gone.to_string()), "{problem}");
        blobs.break_disk();
        make_durable(&mut changes, &bodies);
        assert_eq!(changes.digests().count(), 0, "it may be lost");
        assert_eq!(changes.files.len(), 1, "it changed all the same");
    }

    #[tokio::test]
    async fn what_a_turn_holds_is_not_collected_however_long_it_takes() {
        let (journal, _) = JournalHandle::start(Box::new(Memory::new())).unwrap();
        let blobs = Arc::new(MemoryBlobs::new());
        let bodies = Bodies::new(blobs, Clock::start(), &Limits::default());
        let (held, loose) = (b"before the turn", b"of nobody");
        let digests = [held.as_slice(), loose].map(crate::blobs::digest_of);
        let hold = bodies.hold();
        keep_and_hold(&bodies, &hold)(&digests[0], held).unwrap();
        keep_in(&bodies)(&digests[1], loose).unwrap();
        // A day later.
        let later = Timestamp(bodies.now().0 + 86_400_000);
        let store = bodies.store();
        let are_there = || digests.map(|digest| read_content(&*store, digest).is_some());
        bodies.collect(0..=255, later, &journal).await;
        assert_eq!(are_there(), [true, false]);
        drop(hold);
        bodies.collect(0..=255, later, &journal).await;
        assert_eq!(are_there(), [false, false]);
    }
}
