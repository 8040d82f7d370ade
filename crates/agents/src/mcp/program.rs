//! The program that a command runs, and what distinguishes it from another one.
//!
//! Promises: found as it is when it is started. The digest is that of a plain file of bounded size; anything else is an error.
//! All functions block.
//! Must not know: who is asked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::declaration::DirectoryProgram;
use super::error::McpError;

/// Larger programs of a directory are not started: they are read whenever a turn begins.
const PROGRAM_BYTES_MAX: u64 = 256 << 20;

/// The file that a command means: looked for like a shell does, from where it would run.
pub(super) fn find_program(
    command: &str,
    env: &BTreeMap<String, String>,
    directory: &Path,
) -> Option<PathBuf> {
    if command.contains('/') {
        let program = directory.join(command);
        return is_program(&program).then_some(program);
    }
    let declared = env.get("PATH").map(OsString::from);
    find_on_path(command, declared, directory)
}

/// What somebody else must start for a command to run in a directory: a program, and arguments before its own. Whoever starts it
/// does so in `home`.
pub fn start_program(
    command: &str,
    env: &BTreeMap<String, String>,
    directory: &Path,
    home: &Path,
) -> Result<(PathBuf, Vec<String>), String> {
    let missing = || {
        let command = command.to_owned();
        McpError::CommandMissing { command }.to_string()
    };
    let program = find_program(command, env, directory).ok_or_else(missing)?;
    if directory == home {
        return Ok((program, Vec::new()));
    }
    let text = |path: &Path| path.to_str().map(str::to_owned);
    let (Some(program), Some(directory)) = (text(&program), text(directory)) else {
        return Err("its directory has a name that is no text".to_owned());
    };
    let changer = find_system_program("env").ok_or("there is no `env` to change its directory")?;
    Ok((changer, vec!["-C".to_owned(), directory, program]))
}

/// The same for a program of the system: what a declaration says of the PATH does not count.
pub(super) fn find_system_program(command: &str) -> Option<PathBuf> {
    find_on_path(command, None, Path::new("/"))
}

fn find_on_path(command: &str, path: Option<OsString>, directory: &Path) -> Option<PathBuf> {
    let path = path
        .or_else(|| std::env::var_os("PATH"))
        .filter(|_| !command.is_empty())
        .unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    directories.find_map(|on_path| {
        let program = directory.join(on_path).join(command);
        is_program(&program).then_some(program)
    })
}

fn is_program(path: &Path) -> bool {
    let facts = path.metadata();
    facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// A program as it is now, if it lies in a directory or is reached through it: what a link there means can change like a file.
/// `directory` has no links in it.
pub(super) fn look_inside(
    program: &Path,
    directory: &Path,
) -> Result<Option<DirectoryProgram>, String> {
    let real = program.canonicalize();
    real.map_err(|error| format!("its program cannot be looked at: {error}"))?;
    let is_inside = program.ancestors().any(|part| {
        let real = part.canonicalize();
        part.starts_with(directory) || real.is_ok_and(|real| real.starts_with(directory))
    });
    if !is_inside {
        return Ok(None);
    }
    // As it is started: by its own name, through links. Only `.` goes from the path, which means nothing.
    let path: PathBuf = program.components().collect();
    let digest = digest_of(&path)?;
    Ok(Some(DirectoryProgram { path, digest }))
}

/// The digest of a program.
pub(super) fn digest_of(program: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("its program cannot be read: {error}");
    // A pipe would be waited for when it is opened.
    let facts = program.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err("its program is not a file".to_owned());
    }
    let file = File::open(program).map_err(unreadable)?;
    let mut hasher = HashWriter(Sha256::new());
    let read = std::io::copy(&mut file.take(PROGRAM_BYTES_MAX + 1), &mut hasher);
    if read.map_err(unreadable)? > PROGRAM_BYTES_MAX {
        return Err(format!("its program has more than {} MiB", PROGRAM_BYTES_MAX >> 20));
    }
    Ok(hex(&hasher.0.finalize()))
}

/// Hashes what is written to it.
struct HashWriter(Sha256);

impl Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
