//! What was sent in earlier runs, in a file that all chats of a user share.
//!
//! Promises: only its owner can read it. Chats that run at the same time lose no entry of each other: every entry is added under a
//! lock, and so is the file cut when it is full. An entry that cannot be read is left out, the others stay.
//! Must not know: keys, terminals.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A file larger than this is cut to the newest half of it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// A file with one entry too many is still read whole.
const READ_BYTES_MAX: u64 = 2 * FILE_BYTES_MAX;
/// An entry longer than this is not worth going back to.
const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// The file, one JSON string a line, the newest last.
#[derive(Debug, Clone)]
pub(crate) struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    pub(crate) fn in_directory(data: &Path) -> Self {
        Self { path: data.join("chat-history.jsonl") }
    }

    /// Everything in it, the newest last; nothing if there is no file yet.
    pub(crate) fn read(&self) -> io::Result<Vec<String>> {
        let bytes = match File::open(&self.path) {
            Ok(file) => read_newest(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        let entries = lines.filter_map(|line| serde_json::from_slice(line).ok());
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
        let bytes = read_newest(File::open(&self.path)?)?;
        let half = bytes.len() / 2;
        // No byte of a longer character is a newline, so nothing is cut in two, whatever the bytes are.
        let end_of_line = bytes.iter().skip(half).position(|byte| *byte == b'\n');
        let newest = end_of_line.and_then(|at| bytes.get(half + at + 1..));
        let newer = self.path.with_extension("new");
        // One that a crash left behind.
        match std::fs::remove_file(&newer) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        open_private(&newer)?.write_all(newest.unwrap_or_default())?;
        std::fs::rename(&newer, &self.path)
    }
}

/// The end of a file, as much of it as one may have. Somebody else may have made it larger.
fn read_newest(mut file: File) -> io::Result<Vec<u8>> {
    let from = file.metadata()?.len().saturating_sub(READ_BYTES_MAX);
    file.seek(io::SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
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
    fn bytes_that_are_no_text_cost_no_entry_but_their_own() {
        let data = tempfile::tempdir().unwrap();
        let file = HistoryFile::in_directory(data.path());
        // A character of several bytes stands wherever the file may be cut.
        let long = "ü€𝄞".repeat(2_000);
        std::fs::write(&file.path, b"\xff\xfe\"\n").unwrap();
        for number in 0..80 {
            file.append(&format!("{number} {long}")).unwrap();
        }
        let entries = file.read().unwrap();
        assert!(std::fs::metadata(&file.path).unwrap().len() <= FILE_BYTES_MAX);
        let last = entries.last().unwrap();
        assert_eq!(*last, format!("79 {long}"));
        assert!((20..80).contains(&entries.len()), "{}", entries.len());
        assert!(entries.iter().all(|entry| entry.ends_with(&long)));
        // A file that somebody filled is read from its end.
        std::fs::OpenOptions::new()
            .append(true)
            .open(&file.path)
            .and_then(|mut file| {
                file.write_all(&b"x\n".repeat(2 * FILE_BYTES_MAX as usize))?;
                file.write_all(b"\"newest\"\n")
            })
            .unwrap();
        assert_eq!(file.read().unwrap(), ["newest"]);
        file.append("and on").unwrap();
        assert_eq!(file.read().unwrap(), ["newest", "and on"]);
        assert!(std::fs::metadata(&file.path).unwrap().len() <= FILE_BYTES_MAX + 16);
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
            let own: Vec<usize> = entries
                .iter()
                .filter_map(|entry| {
                    let number = entry.split(' ').next()?.strip_prefix(&format!("{writer}-"))?;
                    number.parse::<usize>().ok()
                })
                .collect();
            let expected: Vec<usize> = (100 - own.len()..100).collect();
            assert_eq!(own, expected, "of {writer}");
        }
    }
}
