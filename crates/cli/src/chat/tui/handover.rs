//! Handing the terminal to another program for a while: to the shell that started this one, or to the user's editor or pager.
//!
//! Promises: nothing is read or drawn meanwhile; the host's events are taken all the same.

use std::process::ExitStatus;

use anyhow::Context;
use rustix::process::{Signal as ProcessSignal, kill_current_process_group};

use tokio::process::Child;

use super::{TerminalChat, write};
use crate::chat::external_editor::EditedFile;

impl TerminalChat {
    /// Gives the terminal back to the shell, until it continues this program.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        self.release_terminal()?;
        self.is_suspended = true;
        kill_current_process_group(ProcessSignal::TSTP).context("cannot be suspended")?;
        self.take_terminal_back()
    }

    /// This program was stopped and continues. If it stopped itself, all is done already.
    pub(super) fn continue_after_stop(&mut self) -> anyhow::Result<()> {
        if std::mem::take(&mut self.is_suspended) { Ok(()) } else { self.take_terminal_back() }
    }

    fn release_terminal(&mut self) -> anyhow::Result<()> {
        let clear = self.painter.clear();
        write(&clear)?;
        self.tty.leave_raw_mode();
        Ok(())
    }

    fn take_terminal_back(&mut self) -> anyhow::Result<()> {
        self.tty.enter_raw_mode().context("the terminal cannot be used")?;
        self.painter.resize(self.tty.size());
        self.painter.forget();
        Ok(())
    }

    pub(super) fn clear_screen(&mut self) -> anyhow::Result<()> {
        self.painter.forget();
        write("\x1b[H\x1b[2J")
    }

    /// Lets the user edit JSON, or whatever else the input of a call is, in an editor of their own.
    pub(super) async fn edit_json(&mut self, text: &str) -> anyhow::Result<String> {
        self.edit(EditedFile::json(text)?).await
    }

    /// Lets the user edit a message in an editor of their own.
    pub(super) async fn edit_plain(&mut self, text: &str) -> anyhow::Result<String> {
        self.edit(EditedFile::plain(text)?).await
    }

    async fn edit(&mut self, file: EditedFile) -> anyhow::Result<String> {
        let ended = self.hand_over(|| file.open_editor()).await?;
        anyhow::ensure!(ended.success(), "the editor failed; nothing was changed");
        file.read()
    }

    /// Lets another program have the terminal until it ends.
    pub(super) async fn hand_over(
        &mut self,
        start: impl FnOnce() -> anyhow::Result<Child>,
    ) -> anyhow::Result<ExitStatus> {
        self.release_terminal()?;
        let ended = match start() {
            Ok(mut program) => loop {
                // The host is listened to meanwhile, or it would take this client for gone.
                tokio::select! {
                    ended = program.wait() => break ended.map_err(anyhow::Error::from),
                    event = self.chat.next() => self.take_events(event?)?,
                }
            },
            Err(error) => Err(error),
        };
        self.take_terminal_back()?;
        ended
    }
}
