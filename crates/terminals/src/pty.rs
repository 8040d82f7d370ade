//! A pair of pseudo-terminal ends.
//!
//! Promises: neither end is inherited by a process that is not meant to have it, also if others start processes at the same
//! time: both are closed on exec from the moment they exist.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::size::TerminalSize;

/// Both ends of a pseudo-terminal.
pub(crate) struct PtyPair {
    /// What is read from and written to: the side of whoever shows it. Does not block.
    pub(crate) master: OwnedFd,
    /// The side of the programs in it.
    pub(crate) end: OwnedFd,
    /// Where that is found.
    pub(crate) name: String,
}

impl PtyPair {
    pub(crate) fn open(size: TerminalSize) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?.into_string().map_err(io::Error::other)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let end = rustix::fs::open(&*name, flags, Mode::empty())?;
        set_size(&master, size)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self { master, end, name })
    }
}

/// Changes the size; programs in the terminal hear of it.
pub(crate) fn set_size(master: &OwnedFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows(), ws_col: size.columns(), ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(master, size)?)
}
