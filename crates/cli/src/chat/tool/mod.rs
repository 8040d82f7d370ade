//! A tool call in lines: what it does, how far it is, its result.
//!
//! Promises: every state of a call has a look of its own. Long input and output are folded, and by how much is shown; what
//! is decided on can be had whole. No value of an input can pass for another field of it.
//! Must not know: terminals, how a call is confirmed.

#[cfg(test)]
mod decision_tests;
mod edit;
mod input;
mod input_change;
mod input_json;
mod output;
mod plan;
mod proposed_plan;
mod references;
#[cfg(test)]
mod tests;

use client::token::wanted_resource;
use serde_json::Value;
use wire::Object;

pub(crate) use self::input::input_lines_of;
pub(crate) use self::output::whole_output;
pub(crate) use self::plan::{is_open_plan, is_written_plan, plan_lines, plan_summary};
#[cfg(test)]
pub(crate) use self::references::Lookup;
pub(crate) use self::references::{
    ReferencedContent, References, WorkerState, content_uris, is_asked,
};

use super::line::{Line, Style};
use super::render::Page;
use super::wrap::wrap;
use crate::format::format_bytes;
use crate::terminal::{escape, escape_line};

/// Lines of a text that is shown whole: a file may be written by one call.
const WHOLE_LINES_MAX: usize = 2_000;
/// Lines of a plan that was approved, where it may be folded.
const PLAN_LINES_MAX: usize = 40;
const INDENT: usize = 2;
/// What stands before the rest of a line that was broken; lines of a value have no text there.
const CONTINUED: &str = "  ↳ ";

/// How much is shown of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What fits beside other things; the rest is folded.
    Brief,
    /// All of it, where it is decided on, and printed once.
    Whole,
    /// All of it, where somebody asked for that.
    Unfolded,
}

impl Detail {
    fn lines_max(self, brief: usize) -> usize {
        match self {
            Self::Brief => brief,
            Self::Whole => WHOLE_LINES_MAX,
            Self::Unfolded => usize::MAX,
        }
    }
}

/// The call as it stands, with the contents it refers to.
pub(crate) fn tool_lines_with(
    call: &Object,
    page: Page,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
    let width = page.width;
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
        // A plan is shown when it is written down.
        "streaming" | "running" if plan::is_plan(call) => {}
        "streaming" => lines.extend(output::streaming_lines(call, width)),
        "pending-confirmation" => {
            lines.extend(input::question_lines(call, page, detail, references));
        }
        "running" => match output::worker_line(call, &title(call, status), references) {
            Some(line) => lines = vec![line.clip(width)],
            None => lines.extend(output::running_lines(call, width)),
        },
        "completed" if is_written_plan(call) => lines.extend(plan_lines(call, width, usize::MAX)),
        // What the agent works by from now on; its result says no more than that it may.
        "completed" if let Some(plan) = proposed_plan::approved_plan(call) => {
            let plan = proposed_plan::lines(&plan, page);
            lines.extend(fold_end(plan, detail.lines_max(PLAN_LINES_MAX)));
        }
        // A result is folded, unless it is what is decided on.
        "completed" if detail != Detail::Unfolded => {
            lines.extend(output::result_lines(call, width, Detail::Brief, references));
        }
        "completed" | "pending-result-confirmation" => {
            lines.extend(output::result_lines(call, width, detail, references));
        }
        "auth-required" => {
            let resource = escape_line(wanted_resource(call).unwrap_or("RESOURCE"));
            let text = format!(
                "its server wants another token: sign in, or bring one by `greenroom agents token {resource}`"
            );
            lines.extend(body(&text, Style::Dim, width));
        }
        "cancelled" => lines.extend(output::cancelled_lines(call, width)),
        _ => {}
    }
    lines
}

/// What a call that waits is called, without what it is about.
pub(crate) fn title_lines(call: &Object, width: usize) -> Vec<Line> {
    let status = call.get("status").and_then(Value::as_str).unwrap_or("");
    head("?", Style::Warn, &title(call, status), width)
}

/// What the call is called in its state.
fn title(call: &Object, status: &str) -> String {
    let text = |field: &str| escape_line(&text_of(call.get(field)));
    let name = || {
        let display_name = text("displayName");
        if display_name.is_empty() { text("toolName") } else { display_name }
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
    let Some(value) = value else { return String::new() };
    let text =
        value.as_str().or_else(|| value["markdown"].as_str()).or_else(|| value["text"].as_str());
    escape(text.unwrap_or(""))
}

/// A reference to content that is stored elsewhere.
pub(crate) fn reference_text(reference: &Value) -> String {
    let kind = reference["contentType"].as_str().unwrap_or("content");
    let size = reference["sizeHint"]
        .as_u64()
        .map_or(String::new(), |bytes| format!(", {}", format_bytes(bytes)));
    let uri = reference["uri"].as_str().unwrap_or("");
    format!("[{}{size}: {}]", escape_line(kind), escape_line(uri))
}

fn head(sign: &str, style: Style, title: &str, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let room = text_width(text_width(width));
    for (index, text) in wrap(title, room).into_iter().enumerate() {
        // Further in than what comes below: no part of a title looks like a field of the input.
        let before = if index == 0 {
            Line::new(style, format!("{sign} "))
        } else {
            Line::new(Style::Plain, " ".repeat(2 * INDENT))
        };
        lines.push(before.then(Style::Plain, text));
    }
    lines
}

/// Indented text.
pub(crate) fn body(text: &str, style: Style, width: usize) -> Vec<Line> {
    let lines = wrap(text, text_width(width)).into_iter();
    lines.map(|text| Line::new(style, format!("{}{text}", " ".repeat(INDENT)))).collect()
}

/// Indented text whose further lines stand further in, so that none of them looks like a line of its own.
fn hanging(text: &str, style: Style, width: usize) -> Vec<Line> {
    let lines = wrap(text, text_width(text_width(width))).into_iter().enumerate();
    lines
        .map(|(index, text)| {
            let indent = INDENT * (1 + usize::from(index > 0));
            Line::new(style, format!("{}{text}", " ".repeat(indent)))
        })
        .collect()
}

fn text_width(width: usize) -> usize {
    width.saturating_sub(INDENT).max(1)
}

/// Lines further in.
fn indent_lines(lines: Vec<Line>) -> Vec<Line> {
    let lines = lines.into_iter();
    lines.map(|line| Line::new(Style::Plain, " ".repeat(INDENT)).then_line(line)).collect()
}

/// The first lines, and how many more there are.
pub(crate) fn fold_end(mut lines: Vec<Line>, max: usize) -> Vec<Line> {
    if lines.len() > max {
        let more = lines.len() - (max - 1);
        lines.truncate(max - 1);
        lines.push(fold_line(&format!("{more} more lines")));
    }
    lines
}

/// The last lines, and how many there are above.
fn fold_start(lines: Vec<Line>, max: usize) -> Vec<Line> {
    if lines.len() <= max {
        return lines;
    }
    let above = lines.len() - (max - 1);
    let last = lines.into_iter().skip(above);
    let fold = fold_line(&format!("{above} lines above"));
    std::iter::once(fold).chain(last).collect()
}

fn fold_line(what: &str) -> Line {
    Line::new(Style::Dim, format!("  … {what} (Ctrl-O)"))
}
