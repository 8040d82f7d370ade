//! What a command of an agent printed, from the end and bounded, and how it ended (AG-52).

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use terminals::{CommandEnd, OutputSink};

/// What is shown of a command that is over. A turn may run thousands, and each is kept with its call.
const PREVIEW_BYTES_MAX: usize = 64 * 1_024;

/// The end of what a command printed.
#[derive(Clone)]
pub(super) struct OutputTail(Arc<Mutex<TailState>>);

struct TailState {
    bytes: Vec<u8>,
    most: usize,
    is_cut: bool,
    end: Option<CommandEnd>,
}

impl OutputTail {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(TailState { bytes: Vec::new(), most, is_cut: false, end: None })))
    }

    /// The command is over.
    pub(super) fn set_end(&self, end: CommandEnd) {
        self.0.lock().end = Some(end);
    }

    /// As much of its end as is shown with the call; the agent reads all of it.
    pub(super) fn preview(&self) -> String {
        self.0.lock().text(PREVIEW_BYTES_MAX).0
    }

    pub(super) fn to_answer(&self) -> Value {
        let state = self.0.lock();
        let (output, truncated) = state.text(state.most);
        let mut answer = json!({"output": output, "truncated": truncated});
        if let Some(end) = state.end {
            answer["exitStatus"] = exit_of(end);
        }
        answer
    }
}

impl TailState {
    /// The text within a bound, and whether something is missing before it.
    fn text(&self, most: usize) -> (String, bool) {
        let whole = String::from_utf8_lossy(&self.bytes);
        let from = whole.ceil_char_boundary(whole.len().saturating_sub(most.min(self.most)));
        let text = whole.get(from..).unwrap_or_default().to_owned();
        (text, self.is_cut || from > 0)
    }
}

impl OutputSink for OutputTail {
    fn push(&mut self, bytes: &[u8]) {
        let mut state = self.0.lock();
        state.bytes.extend_from_slice(bytes);
        // Cut now and then, not with every line.
        if state.bytes.len() > state.most.saturating_mul(2).max(64 * 1_024) {
            let mut cut = state.bytes.len() - state.most;
            // Not in the middle of a character.
            while state.bytes.get(cut).is_some_and(|byte| byte & 0xc0 == 0x80) {
                cut += 1;
            }
            state.bytes.drain(..cut);
            state.is_cut = true;
        }
    }
}

pub(super) fn exit_of(end: CommandEnd) -> Value {
    match end {
        CommandEnd::Exited(code) => json!({"exitCode": code, "signal": null}),
        CommandEnd::Signalled(signal) => json!({"exitCode": null, "signal": signal.to_string()}),
        CommandEnd::TimedOut(_) => json!({"exitCode": null, "signal": "9"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ag_52_the_end_of_the_output_is_kept_in_whole_characters() {
        let mut tail = OutputTail::new(10);
        for _ in 0..100_000 {
            tail.push("äö".as_bytes());
        }
        tail.push(b"end");
        let state = tail.0.lock();
        assert!(state.bytes.len() <= 128 * 1_024);
        assert_eq!(state.text(10), ("öäöend".to_owned(), true));
        let mut nothing = OutputTail::new(0);
        nothing.push(b"x");
        assert_eq!(nothing.to_answer()["output"], "");
    }
}
