//! Reads PDFs in a process of its own: their number of pages, and their text.
//!
//! Promises: whatever a document holds, the host loses no more than a process that had little memory and a few seconds; a
//! document is read once, and one at a time. Blocks.
//! Must not know: how a PDF is read.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use compositor::resolve::DocumentRead;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How long a document may take: the process has no more time of the processor, but may have to wait for it.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The most text of a document: no more is shown to a model.
pub const DOCUMENT_TEXT_BYTES_MAX: usize = 256 << 10;

/// All that the process may write. Text in JSON may be larger than the text.
const OUTPUT_BYTES_MAX: u64 = 8 * DOCUMENT_TEXT_BYTES_MAX as u64;

/// Documents whose content is remembered.
const KNOWN_MAX: usize = 32;

/// What a line begins with that the process means for the host. Libraries write lines of their own.
pub const DOCUMENT_LINE: &str = "greenroom-document ";

/// What the process says of a document, as JSON in a line. The last one counts: pages are said before the text is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadDocument {
    pub pages: Option<u64>,
    pub encrypted: bool,
    pub text: String,
    pub text_pages: u64,
}

/// Reads documents with a program.
#[derive(Debug, Default)]
pub struct DocumentReader {
    /// The program and its arguments; none: nothing is read.
    program: Vec<OsString>,
    known: Mutex<VecDeque<([u8; 32], DocumentRead)>>,
}

impl DocumentReader {
    pub fn new(program: Vec<OsString>) -> Self {
        Self {
            program,
            known: Mutex::default(),
        }
    }

    /// What a document is; `None` if nothing reads documents.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<DocumentRead> {
        if self.program.is_empty() {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        // Held while one is read: one process is enough.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, read)) = known.iter().find(|(other, _)| *other == digest) {
            return Some(read.clone());
        }
        let read = self.run(bytes);
        if known.len() >= KNOWN_MAX {
            known.pop_front();
        }
        known.push_back((digest, read.clone()));
        Some(read)
    }

    fn run(&self, bytes: &[u8]) -> DocumentRead {
        let output = match self.start().and_then(|child| exchange(child, bytes)) {
            Ok(output) => output,
            Err(error) => {
                tracing::warn!(%error, "the process that reads documents cannot be used; they are described instead");
                return DocumentRead::default();
            }
        };
        let mut said = output.split(|byte| *byte == b'\n').filter_map(|line| {
            let line = line.strip_prefix(DOCUMENT_LINE.as_bytes())?;
            // A line that was cut off says nothing.
            serde_json::from_slice::<ReadDocument>(line).ok()
        });
        let read = said.next_back().unwrap_or_default();
        DocumentRead {
            pages: read.pages,
            encrypted: read.encrypted,
            text: read.text,
            text_pages: read.text_pages,
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut words = self.program.iter();
        let program = words.next().ok_or(std::io::ErrorKind::NotFound)?;
        Command::new(program)
            .args(words)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }
}

/// Gives a process its input and takes its output, both bounded in time and size; then it is gone.
fn exchange(mut child: Child, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (done, waiting) = mpsc::channel();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A process that ended early does not read all of it.
            let _ = input.map(|mut input| input.write_all(bytes));
        });
        scope.spawn(move || {
            let mut all = Vec::new();
            // What came until then is taken as it is.
            let _ = output.map(|output| output.take(OUTPUT_BYTES_MAX).read_to_end(&mut all));
            // Nobody waits any more if it took too long.
            let _ = done.send(all);
        });
        let output = waiting.recv_timeout(TIME_MAX);
        // Ends both threads: they hold the ends of its pipes.
        let killed = child.kill();
        output
            .map_err(|_| std::io::ErrorKind::TimedOut.into())
            .and_then(|output| killed.map(|()| output))
    });
    child.wait()?;
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(script: &str) -> DocumentReader {
        DocumentReader::new(["sh", "-c", script].map(OsString::from).to_vec())
    }

    #[test]
    fn what_the_process_says_last_counts_and_it_is_asked_once() {
        let counted = tempfile::NamedTempFile::new().unwrap();
        let path = counted.path().display();
        let reader = reader(&format!(
            "cat >/dev/null; echo x >> {path}; echo noise
             echo 'greenroom-document {{\"pages\": 3}}'
             echo 'greenroom-document {{\"pages\": 3, \"text\": \"hi\", \"text_pages\": 3}}'
             printf 'greenroom-document {{\"pages\": 9'"
        ));
        for _ in 0..2 {
            let read = reader.read(b"%PDF").unwrap();
            assert_eq!(
                (read.pages, read.text.as_str(), read.text_pages),
                (Some(3), "hi", 3)
            );
        }
        assert_eq!(
            std::fs::read_to_string(counted.path())
                .unwrap()
                .lines()
                .count(),
            1
        );
    }

    #[test]
    fn a_process_that_dies_floods_or_is_not_there_says_nothing() {
        let nothing = Some(DocumentRead::default());
        assert_eq!(reader("kill -9 $$").read(b"x"), nothing);
        assert_eq!(reader("exit 1").read(&vec![0; 1 << 20]), nothing);
        assert_eq!(reader("exec yes").read(b"x"), nothing);
        let missing = DocumentReader::new(vec!["/nowhere/program".into()]);
        assert_eq!(missing.read(b"x"), nothing);
        assert_eq!(DocumentReader::default().read(b"x"), None);
    }
}
