//! The processes that the host of a test started, read from `/proc`.

use std::process::Command;

/// Processes whose parent is this one.
pub(crate) fn children() -> Vec<u32> {
    let own = std::process::id();
    let all = all().into_iter();
    let ours = all.filter(|process| process.parent == own);
    ours.map(|process| process.pid).collect()
}

/// Processes of a group that do something.
pub(crate) fn members(group: u32) -> Vec<u32> {
    let all = all().into_iter();
    let of_group = all.filter(|process| process.group == group);
    of_group.map(|process| process.pid).collect()
}

pub(crate) fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

struct Process {
    pid: u32,
    parent: u32,
    group: u32,
}

fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(&entry.path())).collect()
}

/// None of one that is gone, or that nobody has collected.
fn read(path: &std::path::Path) -> Option<Process> {
    let pid = path.file_name()?.to_str()?.parse().ok()?;
    let stat = std::fs::read_to_string(path.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some(Process { pid, parent, group })
}
