//! What each key does, in each mode of the chat.

use std::time::Instant;

use client::chat::PendingInput;

use super::overlay::KeyUse;
use super::{Flow, KeyMode, TerminalChat};
use crate::chat::confirm::{self, Choice};
use crate::chat::editor::EditorOutcome;
use crate::chat::keys::Key;
use crate::chat::questions::{self, AnswerOutcome};
use crate::terminal::escape;

impl TerminalChat {
    pub(super) async fn press(&mut self, key: Key) -> anyhow::Result<Flow> {
        if let Key::FocusGained | Key::FocusLost = key {
            self.status.attention.focus_changed(key == Key::FocusGained);
            return Ok(Flow::Continue);
        }
        self.status.attention.key_pressed(Instant::now());
        self.note = None;
        if key != Key::Ctrl('c') {
            self.is_interrupted = false;
        }
        if self.overlay.is_some() && !matches!(key, Key::Ctrl('z' | 'l')) {
            let given = match key {
                // Closes what is open, as Escape does.
                Key::Ctrl('c') => &Key::Escape,
                _ => &key,
            };
            if let KeyUse::Used(flow) = self.press_overlay(given).await? {
                return Ok(flow);
            }
        }
        if let KeyUse::Used(flow) = self.press_popup(&key).await? {
            return Ok(flow);
        }
        let flow = self.press_anywhere(key.clone()).await?;
        self.refresh_popup(&key);
        Ok(flow)
    }

    async fn press_anywhere(&mut self, key: Key) -> anyhow::Result<Flow> {
        match key {
            Key::BackTab => self.cycle_modes()?,
            Key::PageUp if self.editor.is_empty() => self.open_pager(),
            Key::Ctrl('c') => return self.interrupt(),
            Key::Ctrl('d') if self.editor.is_empty() => return Ok(Flow::Leave),
            Key::Ctrl('z') => {
                self.close_pager()?;
                self.suspend()?;
            }
            Key::Ctrl('l') => {
                self.close_pager()?;
                self.clear_screen()?;
            }
            Key::Ctrl('s') => self.steer_with_typed()?,
            Key::Tab => self.toggle_answering(),
            Key::Escape => self.step_back(),
            Key::Up if self.takes_from_queue() => {
                if let Some(text) = self.chat.unqueue()? {
                    self.editor.set(&escape(&text));
                }
            }
            key => return self.press_in_mode(key).await,
        }
        Ok(Flow::Continue)
    }

    async fn press_in_mode(&mut self, key: Key) -> anyhow::Result<Flow> {
        if let (KeyMode::Answering, Some(PendingInput::Confirmation(confirmation))) =
            (&self.mode, &self.pending)
        {
            let too_new_until = self.too_new_until.take();
            if too_new_until.is_some_and(|until| Instant::now() < until) {
                self.note("This is another question: read it, then press a key");
                return Ok(Flow::Continue);
            }
            let choice = match key {
                Key::Char(c) => confirm::choose_by_key(confirmation, c),
                _ => None,
            };
            self.has_just_answered = matches!(choice, Some(Choice::Decided(_)));
            self.choose(choice).await?;
            return Ok(Flow::Continue);
        }
        self.has_just_answered = false;
        if matches!(key, Key::Char(_) | Key::Paste(_)) {
            self.last_typed = Some(Instant::now());
        }
        match self.editor.key(&key) {
            EditorOutcome::Entered(text) => {
                self.last_typed = None; // done with typing: the next keys may be an answer
                self.enter_text(&text).await
            }
            EditorOutcome::Taken | EditorOutcome::Unused => Ok(Flow::Continue),
        }
    }

    /// Up brings back a message that waits, as long as nothing else is being typed.
    fn takes_from_queue(&self) -> bool {
        self.mode == KeyMode::Typing && self.editor.is_empty() && self.chat.has_queued()
    }

    /// Ctrl-C: cancels what runs, or what is typed; twice in a row leaves.
    fn interrupt(&mut self) -> anyhow::Result<Flow> {
        if self.is_interrupted {
            return Ok(Flow::Leave);
        }
        self.is_interrupted = true;
        if self.chat.cancel()? {
            self.note("cancelled; Ctrl-C again leaves");
            return Ok(Flow::Continue);
        }
        if self.mode != KeyMode::Typing {
            self.stop_answering();
        } else {
            self.editor.take();
        }
        self.note("Ctrl-C again leaves");
        Ok(Flow::Continue)
    }

    fn steer_with_typed(&mut self) -> anyhow::Result<()> {
        if self.mode != KeyMode::Typing || self.editor.is_empty() {
            return Ok(());
        }
        let text = self.editor.take();
        self.steer(&text)
    }

    pub(super) fn steer(&mut self, text: &str) -> anyhow::Result<()> {
        self.editor.remember(text);
        let attachments = self.accepted.take_attachments(text);
        if self.chat.is_working() {
            self.chat.steer(text, &attachments)?;
        } else {
            self.chat.send_with(text, &attachments)?;
        }
        Ok(())
    }

    /// Tab: between a message and what the agent asks.
    fn toggle_answering(&mut self) {
        match (&self.mode, &self.pending) {
            (KeyMode::Typing, Some(_)) => self.start_answering(),
            (KeyMode::Answering | KeyMode::Suggesting, _) => self.stop_answering(),
            (KeyMode::Typing, _) => {}
        }
    }

    fn step_back(&mut self) {
        match self.mode {
            KeyMode::Suggesting => {
                self.editor.take();
                self.mode = KeyMode::Answering;
            }
            KeyMode::Answering => self.stop_answering(),
            KeyMode::Typing => {}
        }
    }

    async fn choose(&mut self, choice: Option<Choice>) -> anyhow::Result<()> {
        match choice {
            Some(Choice::Decided(decision)) => self.chat.confirm(&decision)?,
            Some(Choice::Suggest) => self.mode = KeyMode::Suggesting,
            Some(Choice::Edit(input)) => match self.edit(&input).await {
                Ok(edited) => {
                    if let Some(PendingInput::Confirmation(confirmation)) = &mut self.pending {
                        confirmation.edit_input(edited);
                    }
                }
                Err(error) => self.note_error(&format!("{error:#}")),
            },
            None => self.note("Press a key in brackets. Tab: type a message, Ctrl-C: cancel"),
        }
        Ok(())
    }

    /// Enter was pressed on a text.
    pub(super) async fn enter_text(&mut self, text: &str) -> anyhow::Result<Flow> {
        match (&self.mode, &mut self.pending) {
            (KeyMode::Suggesting, Some(PendingInput::Confirmation(confirmation))) => {
                let denial = confirmation.deny(text);
                self.chat.confirm(&denial)?;
            }
            (KeyMode::Answering, Some(PendingInput::Questions(form))) => {
                match questions::answer_line(form, text) {
                    AnswerOutcome::Complete(response) => self.chat.answer(&response)?,
                    AnswerOutcome::Next => {}
                    AnswerOutcome::Wrong(why) => {
                        self.editor.set(text);
                        self.note_error(&why);
                    }
                }
            }
            (KeyMode::Typing | KeyMode::Answering | KeyMode::Suggesting, _) => {
                return self.enter_message(text).await;
            }
        }
        Ok(Flow::Continue)
    }
}
