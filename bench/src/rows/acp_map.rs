//! What an agent's update costs before anybody decides about it: decoded and mapped, against decoding the same line into a generic
//! value. And a list of commands as large as one agent sends it: how long it takes, and what is held of it.

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{median_of, values};
use crate::acp_agent::{commands, session_update, text_update};
use crate::harness::Harness;
use crate::host_api::acp::LineMapper;
use crate::measure::{spread, thread_cpu_ns};
use crate::table::Figure;

/// As large as Qwen Code's.
const COMMANDS_BYTES: usize = 569_000;
const COMMANDS_KEPT_KIB: f64 = 64.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Tool,
    Commands,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Mapped,
    Decoded,
}

struct Case {
    kind: Kind,
    what: &'static str,
    bound_us: f64,
    lines: usize,
}

const CASES: [Case; 3] = [
    Case {
        kind: Kind::Text,
        what: "decoding and mapping a text update of an agent, against a generic value",
        bound_us: 3.0,
        lines: 20_000,
    },
    Case {
        kind: Kind::Tool,
        what: "the same, a tool update with a diff",
        bound_us: 10.0,
        lines: 10_000,
    },
    Case {
        kind: Kind::Commands,
        what: "the same, 569 KB of commands",
        bound_us: 10_000.0,
        lines: 20,
    },
];

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for case in CASES {
        let line = case.kind.line();
        let subjects = [Subject::Mapped, Subject::Decoded];
        let results = harness.shuffled(&subjects, |_, subject| case.measure(&line, subject))?;
        let cost = |us: &f64| *us;
        let figure = Figure::within(
            case.what,
            "us",
            median_of(&results, Subject::Mapped, cost),
            median_of(&results, Subject::Decoded, cost),
            case.bound_us,
            "CPU",
        );
        figures.push(figure.note(format!(
            "{} bytes; rounds: mapped {}, decoded {}",
            line.len(),
            spread(&values(&results, Subject::Mapped, cost)),
            spread(&values(&results, Subject::Decoded, cost)),
        )));
    }
    let mut mapper = LineMapper::default();
    mapper.map(Kind::Commands.line().as_bytes())?;
    figures.push(Figure::within(
        "569 KB of commands: what is held of them",
        "KiB",
        mapper.command_bytes() as f64 / 1_024.0,
        COMMANDS_BYTES as f64 / 1_024.0,
        COMMANDS_KEPT_KIB,
        "64 KiB",
    ));
    Ok(figures)
}

impl Case {
    /// CPU for each of so many lines.
    fn measure(&self, line: &str, subject: Subject) -> Result<f64> {
        let mut mapper = LineMapper::default();
        if self.kind == Kind::Tool {
            let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Edit", "kind": "edit"});
            let steps = mapper.map(session_update("bench-1", begun).to_string().as_bytes())?;
            ensure!(steps > 0, "a call begins");
        }
        let began = thread_cpu_ns();
        for _ in 0..self.lines {
            match subject {
                Subject::Mapped => {
                    black_box(mapper.map(black_box(line.as_bytes()))?);
                }
                Subject::Decoded => {
                    let value: Value = serde_json::from_slice(black_box(line.as_bytes()))?;
                    black_box(value);
                }
            }
        }
        let used = thread_cpu_ns().checked_sub(began);
        Ok(used.context("time goes on")? as f64 / 1_000.0 / self.lines as f64)
    }
}

impl Kind {
    fn line(self) -> String {
        let session = "6d6ce5fb148f73b16ab6f0285fb2495c";
        match self {
            Self::Text => text_update(session, &"x".repeat(100)).to_string(),
            Self::Tool => {
                let diff = json!({
                    "type": "diff", "path": "/home/user/project/src/main.rs",
                    "oldText": "fn old() {}\n".repeat(12), "newText": "fn new() {}\n".repeat(12),
                });
                let update = json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "in_progress",
                    "kind": "edit", "title": "Edit src/main.rs", "content": [diff],
                    "locations": [{"path": "/home/user/project/src/main.rs", "line": 12}],
                    "rawInput": {"file_path": "/home/user/project/src/main.rs", "old_string": "fn old() {}"},
                });
                session_update(session, update).to_string()
            }
            Self::Commands => commands(session, COMMANDS_BYTES).to_string(),
        }
    }
}
