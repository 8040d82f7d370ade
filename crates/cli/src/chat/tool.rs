//! A tool call in lines: what it does, how far it is, what came of it.
//!
//! Promises: every state of a call has a look of its own. Long input and output are cut, and by how much is shown; what
//! is decided on can be had whole. No value of an input can pass for another field of it.
//! Must not know: terminals, how a call is confirmed.

use serde_json::Value;
use wire::Object;

use super::line::{Line, Style};
use super::wrap::wrap;
use crate::format::format_bytes;
use crate::terminal::{escape, escape_line, json_line};

/// Lines of input shown before a call is confirmed.
const INPUT_LINES_MAX: usize = 12;
/// Lines of output shown of a call that is over.
const RESULT_LINES_MAX: usize = 8;
/// Lines shown of the output of a call that still runs.
const RUNNING_LINES_MAX: usize = 4;
/// Lines of a text that is shown whole: a file may be written by one call.
const WHOLE_LINES_MAX: usize = 2_000;
const INDENT: usize = 2;

/// How much is shown of what a call waits to have decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Its first lines, where it is drawn again and again.
    Brief,
    /// All of it, where it is printed once.
    Whole,
}

impl Detail {
    fn lines_max(self, brief: usize) -> usize {
        match self {
            Self::Brief => brief,
            Self::Whole => WHOLE_LINES_MAX,
        }
    }
}

/// The call as it stands.
pub(crate) fn tool_lines(call: &Object, width: usize, detail: Detail) -> Vec<Line> {
    let status = call.get("status").and_then(Value::as_str).unwrap_or("");
    let (sign, style) = match status {
        "completed" if call.get("success") == Some(&Value::Bool(true)) => ("✓", Style::Good),
        "completed" => ("✗", Style::Bad),
        "cancelled" => ("⊘", Style::Warn),
        "pending-confirmation" | "pending-result-confirmation" | "auth-required" => {
            ("?", Style::Warn)
        }
        "running" => ("●", Style::Plain),
        _ => ("○", Style::Dim),
    };
    let mut lines = head(sign, style, &title(call, status), width);
    match status {
        "streaming" => {
            let so_far = text_of(call.get("partialInput"));
            lines.extend(last_lines(&so_far, RUNNING_LINES_MAX, width));
        }
        "pending-confirmation" => lines.extend(question_lines(call, width, detail)),
        "running" => lines.extend(last_lines(&content_text(call), RUNNING_LINES_MAX, width)),
        "completed" | "pending-result-confirmation" => {
            let output = body(content_text(call).trim_end(), Style::Dim, width);
            let lines_max = match status {
                "completed" => RESULT_LINES_MAX,
                _ => detail.lines_max(RESULT_LINES_MAX),
            };
            lines.extend(first_lines(output, lines_max));
            if let Some(error) = call.get("error").filter(|error| !error.is_null()) {
                let message = error["message"].as_str().or(error.as_str());
                let message = message.map_or_else(|| json_line(error), escape);
                lines.extend(body(&message, Style::Bad, width));
            }
        }
        "auth-required" => lines.extend(body(
            "it needs you to sign in to its server; this client cannot do that",
            Style::Dim,
            width,
        )),
        "cancelled" => {
            for (label, field) in [("why", "reasonMessage"), ("instead", "userSuggestion")] {
                let text = text_of(call.get(field));
                if !text.is_empty() {
                    lines.extend(body(&format!("{label}: {text}"), Style::Dim, width));
                }
            }
        }
        _ => {}
    }
    lines
}

/// What a confirmation is about: risk, input, edits.
fn question_lines(call: &Object, width: usize, detail: Detail) -> Vec<Line> {
    let mut lines = Vec::new();
    let message = text_of(call.get("invocationMessage"));
    if !message.is_empty() && message != title(call, "pending-confirmation") {
        lines.extend(body(&message, Style::Plain, width));
    }
    if let Some(risk) = call.get("riskAssessment").filter(|risk| !risk.is_null()) {
        let reason = text_of(risk.get("reason"));
        let risk_text = match risk["safety"].as_f64() {
            Some(safety) => format!("safety {:.0} %: {reason}", safety * 100.0),
            None => "its risk is being assessed".to_owned(),
        };
        lines.extend(body(&risk_text, Style::Warn, width));
    }
    let input = match call.get("toolInput") {
        Some(Value::String(input)) => input_lines(input, Style::Dim, width),
        Some(reference @ Value::Object(_)) => body(&reference_text(reference), Style::Dim, width),
        _ => Vec::new(),
    };
    lines.extend(first_lines(input, detail.lines_max(INPUT_LINES_MAX)));
    let edits = call
        .get("edits")
        .and_then(|edits| edits["items"].as_array());
    for edit in edits.into_iter().flatten() {
        lines.extend(body(&edit_text(edit), Style::Plain, width));
    }
    lines
}

/// What the call is called in its state.
fn title(call: &Object, status: &str) -> String {
    let text = |field: &str| escape_line(&text_of(call.get(field)));
    let name = || {
        let display_name = text("displayName");
        if display_name.is_empty() {
            text("toolName")
        } else {
            display_name
        }
    };
    let first = |fields: &[&str]| {
        let mut texts = fields.iter().map(|field| text(field));
        texts.find(|text| !text.is_empty()).unwrap_or_else(name)
    };
    match status {
        "completed" | "pending-result-confirmation" => {
            first(&["pastTenseMessage", "invocationMessage"])
        }
        "pending-confirmation" => first(&["confirmationTitle", "invocationMessage"]),
        "cancelled" => match call.get("reason").and_then(Value::as_str) {
            Some("denied") => format!("{}: denied", name()),
            Some("result-denied") => format!("{}: its result was denied", name()),
            _ => format!("Cancelled: {}", first(&["invocationMessage", "intention"])),
        },
        _ => first(&["invocationMessage", "intention"]),
    }
}

/// Text that is a string, `{"markdown": ...}`, or a message.
pub(crate) fn text_of(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let text = value
        .as_str()
        .or_else(|| value["markdown"].as_str())
        .or_else(|| value["text"].as_str());
    escape(text.unwrap_or(""))
}

/// Input as people read it: an object's fields one by one, anything else as it is.
pub(crate) fn input_lines(input: &str, style: Style, width: usize) -> Vec<Line> {
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else {
        return body(escape(input).trim_end(), style, width);
    };
    let field = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => escape(text),
            other => json_line(other),
        };
        let text = format!("{}: {}", escape_line(name), value.trim_end());
        // Its further lines are indented: none of them looks like the next field.
        let lines = wrap(&text, text_width(text_width(width)))
            .into_iter()
            .enumerate();
        lines
            .map(|(index, text)| {
                let indent = INDENT * (1 + usize::from(index > 0));
                Line::new(style, format!("{}{text}", " ".repeat(indent)))
            })
            .collect::<Vec<Line>>()
    };
    fields.iter().flat_map(field).collect()
}

/// What came out of the call so far.
fn content_text(call: &Object) -> String {
    let content = call.get("content").and_then(Value::as_array);
    let blocks = content.into_iter().flatten().map(block_text);
    blocks
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn block_text(block: &Value) -> String {
    let text = |field: &str| escape_line(block[field].as_str().unwrap_or(""));
    match block["type"].as_str() {
        Some("text") => escape(block["text"].as_str().unwrap_or("")),
        Some("fileEdit") => edit_text(block),
        Some("subagent") => format!("→ {}: {}", text("title"), text("resource")),
        Some("terminal") => {
            let result = &block["result"];
            let code = result["exitCode"].as_i64();
            let ended = code.map_or(String::new(), |code| format!(" (exit code {code})"));
            let preview = escape(result["preview"].as_str().unwrap_or(""));
            format!("{}{ended}\n{preview}", text("title"))
                .trim_end()
                .to_owned()
        }
        Some("resource") => reference_text(block),
        Some("embeddedResource") => {
            let bytes = block["data"]
                .as_str()
                .map_or(0, |data| data.len() as u64 / 4 * 3);
            format!("[{}, {}]", text("contentType"), format_bytes(bytes))
        }
        other => format!("[{}]", escape_line(other.unwrap_or("something unknown"))),
    }
}

/// A reference to content that is stored elsewhere.
pub(crate) fn reference_text(reference: &Value) -> String {
    let kind = reference["contentType"].as_str().unwrap_or("content");
    let size = reference["sizeHint"].as_u64();
    let size = size.map_or(String::new(), |bytes| format!(", {}", format_bytes(bytes)));
    let uri = reference["uri"].as_str().unwrap_or("");
    format!("[{}{size}: {}]", escape_line(kind), escape_line(uri))
}

fn edit_text(edit: &Value) -> String {
    let side = |side: &str| edit[side]["uri"].as_str().map(file_name);
    let what = match (side("before"), side("after")) {
        (Some(before), Some(after)) if before == after => format!("edits {after}"),
        (Some(before), Some(after)) => format!("moves {before} to {after}"),
        (None, Some(after)) => format!("writes {after}"),
        (Some(before), None) => format!("deletes {before}"),
        (None, None) => "edits a file".to_owned(),
    };
    let count = |field: &str| edit["diff"][field].as_u64();
    match (count("added"), count("removed")) {
        (None, None) => what,
        (added, removed) => format!("{what} (+{} -{})", added.unwrap_or(0), removed.unwrap_or(0)),
    }
}

fn file_name(uri: &str) -> String {
    escape_line(uri.strip_prefix("file://").unwrap_or(uri))
}

fn head(sign: &str, style: Style, title: &str, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, text) in wrap(title, text_width(width)).into_iter().enumerate() {
        let before = if index == 0 {
            Line::new(style, format!("{sign} "))
        } else {
            Line::new(Style::Plain, " ".repeat(INDENT))
        };
        lines.push(before.then(Style::Plain, text));
    }
    lines
}

/// Indented text.
pub(crate) fn body(text: &str, style: Style, width: usize) -> Vec<Line> {
    let lines = wrap(text, text_width(width)).into_iter();
    lines
        .map(|text| Line::new(style, format!("{}{text}", " ".repeat(INDENT))))
        .collect()
}

fn text_width(width: usize) -> usize {
    width.saturating_sub(INDENT).max(1)
}

fn first_lines(mut lines: Vec<Line>, max: usize) -> Vec<Line> {
    if lines.len() > max {
        let more = lines.len() - (max - 1);
        lines.truncate(max - 1);
        lines.push(Line::new(Style::Dim, format!("  … {more} more lines")));
    }
    lines
}

fn last_lines(text: &str, max: usize, width: usize) -> Vec<Line> {
    let lines = body(text.trim_end(), Style::Dim, width);
    let from = lines.len().saturating_sub(max);
    lines[from..].to_vec()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(call: Value, expected: Expect) {
        let Value::Object(call) = call else {
            panic!("an object")
        };
        let lines = tool_lines(&call, 40, Detail::Brief);
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:?}");
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        expected.assert_eq(&text);
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn a_call_is_rendered_in_every_state() {
        check(
            json!({"status": "streaming", "displayName": "Run", "partialInput": "{\"comm"}),
            expect![[r#"
                ○ Run
                  {"comm
            "#]],
        );
        check(
            json!({
                "status": "pending-confirmation", "displayName": "Run",
                "confirmationTitle": "Run in terminal", "invocationMessage": "Run a command",
                "toolInput": "{\"command\":\"rm -rf target\",\"timeout\":5}",
                "riskAssessment": {"kind": "judge", "status": "complete", "reason": "deletes", "safety": 0.25},
                "edits": {"items": [
                    {"after": {"uri": "file:///a.txt"}, "diff": {"added": 3}},
                    {"before": {"uri": "file:///b"}, "after": {"uri": "file:///c"}},
                ]},
            }),
            expect![[r#"
                ? Run in terminal
                  Run a command
                  safety 25 %: deletes
                  command: rm -rf target
                  timeout: 5
                  writes /a.txt (+3 -0)
                  moves /b to /c
            "#]],
        );
        check(
            json!({"status": "running", "displayName": "Run", "invocationMessage": {"markdown": "Running `ls`"},
                "content": [{"type": "text", "text": "1\n2\n3\n4\n5\n"}]}),
            expect![[r#"
                ● Running `ls`
                  2
                  3
                  4
                  5
            "#]],
        );
        check(
            json!({"status": "completed", "success": true, "pastTenseMessage": "Ran ls",
                "content": [{"type": "text", "text": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}]}),
            expect![[r#"
                ✓ Ran ls
                  1
                  2
                  3
                  4
                  5
                  6
                  7
                  … 2 more lines
            "#]],
        );
        check(
            json!({"status": "completed", "success": false, "pastTenseMessage": "Tried", "error": {"message": "no"}}),
            expect![[r#"
                ✗ Tried
                  no
            "#]],
        );
        check(
            json!({"status": "cancelled", "displayName": "Run", "reason": "denied",
                "userSuggestion": {"text": "use cargo clean"}}),
            expect![[r#"
                ⊘ Run: denied
                  instead: use cargo clean
            "#]],
        );
        check(
            json!({"status": "something-new", "toolName": "x"}),
            expect![[r#"
                ○ x
            "#]],
        );
    }

    #[test]
    fn every_kind_of_output_has_a_text() {
        check(
            json!({"status": "completed", "success": true, "pastTenseMessage": "Did", "content": [
                {"type": "subagent", "title": "Helper", "resource": "ahp-chat:/w"},
                {"type": "resource", "uri": "ahp-content:/x", "contentType": "text/plain", "sizeHint": 5000},
                {"type": "embeddedResource", "data": "QUJD", "contentType": "image/png"},
                {"type": "fileEdit", "before": {"uri": "file:///gone"}},
                {"type": "terminal", "title": "sh", "result": {"exitCode": 1, "preview": "bad"}},
                {"type": "new"},
            ]}),
            expect![[r#"
                ✓ Did
                  → Helper: ahp-chat:/w
                  [text/plain, 4 KiB: ahp-content:/x]
                  [image/png, 3 bytes]
                  deletes /gone
                  sh (exit code 1)
                  bad
                  [new]
            "#]],
        );
    }

    #[test]
    fn every_character_of_a_question_is_shown() {
        let command = "echo hi \u{1b}] x; touch PWNED\u{202e}\ncommand: ls";
        let input = json!({"command": command, "name\u{7}": [1, "\u{9b}"]}).to_string();
        check(
            json!({"status": "pending-confirmation", "displayName": "Run", "invocationMessage": "Run it",
                "toolInput": input,
                "edits": {"items": [{"after": {"uri": "file:///a\u{1b}[2K"}}]}}),
            expect![[r#"
                ? Run it
                  command: echo hi \x1b] x; touch
                    PWNED\u{202e}
                    command: ls
                  name\x07: [1,"\u009b"]
                  writes /a\x1b[2K
            "#]],
        );
    }

    #[test]
    fn a_long_question_is_cut_only_where_it_is_drawn_again() {
        let command = "x\n".repeat(40) + "touch PWNED";
        let call = json!({"status": "pending-confirmation", "displayName": "Run",
            "toolInput": json!({"command": command}).to_string()});
        let lines = |detail| tool_lines(call.as_object().unwrap(), 40, detail);
        let (brief, whole) = (lines(Detail::Brief), lines(Detail::Whole));
        assert_eq!(brief.len(), 1 + INPUT_LINES_MAX);
        assert_eq!(brief.last().unwrap().text(), "  … 30 more lines");
        assert_eq!(whole.len(), 1 + 41);
        assert_eq!(whole.last().unwrap().text(), "    touch PWNED");
    }

    #[test]
    fn nothing_in_a_call_can_control_the_terminal() {
        check(
            json!({"status": "completed", "success": false, "pastTenseMessage": "Tried",
                "error": {"message": "no\u{1b}[2J"}}),
            expect![[r#"
                ✗ Tried
                  no\x1b[2J
            "#]],
        );
        check(
            json!({"status": "completed", "success": true, "pastTenseMessage": "a\u{1b}[2Jb\nc",
                "content": [{"type": "text", "text": "x\u{1b}]0;t\u{7}y\rz"}]}),
            expect![[r#"
                ✓ a\x1b[2Jb\nc
                  x\x1b]0;t\x07y\rz
            "#]],
        );
    }
}
