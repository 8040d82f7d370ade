//! The state of git, read from its files. No command is run for it: one configured in a repository could be anybody's, and
//! nobody has consented to anything yet.

/// Where a repository stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    pub head: GitHead,
    /// `merge`, `rebase`, ... if one was begun and is not finished.
    pub under_way: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitHead {
    Branch(String),
    /// The beginning of the commit's name.
    Detached(String),
}

/// Files in `.git` that tell of something unfinished.
pub(super) const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge/head-name", "rebase"),
    ("rebase-apply/head-name", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_START", "bisect"),
];

impl GitHead {
    /// What `.git/HEAD` says.
    pub(super) fn read(head: &str) -> Option<Self> {
        let head = head.trim();
        if let Some(name) = head.strip_prefix("ref:") {
            let name = name.trim();
            let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
            return (!branch.is_empty()).then(|| Self::Branch(branch.to_owned()));
        }
        let is_name = head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_name.then(|| Self::Detached(head[..12].to_owned()))
    }
}
