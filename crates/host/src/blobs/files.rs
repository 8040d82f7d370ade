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
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use wire::{Digest, Timestamp};

use super::{BlobError, Blobs, Found, digest_of};

/// Read and hashed at a time.
const CHUNK_BYTES: usize = 64 * 1_024;

/// A store in a directory.
#[derive(Debug)]
pub struct FileBlobs {
    named: PathBuf,
    unnamed: PathBuf,
    next_unnamed: AtomicU64,
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
        store
            .prepare(data, &data.join("blobs"))
            .map_err(unwritable)?;
        Ok(store)
    }

    /// The store of a data directory that a host may be serving: nothing is made or removed.
    pub fn open_to_read(data: &Path) -> Self {
        let root = data.join("blobs");
        Self {
            named: root.join("sha256"),
            unnamed: root.join("tmp"),
            next_unnamed: AtomicU64::new(0),
            naming: Mutex::new(Names {
                synced: SyncedBuckets([false; 256]),
                unsynced: BTreeMap::new(),
            }),
        }
    }

    fn prepare(&self, data: &Path, root: &Path) -> io::Result<()> {
        make_private_dir(root, data)?;
        make_private_dir(&self.named, root)?;
        make_private_dir(&self.unnamed, root)?;
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

    fn names(&self) -> MutexGuard<'_, Names> {
        self.naming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a named body that is there already as put now.
    fn renew(&self, digest: &Digest, bytes: u64, now: Timestamp) -> io::Result<bool> {
        let Some(file) = open_if_there(&self.path(digest))? else {
            return Ok(false);
        };
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

    /// Sees to it that the names in a bucket are durable.
    fn sync_bucket(&self, names: &mut Names, first: u8) -> io::Result<()> {
        if !names.synced.is_synced(first) {
            sync_dir(&self.bucket(first))?;
            names.synced.set(first, true);
        }
        Ok(())
    }

    /// Gives a file that is durable its name, which is durable then, too.
    fn give_name(&self, names: &mut Names, unnamed: &Path, digest: &Digest) -> io::Result<()> {
        let first = digest.as_bytes()[0];
        make_private_dir(&self.bucket(first), &self.named)?;
        // Until it is synced again: a failure leaves a name that the next who needs it makes durable.
        names.synced.set(first, false);
        fs::rename(unnamed, self.path(digest))?;
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
        {
            let mut names = self.names();
            if self.renew(digest, body.len() as u64, now)? {
                return self.sync_bucket(&mut names, digest.as_bytes()[0]);
            }
        }
        self.write(body, now, |file, number| {
            file.sync_all()?;
            let mut names = self.names();
            self.give_name(&mut names, &self.unnamed_path(number), digest)?;
            if let Some(unsynced) = names.unsynced.remove(digest) {
                // It is there under its name now; what is left of it goes at the next start.
                let _ = fs::remove_file(self.unnamed_path(unsynced.number));
            }
            Ok(())
        })
    }

    fn store_unsynced(&self, digest: &Digest, body: &[u8], now: Timestamp) -> io::Result<()> {
        {
            let mut names = self.names();
            if let Some(unsynced) = names.unsynced.get_mut(digest) {
                unsynced.put_at = unsynced.put_at.max(now);
                return Ok(());
            }
            if self.renew(digest, body.len() as u64, now)? {
                return Ok(());
            }
        }
        self.write(body, now, |_, number| {
            let unsynced = UnsyncedBody {
                number,
                put_at: now,
            };
            match self.names().unsynced.insert(*digest, unsynced) {
                // Stored by another meanwhile.
                Some(other) => fs::remove_file(self.unnamed_path(other.number)),
                None => Ok(()),
            }
        })
    }

    /// Whether the body is there, and durable now.
    fn sync_body(&self, digest: &Digest) -> io::Result<bool> {
        let mut names = self.names();
        let Some(unsynced) = names.unsynced.get(digest).copied() else {
            let is_there = open_if_there(&self.path(digest))?.is_some();
            if is_there {
                self.sync_bucket(&mut names, digest.as_bytes()[0])?;
            }
            return Ok(is_there);
        };
        let unnamed = self.unnamed_path(unsynced.number);
        let file = File::open(&unnamed)?;
        file.set_modified(system_time(unsynced.put_at))?;
        file.sync_all()?;
        self.give_name(&mut names, &unnamed, digest)?;
        names.unsynced.remove(digest);
        Ok(true)
    }

    /// The file of a body, wherever it is.
    fn open_body(&self, digest: &Digest) -> io::Result<Option<File>> {
        let path = self.path(digest);
        if let Some(file) = open_if_there(&path)? {
            return Ok(Some(file));
        }
        // It gets its name under the lock, and no other way.
        let names = self.names();
        match names.unsynced.get(digest) {
            Some(unsynced) => File::open(self.unnamed_path(unsynced.number)).map(Some),
            None => open_if_there(&path),
        }
    }
}

impl Blobs for FileBlobs {
    fn put_named(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        debug_assert_eq!(*digest, digest_of(body), "a body is named by what it holds");
        self.store_durably(digest, body, now).map_err(unwritable)
    }

    fn put_unsynced(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        debug_assert_eq!(*digest, digest_of(body), "a body is named by what it holds");
        self.store_unsynced(digest, body, now).map_err(unwritable)
    }

    fn make_durable(&self, digest: &Digest) -> Result<(), BlobError> {
        match self.sync_body(digest).map_err(unwritable)? {
            true => Ok(()),
            false => Err(BlobError::Lost(*digest)),
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
        let names = self.names();
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
        let mut names = self.names();
        if let Some(unsynced) = names.unsynced.get(digest).copied()
            && unsynced.put_at < before
        {
            fs::remove_file(self.unnamed_path(unsynced.number)).map_err(unwritable)?;
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

/// Not durable yet.
fn write_file(path: &Path, body: &[u8], now: Timestamp) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(body)?;
    file.set_modified(system_time(now))?;
    Ok(file)
}

fn make_private_dir(path: &Path, parent: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_dir(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
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
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_read_a_body() {
        let data = tempfile::tempdir().unwrap();
        let store = FileBlobs::open(data.path()).unwrap();
        let digest = store.put(b"secret", NOW).unwrap();
        let path = data
            .path()
            .join("blobs/sha256/2b")
            .join("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
        assert_eq!(store.path(&digest), path);
        assert_eq!(mode(&path), 0o600);
        for dir in path.ancestors().skip(1).take(3) {
            assert_eq!(mode(dir), 0o700, "{}", dir.display());
        }
    }

    #[test]
    fn temporary_files_of_a_crash_are_removed_and_bodies_stay() {
        let data = tempfile::tempdir().unwrap();
        let store = FileBlobs::open(data.path()).unwrap();
        let digest = store.put(b"whole", NOW).unwrap();
        fs::write(store.unnamed.join("7"), b"half of a bo").unwrap();
        drop(store);
        let store = FileBlobs::open(data.path()).unwrap();
        assert_eq!(fs::read_dir(&store.unnamed).unwrap().count(), 0);
        assert_eq!(store.read(&digest, 99), Ok(Found::Body(b"whole".to_vec())));
    }

    #[test]
    fn an_unsynced_body_has_no_name_until_it_is_durable() {
        let data = tempfile::tempdir().unwrap();
        let store = FileBlobs::open(data.path()).unwrap();
        let bodies = [&b"one"[..], b"two", b"three"];
        let digests = bodies.map(digest_of);
        for _ in 0..2 {
            for (digest, body) in digests.iter().zip(bodies) {
                store.put_unsynced(digest, body, NOW).unwrap();
            }
        }
        // No bucket is made, so none is synced; and each lies there once.
        let count = |directory: &Path| fs::read_dir(directory).unwrap().count();
        assert_eq!((count(&store.named), count(&store.unnamed)), (0, 3));
        store.make_durable(&digests[0]).unwrap();
        store.put(bodies[1], NOW).unwrap();
        assert_eq!((count(&store.named), count(&store.unnamed)), (2, 1));
        for (digest, body) in digests.iter().zip(bodies) {
            assert_eq!(store.read(digest, 99), Ok(Found::Body(body.to_vec())));
        }
        drop(store);
        let store = FileBlobs::open(data.path()).unwrap();
        let is_there = |digest| store.read(&digest, 99) != Ok(Found::Missing);
        assert_eq!(digests.map(is_there), [true, true, false]);
        assert_eq!(count(&store.unnamed), 0);
    }

    #[test]
    fn a_body_that_was_cut_short_is_noticed_and_written_again() {
        let data = tempfile::tempdir().unwrap();
        let store = FileBlobs::open(data.path()).unwrap();
        let digest = store.put(b"all of it", NOW).unwrap();
        for wrong in [&b"all"[..], b"all of it and more", b""] {
            fs::write(store.path(&digest), wrong).unwrap();
            assert_eq!(store.read(&digest, 99), Err(BlobError::Damaged(digest)));
        }
        store.put(b"all of it", NOW).unwrap();
        assert_eq!(
            store.read(&digest, 99),
            Ok(Found::Body(b"all of it".to_vec()))
        );
    }

    #[test]
    fn a_full_disk_is_reported_and_leaves_no_file() {
        let data = tempfile::tempdir().unwrap();
        let store = FileBlobs::open(data.path()).unwrap();
        let digest = digest_of(b"body");
        // In the way of the bucket: fails for every user, root included.
        fs::write(store.bucket(digest.as_bytes()[0]), b"").unwrap();
        assert!(matches!(
            store.put(b"body", NOW),
            Err(BlobError::Unwritable(_))
        ));
        assert_eq!(fs::read_dir(&store.unnamed).unwrap().count(), 0);
        assert!(matches!(
            store.read(&digest, 99),
            Err(BlobError::Unreadable(_))
        ));
    }

    #[test]
    fn foreign_files_are_left_alone() {
        let data = tempfile::tempdir().unwrap();
        let store = FileBlobs::open(data.path()).unwrap();
        let digest = store.put(b"body", NOW).unwrap();
        let stranger = store.bucket(digest.as_bytes()[0]).join("notes.txt");
        fs::write(&stranger, b"mine").unwrap();
        let later = Timestamp(i64::MAX / 1_000_000);
        assert_eq!(store.list_older_than(0..=255, later), Ok(vec![digest]));
    }
}
