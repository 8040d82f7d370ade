//! What a terminal has to say, for whoever reads it late: as it came while that is little, as one drawing of the screen when it
//! is more than can be sent.
//!
//! Promises: what waits is bounded, whatever is printed; the screen of a reader that applies all of it is the terminal's. What is
//! sent from one clearing to the next is bounded too: before it gets too long the terminal is cleared and drawn again.
//! Must not know: processes, threads, clocks.

use std::time::{Duration, Instant};

use crate::child::CommandEnd;
use crate::decoder::Utf8Decoder;
use crate::integration::{IntegrationMark, IntegrationParser, OutputPiece};
use crate::screen::ScreenModel;
use crate::sequence_guard::SequenceGuard;
use crate::size::TerminalSize;

#[cfg(test)]
mod tests;

/// Text that may wait as it came; of more, only the screen is drawn.
const WAITING_BYTES_MAX: usize = 64 * 1_024;

/// Text that is sent as it came in a second, and how much of it at once.
const SENT_BYTES_PER_SECOND: usize = 1 << 20;
const SENT_AT_ONCE_BYTES: usize = 512 * 1_024;

/// How often the screen is drawn while output is left out.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Text after which the terminal is cleared and drawn again. With what waits and a drawing below the 4 Mi characters of G-56.
const SENT_BYTES_MAX: usize = 3 << 20;

/// Text of a terminal that is over; of a longer one what it shows is kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Other things that may wait; with more, nothing is read any more until somebody takes them.
const EVENTS_MAX: usize = 256;

/// What happens in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    Data(String),
    /// All that was sent before is to be forgotten; what is shown follows.
    Cleared,
    /// From now on commands are reported.
    CommandDetection,
    CommandStarted {
        id: String,
        line: String,
        /// In milliseconds since 1970.
        at: u64,
    },
    CommandFinished {
        id: String,
        exit_code: Option<i32>,
        duration: Duration,
    },
    Title(String),
    /// The shell is in this directory now.
    Directory(String),
    /// The last.
    Ended(CommandEnd),
}

/// What waits to be taken.
#[derive(Debug, Default)]
pub(crate) struct WaitingOutput {
    items: Vec<TerminalEvent>,
    bytes: usize,
}

impl WaitingOutput {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= EVENTS_MAX
    }

    pub(crate) fn take(&mut self) -> Vec<TerminalEvent> {
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }

    fn add(&mut self, output: TerminalEvent) {
        if let TerminalEvent::Data(text) = &output {
            self.bytes += text.len();
            if let Some(TerminalEvent::Data(last)) = self.items.last_mut() {
                last.push_str(text);
                return; // one text is enough
            }
        }
        self.items.push(output);
    }

    fn drop_data(&mut self) {
        let is_kept = |item: &TerminalEvent| !matches!(item, TerminalEvent::Data(_));
        self.items.retain(is_kept);
        self.bytes = 0;
    }
}

/// Makes output of what is read from a terminal.
pub(crate) struct Coalescer {
    integration: IntegrationParser,
    decoder: Utf8Decoder,
    guard: SequenceGuard,
    screen: ScreenModel,
    /// The command that runs: its id, its line, and since when.
    running: Option<RunningCommand>,
    commands: u64,
    title: Option<String>,
    directory: Option<String>,
    is_detecting: bool,
    /// Text since the last clearing.
    sent_bytes: usize,
    /// Output is left out until the screen is drawn.
    is_behind: bool,
    drawn: Option<Instant>,
    /// What may be sent as it came, and since when that was not counted.
    allowance: usize,
    counted: Option<Instant>,
}

struct RunningCommand {
    id: String,
    line: String,
    at: u64,
    since: Instant,
}

impl Coalescer {
    pub(crate) fn new(nonce: String, size: TerminalSize) -> Self {
        Self {
            integration: IntegrationParser::new(nonce),
            decoder: Utf8Decoder::default(),
            guard: SequenceGuard::default(),
            screen: ScreenModel::new(size),
            running: None,
            commands: 0,
            title: None,
            directory: None,
            is_detecting: false,
            sent_bytes: 0,
            is_behind: false,
            drawn: None,
            allowance: SENT_AT_ONCE_BYTES,
            counted: None,
        }
    }

    /// Whether more comes than can be sent.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Takes what was read; `at` is the time of day. Returns what to tell, which goes to [`Coalescer::tell`].
    pub(crate) fn read(&mut self, bytes: &[u8], now: Instant, at: u64) -> Vec<TerminalEvent> {
        let mut events = Vec::new();
        for piece in self.integration.push(bytes) {
            match piece {
                OutputPiece::Bytes(bytes) => self.read_bytes(&bytes, &mut events),
                OutputPiece::Mark(mark) => self.read_mark(mark, now, at, &mut events),
            }
        }
        events
    }

    fn read_bytes(&mut self, bytes: &[u8], events: &mut Vec<TerminalEvent>) {
        let text = self.decoder.decode(bytes);
        let text = self.guard.pass(&text);
        self.read_text(text, events);
    }

    /// The screen is drawn from the very text that is events: all who read it see the same.
    fn read_text(&mut self, text: String, events: &mut Vec<TerminalEvent>) {
        self.screen.process(text.as_bytes());
        if let Some(title) = self.screen.take_title()
            && self.title.as_ref() != Some(&title)
        {
            self.title = Some(title.clone());
            events.push(TerminalEvent::Title(title));
        }
        if !self.is_behind && !text.is_empty() {
            events.push(TerminalEvent::Data(text));
        }
    }

    fn read_mark(
        &mut self,
        mark: IntegrationMark,
        now: Instant,
        at: u64,
        events: &mut Vec<TerminalEvent>,
    ) {
        if !std::mem::replace(&mut self.is_detecting, true) {
            events.push(TerminalEvent::CommandDetection);
        }
        match mark {
            IntegrationMark::Loaded => {}
            IntegrationMark::Started(line) => {
                self.finish_command(None, now, events);
                self.commands += 1;
                let id = format!("c{}", self.commands);
                let (started_id, started_line) = (id.clone(), line.clone());
                let since = now;
                self.running = Some(RunningCommand { id, line, at, since });
                events.push(TerminalEvent::CommandStarted {
                    id: started_id,
                    line: started_line,
                    at,
                });
            }
            IntegrationMark::Ended(exit_code) => self.finish_command(exit_code, now, events),
            IntegrationMark::Directory(directory) => {
                if self.directory.as_ref() != Some(&directory) {
                    self.directory = Some(directory.clone());
                    events.push(TerminalEvent::Directory(directory));
                }
            }
        }
    }

    fn finish_command(
        &mut self,
        exit_code: Option<i32>,
        now: Instant,
        events: &mut Vec<TerminalEvent>,
    ) {
        let Some(running) = self.running.take() else {
            return; // a prompt that follows no command
        };
        if std::mem::take(&mut self.is_behind) {
            // The end of its output belongs to it.
            events.push(TerminalEvent::Data(self.draw(now)));
        }
        events.push(TerminalEvent::CommandFinished {
            id: running.id,
            exit_code,
            duration: now.saturating_duration_since(running.since),
        });
    }

    /// Adds events to those that wait, and leaves out what is too much.
    pub(crate) fn queue(
        &mut self,
        events: Vec<TerminalEvent>,
        now: Instant,
        waiting: &mut WaitingOutput,
    ) {
        self.count_time(now);
        let mut is_too_much = false;
        for output in events {
            if let TerminalEvent::Data(text) = &output {
                self.sent_bytes += text.len();
                is_too_much |= text.len() > self.allowance;
                self.allowance = self.allowance.saturating_sub(text.len());
            }
            waiting.add(output);
        }
        if is_too_much || waiting.bytes > WAITING_BYTES_MAX {
            waiting.drop_data();
            self.is_behind = true;
        }
    }

    fn count_time(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(*self.counted.get_or_insert(now));
        let more = passed.as_millis() as usize * (SENT_BYTES_PER_SECOND / 1_000);
        if more > 0 {
            self.allowance = self.allowance.saturating_add(more).min(SENT_AT_ONCE_BYTES);
            self.counted = Some(now);
        }
    }

    /// When [`Coalescer::catch_up`] is to be called, if something waits to be drawn.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        self.is_behind.then(|| self.drawn.map_or(now, |drawn| drawn + DRAW_EVERY))
    }

    /// Draws the screen if output was left out and all that was sent is taken; clears if too much was sent.
    pub(crate) fn catch_up(&mut self, now: Instant, waiting: &mut WaitingOutput) {
        if self.sent_bytes > SENT_BYTES_MAX {
            waiting.drop_data();
            self.is_behind = false;
            waiting.add(TerminalEvent::Cleared);
            if let Some(running) = &self.running {
                waiting.add(TerminalEvent::CommandStarted {
                    id: running.id.clone(),
                    line: running.line.clone(),
                    at: running.at,
                });
            }
            let drawn = self.draw(now);
            self.sent_bytes = drawn.len();
            waiting.add(TerminalEvent::Data(drawn));
        } else if waiting.is_empty() && self.due(now).is_some_and(|due| due <= now) {
            self.is_behind = false;
            let drawn = self.draw(now);
            self.sent_bytes += drawn.len();
            waiting.add(TerminalEvent::Data(drawn));
        }
    }

    fn draw(&mut self, now: Instant) -> String {
        self.drawn = Some(now);
        let mut drawn = self.screen.repaint();
        drawn.push_str(self.guard.reopen());
        drawn
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.screen.resize(size);
    }

    /// Somebody cleared the terminal: what was sent before is forgotten.
    pub(crate) fn clear(&mut self) {
        self.screen.clear();
        self.sent_bytes = 0;
    }

    /// What was sent before is lost: all is sent again.
    pub(crate) fn redraw(&mut self) {
        self.sent_bytes = SENT_BYTES_MAX + 1;
    }

    /// The last words, when nothing more will be read.
    pub(crate) fn finish(&mut self, end: CommandEnd, now: Instant, waiting: &mut WaitingOutput) {
        if self.sent_bytes > KEPT_BYTES_MAX {
            // What is over is kept for long.
            self.redraw();
            self.catch_up(now, waiting);
        }
        let mut events = Vec::new();
        let rest = self.integration.finish();
        self.read_bytes(&rest, &mut events);
        if let Some(cut) = self.decoder.finish() {
            let text = self.guard.pass(&cut.to_string());
            self.read_text(text, &mut events);
        }
        let rest = self.guard.finish();
        self.read_text(rest, &mut events);
        self.queue(events, now, waiting);
        let mut events = Vec::new();
        self.finish_command(None, now, &mut events);
        if std::mem::take(&mut self.is_behind) {
            events.push(TerminalEvent::Data(self.draw(now)));
        }
        events.push(TerminalEvent::Ended(end));
        for output in events {
            waiting.add(output);
        }
    }
}
