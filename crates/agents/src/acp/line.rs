//! Lines from a process, bounded.
//!
//! Promises: no line takes more memory than its bound and one read; a line is handed out once its end was seen, or when the input ends.
//! Must not know: what is on the lines.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Room that is made for each read.
const READ_BYTES: usize = 16 * 1_024;

/// A larger buffer is given back after the line that needed it.
const KEPT_BYTES_MAX: usize = 256 * 1_024;

pub(super) struct LineReader<R> {
    input: R,
    buffer: BytesMut,
    /// There is no line end before this.
    searched: usize,
    line_bytes_max: usize,
}

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("it sent a line of more than {0} bytes")]
    TooLong(usize),
    #[error("its output could not be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R, line_bytes_max: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched: 0, line_bytes_max }
    }

    /// The next line without its end; none when the input is over. Nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            let fresh = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', fresh) {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                if line.len() > KEPT_BYTES_MAX {
                    // What follows shares the memory of the line, and would keep it.
                    self.buffer = BytesMut::from(&*self.buffer);
                }
                if line.len() > self.line_bytes_max {
                    return Err(LineError::TooLong(self.line_bytes_max));
                }
                return Ok(Some(without_end(line)));
            }
            self.searched = self.buffer.len();
            if self.searched > self.line_bytes_max {
                return Err(LineError::TooLong(self.line_bytes_max));
            }
            self.buffer.reserve(READ_BYTES);
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok((!rest.is_empty()).then_some(rest));
            }
        }
    }
}

fn without_end(line: Bytes) -> Bytes {
    let text = line.strip_suffix(b"\n").unwrap_or(&line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    line.slice(..text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], max: usize) -> (Vec<String>, Option<String>) {
        let mut reader = LineReader::new(input, max);
        let mut lines = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(line)) => lines.push(String::from_utf8_lossy(&line).into_owned()),
                Ok(None) => return (lines, None),
                Err(error) => return (lines, Some(error.to_string())),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_with_either_end() {
        let (found, error) = lines(b"one\ntwo\r\n\nlast", 100).await;
        assert_eq!(found, ["one", "two", "", "last"]);
        assert_eq!(error, None);
    }

    #[tokio::test]
    async fn a_line_that_comes_in_pieces_is_one_line() {
        let (mut writer, reader) = tokio::io::duplex(4);
        let long = "x".repeat(10_000);
        let sent = format!("{long}\nend\n");
        let sending = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut writer, sent.as_bytes()).await
        });
        let mut reader = LineReader::new(reader, 20_000);
        assert_eq!(reader.next().await.unwrap().unwrap(), long.as_bytes());
        assert_eq!(reader.next().await.unwrap().unwrap(), &b"end"[..]);
        assert_eq!(reader.next().await.unwrap(), None);
        sending.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_memory_of_a_long_line_is_given_back() {
        let sent = format!("{}\nnext", "x".repeat(4 * KEPT_BYTES_MAX));
        let mut reader = LineReader::new(sent.as_bytes(), usize::MAX);
        reader.next().await.unwrap().unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), &b"next"[..]);
        reader.buffer.reserve(READ_BYTES);
        assert!(reader.buffer.capacity() < KEPT_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_is_an_error_before_its_end() {
        let endless = tokio::io::repeat(b'x');
        let mut reader = LineReader::new(endless, 100_000);
        let error = reader.next().await.unwrap_err();
        assert!(matches!(error, LineError::TooLong(100_000)));
        assert!(reader.buffer.capacity() < 400_000);
        let (found, error) = lines(b"ok\nmuch too long\n", 8).await;
        assert_eq!(found, ["ok"]);
        assert!(error.unwrap().contains("more than 8 bytes"));
    }
}
