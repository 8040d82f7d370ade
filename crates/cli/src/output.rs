//! Prints a turn on a terminal, or into a pipe.
//!
//! Promises: the answer and nothing else goes to standard output; nothing that is printed can control the terminal.
//! Reasoning is dimmed on a terminal and left out elsewhere.

use std::io::{self, IsTerminal, Write};

use client::chat::{AnswerTextKind, TextPosition};
use serde_json::Value;

use crate::terminal::{escape, json_line};

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// What becomes of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    Dimmed,
    LeftOut,
}

/// Where a turn is printed.
pub(crate) struct TurnOutput<Out, Err> {
    out: Out,
    err: Err,
    reasoning: Reasoning,
    /// Is there text after the last newline?
    is_mid_line: bool,
}

impl TurnOutput<io::Stdout, io::Stderr> {
    pub(crate) fn standard() -> Self {
        let out = io::stdout();
        let reasoning = if out.is_terminal() { Reasoning::Dimmed } else { Reasoning::LeftOut };
        Self::new(out, io::stderr(), reasoning)
    }
}

impl<Out: Write, Err: Write> TurnOutput<Out, Err> {
    pub(crate) fn new(out: Out, err: Err, reasoning: Reasoning) -> Self {
        Self { out, err, reasoning, is_mid_line: false }
    }

    /// A piece of the answer, or of the reasoning before it.
    pub(crate) fn text(
        &mut self,
        kind: AnswerTextKind,
        position: TextPosition,
        text: &str,
    ) -> io::Result<()> {
        let is_shown = kind == AnswerTextKind::Markdown || self.reasoning == Reasoning::Dimmed;
        if !is_shown {
            return Ok(());
        }
        if position == TextPosition::Start {
            self.end_line()?;
        }
        if text.is_empty() {
            return Ok(());
        }
        let text = escape(text);
        match kind {
            AnswerTextKind::Markdown => self.out.write_all(text.as_bytes())?,
            AnswerTextKind::Reasoning => write!(self.out, "{DIM}{text}{PLAIN}")?,
        }
        self.is_mid_line = !text.ends_with('\n');
        self.out.flush()
    }

    /// A line beside the answer.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        if self.reasoning == Reasoning::Dimmed {
            // Both streams are one terminal: begin on a line of its own.
            self.end_line()?;
        }
        writeln!(self.err, "{}", escape(text))
    }

    /// Ends the line that is open.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.is_mid_line {
            self.is_mid_line = false;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

/// Prints a result for people; an error if it cannot be written.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write_out(&escape(text))
}

/// Prints a text of our own that draws with colours; nothing from elsewhere may be in it.
pub(crate) fn print_drawing(text: &str) -> io::Result<()> {
    write_out(text)
}

/// Prints a result for programs, as one line of JSON.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    write_out(&format!("{}\n", json_line(value)))
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(reasoning: Reasoning) -> (String, String) {
        use AnswerTextKind::{Markdown, Reasoning as Thought};
        use TextPosition::{Continuation, Start};
        let mut output = TurnOutput::new(Vec::new(), Vec::new(), reasoning);
        for (kind, position, text) in [
            (Thought, Start, ""),
            (Thought, Continuation, "hm"),
            (Markdown, Start, ""),
            (Markdown, Continuation, "a\u{1b}["),
            (Markdown, Continuation, "31mb"),
        ] {
            output.text(kind, position, text).unwrap();
        }
        output.note("note\u{7}").unwrap();
        output.text(Markdown, Start, "c").unwrap();
        output.end_line().unwrap();
        (String::from_utf8(output.out).unwrap(), String::from_utf8(output.err).unwrap())
    }

    #[test]
    fn a_pipe_gets_the_answer_alone() {
        let (out, err) = printed(Reasoning::LeftOut);
        assert_eq!((out.as_str(), err.as_str()), ("a\\x1b[31mb\nc\n", "note\\x07\n"));
    }

    #[test]
    fn a_terminal_gets_dimmed_reasoning_too() {
        let (out, _) = printed(Reasoning::Dimmed);
        assert_eq!(out, "\u{1b}[2mhm\u{1b}[0m\na\\x1b[31mb\nc\n");
    }
}
