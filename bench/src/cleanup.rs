//! `bench cleanup`: outlives a run that is killed. It is given the hosts that run, and when its standard input ends before
//! it is killed itself, it ends those that still do and removes the scratch directory. (The other processes of a run
//! end with their standard input.)

use std::path::{Path, PathBuf};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CleanupOptions {
    #[arg(long)]
    pub scratch: PathBuf,
}

pub(crate) fn run(options: &CleanupOptions) -> Result<()> {
    let lines = std::io::stdin().lines().map_while(|line| line.ok());
    let pids: Vec<i32> = lines.filter_map(|line| line.parse().ok()).collect();
    for pid in pids.into_iter().filter(|pid| is_ours(*pid, &options.scratch)) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may end by itself at this very moment.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    if options.scratch.exists() {
        std::fs::remove_dir_all(&options.scratch)?;
    }
    Ok(())
}

/// A process id may have been given to another process since: ours names the scratch directory in its command line.
fn is_ours(pid: i32, scratch: &Path) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains(&scratch.display().to_string())
}
