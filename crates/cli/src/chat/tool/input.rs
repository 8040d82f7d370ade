//! What a call is about, as people read it: the command, the diff, or its fields one by one.
//!
//! Promises: every character of an input is shown. No value can pass for another field of it, and no line of a value for the rest of
//! the line before it.

use std::borrow::Cow;

use serde_json::Value;
use wire::Object;

use super::edit::{DIFF_LINES_MAX, edit_lines, is_input_in_edit, show_edit};
use super::input_change::InputChange;
use super::input_json::parse_fields;
use super::proposed_plan;
use super::references::{Lookup, References};
use super::{
    CONTINUED, Detail, INDENT, body, fold_end, hanging, reference_text, text_of, text_width, title,
};
use crate::chat::line::{Line, Style, TAB};
use crate::chat::render::Page;
use crate::terminal::{escape, escape_line, json_line};

/// Lines of input shown before a call is confirmed.
pub(super) const INPUT_LINES_MAX: usize = 12;
/// Fields that say the most about a call; they come first, so that no other pushes them out of sight.
const FIRST_FIELDS: [&str; 5] = ["command", "path", "file_path", "url", "pattern"];

/// What a confirmation is about: risk, input, edits.
pub(super) fn question_lines(
    call: &Object,
    page: Page,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
    let width = page.width;
    let input = read_input(call, references);
    let plan = match &input {
        CallInput::Here(input) => proposed_plan::proposed_plan(call, input),
        CallInput::None | CallInput::Coming | CallInput::Missing { .. } => None,
    };
    let mut lines = Vec::new();
    let message = text_of(call.get("invocationMessage"));
    if plan.is_none() && !message.is_empty() && message != title(call, "pending-confirmation") {
        lines.extend(hanging(&message, Style::Plain, width));
    }
    if let Some(risk) = call.get("riskAssessment").filter(|risk| !risk.is_null()) {
        let reason = text_of(risk.get("reason"));
        let risk_text = match risk["safety"].as_f64() {
            Some(safety) => format!("safety {:.0} %: {reason}", safety * 100.0),
            None => "its risk is being assessed".to_owned(),
        };
        lines.extend(hanging(&risk_text, Style::Warn, width));
    }
    lines.extend(match (plan, input) {
        (Some(plan), _) => proposed_plan::lines(&plan, page),
        (None, CallInput::Here(input)) => asked_input(call, &input, width, detail, references),
        (None, CallInput::None) => Vec::new(),
        (None, CallInput::Coming) => body("(reading the input)", Style::Dim, width),
        (None, CallInput::Missing { reference, why }) => unseen_input(reference, why, width),
    });
    let shown = |edit: &Value| show_edit(call, edit, width, references);
    lines.extend(edit_lines(call, width, detail, shown));
    lines
}

/// The input of a call, as far as it is here.
enum CallInput<'a> {
    None,
    Here(Cow<'a, str>),
    Coming,
    /// It cannot be shown, and why.
    Missing {
        reference: &'a Value,
        why: &'a str,
    },
}

fn read_input<'a>(call: &'a Object, references: &'a References) -> CallInput<'a> {
    match call.get("toolInput") {
        Some(Value::String(input)) => CallInput::Here(Cow::Borrowed(input)),
        Some(reference @ Value::Object(_)) => {
            let uri = reference["uri"].as_str().unwrap_or("");
            match references.find(uri) {
                Lookup::Here(bytes) => CallInput::Here(String::from_utf8_lossy(bytes)),
                Lookup::Coming => CallInput::Coming,
                Lookup::Missing(why) => CallInput::Missing { reference, why },
                Lookup::Unknown => CallInput::Missing { reference, why: "it was not read" },
            }
        }
        _ => CallInput::None,
    }
}

fn asked_input(
    call: &Object,
    input: &str,
    width: usize,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
    let fields = parse_fields(input);
    let change = fields.as_ref().and_then(|fields| InputChange::parse(call, fields));
    let is_shown = change.is_some_and(|change| change.diff(width).is_some());
    if let Some(fields) = fields
        && is_shown
        && is_input_in_edit(call, &fields, width, references)
    {
        return Vec::new(); // the same change, with its place in the file
    }
    input_lines_of(call, input, width, detail)
}

fn unseen_input(reference: &Value, why: &str, width: usize) -> Vec<Line> {
    let text = format!("its input cannot be shown: {}", escape_line(why));
    let mut lines = hanging(&text, Style::Warn, width);
    lines.extend(hanging(&reference_text(reference), Style::Dim, width));
    lines
}

/// An input of a call, its own or another that it is to run with: the diff it would make, or its fields.
pub(crate) fn input_lines_of(
    call: &Object,
    input: &str,
    width: usize,
    detail: Detail,
) -> Vec<Line> {
    let diff = parse_fields(input)
        .and_then(|fields| InputChange::parse(call, &fields).and_then(|change| change.diff(width)));
    match diff {
        Some(diff) => fold_end(diff, detail.lines_max(DIFF_LINES_MAX)),
        None => {
            fold_end(input_lines(input, Style::Plain, width), detail.lines_max(INPUT_LINES_MAX))
        }
    }
}

/// Input as people read it: an object's fields one by one, anything else as it is.
pub(crate) fn input_lines(input: &str, style: Style, width: usize) -> Vec<Line> {
    let Some(fields) = parse_fields(input) else {
        let text = show_end(&escape(input));
        let lines = text.split('\n').enumerate();
        return lines.flat_map(|(index, line)| value_line(line, style, index, width)).collect();
    };
    let field = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => escape(text),
            other => json_line(other),
        };
        let text = format!("{}: {}", escape_line(name), show_end(&value));
        let lines = text
            .split('\n')
            .enumerate()
            .flat_map(|(index, text)| value_line(text, style, index, width));
        lines.collect::<Vec<Line>>()
    };
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    let place = |name: &str| FIRST_FIELDS.iter().position(|first| *first == name);
    fields.sort_by_key(|(name, _)| place(name).unwrap_or(FIRST_FIELDS.len()));
    fields.into_iter().flat_map(field).collect()
}

/// A text without the newline at its end; blanks there are written out, since they cannot be seen.
fn show_end(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let seen = text.trim_end_matches([' ', '\t']);
    let blanks = text
        .get(seen.len()..)
        .unwrap_or("")
        .chars()
        .map(|blank| if blank == '\t' { "\\t" } else { "\\x20" });
    seen.chars().map(String::from).chain(blanks.map(str::to_owned)).collect()
}

/// A line of a value, broken where the page ends and not between words: each blank of it counts. The lines behind the first are
/// indented, so that none looks like the next field; the rest of a broken line has a sign in front of it, where no line has text.
fn value_line(text: &str, style: Style, index: usize, width: usize) -> Vec<Line> {
    let room = text_width(text_width(width));
    let line = Line::new(style, text.replace('\t', TAB));
    let rows = line.break_into(room).into_iter().enumerate();
    rows.map(|(row_index, row)| {
        let before = match (row_index, index) {
            (0, 0) => Line::new(style, " ".repeat(INDENT)),
            (0, _) => Line::new(style, " ".repeat(2 * INDENT)),
            _ => Line::new(Style::Dim, CONTINUED),
        };
        before.then_line(row)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(input: &str, width: usize) -> Vec<String> {
        let lines = input_lines(input, Style::Plain, width);
        assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn a_line_is_never_taken_for_the_rest_of_the_line_before() {
        // A comment that ends where the page does, and what would look like more of it.
        let input = serde_json::json!({"command": "# 3456789012345678901\nrm -rf ~"}).to_string();
        let broken = serde_json::json!({"command": "# 3456789012345678901rm -rf ~"}).to_string();
        assert_eq!(shown(&input, 34), ["  command: # 3456789012345678901", "    rm -rf ~"]);
        assert_eq!(shown(&broken, 34), ["  command: # 3456789012345678901", "  ↳ rm -rf ~"]);
    }

    #[test]
    fn what_matters_comes_first_and_blanks_at_the_end_are_seen() {
        let input = r#"{"note":"a\nb","path":"x \t","command":"ls\n"}"#;
        assert_eq!(shown(input, 40), ["  command: ls", "  path: x\\x20\\t", "  note: a", "    b"]);
    }

    #[test]
    fn a_field_that_occurs_twice_is_shown_twice() {
        let input = r#"{"command":"rm","command":"ls"}"#;
        assert_eq!(shown(input, 60), [format!("  {input}")]);
        let input = r#"{"a":[{"b":1,"b":2}]}"#;
        assert_eq!(shown(input, 60), [format!("  {input}")]);
    }
}
