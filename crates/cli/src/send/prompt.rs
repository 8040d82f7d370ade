//! What a turn waits for, asked on the terminal: shown once, decided by a line that is a digit or a word of the prompt (G-64).
//!
//! Promises: a line that is none of those decides nothing, nor does one that was typed before the question could be read; what
//! was decided elsewhere is not asked any more.
//! Must not know: how the turn goes on.

use std::io::{Stderr, Stdout};
use std::time::Instant;

use anyhow::Context;
use client::chat::{AskedInput, OpenChat, PendingInput};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

use crate::chat::contents::read_all;
use crate::chat::dialog::{self, PromptNumber, PromptOutcome};
use crate::chat::prompt::{PromptField, PromptState, item_named};
use crate::chat::tool::{Detail, References};
use crate::output::TurnOutput;

/// No line is broken here: the terminal does that.
const WIDTH: usize = usize::MAX / 4;

type PromptOutput = TurnOutput<Stdout, Stderr>;

/// The person at the terminal, and what they are asked.
#[derive(Default)]
pub(super) struct TerminalPrompt {
    asked: Option<AskedInput>,
    state: PromptState,
    /// What it refers to.
    references: References,
    /// A text that a choice asked for.
    field: Option<PromptField>,
    number: PromptNumber,
    /// When the question stood there whole; what was typed before it is no answer to it.
    asked_at: Option<Instant>,
    /// Lines that were typed, with the moment of each; read from the first question on.
    input: Option<mpsc::Receiver<(Instant, std::io::Result<String>)>>,
}

/// Lines that wait to be taken; whoever types more waits.
const LINES_MAX: usize = 16;

/// Reads what is typed on a thread of its own: a line has the moment at which it was typed, not that at which it was wanted.
fn read_lines() -> mpsc::Receiver<(Instant, std::io::Result<String>)> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if sender.blocking_send((Instant::now(), line)).is_err() {
                break; // the turn is over
            }
        }
    });
    receiver
}

impl TerminalPrompt {
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    pub(super) async fn read_line(&mut self) -> anyhow::Result<Option<String>> {
        let input = self.input.get_or_insert_with(read_lines);
        while let Some((typed_at, line)) = input.recv().await {
            if self.asked_at.is_some_and(|asked_at| typed_at > asked_at) {
                let line = line.context("standard input cannot be read as text")?;
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Asks for the first thing that waits, unless it is asked already.
    pub(super) async fn refresh(
        &mut self,
        all: &[AskedInput],
        chat: &OpenChat,
        output: &mut PromptOutput,
    ) -> anyhow::Result<()> {
        let before = self.asked.take();
        self.asked = AskedInput::refresh(before.clone(), all);
        self.number.count = all.len();
        let is_same = match (&before, &self.asked) {
            (Some(before), Some(now)) => before.is_same(now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return Ok(());
        }
        self.state = PromptState::default();
        self.field = None;
        let Some(asked) = &self.asked else {
            return Ok(()); // decided elsewhere
        };
        let call = asked.part().get("toolCall");
        if let Some(call) = call.and_then(|call| call.as_object()) {
            read_all(&mut self.references, call, chat.live(), chat.session()).await;
        }
        output.end_line()?;
        // What was typed already was not typed as an answer to this.
        tcflush(std::io::stdin(), QueueSelector::IFlush)
            .context("what was typed before the question cannot be dropped")?;
        self.ask_anew(output)?;
        self.asked_at = Some(Instant::now());
        Ok(())
    }

    /// Shows what is asked, and what it is about.
    fn ask_anew(&self, output: &mut PromptOutput) -> anyhow::Result<()> {
        if let Some(asked) = &self.asked {
            // A terminal has a history to scroll through: nothing is folded.
            let whole = Detail::Unfolded;
            for line in dialog::subject_lines(asked, whole, WIDTH, &self.references) {
                output.note(&line.text())?;
            }
        }
        self.ask(output)
    }

    fn ask(&self, output: &mut PromptOutput) -> anyhow::Result<()> {
        let Some(asked) = &self.asked else {
            return Ok(()); // decided elsewhere
        };
        let mut lines = dialog::question_lines(asked, self.number, WIDTH);
        let items = dialog::items(&asked.input, &self.state);
        lines.extend(items.iter().flat_map(|item| item.lines(false, WIDTH)));
        for line in lines {
            output.note(&line.text())?;
        }
        eprint!("? ");
        Ok(())
    }

    /// Takes a line that was typed.
    pub(super) fn take_line(
        &mut self,
        line: &str,
        chat: &OpenChat,
        output: &mut PromptOutput,
    ) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // decided elsewhere while the line was typed
        };
        let outcome = match self.field.take() {
            Some(field) => dialog::enter_field(&mut asked.input, &mut self.state, field, line),
            None => {
                let items = dialog::items(&asked.input, &self.state);
                match item_named(&items, line.trim()) {
                    Some(item) => {
                        let action = item.action.clone();
                        dialog::apply(&mut asked.input, &mut self.state, action)
                    }
                    None => PromptOutcome::Wrong(
                        "Nothing is decided: type one of these digits, then Enter".to_owned(),
                    ),
                }
            }
        };
        match outcome {
            // The state changes when the host has it; until then nothing else is asked.
            PromptOutcome::Decided(decision) => {
                chat.confirm(asked, &decision)?;
                self.asked = None;
            }
            PromptOutcome::Responded(response) => {
                chat.answer(asked, &response)?;
                self.asked = None;
            }
            PromptOutcome::Stays => self.ask_anew(output)?,
            PromptOutcome::Opens(field) => self.open_field(field, output)?,
            PromptOutcome::Edits(_) => self.open_field(PromptField::Input, output)?,
            PromptOutcome::Wrong(why) => {
                output.note(&why)?;
                match &asked.input {
                    PendingInput::Questions(_) => self.ask_anew(output)?,
                    PendingInput::Confirmation(_) => self.ask(output)?,
                }
            }
        }
        Ok(())
    }

    fn open_field(&mut self, field: PromptField, output: &mut PromptOutput) -> anyhow::Result<()> {
        self.field = Some(field);
        output.note(match field {
            PromptField::Reason => "Say why, in one line",
            PromptField::Answer | PromptField::OwnWords => "Type your answer, in one line",
            PromptField::Input => "Type the whole input, in one line; then decide",
        })?;
        eprint!("{}", dialog::field_prompt(field));
        Ok(())
    }
}
