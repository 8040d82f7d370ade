//! Looking at one terminal and typing in it, until its key is pressed or it ends.
//!
//! Promises: this terminal is as it was found, however this ends.

use std::io::Write;

use anyhow::{Context, bail};
use client::terminals::{AttachedTerminal, ScreenSize, TerminalUpdate};
use client::{ConnectionEvent, Live, Update, Updates};
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{SignalKind, signal};
use wire::ChannelUri;

use super::view::{LEAVE, LEAVE_NAME, TerminalView};
use crate::chat::Tty;

/// Returns the size left for the shown terminal: the last row is ours.
pub(super) fn inner_size() -> ScreenSize {
    let ScreenSize { columns, rows } = outer_size();
    ScreenSize { columns, rows: rows.saturating_sub(1).max(1) }
}

fn outer_size() -> ScreenSize {
    match tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 1 => {
            ScreenSize { columns: size.ws_col, rows: size.ws_row }
        }
        Ok(_) | Err(_) => ScreenSize::DEFAULT,
    }
}

/// Leaves what has ended, too.
const CTRL_C: u8 = 0x03;

/// What programs turn on and may not have turned off: the mouse, marks around what is pasted, other keys.
const MODES_OFF: &str = "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\
                         \x1b[0m\x1b[0 q";

/// Shows a terminal until it is left or over.
pub(super) async fn run(live: &Live, updates: Updates, uri: &ChannelUri) -> anyhow::Result<()> {
    if !rustix::termios::isatty(rustix::stdio::stdin()) {
        bail!("a terminal can only be opened on a terminal");
    }
    let terminal = AttachedTerminal::attach(live, uri).await?;
    let mut attachment = AttachedView {
        view: TerminalView::new(outer_size(), terminal.size()),
        is_over: !terminal.is_running(),
        terminal,
        typed: Vec::new(),
    };
    let mut tty = Tty::open_plain().context("the terminal cannot be used")?;
    tty.enter_alternate_screen()?;
    let ended = attachment.follow(updates, &mut tty).await;
    write(MODES_OFF)?;
    tty.leave_alternate_screen()?;
    // From here on keys are whoever's who has the terminal next.
    tty.leave_raw_mode();
    let title = crate::terminal::escape_line(&attachment.terminal.title());
    let said = if attachment.terminal.is_running() {
        format!("[left {title}; it goes on]")
    } else {
        format!("[{title} has ended]")
    };
    attachment.terminal.detach().await?;
    eprintln!("{said}");
    ended
}

struct AttachedView {
    terminal: AttachedTerminal,
    view: TerminalView,
    /// It had ended before it was opened: there is something to read.
    is_over: bool,
    /// The beginning of a character.
    typed: Vec<u8>,
}

impl AttachedView {
    async fn follow(&mut self, mut updates: Updates, tty: &mut Tty) -> anyhow::Result<()> {
        let mut resized = signal(SignalKind::window_change()).context("no signals")?;
        let inner = inner_size();
        if self.terminal.is_running() {
            self.terminal.resize(inner)?;
        }
        self.show_all()?;
        while self.is_over || self.terminal.is_running() {
            tokio::select! {
                update = updates.next() => {
                    let Some(update) = update else {
                        bail!("the connection has ended");
                    };
                    self.take_update(update)?;
                    while let Some(update) = updates.try_next() {
                        self.take_update(update)?;
                    }
                    self.draw()?;
                }
                bytes = tty.read() => {
                    // Nothing: this terminal is gone.
                    if bytes.is_empty() || self.press(&bytes)? {
                        return Ok(());
                    }
                }
                _ = resized.recv() => {
                    self.view.resize(outer_size());
                    if self.terminal.is_mine() {
                        self.terminal.resize(inner_size())?;
                    }
                    write("\x1b[2J")?;
                    self.draw()?;
                }
            }
        }
        Ok(())
    }

    fn take_update(&mut self, update: Update) -> anyhow::Result<()> {
        match update {
            Update::Changed { channel, envelope } if channel == self.terminal.uri().as_str() => {
                match AttachedTerminal::update_of(&envelope) {
                    TerminalUpdate::Printed(text) => self.view.print(&text),
                    TerminalUpdate::Cleared => self.view.restart(),
                    TerminalUpdate::Changed => self.view.set_shown_size(self.terminal.size()),
                    TerminalUpdate::Nothing => {}
                }
            }
            Update::Reset { channel } if channel == self.terminal.uri().as_str() => {
                self.view.set_shown_size(self.terminal.size());
                self.view.restart();
                self.view.print(&self.terminal.contents());
            }
            Update::Gone { channel } if channel == self.terminal.uri().as_str() => {
                bail!("somebody ended this terminal");
            }
            Update::Connection(ConnectionEvent::Closed { why }) => return Err(why.into()),
            Update::Changed { .. }
            | Update::Reset { .. }
            | Update::Gone { .. }
            | Update::Refused { .. }
            | Update::NotResent { .. }
            | Update::Notification(_)
            | Update::Connection(_) => {}
        }
        Ok(())
    }

    fn show_all(&mut self) -> anyhow::Result<()> {
        self.view.print(&self.terminal.contents());
        write("\x1b[2J")?;
        self.draw()
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let title = self.terminal.title();
        let status = match (self.is_over, self.terminal.is_mine()) {
            (true, _) => format!(" {title} · has ended · q or {LEAVE_NAME} leaves"),
            (false, true) => format!(" {title} · {LEAVE_NAME} leaves"),
            (false, false) => {
                format!(" {title} · only to look at: another client types · {LEAVE_NAME} leaves")
            }
        };
        write(&self.view.draw(&status))
    }

    /// Hands on what was typed; whether it was the key that leaves.
    fn press(&mut self, bytes: &[u8]) -> anyhow::Result<bool> {
        if self.is_over {
            return Ok(memchr::memchr3(LEAVE, b'q', CTRL_C, bytes).is_some());
        }
        let leave = memchr::memchr(LEAVE, bytes);
        self.typed.extend(bytes.iter().take(leave.unwrap_or(bytes.len())));
        let whole = match std::str::from_utf8(&self.typed) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.typed.len(),
        };
        let text: Vec<u8> = self.typed.drain(..whole).collect();
        if !text.is_empty() && self.terminal.is_mine() {
            self.terminal.write(&String::from_utf8_lossy(&text))?;
        }
        Ok(leave.is_some())
    }
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    Ok(output.flush()?)
}
