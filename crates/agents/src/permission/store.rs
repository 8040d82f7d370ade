//! `rules.toml` on the disk: read again when it changed, changed in one piece.
//!
//! Promises: what was recorded is on the disk when that is said. Two who change it do so one after the other. A file that is
//! a link is not used: it could lead into a workspace. All functions block.
//! Must not know: what rules mean.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;

use super::file::{self, RULES_FILE, RulesError};
use super::rule_set::{PermissionRule, RuleSet};

/// A larger file is another one.
const FILE_BYTES_MAX: u64 = 1 << 20;
const MODE: u32 = 0o600;

/// The rules of a host.
#[derive(Debug)]
pub struct RuleStore {
    path: PathBuf,
    last: Mutex<Option<LastRead>>,
}

#[derive(Debug, Clone)]
struct LastRead {
    fingerprint: Fingerprint,
    rules: Result<Arc<RuleSet>, RulesError>,
}

/// Differs between two states of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fingerprint {
    Missing,
    File {
        device: u64,
        inode: u64,
        bytes: u64,
        changed: (i64, i64),
    },
}

impl RuleStore {
    /// The rules in a data directory, whether there are any or not.
    pub fn new(data: &Path) -> Self {
        Self {
            path: data.join(RULES_FILE),
            last: Mutex::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rules as they are now. An error says what is wrong with the file, and then nothing is granted.
    pub fn load(&self) -> Result<Arc<RuleSet>, RulesError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fingerprint = self.fingerprint()?;
        if let Some(last) = last.as_ref().filter(|last| last.fingerprint == fingerprint) {
            return last.rules.clone();
        }
        let rules = self.read().and_then(|text| {
            let rules = file::parse(&text).map_err(|RulesError(reason)| self.error(&reason))?;
            Ok(Arc::new(rules))
        });
        *last = Some(LastRead {
            fingerprint,
            rules: rules.clone(),
        });
        rules
    }

    /// Records a rule; it is on the disk afterwards.
    pub fn add(&self, rule: &PermissionRule) -> Result<(), RulesError> {
        self.change(|text| file::add_rule(text, rule).map(Some))
            .map(drop)
    }

    /// Whether there was such a rule.
    pub fn remove(&self, rule: &PermissionRule) -> Result<bool, RulesError> {
        self.change(|text| file::remove_rule(text, rule))
    }

    /// Forgets the rules of a session that is gone: another one may come to have its name. Whether it had any.
    pub fn remove_session(&self, session: &str) -> Result<bool, RulesError> {
        self.change(|text| file::remove_session(text, session))
    }

    /// Whether anything was to be changed.
    fn change(
        &self,
        change: impl FnOnce(&str) -> Result<Option<String>, RulesError>,
    ) -> Result<bool, RulesError> {
        let failed = |error: std::io::Error| self.error(&format!("it cannot be written: {error}"));
        let _lock = lock(&self.path).map_err(failed)?;
        let text = self.read()?;
        let changed = change(&text).map_err(|RulesError(reason)| self.error(&reason))?;
        let Some(changed) = changed else {
            return Ok(false);
        };
        if changed.len() as u64 > FILE_BYTES_MAX {
            return Err(self.error(&format!(
                "it would be larger than {FILE_BYTES_MAX} bytes: remove rules first"
            )));
        }
        if changed != text {
            replace(&self.path, &changed).map_err(failed)?;
        }
        Ok(true)
    }

    fn fingerprint(&self) -> Result<Fingerprint, RulesError> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => Ok(Fingerprint::File {
                device: metadata.dev(),
                inode: metadata.ino(),
                bytes: metadata.len(),
                // The time of change cannot be set back by who writes the file.
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Fingerprint::Missing),
            Err(error) => Err(self.error(&format!("it cannot be read: {error}"))),
        }
    }

    fn read(&self) -> Result<String, RulesError> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(_) if self.path.is_symlink() => {
                return Err(self.error("it is a link; the file itself must be there"));
            }
            Err(error) => return Err(self.error(&format!("it cannot be read: {error}"))),
        };
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if !is_file {
            return Err(self.error("it is not a file"));
        }
        let mut text = String::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|error| self.error(&format!("it cannot be read: {error}")))?;
        match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(self.error(&format!("it has more than {FILE_BYTES_MAX} bytes"))),
            false => Ok(text),
        }
    }

    fn error(&self, reason: &str) -> RulesError {
        RulesError(format!("{RULES_FILE}: {reason}"))
    }
}

/// Held while the file is changed. A file of its own: the other is replaced by every change.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(MODE)
        .open(hidden_neighbour(path, "lock"))?;
    file.lock()?;
    Ok(file)
}

/// Replaces the file as a whole.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let staged = hidden_neighbour(path, &format!("{}.new", std::process::id()));
    let written = write_staged(&staged, text).and_then(|()| fs::rename(&staged, path));
    if written.is_err() {
        // It may not be there at all.
        let _ = fs::remove_file(&staged);
        return written;
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

fn write_staged(staged: &Path, text: &str) -> std::io::Result<()> {
    // One of a process that died is in the way; the lock is ours.
    match fs::remove_file(staged) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(staged)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn hidden_neighbour(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}
