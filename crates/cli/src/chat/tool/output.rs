//! What came out of a call: the end of what it printed, the files it changed, why it failed.
//!
//! Promises: of long output the end is shown, which is what people look for, and how much stands above it.

use serde_json::Value;
use wire::Object;
use wire::state::status;

use super::edit::{edit_lines, edit_text, show_edit};
use super::references::{References, edits_of, is_asked};
use super::{Detail, body, fold_start, reference_text, text_of, text_width, title};
use crate::chat::line::{Line, Style, TAB};
use crate::format::{format_bytes, format_duration, format_status};
use crate::terminal::{escape, escape_line, json_line};

/// Lines of output shown of a call that is over.
const RESULT_LINES_MAX: usize = 10;
/// Lines shown of the output of a call that still runs.
const RUNNING_LINES_MAX: usize = 4;

/// The result of a call that is over, or is to be reviewed.
pub(super) fn result_lines(
    call: &Object,
    width: usize,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
    let has_failed = call.get("success") == Some(&Value::Bool(false));
    let style = if has_failed { Style::Bad } else { Style::Dim };
    let title = title(call, "completed");
    // What is decided on is shown as it is.
    let is_short = detail == Detail::Brief && !is_asked(call);
    let mut output = Vec::new();
    let blocks = call.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for block in own_blocks(blocks).filter(|block| block["type"] != "fileEdit") {
        // A file that was read is known by its name, and answers stand with their questions; the model alone needs the lines.
        if is_known_otherwise(call) && !has_failed && is_short {
            continue;
        }
        let text = block_text(block);
        let text = text.trim_end();
        // Some tools repeat for the model what people read in the title.
        let is_repeated = is_short && (text == title || text.strip_suffix('.') == Some(&title));
        if !text.is_empty() && !is_repeated {
            output.extend(output_lines(text, style, width));
        }
    }
    let mut lines = fold_start(output, detail.lines_max(RESULT_LINES_MAX));
    let is_one_edit = edits_of(call).count() == 1;
    lines.extend(edit_lines(call, width, detail, |edit| {
        let mut shown = show_edit(call, edit, width, references);
        // The title has named the file already.
        if is_short && is_one_edit && !shown.change.is_empty() && names_file(&title, edit) {
            shown.head.clear();
        }
        shown
    }));
    if let Some(error) = call.get("error").filter(|error| !error.is_null()) {
        let message =
            error["message"].as_str().or(error.as_str()).map_or_else(|| json_line(error), escape);
        if message != title {
            lines.extend(body(&message, Style::Bad, width));
        }
    }
    lines
}

/// Whether people know what came out of a call without reading it.
fn is_known_otherwise(call: &Object) -> bool {
    let kind = call.get("_meta").map(|meta| &meta["toolKind"]);
    kind.is_some_and(|kind| kind == "read")
        || call.get("toolName").is_some_and(|name| name == "ask_user")
}

fn names_file(title: &str, edit: &Value) -> bool {
    let side = |side: &str| edit[side]["uri"].as_str();
    let name = side("after").or(side("before")).and_then(|uri| uri.rsplit('/').next());
    name.is_some_and(|name| title.contains(name))
}

/// The last lines of what comes out of a call that still runs.
pub(super) fn running_lines(call: &Object, width: usize) -> Vec<Line> {
    let content = call.get("content").and_then(Value::as_array);
    let last = content.and_then(|blocks| own_blocks(blocks).last());
    last.map_or_else(Vec::new, |block| last_lines(&block_text_end(block, width), width))
}

/// The one line of a call that is a worker's: its state, what it does, for how long, and how to go there.
pub(super) fn worker_line(call: &Object, title: &str, references: &References) -> Option<Line> {
    let blocks = call.get("content")?.as_array()?;
    let worker = blocks.iter().find(|block| block["type"] == "subagent")?;
    let chat = worker["resource"].as_str()?;
    let line = Line::new(Style::Plain, "◐ ").then(Style::Bold, title);
    let line = match references.worker(chat) {
        None => line,
        Some(worker) => {
            let state = format_status(worker.status);
            let doing = worker.activity.as_deref().unwrap_or(&state);
            let needs_answer = worker.status & status::ACTIVITY_MASK == status::INPUT_NEEDED;
            let (doing, style) =
                if needs_answer { (state.as_str(), Style::Warn) } else { (doing, Style::Plain) };
            line.then(Style::Dim, " · ")
                .then(style, doing)
                .then(Style::Dim, format!(" · {}", format_duration(worker.seconds)))
        }
    };
    Some(line.then(Style::Dim, format!(" · /open {chat}")))
}

/// The last lines of an input that is being written.
pub(super) fn streaming_lines(call: &Object, width: usize) -> Vec<Line> {
    let so_far = call.get("partialInput").and_then(Value::as_str);
    let so_far = last_bytes(so_far.unwrap_or(""), width.saturating_mul(4 * RUNNING_LINES_MAX));
    last_lines(&escape(so_far), width)
}

fn last_lines(text: &str, width: usize) -> Vec<Line> {
    let lines = output_lines(text.trim_end(), Style::Dim, width);
    let from = lines.len().saturating_sub(RUNNING_LINES_MAX);
    lines.into_iter().skip(from).collect()
}

/// Lines as they were printed, broken where the page ends.
fn output_lines(text: &str, style: Style, width: usize) -> Vec<Line> {
    let lines = text
        .split('\n')
        .flat_map(|line| Line::new(style, line.replace('\t', TAB)).break_into(text_width(width)));
    super::indent_lines(lines.collect())
}

/// No more than can be shown is worth looking at.
fn block_text_end(block: &Value, width: usize) -> String {
    match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), Some(text)) => {
            escape(last_bytes(text, width.saturating_mul(4 * RUNNING_LINES_MAX)))
        }
        _ => block_text(block),
    }
}

fn last_bytes(text: &str, bytes: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(from..).unwrap_or("")
}

/// The blocks that say something of their own: what was printed in a terminal is there as text too.
fn own_blocks(blocks: &[Value]) -> impl Iterator<Item = &Value> {
    let has_text = blocks.iter().any(|block| block["type"] == "text");
    blocks.iter().filter(move |block| !(has_text && block["type"] == "terminal"))
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
            format!("{}{ended}\n{preview}", text("title")).trim_end().to_owned()
        }
        Some("resource") => reference_text(block),
        Some("embeddedResource") => {
            let bytes = block["data"].as_str().map_or(0, |data| data.len() as u64 / 4 * 3);
            format!("[{}, {}]", text("contentType"), format_bytes(bytes))
        }
        other => format!("[{}]", escape_line(other.unwrap_or("something unknown"))),
    }
}

/// Where the whole output of a call is stored, if that is elsewhere.
pub(crate) fn whole_output(call: &Object) -> Option<String> {
    let blocks = call.get("content")?.as_array()?;
    let mut stored = blocks.iter().filter(|block| {
        let content_type = block["contentType"].as_str().unwrap_or("");
        block["type"] == "resource" && content_type.starts_with("text/")
    });
    Some(stored.next_back()?["uri"].as_str()?.to_owned())
}

/// Why a call was not carried out.
pub(super) fn cancelled_lines(call: &Object, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (label, field) in [("why", "reasonMessage"), ("instead", "userSuggestion")] {
        let text = text_of(call.get(field));
        if !text.is_empty() {
            lines.extend(body(&format!("{label}: {text}"), Style::Dim, width));
        }
    }
    lines
}
