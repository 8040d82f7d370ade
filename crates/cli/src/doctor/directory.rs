//! The doctor's checks on disk: the data directory and what is in it.
//!
//! Must not know: hosts that run elsewhere.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use client::endpoint;
use host::journal::SqliteReader;

use super::Finding;
use crate::format::format_bytes;

/// Below this a host soon cannot record anything (G-15).
const DISK_FREE_FAIL: u64 = 64 << 20;
const DISK_FREE_WARN: u64 = 1 << 30;

pub(super) fn check(data: &Path) -> Vec<Finding> {
    let metadata = match fs::metadata(data) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let message =
                format!("{} is not there yet; `greenroom serve` creates it", data.display());
            return vec![Finding::warn("data directory", message)];
        }
        Err(error) => {
            let message = format!("{} cannot be read: {error}; check who owns it", data.display());
            return vec![Finding::fail("data directory", message)];
        }
    };
    vec![
        check_directory(data, &metadata),
        check_lock(data),
        check_journal(data),
        check_private_file("token file", &data.join("token"), "`greenroom serve` creates one"),
        check_private_file("devices", &data.join("devices.json"), "none is paired"),
        check_disk(data),
    ]
}

fn check_directory(data: &Path, metadata: &Metadata) -> Finding {
    const WHAT: &str = "data directory";
    let path = data.display();
    if !metadata.is_dir() {
        return Finding::fail(
            WHAT,
            format!("{path} is not a directory; choose another with --data"),
        );
    }
    // Asks the system instead of trying: the doctor changes nothing.
    let access =
        rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if rustix::fs::access(data, access).is_err() {
        return Finding::fail(
            WHAT,
            format!("{path} cannot be written; give it to the user the host runs as"),
        );
    }
    match mode(metadata) {
        open if open & 0o077 != 0 => Finding::warn(
            WHAT,
            format!("{path} can be entered by others (mode {open:o}); run `chmod 700 {path}`"),
        ),
        _ => Finding::ok(WHAT, path.to_string()),
    }
}

/// Which host has the directory.
fn check_lock(data: &Path) -> Finding {
    const WHAT: &str = "lock";
    match endpoint::is_held(data) {
        Ok(false) if endpoint::is_held_by_earlier_version(data) => Finding::warn(
            WHAT,
            "held by a host of an earlier version; stop it and start it again with this one",
        ),
        Ok(false) => Finding::ok(WHAT, "free: no host serves this directory"),
        Ok(true) => match fs::read_to_string(data.join(endpoint::LOCK_FILE)) {
            Ok(pid) if !pid.trim().is_empty() => {
                Finding::ok(WHAT, format!("held by the host with pid {}", pid.trim()))
            }
            Ok(_) => Finding::ok(WHAT, "held by a host that is starting"),
            Err(error) => Finding::warn(
                WHAT,
                format!(
                    "held by a host, but the file `lock` does not name it: {error}. No second host can start; restart \
                     the host to have the file again"
                ),
            ),
        },
        Err(error) => Finding::fail(
            WHAT,
            format!(
                "cannot be tried: {error}; choose a directory on another file system with --data"
            ),
        ),
    }
}

fn check_journal(data: &Path) -> Finding {
    const WHAT: &str = "journal";
    if !data.join("journal.sqlite").exists() {
        return Finding::ok(WHAT, "none yet; the first start creates it");
    }
    match SqliteReader::open(data) {
        Ok(_) => Finding::ok(WHAT, "can be read by this version"),
        Err(error) => Finding::fail(
            WHAT,
            format!(
                "{error}; keep the file as it is and choose another directory with --data until that is solved"
            ),
        ),
    }
}

/// A file that only its owner may read.
pub(super) fn check_private_file(what: &'static str, path: &Path, if_missing: &str) -> Finding {
    match fs::metadata(path) {
        Ok(metadata) if mode(&metadata) & 0o077 != 0 => {
            let (mode, path) = (mode(&metadata), path.display());
            Finding::fail(
                what,
                format!("{path} can be read by others (mode {mode:o}); run `chmod 600 {path}`"),
            )
        }
        Ok(_) => Finding::ok(what, format!("{} is readable by its owner only", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(what, format!("none; {if_missing}"))
        }
        Err(error) => Finding::fail(what, format!("{} cannot be read: {error}", path.display())),
    }
}

fn check_disk(data: &Path) -> Finding {
    const WHAT: &str = "disk space";
    let free = match rustix::fs::statvfs(data) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Finding::warn(WHAT, format!("unknown: {error}")),
    };
    let message = format!("{} free", format_bytes(free));
    match free {
        free if free < DISK_FREE_FAIL => {
            Finding::fail(WHAT, format!("{message}: too little to record turns; free some space"))
        }
        free if free < DISK_FREE_WARN => {
            Finding::warn(WHAT, format!("{message}; free some space soon"))
        }
        _ => Finding::ok(WHAT, message),
    }
}

fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & 0o777
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckLevel;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn level(findings: &[Finding], what: &str) -> Option<CheckLevel> {
        findings.iter().find(|finding| finding.what == what).map(|finding| finding.level)
    }

    #[test]
    fn a_directory_that_is_not_there_is_no_failure() {
        let data = tempfile::tempdir().unwrap();
        let findings = check(&data.path().join("none"));
        assert_eq!(level(&findings, "data directory"), Some(CheckLevel::Warn));
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn open_permissions_of_directory_and_token_are_reported() {
        let data = tempfile::tempdir().unwrap();
        let token = data.path().join("token");
        fs::write(&token, "t").unwrap();
        set_mode(data.path(), 0o755);
        set_mode(&token, 0o644);
        let findings = check(data.path());
        assert_eq!(level(&findings, "data directory"), Some(CheckLevel::Warn));
        assert_eq!(level(&findings, "token file"), Some(CheckLevel::Fail));
        set_mode(data.path(), 0o700);
        set_mode(&token, 0o600);
        let findings = check(data.path());
        assert_eq!(level(&findings, "data directory"), Some(CheckLevel::Ok));
        assert_eq!(level(&findings, "token file"), Some(CheckLevel::Ok));
    }

    #[test]
    fn a_held_lock_names_its_holder() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("lock");
        fs::write(&file, "77\n").unwrap();
        assert!(check_lock(data.path()).message.contains("free"));
        let earlier = fs::File::open(&file).unwrap();
        earlier.lock().unwrap();
        let message = check_lock(data.path()).message;
        assert!(message.contains("earlier version"), "{message}");
        drop(earlier);
        let held = fs::File::open(data.path()).unwrap();
        held.lock().unwrap();
        assert!(check_lock(data.path()).message.contains("pid 77"));
        fs::remove_file(&file).unwrap();
        let finding = check_lock(data.path());
        assert_eq!(finding.level, CheckLevel::Warn);
        assert!(finding.message.contains("restart the host"));
    }

    #[test]
    fn a_journal_that_is_none_fails() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(check_journal(data.path()).level, CheckLevel::Ok);
        fs::write(data.path().join("journal.sqlite"), "not a database, and long enough to be sure")
            .unwrap();
        assert_eq!(check_journal(data.path()).level, CheckLevel::Fail);
    }
}
