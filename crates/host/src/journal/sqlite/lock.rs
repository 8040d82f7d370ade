//! One host for one data directory: a lock file, held as long as the journal is open.
//!
//! Promises: the lock goes with the process however it ends; whoever finds it taken learns by whom. It is no lock of
//! SQLite's, so that `inspect` can read beside a running host (G-37).
//! Must not know: what is in the directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::journal::JournalError;

/// The lock; dropping it gives it back.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    pub(super) fn take(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join("lock");
        let unwritable = |error: io::Error| {
            JournalError::Unwritable(format!("the lock file {}: {error}", path.display()))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(unwritable)?;
        // Whoever only looks whether it is held holds it for a moment: that is no other host.
        let mut tries = 0;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if tries < TRIES_MAX => {
                    tries += 1;
                    std::thread::sleep(TRY_AGAIN);
                }
                Err(Errno::WOULDBLOCK) => return Err(taken(&mut file, dir)),
                Err(error) => return Err(unwritable(error.into())),
            }
        }
        // The number is for people; the lock itself is the kernel's, so a number left by a crash does no harm.
        write_pid(&mut file).map_err(unwritable)?;
        Ok(Self { _file: file })
    }
}

const TRIES_MAX: u32 = 5;
const TRY_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn taken(file: &mut File, dir: &Path) -> JournalError {
    let mut text = String::new();
    let holder = match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("pid {}", text.trim()),
        // Between taking the lock and writing the number there is none to read.
        Ok(_) | Err(_) => "pid unknown".to_owned(),
    };
    JournalError::Locked(format!(
        "another greenroom ({holder}) already serves the data directory {}; stop it or choose another directory",
        dir.display()
    ))
}
