//! Where an agent's command is.
//!
//! Promises: a command is found where the host's user put it, never in a directory that is worked in: relative entries of the search
//! path are passed over.
//! Must not know: which agents there are.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program that a command names, if there is one: a name on this search path, or an absolute path.
pub(in super::super) fn find_command(
    command: &str,
    search_path: Option<&OsStr>,
) -> Option<PathBuf> {
    if command.contains('/') {
        let path = Path::new(command);
        return (path.is_absolute() && is_program(path)).then(|| path.to_owned());
    }
    let directories = std::env::split_paths(search_path?);
    let absolute = directories.filter(|directory| directory.is_absolute());
    absolute
        .map(|directory| directory.join(command))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_looked_for_on_the_path_alone() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("agent");
        std::fs::write(&program, "").unwrap();
        let path = std::env::join_paths([Path::new("."), directory.path()]).unwrap();
        assert_eq!(find_command("agent", Some(&path)), None, "not executable");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find_command("agent", Some(&path)), Some(program.clone()));
        assert_eq!(find_command("agent", None), None);
        assert_eq!(find_command("src", Some(OsStr::new("."))), None);
        let absolute = program.to_str().unwrap();
        assert_eq!(find_command(absolute, None), Some(program.clone()));
        assert_eq!(find_command("./agent", Some(&path)), None);
    }
}
