//! The state of git, read from its files. No command is run for it: one configured in a repository could be anybody's, and
//! nothing has been consented to yet.

use crate::Workspace;
use crate::path::WorkspacePath;

/// What `.git/HEAD` may take.
const HEAD_BYTES_MAX: usize = 1_024;

/// Characters of a commit's name that are reported.
const COMMIT_CHARS: usize = 12;

/// Where a repository stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitState {
    pub head: GitHead,
    /// `merge`, `rebase`, ... if one was started and is not finished.
    pub operation: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitHead {
    Branch(String),
    /// The beginning of the commit's name.
    Detached(String),
}

/// Files in `.git` that exist while an operation is unfinished.
const OPERATIONS: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge/head-name", "rebase"),
    ("rebase-apply/head-name", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_START", "bisect"),
];

impl GitState {
    /// Of the repository whose `.git` is in this directory; `None` if there is none, or none that can be read.
    pub(crate) fn read_in(workspace: &Workspace, directory: &WorkspacePath) -> Option<Self> {
        let git = directory.join(".git");
        let head = workspace.read_prefix(&git.join("HEAD"), HEAD_BYTES_MAX).ok()??;
        let head = GitHead::parse(std::str::from_utf8(&head.bytes).ok()?)?;
        let exists = |name: &str| matches!(workspace.read_prefix(&git.join(name), 1), Ok(Some(_)));
        let mut operations = OPERATIONS.iter();
        let operation = operations.find(|(name, _)| exists(name));
        Some(Self { head, operation: operation.map(|(_, operation)| *operation) })
    }
}

impl GitHead {
    /// Parses `.git/HEAD`.
    fn parse(head: &str) -> Option<Self> {
        let head = head.trim();
        if let Some(name) = head.strip_prefix("ref:") {
            let name = name.trim();
            let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
            return (!branch.is_empty()).then(|| Self::Branch(branch.to_owned()));
        }
        let is_commit = head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_commit.then(|| Self::Detached(head[..COMMIT_CHARS].to_owned()))
    }
}
