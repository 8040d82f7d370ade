//! Shows a turn on a terminal, or in a pipe.
//!
//! Promises: the answer and nothing else goes to standard output; nothing that is printed can control the terminal.
//! Reasoning is dimmed on a terminal and left out elsewhere.

use std::io::{self, IsTerminal, Write};

use crate::send::view::{Seen, Text};
use crate::terminal::{Cleaner, clean};

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// What becomes of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    Dimmed,
    LeftOut,
}

/// Where a turn is shown.
pub(crate) struct Screen<Out, Err> {
    out: Out,
    err: Err,
    reasoning: Reasoning,
    cleaner: Cleaner,
    /// Is there text after the last newline?
    mid_line: bool,
}

impl Screen<io::Stdout, io::Stderr> {
    pub(crate) fn standard() -> Self {
        let out = io::stdout();
        let reasoning = if out.is_terminal() {
            Reasoning::Dimmed
        } else {
            Reasoning::LeftOut
        };
        Self::new(out, io::stderr(), reasoning)
    }
}

impl<Out: Write, Err: Write> Screen<Out, Err> {
    pub(crate) fn new(out: Out, err: Err, reasoning: Reasoning) -> Self {
        Self {
            out,
            err,
            reasoning,
            cleaner: Cleaner::default(),
            mid_line: false,
        }
    }

    pub(crate) fn show(&mut self, seen: &Seen) -> io::Result<()> {
        match seen {
            Seen::PartBegan(text) => {
                // What one part leaves open must not reach into the next.
                self.cleaner = Cleaner::default();
                if self.is_shown(text) {
                    self.end_line()?;
                }
                self.text(text)
            }
            Seen::Text(text) => self.text(text),
            Seen::Notice(text) => self.note(text),
            Seen::Nothing | Seen::Ended(_) => Ok(()),
        }
    }

    /// A line beside the answer.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        if self.reasoning == Reasoning::Dimmed {
            // Both streams are one terminal: begin on a line of its own.
            self.end_line()?;
        }
        writeln!(self.err, "{}", clean(text))
    }

    /// Ends the line that is open.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        if self.mid_line {
            self.mid_line = false;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }

    fn is_shown(&self, text: &Text) -> bool {
        match text {
            Text::Markdown(_) => true,
            Text::Reasoning(_) => self.reasoning == Reasoning::Dimmed,
        }
    }

    fn text(&mut self, text: &Text) -> io::Result<()> {
        if !self.is_shown(text) {
            return Ok(());
        }
        let (Text::Markdown(raw) | Text::Reasoning(raw)) = text;
        let cleaned = self.cleaner.clean(raw);
        if cleaned.is_empty() {
            return Ok(());
        }
        match text {
            Text::Markdown(_) => self.out.write_all(cleaned.as_bytes())?,
            Text::Reasoning(_) => write!(self.out, "{DIM}{cleaned}{PLAIN}")?,
        }
        self.mid_line = !cleaned.ends_with('\n');
        self.out.flush()
    }
}

/// Prints a result; an error if nobody takes it.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reasoning: Reasoning, seen: &[Seen]) -> (String, String) {
        let mut screen = Screen::new(Vec::new(), Vec::new(), reasoning);
        for seen in seen {
            screen.show(seen).unwrap();
        }
        screen.end_line().unwrap();
        (
            String::from_utf8(screen.out).unwrap(),
            String::from_utf8(screen.err).unwrap(),
        )
    }

    fn turn() -> Vec<Seen> {
        let markdown = |text: &str| Text::Markdown(text.to_owned());
        let reasoning = |text: &str| Text::Reasoning(text.to_owned());
        vec![
            Seen::PartBegan(reasoning("")),
            Seen::Text(reasoning("hm")),
            Seen::PartBegan(markdown("")),
            Seen::Text(markdown("a\u{1b}[")),
            Seen::Text(markdown("31mb")),
            Seen::Notice("note\u{7}".to_owned()),
            Seen::PartBegan(markdown("c")),
        ]
    }

    #[test]
    fn a_pipe_gets_the_answer_alone() {
        let (out, err) = shown(Reasoning::LeftOut, &turn());
        assert_eq!((out.as_str(), err.as_str()), ("ab\nc\n", "note\n"));
    }

    #[test]
    fn a_terminal_gets_dimmed_reasoning_too() {
        let (out, _) = shown(Reasoning::Dimmed, &turn());
        assert_eq!(out, "\u{1b}[2mhm\u{1b}[0m\nab\nc\n");
    }
}
