//! A file of the host's data directory that people may edit too: read again when it changed, changed in one piece.
//!
//! Promises: what was changed is on the disk when that is said. Two who change it do so one after the other. A file that is
//! a link is not used: it could lead into a workspace. Errors name the file. All functions block.
//! Must not know: what is in the file.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::OFlags;

/// A larger file is another one.
const FILE_BYTES_MAX: u64 = 1 << 20;
const MODE: u32 = 0o600;

/// A file, and what was read from it last.
#[derive(Debug)]
pub(crate) struct DataFile<T> {
    path: PathBuf,
    name: &'static str,
    parse: fn(&str) -> Result<T, String>,
    last: Mutex<Option<LastRead<T>>>,
}

#[derive(Debug)]
struct LastRead<T> {
    fingerprint: Fingerprint,
    content: Result<Arc<T>, String>,
}

/// Differs between two states of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fingerprint {
    Missing,
    File { device: u64, inode: u64, bytes: u64, changed: (i64, i64) },
}

impl<T> DataFile<T> {
    /// The file of this name in a data directory, whether it is there or not.
    pub(crate) fn new(
        data: &Path,
        name: &'static str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Self {
        Self { path: data.join(name), name, parse, last: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says now; a file that is not there is an empty one. An error says what is wrong with it.
    pub(crate) fn load(&self) -> Result<Arc<T>, String> {
        let mut last = self.last.lock();
        let fingerprint = self.fingerprint()?;
        if let Some(last) = last.as_ref().filter(|last| last.fingerprint == fingerprint) {
            return last.content.clone();
        }
        let content = self.read().and_then(|text| {
            let content = (self.parse)(&text).map_err(|reason| self.error(&reason))?;
            Ok(Arc::new(content))
        });
        *last = Some(LastRead { fingerprint, content: content.clone() });
        content
    }

    /// Changes the text; none is no change. Whether anything was to be changed; it is on the disk afterwards.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&str) -> Result<Option<String>, String>,
    ) -> Result<bool, String> {
        let failed = |error: std::io::Error| self.error(&format!("it cannot be written: {error}"));
        let _lock = lock(&self.path).map_err(failed)?;
        let text = self.read()?;
        let changed = change(&text).map_err(|reason| self.error(&reason))?;
        let Some(changed) = changed else { return Ok(false) };
        if changed.len() as u64 > FILE_BYTES_MAX {
            return Err(self.error(&format!(
                "it would be larger than {FILE_BYTES_MAX} bytes: remove entries first"
            )));
        }
        if changed != text {
            replace(&self.path, &changed).map_err(failed)?;
        }
        Ok(true)
    }

    fn fingerprint(&self) -> Result<Fingerprint, String> {
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

    fn read(&self) -> Result<String, String> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&self.path);
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
        if text.len() as u64 > FILE_BYTES_MAX {
            Err(self.error(&format!("it has more than {FILE_BYTES_MAX} bytes")))
        } else {
            Ok(text)
        }
    }

    fn error(&self, reason: &str) -> String {
        format!("{}: {reason}", self.name)
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
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(staged)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn hidden_neighbour(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{ending}"))
}

/// What is wrong with a text, and in which line.
pub(crate) fn at_line(text: &str, span: Option<std::ops::Range<usize>>, message: &str) -> String {
    let before = span.and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message.to_owned(),
    }
}
