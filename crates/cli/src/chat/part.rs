//! Messages and response parts in lines.
//!
//! Must not know: terminals, how parts come in.

use serde_json::Value;
use wire::Object;

use super::line::{Line, Style};
use super::render::Page;
use super::tool::{Detail, References, body, reference_text, text_of, tool_lines_with};
use super::wrap::wrap;
use crate::terminal::{escape, escape_line, json_line};

/// What stands before a user's message.
pub(crate) const PROMPT: &str = "› ";

/// A user's message, with what is attached to it.
pub(crate) fn message_lines(message: &Value, style: Style, width: usize) -> Vec<Line> {
    let text = escape(message["text"].as_str().unwrap_or(""));
    let mut texts = wrap(&text, width.saturating_sub(2).max(1));
    if texts.is_empty() {
        texts.push(String::new());
    }
    let mut lines = Vec::new();
    for (index, text) in texts.into_iter().enumerate() {
        let before = if index == 0 { PROMPT } else { "  " };
        lines.push(Line::new(style, format!("{before}{text}")));
    }
    for attachment in message["attachments"].as_array().into_iter().flatten() {
        let label = attachment["label"].as_str().or(attachment["uri"].as_str());
        let label = escape_line(label.unwrap_or("something"));
        lines.extend(body(&format!("with {label}"), Style::Dim, width));
    }
    lines
}

/// Any part that is no text, finished or not.
pub(crate) fn part_lines(part: &Object, page: Page, detail: Detail) -> Vec<Line> {
    part_lines_with(part, page, detail, &References::default())
}

/// The same, with the contents that it refers to.
pub(crate) fn part_lines_with(
    part: &Object,
    page: Page,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
    let width = page.width;
    match part.get("kind").and_then(Value::as_str) {
        Some("toolCall") => match part.get("toolCall") {
            Some(Value::Object(call)) => tool_lines_with(call, page, detail, references),
            // Nothing is known of it but that there was one.
            _ => mark("· ", Style::Dim, "[a tool call that cannot be shown]", width),
        },
        Some("inputRequest") => request_lines(part, width),
        Some("systemNotification") => {
            let text = text_of(part.get("content"));
            mark("· ", Style::Dim, &text, width)
        }
        Some("error") => {
            let error = part.get("error");
            let message = error.and_then(|error| error["message"].as_str());
            let message = escape(message.unwrap_or("for an unknown reason"));
            let mut lines = mark("✗ ", Style::Bad, &format!("failed: {message}"), width);
            if part.get("resumable") == Some(&Value::Bool(true)) {
                lines.extend(body("/resume continues the turn", Style::Dim, width));
            }
            lines
        }
        Some("contentRef") => {
            let text = reference_text(&Value::Object(part.clone()));
            mark("· ", Style::Dim, &text, width)
        }
        other => {
            let kind = escape_line(other.unwrap_or("unknown"));
            mark("· ", Style::Dim, &format!("[a part of kind {kind}]"), width)
        }
    }
}

/// A question and what was answered, in short.
fn request_lines(part: &Object, width: usize) -> Vec<Line> {
    let request = part.get("request").unwrap_or(&Value::Null);
    let questions = request["questions"].as_array();
    let first = questions.and_then(|questions| questions.first());
    let message = request["message"]
        .as_str()
        .or_else(|| first.and_then(|question| question["message"].as_str()));
    let message = escape(message.unwrap_or("The agent asked something"));
    let (sign, style) = match part.get("response").and_then(Value::as_str) {
        Some("accept") => ("✓ ", Style::Good),
        Some(_) => ("⊘ ", Style::Warn),
        None => ("? ", Style::Warn),
    };
    let mut lines = mark(sign, style, &message, width);
    for question in questions.into_iter().flatten() {
        let id = question["id"].as_str().unwrap_or("");
        let Some(answer) = request["answers"].get(id) else { continue };
        let title = question["title"].as_str().or(question["message"].as_str());
        let text =
            format!("{}: {}", escape_line(title.unwrap_or(id)), answer_text(question, answer));
        lines.extend(body(&text, Style::Dim, width));
    }
    match part.get("response").and_then(Value::as_str) {
        Some("decline") => lines.extend(body("declined", Style::Dim, width)),
        Some("cancel") => lines.extend(body("cancelled", Style::Dim, width)),
        _ => {}
    }
    lines
}

/// An answer as people read it: labels, not ids.
pub(crate) fn answer_text(question: &Value, answer: &Value) -> String {
    if answer["state"] == "skipped" {
        return "(skipped)".to_owned();
    }
    let label = |id: &str| {
        let options = question["options"].as_array().into_iter().flatten();
        let mut labels = options.filter(|option| option["id"] == id);
        let label = labels.next().and_then(|option| option["label"].as_str());
        escape_line(label.unwrap_or(id))
    };
    let value = &answer["value"];
    let mut values = match &value["value"] {
        Value::String(id) if value["kind"] == "selected" => vec![label(id)],
        Value::String(text) => vec![escape_line(text)],
        Value::Array(ids) => ids.iter().filter_map(Value::as_str).map(label).collect(),
        Value::Bool(true) => vec!["yes".to_owned()],
        Value::Bool(false) => vec!["no".to_owned()],
        Value::Null => Vec::new(),
        other => vec![json_line(other)],
    };
    let freeform = value["freeformValues"].as_array().into_iter().flatten();
    values.extend(freeform.filter_map(Value::as_str).map(escape_line));
    values.retain(|value| !value.is_empty());
    values.join(", ")
}

/// Text behind a sign, further lines indented.
pub(crate) fn mark(sign: &str, style: Style, text: &str, width: usize) -> Vec<Line> {
    let text_style = match style {
        Style::Dim => Style::Dim,
        _ => Style::Plain,
    };
    let mut lines = body(text, text_style, width);
    let Some(first) = lines.first_mut() else {
        return lines; // an empty text has no line to mark
    };
    let rest = first.text().trim_start().to_owned();
    *first = Line::new(style, sign).then(text_style, rest);
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(part: Value, expected: Expect) {
        let Value::Object(part) = part else { panic!("an object") };
        let lines = part_lines(&part, Page::of_width(32), Detail::Brief);
        assert!(lines.iter().all(|line| line.width() <= 32), "{lines:?}");
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        expected.assert_eq(&text);
    }

    #[test]
    fn parts_other_than_text_are_described() {
        check(
            json!({"kind": "systemNotification", "content": {"markdown": "The model was changed by someone"}}),
            expect![[r#"
                · The model was changed by
                  someone
            "#]],
        );
        check(
            json!({"kind": "error", "error": {"message": "out of credit"}, "resumable": true}),
            expect![[r#"
                ✗ failed: out of credit
                  /resume continues the turn
            "#]],
        );
        check(
            json!({"kind": "contentRef", "uri": "ahp-content:/x", "contentType": "text/csv"}),
            expect![[r#"
                · [text/csv: ahp-content:/x]
            "#]],
        );
        check(
            json!({"kind": "novelty"}),
            expect![[r#"
                · [a part of kind novelty]
            "#]],
        );
    }

    #[test]
    fn a_request_is_shown_with_what_was_answered() {
        let request = json!({
            "id": "r", "message": "Some things",
            "questions": [
                {"kind": "text", "id": "q1", "title": "Name", "message": "Your name?"},
                {"kind": "single-select", "id": "q2", "message": "Color?",
                    "options": [{"id": "r", "label": "Red"}]},
                {"kind": "multi-select", "id": "q3", "message": "Toppings?",
                    "options": [{"id": "a", "label": "Ham"}, {"id": "b", "label": "Egg"}]},
                {"kind": "boolean", "id": "q4", "message": "Sure?"},
            ],
            "answers": {
                "q1": {"state": "submitted", "value": {"kind": "text", "value": "Ann"}},
                "q2": {"state": "submitted", "value": {"kind": "selected", "value": "r"}},
                "q3": {"state": "submitted", "value": {"kind": "selected-many", "value": ["b"], "freeformValues": ["Oil"]}},
                "q4": {"state": "skipped"},
            },
        });
        check(
            json!({"kind": "inputRequest", "request": request, "response": "accept"}),
            expect![[r#"
                ✓ Some things
                  Name: Ann
                  Color?: Red
                  Toppings?: Egg, Oil
                  Sure?: (skipped)
            "#]],
        );
        check(
            json!({"kind": "inputRequest", "request": {"id": "r", "message": "Go on?"}, "response": "decline"}),
            expect![[r#"
                ⊘ Go on?
                  declined
            "#]],
        );
    }

    #[test]
    fn a_message_is_shown_with_its_attachments() {
        let message = json!({
            "text": "one two three four five six seven\n\nlast\u{1b}[31m",
            "attachments": [{"type": "resource", "label": "a.rs"}],
        });
        let lines = message_lines(&message, Style::Bold, 20);
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        expect![[r#"
            › one two three four
              five six seven
              
              last\x1b[31m
              with a.rs
        "#]]
        .assert_eq(&text);
    }
}
