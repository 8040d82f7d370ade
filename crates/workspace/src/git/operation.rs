//! What users have git do: stage, commit, take back, merge.
//!
//! Promises: nothing is begun while an operation is unfinished or there are conflicts. A merge that does not work out leaves the
//! working tree as it was.
//! Must not know: who asked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::child::{GitCall, WRITE_TIME};
use super::objects::Conversion;
use super::repository::path_of;
use super::{GitError, Repository};
use crate::Cancellation;

/// Paths that are named in an error.
const NAMED_MAX: usize = 10;

/// What a commit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitReport {
    pub commit: String,
    /// What git and the hooks said.
    pub said: String,
}

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeReport {
    /// The branch that was merged into, and the commit it is at now.
    pub base: String,
    pub commit: String,
}

impl Repository {
    /// Puts paths, relative to the working tree's beginning, into the index; all that differs in the working directory if none is
    /// named.
    pub fn stage(
        &self,
        paths: Option<&[PathBuf]>,
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        self.check_finished()?;
        let status = self.status(cancellation)?;
        let entries = status.entries.iter();
        let paths: Vec<PathBuf> = match paths {
            Some(paths) => paths.to_vec(),
            None => entries.map(|entry| entry.path.clone()).collect(),
        };
        if paths.is_empty() {
            return Ok(());
        }
        self.check_filters(&paths, cancellation)?;
        let call = self.call(cancellation);
        self.with_paths(call, &["add", "--all"], &paths).output()?;
        Ok(())
    }

    /// Commits what is staged, or all that differs in the working directory if nothing is. Runs the repository's hooks and filters.
    pub fn commit(
        &self,
        message: &str,
        cancellation: &Cancellation,
    ) -> Result<CommitReport, GitError> {
        self.check_finished()?;
        let status = self.status(cancellation)?;
        let conflicts: Vec<String> = status
            .entries
            .iter()
            .filter(|entry| entry.is_conflict)
            .take(NAMED_MAX)
            .map(|entry| entry.path.display().to_string())
            .collect();
        if !conflicts.is_empty() {
            return Err(GitError::Conflict { paths: conflicts });
        }
        if status.entries.is_empty() {
            return Err(GitError::Refused("there is nothing to commit".to_owned()));
        }
        if !status.entries.iter().any(|entry| entry.is_staged) {
            self.call_with_hooks(cancellation)
                .time(WRITE_TIME)
                .args(["add", "--all", "--", "."])
                .output()?;
        }
        let committed = self
            .call_with_hooks(cancellation)
            .time(WRITE_TIME)
            .args(["commit", "--quiet", "--cleanup=strip", "--file=-"])
            .input(message.as_bytes().to_vec())
            .run()?;
        if !committed.status.success() {
            return Err(GitError::of_output(&committed.said));
        }
        let commit = self.commit_of("HEAD", cancellation)?;
        Ok(CommitReport {
            commit: commit.ok_or(GitError::Unreadable)?,
            said: String::from_utf8_lossy(&committed.said).trim().to_owned(),
        })
    }

    /// Makes tracked files what the last commit has of them, in the index too.
    pub fn take_back(
        &self,
        paths: &[PathBuf],
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        self.check_finished()?;
        self.check_filters(paths, cancellation)?;
        let call = self.call(cancellation).time(WRITE_TIME);
        let restore = ["restore", "--source=HEAD", "--staged", "--worktree"];
        self.with_paths(call, &restore, paths).output()?;
        Ok(())
    }

    /// Takes new files out of the index; they stay where they are.
    pub fn unstage(&self, paths: &[PathBuf], cancellation: &Cancellation) -> Result<(), GitError> {
        self.check_finished()?;
        self.remove_from_index(paths, cancellation)
    }

    pub(super) fn remove_from_index(
        &self,
        paths: &[PathBuf],
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        let call = self.call(cancellation);
        // Also what was changed since it was staged: the file is not touched.
        let remove = ["rm", "--cached", "--force", "--quiet", "--ignore-unmatch"];
        self.with_paths(call, &remove, paths).output()?;
        Ok(())
    }

    /// Merges what is checked out here into a branch. That branch is moved without being checked out; if it is checked out
    /// somewhere, that working tree must have nothing uncommitted, and follows. On a conflict nothing is changed.
    pub fn merge_into(
        &self,
        base: &str,
        cancellation: &Cancellation,
    ) -> Result<MergeReport, GitError> {
        self.check_finished()?;
        let head = self
            .commit_of("HEAD", cancellation)?
            .ok_or_else(|| GitError::Refused("there is no commit yet".to_owned()))?;
        let branch = format!("refs/heads/{base}");
        let old = self
            .commit_of(&branch, cancellation)?
            .ok_or_else(|| GitError::Refused(format!("there is no branch {base} here")))?;
        let elsewhere = self.checked_out_at(&branch, cancellation)?;
        if elsewhere.as_deref() == Some(&self.top) {
            return Err(GitError::Refused(format!(
                "{base} is checked out here; there is nothing to merge"
            )));
        }
        let commit = self.merged_commit(&old, &head, base, cancellation)?;
        match elsewhere {
            Some(top) => self.follow(&top, &commit, cancellation)?,
            None => {
                self.call(cancellation)
                    .args(["update-ref", "-m", "merge", &branch, &commit, &old])
                    .output()?;
            }
        }
        let base = base.to_owned();
        Ok(MergeReport { base, commit })
    }

    /// The commit that a branch is moved to: ours if it only goes on from there, else a merge of both, made without a working tree.
    fn merged_commit(
        &self,
        old: &str,
        head: &str,
        base: &str,
        cancellation: &Cancellation,
    ) -> Result<String, GitError> {
        let goes_on =
            self.call(cancellation).args(["merge-base", "--is-ancestor", old, head]).run()?;
        if goes_on.status.success() {
            return Ok(head.to_owned());
        }
        let merged = self
            .call(cancellation)
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"])
            .args([old, head])
            .run()?;
        let mut fields = merged.printed.split(|byte| *byte == 0);
        let tree = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        match merged.status.code() {
            Some(0) => {}
            Some(1) => {
                let paths = fields
                    .filter(|path| !path.is_empty())
                    .take(NAMED_MAX)
                    .map(|path| path_of(path).display().to_string());
                return Err(GitError::Conflict { paths: paths.collect() });
            }
            _ => return Err(GitError::of_output(&merged.said)),
        }
        let name = self.status(cancellation)?.branch.unwrap_or_else(|| head.to_owned());
        let made = self
            .call(cancellation)
            .args(["commit-tree", tree.trim(), "-p", old, "-p", head, "-m"])
            .args([format!("Merge {name} into {base}")])
            .output()?;
        Ok(String::from_utf8_lossy(&made).trim().to_owned())
    }

    /// Lets the working tree that has a branch checked out follow it.
    fn follow(
        &self,
        top: &Path,
        commit: &str,
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        let other = Repository::find(top, &self.confinement, cancellation)?;
        // Where it lies is read from a file of the repository, which may name any directory.
        let other = other.filter(|other| self.is_worktree_at(other, top)).ok_or_else(|| {
            GitError::Refused(format!(
                "{} is not a working tree of this repository that may be worked in; nothing was done",
                top.display()
            ))
        })?;
        other.check_finished()?;
        other
            .call(cancellation)
            .time(WRITE_TIME)
            // Ignored files that are in the way are the user's, too, and what is uncommitted is not put aside.
            .args(["merge", "--ff-only", "--no-overwrite-ignore"])
            .args(["--no-autostash", "--quiet", commit])
            .output()
            .map(drop)
            .map_err(|error| match error {
                GitError::Failed(said) => GitError::Refused(format!(
                    "{} has changes that are in the way; commit or take them back there first ({said})",
                    top.display()
                )),
                other => other,
            })
    }

    /// An error if git would have to run a filter of the repository on one of these.
    fn check_filters(
        &self,
        paths: &[PathBuf],
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let conversions = self.conversions(&paths, cancellation)?;
        let filtered = conversions.into_iter().find_map(|(path, conversion)| match conversion {
            Conversion::Filter(filter) => Some((path, filter)),
            Conversion::Built => None,
        });
        match filtered {
            Some((path, filter)) => {
                Err(GitError::Filtered { path: path.display().to_string(), filter })
            }
            None => Ok(()),
        }
    }

    /// A call on paths as they are, relative to the beginning of the working tree.
    fn with_paths<'a>(
        &self,
        call: GitCall<'a>,
        command: &[&str],
        paths: &[PathBuf],
    ) -> GitCall<'a> {
        let mut list: Vec<u8> = Vec::new();
        for path in paths {
            list.extend_from_slice(OsString::from(path).as_encoded_bytes());
            list.push(0);
        }
        call.args(["--literal-pathspecs", "-C"])
            .arg_path(&self.top)
            .args(command)
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .input(list)
    }
}
