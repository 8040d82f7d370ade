//! Worktrees: a branch of its own for a session, checked out beside the user's (G-54).
//!
//! Promises: a worktree that has something uncommitted or commits of its own is never removed. Making one runs nothing of the
//! repository.
//! Must not know: sessions.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::child::WRITE_TIME;
use super::repository::path_of;
use super::{GitError, Repository};
use crate::{Cancellation, Confinement};

/// Where worktrees lie in a repository, and what is excluded from its status for it.
const PLACE: &str = ".greenroom/worktrees";
const EXCLUDED: &str = "/.greenroom/worktrees/";

/// The beginning of the names of branches that are made.
const BRANCH_PREFIX: &str = "greenroom/";

/// A worktree that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorktree {
    /// The directory in it that stands for the one that was asked for.
    pub directory: PathBuf,
    pub top: PathBuf,
    pub branch: String,
    /// The branch it was made from, or a commit if none was checked out.
    pub base: String,
}

/// What became of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeEnd {
    Removed,
    /// Why it is still there.
    Kept(String),
}

impl Repository {
    /// Makes a worktree with a branch, from a branch or what is checked out. `place` is where worktrees of all repositories
    /// lie, if not in each.
    pub fn add_worktree(
        &self,
        name: &str,
        base: Option<&str>,
        place: Option<&Path>,
        cancellation: &Cancellation,
    ) -> Result<NewWorktree, GitError> {
        let main = self.main_top();
        let (base, commit) = self.find_base(base, cancellation)?;
        // Below this one, a link would have the worktree made elsewhere, where nobody allowed it.
        let (given, top) = match place {
            Some(place) => {
                let repository = main.file_name().unwrap_or_default();
                (place, place.join(repository).join(name))
            }
            None => (main, main.join(PLACE).join(name)),
        };
        refuse_links(given, &top)?;
        if place.is_none() {
            self.exclude_worktrees()?;
        }
        let branch = format!("{BRANCH_PREFIX}{name}");
        let made = std::fs::create_dir_all(top.parent().unwrap_or(main));
        made.map_err(|error| GitError::Failed(error.to_string()))?;
        // No file is written yet: a worktree may have settings of its own (`includeIf`), which are not known before it is there.
        self.call(cancellation)
            .time(WRITE_TIME)
            .args(["worktree", "add", "--quiet", "--no-checkout"])
            .args(["-b", &branch])
            .arg_path(&top)
            .args([&commit])
            .output()?;
        let inner = self.directory.strip_prefix(&self.top).unwrap_or(Path::new(""));
        let directory = if inner.as_os_str().is_empty() { top.clone() } else { top.join(inner) };
        let worktree = NewWorktree { directory, top, branch, base };
        match self.fill_worktree(&worktree, cancellation) {
            Ok(()) => Ok(worktree),
            Err(error) => {
                self.undo_worktree(&worktree);
                Err(error)
            }
        }
    }

    /// The branch that a worktree is made from, or a commit if none is checked out and none was named; and its commit.
    fn find_base(
        &self,
        named: Option<&str>,
        cancellation: &Cancellation,
    ) -> Result<(String, String), GitError> {
        let Some(name) = named else {
            let base = self.checked_out(cancellation)?;
            let commit =
                self.commit_of(&base, cancellation)?.ok_or_else(|| missing_branch(&base))?;
            return Ok((base, commit));
        };
        if !is_branch_name(name) {
            return Err(GitError::Refused(format!("{name:?} is not a valid branch name")));
        }
        // Whole names, so that nothing else is meant: a tag, a file, an expression.
        for kind in ["refs/heads", "refs/remotes"] {
            let commit = self.commit_of(&format!("{kind}/{name}"), cancellation)?;
            if let Some(commit) = commit {
                return Ok((name.to_owned(), commit));
            }
        }
        // A chat that moves from a worktree without a branch names the commit.
        let commit = self.commit_of(name, cancellation)?;
        let commit = commit.filter(|commit| commit == name).ok_or_else(|| missing_branch(name))?;
        Ok((name.to_owned(), commit))
    }

    /// Checks out the files of a worktree that was just made, with what its own settings name switched off.
    fn fill_worktree(
        &self,
        worktree: &NewWorktree,
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        let own = Self::find(&worktree.top, &self.confinement, cancellation)?;
        let own = own.filter(|own| self.is_worktree_at(own, &worktree.top)).ok_or_else(|| {
            let top = worktree.top.display();
            GitError::Refused(format!("{top} may not be worked in"))
        })?;
        own.call(cancellation)
            .time(WRITE_TIME)
            .args(["reset", "--hard", "--quiet", "--no-recurse-submodules"])
            .output()?;
        // What was committed may be a link to anywhere.
        refuse_links(&worktree.top, &worktree.directory)?;
        let note = format!("branch.{}.greenroomBase", worktree.branch);
        self.call(cancellation).args(["config", "--local", &note, &worktree.base]).output()?;
        let made = std::fs::create_dir_all(&worktree.directory);
        made.map_err(|error| GitError::Failed(error.to_string()))
    }

    /// Removes a worktree that could not be filled: nobody has worked in it.
    fn undo_worktree(&self, worktree: &NewWorktree) {
        // Also if the caller is gone. The error that led here is the one to tell, so these are not.
        let never = Cancellation::default();
        let removed = self
            .call(&never)
            .time(WRITE_TIME)
            .args(["worktree", "remove", "--force", "--force"])
            .arg_path(&worktree.top)
            .output();
        if removed.is_ok() {
            let branch = ["branch", "--quiet", "-D", "--", &worktree.branch];
            let _ = self.call(&never).args(branch).output();
        }
    }

    /// Whether what was found is a working tree of this repository, and begins at a path.
    pub(super) fn is_worktree_at(&self, found: &Self, path: &Path) -> bool {
        let is_there = std::fs::canonicalize(path).is_ok_and(|path| path == found.top);
        is_there && found.common_dir == self.common_dir
    }

    /// Removes a worktree and its branch if nothing in it would be lost.
    pub fn remove_worktree(
        worktree: &NewWorktree,
        cancellation: &Cancellation,
    ) -> Result<WorktreeEnd, GitError> {
        let Some(repository) = Self::of_worktree(worktree, cancellation)? else {
            return Ok(WorktreeEnd::Removed); // somebody did it already
        };
        if let Some(why) = repository.why_kept(worktree, cancellation)? {
            return Ok(WorktreeEnd::Kept(why));
        }
        repository.remove_unchanged(worktree, cancellation)?;
        Ok(WorktreeEnd::Removed)
    }

    /// Why a worktree would be kept if its session ended now, for people; `None` if nothing would be lost.
    pub fn why_worktree_is_kept(
        worktree: &NewWorktree,
        cancellation: &Cancellation,
    ) -> Result<Option<String>, GitError> {
        match Self::of_worktree(worktree, cancellation)? {
            Some(repository) => repository.why_kept(worktree, cancellation),
            None => Ok(None),
        }
    }

    /// What is checked out in a worktree, if it is still there.
    fn of_worktree(
        worktree: &NewWorktree,
        cancellation: &Cancellation,
    ) -> Result<Option<Self>, GitError> {
        let found = Self::find(&worktree.top, &Confinement::none(), cancellation)?;
        Ok(found.filter(|found| found.top == worktree.top))
    }

    fn why_kept(
        &self,
        worktree: &NewWorktree,
        cancellation: &Cancellation,
    ) -> Result<Option<String>, GitError> {
        let repository = self;
        let keep = |why: &str| {
            let top = worktree.top.display();
            Ok(Some(format!("the worktree {top} is kept: {why}")))
        };
        if let Some(operation) = repository.unfinished() {
            return keep(&format!("it is in the middle of a {operation}"));
        }
        let status = repository.status(cancellation)?;
        if !status.entries.is_empty() {
            return keep(&format!("{} files are not committed", status.entries.len()));
        }
        match status.branch.as_deref() {
            Some(branch) if branch == worktree.branch => {}
            Some(_) => return keep("another branch is checked out in it"),
            None => return keep("no branch is checked out in it"),
        }
        // The branch goes with it: its commits count, wherever the worktree is by now.
        let own = format!("refs/heads/{}", worktree.branch);
        for name in ["HEAD", &own] {
            let is_merged = repository
                .call(cancellation)
                .args(["merge-base", "--is-ancestor", name, "--end-of-options"])
                .args([&worktree.base])
                .run()?;
            if !is_merged.status.success() {
                let (branch, base) = (&worktree.branch, &worktree.base);
                return keep(&format!("{branch} has commits that {base} does not have"));
            }
        }
        Ok(None)
    }

    fn remove_unchanged(
        &self,
        worktree: &NewWorktree,
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        let mut main = Self::find(self.main_top(), &Confinement::none(), cancellation)?
            .ok_or(GitError::Unreadable)?;
        // Git looks at the files of the worktree once more, by its settings.
        let own_settings = self.settings.safe.iter().cloned();
        main.settings.safe.extend(own_settings);
        main.call(cancellation)
            .time(WRITE_TIME)
            .args(["worktree", "remove"])
            .arg_path(&worktree.top)
            .output()?;
        main.call(cancellation)
            .args(["branch", "--quiet", "-D", "--", &worktree.branch])
            .output()?;
        Ok(())
    }

    /// The working tree that has a branch checked out.
    pub(super) fn checked_out_at(
        &self,
        branch: &str,
        cancellation: &Cancellation,
    ) -> Result<Option<PathBuf>, GitError> {
        let printed =
            self.call(cancellation).args(["worktree", "list", "--porcelain", "-z"]).output()?;
        let wanted = format!("branch {branch}");
        let mut top = None;
        for field in printed.split(|byte| *byte == 0) {
            if let Some(path) = field.strip_prefix(b"worktree ") {
                top = Some(path_of(path));
            } else if field == wanted.as_bytes() {
                return Ok(top);
            }
        }
        Ok(None)
    }

    /// The branch that is checked out, or the commit.
    pub fn checked_out(&self, cancellation: &Cancellation) -> Result<String, GitError> {
        let branch =
            self.call(cancellation).args(["symbolic-ref", "--quiet", "--short", "HEAD"]).run()?;
        if branch.status.success() {
            return Ok(String::from_utf8_lossy(&branch.printed).trim().to_owned());
        }
        let commit = self.commit_of("HEAD", cancellation)?;
        commit.ok_or_else(|| GitError::Refused("there is no commit yet".to_owned()))
    }

    /// The working tree that the repository's data lies in, also if this is another one.
    fn main_top(&self) -> &Path {
        if self.common_dir == self.git_dir {
            &self.top
        } else {
            self.common_dir.parent().unwrap_or(&self.top)
        }
    }

    /// Keeps worktrees out of the repository's own status.
    fn exclude_worktrees(&self) -> Result<(), GitError> {
        let failed = |error: std::io::Error| GitError::Failed(format!("info/exclude: {error}"));
        let info = self.common_dir.join("info");
        let file = info.join("exclude");
        refuse_link(&info)?;
        refuse_link(&file)?;
        let mut listed = Vec::new();
        match open_unlinked(OpenOptions::new().read(true), &file) {
            Ok(mut file) => {
                file.read_to_end(&mut listed).map_err(failed)?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let mut lines = listed.split(|byte| *byte == b'\n');
        if lines.any(|line| line == EXCLUDED.as_bytes()) {
            return Ok(());
        }
        std::fs::create_dir_all(&info).map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true);
        let mut file = open_unlinked(options, &file).map_err(failed)?;
        let begin = match listed.last() {
            None | Some(b'\n') => "",
            Some(_) => "\n",
        };
        file.write_all(format!("{begin}{EXCLUDED}\n").as_bytes()).map_err(failed)
    }
}

fn missing_branch(name: &str) -> GitError {
    GitError::Refused(format!("there is no branch {name} with a commit here"))
}

/// Whether git would take a name for a branch: none that reads as an option, leads out of a directory, or is an expression.
fn is_branch_name(name: &str) -> bool {
    const FORBIDDEN: [char; 9] = [' ', '~', '^', ':', '?', '*', '[', '\\', '\x7f'];
    let is_forbidden = |c: char| c.is_control() || FORBIDDEN.contains(&c);
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock") && part != "@"
    };
    !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(is_forbidden)
        && name.split('/').all(is_part)
}

/// An error if a path, or one between it and a directory above it, is a symbolic link.
fn refuse_links(above: &Path, path: &Path) -> Result<(), GitError> {
    let mut below = path.ancestors().take_while(|part| *part != above);
    below.try_for_each(refuse_link)
}

/// An error if a path is a symbolic link.
fn refuse_link(path: &Path) -> Result<(), GitError> {
    let found = path.symlink_metadata();
    if found.is_ok_and(|found| found.file_type().is_symlink()) {
        Err(GitError::Refused(format!(
            "{} is a symbolic link; worktrees are not made through one",
            path.display()
        )))
    } else {
        Ok(())
    }
}

/// Opens a regular file, and nothing that a link leads to.
fn open_unlinked(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    // Without waiting: a pipe would have nobody at its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(std::io::Error::other)?;
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::other("it is not a file"))
    }
}

/// A name for a worktree and its branch: what git and every file system take.
pub fn worktree_name(wanted: &str) -> String {
    let name: String = wanted
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'0'..=b'9' => char::from(byte),
            b'A'..=b'Z' => char::from(byte.to_ascii_lowercase()),
            _ => '-',
        })
        .take(40)
        .collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}
