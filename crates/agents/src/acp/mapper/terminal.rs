//! What a command of an agent printed, as agents tell it beside their calls (AG-27d), and the terminals of the host that commands run
//! in (AG-52).
//!
//! Promises: what is told is one growing text, bounded. A call shows no terminal but those that the host made for it.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value};

use super::Mapper;
use super::call::{MappedCall, Stage};
use super::displayed_command::DisplayedCommand;

/// Shown of the end while it runs.
const LIVE_BYTES_MAX: usize = 64 * 1_024;

/// Held in all; of more, the beginning is dropped.
const WHOLE_BYTES_MAX: usize = 8 * 1_024 * 1_024;

#[derive(Debug, Default)]
pub(super) struct TerminalOutput {
    text: String,
    is_cut: bool,
    has_pieces: bool,
    pub(super) exit: Option<String>,
}

impl TerminalOutput {
    /// Reads what an update says; whether there is something new.
    pub(super) fn read(&mut self, meta: &Map<String, Value>) -> bool {
        let data = |name: &str| meta.get(name)?.get("data")?.as_str();
        let mut is_new = false;
        if let Some(piece) = data("terminal_output_delta") {
            self.has_pieces = true;
            self.append(piece);
            is_new = true;
        }
        if let Some(output) = data("terminal_output") {
            // An agent that told the pieces may tell the whole at the end.
            match output.strip_prefix(self.text.as_str()) {
                Some(rest) if self.has_pieces && !self.is_cut => self.append(rest),
                _ => self.append(output),
            }
            is_new = true;
        }
        if let Some(exit) = meta.get("terminal_exit") {
            self.exit = describe_exit(exit);
        }
        is_new
    }

    fn append(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > WHOLE_BYTES_MAX {
            let cut = self.text.len() - WHOLE_BYTES_MAX / 2;
            let cut = self.text.ceil_char_boundary(cut);
            self.text.drain(..cut);
            self.is_cut = true;
        }
    }

    /// The last of it.
    pub(super) fn live(&self) -> Option<String> {
        if self.text.len() <= LIVE_BYTES_MAX {
            return self.whole();
        }
        let start = self.text.ceil_char_boundary(self.text.len() - LIVE_BYTES_MAX);
        let end = self.text.get(start..).unwrap_or_default();
        Some(format!("[earlier output is left out]\n{end}"))
    }

    /// All that is held.
    pub(super) fn whole(&self) -> Option<String> {
        if self.text.is_empty() {
            return None;
        }
        Some(if self.is_cut {
            format!("[earlier output was not kept]\n{}", self.text)
        } else {
            self.text.clone()
        })
    }
}

impl Mapper {
    /// The call that runs and was allowed to run just this command, and the command as it was shown. Once: a consent is good for one.
    pub(in super::super) fn take_allowed_command(
        &mut self,
        is_it: impl Fn(&DisplayedCommand) -> bool,
    ) -> Option<(u64, DisplayedCommand)> {
        self.all_calls_mut().find_map(|call| {
            let consent = Some(&mut call.consent).filter(|_| call.stage == Stage::Running)?;
            Some((call.number, consent.take_command(&is_it)?))
        })
    }

    /// The host has a terminal of this id; calls that name it show it, and so does this one.
    pub(in super::super) fn add_terminal(&mut self, call: u64, id: String, block: Value) {
        if let Some(call) = self.call_mut(call) {
            call.shown.push(block.clone());
        }
        self.terminals.insert(id, block);
    }

    /// What ran in a terminal has ended.
    pub(in super::super) fn end_terminal(&mut self, id: &str, block: &Value) {
        let shown = self.all_calls_mut().flat_map(|call| &mut call.shown);
        for shown in shown.filter(|shown| shown["resource"] == block["resource"]) {
            *shown = block.clone();
        }
        self.terminals.insert(id.to_owned(), block.clone());
    }
}

impl MappedCall {
    /// Shows the terminals that its content names.
    pub(super) fn show_terminals(&mut self, known: &BTreeMap<String, Value>) {
        let named: Vec<Value> = self
            .content()
            .iter()
            .filter_map(|content| match content {
                acp::ToolCallContent::Terminal(terminal) => known.get(&*terminal.terminal_id.0),
                _ => None,
            })
            .cloned()
            .collect();
        for block in named {
            if !self.shown.contains(&block) {
                self.shown.push(block);
            }
        }
    }
}

fn describe_exit(exit: &Value) -> Option<String> {
    if let Some(code) = exit.get("exit_code").and_then(Value::as_i64) {
        return Some(format!("exit code {code}"));
    }
    let signal = exit.get("signal")?.as_str().map(ToOwned::to_owned);
    signal.map(|signal| format!("killed by {}", super::label(&signal, 30)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(output: &mut TerminalOutput, meta: Value) -> bool {
        output.read(meta.as_object().unwrap())
    }

    #[test]
    fn pieces_grow_and_a_whole_at_the_end_is_not_told_twice() {
        let mut output = TerminalOutput::default();
        assert!(read(&mut output, json!({"terminal_output_delta": {"data": "one\n"}})));
        assert!(read(&mut output, json!({"terminal_output_delta": {"data": "two\n"}})));
        assert!(read(
            &mut output,
            json!({"terminal_output": {"data": "one\ntwo\nthree\n"}, "terminal_exit": {"exit_code": 2}})
        ));
        assert_eq!(output.whole().as_deref(), Some("one\ntwo\nthree\n"));
        assert_eq!(output.exit.as_deref(), Some("exit code 2"));
        assert!(!read(&mut output, json!({"other": 1})));

        let mut output = TerminalOutput::default();
        read(&mut output, json!({"terminal_output": {"data": "a\n"}}));
        read(&mut output, json!({"terminal_output": {"data": "a\n"}}));
        assert_eq!(output.whole().as_deref(), Some("a\na\n"), "these are pieces");
    }

    #[test]
    fn it_is_bounded() {
        let mut output = TerminalOutput::default();
        for _ in 0..300 {
            read(&mut output, json!({"terminal_output": {"data": "ä".repeat(50_000)}}));
        }
        assert!(output.whole().unwrap().len() <= WHOLE_BYTES_MAX + 100);
        assert!(output.live().unwrap().len() <= LIVE_BYTES_MAX + 100);
    }
}
