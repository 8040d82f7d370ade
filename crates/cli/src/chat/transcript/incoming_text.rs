//! A text that is coming in: what is not settled of it.
//!
//! Must not know: terminals, what stands before it.

use std::time::Instant;

use client::chat::AnswerTextKind;

use super::{Block, ChatView};
use crate::chat::line::Line;
use crate::chat::reasoning::ReasoningText;
use crate::chat::render::MarkdownText;

/// How much of the screen the open end of an answer takes: if the screen is made smaller, what was drawn of it must still fit,
/// or it could not be erased.
const OPEN_SHARE: usize = 3;
const OPEN_ROWS_MIN: usize = 4;

/// The text part that is coming in.
#[derive(Debug)]
pub(super) enum IncomingText {
    Markdown { text: Box<MarkdownText>, has_begun: bool },
    Reasoning(ReasoningText),
}

impl IncomingText {
    pub(super) fn new(kind: AnswerTextKind, now: Instant) -> Self {
        match kind {
            AnswerTextKind::Markdown => Self::Markdown { text: Box::default(), has_begun: false },
            AnswerTextKind::Reasoning => Self::Reasoning(ReasoningText::new(now)),
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        match self {
            Self::Markdown { has_begun, .. } => *has_begun,
            Self::Reasoning(reasoning) => reasoning.has_begun(),
        }
    }

    /// What is not settled of it.
    pub(super) fn moving(&self, view: &ChatView<'_>) -> (Block, Vec<Line>) {
        match self {
            Self::Markdown { text, .. } => {
                let rows_max = (view.page.rows / OPEN_SHARE).max(OPEN_ROWS_MIN);
                (Block::Text, text.open_lines(view.page, rows_max))
            }
            Self::Reasoning(reasoning) => {
                let line = reasoning.open_line(view.page.width, view.now);
                (Block::Part, line.into_iter().collect())
            }
        }
    }
}
