//! The transcript on a screen of its own, over the chat.
//!
//! Promises: the chat goes on behind it; its screen is as it was when the pager is left, and has what came meanwhile.

use client::ClientError;

use super::background::BackgroundAnswer;
use super::overlay::{KeyUse, Overlay};
use super::{Flow, TerminalChat, write};
use crate::chat::keys::Key;
use crate::chat::pager::{Pager, PagerOutcome};

/// The pager, and whether it waits for older turns.
#[derive(Debug, Default)]
pub(super) struct OpenPager {
    pager: Pager,
    is_loading: bool,
}

impl TerminalChat {
    /// Opens the transcript, a page above its end.
    pub(super) fn open_pager(&mut self) {
        self.popup.close();
        let mut pager = OpenPager::default();
        if let Some(chat) = self.chat.confirmed() {
            pager.pager.update(&chat, &self.reading.view(self.painter.page()));
            pager.pager.key(&Key::PageUp);
        }
        self.overlay = Some(Overlay::Pager(Box::new(pager)));
    }

    pub(super) fn press_pager(
        &mut self,
        mut pager: Box<OpenPager>,
        key: &Key,
    ) -> anyhow::Result<KeyUse> {
        match pager.pager.key(key) {
            PagerOutcome::Stay => self.overlay = Some(Overlay::Pager(pager)),
            PagerOutcome::Close => self.tty.leave_alternate_screen()?,
        }
        Ok(KeyUse::Used(Flow::Continue))
    }

    /// Closes the pager, if it is open, for whatever needs the usual screen.
    pub(super) fn close_pager(&mut self) -> anyhow::Result<()> {
        if matches!(self.overlay, Some(Overlay::Pager(_))) {
            self.overlay = None;
            self.tty.leave_alternate_screen()?;
        }
        Ok(())
    }

    /// Draws the pager; `false` if it is not open.
    pub(super) fn draw_pager(&mut self) -> anyhow::Result<bool> {
        let notice = self.asked.is_some().then_some("the agent asks you something");
        let Some(Overlay::Pager(open)) = &mut self.overlay else { return Ok(false) };
        if let Some(chat) = self.chat.confirmed() {
            open.pager.update(&chat, &self.reading.view(self.painter.page()));
        }
        if open.pager.wants_older() && !open.is_loading {
            open.is_loading = true;
            let fetched = self.chat.fetch_earlier_turns();
            self.answers.wait_for(async move { BackgroundAnswer::EarlierTurns(fetched.await) });
        }
        let lines = open.pager.lines(notice);
        self.tty.enter_alternate_screen()?;
        write(&self.painter.full_screen(&lines))?;
        Ok(true)
    }

    pub(super) fn take_earlier_turns(&mut self, result: Result<(), ClientError>) {
        let Some(Overlay::Pager(open)) = &mut self.overlay else {
            return; // the pager was left meanwhile; the turns are in the state all the same
        };
        open.is_loading = false;
        if let Err(error) = result {
            open.pager.set_trouble(error.to_string());
        }
    }
}
