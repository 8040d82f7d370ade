//! Shell integration: small scripts of ours that a shell reads in addition to its user's own, and the escape sequences by which
//! they say where a command begins and ends.
//!
//! Promises: no file of the user is changed; the user's own start files are read as ever. A sequence counts only with the
//! nonce of its terminal, so what a program prints cannot pretend to be a command.

mod parser;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use parser::{IntegrationMark, IntegrationParser, OutputPiece};

const BASH: &str = include_str!("greenroom.bash");
const ZSH_ENV: &str = include_str!("greenroom.zshenv");
const ZSH_RC: &str = include_str!("greenroom.zsh");
const FISH: &str = include_str!("greenroom.fish");

/// Holds the nonce until the script has read it; then it is not exported any more.
const NONCE: &str = "GREENROOM_SHELL_NONCE";

/// The shells that there is a script for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellKind {
    Bash,
    Zsh,
    Fish,
    Other,
}

impl ShellKind {
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some("bash") => Self::Bash,
            Some("zsh") => Self::Zsh,
            Some("fish") => Self::Fish,
            Some(_) | None => Self::Other,
        }
    }
}

/// The directory that the scripts lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationFiles {
    directory: PathBuf,
}

impl IntegrationFiles {
    /// Writes the scripts of this version into a directory of the host.
    pub fn install(directory: &Path) -> io::Result<Self> {
        let zsh = directory.join("zsh");
        std::fs::create_dir_all(&zsh)?;
        for (path, text) in [
            (directory.join("greenroom.bash"), BASH),
            (zsh.join(".zshenv"), ZSH_ENV),
            (zsh.join(".zshrc"), ZSH_RC),
            (directory.join("greenroom.fish"), FISH),
        ] {
            // Shells of another host on the same directory may read it now.
            let new = path.with_extension("new");
            std::fs::write(&new, text)?;
            std::fs::rename(&new, &path)?;
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// Lets a shell read its script.
    pub(crate) fn add_to(&self, shell: &mut Command, kind: ShellKind, nonce: &str) {
        match kind {
            ShellKind::Bash => {
                shell.arg("--rcfile").arg(self.directory.join("greenroom.bash"));
                shell.arg("-i");
            }
            ShellKind::Zsh => {
                let own = std::env::var_os("ZDOTDIR").unwrap_or_default();
                shell.env("GREENROOM_ZDOTDIR", own);
                shell.env("ZDOTDIR", self.directory.join("zsh"));
                shell.arg("-i");
            }
            ShellKind::Fish => {
                let script = self.directory.join("greenroom.fish");
                let quoted = script.to_string_lossy().replace('\'', "\\'");
                shell.arg("--init-command").arg(format!("source '{quoted}'"));
                shell.arg("-i");
            }
            ShellKind::Other => return, // it works as it is, without command detection
        }
        shell.env(NONCE, nonce);
    }
}
