//! Where the agent works: directory, system, date, git.

use std::borrow::Cow;
use std::fmt::Write;

use workspace::{GitHead, GitState};

use super::one_line;

/// Directories that are listed; a session rarely has more.
const DIRECTORIES_MAX: usize = 8;
const PATH_BYTES_MAX: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvironmentContext {
    /// Paths, the default one first.
    pub directories: Vec<String>,
    pub os: String,
    /// `2026-03-01`.
    pub date: String,
    pub git: Option<GitState>,
}

impl EnvironmentContext {
    pub(super) fn text(&self) -> Cow<'static, str> {
        let mut text = String::with_capacity(256);
        let listed = self.directories.iter().take(DIRECTORIES_MAX);
        for (index, directory) in listed.enumerate() {
            text.push_str(match index {
                0 => "Working directory: ",
                _ => "Also: ",
            });
            text.push_str(&one_line(directory, PATH_BYTES_MAX));
            text.push('\n');
        }
        let unlisted = self.directories.len().saturating_sub(DIRECTORIES_MAX);
        if unlisted > 0 {
            // Writing into a string does not fail.
            let _ = writeln!(text, "Also {unlisted} more.");
        }
        if self.directories.len() > 1 {
            text.push_str(
                "Commands begin in the first directory, and relative paths mean it; files in the others have absolute paths.\n",
            );
        }
        if self.directories.is_empty() {
            text.push_str("There is no working directory.\n");
        }
        let _ = writeln!(text, "Operating system: {}", one_line(&self.os, 64));
        let _ = write!(text, "Date: {}", one_line(&self.date, 32));
        if let Some(git) = &self.git {
            match &git.head {
                GitHead::Branch(branch) => {
                    let _ = write!(text, "\nGit branch: {}", one_line(branch, 256));
                }
                GitHead::Detached(commit) => {
                    let _ = write!(text, "\nGit: detached at {}", one_line(commit, 16));
                }
            }
            if let Some(operation) = git.operation {
                let _ = write!(text, "\nGit: a {operation} is in progress");
            }
        }
        Cow::Owned(text)
    }
}
