//! What a turn waits for, asked on the terminal: shown once, answered by a line.
//!
//! Promises: a line that is none of the choices decides nothing; what was decided elsewhere is not asked any more.
//! Must not know: how the turn goes on.

use std::io::{Stderr, Stdout};

use anyhow::Context;
use client::chat::{NeededInput, OpenChat, PendingInput};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::chat::confirm::{Choice, choose_by_line};
use crate::chat::dialog;
use crate::chat::part::part_lines;
use crate::chat::questions::{AnswerOutcome, answer_line};
use crate::chat::tool::Detail;
use crate::output::TurnOutput;

/// No line is broken here: the terminal does that.
const WIDTH: usize = usize::MAX / 4;

/// The person at the terminal, and what they are asked.
#[derive(Default)]
pub(super) struct TerminalPrompt {
    asked: Option<NeededInput>,
    /// Read from only while something is asked: what is typed before is for the shell.
    input: Option<Lines<BufReader<Stdin>>>,
}

impl TerminalPrompt {
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    pub(super) async fn read_line(&mut self) -> anyhow::Result<Option<String>> {
        let lines = || BufReader::new(tokio::io::stdin()).lines();
        let input = self.input.get_or_insert_with(lines);
        let line = input.next_line().await;
        line.context("standard input cannot be read as text")
    }

    /// Asks for the first thing that waits, unless it is asked already.
    pub(super) fn refresh(
        &mut self,
        needed: &[NeededInput],
        output: &mut TurnOutput<Stdout, Stderr>,
    ) -> anyhow::Result<()> {
        let is_asked = |needed: &NeededInput| {
            let asked = self.asked.as_ref();
            asked.is_some_and(|asked| {
                asked.id == needed.id && asked.pending.is_same(&needed.pending)
            })
        };
        if needed.iter().any(is_asked) {
            return Ok(());
        }
        self.asked = needed.first().cloned();
        if let Some(asked) = &self.asked {
            output.end_line()?;
            for line in part_lines(&asked.part, WIDTH, Detail::Whole) {
                output.note(&line.text())?;
            }
            self.ask(output)?;
        }
        Ok(())
    }

    fn ask(&self, output: &mut TurnOutput<Stdout, Stderr>) -> anyhow::Result<()> {
        if let Some(asked) = &self.asked {
            for line in dialog::lines(&asked.pending, WIDTH) {
                output.note(&line.text())?;
            }
            eprint!("? ");
        }
        Ok(())
    }

    /// Takes a line that was typed.
    pub(super) fn take_line(
        &mut self,
        line: &str,
        chat: &OpenChat,
        output: &mut TurnOutput<Stdout, Stderr>,
    ) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // it was decided elsewhere while the line was typed
        };
        let problem = match &mut asked.pending {
            PendingInput::Confirmation(confirmation) => match choose_by_line(confirmation, line) {
                Some(Choice::Decided(decision)) => {
                    chat.confirm_in(&asked.chat, &decision)?;
                    None
                }
                Some(Choice::Edit(_)) => Some("type `e` and the whole input behind it".to_owned()),
                Some(Choice::Suggest) => {
                    Some("type `d` and what to do instead behind it".to_owned())
                }
                None => Some("that is none of the choices".to_owned()),
            },
            PendingInput::Questions(form) => match answer_line(form, line) {
                AnswerOutcome::Complete(response) => {
                    chat.answer_in(&asked.chat, &response)?;
                    None
                }
                AnswerOutcome::Next => return self.ask(output),
                AnswerOutcome::Wrong(why) => Some(why),
            },
        };
        match problem {
            Some(problem) => {
                output.note(&problem)?;
                self.ask(output)?;
            }
            // The state changes when the host has it; until then nothing else is asked.
            None => self.asked = None,
        }
        Ok(())
    }
}
