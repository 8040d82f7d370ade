//! The messages that wait for the agent: one is chosen to be edited, removed, or sent at the agent's next opportunity.

use client::chat::{WaitReason, WaitingMessage};

use super::overlay::{KeyUse, Overlay, OverlayLines};
use super::{Flow, TerminalChat};
use crate::chat::keys::Key;
use crate::chat::line::{Line, Style};
use crate::terminal::{escape, escape_line};

/// Messages that are listed around the chosen one.
const LISTED_MAX: usize = 6;

/// The message that is chosen.
#[derive(Debug)]
pub(super) struct QueueMenu {
    id: String,
}

impl TerminalChat {
    /// Whether Up means the messages that wait: nothing else is typed or asked.
    pub(super) fn may_open_queue(&self) -> bool {
        self.editor.is_empty() && self.field.is_none() && !self.chat.waiting_messages().is_empty()
    }

    /// Takes the message back if there is only one of ours; lets one be chosen otherwise.
    pub(super) fn open_queue(&mut self) -> anyhow::Result<()> {
        if self.field.is_some() {
            return Ok(()); // the keys are for the answer
        }
        let waiting = self.chat.waiting_messages();
        match &waiting[..] {
            [] => self.note("The queue is empty"),
            [only] if only.is_own && self.editor.is_empty() => self.edit_waiting(&only.id)?,
            [.., newest] => {
                let id = newest.id.clone();
                self.overlay = Some(Overlay::Queue(QueueMenu { id }));
            }
        }
        Ok(())
    }

    pub(super) fn press_queue(&mut self, menu: QueueMenu, key: &Key) -> anyhow::Result<KeyUse> {
        let used = Ok(KeyUse::Used(Flow::Continue));
        let waiting = self.chat.waiting_messages();
        let Some(index) = waiting.iter().position(|message| message.id == menu.id) else {
            self.note("The agent has already received it");
            return used;
        };
        let stay_at = |message: Option<&WaitingMessage>| {
            let id = message.map_or(menu.id.clone(), |message| message.id.clone());
            Some(Overlay::Queue(QueueMenu { id }))
        };
        match key {
            Key::Up | Key::AltUp => self.overlay = stay_at(waiting.get(index.saturating_sub(1))),
            Key::Down => self.overlay = stay_at(waiting.get(index + 1)),
            Key::Enter => self.edit_waiting(&menu.id)?,
            Key::Delete | Key::Backspace => {
                let taken = self.chat.take_back(&menu.id, &mut Default::default())?;
                if let Some(text) = taken {
                    self.editor.remember(&escape(&text));
                    self.note("Removed. Up brings it back");
                }
                let rest = self.chat.waiting_messages();
                self.overlay = rest
                    .get(index.min(rest.len().saturating_sub(1)))
                    .and_then(|message| stay_at(Some(message)));
            }
            Key::Ctrl('s') => {
                if let Some(text) = self.chat.take_back(&menu.id, &mut self.accepted)? {
                    self.steer(&text)?;
                }
            }
            Key::Escape => {}
            _ => return Ok(KeyUse::Unused), // somebody goes on typing
        }
        used
    }

    /// Takes a message back into the input line.
    fn edit_waiting(&mut self, id: &str) -> anyhow::Result<()> {
        match self.chat.take_back(id, &mut self.accepted)? {
            Some(text) => {
                self.editor.put_away();
                self.editor.set(&escape(&text));
            }
            None => self.note("The agent has already received it"),
        }
        Ok(())
    }

    pub(super) fn queue_lines(&self, menu: &QueueMenu) -> OverlayLines {
        let waiting = self.chat.waiting_messages();
        let chosen = waiting.iter().position(|message| message.id == menu.id).unwrap_or(0);
        let from = (chosen + 1).saturating_sub(LISTED_MAX);
        let listed = waiting.iter().enumerate().skip(from).take(LISTED_MAX);
        let mut above: Vec<Line> = listed
            .map(|(index, message)| {
                let what = match message.waits_for {
                    WaitReason::Steering => "steering",
                    WaitReason::Turn if self.chat.is_working() => "queued",
                    WaitReason::Turn => "paused",
                };
                let text = escape_line(&message.text);
                if index == chosen {
                    Line::new(Style::Bold, format!("❯ {what}: {text}"))
                } else {
                    Line::new(Style::Plain, format!("  {what}: {text}"))
                }
            })
            .collect();
        above.push(Line::new(Style::Dim, "  Enter edits · Del removes · Ctrl-S steers · Esc"));
        OverlayLines { above, hides_queue: true, ..OverlayLines::default() }
    }
}
