//! The journal on disk: one SQLite file, one writer, any number of readers beside it.
//!
//! Promises: a batch is one transaction, synced before `append` returns; after a refused write the journal is usable
//! again as soon as the disk is. Opening costs the same however much the file holds.
//! Must not know: what the bytes it stores mean.

mod actions;
mod archive;
mod calls;
mod changes;
mod messages;
mod migrations;
mod outputs;
mod read;
mod references;
mod renders;
mod schema;
mod search;
mod space;
mod sweep;
#[cfg(test)]
mod tests;
mod write;

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::{Answer, Batch, Boot, Query};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use wire::Digest;

pub(crate) use self::actions::SMALL_BYTES_MAX;
pub use self::archive::{Archive, ArchivedChat, ArchivedSession};
pub use self::calls::{ArchivedCall, ArchivedPiece, ArchivedRequest};
pub use self::messages::ArchivedLowering;
pub use self::renders::{ArchivedAsk, ArchivedRender};
pub(super) use self::renders::{KEPT as RENDERS_KEPT, asked_json, section_json};
pub use self::search::{SearchError, SearchHit, SearchIndex, TextPiece};
use super::{DirectoryLock, Journal, JournalError, JournalReader};

/// The file in the data directory.
const FILE: &str = "journal.sqlite";

/// How long a connection waits for another's lock. Only recovery and checkpoints of another process (`inspect`) ever
/// hold one that matters, and those are short.
const BUSY_MS: u64 = 5_000;

/// More statements than any connection uses, so that none is ever compiled twice.
const STATEMENTS_MAX: usize = 96;

/// What `probe` writes: more pages than a free list left by a refused batch is likely to hold back.
const PROBE_BYTES: u32 = 64 * 1024;

/// The writing side. Holds the data directory's lock.
#[derive(Debug)]
pub struct Sqlite {
    // Fields are dropped in order: the connection is closed before the lock is given back.
    conn: Connection,
    path: PathBuf,
    _lock: DirectoryLock,
}

impl Sqlite {
    /// Opens the journal of a data directory; makes both if there are none.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        Self::open_with(dir, schema::MIGRATIONS)
    }

    fn open_with(dir: &Path, chain: &[schema::Migration]) -> Result<Self, JournalError> {
        let unwritable = |error: io::Error| {
            JournalError::Unwritable(format!("the data directory {}: {error}", dir.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unwritable)?;
        let lock = DirectoryLock::take(dir)?;
        let path = dir.join(FILE);
        make_private_file(&path, dir).map_err(unwritable)?;
        let mut conn = connect(&path).map_err(unwritten)?;
        let found = schema::check(&conn, chain.len())?;
        if found == 0 {
            space::prepare_empty(&conn).map_err(unwritten)?;
        }
        prepare_writer(&conn).map_err(unwritten)?;
        schema::migrate(&mut conn, chain)?;
        space::prepare_existing(&conn).map_err(unwritten)?;
        Ok(Self { conn, path, _lock: lock })
    }
}

impl Journal for Sqlite {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        self.in_snapshot(read::boot)
    }

    fn append(&mut self, batch: &Batch) -> Result<(), JournalError> {
        // Dropped without a commit, the transaction is rolled back: an error on the way leaves nothing behind.
        let tx = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(unwritten)?;
        write::batch(&tx, batch)?;
        tx.commit().map_err(unwritten)
    }

    fn probe(&mut self) -> Result<(), JournalError> {
        // Two transactions: pages that are freed before a commit would never reach the disk.
        let written = self.conn.execute(
            "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', zeroblob(?1))",
            [PROBE_BYTES],
        );
        written.map_err(unwritten)?;
        self.conn.execute("DELETE FROM meta WHERE key = 'probe'", []).map_err(unwritten)?;
        Ok(())
    }

    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        self.in_snapshot(|conn| references::find_unreferenced(conn, digests))
    }

    fn release_space(&mut self) -> Result<bool, JournalError> {
        space::release_step(&self.conn).map_err(unwritten)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        Ok(Box::new(SqliteReader::connect(&self.path)?))
    }
}

impl Sqlite {
    /// Gives back all space that nothing uses, at once. Takes as long as copying the journal, and as much space meanwhile.
    pub fn compact(&mut self) -> Result<(), JournalError> {
        space::compact(&self.conn).map_err(unwritten)
    }

    /// The bytes of the file.
    pub fn file_bytes(&self) -> Result<u64, JournalError> {
        let metadata = fs::metadata(&self.path);
        let bytes = metadata.map(|metadata| metadata.len());
        bytes.map_err(|error| JournalError::Unreadable(error.to_string()))
    }

    fn in_snapshot<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> read::ReadResult<T>,
    ) -> Result<T, JournalError> {
        let tx = self.conn.transaction().map_err(unread)?;
        let answer = read(&tx)?;
        tx.finish().map_err(unread)?;
        Ok(answer)
    }
}

/// A reading side with a connection of its own; `inspect` opens one beside a running host.
#[derive(Debug)]
pub struct SqliteReader {
    conn: Connection,
}

impl SqliteReader {
    /// Opens the journal of a data directory for reading only, whether or not a host serves it.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        Self::connect(&dir.join(FILE))
    }

    fn connect(path: &Path) -> Result<Self, JournalError> {
        let conn = connect(path).map_err(unread)?;
        if schema::check(&conn, schema::MIGRATIONS.len())? == 0 {
            return Err(JournalError::Unreadable(format!("{} is empty", path.display())));
        }
        // Not opened read-only: a reader of a WAL file has to be able to write the shared index beside it.
        conn.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -512;").map_err(unread)?;
        Ok(Self { conn })
    }
}

impl JournalReader for SqliteReader {
    fn read(&mut self, query: &Query) -> Result<Answer, JournalError> {
        // One transaction: everything in an answer is of the same moment.
        let tx = self.conn.transaction().map_err(unread)?;
        let answer = read::answer(&tx, query)?;
        tx.finish().map_err(unread)?;
        Ok(answer)
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // No CREATE: the file was made with its mode before. No URI: a directory may be called anything.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_millis(BUSY_MS))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Mapped pages of a file that is cut short kill the process; sorting spills nowhere but memory.
    conn.execute_batch("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;")?;
    Ok(conn)
}

fn prepare_writer(conn: &Connection) -> rusqlite::Result<()> {
    // journal_mode: readers never wait for the writer, a commit is one sequential write and one sync.
    // synchronous FULL: that sync is the promise; NORMAL would lose the last batches with the power.
    // cache_size: 1 MiB; the hot pages are the last leaf of a few trees, the file system caches the rest.
    // wal_autocheckpoint: 4 MiB, so that no single commit pays for a long checkpoint.
    // journal_size_limit: a WAL that a long read made grow gives its space back.
    conn.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA cache_size = -1024;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 16777216;",
    )
}

/// SQLite gives its side files the mode of the main file, so only this one has to be made by hand.
pub(crate) fn make_private_file(path: &Path, dir: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        // The name has to be on the disk before the first commit is.
        Ok(_) => File::open(dir)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(0o600))
        }
        Err(error) => Err(error),
    }
}

fn unwritten(error: rusqlite::Error) -> JournalError {
    JournalError::Unwritable(error.to_string())
}

fn unread(error: rusqlite::Error) -> JournalError {
    JournalError::Unreadable(error.to_string())
}

/// A number as SQLite has it. Saturates: `u64::MAX` stands for "no bound" in questions, and no counter gets there.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
