//! A real pseudo-terminal with a program in it, and a screen to look at.

// Every test binary uses a part of it.
#![allow(dead_code)]

pub mod picture;
pub mod resize;

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::running::Host;

const USUAL_SIZE: ScreenSize = ScreenSize::new(72, 24);
const HISTORY_ROWS: usize = 2_000;
/// Longer than anything takes that works, also where every processor is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(90);

pub const ENTER: &str = "\r";
pub const TAB: &str = "\t";
pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_S: &str = "\x13";
pub const ESCAPE: &str = "\x1b";
pub const UP: &str = "\x1b[A";
pub const DOWN: &str = "\x1b[B";
pub const BACKSPACE: &str = "\x7f";

/// Sizes of screens that people have.
pub const SIZES: [ScreenSize; 3] =
    [ScreenSize::new(80, 24), ScreenSize::new(160, 45), ScreenSize::new(40, 24)];

/// Columns and rows of a screen.
#[derive(Debug, Clone, Copy)]
pub struct ScreenSize {
    pub columns: u16,
    pub rows: u16,
}

impl ScreenSize {
    pub const fn new(columns: u16, rows: u16) -> Self {
        Self { columns, rows }
    }

    fn window(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }

    /// An empty screen of this size.
    fn empty_screen(self) -> vt100::Parser {
        let cells = |cells: u16| NonZero::new(cells).unwrap();
        vt100::Parser::new(cells(self.rows), cells(self.columns), HISTORY_ROWS)
    }
}

/// A program in a terminal; it is gone when the test is.
pub struct Terminal {
    name: &'static str,
    child: Child,
    keyboard: File,
    screen: Arc<Screen>,
}

struct Screen {
    seen: Mutex<Seen>,
    changed: Condvar,
}

struct Seen {
    parser: vt100::Parser,
    /// Everything that was written, for those who look for what is not on the screen.
    bytes: Vec<u8>,
    ended: bool,
}

/// Starts a chat in a terminal, and waits until it can be typed into.
pub fn chat(host: &Host) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat");
    let terminal = Terminal::start("ann", command);
    terminal.sees("\n›");
    terminal
}

impl Terminal {
    pub fn start(name: &'static str, command: Command) -> Self {
        Self::start_sized(name, command, USUAL_SIZE)
    }

    pub fn start_sized(name: &'static str, mut command: Command, size: ScreenSize) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        // Neither end is for anyone but the program.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(path, flags, Mode::empty()).unwrap();
        tcsetwinsize(&slave, size.window()).unwrap();
        let end = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        command
            .env("TERM", "xterm-256color")
            .stdin(end(&slave))
            .stdout(end(&slave))
            .stderr(end(&slave));
        let child = command.spawn().unwrap();
        // The command holds the other end open, too.
        drop((command, slave));
        let screen = Arc::new(Screen {
            seen: Mutex::new(Seen { parser: size.empty_screen(), bytes: Vec::new(), ended: false }),
            changed: Condvar::new(),
        });
        let keyboard = File::from(master);
        let output = keyboard.try_clone().unwrap();
        let watched = Arc::clone(&screen);
        std::thread::spawn(move || watched.watch(output));
        Self { name, child, keyboard, screen }
    }

    /// Types, or presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types at a question that is seen, once the program does nothing but wait: what is typed while it still draws counts as typed
    /// before.
    pub fn answer(&mut self, keys: &str) {
        let threads = format!("/proc/{}/task", self.child.id());
        let deadline = Instant::now() + DEADLINE;
        while !all_wait(&threads) {
            assert!(Instant::now() < deadline, "{} never waits", self.name);
            std::thread::yield_now();
        }
        self.press(keys);
    }

    /// Pastes, as terminals do that tell it from typing.
    pub fn paste(&mut self, text: &str) {
        self.press(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Chooses at a prompt and waits until that shows. A first key may come before the prompt could be read.
    pub fn choose(&mut self, digit: char) {
        self.press(&digit.to_string());
        let chosen = format!("❯ {digit} ");
        // Beginnings of notes, which narrow terminals cut.
        let is_too_new = |screen: &str| {
            screen.contains("The question changed") || screen.contains("Still loading")
        };
        let screen = self.wait_until(|screen| screen.contains(&chosen) || is_too_new(screen));
        if !screen.contains(&chosen) {
            self.wait_until(|screen| !is_too_new(screen));
            self.press(&digit.to_string());
            self.sees(&chosen);
        }
    }

    /// Chooses at a prompt and confirms.
    pub fn decide(&mut self, digit: char) {
        self.choose(digit);
        self.press(ENTER);
    }

    /// Types a line and presses Enter.
    pub fn type_line(&mut self, line: &str) {
        self.press(line);
        self.press(ENTER);
    }

    /// Waits until the screen is as wanted; what it shows then.
    pub fn wait_until(&self, condition: impl Fn(&str) -> bool) -> String {
        self.wait(|seen| condition(&screen_text(&seen.parser)))
    }

    /// Waits until the status line is as wanted; the screen without it.
    pub fn wait_for_status(&self, condition: impl Fn(&str) -> bool) -> String {
        self.wait(|seen| condition(&split_screen(&seen.parser).1))
    }

    /// The line under the input.
    pub fn status(&self) -> String {
        split_screen(&self.screen.lock().parser).1
    }

    /// Waits until the screen shows a text.
    pub fn sees(&self, text: &str) -> String {
        self.wait_until(|screen| screen.contains(text))
    }

    /// Whether the bytes that were written hold a sequence.
    pub fn wrote(&self, sequence: &[u8]) -> bool {
        let seen = self.screen.lock();
        seen.bytes.windows(sequence.len()).any(|window| window == sequence)
    }

    /// Everything that was written.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().bytes).into_owned()
    }

    /// Whether the bytes that were written hold a sequence, beside the titles that the program gives its window.
    pub fn wrote_besides_titles(&self, sequence: &[u8]) -> bool {
        let seen = self.screen.lock();
        let mut rest = seen.bytes.as_slice();
        let mut others = Vec::new();
        while let Some(start) = find(rest, b"\x1b]2;") {
            others.extend_from_slice(&rest[..start]);
            let title = &rest[start + 4..];
            let end = title.iter().position(|byte| byte.is_ascii_control());
            let end = end.filter(|end| title[*end] == 7).unwrap();
            rest = &title[end + 1..];
        }
        others.extend_from_slice(rest);
        find(&others, sequence).is_some()
    }

    /// How often something was drawn so far.
    pub fn drawings(&self) -> usize {
        let begin = b"\x1b[?2026h";
        let seen = self.screen.lock();
        let windows = seen.bytes.windows(begin.len());
        windows.filter(|window| window == begin).count()
    }

    /// Waits until the bytes that were written hold a text, wherever it is on the screen by then.
    pub fn prints(&self, text: &str) {
        let text = text.as_bytes();
        self.wait(|seen| seen.bytes.windows(text.len()).any(|window| window == text));
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the program has ended and all it wrote was seen; its exit code.
    pub fn ends(&mut self) -> Option<i32> {
        self.wait(|seen| seen.ended);
        self.child.wait().unwrap().code()
    }

    /// What is on the screen, with its colours.
    pub fn with_screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.screen.lock().parser.screen())
    }

    pub fn screen(&self) -> String {
        screen_text(&self.screen.lock().parser)
    }

    fn wait(&self, condition: impl Fn(&Seen) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        let mut seen = self.screen.lock();
        while seen.is_half_drawn() || !condition(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{} waited in vain; the screen:\n{}\n{}",
                self.name,
                screen_text(&seen.parser),
                split_screen(&seen.parser).1
            );
            seen = self.screen.changed.wait_timeout(seen, left).unwrap().0;
        }
        screen_text(&seen.parser)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Seen {
    /// Whether a drawing began that has not ended: the screen is not read then.
    fn is_half_drawn(&self) -> bool {
        let last = |sequence: &[u8]| {
            let mut positions = self.bytes.windows(sequence.len());
            positions.rposition(|window| window == sequence)
        };
        !self.ended && last(b"\x1b[?2026h") > last(b"\x1b[?2026l")
    }
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        // A failed wait has panicked already.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what is written until all writers are closed.
    fn watch(&self, mut output: File) {
        let mut bytes = [0; 4_096];
        // A terminal whose other end is closed answers with an error.
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            let mut seen = self.lock();
            seen.parser.process(&bytes[..count]);
            seen.bytes.extend_from_slice(&bytes[..count]);
            self.changed.notify_all();
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }
}

fn find(bytes: &[u8], sequence: &[u8]) -> Option<usize> {
    bytes.windows(sequence.len()).position(|window| window == sequence)
}

/// The rows of the screen without the spaces behind them, and without the status line.
fn screen_text(parser: &vt100::Parser) -> String {
    split_screen(parser).0
}

/// The rows of the screen, and the status line: the last row, if it is below the input line, where the cursor is.
fn split_screen(parser: &vt100::Parser) -> (String, String) {
    let screen = parser.screen();
    let (_, columns) = screen.size();
    let mut rows: Vec<String> =
        screen.rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    let (cursor, _) = screen.cursor_position();
    let is_below = rows.len() > usize::from(cursor) + 1;
    if !is_below {
        return (contents(parser, usize::MAX), String::new());
    }
    let status = rows.pop().unwrap_or_default();
    (contents(parser, rows.len()), status)
}

/// The first rows of the screen, with lines that the terminal broke joined again.
fn contents(parser: &vt100::Parser, rows: usize) -> String {
    let screen = parser.screen();
    let (_, columns) = screen.size();
    let mut text = String::new();
    let mut is_joined = true;
    for (index, row) in screen.rows(0, columns.get()).enumerate().take(rows) {
        if !is_joined {
            text.push('\n');
        }
        text.push_str(&row);
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        is_joined = screen.row_wrapped(index);
        if !is_joined {
            text.truncate(text.trim_end_matches(' ').len());
        }
    }
    text.trim_end().to_owned()
}

/// Whether all threads of a process wait for something.
fn all_wait(threads: &str) -> bool {
    let threads = std::fs::read_dir(threads).unwrap();
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat"));
        let Ok(stat) = stat else {
            return true; // it is gone
        };
        // Behind the name, which may hold anything.
        let state = stat.rsplit(") ").next();
        state.is_some_and(|state| state.starts_with('S'))
    })
}
