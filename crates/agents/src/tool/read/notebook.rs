//! A notebook as its cells: what was written, what came out, pictures as pictures.
//!
//! Promises: bounded, whatever a cell holds; a file that is not what its name says is read as the text it is.
//! Must not know: kernels, and how cells are run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::media_type::detect;
use serde_json::{Value, json};
use wire::NamedBody;
use workspace::{FILE_BYTES_MAX, Workspace, WorkspacePath};

use super::super::format::{count, group_digits};
use super::super::{TEXT_BYTES_MAX, ToolError, ToolOutcome};
use super::{ReadRange, media};

/// Shown of what one cell printed.
const OUTPUT_BYTES_MAX: usize = 4 * 1_024;

/// Shown of what was written into one cell.
const SOURCE_BYTES_MAX: usize = TEXT_BYTES_MAX / 2;

/// Pictures of one call.
const PICTURES_MAX: usize = 8;

pub(super) fn is_notebook(path: &str) -> bool {
    let name = path.as_bytes();
    name.len() > 6 && name[name.len() - 6..].eq_ignore_ascii_case(b".ipynb")
}

/// The cells of a notebook; `None` if it is not one.
pub(super) fn read(
    path: &WorkspacePath,
    range: ReadRange,
    workspace: &Workspace,
) -> Result<Option<ToolOutcome>, ToolError> {
    let file = workspace.read_bytes(path, FILE_BYTES_MAX)?;
    let Some(receipt) = &file.receipt else {
        return Ok(None); // too large to be taken apart
    };
    let notebook: Value = serde_json::from_slice(&file.bytes).unwrap_or_default();
    let Some(cells) = notebook["cells"].as_array() else { return Ok(None) };
    let display_path = workspace.display_path(path);
    let first = range.first();
    if first > 1 && first > cells.len() {
        let cells = count(cells.len(), "cell", "cells");
        return Err(ToolError(format!("{display_path} has only {cells}")));
    }
    let mut page = CellPage::default();
    let wanted = cells.iter().enumerate().skip(first - 1);
    for (index, cell) in wanted.take(range.limit.unwrap_or(usize::MAX).max(1)) {
        if !page.add(index + 1, cell) {
            break;
        }
    }
    workspace.mark_as_read(receipt);
    let shown = page.cells;
    page.finish(first, cells.len());
    Ok(Some(ToolOutcome {
        summary: format!("Read {} of {display_path}", count(shown, "cell", "cells")),
        text: page.text,
        content: page.content,
        bodies: page.bodies,
        success: true,
        ..ToolOutcome::default()
    }))
}

/// The cells that one call returns.
#[derive(Debug, Default)]
struct CellPage {
    text: String,
    cells: usize,
    content: Vec<Value>,
    bodies: Vec<NamedBody>,
}

impl CellPage {
    /// Whether the cell fitted.
    fn add(&mut self, number: usize, cell: &Value) -> bool {
        let kind = cell["cell_type"].as_str();
        let mut known = ["code", "markdown", "raw"].into_iter();
        let kind = known.find(|known| kind == Some(known)).unwrap_or("unknown");
        let mut text = format!("[cell {number}, {kind}]\n");
        push_cut(&mut text, &join(&cell["source"]), SOURCE_BYTES_MAX);
        let outputs = cell["outputs"].as_array().map_or(&[][..], Vec::as_slice);
        let mut pictures = Vec::new();
        let mut printed = String::new();
        for output in outputs {
            self.add_output(output, &mut printed, &mut pictures);
        }
        if !printed.is_empty() {
            text.push_str(&format!("[output of cell {number}]\n"));
            push_cut(&mut text, &printed, OUTPUT_BYTES_MAX);
        }
        if self.cells > 0 && self.text.len() + text.len() > TEXT_BYTES_MAX {
            return false;
        }
        for (mime, bytes) in pictures {
            let body = NamedBody::of(bytes);
            self.content.push(json!({
                "type": "resource",
                "uri": body.digest().uri_with_name(&format!("cell-{number}")),
                "contentType": mime,
                "sizeHint": body.len(),
            }));
            self.bodies.push(body);
        }
        self.text.push_str(&text);
        self.cells += 1;
        true
    }

    fn add_output(
        &self,
        output: &Value,
        printed: &mut String,
        pictures: &mut Vec<(&'static str, Vec<u8>)>,
    ) {
        match output["output_type"].as_str().unwrap_or("") {
            "stream" => printed.push_str(&without_escapes(&join(&output["text"]))),
            "error" => {
                let name = output["ename"].as_str().unwrap_or("Error");
                let value = output["evalue"].as_str().unwrap_or("");
                let trace: Vec<&str> = output["traceback"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                let trace = without_escapes(&trace.join("\n"));
                printed.push_str(&format!("{name}: {value}\n{trace}\n"));
            }
            _ => self.add_data(&output["data"], printed, pictures),
        }
    }

    /// What a cell displayed comes in several forms: the picture if there is one, else the text.
    fn add_data(
        &self,
        data: &Value,
        printed: &mut String,
        pictures: &mut Vec<(&'static str, Vec<u8>)>,
    ) {
        let forms = data.as_object().into_iter().flatten();
        for (_, body) in forms.filter(|(mime, _)| mime.starts_with("image/")) {
            let encoded: String = join(body).split_ascii_whitespace().collect();
            let decoded = STANDARD.decode(encoded).ok();
            let picture = decoded
                .and_then(|bytes| Some((detect(&bytes)?, bytes)))
                .filter(|(mime, _)| mime.starts_with("image/"));
            let Some((mime, bytes)) = picture else {
                continue; // a drawing written as text, or not what it says: the text form is shown
            };
            let is_space = self.content.len() + pictures.len() < PICTURES_MAX;
            match (media::refuse_pixels(&bytes), is_space) {
                (Some(why), _) => {
                    printed.push_str(&format!("[picture, {mime}, not shown: {why}]\n"))
                }
                (None, false) => {
                    printed.push_str(&format!("[picture, {mime}, not shown: read fewer cells]\n"));
                }
                (None, true) => {
                    printed.push_str(&format!("[picture, {mime}, attached]\n"));
                    pictures.push((mime, bytes));
                }
            }
            return;
        }
        match join(&data["text/plain"]) {
            text if !text.is_empty() => {
                printed.push_str(&without_escapes(&text));
                printed.push('\n');
            }
            _ => {
                let forms: Vec<&str> =
                    data.as_object().into_iter().flatten().map(|(mime, _)| mime.as_str()).collect();
                printed.push_str(&format!("[output as {}]\n", forms.join(", ")));
            }
        }
    }

    fn finish(&mut self, first: usize, total: usize) {
        if total == 0 {
            self.text.push_str("[the notebook has no cells]\n");
        }
        let next = first + self.cells;
        if next <= total {
            self.text.push_str(&format!(
                "[more cells follow, {total} in all; go on with offset {next}]\n"
            ));
        }
        self.text.push_str(
            "[this is how the notebook reads; to change it, `edit` the JSON of the file, which `grep` shows]\n",
        );
    }
}

/// A text of a notebook: a string, or a list of its lines.
fn join(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// Adds a text with a newline at its end, cut to a bound.
fn push_cut(into: &mut String, text: &str, bytes_max: usize) {
    let end = text.floor_char_boundary(bytes_max);
    into.push_str(&text[..end]);
    if !into.ends_with('\n') {
        into.push('\n');
    }
    if end < text.len() {
        let more = group_digits((text.len() - end) as u64);
        into.push_str(&format!("[{more} more bytes]\n"));
    }
}

/// Without the sequences that colour text in a terminal.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if rest.next() == Some('[') {
            rest.by_ref().find(|c| ('@'..='~').contains(c));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_escapes() {
        assert!(is_notebook("a/b.IPYNB") && !is_notebook(".ipynb") && !is_notebook("a.json"));
        assert_eq!(without_escapes("a\u{1b}[31mb\u{1b}[0m\u{1b}"), "ab");
        let mut text = String::new();
        push_cut(&mut text, "ääää", 3);
        assert_eq!(text, "ä\n[6 more bytes]\n");
    }
}
