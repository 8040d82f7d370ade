//! The state of a terminal channel: what it printed, by command where the shell tells, who holds it, whether it runs.
//!
//! Promises: text is appended in constant time; what is trimmed is the oldest, at a line's end where there is one.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Fields, StateError};
use crate::Object;

/// A terminal. `isPty` lives in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminalState {
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cols: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    pub content: Vec<TerminalPart>,
    /// `{status: "running"}` or `{status: "exited", exitCode?}`.
    pub lifecycle: Value,
    /// Who holds it: `TerminalClaim`.
    pub claim: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_command_detection: Option<bool>,
    #[serde(flatten)]
    pub extra: Object,
    /// The characters in all parts.
    #[serde(skip)]
    chars: usize,
}

/// A stretch of output: of one command, or of none.
#[derive(Debug, Clone, PartialEq)]
pub struct TerminalPart {
    /// Its output so far, which is the field that [`Self::text_field`] names.
    text: String,
    /// All its other fields.
    pub fields: Object,
}

impl TerminalState {
    pub fn new(title: &str, claim: Value) -> Self {
        Self {
            title: title.to_owned(),
            cwd: None,
            cols: None,
            rows: None,
            content: Vec::new(),
            lifecycle: json!({"status": "running"}),
            claim,
            supports_command_detection: None,
            extra: Object::new(),
            chars: 0,
        }
    }

    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a terminal", value)?;
        let content: Vec<TerminalPart> = fields
            .list("content")
            .ok_or_else(|| fields.missing("content"))?
            .into_iter()
            .map(TerminalPart::from_value)
            .collect::<Result<_, _>>()?;
        let number = |fields: &mut Fields, field| fields.take(field).and_then(|v| v.as_i64());
        Ok(Self {
            title: fields.text("title")?,
            cwd: fields.optional_text("cwd"),
            cols: number(&mut fields, "cols"),
            rows: number(&mut fields, "rows"),
            chars: content.iter().map(|part| part.text.chars().count()).sum(),
            content,
            lifecycle: fields.present("lifecycle").ok_or_else(|| fields.missing("lifecycle"))?,
            claim: fields.present("claim").ok_or_else(|| fields.missing("claim"))?,
            supports_command_detection: fields
                .take("supportsCommandDetection")
                .and_then(|v| v.as_bool()),
            extra: fields.rest(),
        })
    }

    pub fn is_running(&self) -> bool {
        self.lifecycle["status"] == "running"
    }

    /// The client that holds it, if it is not a session.
    pub fn holder(&self) -> Option<&str> {
        if self.claim["kind"] == "client" { self.claim["clientId"].as_str() } else { None }
    }

    /// The characters in all parts.
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// Appends output to the command that runs, or to the stretch between commands.
    pub(crate) fn append(&mut self, data: &str) {
        self.chars += data.chars().count();
        match self.content.last_mut() {
            Some(part) if part.takes_output() => part.text.push_str(data),
            Some(_) | None => self.content.push(TerminalPart::unclassified(data)),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.content.clear();
        self.chars = 0;
    }

    /// Removes the oldest output once there are more than `chars_max` characters, so that three quarters of it are left: what
    /// is trimmed costs little for each character printed. The last `lines_min` lines stay, as far as `chars_max` allows.
    pub fn trim(&mut self, chars_max: usize, lines_min: usize) {
        if self.chars <= chars_max {
            return;
        }
        let excess = self.chars - chars_max;
        let wanted = excess + chars_max / 4;
        let spare = self.chars_before_last_lines(lines_min);
        let mut remove = wanted.min(spare).max(excess);
        let mut gone = 0;
        for part in &mut self.content {
            if remove == 0 {
                break;
            }
            let chars = part.text.chars().count();
            if chars <= remove {
                gone += 1;
                remove -= chars;
                self.chars -= chars;
                continue;
            }
            let cut =
                part.text.char_indices().nth(remove).map_or(part.text.len(), |(index, _)| index);
            let kept = part.text.split_off(end_of_line(&part.text, cut));
            self.chars -= part.text.chars().count();
            part.text = kept;
            remove = 0;
        }
        self.content.drain(..gone);
    }

    /// How many characters come before the last so many lines.
    fn chars_before_last_lines(&self, lines: usize) -> usize {
        let (mut left, mut kept) = (lines, 0);
        for part in self.content.iter().rev() {
            for letter in part.text.chars().rev() {
                if letter == '\n' {
                    if left == 0 {
                        return self.chars - kept;
                    }
                    left -= 1;
                }
                kept += 1;
            }
        }
        0
    }
}

/// Where the line ends that a cut goes through: there, unless that is all there is.
fn end_of_line(text: &str, cut: usize) -> usize {
    let (before, after) = text.split_at(cut);
    if before.is_empty() || before.ends_with('\n') {
        return cut;
    }
    let end = after.find('\n').map(|at| cut + at + 1);
    end.filter(|end| *end < text.len()).unwrap_or(cut)
}

impl TerminalPart {
    fn from_value(value: Value) -> Result<Self, StateError> {
        let mut part =
            Self { text: String::new(), fields: Fields::of("a part of a terminal", value)?.rest() };
        if let Some(name) = part.text_field()
            && let Some(Value::String(text)) = part.fields.shift_remove(name)
        {
            part.text = text;
        }
        Ok(part)
    }

    fn unclassified(data: &str) -> Self {
        let mut fields = Object::new();
        fields.insert("type".to_owned(), json!("unclassified"));
        Self { text: data.to_owned(), fields }
    }

    /// A command that begins. `fields` has its id, its line and when it began.
    pub(crate) fn command(fields: Object) -> Self {
        debug_assert_eq!(fields.get("type"), Some(&json!("command")));
        Self { text: String::new(), fields }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The id of the command whose output it is.
    pub fn command_id(&self) -> Option<&str> {
        if self.fields.get("type")? == "command" {
            self.fields.get("commandId")?.as_str()
        } else {
            None
        }
    }

    fn text_field(&self) -> Option<&'static str> {
        match self.fields.get("type")?.as_str()? {
            "unclassified" => Some("value"),
            "command" => Some("output"),
            _ => None,
        }
    }

    fn takes_output(&self) -> bool {
        match self.command_id() {
            Some(_) => self.fields.get("isComplete") == Some(&json!(false)),
            None => self.text_field().is_some(),
        }
    }
}

impl Serialize for TerminalPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        if let Some(name) = self.text_field() {
            map.serialize_entry(name, &self.text)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(lines: usize) -> TerminalState {
        let mut terminal = TerminalState::new("t", json!({"kind": "client", "clientId": "ann"}));
        for line in 0..lines {
            terminal.append(&format!("line {line:06}\n"));
        }
        terminal
    }

    fn text(terminal: &TerminalState) -> String {
        terminal.content.iter().map(TerminalPart::text).collect()
    }

    #[test]
    fn the_oldest_lines_go_first_and_the_last_stay() {
        let mut trimmed = terminal(1_000);
        assert_eq!(trimmed.chars(), 12_000);
        trimmed.trim(12_000, 10);
        assert_eq!(trimmed.chars(), 12_000);
        trimmed.append("x");
        trimmed.trim(12_000, 10);
        assert_eq!(trimmed.chars(), text(&trimmed).chars().count());
        assert!(trimmed.chars() <= 9_000 && trimmed.chars() > 8_900);
        assert!(text(&trimmed).starts_with("line 000"), "at a line's end");
        assert!(text(&trimmed).ends_with("line 000999\nx"));
        // So many lines that a quarter less would not hold them.
        let mut kept = terminal(1_000);
        kept.append("x");
        kept.trim(12_000, 950);
        assert_eq!(text(&kept).lines().count(), 951);
        let mut full = terminal(1_000);
        full.trim(6_000, 950);
        assert!(full.chars() <= 6_000, "the bound is the bound");
    }

    #[test]
    fn whole_parts_go_and_a_long_line_is_cut() {
        let mut terminal = terminal(0);
        terminal.append("before");
        let fields = json!({"type": "command", "commandId": "c", "isComplete": false});
        let Value::Object(fields) = fields else { unreachable!("an object") };
        terminal.content.push(TerminalPart::command(fields));
        terminal.append(&"ü".repeat(200));
        terminal.trim(100, 3);
        assert_eq!(terminal.content.len(), 1);
        assert_eq!(terminal.content[0].command_id(), Some("c"));
        assert_eq!(terminal.chars(), text(&terminal).chars().count());
        assert!(terminal.chars() <= 100);
    }
}
