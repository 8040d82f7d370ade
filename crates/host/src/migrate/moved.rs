//! The marks of a data directory whose sessions are carried: which migration it takes part in, and how far that came.
//!
//! Promises: a mark is there whole or not at all, and on the disk when it is set. It has the number of one migration, which the
//! database has too: a mark that another one left behind means nothing to it.
//! Must not know: how anything is carried.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::private_file;

/// What a mark says of the directory it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// Its sessions are being carried into a database; they are still served here.
    Leaving,
    /// They are in a database: a host refuses to serve the directory.
    Moved,
    /// A journal from a database is complete, and not yet in its place.
    Arriving,
    /// Its sessions came from a database.
    Arrived,
}

impl MarkKind {
    fn file(self) -> &'static str {
        match self {
            Self::Leaving => "leaving.json",
            Self::Moved => "moved.json",
            Self::Arriving => "arriving.json",
            Self::Arrived => "arrived.json",
        }
    }
}

/// Where the sessions of a directory went, or came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MovedDirectory {
    /// The number of the migration: random, and the same in the database.
    pub(super) migration: String,
    /// The name of the space.
    pub(crate) space: String,
    /// The database, without what would let anybody in.
    pub(crate) database: String,
}

impl MovedDirectory {
    /// With a number that no other migration has.
    pub(super) fn begin(space: &str, database: &str) -> io::Result<Self> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        let digits = number.iter().map(|byte| format!("{byte:02x}"));
        Ok(Self {
            migration: digits.collect(),
            space: space.to_owned(),
            database: super::describe_database(database),
        })
    }

    /// `None` if there is no such mark.
    pub(super) fn read_mark(dir: &Path, kind: MarkKind) -> io::Result<Option<Self>> {
        let file = kind.file();
        match fs::read(dir.join(file)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{file}: {error}"))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn mark(&self, dir: &Path, kind: MarkKind) -> io::Result<()> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        private_file::replace(&dir.join(kind.file()), &text)
    }

    pub(super) fn unmark(dir: &Path, kind: MarkKind) -> io::Result<()> {
        match fs::remove_file(dir.join(kind.file())) {
            Ok(()) => fs::File::open(dir)?.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Why a host does not serve the directory, if there is a reason.
    pub(crate) fn why_not_served(dir: &Path) -> io::Result<Option<String>> {
        if let Some(arriving) = Self::read_mark(dir, MarkKind::Arriving)? {
            return Ok(Some(arriving.describe_arriving(dir)));
        }
        let moved = Self::read_mark(dir, MarkKind::Moved)?;
        Ok(moved.map(|moved| moved.words(dir)))
    }

    /// Why a host does not serve the directory that they left.
    pub(super) fn words(&self, dir: &Path) -> String {
        format!(
            "its sessions were moved to the space `{}` of the database {}; serve them there, or bring them back: \
             greenroom migrate --from postgres://.. --space {} --to {}",
            self.space,
            self.database,
            self.space,
            dir.display()
        )
    }

    /// The same for one that they did not reach.
    pub(super) fn describe_arriving(&self, dir: &Path) -> String {
        format!(
            "the sessions of the space `{}` of the database {} are on their way into it, and that was interrupted; run it again: \
             greenroom migrate --from postgres://.. --space {} --to {}",
            self.space,
            self.database,
            self.space,
            dir.display()
        )
    }
}
