//! What a turn waits for, asked on the terminal: shown once, decided by a line that is a digit or a word of the prompt (G-64).
//!
//! Promises: a line that is none of those decides nothing, nor does one that was typed before the question could be read; what
//! was decided elsewhere is not asked any more.
//! Must not know: how the turn goes on.

use std::io::{Stderr, Stdout};

use client::chat::{AskedInput, OpenChat, PendingInput};

use crate::chat::contents::read_all;
use crate::chat::dialog::{self, PromptNumber, PromptOutcome};
use crate::chat::prompt::{PromptField, PromptState, item_named};
use crate::chat::render::{Page, UNBROKEN};
use crate::chat::sign_in::SignIns;
use crate::chat::tool::{Detail, References};
use crate::input_lines::{InputLines, LineUse};
use crate::output::TurnOutput;
use crate::terminal::escape;

type PromptOutput = TurnOutput<Stdout, Stderr>;

/// The person at the terminal, and what they are asked.
pub(super) struct TerminalPrompt {
    asked: Option<AskedInput>,
    state: PromptState,
    /// What it refers to.
    references: References,
    /// A text that a choice asked for.
    field: Option<PromptField>,
    number: PromptNumber,
    /// Read from the first question on.
    input: InputLines,
    /// Tokens of MCP servers that were got here.
    sign_ins: SignIns,
}

impl TerminalPrompt {
    pub(super) fn new() -> Self {
        Self {
            asked: None,
            state: PromptState::default(),
            references: References::default(),
            field: None,
            number: PromptNumber::default(),
            input: InputLines::standard(),
            sign_ins: SignIns::new(),
        }
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    pub(super) async fn read_line(&mut self) -> anyhow::Result<Option<String>> {
        loop {
            let line = tokio::select! {
                line = self.input.next() => line?,
                event = self.sign_ins.next() => {
                    self.sign_ins.take(&event);
                    eprintln!("{}", escape(&event.describe()));
                    continue;
                }
            };
            match line {
                Some(line) if self.input.use_of(&line) == LineUse::Current => {
                    return Ok(Some(line.text));
                }
                Some(_) => {} // it was meant for another question
                None => return Ok(None),
            }
        }
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
        let is_same = AskedInput::is_unchanged(before.as_ref(), self.asked.as_ref());
        if is_same {
            return Ok(());
        }
        self.state = PromptState::default();
        self.field = None;
        let Some(asked) = &self.asked else {
            return self.input.end_question(); // decided elsewhere
        };
        let call = asked.part().get("toolCall");
        if let Some(call) = call.and_then(|call| call.as_object()) {
            read_all(&mut self.references, call, chat.live(), chat.session()).await;
        }
        output.end_line()?;
        self.ask_next(output)
    }

    /// Asks a question, with what it is about: from then on a line may answer it, and none that was typed before.
    fn ask_next(&mut self, output: &mut PromptOutput) -> anyhow::Result<()> {
        self.input.begin_question()?;
        self.ask_anew(output)?;
        self.input.question_shown();
        Ok(())
    }

    /// Shows what is asked, and what it is about.
    fn ask_anew(&self, output: &mut PromptOutput) -> anyhow::Result<()> {
        if let Some(asked) = &self.asked {
            // A terminal has a history to scroll through: nothing is folded.
            let whole = Detail::Unfolded;
            for line in dialog::subject_lines(asked, whole, Page::unbroken(), &self.references) {
                output.note(&line.text())?;
            }
        }
        self.ask(output)
    }

    fn ask(&self, output: &mut PromptOutput) -> anyhow::Result<()> {
        let Some(asked) = &self.asked else {
            return Ok(()); // decided elsewhere
        };
        let mut lines = dialog::question_lines(asked, self.number, UNBROKEN);
        let items = dialog::items(&asked.input, &self.state);
        lines.extend(items.iter().flat_map(|item| item.lines(false, UNBROKEN)));
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
        let position = dialog::question_position(&asked.input);
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
                        "Not an answer. Type one of the digits above, then Enter".to_owned(),
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
            PromptOutcome::Stays if dialog::is_same_question(position, &asked.input) => {
                self.ask_anew(output)?;
            }
            PromptOutcome::Stays => self.ask_next(output)?,
            PromptOutcome::Opens(field) => self.open_field(field, output)?,
            PromptOutcome::Edits(_) => self.open_field(PromptField::Input, output)?,
            PromptOutcome::SignsIn(wanted) => {
                let name = wanted.resource.clone();
                self.sign_ins.begin(chat.live(), &name, &wanted);
            }
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
