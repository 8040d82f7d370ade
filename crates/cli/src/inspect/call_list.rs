//! The list of a chat's requests to models.

use std::fmt::Write as _;

use host::sent_request::call_json;
use serde_json::Value;
use wire::Timestamp;

use super::sent_call::{SentCalls, describe_end, format_cost, format_tokens};
use crate::terminal::escape_line;

/// The longest end of a call in the list.
const END_CHARS_MAX: usize = 60;

pub(super) fn to_json(calls: &SentCalls<'_>) -> Value {
    let of_chats = calls
        .chats
        .iter()
        .flat_map(|(chat, calls)| calls.iter().map(|call| call_json(&chat.state.resource, call)));
    of_chats.collect()
}

pub(super) fn to_text(calls: &SentCalls<'_>) -> String {
    if calls.chats.is_empty() {
        return "No requests to a model are stored. The native agent makes them; `inspect_calls_max = 0` in the \
                settings stores none.\n"
            .to_owned();
    }
    let mut text = String::new();
    for (chat, calls) in &calls.chats {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{}", escape_line(&chat.state.resource));
        let head = ["call", "time", "model", "in", "out", "cached", "cost", "end"];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(calls.iter().map(|call| {
            let end = call.end.clone().unwrap_or_default();
            let mut ended = describe_end(call);
            if call.purpose != "answer" {
                ended = format!("{} ({})", ended, escape_line(&call.purpose));
            }
            [
                call.number.to_string(),
                Timestamp(call.at).to_rfc3339(),
                escape_line(&call.model),
                format_tokens(&end["inputTokens"]),
                format_tokens(&end["outputTokens"]),
                format_tokens(&end["cacheReadTokens"]),
                format_cost(&end["cost"]),
                shorten(&ended),
            ]
        }));
        write_table(&mut text, &rows);
    }
    text
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(END_CHARS_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

fn write_table<const N: usize>(text: &mut String, rows: &[[String; N]]) {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "  {cell:width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
