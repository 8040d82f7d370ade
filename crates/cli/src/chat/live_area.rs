//! The live area at the bottom of the screen: what still moves, what is asked, what waits, and the line that is typed into.
//!
//! Promises: a pure function of what it is given. The line that is typed into is always there. What is decided on stands directly
//! above what can be chosen; where it does not fit that is said, and nothing else is shown in its place.
//! Must not know: terminals, connections.

use unicode_segmentation::UnicodeSegmentation;
use wire::state::ChatState;

use super::editor::Editor;
use super::line::{Line, Style, columns};
use super::paint::LiveArea;
use super::part::message_lines;
use super::wrap::wrap;
use crate::terminal::escape_line;

/// Rows the editor may take before it shows only the part around the cursor.
const EDITOR_ROWS_MAX: usize = 10;
/// Queued messages that are shown.
const QUEUE_MAX: usize = 4;
/// Rows of a sentence about what just happened.
const NOTE_ROWS_MAX: usize = 4;
/// Rows of what is asked that are shown before anything else gets one.
const SUBJECT_ROWS_MIN: usize = 3;
/// Rows of choices that are shown if there is any room for them.
const CHOICE_ROWS_MIN: usize = 4;

/// What the live area shows.
pub(crate) struct LiveContent<'a> {
    /// The end of the transcript that still moves.
    pub(crate) moving: Vec<Line>,
    /// The chat, with what was done here and is not confirmed yet.
    pub(crate) chat: Option<&'a ChatState>,
    /// Whether the turn that runs is still to be confirmed by the host.
    pub(crate) is_sending: bool,
    /// What is asked, and how to answer it.
    pub(crate) dialog: Option<Dialog<'a>>,
    /// Whether the messages that wait are shown elsewhere.
    pub(crate) hides_queue: bool,
    /// What is open above the input line: a menu, a search.
    pub(crate) above: Vec<Line>,
    /// A sentence about what just happened, or what can be done. Broken where the screen ends.
    pub(crate) note: Option<Line>,
    pub(crate) prompt: &'a str,
    pub(crate) editor: &'a Editor,
    /// What stands below the input line.
    pub(crate) below: Vec<Line>,
}

/// What is asked, and how to answer it.
pub(crate) struct Dialog<'a> {
    /// What is decided on.
    pub(crate) subject: Vec<Line>,
    /// What is asked about it.
    pub(crate) question: Vec<Line>,
    /// What can be chosen, in about so many rows; nothing while a text is typed for what was chosen.
    pub(crate) choices: Box<dyn Fn(usize) -> Vec<Line> + 'a>,
}

/// Lays the live area out for a screen of this width and height.
pub(crate) fn layout(content: LiveContent<'_>, width: usize, rows: usize) -> LiveArea {
    let (typed, cursor) = typed_lines(content.prompt, content.editor, width, rows / 2);
    let note: Vec<Line> = content
        .note
        .map_or_else(Vec::new, |note| wrap_line(&note, width))
        .into_iter()
        .take(NOTE_ROWS_MAX)
        .collect();
    // A blank line between the transcript and where one types.
    let input = 1 + note.len() + typed.len();
    let around = content.above.len() + content.below.len();
    // The last row of the screen stays free.
    let room = rows.saturating_sub(1 + input + around);
    let mut queue =
        if content.hides_queue { Vec::new() } else { pending_lines(content.chat, width) };
    let (dialog, is_subject_cut) = match content.dialog {
        Some(dialog) => dialog.lay_out(&mut queue, room, rows),
        None => (Vec::new(), false),
    };
    let mut moving = content.moving;
    if content.is_sending
        && let Some(turn) = content.chat.and_then(|chat| chat.active_turn.as_ref())
    {
        moving.push(Line::default());
        moving.extend(message_lines(&turn.message, Style::Dim, width));
    }
    let hidden = moving.len() + dialog.len() + queue.len();
    let hidden = hidden.saturating_sub(room).min(moving.len());
    let mut lines = moving.split_off(hidden);
    lines.extend(dialog);
    lines.extend(queue);
    lines.push(Line::default());
    lines.extend(content.above);
    lines.extend(note);
    let cursor = (lines.len() + cursor.0, cursor.1);
    lines.extend(typed);
    lines.extend(content.below);
    LiveArea { lines, cursor, is_subject_cut }
}

impl Dialog<'_> {
    /// Its lines for so much room on a screen of so many rows, and whether what is decided on was cut. Messages that wait make
    /// room for it.
    fn lay_out(self, queue: &mut Vec<Line>, room: usize, rows: usize) -> (Vec<Line>, bool) {
        let subject_min = self.subject.len().min(SUBJECT_ROWS_MIN) + self.question.len();
        let mut choices = (self.choices)((rows / 2).max(CHOICE_ROWS_MIN));
        let mut blanks = 1 + usize::from(!choices.is_empty());
        if subject_min + blanks + choices.len() + queue.len() > room {
            queue.clear();
        }
        if subject_min + blanks + choices.len() > room {
            blanks = 0;
            let over = (subject_min + choices.len()).saturating_sub(room);
            if over > 0 {
                let hint_rows = 2;
                let items = choices.len().saturating_sub(over + hint_rows);
                choices = (self.choices)(items.max(1));
            }
            // However low the screen is, a line says that there is more to see.
            choices.truncate(room.saturating_sub(1 + self.question.len()).max(1));
        }
        let taken = self.question.len() + blanks + choices.len() + queue.len();
        let subject_rows = room.saturating_sub(taken).max(1);
        let is_cut = self.subject.len() > subject_rows;
        let mut subject = self.subject;
        if is_cut {
            subject.truncate(subject_rows - 1);
            subject.push(Line::new(Style::Warn, "  … more lines above (Ctrl-O)"));
        }
        let mut lines = Vec::new();
        if blanks > 0 {
            lines.push(Line::default());
        }
        lines.extend(subject);
        lines.extend(self.question);
        if blanks > 1 {
            lines.push(Line::default());
        }
        lines.extend(choices);
        (lines, is_cut)
    }
}

/// Messages that wait for the agent.
fn pending_lines(chat: Option<&ChatState>, width: usize) -> Vec<Line> {
    let Some(chat) = chat else { return Vec::new() };
    let mut lines = Vec::new();
    let mut line = |what: &str, message: &serde_json::Value| {
        let text = escape_line(message["text"].as_str().unwrap_or(""));
        lines.push(Line::new(Style::Dim, format!("{what}: {text}")));
    };
    if let Some(steering) = &chat.steering_message {
        line("steering", &steering.message);
    }
    // Without a turn that runs nothing starts by itself (G-08).
    let queued = match chat.active_turn {
        Some(_) => "queued",
        None => "paused",
    };
    for message in chat.queued_messages.iter().take(QUEUE_MAX) {
        line(queued, &message.message);
    }
    if chat.queued_messages.len() > QUEUE_MAX {
        let more = chat.queued_messages.len() - QUEUE_MAX;
        lines.push(Line::new(Style::Dim, format!("… {more} more")));
    }
    if chat.active_turn.is_none() && !chat.queued_messages.is_empty() {
        let paused = "Queue paused: Enter on an empty line sends the next, Up edits";
        lines.extend(wrap_line(&Line::new(Style::Warn, paused), width));
    }
    if !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

/// A line of one style in as many as it takes.
fn wrap_line(line: &Line, width: usize) -> Vec<Line> {
    wrap(&line.text(), width).into_iter().map(|text| Line::new(line.style(), text)).collect()
}

/// The text that is being typed, broken where the screen ends, and where the cursor is in it.
fn typed_lines(
    prompt: &str,
    editor: &Editor,
    width: usize,
    rows_max: usize,
) -> (Vec<Line>, (usize, usize)) {
    let indent = columns(prompt).min(width / 2);
    let mut rows = vec![String::new()];
    let mut column = indent;
    let mut cursor = (0, indent);
    let text = editor.text();
    for (at, grapheme) in text.grapheme_indices(true) {
        let shown = match grapheme {
            "\n" => String::new(),
            // A tab would lead wherever the terminal wants it to.
            "\t" => " ".to_owned(),
            _ => match grapheme.chars().find_map(|c| editor.chip_label(c)) {
                Some(label) => escape_line(label),
                None => escape_line(grapheme),
            },
        };
        let wide = columns(&shown);
        // A character that does not fit, and the cursor behind the last one that does, go to the next row.
        if column + wide > width {
            rows.push(String::new());
            column = indent;
        }
        if at == editor.cursor() {
            cursor = (rows.len() - 1, column);
        }
        if grapheme == "\n" {
            rows.push(String::new());
            column = indent;
        } else if let Some(row) = rows.last_mut() {
            row.push_str(&shown);
            column += wide;
        }
    }
    if editor.cursor() == text.len() {
        cursor = (rows.len() - 1, column);
    }
    let visible_max = EDITOR_ROWS_MAX.min(rows_max).max(1);
    let first = (cursor.0 + 1).saturating_sub(visible_max);
    let visible = rows.into_iter().enumerate().skip(first).take(visible_max);
    let lines = visible.map(|(index, row)| {
        if index == 0 {
            Line::new(Style::Bold, prompt).then(Style::Plain, row)
        } else {
            Line::new(Style::Plain, format!("{}{row}", " ".repeat(indent)))
        }
    });
    (lines.collect(), (cursor.0 - first, cursor.1))
}

#[cfg(test)]
mod tests {
    use client::terminals::ScreenSize;
    use expect_test::{Expect, expect};
    use serde_json::json;
    use wire::state::PendingMessage;

    use super::*;
    use crate::chat::keys::Key;
    use crate::chat::line::Colors;
    use crate::chat::paint::Painter;

    fn editor(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.set(text);
        editor
    }

    fn check(content: LiveContent<'_>, rows: usize, expected: Expect) {
        let LiveArea { lines, cursor, .. } = layout(content, 24, rows);
        let mut visible: Vec<String> = lines.iter().map(Line::text).collect();
        let (row, column) = cursor;
        let at = visible[row].chars().count().min(column);
        let offset = visible[row]
            .char_indices()
            .nth(at)
            .map(|(offset, _)| offset)
            .unwrap_or(visible[row].len());
        visible[row].insert(offset, '|');
        expected.assert_eq(&(visible.join("\n") + "\n"));
    }

    fn content<'a>(chat: Option<&'a ChatState>, editor: &'a Editor) -> LiveContent<'a> {
        LiveContent {
            moving: Vec::new(),
            chat,
            is_sending: false,
            dialog: None,
            hides_queue: false,
            above: Vec::new(),
            note: None,
            prompt: "› ",
            editor,
            below: Vec::new(),
        }
    }

    /// A dialog about so many lines, with so many choices.
    fn dialog(subject: usize, choices: usize) -> Dialog<'static> {
        let numbered = |what: &str, count: usize| {
            let lines = (1..=count).map(|n| Line::new(Style::Plain, format!("{what} {n}")));
            lines.collect::<Vec<Line>>()
        };
        Dialog {
            subject: numbered("subject", subject),
            question: Vec::new(),
            choices: Box::new(move |rows| {
                let mut lines = numbered("choice", choices.min(rows));
                lines.push(Line::new(Style::Dim, "hint"));
                lines
            }),
        }
    }

    #[test]
    fn every_row_is_in_its_position() {
        let mut chat = ChatState::new("ahp-chat:/c", "", 8, String::new());
        let pending = |text: &str| PendingMessage {
            id: text.to_owned(),
            message: json!({"text": text}).into(),
        };
        chat.steering_message = Some(pending("left a bit"));
        chat.queued_messages = ["a", "b\nc", "d", "e", "f"].map(pending).to_vec();
        chat.active_turn = Some(wire::state::ActiveTurn::new("t", "", json!({})));
        let editor = editor("next");
        let mut all = content(Some(&chat), &editor);
        all.moving = vec![Line::new(Style::Plain, "half a sent")];
        all.dialog = Some(dialog(1, 1));
        all.above = vec![Line::new(Style::Plain, "a menu")];
        all.below = vec![Line::new(Style::Dim, "a status")];
        all.note = Some(Line::new(Style::Dim, "working"));
        check(
            all,
            24,
            expect![[r#"
                half a sent

                subject 1

                choice 1
                hint

                steering: left a bit
                queued: a
                queued: b\nc
                queued: d
                queued: e
                … 1 more

                a menu
                working
                › next|
                a status
            "#]],
        );
    }

    #[test]
    fn a_long_text_is_broken_and_the_cursor_is_in_it() {
        let mut long = editor("abcdefghijklmnopqrstuvwxyz\nsecond");
        check(
            content(None, &long),
            24,
            expect![[r#"

                › abcdefghijklmnopqrstuv
                  wxyz
                  second|
            "#]],
        );
        for _ in 0..7 {
            long.key(&Key::Left);
        }
        check(
            content(None, &long),
            24,
            expect![[r#"

                › abcdefghijklmnopqrstuv
                  wxyz|
                  second
            "#]],
        );
        let tall = editor(&["x"; 30].join("\n"));
        let visible = layout(content(None, &tall), 24, 8);
        let texts: Vec<String> = visible.lines.iter().map(Line::text).collect();
        assert_eq!(texts, ["", "  x", "  x", "  x", "  x"]);
        assert_eq!(visible.cursor, (4, 3));
    }

    #[test]
    fn the_live_part_shrinks_before_the_editor() {
        let editor = editor("");
        let mut tall = content(None, &editor);
        tall.moving = (0..20).map(|n| Line::new(Style::Plain, n.to_string())).collect();
        check(
            tall,
            6,
            expect![[r#"
                17
                18
                19

                › |
            "#]],
        );
    }

    #[test]
    fn what_is_decided_on_has_the_rows_before_everything_else() {
        let editor = editor("");
        let with = |subject, choices, rows| {
            let mut asked = content(None, &editor);
            asked.moving = vec![Line::new(Style::Plain, "moving"); 30];
            asked.dialog = Some(dialog(subject, choices));
            layout(asked, 24, rows)
        };
        for rows in 1..60 {
            for subject in 1..50 {
                for choices in [1, 3, 8] {
                    let area = with(subject, choices, rows);
                    let text: Vec<String> = area.lines.iter().map(Line::text).collect();
                    let seen = text.iter().filter(|line| line.starts_with("subject"));
                    let is_all_seen = seen.count() == subject;
                    assert_eq!(area.is_subject_cut, !is_all_seen, "{rows} {text:?}");
                    if rows < 5 {
                        continue; // not enough for all that there must be
                    }
                    assert!(text.len() < rows, "{rows} {text:?}");
                    let is_said = text.iter().any(|line| line.contains("more lines"));
                    assert_eq!(is_said, area.is_subject_cut, "{rows} {text:?}");
                    let has_moving = text.contains(&"moving".to_owned());
                    assert!(is_all_seen || !has_moving, "{rows} {text:?}");
                }
            }
        }
    }

    #[test]
    fn the_smallest_screen_still_shows_the_editor() {
        let mut chat = ChatState::new("ahp-chat:/c", "", 8, String::new());
        chat.queued_messages = vec![PendingMessage {
            id: "q".to_owned(),
            message: json!({"text": "a long message that waits"}).into(),
        }];
        let typed = editor("漢字 and more than fits\n\ton two lines");
        for (width, rows) in (1..40).flat_map(|width| (1..12).map(move |rows| (width, rows))) {
            let mut small = content(Some(&chat), &typed);
            small.moving = vec![Line::new(Style::Plain, "moving"); 5];
            small.dialog = Some(dialog(5, 4));
            small.below = vec![Line::new(Style::Dim, "status")];
            let visible = layout(small, usize::from(width), usize::from(rows));
            let (row, column) = visible.cursor;
            assert!(
                row < visible.lines.len() && column <= usize::from(width.max(2)),
                "{width}x{rows}"
            );
            let mut painter = Painter::new(Colors::On, ScreenSize { columns: width, rows });
            assert!(!painter.draw(&[], visible).is_empty());
        }
    }

    #[test]
    fn a_message_on_its_way_is_shown() {
        let mut chat = ChatState::new("ahp-chat:/c", "", 8, String::new());
        let message = json!({"text": "hello"});
        chat.active_turn = Some(wire::state::ActiveTurn::new("t", "", message));
        let editor = editor("");
        let mut sending = content(Some(&chat), &editor);
        sending.is_sending = true;
        check(
            sending,
            24,
            expect![[r#"

                › hello

                › |
            "#]],
        );
    }
}
