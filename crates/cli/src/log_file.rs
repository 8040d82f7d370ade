//! The log file of a host without a terminal: written in the data directory, and bounded.
//!
//! Promises: `host.log` is the newest; a file that is full becomes `host.log.1` and so on, and the oldest is removed: never more
//! than `FILES_MAX` files of `FILE_BYTES_MAX` and one line. A file that was removed or moved away is made again. A log that cannot
//! be rotated goes on in the file that is there (ADR 0047).
//! Must not know: what is logged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::stdio::{dup2_stderr, dup2_stdout};

use crate::private_directory::create_parent_of;

/// Its name in the data directory.
const NAME: &str = "host.log";
/// What a person can still open and search; at one line a turn it holds some 40,000 of them.
const FILE_BYTES_MAX: u64 = 5 << 20;
pub(crate) const FILES_MAX: usize = 5;

/// The log of a data directory.
pub(crate) fn path_in(data: &Path) -> PathBuf {
    data.join(NAME)
}

/// A log file by its age, 0 being the one that is written.
pub(crate) fn path_of_age(path: &Path, age: usize) -> PathBuf {
    if age == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{age}"));
    name.into()
}

pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// What becomes of the standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// They are the log, too: what is written when the program fails must not be lost.
    Redirected,
    /// They belong to whoever started the program.
    Kept,
}

/// A log file that is rotated by its writer.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    /// How long the file is, as far as this writer knows.
    len: u64,
    bytes_max: u64,
    streams: Streams,
}

impl LogFile {
    pub(crate) fn create(path: PathBuf, streams: Streams) -> io::Result<Self> {
        // The first start of a service finds no data directory.
        create_parent_of(&path)?;
        let file = open(&path)?;
        let len = file.metadata()?.len();
        let log = Self { path, file, len, bytes_max: FILE_BYTES_MAX, streams };
        log.redirect_streams()?;
        Ok(log)
    }

    fn redirect_streams(&self) -> io::Result<()> {
        if self.streams == Streams::Redirected {
            dup2_stdout(&self.file)?;
            dup2_stderr(&self.file)?;
        }
        Ok(())
    }

    /// Whether the path still names the file that is open.
    fn is_in_place(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = open(&self.path)?;
        self.len = self.file.metadata()?.len();
        self.redirect_streams()
    }

    /// Makes room: every file becomes one older, the oldest is replaced.
    fn rotate(&mut self) -> io::Result<()> {
        for age in (0..FILES_MAX - 1).rev() {
            let from = path_of_age(&self.path, age);
            match fs::rename(&from, path_of_age(&self.path, age + 1)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.reopen()
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !self.is_in_place()? {
            self.reopen()?;
        }
        if self.len >= self.bytes_max
            && let Err(error) = self.rotate()
        {
            // Tried again after as much as fits into another file.
            self.len = 0;
            writeln!(self.file, "the log cannot be rotated: {error}")?;
        }
        let written = self.file.write(line)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(directory: &Path) -> LogFile {
        let mut log = LogFile::create(path_in(directory), Streams::Kept).unwrap();
        log.bytes_max = 100;
        log
    }

    #[test]
    fn full_files_are_kept_up_to_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = small(directory.path());
        for number in 0..200 {
            writeln!(log, "line {number:05}").unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected = ["host.log", "host.log.1", "host.log.2", "host.log.3", "host.log.4"];
        assert_eq!(names, expected);
        let mut lines = String::new();
        for age in (0..FILES_MAX).rev() {
            let text = fs::read_to_string(path_of_age(&path_in(directory.path()), age)).unwrap();
            assert!(text.len() <= 111, "{age}: {}", text.len());
            lines.push_str(&text);
        }
        assert!(lines.ends_with("line 00199\n"));
        let numbers: Vec<&str> = lines.lines().collect();
        assert!(numbers.is_sorted(), "no line is lost between: {lines}");
    }

    #[test]
    fn a_file_that_was_taken_away_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = small(directory.path());
        writeln!(log, "one").unwrap();
        fs::remove_file(path_in(directory.path())).unwrap();
        writeln!(log, "two").unwrap();
        let text = fs::read_to_string(path_in(directory.path())).unwrap();
        assert_eq!(text, "two\n");
    }

    #[test]
    fn a_log_that_cannot_be_rotated_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = small(directory.path());
        // A directory that is not empty cannot be replaced by a file.
        fs::write(directory.path().join("host.log.3"), "old").unwrap();
        fs::create_dir_all(directory.path().join("host.log.4/x")).unwrap();
        for number in 0..30 {
            writeln!(log, "line {number:05}").unwrap();
        }
        let text = fs::read_to_string(path_in(directory.path())).unwrap();
        assert!(text.contains("cannot be rotated") && text.ends_with("line 00029\n"));
    }
}
