//! Carries all sessions of a data directory into a space of a database, and back (ADR 0094).
//!
//! Promises: at every moment one side at most can be served; interrupted anywhere, it can be run again and goes on or begins anew;
//! the source is marked as moved only after both sides have been compared, table by table. Seqs, clients, floors and bodies go
//! along, so that clients reconnect with a replay.
//! Must not know: what rows mean, command lines.

mod copy;
mod moved;
#[cfg(test)]
mod object_tests;
mod postgres_side;
mod row;
#[cfg(test)]
mod schema_tests;
mod sqlite_side;
mod tables;
#[cfg(test)]
mod tests;
mod to_directory;
mod to_postgres;

use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

pub use self::copy::{copy_from_directory, copy_space, copy_to_directory};
pub(crate) use self::moved::MovedDirectory;
pub use self::row::TableSum;
pub use self::to_directory::to_directory;
pub use self::to_postgres::to_postgres;

use crate::accounts::AccountError;
use crate::blobs::{BlobError, BlobSettings, ObjectBodies};
use crate::journal::{JournalError, PostgresSettings};

const JOURNAL_FILE: &str = "journal.sqlite";
/// What `moved_space` says of a space that is being filled.
const ARRIVING: &str = "arriving";
const POSTGRES_PORT: u16 = 5432;
/// Rows that travel together: about so many bytes.
const TRIP_BYTES: usize = 1 << 20;
/// Trips that wait to be written.
const TRIPS_MAX: usize = 4;

/// What is to be carried.
#[derive(Debug, Clone)]
pub struct MigrateRequest {
    pub directory: PathBuf,
    pub database: PostgresSettings,
    /// Where large bodies of the space lie, if not in the database.
    pub blobs: Option<BlobSettings>,
    pub space: String,
}

/// The store with large bodies, if the settings name one.
fn open_objects(blobs: Option<&BlobSettings>) -> Result<Option<ObjectBodies>, MigrateError> {
    Ok(blobs.map(ObjectBodies::open).transpose()?)
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrateStep {
    /// So many rows of a table are written.
    Rows {
        table: &'static str,
        rows: u64,
    },
    Bodies {
        done: usize,
        of: usize,
    },
    Comparing,
}

/// What was carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    pub rows: u64,
    pub bodies: usize,
    pub seq: i64,
    /// Nothing was left to do but to finish what an earlier run had carried.
    pub was_carried_before: bool,
}

/// Is called with each step that is done.
pub type ReportStep<'a> = &'a (dyn Fn(MigrateStep) + Send + Sync);

/// Why nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("{0} holds no sessions: there is no journal.sqlite in it")]
    NoJournal(PathBuf),
    #[error("{}: {}", .0.display(), .1)]
    AlreadyMoved(PathBuf, String),
    #[error("{0} has sessions of its own, which are not written over; choose an empty directory")]
    DirectoryTaken(PathBuf),
    #[error("{}: {}", .0.display(), .1)]
    Unfinished(PathBuf, String),
    #[error("the space `{0}` has sessions of its own; choose another name")]
    SpaceTaken(String),
    #[error(
        "the space `{0}` is being filled from another directory; finish that, or choose another name"
    )]
    SpaceArriving(String),
    #[error("the space `{0}` was moved to {1}")]
    SpaceMoved(String, String),
    #[error(
        "the space `{0}` was used meanwhile: nothing was moved; stop the hosts that serve it and run this again"
    )]
    SpaceUsed(String),
    #[error("both sides differ in `{0}`: nothing was moved. Please report this")]
    Differs(String),
    #[error("`{0}` holds something that cannot be read: nothing was moved")]
    Damaged(String),
    #[error("{0}: {1}")]
    Directory(PathBuf, std::io::Error),
    #[error("the journal of the directory: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the database: {}", words(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Blobs(#[from] BlobError),
    #[error(transparent)]
    Accounts(#[from] AccountError),
    #[error("a body of the space: {0}")]
    Object(String),
    #[error(
        "large bodies of the space lie in an object store: set [blobs] in the settings, or GREENROOM_BLOBS"
    )]
    NoObjects,
    #[error("the work was ended: {0}")]
    Ended(String),
}

/// The server's message, which an error shows only through its source.
fn words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => refusal.message().to_owned(),
        None => error.to_string(),
    }
}

/// Whether an address of a database has a password in it; what cannot be read as one is looked through.
pub fn has_password(url: &str) -> bool {
    match url.parse::<Config>() {
        Ok(config) => config.get_password().is_some(),
        Err(_) => {
            let user = url.split_once("://").map_or("", |(_, rest)| rest);
            let user = user.split_once('@').map_or("", |(user, _)| user);
            user.contains(':') || url.contains("password")
        }
    }
}

/// A database as people know it: never with a password.
fn describe_database(url: &str) -> String {
    let Ok(config) = url.parse::<Config>() else { return "PostgreSQL".to_owned() };
    let host = config.get_hosts().first().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let name = config.get_dbname().unwrap_or("postgres");
    let host = host.unwrap_or_else(|| "this machine".to_owned());
    match config.get_ports().first() {
        Some(port) if *port != POSTGRES_PORT => format!("{name} on {host}, port {port}"),
        Some(_) | None => format!("{name} on {host}"),
    }
}

/// As it is written into tables: the same wherever the command was typed.
fn absolute(dir: &Path) -> Result<PathBuf, MigrateError> {
    std::path::absolute(dir).map_err(|error| MigrateError::Directory(dir.to_owned(), error))
}
