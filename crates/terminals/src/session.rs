//! The processes of a command: all that are in the session its shell leads, whatever groups they made, and those that
//! left it and can still be recognised.
//!
//! Promises: killing kills every process that is in the session, that was given the command's mark, or that descends
//! from one that is or was, those included that are born meanwhile. Out of reach is only a process that did all of
//! these: made a session of its own, cleared its environment, and lost its parents.
//! Must not know: what the processes do.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};
use uuid::Uuid;

use crate::child::WATCHER;
use crate::process_record::ProcessRecord;

/// The variable that holds a command's mark: whatever its processes start has it too.
pub(crate) const MARK: &str = "GREENROOM_CALL";

/// How long a watcher may take to end a command whose host is gone.
const WATCHER_TIME: Duration = Duration::from_secs(5);

/// Passes over all processes: each finds what the one before it missed.
const SWEEPS_MAX: usize = 64;

/// A mark that no other call has.
pub fn new_mark() -> String {
    Uuid::now_v7().to_string()
}

/// Ends the processes that have a mark; how many there were. They are nobody's children any more: their host is gone. What
/// watches over them has its time to do the same.
pub fn end_processes(mark: &str) -> usize {
    assert!(!mark.is_empty(), "an empty mark would be on processes of others");
    let mark = Mark(mark.to_owned());
    let began = Instant::now();
    while mark.find().iter().any(is_watcher) && began.elapsed() < WATCHER_TIME {
        std::thread::sleep(WATCHER_TIME / 100);
    }
    end_marked(&mark)
}

/// Ends the processes that have a mark.
pub fn end_marked(mark: &Mark) -> usize {
    let mut ended = 0;
    for _ in 0..SWEEPS_MAX {
        let processes = mark.find();
        if processes.is_empty() {
            break;
        }
        processes.iter().for_each(kill);
        ended = ended.max(processes.len());
    }
    ended
}

/// Whether a process waits for the end of the host to end the others.
fn is_watcher(process: &Process) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", process.number())).unwrap_or_default();
    memchr::memmem::find(&line, WATCHER.as_bytes()).is_some()
}

/// Identifies the processes of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    /// The variable that holds it.
    pub const VARIABLE: &str = MARK;

    /// A mark that is known by another name than a call's.
    pub fn named(value: String) -> Self {
        assert!(!value.is_empty(), "an empty mark would be on processes of others");
        Self(value)
    }

    /// One that no other has.
    pub fn unique() -> Self {
        Self(new_mark())
    }

    pub fn value(&self) -> &str {
        &self.0
    }

    /// The processes that have it and are alive.
    fn find(&self) -> Vec<Process> {
        let mut processes = list_processes();
        // A host that was started by a command has that command's mark.
        let own = rustix::process::getpid();
        processes
            .retain(|process| process.id != own && process.is_alive() && self.is_on(process.id));
        processes
    }

    /// Whether a process was started with this mark.
    fn is_on(&self, process: Pid) -> bool {
        let environment =
            fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| {
            let value = variable.strip_prefix(MARK.as_bytes());
            value.and_then(|value| value.strip_prefix(b"=")) == Some(self.0.as_bytes())
        })
    }
}

/// Which process a leader is that was not reaped.
pub(crate) fn record_of(leader: Pid) -> ProcessRecord {
    ProcessRecord {
        pid: leader.as_raw_nonzero().get(),
        started: Process::read(leader).map_or(0, |leader| leader.started),
    }
}

/// Whether this very process is alive.
pub(crate) fn is_alive(record: ProcessRecord) -> bool {
    let process = Pid::from_raw(record.pid).and_then(Process::read);
    process.is_some_and(|process| process.is_alive() && process.started == record.started)
}

/// Kills the leader and its group at once, and its other processes as soon as they are found. The leader must not
/// have been reaped, so that its number is still its own.
pub(crate) fn kill_now(leader: Pid, mark: &Mark) {
    // Looked for before any of them dies: the children of a dead process have no known parent.
    let processes = own_processes(leader, mark);
    kill_group(leader);
    processes.iter().for_each(kill);
}

/// Kills all of it. The leader must not have been reaped.
pub fn kill_all(leader: Pid, mark: &Mark) {
    kill_now(leader, mark);
    for _ in 0..SWEEPS_MAX {
        let processes = own_processes(leader, mark);
        if processes.is_empty() {
            return;
        }
        processes.iter().for_each(kill);
    }
}

pub(crate) fn kill_group(leader: Pid) {
    // The leader first: if it has not made its session yet, it never will.
    let _ = rustix::process::kill_process(leader, Signal::KILL);
    let _ = rustix::process::kill_process_group(leader, Signal::KILL);
}

fn kill(process: &Process) {
    // Held by a descriptor and checked again: its number may belong to another process by now.
    let Ok(handle) = rustix::process::pidfd_open(process.id, PidfdFlags::empty()) else {
        // It is gone already.
        return;
    };
    if Process::read(process.id).is_some_and(|now| now.started == process.started) {
        let _ = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// The processes of a command that are alive.
fn own_processes(leader: Pid, mark: &Mark) -> Vec<Process> {
    // None of them is older than the leader: most processes need not be looked at closely.
    let since = Process::read(leader).map_or(0, |leader| leader.started);
    let leader = leader.as_raw_nonzero().get();
    let mut others = list_processes();
    others.retain(|process| process.is_alive() && process.started >= since);
    let is_own = |process: &Process| process.session == leader || mark.is_on(process.id);
    let (mut own, mut others): (Vec<Process>, Vec<Process>) = others.into_iter().partition(is_own);
    let mut known: HashSet<i32> = own.iter().map(Process::number).collect();
    known.insert(leader);
    loop {
        let (children, rest): (Vec<Process>, Vec<Process>) =
            others.into_iter().partition(|process| known.contains(&process.parent));
        if children.is_empty() {
            return own;
        }
        known.extend(children.iter().map(Process::number));
        own.extend(children);
        others = rest;
    }
}

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How often this thread looked through all processes.
#[cfg(test)]
pub(crate) fn looks_of_this_thread() -> usize {
    LOOKS.get()
}

fn list_processes() -> Vec<Process> {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    let Ok(processes) = fs::read_dir("/proc") else {
        // Without `/proc` only the group of the leader can be killed.
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    processes.filter_map(|entry| Process::read(Pid::from_raw(number(entry.ok()?)?)?)).collect()
}

/// A process as it was when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: Pid,
    state: char,
    parent: i32,
    session: i32,
    /// In ticks since the machine was started. With the number it names a process for good.
    started: u64,
}

impl Process {
    fn read(id: Pid) -> Option<Self> {
        let stat = fs::read(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
        Self::parse(id, &stat)
    }

    /// The fields of `/proc/N/stat`; the name before them may hold anything.
    fn parse(id: Pid, stat: &[u8]) -> Option<Self> {
        let name_end = memchr::memrchr(b')', stat)?;
        let mut fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace();
        Some(Self {
            id,
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
            started: fields.nth(15)?.parse().ok()?,
        })
    }

    fn number(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let id = Pid::from_raw(7).unwrap();
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1900 20";
        let seen = Process { id, state: 'S', parent: 1, session: 3, started: 1_900 };
        let named = |name: &[u8]| [b"7 (", name, b") S ", rest.as_bytes()].concat();
        assert_eq!(Process::parse(id, &named(b"a) b")), Some(seen));
        assert_eq!(Process::parse(id, &named(b"\xff")), Some(seen));
        assert_eq!(Process::parse(id, b""), None);
        assert_eq!(Process::parse(id, b"7 (a) S 1 2 3"), None);
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let own = rustix::process::getpid();
        let seen = Process::read(own).unwrap();
        let parent = rustix::process::getppid().unwrap();
        assert_eq!(seen.parent, parent.as_raw_nonzero().get());
        assert!(seen.is_alive() && !Mark::unique().is_on(own));
    }
}
