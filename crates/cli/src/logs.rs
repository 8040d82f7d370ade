//! `greenroom logs`: shows the log of a host in the background or of a service, and follows it.
//!
//! Promises: what is shown goes on across files that were rotated; nothing in a log can control the terminal.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use client::endpoint;

use crate::exit::Exit;
use crate::host_record::RunMode;
use crate::local_host::LocalHost;
use crate::log_file::{self, FILES_MAX};
use crate::output::print;

const LINES_DEFAULT: usize = 100;
/// How often a followed log is looked at: a file can only be asked.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// How often a file is looked for that is just being made.
const LOOKS_MAX: usize = 5;
/// Read at once.
const CHUNK_BYTES: usize = 64 * 1_024;

/// Show the log of the host
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom logs                       the last 100 lines
  greenroom logs -f                    go on as lines are written
  greenroom logs -n 1000 | grep failed
  less $(greenroom logs --path)

There is a line when a turn starts and one when it ends, or why it failed, with the last characters of the session's name; one \
for each client that connects or disconnects; and no content, no prompts, no tokens. The log is rotated: 5 files of 5 MiB. \
GREENROOM_LOG sets the level (error, warn, info, debug) of a host when it is started. A host in a terminal logs there.

Exit codes: 0 shown, 1 there is no log.")]
pub(crate) struct LogsOptions {
    /// Follow the log as it is written; Ctrl-C stops
    #[arg(long, short)]
    follow: bool,
    /// How many of the last lines to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = LINES_DEFAULT)]
    lines: usize,
    /// Print where the log is and do nothing else
    #[arg(long, conflicts_with_all = ["follow", "lines"])]
    path: bool,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) async fn run(options: LogsOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let path = log_file::path_in(&data);
    if options.path {
        print(&format!("{}\n", path.display()))?;
        return Ok(Exit::Complete);
    }
    note_terminal_host(&data);
    match show(&path, &options).await {
        // Whoever closed the pipe has seen enough.
        Err(error) if is_closed_pipe(&error) => Ok(Exit::Complete),
        shown => shown.map(|()| Exit::Complete),
    }
}

async fn show(path: &Path, options: &LogsOptions) -> anyhow::Result<()> {
    let unreadable = || {
        format!(
            "there is no log at {}: only a host in the background or a service writes one",
            path.display()
        )
    };
    // Opened before the end is read: what is written meanwhile is shown by following.
    let mut file = open_newest(path).await.with_context(unreadable)?;
    let end = file.metadata()?.len();
    print(&read_end(path, &mut file, end, options.lines)?)?;
    if options.follow { follow(path, file, end).await } else { Ok(()) }
}

/// The file that is written; in the moment in which the host makes the next one, that one.
async fn open_newest(path: &Path) -> io::Result<File> {
    let mut looked = 0;
    loop {
        match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if looked == LOOKS_MAX || !log_file::path_of_age(path, 1).exists() {
                    return Err(error);
                }
            }
            opened => return opened,
        }
        looked += 1;
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// A note where no host writes to the log at the moment.
fn note_terminal_host(data: &Path) {
    let Ok(Some(host)) = LocalHost::find(data) else {
        return; // the log of a host that has ended is shown as it is
    };
    if let Some(record) = host.record.filter(|record| record.mode == RunMode::Foreground) {
        eprintln!(
            "The running host (pid {}) logs to the terminal or program that started it; this is an older log.",
            record.pid
        );
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let fault = error.downcast_ref::<io::Error>();
    fault.is_some_and(|fault| fault.kind() == ErrorKind::BrokenPipe)
}

/// The last lines of the newest file up to `end`, and of older ones if it has too few.
fn read_end(path: &Path, newest: &mut File, end: u64, lines: usize) -> io::Result<String> {
    let mut text = last_lines(newest, end, lines)?;
    let mut age = 1;
    while count_lines(&text) < lines && age < FILES_MAX {
        let mut older = match File::open(log_file::path_of_age(path, age)) {
            Ok(older) => older,
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        let end = older.metadata()?.len();
        text = last_lines(&mut older, end, lines - count_lines(&text))? + &text;
        age += 1;
    }
    Ok(text)
}

fn count_lines(text: &str) -> usize {
    text.lines().count()
}

/// The last lines of a file before `end`, read from there backwards.
fn last_lines(file: &mut File, end: u64, lines: usize) -> io::Result<String> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut start = end;
    let newlines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    // One more than wanted: the end of the line before the first.
    while start > 0 && newlines(&bytes) <= lines {
        let len = start.min(CHUNK_BYTES as u64);
        start -= len;
        file.seek(SeekFrom::Start(start))?;
        let mut chunk = Vec::new();
        file.take(len).read_to_end(&mut chunk)?;
        chunk.append(&mut bytes);
        bytes = chunk;
    }
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let first = all.len().saturating_sub(lines);
    Ok(all.get(first..).unwrap_or_default().concat())
}

/// Prints what is written from now on, also into the file that replaces this one.
async fn follow(path: &Path, mut file: File, mut shown: u64) -> anyhow::Result<()> {
    let mut waiting = Vec::new();
    loop {
        shown += print_lines(&mut file, shown, &mut waiting)?;
        let Some(next) = open_replacement(path, &file)? else {
            tokio::time::sleep(LOOK_INTERVAL).await;
            continue;
        };
        // What came last into the old one.
        print_lines(&mut file, shown, &mut waiting)?;
        (file, shown) = (next, 0);
    }
}

/// The file that has the log's name now, if it is another than the one that is open.
fn open_replacement(path: &Path, file: &File) -> io::Result<Option<File>> {
    let next = match File::open(path) {
        Ok(next) => next,
        // Between two files there is none.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (new, old) = (next.metadata()?, file.metadata()?);
    Ok(((new.dev(), new.ino()) != (old.dev(), old.ino())).then_some(next))
}

/// Prints the whole lines after `shown`; how many bytes were read. The rest of a line waits for its end.
fn print_lines(file: &mut File, shown: u64, waiting: &mut Vec<u8>) -> anyhow::Result<u64> {
    file.seek(SeekFrom::Start(shown))?;
    let mut read = 0;
    loop {
        let mut chunk = Vec::new();
        let count = file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if count == 0 {
            return Ok(read);
        }
        read += count as u64;
        waiting.append(&mut chunk);
        let end = waiting.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        // A line without an end is not waited for without bound.
        let end = if waiting.len() > CHUNK_BYTES { waiting.len() } else { end };
        let lines: Vec<u8> = waiting.drain(..end).collect();
        print(&String::from_utf8_lossy(&lines))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_come_from_older_files_too() {
        let data = tempfile::tempdir().unwrap();
        let path = log_file::path_in(data.path());
        std::fs::write(&path, "5\n6\n").unwrap();
        std::fs::write(log_file::path_of_age(&path, 1), "3\n4\n").unwrap();
        std::fs::write(log_file::path_of_age(&path, 2), "1\n2\n").unwrap();
        let last = |lines| {
            let mut file = File::open(&path).unwrap();
            read_end(&path, &mut file, 4, lines).unwrap()
        };
        assert_eq!(last(0), "");
        assert_eq!(last(1), "6\n");
        assert_eq!(last(3), "4\n5\n6\n");
        assert_eq!(last(99), "1\n2\n3\n4\n5\n6\n");
    }

    #[test]
    fn lines_longer_than_what_is_read_at_once_are_whole() {
        let data = tempfile::tempdir().unwrap();
        let path = log_file::path_in(data.path());
        let long = "x".repeat(3 * CHUNK_BYTES);
        std::fs::write(&path, format!("first\n{long}\nlast\n")).unwrap();
        let mut file = File::open(&path).unwrap();
        let end = file.metadata().unwrap().len();
        let text = last_lines(&mut file, end, 2).unwrap();
        assert_eq!(text, format!("{long}\nlast\n"));
    }
}
