//! The texts of files that were read before: who looks again reads what changed, and nothing else (CU-2).
//!
//! Promises: a text is handed out only for a file that is, by its identity, the one it was read from. A file is opened and looked at
//! each time, so that what may not be read any more is not. Bounded in bytes.
//! Must not know: what the texts mean.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::confined::{Links, Stat};
use crate::read::Prefix;
use crate::{FileError, Workspace, WorkspacePath};

/// All texts together.
const BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// What an entry counts besides its text: its path, at most, and what is known of the file.
const ENTRY_BYTES: usize = 4_096;

/// A file that was changed so shortly before it was read may be changed again without another time of change: clocks of file systems
/// are coarse.
const SETTLED: Duration = Duration::from_secs(2);

/// A handle: clones share the texts.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownTexts {
    known: Arc<Mutex<TextTable>>,
    /// How many files were read.
    read: Arc<AtomicU64>,
}

/// A file by its path, and how much of it was wanted.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextKey {
    path: PathBuf,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct TextTable {
    texts: HashMap<TextKey, KnownText>,
    bytes: usize,
}

#[derive(Debug)]
struct KnownText {
    /// Of the file when it was read.
    stat: Stat,
    bytes: Arc<[u8]>,
    is_cut: bool,
}

impl KnownTexts {
    pub(super) fn files_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The beginning of a file; `None` if it is not there.
    pub(super) fn read_prefix(
        &self,
        workspace: &Workspace,
        path: &WorkspacePath,
        bytes_max: usize,
    ) -> Result<Option<Prefix>, FileError> {
        let (file, stat) = match workspace.open_file(path, Links::Followed) {
            Ok(opened) => opened,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let key = TextKey { path: workspace.absolute_path(path), bytes_max };
        if let Some(known) = self.find(&key, &stat) {
            return Ok(Some(known));
        }
        let read_at = SystemTime::now();
        let prefix = workspace.read_opened(file, path, bytes_max)?;
        self.read.fetch_add(1, Ordering::Relaxed);
        if is_settled(&stat, read_at) {
            self.keep(key, stat, &prefix);
        }
        Ok(Some(prefix))
    }

    fn find(&self, key: &TextKey, stat: &Stat) -> Option<Prefix> {
        let table = self.known.lock();
        let known = table.texts.get(key)?;
        (known.stat == *stat).then(|| Prefix { bytes: known.bytes.to_vec(), is_cut: known.is_cut })
    }

    fn keep(&self, key: TextKey, stat: Stat, prefix: &Prefix) {
        let mut table = self.known.lock();
        let text = KnownText { stat, bytes: Arc::from(&*prefix.bytes), is_cut: prefix.is_cut };
        table.bytes += ENTRY_BYTES + text.bytes.len();
        if let Some(older) = table.texts.insert(key, text) {
            table.bytes -= ENTRY_BYTES + older.bytes.len();
        }
        if table.bytes > BYTES_MAX {
            // They are read again, those that are still looked for.
            *table = TextTable::default();
        }
    }
}

/// Whether a file was changed long enough before it was read, so that every later change can be told.
fn is_settled(stat: &Stat, read_at: SystemTime) -> bool {
    let (seconds, nanoseconds) = stat.changed;
    let Ok(seconds) = u64::try_from(seconds) else {
        return false; // before 1970: nobody knows
    };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    let age = read_at.duration_since(changed);
    age.is_ok_and(|age| age >= SETTLED)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Confinement;

    fn open(directory: &Path) -> Workspace {
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(directory.as_os_str());
        let uri = wire::file_uri::uri_of(bytes);
        Workspace::open(&[uri], &Confinement::none()).unwrap()
    }

    fn read(texts: &KnownTexts, workspace: &Workspace) -> Option<String> {
        let path = workspace.resolve("a.md").unwrap();
        let prefix = texts.read_prefix(workspace, &path, 100).unwrap()?;
        Some(String::from_utf8(prefix.bytes).unwrap())
    }

    fn wait_until_settled(path: &Path) {
        let changed = std::fs::metadata(path).unwrap();
        let changed = std::os::unix::fs::MetadataExt::ctime(&changed);
        let settled = SystemTime::UNIX_EPOCH
            + Duration::from_secs(u64::try_from(changed).unwrap() + 1)
            + SETTLED;
        while SystemTime::now() < settled {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn cu_2_a_file_is_read_again_when_it_changed() {
        let directory = tempfile::tempdir().unwrap();
        let (texts, workspace) = (KnownTexts::default(), open(directory.path()));
        let path = directory.path().join("a.md");
        assert_eq!(read(&texts, &workspace), None);
        std::fs::write(&path, "one").unwrap();
        // Just now: a change in the same moment could not be told.
        for count in 1..=2 {
            assert_eq!(read(&texts, &workspace).as_deref(), Some("one"));
            assert_eq!(texts.files_read(), count);
        }
        wait_until_settled(&path);
        for _ in 0..3 {
            assert_eq!(read(&texts, &workspace).as_deref(), Some("one"));
            assert_eq!(texts.files_read(), 3);
        }
        // As long as before, and with the time of before: the system's own time tells.
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, "two").unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(before).unwrap();
        drop(file);
        assert_eq!(read(&texts, &workspace).as_deref(), Some("two"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&texts, &workspace), None);
    }

    #[test]
    fn texts_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.md");
        std::fs::write(&path, "one").unwrap();
        let workspace = open(directory.path());
        let (_, stat) =
            workspace.open_file(&workspace.resolve("a.md").unwrap(), Links::Followed).unwrap();
        let texts = KnownTexts::default();
        let prefix = Prefix { bytes: vec![b'x'; BYTES_MAX / 8], is_cut: false };
        for number in 0..100 {
            let key = TextKey { path: PathBuf::from(format!("/{number}")), bytes_max: 1 };
            texts.keep(key, stat, &prefix);
            assert!(texts.known.lock().bytes <= BYTES_MAX);
        }
    }
}
