//! The processes of a command: all that are in the session its shell leads, whatever groups they made.
//!
//! Promises: killing kills every process that has not left the session, those included that are born meanwhile. A
//! process that made a session of its own (a daemon, `setsid`) is out of reach, and is left alone.
//! Must not know: what the processes do.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal};

/// Passes over all processes: each finds what the one before it missed.
const SWEEPS_MAX: usize = 64;

/// Kills what can be killed at once: the leader and its group. The leader must not have been reaped, so that its
/// number is still its own.
pub(super) fn kill_group(leader: Pid) {
    // The leader first: if it has not made its session yet, it never will.
    let _ = rustix::process::kill_process(leader, Signal::KILL);
    let _ = rustix::process::kill_process_group(leader, Signal::KILL);
}

/// Kills the rest of a session. Its leader must not have been reaped.
pub(super) fn kill_session(leader: Pid) {
    kill_group(leader);
    for _ in 0..SWEEPS_MAX {
        let members = members(leader);
        if members.is_empty() {
            return;
        }
        for member in members {
            // Held by a descriptor and looked at again: its number may belong to somebody else by now.
            let Ok(process) = rustix::process::pidfd_open(member, PidfdFlags::empty()) else {
                continue;
            };
            if is_alive_in(member, leader) {
                let _ = rustix::process::pidfd_send_signal(&process, Signal::KILL);
            }
        }
    }
}

fn members(leader: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    processes
        .filter_map(|entry| Pid::from_raw(number(entry.ok()?)?))
        .filter(|process| is_alive_in(*process, leader))
        .collect()
}

/// Whether a process is in the session and not dead yet.
fn is_alive_in(process: Pid, leader: Pid) -> bool {
    let stat = fs::read(format!("/proc/{}/stat", process.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    let Some((state, session)) = state_and_session(&stat) else {
        return false;
    };
    session == leader.as_raw_nonzero().get() && !matches!(state, "Z" | "X")
}

/// The fields of `/proc/N/stat`; the name before them may hold anything.
fn state_and_session(stat: &[u8]) -> Option<(&str, i32)> {
    let name_end = memchr::memrchr(b')', stat)?;
    let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let session = fields.nth(2)?.parse().ok()?;
    Some((state, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let stat = b"7 (a) b) S 1 2 3 4 5";
        assert_eq!(state_and_session(stat), Some(("S", 3)));
        assert_eq!(state_and_session(b"7 (\xff) Z 1 2 3"), Some(("Z", 3)));
        assert_eq!(state_and_session(b""), None);
    }
}
