//! A model's reasoning while it comes in: one line that says how long it takes, or all of it.
//!
//! Must not know: terminals, turns, the clock.

use std::time::{Duration, Instant};

use super::line::{Line, Style};
use super::wrap::{UnfinishedText, wrap};
use crate::format::format_duration;
use crate::terminal::{escape, escape_line};

#[derive(Debug)]
pub(crate) struct ReasoningText {
    text: String,
    began: Instant,
    /// What of it is being printed, if it is not folded.
    tail: UnfinishedText,
    /// How much of the text is in there.
    fed: usize,
    has_begun: bool,
}

impl ReasoningText {
    pub(crate) fn new(began: Instant) -> Self {
        Self {
            text: String::new(),
            began,
            tail: UnfinishedText::default(),
            fed: 0,
            has_begun: false,
        }
    }

    pub(crate) fn push(&mut self, more: &str) {
        self.text.push_str(more);
    }

    /// Whether lines of it were printed.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Where it is not folded: the lines that are finished.
    pub(crate) fn settle(&mut self, width: usize) -> Vec<Line> {
        let more = self.text.get(self.fed..).unwrap_or("");
        let more = if self.fed == 0 { more.trim_start() } else { more };
        self.tail.push(&escape(more));
        self.fed = self.text.len();
        let lines = self.tail.take_settled(width);
        self.has_begun |= !lines.is_empty();
        dim(lines)
    }

    /// Where it is not folded: the last lines.
    pub(crate) fn finish(&mut self, width: usize) -> Vec<Line> {
        let mut lines = self.settle(width);
        let rest = self.tail.take_rest().unwrap_or_default();
        lines.extend(dim(wrap(&rest, width)));
        self.has_begun |= !lines.is_empty();
        lines
    }

    /// The line that stands for it while it comes in: how long it has taken, and its last words.
    pub(crate) fn open_line(&self, width: usize, now: Instant) -> Option<Line> {
        if self.text.trim().is_empty() {
            return None; // nothing was thought yet
        }
        let took = seconds(now.saturating_duration_since(self.began));
        let before = Line::new(Style::Dim, format!("∴ thinking{took}: "));
        let room = width.saturating_sub(before.width() + 1);
        let last = self.text.trim_end().rsplit('\n').next().unwrap_or("");
        let chars: Vec<char> = last.chars().rev().take(room).collect();
        let words: String = chars.into_iter().rev().collect();
        Some(before.then(Style::Dim, escape_line(&words)).clip(width))
    }

    /// The line that stands for it from then on.
    pub(crate) fn summary(&self, now: Instant) -> Option<Line> {
        if self.text.trim().is_empty() {
            return None; // nothing was thought
        }
        let took = match seconds(now.saturating_duration_since(self.began)) {
            took if took.is_empty() => took,
            took => format!(" for{took}"),
        };
        Some(Line::new(Style::Dim, format!("∴ thought{took} (Ctrl-T)")))
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Nothing for less than a second: what is there when a chat is opened took no time here.
fn seconds(took: Duration) -> String {
    match i64::try_from(took.as_secs()).unwrap_or(i64::MAX) {
        0 => String::new(),
        seconds => format!(" {}", format_duration(seconds)),
    }
}

fn dim(lines: Vec<String>) -> Vec<Line> {
    lines.into_iter().map(|line| Line::new(Style::Dim, line)).collect()
}
