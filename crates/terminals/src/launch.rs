//! What is started in a terminal, and how.
//!
//! Promises: it leads a session of its own whose terminal this is. A command of an agent gets its mark and its watcher as
//! behind a pipe; a shell of a person gets neither: what that leaves running on purpose stays.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use workspace::CommandDirectory;

use crate::child::{CommandHandle, ShellCommand};
use crate::integration::{IntegrationFiles, ShellKind};
use crate::pty::PtyPair;
use crate::size::TerminalSize;

/// Makes the terminal that of its session: the first one that a leader without a terminal opens.
const PRELUDE: &str = r#"name=$1; shift; exec 0<>"$name" 1>&0 2>&0; unset name; exec "$@""#;

/// What is started in a terminal.
pub struct TerminalLaunch {
    pub program: Program,
    pub directory: StartDirectory,
    pub variables: Vec<(OsString, OsString)>,
    pub size: TerminalSize,
}

pub enum Program {
    /// A shell for a person.
    Shell {
        path: PathBuf,
        /// Says which commands its user gives it, if that can be found out.
        integration: Option<IntegrationFiles>,
    },
    /// A command for `bash -c`, that is killed with all it started after this time.
    Command { text: String, timeout: Option<Duration> },
}

/// Where it is started.
pub enum StartDirectory {
    Path(PathBuf),
    /// One that is held open: what is there now, whatever its name leads to later.
    Open(CommandDirectory),
}

impl TerminalLaunch {
    /// What marks the escape sequences of the shell's integration as its own.
    pub(crate) fn spawn(
        self,
        pty: &PtyPair,
        handle: &CommandHandle,
        nonce: &str,
    ) -> io::Result<Child> {
        match (self.program, self.directory) {
            (Program::Command { text, timeout }, StartDirectory::Open(directory)) => {
                let command = ShellCommand { text, directory, variables: self.variables, timeout };
                command.spawn_in(handle.mark(), pty)
            }
            (Program::Command { .. }, StartDirectory::Path(_)) => Err(io::Error::other(
                "a command of an agent is started in a directory that is held open",
            )),
            (Program::Shell { path, integration }, directory) => {
                let mut shell = Command::new("setsid");
                shell
                    .args(["sh", "-c", PRELUDE, "sh", &pty.name])
                    .arg(&path)
                    .env_clear()
                    .envs(self.variables)
                    .env("SHELL", &path);
                if let Some(files) = integration {
                    files.add_to(&mut shell, ShellKind::of(&path), nonce);
                }
                match &directory {
                    StartDirectory::Path(path) => shell.current_dir(path).env("PWD", path),
                    StartDirectory::Open(open) => {
                        shell.current_dir(open.path()).env("PWD", &open.name)
                    }
                };
                shell
                    .stdin(Stdio::null())
                    .stdout(pty.end.try_clone()?)
                    .stderr(pty.end.try_clone()?)
                    .spawn()
            }
        }
    }

    /// After which time it is killed.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        match &self.program {
            Program::Shell { .. } => None,
            Program::Command { timeout, .. } => *timeout,
        }
    }

    /// Whether what it leaves running ends with it.
    pub(crate) fn ends_with_leader(&self) -> bool {
        matches!(self.program, Program::Command { .. })
    }
}
