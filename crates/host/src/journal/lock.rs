//! One host for one data directory: the directory itself is locked, and a file in it, as long as the host lives.
//!
//! Promises: the lock goes with the process however it ends; whoever finds it taken learns by whom. Removing or replacing
//! files lets no second host in. Clients that look whether a host lives never keep one from starting, and while one does
//! the endpoint file is its own. It is no lock of SQLite's, so that `inspect` can read beside a running host (G-37, ADR 0024).
//! The system itself names the process that holds the file `pid`, for `greenroom stop` (ADR 0046).
//! Must not know: what else is in the directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

use super::JournalError;
use crate::credentials::ENDPOINT_FILE;

const FILE: &str = "lock";
/// Its lock is of the kind whose holder the system names. It is a file of its own: on some systems the two kinds of locks
/// exclude each other.
const PID_FILE: &str = "pid";
/// Clients hold a shared lock for microseconds; one that is stopped while it does must not hang the start for ever.
const WAIT_MAX: Duration = Duration::from_secs(10);
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// The lock; dropping it gives it back.
#[derive(Debug)]
pub struct DirectoryLock {
    /// Whoever removes the file below must not let a second host in: a directory cannot be replaced without its content.
    directory: File,
    /// Holds the number of the process for people, and keeps hosts out that lock nothing else.
    file: File,
    /// Nothing else in this process may open that file: closing any handle of it would give the lock back.
    _pid: Option<File>,
}

impl DirectoryLock {
    pub fn take(dir: &Path) -> Result<Self, JournalError> {
        let directory = File::open(dir).map_err(|error| unwritable(dir, &error))?;
        // Before anything is touched: where the file was removed, another host is seen here only.
        check_not_held(&directory).map_err(|denied| denied.explain(dir))?;
        let path = dir.join(FILE);
        let mut file = open_private(&path)?;
        lock_exclusively(&file, WAIT_MAX).map_err(|denied| denied.explain(dir))?;
        // Before clients can see that a host lives: they would take the address of a killed one for its own.
        remove_left_behind(dir)?;
        lock_exclusively(&directory, WAIT_MAX).map_err(|denied| denied.explain(dir))?;
        // The number is for people; the lock itself is the kernel's, so a number left by a crash does no harm.
        write_pid(&mut file).map_err(|error| unwritable(&path, &error))?;
        Ok(Self { directory, file, _pid: lock_pid_file(dir)? })
    }
}

impl Drop for DirectoryLock {
    /// Closing alone would not do: a child that this process is just starting has the handles too until it runs its
    /// program, and with them the lock.
    fn drop(&mut self) {
        for held in [&self.directory, &self.file] {
            if let Err(error) = flock(held, FlockOperation::Unlock) {
                tracing::warn!(%error, "a lock of the data directory was not given back before its file was closed");
            }
        }
    }
}

/// The file by which the system names this process. A file system without such locks is no reason not to serve: then the
/// host cannot be stopped by the command line, which says so.
fn lock_pid_file(dir: &Path) -> Result<Option<File>, JournalError> {
    let path = dir.join(PID_FILE);
    let mut file = open_private(&path)?;
    if let Err(error) = fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        tracing::warn!(%error, "the file `pid` cannot be locked; `greenroom stop` will not work");
        return Ok(None);
    }
    write_pid(&mut file).map_err(|error| unwritable(&path, &error))?;
    Ok(Some(file))
}

fn open_private(path: &Path) -> Result<File, JournalError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| unwritable(path, &error))
}

/// Why there was no lock.
#[derive(Debug)]
enum LockRefusal {
    /// Another host has it.
    Held,
    /// Others looked at it all the time.
    Watched,
    Failed(io::Error),
}

impl LockRefusal {
    fn explain(self, dir: &Path) -> JournalError {
        let path = dir.display();
        match self {
            Self::Held => JournalError::Locked(format!(
                "another greenroom ({}) already serves the data directory {path}; stop it (`greenroom stop`) or choose another directory (--data)",
                read_holder(dir)
            )),
            Self::Watched => JournalError::Locked(format!(
                "no host serves the data directory {path}, but another program has a shared lock on it and does not give \
                 it back; end that program (`fuser -v {path}` names it) or choose another directory",
            )),
            Self::Failed(error) => unwritable(dir, &error),
        }
    }
}

/// Takes the lock unless a host has it. Clients have a shared one while they look: those are waited for.
fn lock_exclusively(file: &File, wait_max: Duration) -> Result<(), LockRefusal> {
    let begun = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(LockRefusal::Failed(error.into())),
        }
        // Beside shared locks there is space for another, beside a host's there is none.
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => flock(file, FlockOperation::Unlock)
                .map_err(|error| LockRefusal::Failed(error.into()))?,
            Err(Errno::WOULDBLOCK) => return Err(LockRefusal::Held),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(LockRefusal::Failed(error.into())),
        }
        if begun.elapsed() >= wait_max {
            return Err(LockRefusal::Watched);
        }
        std::thread::sleep(TRY_AGAIN);
    }
}

/// Beside shared locks there is space for another, beside a host's there is none.
fn check_not_held(file: &File) -> Result<(), LockRefusal> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) => return Err(LockRefusal::Held),
            Err(Errno::INTR) => {}
            Err(error) => return Err(LockRefusal::Failed(error.into())),
        }
    }
    flock(file, FlockOperation::Unlock).map_err(|error| LockRefusal::Failed(error.into()))
}

/// Removes the endpoint file of a host that was killed.
fn remove_left_behind(dir: &Path) -> Result<(), JournalError> {
    let path = dir.join(ENDPOINT_FILE);
    match fs::remove_file(&path) {
        Ok(()) => tracing::info!("removed the endpoint file of a host that was killed"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(JournalError::Unwritable(format!(
                "{}, which a host that was killed left behind, cannot be removed: {error}",
                path.display()
            )));
        }
    }
    Ok(())
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_holder(dir: &Path) -> String {
    match fs::read_to_string(dir.join(FILE)) {
        Ok(text) if !text.trim().is_empty() => format!("pid {}", text.trim()),
        // The file was removed, or the number is not written yet.
        Ok(_) | Err(_) => "pid unknown".to_owned(),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> JournalError {
    JournalError::Unwritable(format!("{} cannot be locked: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tempfile::tempdir;

    use super::*;

    fn is_taken(dir: &Path) -> bool {
        matches!(DirectoryLock::take(dir), Err(JournalError::Locked(words))
            if words.contains("another greenroom"))
    }

    #[test]
    fn no_second_host_gets_in_whatever_happens_to_the_file() {
        let dir = tempdir().unwrap();
        let lock = DirectoryLock::take(dir.path()).unwrap();
        assert!(is_taken(dir.path()));
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(is_taken(dir.path()), "the file was removed");
        assert!(!dir.path().join(FILE).exists(), "nothing was touched");
        fs::write(dir.path().join("other"), "1\n").unwrap();
        fs::rename(dir.path().join("other"), dir.path().join(FILE)).unwrap();
        assert!(is_taken(dir.path()), "the file was replaced");
        drop(lock);
        DirectoryLock::take(dir.path()).unwrap();
    }

    #[test]
    fn the_endpoint_file_of_a_killed_host_is_gone_and_that_of_a_living_one_stays() {
        let dir = tempdir().unwrap();
        let endpoint = dir.path().join(ENDPOINT_FILE);
        fs::write(&endpoint, "{}").unwrap();
        let _lock = DirectoryLock::take(dir.path()).unwrap();
        assert!(!endpoint.exists());
        fs::write(&endpoint, "{}").unwrap();
        assert!(is_taken(dir.path()));
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(is_taken(dir.path()));
        assert!(endpoint.exists());
    }

    #[test]
    fn a_host_that_locks_only_the_file_keeps_others_out_too() {
        let dir = tempdir().unwrap();
        let file = File::create(dir.path().join(FILE)).unwrap();
        file.lock().unwrap();
        assert!(is_taken(dir.path()));
        file.unlock().unwrap();
        DirectoryLock::take(dir.path()).unwrap();
    }

    #[test]
    fn it_is_given_back_though_a_child_still_has_the_handles() {
        let dir = tempdir().unwrap();
        let lock = DirectoryLock::take(dir.path()).unwrap();
        // What a process has between its birth and the start of its program.
        let of_child = (lock.directory.try_clone(), lock.file.try_clone());
        drop(lock);
        DirectoryLock::take(dir.path()).unwrap();
        drop(of_child);
    }

    #[test]
    fn clients_that_look_do_not_keep_a_host_from_starting() {
        let dir = tempdir().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        // As a client does it; who finds it held has nothing to give back.
                        let directory = File::open(dir.path()).unwrap();
                        let _ = directory.try_lock_shared();
                    }
                });
            }
            let taken: Vec<_> =
                (0..50).map(|_| DirectoryLock::take(dir.path()).map(drop)).collect();
            stop.store(true, Ordering::Relaxed);
            assert!(taken.iter().all(Result::is_ok), "{taken:?}");
        });
    }

    #[test]
    fn a_shared_lock_that_stays_is_named_as_such() {
        let dir = tempdir().unwrap();
        let directory = File::open(dir.path()).unwrap();
        directory.lock_shared().unwrap();
        let denied = lock_exclusively(&File::open(dir.path()).unwrap(), Duration::ZERO);
        let words = denied.unwrap_err().explain(dir.path()).to_string();
        assert!(words.contains("shared lock"), "{words}");
    }
}
