//! Keeps the driver and the server it measures on processors of their own.
//!
//! Whether bytes are read on the processor that wrote them decides what moving them costs, by half as much again, and
//! the scheduler decides that by chance. Where single openings are compared, it is decided here, alike for all.

use anyhow::Result;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// While it lives, this thread and the server's are apart. Start no process meanwhile: it would stay with the driver.
pub(crate) struct SeparateProcessors {
    before: Option<CpuSet>,
}

impl SeparateProcessors {
    /// With a single processor nothing can be done, and nothing is.
    pub(crate) fn from(server: u32) -> Result<Self> {
        let before = sched_getaffinity(None)?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).collect();
        let [driver, .., last] = allowed[..] else { return Ok(Self { before: None }) };
        let only = |cpu| {
            let mut set = CpuSet::new();
            set.set(cpu);
            set
        };
        for task in std::fs::read_dir(format!("/proc/{server}/task"))? {
            let thread = task?.file_name().to_str().and_then(|id| id.parse().ok());
            if let Some(thread) = thread.and_then(Pid::from_raw) {
                sched_setaffinity(Some(thread), &only(last))?;
            }
        }
        sched_setaffinity(None, &only(driver))?;
        Ok(Self { before: Some(before) })
    }
}

impl Drop for SeparateProcessors {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The set was in force before: it can be again.
            let _ = sched_setaffinity(None, before);
        }
    }
}
