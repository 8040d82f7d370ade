//! As process 1 of a container: runs the program as a child, passes signals on to it, and reaps whatever loses its parent.
//!
//! Promises: no process that was orphaned stays behind as a zombie; the exit code is that of the program. Only this process
//! waits for children it does not know, and it starts none but one: nothing that the program itself waits for is ever
//! taken away from it.
//! Must not know: what the program does.

use std::io;
use std::process::{Command, ExitCode};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What others send to process 1 and mean for the program.
const PASSED_ON: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// Runs the program in a child if this is process 1; `None` if it is not, or cannot start itself again.
pub(crate) fn run_as_process_one() -> Option<ExitCode> {
    if std::process::id() != 1 {
        return None;
    }
    match supervise() {
        Ok(code) => Some(ExitCode::from(code)),
        Err(error) => {
            eprintln!("greenroom: processes that lose their parent will not be reaped: {error}");
            None
        }
    }
}

fn supervise() -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Watched before there is a child: none of its signals is missed.
        let mut child_ended = signal(SignalKind::child())?;
        let mut received = watch_signals()?;
        let mut command = Command::new(std::env::current_exe()?);
        let child = Pid::from_child(&command.args(std::env::args_os().skip(1)).spawn()?);
        hide_environment();
        loop {
            if let Some(code) = reap(child) {
                return Ok(code);
            }
            tokio::select! {
                _ = child_ended.recv() => {}
                Some(signal) = received.recv() => pass_on(child, signal),
            }
        }
    })
}

/// The signals that are passed on, as they come in.
fn watch_signals() -> io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(PASSED_ON.len());
    for number in PASSED_ON {
        let mut watched = signal(SignalKind::from_raw(number.as_raw()))?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while watched.recv().await.is_some() && sender.send(number).await.is_ok() {}
        });
    }
    Ok(receiver)
}

fn pass_on(child: Pid, signal: Signal) {
    // It is reaped here alone, so its number is still its own.
    if let Err(error) = kill_process(child, signal) {
        eprintln!("greenroom: a signal could not be passed on: {error}");
    }
}

/// Reaps all that have ended; how the program ended, if it is one of them.
fn reap(program: Pid) -> Option<u8> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((process, status))) if process == program => return Some(exit_code(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return None,
            // There is no child at all, not even the program.
            Err(_) => return Some(1),
        }
    }
}

/// As shells say it: 128 and the number of the signal that ended it.
fn exit_code(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Commands that an agent runs must not read from here what the program keeps from them.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        eprintln!("greenroom: the environment could not be hidden from commands: {error}");
    }
}
