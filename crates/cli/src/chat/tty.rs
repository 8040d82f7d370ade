//! The terminal itself: raw while a chat is shown on it, as it was before at all other times.
//!
//! Promises: however the program ends, by a panic too, the terminal is as it was found.
//! Must not know: what is typed and drawn.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use client::terminals::ScreenSize;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{OptionalActions, OutputModes, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::keys::KeyboardProtocol;

/// Bracketed paste on, and two questions: which keyboard protocol the terminal has, and whether it can modify other keys. The
/// last sequence is for terminals that take the second question for a style.
/// Before them reports of the focus are turned on, and the title of the window is saved.
const BEGIN: &[u8] = b"\x1b[22;2t\x1b[?1004h\x1b[?2004h\x1b[?u\x1b[?4m\x1b[0m";
/// All of that off again, with the cursor shown.
const END: &[u8] = b"\x1b[?2004l\x1b[?1004l\x1b[23;2t\x1b[?25h";
/// To the screen that has no history, and back.
const ENTER_ALTERNATE: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE_ALTERNATE: &[u8] = b"\x1b[?25h\x1b[?1049l";
const READ_BYTES: usize = 4_096;
/// Pieces of input that may wait to be looked at.
const PIECES_MAX: usize = 256;
/// How long the reader may take to stop reading.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The settings of the terminal before raw mode, while it is raw.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();
/// Whether the alternate screen is shown.
static IS_ALTERNATE: AtomicBool = AtomicBool::new(false);
/// The keyboard protocol that is on while the terminal is raw.
static KEYBOARD: Mutex<Option<KeyboardProtocol>> = Mutex::new(None);

/// The terminal in raw mode. Dropping it restores what it was.
pub(crate) struct Tty {
    input: mpsc::Receiver<Vec<u8>>,
    gate: Arc<Gate>,
    wake: PipeWriter,
    /// What is written to it when it is made raw.
    begin: &'static [u8],
}

/// Whether input is read: not while another program has the terminal, or its keys would be stolen.
#[derive(Default)]
struct Gate {
    reading: Mutex<ReadState>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ReadState {
    #[default]
    On,
    /// To be stopped.
    Stopping,
    Off,
}

impl Tty {
    pub(crate) fn open() -> io::Result<Self> {
        Self::open_with(BEGIN)
    }

    /// The same without asking the terminal anything: whatever is read was typed.
    pub(crate) fn open_plain() -> io::Result<Self> {
        Self::open_with(b"")
    }

    fn open_with(begin: &'static [u8]) -> io::Result<Self> {
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore_terminal();
                previous(panic);
            }));
        });
        let (sender, input) = mpsc::channel(PIECES_MAX);
        let (woken, wake) = io::pipe()?;
        let gate = Arc::new(Gate::default());
        let reader = Arc::clone(&gate);
        std::thread::Builder::new()
            .name("terminal".to_owned())
            // An error means that the terminal is gone; the input ends then.
            .spawn(move || drop(read_input(&sender, woken, &reader)))?;
        let tty = Self { input, gate, wake, begin };
        tty.enter_raw_mode()?;
        Ok(tty)
    }

    /// Makes the terminal raw, at the start and after every time it was put back.
    pub(crate) fn enter_raw_mode(&self) -> io::Result<()> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // A line that others print still begins at the left.
        raw.output_modes |= OutputModes::OPOST;
        BEFORE.lock().get_or_insert(before);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        self.gate.set(ReadState::On);
        write(self.begin)
    }

    /// Has the terminal tell Shift-Enter from Enter, in the way it offered.
    pub(crate) fn turn_on(&self, protocol: KeyboardProtocol) -> io::Result<()> {
        let mut keyboard = KEYBOARD.lock();
        if keyboard.is_some() {
            return Ok(()); // one is enough, and the better one is offered first
        }
        *keyboard = Some(protocol);
        write(match protocol {
            KeyboardProtocol::Kitty => b"\x1b[>1u",
            KeyboardProtocol::ModifyOtherKeys => b"\x1b[>4;1m",
        })
    }

    /// Gives the terminal to another program, until [`Tty::enter_raw_mode`].
    pub(crate) fn leave_raw_mode(&mut self) {
        self.gate.set(ReadState::Stopping);
        if self.wake.write_all(b".").is_ok() {
            self.gate.wait_until_off();
        }
        restore_terminal();
    }

    /// Shows the screen that has no history. Nothing happens if it is shown already.
    pub(crate) fn enter_alternate_screen(&self) -> io::Result<()> {
        if IS_ALTERNATE.swap(true, Ordering::Relaxed) { Ok(()) } else { write(ENTER_ALTERNATE) }
    }

    /// Shows the usual screen again, as it was left.
    pub(crate) fn leave_alternate_screen(&self) -> io::Result<()> {
        if IS_ALTERNATE.swap(false, Ordering::Relaxed) { write(LEAVE_ALTERNATE) } else { Ok(()) }
    }

    pub(crate) fn size(&self) -> ScreenSize {
        match tcgetwinsize(rustix::stdio::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                ScreenSize { columns: size.ws_col, rows: size.ws_row }
            }
            _ => ScreenSize::DEFAULT,
        }
    }

    /// What was typed; nothing at the end of the input. May be dropped and called again: nothing is lost.
    pub(crate) async fn read(&mut self) -> Vec<u8> {
        self.input.recv().await.unwrap_or_default()
    }
}

impl Gate {
    fn set(&self, reading: ReadState) {
        *self.reading.lock() = reading;
        self.changed.notify_all();
    }

    /// Waits, as the reader, until input may be read.
    fn wait_until_on(&self) {
        let mut reading = self.reading.lock();
        while *reading != ReadState::On {
            *reading = ReadState::Off;
            self.changed.notify_all();
            self.changed.wait(&mut reading);
        }
    }

    fn wait_until_off(&self) {
        let mut reading = self.reading.lock();
        // A reader that is stuck has no keys to steal.
        let is_stopping = |now: &mut ReadState| *now == ReadState::Stopping;
        let _ = self.changed.wait_while_for(&mut reading, is_stopping, PAUSE_TIMEOUT);
    }
}

fn read_input(
    sender: &mpsc::Sender<Vec<u8>>,
    mut woken: PipeReader,
    gate: &Gate,
) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    loop {
        gate.wait_until_on();
        let (typed, stopped) = {
            let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
        };
        if stopped {
            woken.read_exact(&mut [0])?;
        } else if typed {
            let mut bytes = vec![0; READ_BYTES];
            let count = match rustix::io::read(stdin, &mut bytes) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                Err(error) => return Err(error.into()),
            };
            bytes.truncate(count);
            if count == 0 || sender.blocking_send(bytes).is_err() {
                return Ok(());
            }
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore_terminal();
    }
}

fn restore_terminal() {
    let before = BEFORE.lock().take();
    if let Some(before) = before {
        // A terminal that is gone needs nothing put back. When it is raw again it is asked again what it offers.
        let keyboard = KEYBOARD.lock().take();
        let _ = match keyboard {
            Some(KeyboardProtocol::Kitty) => write(b"\x1b[<u"),
            Some(KeyboardProtocol::ModifyOtherKeys) => write(b"\x1b[>4m"),
            None => Ok(()),
        };
        if IS_ALTERNATE.swap(false, Ordering::Relaxed) {
            let _ = write(LEAVE_ALTERNATE);
        }
        let _ = write(END);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, &before);
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
