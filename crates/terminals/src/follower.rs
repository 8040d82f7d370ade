//! The thread that reads and writes one terminal.
//!
//! Promises: nothing that is printed makes it wait for who reads the output: that one gets less of it. A terminal that prints
//! without end uses at most half of one processor.
//! Must not know: who reads, who types.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::PollFlags;
use rustix::io::Errno;
use tokio::sync::oneshot;

use crate::child::{
    CHUNK_BYTES, CommandEnd, CommandHandle, DRAIN_MAX, LeadingProcess, OutputSink, poll_for,
};
use crate::launch::TerminalLaunch;
use crate::output::Coalescer;
use crate::process_record::ProcessRecord;
use crate::pty::{self, PtyPair};
use crate::pump::{TerminalShared, UNKNOWN_END};
use crate::session;

/// Longest rest of a terminal that prints without end.
const REST_MAX: Duration = Duration::from_millis(20);

/// Starts something in a terminal and follows it to its end.
pub(crate) fn run(
    launch: TerminalLaunch,
    handle: &CommandHandle,
    shared: &TerminalShared,
    tap: Option<Box<dyn OutputSink + Send>>,
    started: oneshot::Sender<io::Result<ProcessRecord>>,
) {
    let (timeout, ends_with_leader) = (launch.timeout(), launch.ends_with_leader());
    let nonce = session::new_mark();
    let size = launch.size;
    let opened = PtyPair::open(size).and_then(|pty| {
        let process = LeadingProcess::start(handle, || launch.spawn(&pty, handle, &nonce))?;
        // Ours alone from here on: when the programs are gone, the end of their output is seen.
        drop(pty.end);
        Ok((pty.master, process))
    });
    let (master, process) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            // Who asked may be gone.
            let _ = started.send(Err(error));
            return;
        }
    };
    // Who asked may be gone: then it was killed, and this ends.
    let _ = started.send(Ok(session::record_of(process.leader)));
    let mut follower = Follower {
        master,
        is_closed: false,
        process,
        shared,
        tap,
        coalescer: Coalescer::new(nonce, size),
        input: VecDeque::new(),
        buffer: vec![0; CHUNK_BYTES],
        rest_until: None,
        allowed: timeout.map(|timeout| Allowance::new(timeout, Instant::now())),
    };
    let end = follower.follow(timeout, ends_with_leader).unwrap_or(UNKNOWN_END);
    // The tap has everything before anybody hears of the end.
    drop(follower.tap.take());
    let mut control = shared.lock();
    control.end = Some(end);
    follower.coalescer.finish(end, Instant::now(), &mut control.waiting);
}

/// How long a command may still run.
struct Allowance {
    left: Duration,
    /// Absent while the time stands still.
    since: Option<Instant>,
}

impl Allowance {
    fn new(left: Duration, now: Instant) -> Self {
        let since = Some(now);
        Self { left, since }
    }

    fn hold(&mut self, is_held: bool, now: Instant) {
        match (is_held, self.since) {
            (true, Some(since)) => {
                self.left = self.left.saturating_sub(now.saturating_duration_since(since));
                self.since = None;
            }
            (false, None) => self.since = Some(now),
            (true, None) | (false, Some(_)) => {}
        }
    }

    /// When it is over. A time that no clock reaches is none.
    fn deadline(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(self.left))
    }
}

/// The thread of a terminal.
struct Follower<'a> {
    /// Held until the process has ended: closing it would hang up on it.
    master: OwnedFd,
    /// Nobody has the other end open. A process may still run, and open it again.
    is_closed: bool,
    process: LeadingProcess<'a>,
    shared: &'a TerminalShared,
    tap: Option<Box<dyn OutputSink + Send>>,
    coalescer: Coalescer,
    input: VecDeque<u8>,
    buffer: Vec<u8>,
    /// Nothing is read before this.
    rest_until: Option<Instant>,
    allowed: Option<Allowance>,
}

impl Follower<'_> {
    fn follow(
        &mut self,
        timeout: Option<Duration>,
        ends_with_leader: bool,
    ) -> io::Result<CommandEnd> {
        let timed_out = loop {
            self.take_requests()?;
            let ended = self.wait_and_read()?;
            if ended {
                break false;
            }
            if let Some(tap) = &mut self.tap {
                tap.flush();
            }
            let deadline = self.allowed.as_ref().and_then(Allowance::deadline);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break true;
            }
        };
        let status = if ends_with_leader || timed_out {
            self.process.end()?
        } else {
            self.process.reap()?
        };
        self.drain()?;
        Ok(if timed_out {
            CommandEnd::TimedOut(timeout.unwrap_or_default())
        } else {
            CommandEnd::of(status)
        })
    }

    fn take_requests(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let (size, clear, is_held, kill) = {
            let mut control = self.shared.lock();
            // What the program has not read yet stays where it is counted.
            if self.input.is_empty() {
                self.input.append(&mut control.input);
            }
            let clear = std::mem::take(&mut control.clear);
            if std::mem::take(&mut control.redraw) {
                self.coalescer.redraw();
            }
            let kill = std::mem::take(&mut control.kill);
            (control.size.take(), clear, control.is_held, kill)
        };
        if kill {
            self.process.kill();
        }
        if let Some(size) = size {
            pty::set_size(&self.master, size)?;
            self.coalescer.resize(size);
        }
        if clear {
            self.coalescer.clear();
        }
        if let Some(allowed) = &mut self.allowed {
            allowed.hold(is_held, now);
        }
        Ok(())
    }

    /// Waits for something to do and does it; whether the process has ended.
    fn wait_and_read(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        self.rest_until = self.rest_until.filter(|until| *until > now);
        let is_full = {
            let mut control = self.shared.lock();
            self.coalescer.catch_up(now, &mut control.waiting);
            if !control.waiting.is_empty() {
                self.shared.changed.notify_waiters();
            }
            control.waiting.is_full()
        };
        let mut wanted = PollFlags::empty();
        if !is_full && self.rest_until.is_none() {
            wanted |= PollFlags::IN;
        }
        // One that nobody has open is always ready: it is looked at now and then.
        let rests_closed = self.is_closed && self.rest_until.is_some();
        if !self.input.is_empty() && !rests_closed {
            wanted |= PollFlags::OUT;
        }
        let until = [
            self.rest_until,
            self.tap.as_ref().and_then(|tap| tap.due()),
            self.allowed.as_ref().and_then(Allowance::deadline),
            // What waits to be taken is not drawn over: then the taking wakes this.
            self.coalescer.due(now).filter(|due| *due > now),
        ]
        .into_iter()
        .flatten()
        .min();
        let master = Some(&self.master).filter(|_| !wanted.is_empty());
        let [is_ready, is_woken, has_ended] = poll_for(
            [
                master.map(|master| (master.as_fd(), wanted)),
                Some((self.shared.wake.as_fd(), PollFlags::IN)),
                Some((self.process.process.as_fd(), PollFlags::IN)),
            ],
            until,
        )?;
        if is_woken {
            let mut count = [0; 8];
            // Only empties it.
            let _ = rustix::io::read(&self.shared.wake, &mut count);
        }
        if is_ready {
            self.write_input();
            if wanted.contains(PollFlags::IN) {
                self.read();
            }
        }
        Ok(has_ended)
    }

    fn write_input(&mut self) {
        let (front, _) = self.input.as_slices();
        match rustix::io::write(&self.master, front) {
            Ok(written) => drop(self.input.drain(..written)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.input.clear(), // its programs are gone
        }
    }

    /// Reads what is there, up to a chunk.
    fn read(&mut self) {
        let mut filled = 0;
        self.is_closed = false;
        while let Some(space) = self.buffer.get_mut(filled..).filter(|space| !space.is_empty()) {
            match rustix::io::read(&self.master, space) {
                // That nobody has the other end open is an error on Linux.
                Ok(0) | Err(Errno::IO) => {
                    self.is_closed = true;
                    break;
                }
                Ok(bytes) => filled += bytes,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let began = Instant::now();
        let bytes = self.buffer.get(..filled).unwrap_or_default();
        if let Some(tap) = self.tap.as_mut().filter(|_| filled > 0) {
            tap.push(bytes);
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = at.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        let events = self.coalescer.read(bytes, began, at);
        let mut control = self.shared.lock();
        self.coalescer.queue(events, began, &mut control.waiting);
        if !control.waiting.is_empty() {
            self.shared.changed.notify_waiters();
        }
        drop(control);
        if self.coalescer.is_behind() {
            let worked = began.elapsed().min(REST_MAX);
            self.rest_until = Some(Instant::now() + worked);
        }
        if self.is_closed {
            self.rest_until = Some(Instant::now() + REST_MAX);
        }
    }

    /// Reads what was printed before the end, for a moment at most.
    fn drain(&mut self) -> io::Result<()> {
        let until = Instant::now() + DRAIN_MAX;
        // What was printed just before it was closed has not been read if it is resting.
        self.read();
        while !self.is_closed && Instant::now() < until {
            let master = Some((self.master.as_fd(), PollFlags::IN));
            match poll_for([master], Some(until))? {
                [true] => self.read(),
                [false] => break,
            }
        }
        Ok(())
    }
}
