//! What was sent in earlier runs, in a file that all chats of a user share.
//!
//! Promises: only its owner can read it. Chats that run at the same time lose no entry of each other: every entry is added under a
//! lock, and so is the file cut when it is full. An entry that cannot be read is left out, the others stay.
//! Must not know: keys, terminals.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A file larger than this is cut to the newest half of it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// An entry longer than this is not worth going back to.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// The file, one JSON string a line, the newest last.
#[derive(Debug, Clone)]
pub(crate) struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    pub(crate) fn in_directory(data: &Path) -> Self {
        Self {
            path: data.join("chat-history.jsonl"),
        }
    }

    /// Everything in it, the newest last; nothing if there is no file yet.
    pub(crate) fn read(&self) -> io::Result<Vec<String>> {
        let text = match std::fs::read(&self.path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(entries.collect())
    }

    pub(crate) fn append(&self, entry: &str) -> io::Result<()> {
        if entry.trim().is_empty() || entry.len() > ENTRY_BYTES_MAX {
            return Ok(()); // nothing that anybody would search for
        }
        let line = serde_json::Value::from(entry).to_string() + "\n";
        let lock = open_private(&self.path.with_extension("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut file = open_private(&self.path)?;
        file.write_all(line.as_bytes())?;
        if file.metadata()?.len() > FILE_BYTES_MAX {
            self.cut()?;
        }
        Ok(())
    }

    /// Replaces the file by the newest half of it. The lock is held.
    fn cut(&self) -> io::Result<()> {
        let mut text = String::new();
        File::open(&self.path)?.read_to_string(&mut text)?;
        let half = text.len() / 2;
        let from = text
            .char_indices()
            .find(|(at, c)| *at >= half && *c == '\n')
            .map_or(text.len(), |(at, _)| at + 1);
        let newer = self.path.with_extension("new");
        // One that a crash left behind.
        match std::fs::remove_file(&newer) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        open_private(&newer)?.write_all(&text.as_bytes()[from..])?;
        std::fs::rename(&newer, &self.path)
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn entries_are_kept_in_order_and_private() {
        let data = tempfile::tempdir().unwrap();
        let file = HistoryFile::in_directory(data.path());
        assert_eq!(file.read().unwrap(), Vec::<String>::new());
        for entry in ["one", "two\nlines \u{1b}", " "] {
            file.append(entry).unwrap();
        }
        std::fs::OpenOptions::new()
            .append(true)
            .open(&file.path)
            .and_then(|mut file| file.write_all(b"{broken\n"))
            .unwrap();
        file.append("three").unwrap();
        assert_eq!(file.read().unwrap(), ["one", "two\nlines \u{1b}", "three"]);
        let mode = std::fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_full_file_keeps_its_newest_entries_while_several_write() {
        let data = tempfile::tempdir().unwrap();
        let file = HistoryFile::in_directory(data.path());
        let long = "x".repeat(4_000);
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (file, long) = (file.clone(), long.clone());
                std::thread::spawn(move || {
                    for number in 0..100 {
                        file.append(&format!("{writer}-{number} {long}")).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        let entries = file.read().unwrap();
        assert!(std::fs::metadata(&file.path).unwrap().len() <= FILE_BYTES_MAX);
        assert!(entries.len() > 100, "{}", entries.len());
        for writer in 0..4 {
            // Of each writer the newest entries, without a gap.
            let own = entries.iter().filter_map(|entry| {
                let number = entry
                    .split(' ')
                    .next()?
                    .strip_prefix(&format!("{writer}-"))?;
                number.parse::<usize>().ok()
            });
            let own: Vec<usize> = own.collect();
            let expected: Vec<usize> = (100 - own.len()..100).collect();
            assert_eq!(own, expected, "of {writer}");
        }
    }
}
