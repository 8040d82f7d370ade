//! Which part of the chat a key is for.
//!
//! In this order: what is open (an overlay), what is proposed under the input line, the keys that work everywhere, the prompt while the input line is empty, the input line.

use std::time::Instant;

use super::overlay::KeyUse;
use super::{Flow, TerminalChat};
use crate::chat::editor::EditorOutcome;
use crate::chat::image::pasted_picture;
use crate::chat::keys::Key;

impl TerminalChat {
    pub(super) async fn press(&mut self, key: Key) -> anyhow::Result<Flow> {
        match key {
            Key::Offers(protocol) => {
                self.tty.turn_on(protocol)?;
                return Ok(Flow::Continue);
            }
            Key::FocusGained | Key::FocusLost => {
                let is_here = key == Key::FocusGained;
                self.status.attention.focus_changed(is_here);
                return Ok(Flow::Continue);
            }
            _ => {}
        }
        self.status.attention.key_pressed(Instant::now());
        self.note = None;
        if key != Key::Ctrl('c') {
            self.is_interrupted = false;
        }
        if key != Key::Escape {
            self.escaped_at = None;
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
        if std::mem::take(&mut self.is_after_ctrl_x) && key == Key::Ctrl('e') {
            self.edit_text().await;
            return Ok(Flow::Continue);
        }
        let flow = self.press_anywhere(key.clone()).await?;
        self.refresh_popup(&key);
        Ok(flow)
    }

    async fn press_anywhere(&mut self, key: Key) -> anyhow::Result<Flow> {
        match key {
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
            Key::Ctrl('o') => self.open_whole().await?,
            Key::Ctrl('t') => self.toggle_reasoning(),
            Key::Ctrl('s') => self.steer_with_typed()?,
            Key::Ctrl('x') => self.is_after_ctrl_x = true,
            Key::Ctrl('r') => self.open_search(),
            Key::AltUp => self.open_queue()?,
            Key::Tab => self.put_text_aside(),
            Key::BackTab => self.cycle_modes()?,
            Key::PageUp if self.editor.is_empty() => self.open_pager(),
            Key::Escape => return self.escape(),
            key => {
                if self.is_prompt_for_keys()
                    && let KeyUse::Used(flow) = self.press_prompt(&key).await?
                {
                    return Ok(flow);
                }
                return self.press_line(key).await;
            }
        }
        Ok(Flow::Continue)
    }

    /// A key for the input line.
    async fn press_line(&mut self, key: Key) -> anyhow::Result<Flow> {
        self.has_just_answered = false;
        if key == Key::Up && self.may_open_queue() {
            self.open_queue()?;
            return Ok(Flow::Continue);
        }
        if let Key::Paste(text) = &key
            && self.field.is_none()
            && let Some(picture) = pasted_picture(text)
        {
            match picture {
                Ok(picture) => self.editor.attach(&picture.name, picture.attachment),
                Err(error) => self.note_error(&format!("{error:#}")),
            }
            return Ok(Flow::Continue);
        }
        self.type_key(&key).await
    }

    /// A key that edits the input line, or enters what is in it.
    pub(super) async fn type_key(&mut self, key: &Key) -> anyhow::Result<Flow> {
        self.last_typed = Some(Instant::now());
        let attachments = self.editor.attachments();
        match self.editor.key(key) {
            EditorOutcome::Entered(text) => {
                self.last_typed = None; // done with typing: the next keys may be an answer
                for (label, attachment) in attachments {
                    self.accepted.accept_attachment(label, attachment);
                }
                self.enter_text(&text).await
            }
            EditorOutcome::Taken | EditorOutcome::Unused => Ok(Flow::Continue),
        }
    }

    /// Enter was pressed on a text.
    pub(super) async fn enter_text(&mut self, text: &str) -> anyhow::Result<Flow> {
        if let Some(field) = self.field {
            self.enter_field(field, text).await?;
            return Ok(Flow::Continue);
        }
        self.enter_message(text).await
    }
}
