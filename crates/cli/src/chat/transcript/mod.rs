//! A chat as lines: what is settled and printed once, and what still moves.
//!
//! Promises: a settled line never changes; every line is returned once. What still moves is a function of
//! the state, how far it was printed, and the page; what it costs depends on the page, not on the length of the chat.
//! Must not know: terminals.

mod incoming_text;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use client::chat::{AnswerTextKind, TextPosition, TurnEvent, TurnFollower};
use wire::Object;
use wire::state::{ChatState, Outcome};

use self::incoming_text::IncomingText;
use super::line::{Line, Style};
use super::part::{mark, message_lines, part_lines_with};
use super::render::Page;
use super::tool::{
    Detail, References, content_uris, is_asked, is_open_plan, is_written_plan, plan_lines,
    plan_summary, title_lines, tool_lines_with, whole_output,
};
use super::usage::usage_line;
use super::wrap::wrap;
use crate::terminal::escape;

/// Turns of the history that are shown when a chat is opened.
pub(crate) const HISTORY_MAX: usize = 20;
/// Lines shown of a text that waits behind an unfinished part.
const WAITING_LINES_MAX: usize = 6;
/// Steps of a plan that are drawn while it is worked on.
const PLAN_STEPS_MAX: usize = 6;

/// What a chat is shown with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatView<'a> {
    pub(crate) page: Page,
    /// What calls refer to.
    pub(crate) references: &'a References,
    pub(crate) now: Instant,
}

/// What was printed of a chat.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    follower: TurnFollower,
    text: Option<IncomingText>,
    /// What is finished, and waits for contents that it refers to, or behind something that does.
    held: VecDeque<TurnEvent>,
    /// What was printed last, to know where a blank line belongs.
    last: Option<Block>,
    reasoning: ReasoningView,
    /// The call that was finished last.
    last_call: Option<Object>,
    plan: Option<NewestPlan>,
}

/// The plan that was written down last: drawn while a turn runs, printed when it ends.
#[derive(Debug)]
struct NewestPlan {
    call: Object,
    /// It was written down in the turn that runs.
    is_new: bool,
}

/// How reasoning is shown.
#[derive(Debug, Default)]
struct ReasoningView {
    is_open: bool,
    /// The reasoning that was folded last.
    folded: Option<String>,
}

/// A call with nothing folded.
#[derive(Debug, Default)]
pub(crate) struct UnfoldedCall {
    pub(crate) lines: Vec<Line>,
    /// Where the whole of what it printed is stored, if that is more than is in the lines.
    pub(crate) output: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Message,
    Text,
    /// Tool calls, questions, notices of one line: they stand together.
    Part,
    /// One of several lines, which stands by itself.
    TallPart,
    Ending,
}

impl Block {
    fn of_part(lines: &[Line]) -> Self {
        match lines.len() {
            0 | 1 => Self::Part,
            _ => Self::TallPart,
        }
    }
}

impl Transcript {
    /// One that begins below other lines.
    pub(crate) fn below() -> Self {
        Self { last: Some(Block::Ending), ..Self::default() }
    }

    /// One that goes on from here: what the chat holds is taken for printed.
    pub(crate) fn after(chat: &ChatState) -> Self {
        let mut transcript = Self::below();
        transcript.follower.skip(chat);
        transcript
    }

    /// The lines that have settled since the last look.
    pub(crate) fn settle(&mut self, chat: &ChatState, view: &ChatView<'_>) -> Vec<Line> {
        let mut lines = Vec::new();
        self.held.extend(self.follower.follow(chat, HISTORY_MAX));
        while let Some(event) = self.held.pop_front() {
            if is_waiting(&event, view.references) {
                self.held.push_front(event);
                break;
            }
            self.take(event, view, &mut lines);
        }
        lines
    }

    /// All lines that a chat has, also those of calls whose contents are not here.
    pub(crate) fn settle_all(&mut self, chat: &ChatState, view: &ChatView<'_>) -> Vec<Line> {
        let mut lines = self.settle(chat, view);
        while let Some(event) = self.held.pop_front() {
            self.take(event, view, &mut lines);
        }
        lines
    }

    /// The contents that are needed to show what is asked, and the first call that is finished and waits for its own.
    pub(crate) fn needed_contents(&self, asked: Option<&Object>) -> Vec<String> {
        let held = self.held.front().and_then(|event| match event {
            TurnEvent::Part(part) => Some(part),
            _ => None,
        });
        let parts = asked.into_iter().chain(held);
        let calls = parts.filter_map(|part| part.get("toolCall")?.as_object());
        calls.flat_map(content_uris).collect()
    }

    /// The lines that still move, after everything that settled, without what is asked: that stands where it is decided on. Of other
    /// calls that wait for a decision there is only the name, so that none of them passes for what is asked.
    pub(crate) fn moving(
        &self,
        chat: &ChatState,
        asked: Option<&Object>,
        view: &ChatView<'_>,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut last = self.last;
        for event in &self.held {
            if let TurnEvent::Part(part) = event {
                let part = part_lines_with(part, view.page, Detail::Brief, view.references);
                gap(&mut last, Block::of_part(&part), &mut lines);
                lines.extend(part);
            }
        }
        // Texts among what is held are about to be printed; what is not finished goes on meanwhile.
        let mut open = self.follower.open_parts(chat).into_iter();
        if let Some(text) = &self.text {
            let (block, text_lines) = text.moving(view);
            if !text_lines.is_empty() {
                if !text.has_begun() {
                    gap(&mut last, block, &mut lines);
                }
                lines.extend(text_lines);
            }
            open.next();
        }
        for part in open.filter(|part| !asked.is_some_and(|asked| is_same_part(part, asked))) {
            let width = view.page.width;
            let call = part.get("toolCall").and_then(|call| call.as_object());
            let (block, part) = match (text_of(part), call) {
                (Some((kind, text)), _) => (Block::Text, waiting_text(kind, text, width)),
                (None, Some(call)) if asked.is_some() && is_asked(call) => {
                    (Block::Part, title_lines(call, width))
                }
                (None, _) => {
                    let lines = part_lines_with(part, view.page, Detail::Brief, view.references);
                    (Block::of_part(&lines), lines)
                }
            };
            if !part.is_empty() {
                gap(&mut last, block, &mut lines);
                lines.extend(part);
            }
        }
        if let Some(plan) = self.plan.as_ref().filter(|_| chat.active_turn.is_some()) {
            gap(&mut last, Block::TallPart, &mut lines);
            lines.extend(plan_lines(&plan.call, view.page.width, PLAN_STEPS_MAX));
        }
        lines
    }

    /// The call that was finished last, if there was one.
    pub(crate) fn last_call(&self) -> Option<&Object> {
        self.last_call.as_ref()
    }

    /// The whole of the call that was finished last.
    pub(crate) fn unfold_last_call(&self, view: &ChatView<'_>) -> UnfoldedCall {
        let call = self.last_call.as_ref();
        call.map_or_else(UnfoldedCall::default, |call| UnfoldedCall {
            lines: tool_lines_with(call, view.page, Detail::Unfolded, view.references),
            output: whole_output(call),
        })
    }

    /// Shows reasoning from now on, or folds it; what was folded last is returned to be printed.
    pub(crate) fn toggle_reasoning(&mut self, page: Page) -> Vec<Line> {
        self.reasoning.is_open = !self.reasoning.is_open;
        if !self.reasoning.is_open {
            return Vec::new(); // nothing is taken back
        }
        let folded = self.reasoning.folded.take();
        folded.map_or_else(Vec::new, |text| {
            let lines = wrap(escape(&text).trim(), page.width).into_iter();
            lines.map(|line| Line::new(Style::Dim, line)).collect()
        })
    }

    pub(crate) fn is_reasoning_shown(&self) -> bool {
        self.reasoning.is_open
    }

    fn take(&mut self, event: TurnEvent, view: &ChatView<'_>, lines: &mut Vec<Line>) {
        let width = view.page.width;
        match event {
            TurnEvent::Omitted { turns } => {
                let text = match turns {
                    0 => "earlier turns are not shown".to_owned(),
                    1 => "1 earlier turn is not shown".to_owned(),
                    more => format!("{more} earlier turns are not shown"),
                };
                self.block(Block::Part, mark("· ", Style::Dim, &text, width), lines);
            }
            TurnEvent::Started { message, .. } => {
                let message = message_lines(&message, Style::Bold, width);
                self.block(Block::Message, message, lines);
            }
            TurnEvent::Resumed => {
                let resumed = mark("· ", Style::Dim, "resumed", width);
                self.block(Block::Ending, resumed, lines);
            }
            TurnEvent::Text { kind, position, text } => {
                if position == TextPosition::Start {
                    self.text = Some(IncomingText::new(kind, view.now));
                }
                self.add_text(&text, view, lines);
            }
            TurnEvent::TextEnded => self.end_text(view, lines),
            TurnEvent::Part(part) => self.take_part(&part, view, lines),
            TurnEvent::Ended { outcome, usage, duration_ms, .. } => {
                // An error is shown by its part.
                let mut ending = match outcome {
                    Outcome::Cancelled => mark("⊘ ", Style::Warn, "cancelled", width),
                    Outcome::Complete | Outcome::Error { .. } => Vec::new(),
                };
                ending.extend(usage_line(usage.as_ref(), duration_ms));
                self.end_plan(width, lines);
                self.block(Block::Ending, ending, lines);
            }
            TurnEvent::Rewound => {
                let text = "Rewound: messages above no longer count";
                self.block(Block::Ending, mark("⊘ ", Style::Warn, text, width), lines);
            }
        }
    }

    fn take_part(&mut self, part: &Object, view: &ChatView<'_>, lines: &mut Vec<Line>) {
        let width = view.page.width;
        let call = part.get("toolCall").and_then(|call| call.as_object());
        let shown = match call.filter(|call| is_written_plan(call)) {
            // The list itself is drawn below as long as it is worked on.
            Some(plan) => {
                self.plan = Some(NewestPlan { call: plan.clone(), is_new: true });
                vec![plan_summary(plan, width)]
            }
            None => part_lines_with(part, view.page, Detail::Brief, view.references),
        };
        self.block(Block::Part, shown, lines);
        if let Some(call) = call {
            self.last_call = Some(call.clone());
        }
    }

    /// Prints the plan of a turn that is over, as it was left. One that is done is not drawn any more.
    fn end_plan(&mut self, width: usize, lines: &mut Vec<Line>) {
        let Some(plan) = &mut self.plan else {
            return; // there is none
        };
        if std::mem::take(&mut plan.is_new) {
            let steps = plan_lines(&plan.call, width, usize::MAX);
            let is_open = is_open_plan(&plan.call);
            self.plan.take_if(|_| !is_open);
            self.block(Block::TallPart, steps, lines);
        }
    }

    fn add_text(&mut self, more: &str, view: &ChatView<'_>, lines: &mut Vec<Line>) {
        debug_assert!(self.text.is_some(), "a text starts before it continues");
        match &mut self.text {
            Some(IncomingText::Markdown { text, has_begun }) => {
                let more = text.push(more, view.page);
                begin_text(has_begun, &mut self.last, &more, lines);
                lines.extend(more);
            }
            Some(IncomingText::Reasoning(reasoning)) => {
                reasoning.push(more);
                if self.reasoning.is_open {
                    let was_begun = reasoning.has_begun();
                    let more = reasoning.settle(view.page.width);
                    if !was_begun && !more.is_empty() {
                        gap(&mut self.last, Block::Text, lines);
                    }
                    lines.extend(more);
                }
            }
            None => {} // without a start there is nothing to continue
        }
    }

    fn end_text(&mut self, view: &ChatView<'_>, lines: &mut Vec<Line>) {
        match self.text.take() {
            Some(IncomingText::Markdown { text, mut has_begun }) => {
                let rest = text.finish(view.page);
                begin_text(&mut has_begun, &mut self.last, &rest, lines);
                lines.extend(rest);
            }
            Some(IncomingText::Reasoning(mut reasoning)) if self.reasoning.is_open => {
                let was_begun = reasoning.has_begun();
                let rest = reasoning.finish(view.page.width);
                if !was_begun && !rest.is_empty() {
                    gap(&mut self.last, Block::Text, lines);
                }
                lines.extend(rest);
            }
            Some(IncomingText::Reasoning(reasoning)) => {
                let summary = reasoning.summary(view.now);
                self.block(Block::Part, summary.into_iter().collect(), lines);
                self.reasoning.folded = Some(reasoning.into_text());
            }
            None => {} // a text that was never begun
        }
    }

    fn block(&mut self, block: Block, block_lines: Vec<Line>, lines: &mut Vec<Line>) {
        let block = match block {
            Block::Part => Block::of_part(&block_lines),
            block => block,
        };
        if !block_lines.is_empty() {
            gap(&mut self.last, block, lines);
            lines.extend(block_lines);
        }
    }
}

/// Whether an event cannot be shown yet.
fn is_waiting(event: &TurnEvent, references: &References) -> bool {
    match event {
        TurnEvent::Part(part) => {
            let call = part.get("toolCall").and_then(|call| call.as_object());
            call.is_some_and(|call| !references.is_complete(call))
        }
        _ => false,
    }
}

/// Whether both are the same call or the same request, as it was and as it is.
fn is_same_part(one: &Object, other: &Object) -> bool {
    let id = |part: &Object| {
        let call = part.get("toolCall").map(|call| call["toolCallId"].clone());
        let request = part.get("request").map(|request| request["id"].clone());
        call.or(request)
    };
    id(one).is_some_and(|one| Some(one) == id(other))
}

/// A blank line before the first line of a text.
fn begin_text(
    has_begun: &mut bool,
    last: &mut Option<Block>,
    more: &[Line],
    lines: &mut Vec<Line>,
) {
    if !*has_begun && !more.is_empty() {
        *has_begun = true;
        gap(last, Block::Text, lines);
    }
}

/// A blank line between what does not belong together.
fn gap(last: &mut Option<Block>, next: Block, lines: &mut Vec<Line>) {
    let together = matches!((*last, next), (None, _) | (Some(Block::Part), Block::Part));
    if !together {
        lines.push(Line::default());
    }
    *last = Some(next);
}

fn text_of(part: &Object) -> Option<(AnswerTextKind, &str)> {
    let kind = match part.get("kind")?.as_str() {
        Some("markdown") => AnswerTextKind::Markdown,
        Some("reasoning") => AnswerTextKind::Reasoning,
        _ => return None,
    };
    Some((kind, part.get("content")?.as_str()?))
}

/// The end of a text that cannot be printed yet.
fn waiting_text(kind: AnswerTextKind, text: &str, width: usize) -> Vec<Line> {
    // No more of it than can be shown is worth looking at.
    let bytes = width.saturating_mul(4 * WAITING_LINES_MAX);
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    let end = text.get(from..).unwrap_or("");
    let lines = wrap(escape(end).trim(), width);
    let above = lines.len().saturating_sub(WAITING_LINES_MAX);
    let style = match kind {
        AnswerTextKind::Markdown => Style::Plain,
        AnswerTextKind::Reasoning => Style::Dim,
    };
    lines.into_iter().skip(above).map(|line| Line::new(style, line)).collect()
}
