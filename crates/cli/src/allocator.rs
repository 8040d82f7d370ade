//! Settings of the C library's allocator, which reads them from the environment when a process starts, and nowhere else.
//!
//! Promises: the process id, the arguments and the open files stay; what the user set is left alone; where it cannot be done
//! the host runs without. Commands that agents run see none of it: their environment has allowed names only (G-51).
//! Must not know: what the process is going to do.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// glibc keeps what was freed: each thread's arena up to 64 MiB, and after a first large block other large ones too. With few
/// arenas, and blocks from this size on taken from and given back to the system one by one, a host that took large messages
/// is small again a moment later (ADR 0029).
const SETTINGS: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "2097152"),
    ("MALLOC_TRIM_THRESHOLD_", "8388608"),
];

/// Starts this program again in this process, with the settings; returns if it has them, or has others.
pub(crate) fn apply_settings() {
    let is_set = |(name, _): &(&str, &str)| std::env::var_os(name).is_some();
    if !cfg!(target_env = "gnu") || SETTINGS.iter().any(is_set) {
        return; // another C library has other settings, and a user's own count
    }
    let Ok(program) = std::env::current_exe() else {
        return; // the program was removed while it started: it works all the same
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let error = command.args(arguments).envs(SETTINGS).exec();
    eprintln!(
        "greenroom: large messages will take more memory, the allocator cannot be set up: {error}"
    );
}
