//! Bodies as files: `blobs/sha256/ab/<hex>`, readable by their owner alone.
//!
//! Promises: a file appears under its name whole and durable, or not at all; a crash leaves at most files without a
//! name, gone at the next start. A body that need not be durable yet is such a file. When a body was last put is the file's time of
//! modification.
//! Must not know: what else is in the data directory; the journal's lock ensures that it has one owner.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use wire::{Digest, Timestamp};

use super::{BlobError, Blobs, Found};

/// Read and hashed at a time.
const CHUNK_BYTES: usize = 64 * 1_024;

/// A store in a directory.
#[derive(Debug)]
pub struct FileBlobs {
    named: PathBuf,
    unnamed: PathBuf,
    next_unnamed: AtomicU64,
    /// How a file or a directory gets to the disk; tests have disks that fail.
    sync: fn(&File) -> io::Result<()>,
    /// Held while a name appears, is renewed or goes: what was just put must not go with what was old.
    naming: Mutex<Names>,
}

/// What is known of the bodies' names.
#[derive(Debug)]
struct Names {
    synced: SyncedBuckets,
    /// Bodies without a name. Their files go at the next start, so that this is all of them.
    unsynced: BTreeMap<Digest, UnsyncedBody>,
}

/// A body that is not durable.
#[derive(Debug, Clone, Copy)]
struct UnsyncedBody {
    /// What its file is called among those without a name.
    number: u64,
    put_at: Timestamp,
}

/// The buckets in which every name is durable. A host that died may have left names that are not: each bucket is synced
/// once before a name in it is relied on, and again with each name that appears.
#[derive(Debug)]
struct SyncedBuckets([bool; 256]);

impl SyncedBuckets {
    fn is_synced(&self, first: u8) -> bool {
        self.0[usize::from(first)]
    }

    fn set(&mut self, first: u8, is_synced: bool) {
        self.0[usize::from(first)] = is_synced;
    }
}

impl FileBlobs {
    /// Opens the store of a data directory; what a crash left without a name goes.
    pub fn open(data: &Path) -> Result<Self, BlobError> {
        let store = Self::open_to_read(data);
        store.prepare(data, &data.join("blobs")).map_err(unwritable)?;
        Ok(store)
    }

    /// The store of a data directory that a host may be serving: nothing is made or removed.
    pub fn open_to_read(data: &Path) -> Self {
        let root = data.join("blobs");
        Self {
            named: root.join("sha256"),
            unnamed: root.join("tmp"),
            next_unnamed: AtomicU64::new(0),
            sync: File::sync_all,
            naming: Mutex::new(Names {
                synced: SyncedBuckets([false; 256]),
                unsynced: BTreeMap::new(),
            }),
        }
    }

    fn prepare(&self, data: &Path, root: &Path) -> io::Result<()> {
        self.make_private_dir(root, data)?;
        self.make_private_dir(&self.named, root)?;
        self.make_private_dir(&self.unnamed, root)?;
        for entry in fs::read_dir(&self.unnamed)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    fn bucket(&self, first: u8) -> PathBuf {
        self.named.join(format!("{first:02x}"))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.bucket(digest.as_bytes()[0]).join(digest.to_hex())
    }

    fn unnamed_path(&self, number: u64) -> PathBuf {
        self.unnamed.join(number.to_string())
    }

    /// Counts a named body that is there already as put now.
    fn renew(&self, digest: &Digest, bytes: u64, now: Timestamp) -> io::Result<bool> {
        let Some(file) = open_if_there(&self.path(digest))? else { return Ok(false) };
        let metadata = file.metadata()?;
        if metadata.len() != bytes {
            return Ok(false); // damaged: it is written again
        }
        let now = system_time(now);
        if metadata.modified()? < now {
            file.set_modified(now)?;
        }
        Ok(true)
    }

    /// Counts a body that is there already, with a name or without, as put now.
    fn renew_any(
        &self,
        names: &mut Names,
        digest: &Digest,
        bytes: u64,
        now: Timestamp,
    ) -> io::Result<bool> {
        if let Some(unsynced) = names.unsynced.get_mut(digest) {
            unsynced.put_at = unsynced.put_at.max(now);
            return Ok(true);
        }
        self.renew(digest, bytes, now)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        (self.sync)(&File::open(path)?)
    }

    fn make_private_dir(&self, path: &Path, parent: &Path) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => self.sync_dir(parent).inspect_err(|_| {
                // One that is there is taken for durable: the next who needs it makes it again.
                let _ = fs::remove_dir(path);
            }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sees to it that the names in a bucket are durable.
    fn sync_bucket(&self, names: &mut Names, first: u8) -> io::Result<()> {
        if !names.synced.is_synced(first) {
            self.sync_dir(&self.bucket(first))?;
            names.synced.set(first, true);
        }
        Ok(())
    }

    /// Gives a file that is durable its name, which is durable then, too.
    fn give_name(
        &self,
        names: &mut Names,
        digest: &Digest,
        file: &File,
        number: u64,
    ) -> io::Result<()> {
        let first = digest.as_bytes()[0];
        self.make_private_dir(&self.bucket(first), &self.named)?;
        if let Some(unsynced) = names.unsynced.get(digest) {
            let put_at = system_time(unsynced.put_at);
            if file.metadata()?.modified()? < put_at {
                file.set_modified(put_at)?;
            }
        }
        // Until it is synced again: a failure leaves a name that the next who needs it makes durable.
        names.synced.set(first, false);
        fs::rename(self.unnamed_path(number), self.path(digest))?;
        // It is there under its name from now on, whatever becomes of the rest.
        if let Some(unsynced) = names.unsynced.remove(digest)
            && unsynced.number != number
        {
            // What is left of it goes at the next start.
            let _ = fs::remove_file(self.unnamed_path(unsynced.number));
        }
        self.sync_bucket(names, first)
    }

    /// Writes a file without a name, and hands it on. A file that could not be finished is removed.
    fn write(
        &self,
        body: &[u8],
        now: Timestamp,
        finish: impl FnOnce(File, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let number = self.next_unnamed.fetch_add(1, Ordering::Relaxed);
        let unnamed = self.unnamed_path(number);
        let written = write_file(&unnamed, body, now).and_then(|file| finish(file, number));
        if written.is_err() {
            // A full disk must not be filled further by what could not be finished; the next start tries again.
            let _ = fs::remove_file(&unnamed);
        }
        written
    }

    fn store_durably(&self, digest: &Digest, body: &[u8], now: Timestamp) -> io::Result<()> {
        let (first, bytes) = (digest.as_bytes()[0], body.len() as u64);
        {
            let mut names = self.naming.lock();
            if self.renew(digest, bytes, now)? {
                return self.sync_bucket(&mut names, first);
            }
        }
        self.write(body, now, |file, number| {
            (self.sync)(&file)?;
            let mut names = self.naming.lock();
            if self.renew(digest, bytes, now)? {
                // Stored by another meanwhile, and put later perhaps; what is left of this one goes at the next start.
                let _ = fs::remove_file(self.unnamed_path(number));
                return self.sync_bucket(&mut names, first);
            }
            self.give_name(&mut names, digest, &file, number)
        })
    }

    fn store_unsynced(&self, digest: &Digest, body: &[u8], now: Timestamp) -> io::Result<()> {
        let bytes = body.len() as u64;
        if self.renew_any(&mut self.naming.lock(), digest, bytes, now)? {
            return Ok(());
        }
        self.write(body, now, |_, number| {
            let mut names = self.naming.lock();
            if self.renew_any(&mut names, digest, bytes, now)? {
                // Stored by another meanwhile; what is left of this one goes at the next start.
                let _ = fs::remove_file(self.unnamed_path(number));
                return Ok(());
            }
            let unsynced = UnsyncedBody { number, put_at: now };
            names.unsynced.insert(*digest, unsynced);
            Ok(())
        })
    }

    /// Whether the body is there, and durable now.
    fn sync_body(&self, digest: &Digest) -> io::Result<bool> {
        let unsynced = self.naming.lock().unsynced.get(digest).copied();
        if let Some(unsynced) = unsynced {
            self.sync_unnamed(digest, unsynced.number)?;
        }
        let mut names = self.naming.lock();
        let is_there = open_if_there(&self.path(digest))?.is_some();
        if is_there {
            self.sync_bucket(&mut names, digest.as_bytes()[0])?;
        }
        Ok(is_there)
    }

    /// Makes a body without a name durable and gives it one, unless others did that, or removed it, meanwhile.
    fn sync_unnamed(&self, digest: &Digest, number: u64) -> io::Result<()> {
        let file = open_if_there(&self.unnamed_path(number))?;
        // Not under the lock: whoever stores, reads or removes something else does not wait for it.
        let synced = file.as_ref().map_or(Ok(()), self.sync);
        let mut names = self.naming.lock();
        let unsynced = names.unsynced.get(digest);
        if unsynced.is_none_or(|unsynced| unsynced.number != number) {
            return Ok(());
        }
        match (file, synced) {
            (Some(file), Ok(())) => self.give_name(&mut names, digest, &file, number),
            (_, synced) => {
                // A system forgets what it could not write, and says of the same file the next time that all of it is on the disk.
                names.unsynced.remove(digest);
                let _ = fs::remove_file(self.unnamed_path(number));
                synced
            }
        }
    }

    /// The file of a body, wherever it is.
    fn open_body(&self, digest: &Digest) -> io::Result<Option<File>> {
        let path = self.path(digest);
        if let Some(file) = open_if_there(&path)? {
            return Ok(Some(file));
        }
        // It gets its name under the lock, and no other way.
        let names = self.naming.lock();
        match names.unsynced.get(digest) {
            Some(unsynced) => File::open(self.unnamed_path(unsynced.number)).map(Some),
            None => open_if_there(&path),
        }
    }
}

impl Blobs for FileBlobs {
    fn put_named(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        debug_assert!(digest.is_of(body), "a body is named by what it holds");
        self.store_durably(digest, body, now).map_err(unwritable)
    }

    fn put_unsynced(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        debug_assert!(digest.is_of(body), "a body is named by what it holds");
        self.store_unsynced(digest, body, now).map_err(unwritable)
    }

    fn make_durable(&self, digest: &Digest) -> Result<(), BlobError> {
        if self.sync_body(digest).map_err(unwritable)? {
            Ok(())
        } else {
            Err(BlobError::Lost(*digest))
        }
    }

    fn read(&self, digest: &Digest, bytes_max: u64) -> Result<Found, BlobError> {
        let Some(mut file) = self.open_body(digest).map_err(unreadable)? else {
            return Ok(Found::Missing);
        };
        let bytes = file.metadata().map_err(unreadable)?.len();
        if bytes > bytes_max {
            return Ok(Found::TooLarge { bytes });
        }
        let mut body = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        let mut hash = Sha256::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        // A file that grew since is not what was put: no more than its size is ever held.
        let mut rest = (&mut file).take(bytes + 1);
        loop {
            match rest.read(&mut chunk).map_err(unreadable)? {
                0 => break,
                length => {
                    hash.update(&chunk[..length]);
                    body.extend_from_slice(&chunk[..length]);
                }
            }
        }
        if Digest::new(hash.finalize().into()) != *digest {
            return Err(BlobError::Damaged(*digest));
        }
        Ok(Found::Body(body))
    }

    fn list_older_than(
        &self,
        buckets: RangeInclusive<u8>,
        before: Timestamp,
    ) -> Result<Vec<Digest>, BlobError> {
        let names = self.naming.lock();
        let unsynced = names.unsynced.iter().filter(|(digest, unsynced)| {
            unsynced.put_at < before && buckets.contains(&digest.as_bytes()[0])
        });
        let mut aged: BTreeSet<Digest> = unsynced.map(|(digest, _)| *digest).collect();
        drop(names);
        let before = system_time(before);
        for first in buckets {
            let entries = match fs::read_dir(self.bucket(first)) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(error)),
            };
            for entry in entries {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name();
                let Some(digest) = name.to_str().and_then(Digest::from_hex) else {
                    continue; // not ours
                };
                let modified = entry.metadata().and_then(|metadata| metadata.modified());
                if modified.map_err(unreadable)? < before {
                    aged.insert(digest);
                }
            }
        }
        Ok(aged.into_iter().collect())
    }

    fn remove(&self, digest: &Digest, before: Timestamp) -> Result<(), BlobError> {
        let path = self.path(digest);
        let mut names = self.naming.lock();
        if let Some(unsynced) = names.unsynced.get(digest).copied()
            && unsynced.put_at < before
        {
            remove_if_there(&self.unnamed_path(unsynced.number)).map_err(unwritable)?;
            names.unsynced.remove(digest);
        }
        let modified = match fs::metadata(&path).and_then(|metadata| metadata.modified()) {
            Ok(modified) => modified,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(error)),
        };
        if modified >= system_time(before) {
            return Ok(());
        }
        // Not synced: a name that comes back after a power cut is collected again.
        fs::remove_file(&path).map_err(unwritable)
    }
}

fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Not durable yet.
fn write_file(path: &Path, body: &[u8], now: Timestamp) -> io::Result<File> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(body)?;
    file.set_modified(system_time(now))?;
    Ok(file)
}

fn system_time(moment: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(moment.0).unwrap_or(0))
}

fn unwritable(error: io::Error) -> BlobError {
    BlobError::Unwritable(error.to_string())
}

fn unreadable(error: io::Error) -> BlobError {
    BlobError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests;
