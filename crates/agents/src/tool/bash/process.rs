//! A command behind a pipe, from its start to its end: for hosts without terminals.
//!
//! Must not know: models.

use std::io;

use terminals::{CommandEnd, CommandHandle, KillOnDrop, ShellCommand, run_to_end};
use tokio::sync::mpsc;

use super::super::ToolError;
use super::call_scope::current_mark;
use super::capture::{Capture, LiveCapture};
use crate::task;

/// Runs a command to its end. Dropping the future kills it.
pub(super) async fn run(
    command: ShellCommand,
    output: mpsc::Sender<String>,
) -> Result<(CommandEnd, Capture), ToolError> {
    let handle = CommandHandle::new(current_mark());
    let shared = handle.clone();
    // Not on the runtime's clock and not on its threads: a process knows neither.
    let work = task::try_blocking(move || {
        let mut sink = LiveCapture::new(output);
        let end = run_to_end(&command, &shared, &mut sink, &mut |_| {})?;
        Ok::<_, io::Error>((end, sink.into_capture()))
    });
    let handle = KillOnDrop(handle);
    let done = work.await;
    drop(handle);
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(ToolError(format!("the command could not be run: {error}"))),
        Err(_) => Err(ToolError(
            "the command could not be run: internal error while running it".to_owned(),
        )),
    }
}
