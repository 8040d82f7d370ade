//! The floor of an answer that is on disk before anybody sees it: what a relay was sent is committed to a plain SQLite with
//! FULL durability, and then pushed. One thread does both.
//!
//! Pieces are batched as the host batches them: one that comes after a pause goes at once; those that come soon after a
//! commit go together when that time is over, in one transaction and one frame.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::{Bytes, BytesMut};

use crate::host_api::net::{Frame, Link};
use crate::rows::PlainSqlite;

/// What the host has as `stream_coalesce_ms`.
const COALESCE_MS: u32 = 8;

/// What goes in one frame, about: watchers look at no more of one.
const FRAME_BYTES: usize = 32 * 1_024;

/// Who hears an answer, each with its delivery window.
pub(crate) type Hearers = Arc<[(Arc<Link>, u32)]>;

struct Piece {
    bytes: Bytes,
    to: Hearers,
}

#[derive(Clone)]
pub(crate) struct Recorder {
    pieces: Sender<Piece>,
}

impl Recorder {
    /// Records into a new database in this directory.
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let sqlite = PlainSqlite::open(directory)?;
        let (pieces, received) = channel();
        std::thread::spawn(move || {
            if let Err(error) = record(&received, sqlite) {
                eprintln!("recorder: {error:#}");
            }
        });
        Ok(Self { pieces })
    }

    pub(crate) fn push(&self, bytes: Bytes, to: &Hearers) {
        let to = to.clone();
        if self.pieces.send(Piece { bytes, to }).is_err() {
            eprintln!("recorder: it has ended");
        }
    }
}

fn record(pieces: &Receiver<Piece>, mut sqlite: PlainSqlite) -> Result<()> {
    let mut last_commit: Option<Instant> = None;
    while let Ok(Piece { bytes, to }) = pieces.recv() {
        let shortest = to.iter().map(|(_, window_ms)| *window_ms).min();
        let wait_ms = shortest.unwrap_or(0).max(COALESCE_MS);
        let due = last_commit.map(|at| at + Duration::from_millis(wait_ms.into()));
        let (mut count, mut batch) = (1, BytesMut::from(&bytes[..]));
        while let Some(left) = due.and_then(|due| due.checked_duration_since(Instant::now())) {
            if batch.len() >= FRAME_BYTES {
                break;
            }
            match pieces.recv_timeout(left) {
                Ok(piece) => {
                    count += 1;
                    batch.extend_from_slice(&piece.bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        sqlite.commit(count)?;
        last_commit = Some(Instant::now());
        let frame = batch.freeze();
        for (link, _) in to.iter() {
            link.push(Frame::Text(frame.clone()), 0);
        }
    }
    Ok(())
}
