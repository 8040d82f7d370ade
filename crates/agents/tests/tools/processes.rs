//! Waiting for processes to be gone, as the operating system reports it.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

/// How long a killed process may take to be gone before a test fails.
const GONE_WITHIN: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A process that a command started.
pub(crate) struct Process {
    id: i32,
    /// `None` if it was gone already.
    handle: Option<OwnedFd>,
}

impl Process {
    pub(crate) fn new(id: i32) -> Self {
        let pid = Pid::from_raw(id).unwrap();
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
        Self { id, handle }
    }

    pub(crate) fn was_alive(&self) -> bool {
        self.handle.is_some()
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.ends(Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    /// Waits until it is gone.
    pub(crate) fn is_gone(&self) {
        assert!(self.ends(GONE_WITHIN), "{} lives on", self.id);
    }

    fn kill(&self) {
        if let Some(handle) = &self.handle {
            let _ = rustix::process::pidfd_send_signal(handle, Signal::KILL);
        }
    }

    fn ends(&self, within: Timespec) -> bool {
        let Some(handle) = &self.handle else { return true };
        let mut waiting = [PollFd::new(handle, PollFlags::IN)];
        rustix::event::poll(&mut waiting, Some(&within)).unwrap() == 1
    }
}

impl Drop for Process {
    /// A test that fails leaves none behind either.
    fn drop(&mut self) {
        self.kill();
    }
}

/// The numbers in a text, one a line, if there are that many.
pub(crate) fn numbers(text: &str, count: usize) -> Option<Vec<i32>> {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let numbers: Vec<i32> = lines.filter_map(|line| line.trim().parse().ok()).collect();
    (numbers.len() >= count).then_some(numbers)
}
