//! What differs from the last commit, or from another one.
//!
//! Promises: one call of git each. Submodules are compared by the commit they are at and never looked into.
//! Must not know: what files hold.

use std::path::PathBuf;

use super::repository::path_of;
use super::{GitError, Repository};
use crate::Cancellation;

/// Entries that are read of one status.
const ENTRIES_MAX: usize = 50_000;

/// The modes that git has for what is no regular file.
const SUBMODULE: u32 = 0o160000;

/// What differs from the last commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeStatus {
    /// The last commit; absent in a repository without one.
    pub head: Option<String>,
    /// Absent if none is checked out.
    pub branch: Option<String>,
    pub upstream: Option<String>,
    pub ahead: u32,
    pub behind: u32,
    pub entries: Vec<GitEntry>,
}

/// A path that differs from a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitEntry {
    /// Relative to the beginning of the working tree.
    pub path: PathBuf,
    /// Mode and name of what the commit has there.
    pub committed: Option<(u32, String)>,
    /// What is in the index differs from the last commit.
    pub is_staged: bool,
    /// The working tree differs from the index, or is not in it.
    pub is_unstaged: bool,
    pub is_conflict: bool,
    /// The mode of what is there, as git sees it; 0 if nothing is.
    pub mode: u32,
}

impl GitEntry {
    pub fn is_submodule(&self) -> bool {
        let committed = self.committed.as_ref().map(|(mode, _)| *mode);
        self.mode == SUBMODULE || committed == Some(SUBMODULE)
    }
}

impl Repository {
    /// What differs from the last commit in the working directory.
    pub fn status(&self, cancellation: &Cancellation) -> Result<TreeStatus, GitError> {
        let printed = self
            .call(cancellation)
            .args(["status", "--porcelain=v2", "-z", "--branch", "--no-renames"])
            .args(["--untracked-files=all", "--ignore-submodules=dirty"])
            .args(["--", "."])
            .output()?;
        TreeStatus::read(&printed)
    }

    /// What differs between two commits in the working directory.
    pub fn changed_between(
        &self,
        from: &str,
        to: &str,
        cancellation: &Cancellation,
    ) -> Result<Vec<GitEntry>, GitError> {
        let printed = self
            .call(cancellation)
            .args(["diff-tree", "-r", "--raw", "-z", "--no-renames", "--full-index"])
            .args(["--no-abbrev", "--ignore-submodules=dirty", from, to, "--", "."])
            .output()?;
        read_raw(&printed)
    }
}

impl TreeStatus {
    /// Reads `git status --porcelain=v2 -z --branch --no-renames`.
    fn read(printed: &[u8]) -> Result<Self, GitError> {
        let mut status = Self::default();
        let entries = printed.split(|byte| *byte == 0);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            if let Some(header) = entry.strip_prefix(b"# ") {
                status.read_header(&String::from_utf8_lossy(header));
                continue;
            }
            if status.entries.len() == ENTRIES_MAX {
                return Err(too_many());
            }
            status.entries.push(read_entry(entry).ok_or(GitError::Unreadable)?);
        }
        Ok(status)
    }

    fn read_header(&mut self, header: &str) {
        let (name, value) = header.split_once(' ').unwrap_or((header, ""));
        match name {
            "branch.oid" => self.head = (value != "(initial)").then(|| value.to_owned()),
            "branch.head" => self.branch = (value != "(detached)").then(|| value.to_owned()),
            "branch.upstream" => self.upstream = Some(value.to_owned()),
            "branch.ab" => {
                let mut numbers = value
                    .split(' ')
                    .map(|number| number.trim_start_matches(['+', '-']).parse().unwrap_or(0));
                self.ahead = numbers.next().unwrap_or(0);
                self.behind = numbers.next().unwrap_or(0);
            }
            // Git has others, and will have more.
            _ => {}
        }
    }
}

fn too_many() -> GitError {
    GitError::Refused(format!(
        "more than {ENTRIES_MAX} files differ from the last commit; they are not shown"
    ))
}

fn read_entry(entry: &[u8]) -> Option<GitEntry> {
    let rest = entry.get(2..)?;
    let mode = |text: &[u8]| u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok();
    let (fields, is_conflict) = match entry.first()? {
        b'?' => {
            return Some(GitEntry {
                path: path_of(rest),
                committed: None,
                is_staged: false,
                is_unstaged: true,
                is_conflict: false,
                mode: 0o100644,
            });
        }
        b'1' => (8, false),
        b'u' => (10, true),
        _ => return None,
    };
    let fields: Vec<&[u8]> = rest.splitn(fields, |byte| *byte == b' ').collect();
    let path = path_of(fields.last()?);
    let states = fields.first()?;
    if is_conflict {
        // XY sub m1 m2 m3 mW h1 h2 h3 path: what our side has is the second.
        let committed = (mode(fields.get(3)?)?, text(fields.get(7)?)?);
        return Some(GitEntry {
            path,
            committed: Some(committed).filter(|(mode, _)| *mode != 0),
            is_staged: false,
            is_unstaged: true,
            is_conflict: true,
            mode: mode(fields.get(5)?)?,
        });
    }
    // XY sub mH mI mW hH hI path
    let committed = (mode(fields.get(2)?)?, text(fields.get(5)?)?);
    Some(GitEntry {
        path,
        committed: Some(committed).filter(|(mode, _)| *mode != 0),
        is_staged: *states.first()? != b'.',
        is_unstaged: *states.get(1)? != b'.',
        is_conflict: false,
        mode: mode(fields.get(4)?)?,
    })
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Reads what `--raw -z` printed.
fn read_raw(printed: &[u8]) -> Result<Vec<GitEntry>, GitError> {
    let mut entries = Vec::new();
    let mut fields = printed.split(|byte| *byte == 0);
    while let Some(facts) = fields.next().filter(|facts| !facts.is_empty()) {
        let path = fields.next().ok_or(GitError::Unreadable)?;
        if entries.len() == ENTRIES_MAX {
            return Err(too_many());
        }
        entries.push(read_raw_entry(facts, path).ok_or(GitError::Unreadable)?);
    }
    Ok(entries)
}

/// `:old-mode new-mode old-name new-name state`
fn read_raw_entry(facts: &[u8], path: &[u8]) -> Option<GitEntry> {
    let mut facts = std::str::from_utf8(facts).ok()?.strip_prefix(':')?.split(' ');
    let mut mode = || u32::from_str_radix(facts.next()?, 8).ok();
    let (old, new) = (mode()?, mode()?);
    let name = facts.next()?.to_owned();
    Some(GitEntry {
        path: path_of(path),
        committed: Some((old, name)).filter(|(mode, _)| *mode != 0),
        is_staged: false,
        is_unstaged: true,
        is_conflict: false,
        mode: new,
    })
}
