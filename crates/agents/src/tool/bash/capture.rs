//! The output of a command, bounded: its beginning and end for the model, the last of it for clients while it runs, the
//! whole for the record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use terminals::OutputSink;
use tokio::sync::mpsc;

use super::super::format::group_digits;

/// How often new output is sent while it runs.
const LIVE_EVERY: Duration = Duration::from_millis(100);

/// Shown to the model of the beginning, and as much of the end. A command that fails tells it twice: as what it printed
/// and as what went wrong.
const SIDE_BYTES_MAX: usize = super::super::TEXT_BYTES_MAX / 4;

/// Shown of the end while it runs.
const LIVE_BYTES_MAX: usize = 8 * 1_024;

/// Stored whole.
const WHOLE_BYTES_MAX: usize = 16 * 1_024 * 1_024;

#[derive(Debug, Default)]
pub(super) struct Capture {
    /// All of it, or its beginning.
    whole: Vec<u8>,
    /// Its end, when there is more than is captured.
    tail: Vec<u8>,
    total: u64,
}

impl Capture {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let space = WHOLE_BYTES_MAX - self.whole.len();
        let (fitting, rest) = bytes.split_at(bytes.len().min(space));
        self.whole.extend_from_slice(fitting);
        if !rest.is_empty() {
            self.tail.extend_from_slice(rest);
            // Cut now and then, not at every push.
            if self.tail.len() > 4 * SIDE_BYTES_MAX {
                self.tail.drain(..self.tail.len() - SIDE_BYTES_MAX);
            }
        }
    }

    /// The last of it.
    pub(super) fn live(&self) -> String {
        if self.total <= LIVE_BYTES_MAX as u64 {
            return String::from_utf8_lossy(&self.whole).into_owned();
        }
        let end = self.end(LIVE_BYTES_MAX);
        let left_out = group_digits(self.total - end.len() as u64);
        format!("[{left_out} bytes before]\n{}", String::from_utf8_lossy(&end))
    }

    /// Its beginning and its end.
    pub(super) fn for_model(&self) -> String {
        if self.fits() {
            return String::from_utf8_lossy(&self.whole).into_owned();
        }
        let beginning = before_boundary(&self.whole[..SIDE_BYTES_MAX]);
        let end = self.end(SIDE_BYTES_MAX);
        let left_out = self.total - beginning.len() as u64 - end.len() as u64;
        format!(
            "{}\n[{} bytes left out here; print less, or write to a file and `read` parts of it]\n{}",
            String::from_utf8_lossy(beginning),
            group_digits(left_out),
            String::from_utf8_lossy(&end)
        )
    }

    /// All of it, if the model gets only parts of it.
    pub(super) fn into_whole(mut self) -> Option<Vec<u8>> {
        if self.fits() {
            return None;
        }
        let more = self.total - self.whole.len() as u64;
        if more > 0 {
            let note = format!("\n[{} more bytes were not kept]\n", group_digits(more));
            self.whole.extend_from_slice(note.as_bytes());
        }
        Some(self.whole)
    }

    fn fits(&self) -> bool {
        self.total <= 2 * SIDE_BYTES_MAX as u64
    }

    fn end(&self, bytes_max: usize) -> Vec<u8> {
        let from_tail = &self.tail[self.tail.len() - self.tail.len().min(bytes_max)..];
        let missing = (bytes_max - from_tail.len()).min(self.whole.len());
        let from_whole = &self.whole[self.whole.len() - missing..];
        after_boundary(&[from_whole, from_tail].concat()).to_vec()
    }
}

/// Captures output, and sends the last of it while it comes.
pub(super) struct LiveCapture {
    capture: Capture,
    output: mpsc::Sender<String>,
    /// Something came that was not sent.
    is_new: bool,
    /// Nothing is sent again before this.
    due: Instant,
}

impl LiveCapture {
    pub(super) fn new(output: mpsc::Sender<String>) -> Self {
        Self { capture: Capture::default(), output, is_new: false, due: Instant::now() }
    }

    pub(super) fn into_capture(self) -> Capture {
        self.capture
    }
}

impl OutputSink for LiveCapture {
    fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        self.is_new = true;
    }

    fn due(&self) -> Option<Instant> {
        self.is_new.then_some(self.due)
    }

    fn flush(&mut self) {
        let now = Instant::now();
        if self.due().is_none_or(|due| due > now) {
            // Nothing new, or too early: who reads comes back when it is due.
            return;
        }
        self.due = now + LIVE_EVERY;
        // A reader that is behind gets the next one: each holds the whole end of the output.
        match self.output.try_send(self.capture.live()) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => self.is_new = false,
            Err(mpsc::error::TrySendError::Full(_)) => {}
        }
    }
}

/// The same for two: who captures, and who takes what was captured.
#[derive(Clone)]
pub(super) struct SharedCapture(Arc<Mutex<LiveCapture>>);

impl SharedCapture {
    pub(super) fn new(output: mpsc::Sender<String>) -> Self {
        Self(Arc::new(Mutex::new(LiveCapture::new(output))))
    }

    /// Takes what was captured so far.
    pub(super) fn take(&self) -> Capture {
        std::mem::take(&mut self.0.lock().capture)
    }
}

impl OutputSink for SharedCapture {
    fn push(&mut self, bytes: &[u8]) {
        self.0.lock().push(bytes);
    }

    fn due(&self) -> Option<Instant> {
        self.0.lock().due()
    }

    fn flush(&mut self) {
        self.0.lock().flush();
    }
}

/// Without the bytes of a character whose beginning is cut off.
pub(super) fn after_boundary(bytes: &[u8]) -> &[u8] {
    let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    &bytes[bytes.iter().take(3).take_while(is_inside).count()..]
}

/// Without the bytes of a character whose end is cut off.
pub(super) fn before_boundary(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(text: &str, times: usize) -> Capture {
        let mut capture = Capture::default();
        for _ in 0..times {
            capture.push(text.as_bytes());
        }
        capture
    }

    #[test]
    fn short_output_is_whole() {
        let short = capture("äb\n", 2);
        assert_eq!(short.for_model(), "äb\näb\n");
        assert_eq!(short.live(), "äb\näb\n");
        assert_eq!(short.into_whole(), None);
        assert_eq!(Capture::default().for_model(), "");
    }

    #[test]
    fn long_output_loses_its_middle() {
        // Three bytes each: no bound falls between two characters.
        let long = capture("äx", 20_000);
        let text = long.for_model();
        assert!(!text.contains('\u{fffd}'));
        assert!(text.starts_with("äx") && text.ends_with("äx"));
        let shown_bytes: usize = text.lines().step_by(2).map(str::len).sum();
        let left_out = text.lines().nth(1).unwrap();
        let expected = format!("[{} bytes left out", group_digits(60_000 - shown_bytes as u64));
        assert!(left_out.starts_with(&expected), "{left_out}");
        assert!(long.live().len() < LIVE_BYTES_MAX + 100);
        assert!(!long.live().contains('\u{fffd}'));
        assert_eq!(long.into_whole(), Some("äx".repeat(20_000).into_bytes()));
    }

    #[test]
    fn endless_output_is_bounded() {
        let chunk = "x".repeat(65_536);
        let mut endless = capture(&chunk, 300);
        endless.push(b"the end");
        assert!(endless.tail.len() <= 5 * SIDE_BYTES_MAX);
        assert!(endless.for_model().ends_with("xthe end"));
        assert!(endless.live().ends_with("xthe end"));
        let whole = endless.into_whole().unwrap();
        let note = format!("\n[{} more bytes were not kept]\n", group_digits(44 * 65_536 + 7));
        assert!(whole.ends_with(note.as_bytes()));
        assert_eq!(whole.len(), WHOLE_BYTES_MAX + note.len());
    }

    #[test]
    fn the_end_reaches_back_into_the_whole() {
        let mut both = capture("x", 1);
        both.whole = vec![b'x'; WHOLE_BYTES_MAX];
        both.total = WHOLE_BYTES_MAX as u64;
        both.push(b"yy");
        assert_eq!(both.end(4), b"xxyy");
        assert_eq!(both.end(1), b"y");
    }
}
