//! The lines of a text file, one after the other, each with a bound.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;

use crate::error::io_to_file_error;
use crate::read::{Contents, is_binary};
use crate::{Cancellation, FileError, ReadReceipt, Workspace, WorkspacePath};

/// What is read of one line.
const LINE_BYTES_MAX: usize = 2_000;

/// One line without its end: `\n` is taken off, `\r` is not.
#[derive(Debug, Default)]
pub struct TextLine {
    pub bytes: Vec<u8>,
    /// What the line has beyond its bound.
    pub cut_bytes: u64,
}

/// How a pass over lines went.
#[derive(Debug)]
pub struct LinesRead {
    /// Lines before the first requested one; fewer than asked for if the file ends before it.
    pub skipped: usize,
    /// Absent if the file is too large to be read whole.
    pub receipt: Option<ReadReceipt>,
}

impl Workspace {
    /// Visits the lines of a text file from line `first` (the first is 1) until the visitor breaks.
    pub fn read_lines(
        &self,
        path: &WorkspacePath,
        first: usize,
        cancellation: &Cancellation,
        visit: &mut dyn FnMut(&TextLine) -> ControlFlow<()>,
    ) -> Result<LinesRead, FileError> {
        let display_path = self.display_path(path);
        let (skipped, receipt) = match self.read(path)? {
            Contents::Whole(bytes, receipt) => {
                let skipped = visit_lines(&bytes[..], &display_path, first, cancellation, visit)?;
                (skipped, Some(receipt))
            }
            Contents::Stream(file) => {
                let source = BufReader::new(file);
                let skipped = visit_lines(source, &display_path, first, cancellation, visit)?;
                (skipped, None)
            }
        };
        Ok(LinesRead { skipped, receipt })
    }
}

/// Returns how many lines were skipped.
fn visit_lines(
    mut source: impl BufRead,
    display_path: &str,
    first: usize,
    cancellation: &Cancellation,
    visit: &mut dyn FnMut(&TextLine) -> ControlFlow<()>,
) -> Result<usize, FileError> {
    let failed = |error| io_to_file_error(&error, display_path);
    if is_binary(source.fill_buf().map_err(failed)?) {
        let path = display_path.to_owned();
        return Err(FileError::Binary { path });
    }
    let mut skipped = 0;
    let mut line = TextLine::default();
    while line.read_next(&mut source).map_err(failed)? {
        cancellation.check()?;
        if skipped + 1 < first {
            skipped += 1;
        } else if visit(&line).is_break() {
            break;
        }
    }
    Ok(skipped)
}

impl TextLine {
    /// Reads the next line; whether there was one.
    fn read_next(&mut self, source: &mut impl BufRead) -> std::io::Result<bool> {
        self.bytes.clear();
        self.cut_bytes = 0;
        let mut any = false;
        loop {
            let available = match source.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = memchr::memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            let space = LINE_BYTES_MAX - self.bytes.len();
            let (within, beyond) = part.split_at(part.len().min(space));
            self.bytes.extend_from_slice(within);
            self.cut_bytes += beyond.len() as u64;
            let used = part.len() + usize::from(end.is_some());
            source.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(bytes: &[u8], first: usize) -> Result<(usize, Vec<(String, u64)>), FileError> {
        // A small buffer, so that lines lie across its edges.
        let source = BufReader::with_capacity(7, bytes);
        let mut lines = Vec::new();
        let skipped = visit_lines(source, "a", first, &Cancellation::default(), &mut |line| {
            let text = String::from_utf8_lossy(&line.bytes).into_owned();
            lines.push((text, line.cut_bytes));
            match lines.len() {
                3 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
        Ok((skipped, lines))
    }

    fn check(bytes: &[u8], first: usize, skipped: usize, lines: &[&str]) {
        let lines = lines.iter().map(|line| ((*line).to_owned(), 0)).collect();
        assert_eq!(lines_of(bytes, first), Ok((skipped, lines)));
    }

    #[test]
    fn lines_are_visited_from_the_requested_one_until_the_visitor_breaks() {
        let text = b"one\ntwo\r\n\nfour and more\nfive";
        check(text, 1, 0, &["one", "two\r", ""]);
        check(text, 4, 3, &["four and more", "five"]);
        check(text, 6, 5, &[]);
        check(text, 9, 5, &[]);
        check(b"", 1, 0, &[]);
        check(b"\n", 1, 0, &[""]);
    }

    #[test]
    fn long_lines_are_cut_and_binary_content_is_refused() {
        let long = [&[b'x'; LINE_BYTES_MAX + 1_234][..], b"\ny"].concat();
        let (_, lines) = lines_of(&long, 1).unwrap();
        assert_eq!((lines[0].0.len(), lines[0].1), (LINE_BYTES_MAX, 1_234));
        assert_eq!(lines[1], ("y".to_owned(), 0));
        let path = "a".to_owned();
        assert_eq!(lines_of(b"ab\0", 1), Err(FileError::Binary { path }));
    }
}
