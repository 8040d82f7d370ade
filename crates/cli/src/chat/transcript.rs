//! A chat as lines: what is settled and printed once, and what still moves.
//!
//! Promises: a settled line never changes; every line is returned once. What still moves is a function of
//! the state, how far it was printed, and the width.
//! Must not know: terminals.

use client::chat::{TextKind, TextPosition, TurnEvent, TurnFollower};
use wire::Object;
use wire::state::{ChatState, Outcome};

use super::line::{Line, Style};
use super::part::{mark, message_lines, part_lines};
use super::tool::{Detail, tool_lines};
use super::wrap::{UnfinishedText, wrap};
use crate::terminal::escape;

/// Turns of the history that are shown when a chat is opened.
pub(crate) const HISTORY_MAX: usize = 20;
/// Lines shown of a text that waits behind an unfinished part.
const WAITING_LINES_MAX: usize = 6;

/// What was printed of a chat.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    follower: TurnFollower,
    text: Option<IncomingText>,
    /// What was printed last, to know where a blank line belongs.
    last: Option<Block>,
}

/// The text part that is coming in.
#[derive(Debug)]
struct IncomingText {
    kind: TextKind,
    tail: UnfinishedText,
    /// Blank lines that are printed only if something follows.
    blank: usize,
    has_begun: bool,
}

/// All that there is to see of a call.
#[derive(Debug, Default)]
pub(crate) struct WholeCall {
    pub(crate) lines: Vec<Line>,
    /// Whether less of it is drawn in the live area.
    pub(crate) is_cut: bool,
}

impl WholeCall {
    /// A call of another chat, whole, if that is more than is shown in brief.
    pub(crate) fn of_part(part: &Object, width: usize) -> Self {
        let lines = part_lines(part, width, Detail::Whole);
        Self {
            is_cut: lines != part_lines(part, width, Detail::Brief),
            lines,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Message,
    Text,
    /// Tool calls, questions, notices: they stand together.
    Part,
    Ending,
}

impl Transcript {
    /// One that begins below other lines.
    pub(crate) fn below() -> Self {
        Self {
            last: Some(Block::Ending),
            ..Self::default()
        }
    }

    /// One that goes on from here: what the chat holds is taken for printed.
    pub(crate) fn after(chat: &ChatState) -> Self {
        let mut transcript = Self::below();
        transcript.follower.skip(chat);
        transcript
    }

    /// The lines that have settled since the last look.
    pub(crate) fn settle(&mut self, chat: &ChatState, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for event in self.follower.follow(chat, HISTORY_MAX) {
            self.take(event, width, &mut lines);
        }
        lines
    }

    /// The lines that still move, after everything that settled.
    pub(crate) fn moving(&self, chat: &ChatState, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut last = self.last;
        let mut open = self.follower.open_parts(chat).into_iter();
        if let Some(text) = &self.text {
            if let Some(rest) = text.tail.rest() {
                if !text.has_begun {
                    gap(&mut last, Block::Text, &mut lines);
                }
                lines.extend((0..text.blank).map(|_| Line::default()));
                let style = style_of(text.kind);
                // One line, unless the terminal became narrower.
                lines.extend(
                    wrap(rest, width)
                        .into_iter()
                        .map(|line| Line::new(style, line)),
                );
            }
            open.next();
        }
        for part in open {
            let (block, part) = match text_of(part) {
                Some((kind, text)) => (Block::Text, waiting_text(kind, text, width)),
                None => (Block::Part, part_lines(part, width, Detail::Brief)),
            };
            if !part.is_empty() {
                gap(&mut last, block, &mut lines);
                lines.extend(part);
            }
        }
        lines
    }

    /// A call that is not over, whole where it waits for a decision, if that is more than `moving` shows of it.
    pub(crate) fn whole_call(&self, chat: &ChatState, call_id: &str, width: usize) -> WholeCall {
        let parts = self.follower.open_parts(chat).into_iter();
        let mut calls = parts.filter_map(|part| part["toolCall"].as_object());
        let Some(call) = calls.find(|call| call["toolCallId"] == call_id) else {
            // It was decided meanwhile.
            return WholeCall::default();
        };
        let lines = tool_lines(call, width, Detail::Whole);
        WholeCall {
            is_cut: lines != tool_lines(call, width, Detail::Brief),
            lines,
        }
    }

    fn take(&mut self, event: TurnEvent, width: usize, lines: &mut Vec<Line>) {
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
            TurnEvent::Resumed => self.block(
                Block::Ending,
                mark("· ", Style::Dim, "resumed", width),
                lines,
            ),
            TurnEvent::Text {
                kind,
                position,
                text,
            } => {
                if position == TextPosition::Start {
                    self.text = Some(IncomingText {
                        kind,
                        tail: UnfinishedText::default(),
                        blank: 0,
                        has_begun: false,
                    });
                }
                self.add_text(&text, width, lines);
            }
            TurnEvent::TextEnded => {
                if let Some(mut text) = self.text.take() {
                    let rest = text.tail.take_rest().unwrap_or_default();
                    for line in wrap(&rest, width) {
                        text.line(line, &mut self.last, lines);
                    }
                }
            }
            TurnEvent::Part(part) => {
                self.block(Block::Part, part_lines(&part, width, Detail::Brief), lines)
            }
            TurnEvent::Ended {
                outcome: Outcome::Cancelled,
                ..
            } => {
                let cancelled = mark("⊘ ", Style::Warn, "cancelled", width);
                self.block(Block::Ending, cancelled, lines);
            }
            // An error is shown by its part.
            TurnEvent::Ended {
                outcome: Outcome::Complete | Outcome::Error { .. },
                ..
            } => {}
            TurnEvent::Rewound => {
                let text = "Rewound: messages above no longer count";
                self.block(Block::Ending, mark("⊘ ", Style::Warn, text, width), lines);
            }
        }
    }

    fn add_text(&mut self, more: &str, width: usize, lines: &mut Vec<Line>) {
        debug_assert!(self.text.is_some(), "a text starts before it continues");
        let Some(text) = &mut self.text else {
            return; // without a start there is nothing to continue
        };
        text.tail.push(&escape(more));
        for line in text.tail.take_settled(width) {
            text.line(line, &mut self.last, lines);
        }
    }

    fn block(&mut self, block: Block, block_lines: Vec<Line>, lines: &mut Vec<Line>) {
        if !block_lines.is_empty() {
            gap(&mut self.last, block, lines);
            lines.extend(block_lines);
        }
    }
}

impl IncomingText {
    /// A line of the text has settled. Blank lines at its beginning and end are left out.
    fn line(&mut self, line: String, last: &mut Option<Block>, lines: &mut Vec<Line>) {
        if line.is_empty() {
            self.blank += usize::from(self.has_begun);
            return; // printed only if something follows
        }
        if !self.has_begun {
            self.has_begun = true;
            gap(last, Block::Text, lines);
        }
        let blank = std::mem::take(&mut self.blank);
        lines.extend((0..blank).map(|_| Line::default()));
        lines.push(Line::new(style_of(self.kind), line));
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

fn style_of(kind: TextKind) -> Style {
    match kind {
        TextKind::Markdown => Style::Plain,
        TextKind::Reasoning => Style::Dim,
    }
}

fn text_of(part: &Object) -> Option<(TextKind, &str)> {
    let kind = match part["kind"].as_str() {
        Some("markdown") => TextKind::Markdown,
        Some("reasoning") => TextKind::Reasoning,
        _ => return None,
    };
    Some((kind, part.get("content")?.as_str()?))
}

/// The end of a text that cannot be printed yet.
fn waiting_text(kind: TextKind, text: &str, width: usize) -> Vec<Line> {
    // No more of it than can be shown is worth looking at.
    let bytes = WAITING_LINES_MAX * width.max(1) * 4;
    let from = (text.len().saturating_sub(bytes)..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let lines = wrap(escape(&text[from..]).trim(), width);
    let from = lines.len().saturating_sub(WAITING_LINES_MAX);
    let style = style_of(kind);
    lines[from..]
        .iter()
        .map(|line| Line::new(style, line.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};
    use wire::reduce::reduce_chat;
    use wire::{Action, ActionKind};

    use super::*;
    use crate::chat::line::Colors;

    struct Page {
        chat: ChatState,
        transcript: Transcript,
        width: usize,
    }

    impl Page {
        fn new() -> Self {
            Self {
                chat: ChatState::new("ahp-chat:/c", "", 1, String::new()),
                transcript: Transcript::default(),
                width: 30,
            }
        }

        fn act(&mut self, name: &str, mut fields: Value) -> &mut Self {
            fields["turnId"] = json!("t");
            reduce_chat(
                &mut self.chat,
                &Action::host(ActionKind::from_name(name), fields),
            );
            self
        }

        fn begin(&mut self, text: &str) -> &mut Self {
            let message = json!({"text": text, "origin": {"kind": "user"}});
            let fields = json!({"startedAt": "2026-11-15T08:00:00Z", "message": message});
            self.act("chat/turnStarted", fields)
        }

        fn part(&mut self, part: Value) -> &mut Self {
            self.act("chat/responsePart", json!({"part": part}))
        }

        fn delta(&mut self, text: &str) -> &mut Self {
            self.act("chat/delta", json!({"partId": "p", "content": text}))
        }

        fn end(&mut self) -> &mut Self {
            self.act("chat/turnComplete", json!({"duration": 1}))
        }

        /// Settled lines, then those that move behind a bar; dim ones in braces.
        fn check(&mut self, expected: Expect) -> &mut Self {
            let settled = self.transcript.settle(&self.chat, self.width);
            let moving = self.transcript.moving(&self.chat, self.width);
            let mut text_so_far = String::new();
            for (bar, lines) in [("", &settled), ("| ", &moving)] {
                for line in lines {
                    let encoded = line.encode(Colors::On);
                    let text = line.text();
                    let dim = encoded.contains("\u{1b}[2m");
                    let text = if dim { format!("{{{text}}}") } else { text };
                    text_so_far.push_str(format!("{bar}{text}").trim_end());
                    text_so_far.push('\n');
                }
            }
            expected.assert_eq(&text_so_far);
            self
        }
    }

    #[test]
    fn an_answer_settles_line_by_line() {
        let mut page = Page::new();
        page.begin("hello").check(expect![[r#"
            › hello
        "#]]);
        page.part(json!({"kind": "markdown", "id": "p", "content": ""}));
        page.delta("The first line of the ans").check(expect![[r#"
            |
            | The first line of the ans
        "#]]);
        page.delta("wer, and more").check(expect![[r#"

            The first line of the answer,
            | and more
        "#]]);
        page.delta("\n\n\u{1b}[2Jlast").check(expect![[r#"
            and more
            |
            | \x1b[2Jlast
        "#]]);
        page.delta("\n\n").end().check(expect![[r#"

            \x1b[2Jlast
        "#]]);
        page.check(expect![""]);
    }

    #[test]
    fn reasoning_is_dim_and_stands_apart() {
        let mut page = Page::new();
        page.begin("think")
            .part(json!({"kind": "reasoning", "id": "r", "content": "hm"}))
            .check(expect![[r#"
                › think
                |
                | {hm}
            "#]]);
        page.part(json!({"kind": "markdown", "id": "p", "content": "42"}))
            .end()
            .check(expect![[r#"

                {hm}

                42
            "#]]);
    }

    #[test]
    fn running_calls_are_redrawn_and_hold_back_later_parts() {
        let mut page = Page::new();
        page.begin("go");
        let call = |more: Value| {
            let mut fields = json!({"toolCallId": "c"});
            for (key, value) in more.as_object().unwrap() {
                fields[key] = value.clone();
            }
            fields
        };
        page.act(
            "chat/toolCallStart",
            call(json!({"toolName": "x", "displayName": "Run"})),
        );
        page.act(
            "chat/toolCallReady",
            call(json!({"invocationMessage": "Running it", "confirmed": "not-needed"})),
        );
        page.part(json!({"kind": "markdown", "id": "p", "content": "meanwhile"}));
        page.check(expect![[r#"
            › go
            |
            | ● Running it
            |
            | meanwhile
        "#]]);
        let result = json!({"success": true, "pastTenseMessage": "Ran it"});
        page.act("chat/toolCallComplete", call(json!({"result": result})));
        page.check(expect![[r#"

            ✓ Ran it
            |
            | meanwhile
        "#]]);
        page.act("chat/turnCancelled", json!({"duration": 1}))
            .check(expect![[r#"

                meanwhile

                ⊘ cancelled
            "#]]);
    }

    #[test]
    fn a_change_of_width_affects_later_lines_only() {
        let mut page = Page::new();
        page.begin("go")
            .part(json!({"kind": "markdown", "id": "p", "content": "one two three four"}));
        page.width = 9;
        page.check(expect![[r#"
            › go

            one two
            three
            | four
        "#]]);
        page.width = 30;
        page.delta(" five six").check(expect![[r#"
            | four five six
        "#]]);
    }
}
