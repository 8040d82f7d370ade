//! Instruments: a clock that processes share, CPU and memory of another process, medians, a seeded generator.
//!
//! CPU is user plus system time of all threads of a process, as `/proc/PID/stat` defines it, but read from the
//! threads' `schedstat`: the same account in nanoseconds instead of ticks of 10 ms. A thread that has ended is not in
//! it any more; neither the host nor the bare server ends threads while it is measured.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

const TICK_NS: u64 = 10_000_000;

/// Nanoseconds of the monotonic clock: the same in every process of this machine.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// CPU time this thread has used.
pub(crate) fn thread_cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(used.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(used.tv_nsec).unwrap_or(0)
}

/// CPU time that all threads of this process have used, those that have ended included.
pub(crate) fn own_cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(used.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(used.tv_nsec).unwrap_or(0)
}

/// CPU time a process has used, and how much of it in the journal's writing thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    pub total_ns: u64,
    pub kernel_ns: u64,
}

impl Cpu {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let mut cpu = Self::default();
        let tasks =
            fs::read_dir(format!("/proc/{pid}/task")).context("the measured process is gone")?;
        for task in tasks {
            let task = task?.path();
            let Ok(stat) = fs::read_to_string(task.join("schedstat")) else { continue };
            let ns: u64 =
                stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
            cpu.total_ns += ns;
            if fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "kernel") {
                cpu.kernel_ns += ns;
            }
        }
        if cpu.total_ns == 0 {
            cpu.total_ns = ticks_of(pid)? * TICK_NS;
        }
        Ok(cpu)
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            kernel_ns: self.kernel_ns.saturating_sub(earlier.kernel_ns),
        }
    }

    /// The part of the kernel's thread, which steps and commits, in percent.
    pub(crate) fn kernel_share(self) -> f64 {
        100.0 * self.kernel_ns as f64 / self.total_ns.max(1) as f64
    }
}

fn ticks_of(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').context("no process state")?.1;
    let field =
        |n: usize| after_name.split_whitespace().nth(n).and_then(|text| text.parse::<u64>().ok());
    Ok(field(11).unwrap_or(0) + field(12).unwrap_or(0))
}

/// Anonymous resident memory in KiB.
pub(crate) fn rss_anon_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .context("the measured process is gone")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no RssAnon")?;
    let number = line.split_whitespace().next().context("no RssAnon")?;
    Ok(number.parse()?)
}

/// Write transactions the journal of a data directory has seen: SQLite counts them in the shared index of its WAL,
/// where they can be read without disturbing the host.
pub(crate) fn commits(data: &Path) -> Option<u32> {
    use std::os::unix::fs::FileExt;
    let index = fs::File::open(data.join("journal.sqlite-shm")).ok()?;
    let mut count = [0; 4];
    index.read_exact_at(&mut count, 8).ok()?;
    Some(u32::from_ne_bytes(count))
}

pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// By nearest rank; not a number if there are no values.
pub(crate) fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    if percent == 50.0 && sorted.len().is_multiple_of(2) {
        return f64::midpoint(sorted[sorted.len() / 2 - 1], sorted[sorted.len() / 2]);
    }
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The least and the most of the rounds.
pub(crate) fn spread(values: &[f64]) -> String {
    format!("{:.3}-{:.3}", percentile(values, 0.0), percentile(values, 100.0))
}

/// A small seeded generator (SplitMix64): the order of subjects differs from round to round and can be had again.
pub(crate) struct SeededRng(u64);

impl SeededRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.next() % (last as u64 + 1)).unwrap_or(0);
            items.swap(last, other);
        }
    }
}

/// The most memory a process had, looked at again and again.
pub(crate) struct Peak {
    kib: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Peak {
    pub(crate) fn of(pid: u32) -> Self {
        let (kib, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, ends) = (Arc::clone(&kib), Arc::clone(&over));
        std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed)
                && let Ok(now) = rss_anon_kib(pid)
            {
                seen.fetch_max(now, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { kib, over }
    }

    pub(crate) fn kib(&self) -> u64 {
        self.kib.load(Ordering::Relaxed)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&values, 99.0), 99.0);
        assert_eq!(percentile(&values, 100.0), 100.0);
        assert_eq!(median(&values), 50.5);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            SeededRng::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }
}
