//! The process of the local host: which one the system says it is, how to end it, and whether it has ended.
//!
//! Promises: a signal goes only to the process that the system itself names as the holder of the data directory, never to a
//! number that a file holds: that number may belong to a stranger by now (ADR 0046).
//! Must not know: what the host does.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use client::endpoint;
#[cfg(target_os = "linux")]
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};

/// The file in the data directory that the host's process holds.
const PID_FILE: &str = "pid";
/// A host that starts holds the directory a moment before it holds the file.
const NAMED_WITHIN: Duration = Duration::from_millis(500);
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Who holds a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    Nobody,
    Process(Pid),
    /// Somebody does, but the system names no process: a host of an earlier version, one in another container, or a
    /// program that is no host.
    Unnamed,
}

/// Asks the system who holds a data directory.
pub(crate) fn find_holder(data: &Path) -> io::Result<Holder> {
    let deadline = Instant::now() + NAMED_WITHIN;
    loop {
        if !is_held(data)? {
            return Ok(Holder::Nobody);
        }
        if let Some(pid) = named_process(data)? {
            return Ok(Holder::Process(pid));
        }
        if Instant::now() > deadline {
            return Ok(Holder::Unnamed);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Whether a host of any version holds the directory; one that is not there is held by nobody.
pub(crate) fn is_held(data: &Path) -> io::Result<bool> {
    match endpoint::is_held(data) {
        Ok(held) => Ok(held || endpoint::is_held_by_earlier_version(data)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn named_process(data: &Path) -> io::Result<Option<Pid>> {
    let file = match File::open(data.join(PID_FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let blocking = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock))?;
    // Locks that no process owns have the number -1, which as the target of a signal means every process there is.
    let pid = blocking.and_then(|lock| lock.pid);
    Ok(pid.filter(|pid| pid.as_raw_nonzero().get() > 1))
}

/// A process that was the holder when it was opened, and stays the same whatever becomes of its number.
#[derive(Debug)]
pub(crate) struct HostProcess {
    pid: Pid,
    /// Absent where the system has none; then the number is asked for again right before each signal.
    #[cfg(target_os = "linux")]
    handle: Option<OwnedFd>,
}

impl HostProcess {
    /// `None` if the process does not hold the directory any more.
    pub(crate) fn open(data: &Path, pid: Pid) -> io::Result<Option<Self>> {
        #[cfg(target_os = "linux")]
        let handle = {
            use rustix::process::{PidfdFlags, pidfd_open};
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(handle) => Some(handle),
                Err(Errno::SRCH) => return Ok(None),
                // An old kernel, or a sandbox that forbids it.
                Err(_) => None,
            }
        };
        let process = Self {
            pid,
            #[cfg(target_os = "linux")]
            handle,
        };
        // Asked after it was opened: now the handle and the holder are the same process.
        Ok((named_process(data)? == Some(pid)).then_some(process))
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal, if the process is still there and still the holder.
    pub(crate) fn signal(&self, data: &Path, signal: Signal) -> io::Result<()> {
        if named_process(data)? != Some(self.pid) {
            return Ok(()); // it has ended meanwhile, which is what was wanted
        }
        let sent = self.send(signal);
        match sent {
            Err(Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle {
            return rustix::process::pidfd_send_signal(handle, signal);
        }
        kill_process(self.pid, signal)
    }

    /// Whether the process has ended and the directory is free for another host.
    pub(crate) fn has_ended(&self, data: &Path) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut ended = [PollFd::new(handle, PollFlags::IN)];
            if poll(&mut ended, Some(&at_once))? == 0 {
                return Ok(false);
            }
        }
        Ok(named_process(data)? != Some(self.pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_held_by_no_host_names_nobody() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(find_holder(data.path()).unwrap(), Holder::Nobody);
        let missing = data.path().join("none");
        assert_eq!(find_holder(&missing).unwrap(), Holder::Nobody);
        // A number alone is not believed, nor is a lock of another kind.
        std::fs::write(data.path().join(PID_FILE), "1\n").unwrap();
        assert_eq!(find_holder(data.path()).unwrap(), Holder::Nobody);
        let lock = File::open(data.path()).unwrap();
        lock.lock().unwrap();
        assert_eq!(find_holder(data.path()).unwrap(), Holder::Unnamed);
    }

    #[test]
    fn a_process_that_holds_nothing_is_not_opened() {
        let data = tempfile::tempdir().unwrap();
        let pid = rustix::process::getpid();
        assert!(HostProcess::open(data.path(), pid).unwrap().is_none());
    }
}
