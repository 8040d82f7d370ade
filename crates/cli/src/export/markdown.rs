//! A session as a document that people read: what was asked, what was answered, what was done.
//!
//! Promises: nothing that was said, run or printed breaks out of where it stands: fences are longer than any run of their
//! character inside, messages are quoted, and what would hide or reorder text is written out.

use std::io::Write;

use host::journal::{Archive, ArchivedSession};
use serde_json::Value;

use super::{ExportError, running_turn};
use crate::terminal::{escape, escape_line};

/// What a document shows of one output; the JSON export has all of it.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

pub(super) fn write(
    out: &mut impl Write,
    archive: &Archive,
    session: &ArchivedSession,
) -> Result<(), ExportError> {
    let title = match session.state.title.trim() {
        "" => "Session",
        title => title,
    };
    writeln!(out, "# {}\n", inline(title))?;
    writeln!(out, "- Session: {}", code(session.uri.as_str()))?;
    writeln!(out, "- Agent: {}", inline(&session.state.provider))?;
    for directory in session.state.working_directories.iter().flatten() {
        writeln!(out, "- Directory: {}", code(&path_text(directory)))?;
    }
    for chat in &session.chats {
        if session.chats.len() > 1 {
            writeln!(out, "\n# Chat: {}", inline(&chat.state.title))?;
        }
        archive.turns(chat, |turn| write_turn(out, &turn))?;
        if let Some(turn) = running_turn(chat) {
            write_turn(out, &turn)?;
        }
    }
    Ok(())
}

fn write_turn(out: &mut impl Write, turn: &Value) -> Result<(), ExportError> {
    let message = &turn["message"];
    let at = turn["startedAt"].as_str().unwrap_or("");
    let at = match at {
        "" => String::new(),
        at => format!(", {}", inline(at)),
    };
    writeln!(out, "\n## You{at}\n")?;
    writeln!(out, "{}", quote(message["text"].as_str().unwrap_or("")))?;
    for attachment in message["attachments"].as_array().into_iter().flatten() {
        let name = attachment["label"].as_str().or(attachment["uri"].as_str());
        writeln!(out, "\nAttached: {}", code(name.unwrap_or("something")))?;
    }
    let model = message["model"]["id"].as_str().map(inline);
    let model = model.map_or(String::new(), |model| format!(", {model}"));
    writeln!(out, "\n## Agent{model}")?;
    for part in turn["responseParts"].as_array().into_iter().flatten() {
        write_part(out, part)?;
    }
    match turn["state"].as_str() {
        Some("cancelled") => writeln!(out, "\n*Cancelled.*")?,
        None => writeln!(out, "\n*Still running.*")?,
        Some(_) => {}
    }
    Ok(())
}

fn write_part(out: &mut impl Write, part: &Value) -> Result<(), ExportError> {
    match part["kind"].as_str().unwrap_or("") {
        "markdown" => writeln!(out, "\n{}", close_fences(part["content"].as_str().unwrap_or("")))?,
        "reasoning" => {
            writeln!(out, "\n<details><summary>Reasoning</summary>\n")?;
            writeln!(out, "{}", fence("text", part["content"].as_str().unwrap_or("")))?;
            writeln!(out, "\n</details>")?;
        }
        "toolCall" => write_call(out, &part["toolCall"])?,
        "inputRequest" => {
            let request = &part["request"];
            let asked = request["message"].as_str().or(request["questions"][0]["message"].as_str());
            let answered = part["response"].as_str().unwrap_or("not answered");
            writeln!(out, "\n**Asked** ({}):\n", inline(answered))?;
            writeln!(out, "{}", quote(asked.unwrap_or("a question")))?;
        }
        "systemNotification" => writeln!(out, "\n{}", quote(&text_of(&part["content"])))?,
        "error" => {
            let message = part["error"]["message"].as_str().unwrap_or("unknown");
            writeln!(out, "\n**Failed:**\n\n{}", fence("text", message))?;
        }
        "contentRef" => writeln!(out, "\nContent: {}", code(part["uri"].as_str().unwrap_or("")))?,
        other => writeln!(out, "\n*A part of kind {}.*", code(other))?,
    }
    Ok(())
}

fn write_call(out: &mut impl Write, call: &Value) -> Result<(), ExportError> {
    let name = ["displayName", "toolName"].iter().find_map(|field| call[*field].as_str());
    let status = match (call["status"].as_str(), call["success"].as_bool()) {
        (Some("completed"), Some(false)) => "failed",
        (Some("completed"), _) => "done",
        (Some("cancelled"), _) => "not run",
        (status, _) => status.unwrap_or("unknown"),
    };
    writeln!(out, "\n**{}** ({})", inline(name.unwrap_or("Tool")), inline(status))?;
    let (edits, others): (Vec<&Value>, Vec<&Value>) = call["content"]
        .as_array()
        .into_iter()
        .flatten()
        .partition(|content| content["type"] == "fileEdit");
    if edits.is_empty() {
        let input = text_of(&call["toolInput"]);
        if !input.is_empty() {
            writeln!(out, "\n{}", fence(input_language(&input), &input))?;
        }
    }
    for edit in edits {
        write_edit(out, edit)?;
    }
    for content in others {
        match content["type"].as_str() {
            Some("text") => {
                writeln!(out, "\n{}", fence("text", content["text"].as_str().unwrap_or("")))?;
            }
            _ => {
                let name = content["uri"].as_str().or(content["type"].as_str());
                writeln!(out, "\nContent: {}", code(name.unwrap_or("something")))?;
            }
        }
    }
    if let Some(error) = call["error"]["message"].as_str() {
        writeln!(out, "\n{}", fence("text", error))?;
    }
    Ok(())
}

/// What an edit changed, as far as it is told: the diff where there is one, else the file and how much.
fn write_edit(out: &mut impl Write, edit: &Value) -> Result<(), ExportError> {
    let path = edit["after"]["uri"].as_str().or(edit["before"]["uri"].as_str());
    let path = path_text(path.unwrap_or("a file"));
    let count = |field: &str| edit["diff"][field].as_u64().unwrap_or(0);
    writeln!(out, "\nEdited {} (+{} -{})", code(&path), count("added"), count("removed"))?;
    let diff = edit["diff"]["unified"].as_str().or(edit["diff"].as_str());
    if let Some(diff) = diff {
        writeln!(out, "\n{}", fence("diff", diff))?;
    }
    Ok(())
}

/// A `file:` URI as a path; anything else as it is.
fn path_text(uri: &str) -> String {
    match wire::file_uri::path_of(uri) {
        Some(path) => String::from_utf8_lossy(&path).into_owned(),
        None => uri.to_owned(),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.contains_key("markdown") => text_of(&fields["markdown"]),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn input_language(input: &str) -> &'static str {
    match serde_json::from_str::<Value>(input) {
        Ok(Value::Object(_) | Value::Array(_)) => "json",
        _ => "text",
    }
}

/// Text inside a line: nothing in it begins a heading, a link or HTML, and it stays on its line.
fn inline(text: &str) -> String {
    let mut shown = String::new();
    for c in escape_line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '&' | '!') {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

/// A name as code inside a line.
fn code(text: &str) -> String {
    let text = escape_line(text);
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    if text.starts_with('`') || text.ends_with('`') || text.is_empty() {
        format!("{ticks} {text} {ticks}")
    } else {
        format!("{ticks}{text}{ticks}")
    }
}

/// A block of text as it is, in a fence that nothing in it can end.
fn fence(language: &str, text: &str) -> String {
    let end = text.floor_char_boundary(OUTPUT_BYTES_MAX);
    let (shown, rest) = text.split_at(end);
    let shown = escape(shown);
    let ticks = "`".repeat(longest_run(&shown, '`').max(2) + 1);
    let newline = if shown.ends_with('\n') { "" } else { "\n" };
    let mut block = format!("{ticks}{language}\n{shown}{newline}{ticks}");
    if !rest.is_empty() {
        block.push_str(&format!("\n\n*… and {} bytes more.*", rest.len()));
    }
    block
}

/// A text of somebody else: every line of it is quoted, so it ends where the quote does.
fn quote(text: &str) -> String {
    let lines = escape(text);
    let lines = lines
        .split('\n')
        .map(|line| if line.trim().is_empty() { ">".to_owned() } else { format!("> {line}") });
    let mut quoted = lines.collect::<Vec<_>>().join("\n");
    if let Some(open) = open_fence(text) {
        quoted.push_str(&format!("\n> {open}"));
    }
    quoted
}

/// An answer is Markdown already; a fence that it leaves open would swallow what comes after it.
fn close_fences(text: &str) -> String {
    let mut shown = escape(text);
    if let Some(open) = open_fence(&shown) {
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown.push_str(&open);
    }
    // An open HTML block would, too: HTML is shown, not meant.
    shown
        .replace("<!--", "&lt;!--")
        .replace("<details", "&lt;details")
        .replace("</details", "&lt;/details")
}

/// The line that ends the fence that a text leaves open, if it does.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        for mark in ['`', '~'] {
            let run = line.chars().take_while(|c| *c == mark).count();
            if run < 3 {
                continue;
            }
            open = match open {
                None => Some((mark, run)),
                Some((begun, length))
                    if begun == mark
                        && run >= length
                        && line.trim_end().chars().all(|c| c == mark) =>
                {
                    None
                }
                still => still,
            };
        }
    }
    open.map(|(mark, run)| mark.to_string().repeat(run))
}

fn longest_run(text: &str, mark: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(turn: &Value) -> String {
        let mut out = Vec::new();
        write_turn(&mut out, turn).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_turn_is_readable() {
        let turn = json!({
            "id": "t", "startedAt": "2026-11-15T08:00:00Z", "state": "complete",
            "message": {"text": "fix it\n# please", "attachments": [{"label": "a`b.txt"}]},
            "responseParts": [
                {"kind": "markdown", "content": "Sure:\n```rust\nfn x() {}"},
                {"kind": "toolCall", "toolCall": {
                    "displayName": "Run_command", "status": "completed", "success": true,
                    "toolInput": "echo '```'", "content": [{"type": "text", "text": "````\nout"}],
                }},
            ],
        });
        assert_eq!(
            written(&turn),
            "\n## You, 2026-11-15T08:00:00Z\n\n> fix it\n> # please\n\nAttached: ``a`b.txt``\n\n## Agent\n\n\
             Sure:\n```rust\nfn x() {}\n```\n\n**Run\\_command** (done)\n\n\
             ````text\necho '```'\n````\n\n`````text\n````\nout\n`````\n"
        );
    }

    #[test]
    fn a_fence_that_is_left_open_is_closed() {
        assert_eq!(open_fence("```\na\n```"), None);
        assert_eq!(open_fence("a\n~~~~ x\n```\n~~~"), Some("~~~~".to_owned()));
        assert_eq!(close_fences("````rust\nlet x"), "````rust\nlet x\n````");
    }

    proptest! {
        #[test]
        fn nothing_breaks_out_of_a_fence(text in "([`~\n #a]|\\PC){0,60}") {
            let block = fence("text", &text);
            let ticks = block.chars().take_while(|c| *c == '`').count();
            let inner: Vec<&str> = block.lines().collect();
            let ends = inner[1..].iter().filter(|line| {
                let line = line.trim();
                line.chars().count() >= ticks && line.chars().all(|c| c == '`')
            });
            prop_assert_eq!(ends.count(), 1, "{}", block);
        }

        #[test]
        fn every_line_of_a_quote_is_quoted(text in "([`~\n #a>]|\\PC){0,60}") {
            prop_assert!(quote(&text).lines().all(|line| line.starts_with('>')));
        }
    }
}
