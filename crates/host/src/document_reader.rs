//! Reads PDFs in a process of its own: their number of pages, and their text.
//!
//! Promises: whatever a document holds, the host loses no more than a process that had little memory and a few seconds; a
//! document is read once, and one at a time; what is known of one is known without waiting for another. What cannot be read is
//! said, and tried again if that was not the document's fault. Blocks.
//! Must not know: how a PDF is read.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use compositor::resolve::DocumentRead;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How long a document may take: the process has no more time of the processor, but may have to wait for it.
const TIME_MAX: Duration = Duration::from_secs(60);

/// How long a process may take to end once it has said all.
const END_TIME_MAX: Duration = Duration::from_secs(5);
/// How often that is looked at.
const END_POLL: Duration = Duration::from_millis(5);

/// When a document is read again that had to wait too long: every request of a conversation would wait for it.
const LATE_AGAIN_AFTER: Duration = Duration::from_secs(600);

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
    /// Why not all of it could be read, for the user.
    pub problem: Option<String>,
}

/// Reads documents with a program.
#[derive(Debug, Default)]
pub struct DocumentReader {
    /// The program and its arguments; none: nothing is read.
    program: Vec<OsString>,
    /// Held while one is read: one process is enough.
    reading: Mutex<()>,
    known: Mutex<KnownDocuments>,
}

/// What is remembered of documents, those that were asked for last at the end.
#[derive(Debug, Default)]
struct KnownDocuments(VecDeque<KnownDocument>);

#[derive(Debug)]
struct KnownDocument {
    digest: [u8; 32],
    read: DocumentRead,
    /// When it is read again; none if that would be no better.
    until: Option<Instant>,
}

impl KnownDocuments {
    fn find(&mut self, digest: &[u8; 32], now: Instant) -> Option<DocumentRead> {
        let at = self.0.iter().position(|known| known.digest == *digest)?;
        let found = self.0.remove(at)?;
        if found.until.is_some_and(|until| until <= now) {
            return None;
        }
        let read = found.read.clone();
        self.0.push_back(found);
        Some(read)
    }

    fn insert(&mut self, known: KnownDocument) {
        while self.0.len() >= KNOWN_MAX {
            self.0.pop_front();
        }
        self.0.push_back(known);
    }
}

/// What a process said until it ended.
struct ReaderOutput {
    output: Vec<u8>,
    end: ProcessEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessEnd {
    Success,
    /// It failed, was killed, or said too much.
    Failure,
    /// It had to wait too long: the machine may be busy.
    Late,
}

impl DocumentReader {
    pub fn new(program: Vec<OsString>) -> Self {
        Self { program, ..Self::default() }
    }

    /// What a document is; `None` if nothing reads documents.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<DocumentRead> {
        if self.program.is_empty() {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        if let Some(read) = self.known.lock().find(&digest, Instant::now()) {
            return Some(read);
        }
        let _one = self.reading.lock();
        // Whoever read before may have read the same.
        if let Some(read) = self.known.lock().find(&digest, Instant::now()) {
            return Some(read);
        }
        match self.start().and_then(|child| exchange(child, bytes)) {
            Ok(said) => {
                let read = parse_output(&said);
                let is_late = said.end == ProcessEnd::Late;
                self.known.lock().insert(KnownDocument {
                    digest,
                    read: read.clone(),
                    until: is_late.then(|| Instant::now() + LATE_AGAIN_AFTER),
                });
                Some(read)
            }
            // It says nothing about the document: the next time may be better.
            Err(error) => {
                tracing::warn!(%error, "the process that reads documents cannot be used; they are described instead");
                Some(DocumentRead {
                    problem: Some(format!("it could not be read: {error}")),
                    ..DocumentRead::default()
                })
            }
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

/// The last thing that a process said of a document. That it died over it is part of what is known: it would again.
fn parse_output(said: &ReaderOutput) -> DocumentRead {
    let mut lines = said.output.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_prefix(DOCUMENT_LINE.as_bytes())?;
        // A line that was cut off says nothing.
        serde_json::from_slice::<ReadDocument>(line).ok()
    });
    let read = lines.next_back();
    let problem = match (&read, said.end) {
        (Some(_), ProcessEnd::Success) => None,
        (None, ProcessEnd::Success) => Some("the document reader returned nothing"),
        (_, ProcessEnd::Failure) => {
            Some("reading it took more memory or time than it may, or failed")
        }
        (_, ProcessEnd::Late) => Some("reading it took longer than a minute"),
    };
    let read = read.unwrap_or_default();
    DocumentRead {
        pages: read.pages,
        encrypted: read.encrypted,
        text: read.text,
        text_pages: read.text_pages,
        problem: read.problem.or_else(|| problem.map(str::to_owned)),
    }
}

/// Gives a process its input and takes its output, both bounded in time and size; then it is gone.
fn exchange(mut child: Child, bytes: &[u8]) -> std::io::Result<ReaderOutput> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (done, waiting) = mpsc::channel();
    let said = std::thread::scope(|scope| {
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
        let end = match &output {
            Ok(output) if (output.len() as u64) < OUTPUT_BYTES_MAX => wait_for_end(&mut child)?,
            Ok(_) => ProcessEnd::Failure,
            Err(_) => ProcessEnd::Late,
        };
        // Ends both threads: they hold the ends of its pipes.
        child.kill()?;
        // What it said before it was too late comes now.
        let output = output.or_else(|_| waiting.recv()).unwrap_or_default();
        std::io::Result::Ok(ReaderOutput { output, end })
    });
    child.wait()?;
    said
}

/// How a process ends that has closed its output.
fn wait_for_end(child: &mut Child) -> std::io::Result<ProcessEnd> {
    let deadline = Instant::now() + END_TIME_MAX;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(ProcessEnd::Success),
            Some(_) => return Ok(ProcessEnd::Failure),
            None if Instant::now() < deadline => std::thread::sleep(END_POLL),
            None => return Ok(ProcessEnd::Late),
        }
    }
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
            assert_eq!((read.pages, read.text.as_str(), read.text_pages), (Some(3), "hi", 3));
        }
        assert_eq!(std::fs::read_to_string(counted.path()).unwrap().lines().count(), 1);
    }

    #[test]
    fn a_process_that_dies_or_floods_says_why_and_is_not_asked_again() {
        let counted = tempfile::NamedTempFile::new().unwrap();
        let path = counted.path().display();
        for script in ["kill -9 $$", "exit 1", "exec yes", "exit 0"] {
            std::fs::write(counted.path(), "").unwrap();
            let reader = reader(&format!("echo x >> {path}; {script}"));
            for _ in 0..2 {
                let read = reader.read(&vec![0; 1 << 20]).unwrap();
                assert!(read.problem.is_some(), "{script}");
                assert_eq!((read.pages, read.text.as_str()), (None, ""));
            }
            let runs = std::fs::read_to_string(counted.path()).unwrap();
            assert_eq!(runs, "x\n", "{script}");
        }
        // What it said before it died is known.
        let reader = reader("echo 'greenroom-document {\"pages\": 3}'; kill -9 $$");
        let read = reader.read(b"x").unwrap();
        assert_eq!(read.pages, Some(3));
        assert!(read.problem.unwrap().starts_with("reading it took more"));
    }

    #[test]
    fn what_is_not_the_documents_fault_is_said_and_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let reader = DocumentReader::new(vec![program.clone().into()]);
        let read = reader.read(b"x").unwrap();
        let problem = read.problem.unwrap();
        assert!(problem.starts_with("it could not be read: "), "{problem}");
        let script = "#!/bin/sh\ncat >/dev/null; echo 'greenroom-document {\"pages\": 1}'\n";
        std::fs::write(&program, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&program, mode).unwrap();
        let read = reader.read(b"x").unwrap();
        assert_eq!((read.pages, read.problem), (Some(1), None));
        assert_eq!(DocumentReader::default().read(b"x"), None);
    }

    #[test]
    fn what_was_asked_for_last_is_remembered() {
        let mut known = KnownDocuments::default();
        let digest = |n: usize| [u8::try_from(n).unwrap(); 32];
        let now = Instant::now();
        let document = |n: usize, until: Option<Instant>| KnownDocument {
            digest: digest(n),
            read: DocumentRead::default(),
            until,
        };
        for n in 0..KNOWN_MAX {
            known.insert(document(n, None));
        }
        assert!(known.find(&digest(0), now).is_some());
        known.insert(document(KNOWN_MAX, Some(now + LATE_AGAIN_AFTER)));
        assert!(known.find(&digest(0), now).is_some(), "asked for again");
        assert_eq!(known.find(&digest(1), now), None);
        assert_eq!(known.0.len(), KNOWN_MAX);
        assert!(known.find(&digest(KNOWN_MAX), now).is_some());
        let later = now + LATE_AGAIN_AFTER;
        assert_eq!(known.find(&digest(KNOWN_MAX), later), None);
        assert!(known.find(&digest(0), later).is_some());
    }

    /// One document is being read for as long as the test wants; another is known.
    #[test]
    fn what_is_known_is_not_kept_waiting_by_another() {
        let gate = tempfile::tempdir().unwrap();
        let (begun, open) = (gate.path().join("begun"), gate.path().join("open"));
        let reader = reader(&format!(
            "read -r word; echo 'greenroom-document {{\"pages\": 1}}'
             [ \"$word\" != slow ] || {{ : > {}; while [ ! -e {} ]; do sleep 0.01; done; }}",
            begun.display(),
            open.display()
        ));
        let known = reader.read(b"fast\n").unwrap();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| reader.read(b"slow\n"));
            while !begun.exists() {
                std::thread::yield_now();
            }
            assert_eq!(reader.read(b"fast\n"), Some(known));
            std::fs::write(&open, "").unwrap();
            assert_eq!(slow.join().unwrap().unwrap().pages, Some(1));
        });
    }
}
