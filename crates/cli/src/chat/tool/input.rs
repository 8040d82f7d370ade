//! What a call is about, as people read it: the command, the diff, or its fields one by one.
//!
//! Promises: every character of an input is shown. No value can pass for another field of it.

use serde_json::Value;
use wire::Object;

use super::edit::{DIFF_LINES_MAX, are_edits_shown, edit_lines, input_diff};
use super::references::{References, edits_of};
use super::{Detail, INDENT, body, fold_end, reference_text, text_of, text_width, title};
use crate::chat::line::{Line, Style, TAB};
use crate::terminal::{escape, escape_line, json_line};

/// Lines of input shown before a call is confirmed.
pub(super) const INPUT_LINES_MAX: usize = 12;

/// What a confirmation is about: risk, input, edits.
pub(super) fn question_lines(
    call: &Object,
    width: usize,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
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
    lines.extend(asked_input(call, width, detail, references));
    for edit in edits_of(call) {
        lines.extend(edit_lines(edit, width, detail, references));
    }
    lines
}

fn asked_input(call: &Object, width: usize, detail: Detail, references: &References) -> Vec<Line> {
    let input = match call.get("toolInput") {
        Some(Value::String(input)) => input,
        Some(reference @ Value::Object(_)) => {
            return body(&reference_text(reference), Style::Dim, width);
        }
        _ => return Vec::new(),
    };
    let fields = match serde_json::from_str(input) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    };
    // The message has said all of it.
    if let Some(fields) = &fields
        && fields.len() == 1
        && fields.values().all(|value| {
            value.is_string() && text_of(Some(value)) == text_of(call.get("invocationMessage"))
        })
    {
        return Vec::new();
    }
    if let Some(diff) = fields.and_then(|fields| input_diff(call, &fields, width)) {
        // The same change, with its place in the file.
        return match are_edits_shown(call, references) {
            true => Vec::new(),
            false => fold_end(diff, detail.lines_max(DIFF_LINES_MAX)),
        };
    }
    let lines = input_lines(input, Style::Plain, width);
    fold_end(lines, detail.lines_max(INPUT_LINES_MAX))
}

/// Input as people read it: an object's fields one by one, anything else as it is.
pub(crate) fn input_lines(input: &str, style: Style, width: usize) -> Vec<Line> {
    let Ok(Value::Object(fields)) = serde_json::from_str(input) else {
        let lines = escape(input);
        let lines = lines.trim_end().split('\n');
        return lines
            .flat_map(|line| value_line(line, style, INDENT, width))
            .collect();
    };
    let field = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => escape(text),
            other => json_line(other),
        };
        let text = format!("{}: {}", escape_line(name), value.trim_end());
        let texts: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let lines = texts.into_iter().enumerate().flat_map(|(index, text)| {
            // Its further lines are indented: none of them looks like the next field.
            let indent = INDENT * (1 + usize::from(index > 0));
            value_line(&text, style, indent, width)
        });
        lines.collect::<Vec<Line>>()
    };
    fields.iter().flat_map(field).collect()
}

/// A line of a value, broken where the page ends and not between words: each blank of it counts.
fn value_line(text: &str, style: Style, indent: usize, width: usize) -> Vec<Line> {
    let further = 2 * INDENT;
    let room = text_width(text_width(width));
    let line = Line::new(style, text.replace('\t', TAB));
    let rows = line.break_into(room).into_iter().enumerate();
    rows.map(|(index, row)| {
        let indent = if index == 0 { indent } else { further };
        Line::new(style, " ".repeat(indent)).then_line(row)
    })
    .collect()
}
