//! A terminal that runs, by the handle that others have of it.
//!
//! Promises: input that a program does not read is bounded. The process is killed when the handle is gone.
//! Must not know: who reads, who types.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::{Notify, oneshot};

use crate::child::{CommandEnd, CommandHandle, KillOnDrop, OutputSink};
use crate::follower;
use crate::ignored_signals;
use crate::launch::TerminalLaunch;
use crate::output::{TerminalEvent, WaitingOutput};
use crate::process_record::ProcessRecord;
use crate::session::Mark;
use crate::size::TerminalSize;

/// Input that waits for what is being written; of that there is as much at most.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// How something ended that could not be followed to its end.
pub(crate) const UNKNOWN_END: CommandEnd = CommandEnd::Signalled(0);

/// A terminal with a process in it. Killed when dropped.
#[derive(Debug)]
pub struct RunningTerminal {
    shared: Arc<TerminalShared>,
    kill: KillOnDrop,
    process: ProcessRecord,
}

pub(crate) struct TerminalShared {
    control: Mutex<Control>,
    /// Something waits to be taken.
    pub(crate) changed: Notify,
    /// Written to when the thread is to look at the requests.
    pub(crate) wake: OwnedFd,
}

impl std::fmt::Debug for TerminalShared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TerminalShared") // what was typed and printed is nobody's business
    }
}

#[derive(Default)]
pub(crate) struct Control {
    pub(crate) input: VecDeque<u8>,
    pub(crate) size: Option<TerminalSize>,
    pub(crate) clear: bool,
    pub(crate) redraw: bool,
    /// What runs in it is to be killed.
    pub(crate) kill: bool,
    /// Its time does not run while this is set.
    pub(crate) is_held: bool,
    pub(crate) waiting: WaitingOutput,
    pub(crate) end: Option<CommandEnd>,
    pub(crate) is_over: bool,
}

/// More was typed than the program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputFull;

impl TerminalShared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Control> {
        self.control.lock()
    }

    fn wake(&self) {
        // Full means that it will wake anyway; the thread may be gone, and then nobody needs to be woken.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// Starts something in a terminal of its own. `tap` gets every byte as it was printed.
pub async fn open(
    launch: TerminalLaunch,
    mark: Mark,
    tap: Option<Box<dyn OutputSink + Send>>,
) -> io::Result<RunningTerminal> {
    ignored_signals::undo_for_children();
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let shared =
        Arc::new(TerminalShared { control: Mutex::default(), changed: Notify::new(), wake });
    let handle = CommandHandle::new(mark);
    let kill = KillOnDrop(handle.clone());
    let (started, has_started) = oneshot::channel();
    let follower = Arc::clone(&shared);
    let thread = std::thread::Builder::new().name("terminal".to_owned());
    thread.spawn(move || {
        let _over = OverOnDrop(&follower);
        follower::run(launch, &handle, &follower, tap, started);
    })?;
    match has_started.await {
        Ok(started) => Ok(RunningTerminal { shared, kill, process: started? }),
        Err(_) => Err(io::Error::other("internal error while starting it")),
    }
}

impl RunningTerminal {
    pub fn process(&self) -> ProcessRecord {
        self.process
    }

    /// Types.
    pub fn write(&self, text: &str) -> Result<(), InputFull> {
        let mut control = self.shared.lock();
        if control.input.len() + text.len() > INPUT_BYTES_MAX {
            return Err(InputFull);
        }
        control.input.extend(text.as_bytes());
        drop(control);
        self.shared.wake();
        Ok(())
    }

    pub fn resize(&self, size: TerminalSize) {
        self.shared.lock().size = Some(size);
        self.shared.wake();
    }

    /// Whoever follows the terminal forgets what was sent before.
    pub fn clear(&self) {
        self.shared.lock().clear = true;
        self.shared.wake();
    }

    /// Sends once more what it shows: something that was sent before was lost.
    pub fn redraw(&self) {
        self.shared.lock().redraw = true;
        self.shared.wake();
    }

    /// Stops its time, or lets it run on.
    pub fn hold_time(&self, is_held: bool) {
        self.shared.lock().is_held = is_held;
        self.shared.wake();
    }

    /// Kills what runs in it. Looks through all processes of the machine for that: not on a thread that others wait for.
    pub fn kill(&self) {
        self.kill.kill();
    }

    /// Has the thread of the terminal kill what runs in it.
    pub fn request_kill(&self) {
        self.shared.lock().kill = true;
        self.shared.wake();
    }

    /// Waits for the end of what runs in it, whether or not somebody reads.
    pub async fn ended(&self) -> CommandEnd {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let control = self.shared.lock();
                if let Some(end) = control.end {
                    return end;
                }
                if control.is_over {
                    return UNKNOWN_END;
                }
            }
            changed.await;
        }
    }

    /// What happened since this was last asked, at least one thing; none when the end was returned. For one reader.
    pub async fn next(&self) -> Option<Vec<TerminalEvent>> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut control = self.shared.lock();
                if !control.waiting.is_empty() {
                    let output = control.waiting.take();
                    drop(control);
                    self.shared.wake();
                    return Some(output);
                }
                if control.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }
}

/// Tells who waits that nothing more comes, however that came about.
struct OverOnDrop<'a>(&'a TerminalShared);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::launch::{Program, StartDirectory};
    use crate::session;

    #[tokio::test]
    async fn who_asks_for_the_end_does_not_look_for_processes() {
        let launch = TerminalLaunch {
            program: Program::Shell { path: PathBuf::from("/bin/sh"), integration: None },
            directory: StartDirectory::Path(PathBuf::from("/")),
            variables: std::env::vars_os().collect(),
            size: TerminalSize::clamped(80, 24),
        };
        let terminal = open(launch, Mark::unique(), None).await.unwrap();
        let looks = session::looks_of_this_thread();
        terminal.request_kill();
        assert_eq!(session::looks_of_this_thread(), looks);
        assert_eq!(terminal.ended().await, CommandEnd::Signalled(9));
        assert!(!terminal.process().is_running());
    }
}
