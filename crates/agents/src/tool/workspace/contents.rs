//! Files as they are read: whole and remembered if they are small, as a stream otherwise.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use wire::Digest;

use super::beneath::{self, Links, Stat};
use super::{Place, ToolError, Workspace};

/// The largest file that is read whole, remembered and changed.
pub(in super::super) const FILE_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// How often a file is read again that changes while it is read.
const TRIES_MAX: usize = 4;

/// How much of a file is looked at to tell whether it is text.
const SNIFFED_BYTES: usize = 8 * 1_024;

/// What a file holds.
pub(in super::super) enum Contents {
    Whole(Vec<u8>, Sight),
    /// More than [`FILE_BYTES_MAX`].
    Stream(File),
}

/// A file as it was when it was read.
pub(in super::super) struct Sight {
    place: Place,
    digest: Digest,
}

/// A small file as it was at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) file: File,
    pub(super) stat: Stat,
    pub(super) bytes: Vec<u8>,
    pub(super) digest: Digest,
}

impl Workspace {
    /// Reads a file.
    pub(in super::super) fn read(&self, place: &Place) -> Result<Contents, ToolError> {
        let shown = self.shown(place);
        let (file, stat) = self.open_regular(place, Links::Followed)?;
        if stat.identity.bytes > FILE_BYTES_MAX {
            return Ok(Contents::Stream(file));
        }
        let Snapshot {
            file,
            bytes,
            digest,
            ..
        } = snapshot(file, &shown)?;
        let real = self.root(place).real_inside(&file);
        let place = real.map_or_else(|| place.clone(), |real| place.at(real));
        Ok(Contents::Whole(bytes, Sight { place, digest }))
    }

    /// Remembers that the model was shown it.
    pub(in super::super) fn remember(&self, sight: &Sight) {
        self.memory().read(&sight.place, sight.digest);
    }

    /// Opens a regular file. Links on the way are followed where somebody named it, and not where a walk came by.
    pub(super) fn open_regular(
        &self,
        place: &Place,
        links: Links,
    ) -> Result<(File, Stat), ToolError> {
        let shown = self.shown(place);
        let opened = beneath::open_any(&self.root(place).directory, &place.path, links);
        let (file, stat) = opened.map_err(|errno| beneath::told(errno, &shown))?;
        match stat.kind {
            FileType::RegularFile => Ok((file, stat)),
            FileType::Directory => Err(ToolError(format!(
                "{shown} is a directory; `list` shows what is in it"
            ))),
            _ => Err(beneath::not_regular(&shown)),
        }
    }

    /// A file that somebody named, for reading; `None` if it is a directory.
    pub(in super::super) fn open_named(
        &self,
        place: &Place,
    ) -> Result<Option<(File, u64)>, ToolError> {
        let root = &self.root(place).directory;
        match beneath::open_directory(root, &place.path, Links::Followed) {
            Ok(_) => Ok(None),
            Err(_) => {
                let (file, stat) = self.open_regular(place, Links::Followed)?;
                Ok(Some((file, stat.identity.bytes)))
            }
        }
    }

    /// A file that a walk came by, for reading; links and whatever is no regular file are passed over.
    pub(in super::super) fn open_entry(&self, place: &Place) -> Option<(File, u64)> {
        let (file, stat) = self.open_regular(place, Links::Refused).ok()?;
        Some((file, stat.identity.bytes))
    }

    /// A file of the house's own reading, such as ignore rules: small, and no fuss if it is not there.
    pub(super) fn read_small(&self, place: &Place, name: &Path, bytes_max: u64) -> Option<Vec<u8>> {
        let place = place.at(place.path.join(name));
        let (file, stat) = self.open_regular(&place, Links::Followed).ok()?;
        let mut bytes = Vec::new();
        let fits = stat.identity.bytes <= bytes_max;
        (fits && file.take(bytes_max).read_to_end(&mut bytes).is_ok()).then_some(bytes)
    }
}

/// Reads a file whole, as it was at one moment.
pub(super) fn snapshot(mut file: File, shown: &str) -> Result<Snapshot, ToolError> {
    let unreadable = |error: io::Error| match Errno::from_io_error(&error) {
        Some(errno) => beneath::told(errno, shown),
        None => ToolError(format!("{shown} cannot be read: {error}")),
    };
    for _ in 0..TRIES_MAX {
        let before = Stat::of(&file).map_err(|errno| beneath::told(errno, shown))?;
        let mut bytes = Vec::new();
        let mut bounded = (&mut file).take(FILE_BYTES_MAX + 1);
        bounded.read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ToolError(format!(
                "{shown} is larger than {} MiB; it cannot be changed by this tool",
                FILE_BYTES_MAX / 1_024 / 1_024
            )));
        }
        let stat = Stat::of(&file).map_err(|errno| beneath::told(errno, shown))?;
        if stat == before {
            let digest = digest_of(&bytes);
            return Ok(Snapshot {
                file,
                stat,
                bytes,
                digest,
            });
        }
        io::Seek::rewind(&mut file).map_err(unreadable)?;
    }
    Err(ToolError(format!(
        "{shown} changes while it is read; try again when nothing writes to it"
    )))
}

pub(in super::super) fn digest_of(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}

/// Whether a file is no text, judged by how it begins.
pub(in super::super) fn is_binary(beginning: &[u8]) -> bool {
    let sniffed = &beginning[..beginning.len().min(SNIFFED_BYTES)];
    memchr::memchr(0, sniffed).is_some()
}
