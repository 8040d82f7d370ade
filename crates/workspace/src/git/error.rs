//! Why git could not do something.
//!
//! Promises: every error reads as a plain sentence. It may hold what git said, which is shown as text and never logged.

/// How much of what git says is handed on, in characters.
const SAID_CHARS_MAX: usize = 600;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed, or cannot be started: {0}")]
    NotStarted(String),
    #[error(
        "git did not finish within {seconds} s and was stopped; it may wait for an answer or for another git"
    )]
    TimedOut { seconds: u64 },
    #[error("there is too much to show: git printed more than {mib} MiB")]
    TooMuch { mib: usize },
    #[error("the repository is in the middle of a {operation}; finish or abort it first")]
    Unfinished { operation: &'static str },
    #[error(
        "another git works in this repository, or one was killed there: `index.lock` exists; nothing was done"
    )]
    Locked,
    #[error("there are conflicts in {}; nothing was done", .paths.join(", "))]
    Conflict { paths: Vec<String> },
    #[error(
        "{path} goes through the filter `{filter}` of this repository, which is not run here; nothing was done"
    )]
    Filtered { path: String, filter: String },
    #[error("{0}")]
    Refused(String),
    #[error("git: {0}")]
    Failed(String),
    #[error("the output of git cannot be read")]
    Unreadable,
    /// The caller is gone: this is not read.
    #[error("cancelled")]
    Cancelled,
}

impl GitError {
    /// What git printed before it failed.
    pub(super) fn of_output(said: &[u8]) -> Self {
        let said = String::from_utf8_lossy(said);
        if said.contains("index.lock") {
            return Self::Locked;
        }
        let lines = said.lines().filter(|line| !line.starts_with("hint:"));
        let said: String =
            lines.collect::<Vec<_>>().join("\n").trim().chars().take(SAID_CHARS_MAX).collect();
        if said.is_empty() {
            Self::Failed("it failed and did not say why".to_owned())
        } else {
            Self::Failed(said)
        }
    }
}
