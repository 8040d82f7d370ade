//! A program in a pseudo-terminal, and when it wrote something.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::measure::now_ns;

/// Longer than anything takes that works.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A program in a terminal of 80 columns and 24 rows; it is gone when this is.
pub(crate) struct PtyProcess {
    child: Child,
    keyboard: File,
    written: Receiver<(u64, Vec<u8>)>,
    started_ns: u64,
    seen: Vec<u8>,
}

/// Both ends of a pseudo-terminal: ours, and that of programs.
fn open_pair() -> Result<(File, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(path, flags, Mode::empty())?;
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&slave, size)?;
    Ok((File::from(master), slave))
}

/// A command in a terminal whose output is read and forgotten; it is gone when this is.
pub(crate) struct DiscardedPrinter(Child);

impl DiscardedPrinter {
    pub(crate) fn start(command: &str) -> Result<Self> {
        let (mut output, slave) = open_pair()?;
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 * 1_024];
            // A terminal whose other end is closed answers with an error.
            while let Ok(1..) = output.read(&mut bytes) {}
        });
        let child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::from(slave))
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a shell")?;
        Ok(Self(child))
    }
}

impl Drop for DiscardedPrinter {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl PtyProcess {
    pub(crate) fn start(program: &Path, arguments: &[&str], directory: &Path) -> Result<Self> {
        let (keyboard, slave) = open_pair()?;
        let mut output = keyboard.try_clone()?;
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // A terminal whose other end is closed answers with an error.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if sender.send((now_ns(), bytes[..count].to_vec())).is_err() {
                    break;
                }
            }
        });
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(directory)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave.try_clone()?));
        let started_ns = now_ns();
        let child =
            command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, keyboard, written, started_ns, seen: Vec::new() })
    }

    /// Nanoseconds from its start until it had written this.
    pub(crate) fn wrote_after_ns(&mut self, text: &str) -> Result<u64> {
        loop {
            let Ok((at_ns, bytes)) = self.written.recv_timeout(TIMEOUT) else {
                let seen = String::from_utf8_lossy(&self.seen);
                bail!("a program in a terminal never wrote `{text}`: {seen:?}");
            };
            self.seen.extend(bytes);
            let is_there = self.seen.windows(text.len()).any(|window| window == text.as_bytes());
            if is_there {
                return Ok(at_ns - self.started_ns);
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        Ok(self.keyboard.write_all(keys.as_bytes())?)
    }

    /// What it writes next; nothing if it is silent for so long, or has ended.
    pub(crate) fn read(&mut self, silence_max: Duration) -> Option<Vec<u8>> {
        let (_, bytes) = self.written.recv_timeout(silence_max).ok()?;
        Some(bytes)
    }

    /// Presses keys and waits until it has ended.
    pub(crate) fn leave(mut self, keys: &str) -> Result<()> {
        // One that has ended already needs no key.
        let _ = self.keyboard.write_all(keys.as_bytes());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { bail!("a program in a terminal ended with {status}") }
    }
}

impl Drop for PtyProcess {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
