//! A repository that a working directory lies in, and how git is called in it.
//!
//! Promises: a repository is one only if the directory really lies in its working tree and its data in a directory that may be
//! worked in: settings and files of a repository cannot make git look elsewhere.
//! Must not know: why it is looked at.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::child::GitCall;
use super::config::{self, GitSettings};
use super::{GitError, TreeStatus};
use crate::{Cancellation, Confinement};

/// Files in the repository's data that exist while an operation is unfinished.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_START", "bisect"),
];

/// Branches that are offered at most.
const BRANCHES_MAX: usize = 1_000;

/// A repository, as far as it concerns one working directory.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The working directory, without links.
    pub(super) directory: PathBuf,
    /// Of the working tree.
    pub(super) top: PathBuf,
    pub(super) git_dir: PathBuf,
    /// Differs from `git_dir` in a worktree.
    pub(super) common_dir: PathBuf,
    pub(super) settings: GitSettings,
    /// What it was found within: other working trees of it are held to the same.
    pub(super) confinement: Confinement,
}

/// Where a repository stands, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositorySummary {
    /// Absent if no branch is checked out.
    pub branch: Option<String>,
    pub upstream: Option<String>,
    pub ahead: u32,
    pub behind: u32,
    /// Files that differ from the last commit.
    pub uncommitted: usize,
}

impl Repository {
    /// The repository that a directory lies in; `None` if it lies in none that may be used. Blocks.
    pub fn find(
        directory: &Path,
        confinement: &Confinement,
        cancellation: &Cancellation,
    ) -> Result<Option<Self>, GitError> {
        let Ok(directory) = std::fs::canonicalize(directory) else {
            return Ok(None); // it is not there: nor is a repository
        };
        let root = confinement.root_of(&directory);
        let ceiling = root.and_then(Path::parent).unwrap_or(Path::new(""));
        if !has_git_above(&directory, ceiling) {
            return Ok(None); // git need not be started to say so
        }
        let fixed = config::fixed_settings();
        let found = GitCall::new(&directory, &fixed, cancellation)
            .env("GIT_CEILING_DIRECTORIES", ceiling)
            .args(["rev-parse", "--path-format=absolute", "--show-toplevel"])
            .args(["--git-dir", "--git-common-dir"])
            .run()?;
        if !found.status.success() {
            return Ok(None);
        }
        let paths: Vec<PathBuf> = found
            .printed
            .split(|byte| *byte == b'\n')
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
            .collect();
        let Ok([top, git_dir, common_dir]) = <[PathBuf; 3]>::try_from(paths) else {
            return Ok(None); // no working tree, or a path with line ends
        };
        let real = |path: &Path| std::fs::canonicalize(path);
        let (Ok(top), Ok(git_dir), Ok(common_dir)) =
            (real(&top), real(&git_dir), real(&common_dir))
        else {
            return Ok(None);
        };
        let are_allowed =
            [&top, &git_dir, &common_dir].into_iter().all(|path| confinement.allows(path));
        if !directory.starts_with(&top) || !are_allowed {
            return Ok(None);
        }
        let mut repository = Self {
            directory,
            top,
            git_dir,
            common_dir,
            settings: GitSettings { safe: fixed, converts_lines: false },
            confinement: confinement.clone(),
        };
        let listed = repository.call(cancellation).args(["config", "--list", "-z"]).output()?;
        let settings = GitSettings::read(&listed);
        repository.settings = settings.ok_or_else(|| {
            GitError::Refused("the repository configures too many drivers".to_owned())
        })?;
        Ok(Some(repository))
    }

    /// A call that runs nothing of the repository and takes no lock that it does not need.
    pub(super) fn call<'a>(&self, cancellation: &'a Cancellation) -> GitCall<'a> {
        let call = GitCall::new(&self.directory, &self.settings.safe, cancellation);
        self.in_repository(call).env("GIT_OPTIONAL_LOCKS", "0")
    }

    /// A call that runs what the repository wants run then.
    pub(super) fn call_with_hooks<'a>(&self, cancellation: &'a Cancellation) -> GitCall<'a> {
        self.in_repository(GitCall::new(&self.directory, &config::user_settings(), cancellation))
    }

    fn in_repository<'a>(&self, call: GitCall<'a>) -> GitCall<'a> {
        call.env("GIT_DIR", &self.git_dir).env("GIT_WORK_TREE", &self.top)
    }

    /// The working directory that it is looked at from, without links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The beginning of the working tree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// An operation that was begun and is not finished.
    pub fn unfinished(&self) -> Option<&'static str> {
        let mut known = UNFINISHED.iter();
        let found = known.find(|(name, _)| self.git_dir.join(name).symlink_metadata().is_ok());
        found.map(|(_, operation)| *operation)
    }

    /// An error while an operation is unfinished: what is there then is not the user's, nor the agent's.
    pub(super) fn check_finished(&self) -> Result<(), GitError> {
        match self.unfinished() {
            Some(operation) => Err(GitError::Unfinished { operation }),
            None => Ok(()),
        }
    }

    pub fn summary(&self, status: &TreeStatus) -> RepositorySummary {
        RepositorySummary {
            branch: status.branch.clone(),
            upstream: status.upstream.clone(),
            ahead: status.ahead,
            behind: status.behind,
            uncommitted: status.entries.len(),
        }
    }

    /// Branches whose names contain a text, the one that was worked on last first.
    pub fn branches(
        &self,
        containing: &str,
        cancellation: &Cancellation,
    ) -> Result<Vec<String>, GitError> {
        let printed = self
            .call(cancellation)
            .args(["for-each-ref", "--sort=-committerdate"])
            .args(["--format=%(refname:short)", "refs/heads"])
            .output()?;
        let printed = String::from_utf8_lossy(&printed);
        let wanted = containing.to_lowercase();
        let names = printed.lines().filter(|name| name.to_lowercase().contains(&wanted));
        Ok(names.take(BRANCHES_MAX).map(str::to_owned).collect())
    }

    /// The repository's default branch, if it can be told.
    pub fn default_branch(&self, cancellation: &Cancellation) -> Result<Option<String>, GitError> {
        let remote = self
            .call(cancellation)
            .args(["symbolic-ref", "--quiet", "--short"])
            .arg_path("refs/remotes/origin/HEAD")
            .run()?;
        let remote = String::from_utf8_lossy(&remote.printed);
        let mut candidates = Vec::new();
        if let Some(name) = remote.trim().strip_prefix("origin/") {
            candidates.push(name.to_owned());
            candidates.push(format!("origin/{name}"));
        }
        candidates.extend(["main", "master", "trunk"].map(str::to_owned));
        for candidate in candidates {
            if self.commit_of(&candidate, cancellation)?.is_some() {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    /// The branch that what is checked out was made from: as a worktree was told, else the default branch.
    pub fn base_branch(&self, cancellation: &Cancellation) -> Result<Option<String>, GitError> {
        let branch = self.checked_out(cancellation)?;
        let noted = self
            .call(cancellation)
            .args(["config", "--get", &format!("branch.{branch}.greenroomBase")])
            .run()?;
        let noted = String::from_utf8_lossy(&noted.printed).trim().to_owned();
        if !noted.is_empty() && self.commit_of(&noted, cancellation)?.is_some() {
            return Ok(Some(noted));
        }
        self.default_branch(cancellation)
    }

    /// The commit that a branch or `HEAD` is at; `None` if there is none.
    pub fn commit_of(
        &self,
        name: &str,
        cancellation: &Cancellation,
    ) -> Result<Option<String>, GitError> {
        let found = self
            .call(cancellation)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg_path(format!("{name}^{{commit}}"))
            .run()?;
        let commit = String::from_utf8_lossy(&found.printed).trim().to_owned();
        Ok((found.status.success() && is_commit(&commit)).then_some(commit))
    }

    /// The last commit that a commit has in common with a branch.
    pub fn merge_base(
        &self,
        commit: &str,
        base: &str,
        cancellation: &Cancellation,
    ) -> Result<Option<String>, GitError> {
        let Some(base) = self.commit_of(base, cancellation)? else { return Ok(None) };
        let found = self.call(cancellation).args(["merge-base", commit, &base]).run()?;
        let commit = String::from_utf8_lossy(&found.printed).trim().to_owned();
        Ok((found.status.success() && is_commit(&commit)).then_some(commit))
    }
}

impl<'a> GitCall<'a> {
    pub(super) fn arg_path(self, path: impl AsRef<OsStr>) -> Self {
        self.args([path])
    }
}

/// Whether a text names an object.
pub(super) fn is_commit(text: &str) -> bool {
    (text.len() == 40 || text.len() == 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A path as git prints it, relative to the working tree's beginning.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Whether this directory or one above it, below the ceiling, has an entry `.git`: no working tree is without.
fn has_git_above(directory: &Path, ceiling: &Path) -> bool {
    let within = directory.ancestors().take_while(|above| *above != ceiling);
    let mut entries = within.map(|above| above.join(".git"));
    entries.any(|entry| entry.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_is_asked_only_where_a_directory_has_an_entry_of_it_above() {
        let ceiling = tempfile::tempdir().unwrap();
        let nested = ceiling.path().join("top/nested");
        std::fs::create_dir_all(&nested).unwrap();
        assert!(!has_git_above(&nested, ceiling.path()));
        // A worktree has a file of this name, and its directories lie below it.
        std::fs::write(ceiling.path().join("top/.git"), b"gitdir: elsewhere").unwrap();
        assert!(has_git_above(&nested, ceiling.path()));
        assert!(has_git_above(&ceiling.path().join("top"), ceiling.path()));
        // What lies at the ceiling or above is not looked at.
        std::fs::remove_file(ceiling.path().join("top/.git")).unwrap();
        std::fs::create_dir(ceiling.path().join(".git")).unwrap();
        assert!(!has_git_above(&nested, ceiling.path()));
    }
}
