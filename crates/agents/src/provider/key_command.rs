//! Runs the command that prints a key.
//!
//! Promises: bounded in time and output, and nothing of it stays behind when time is up; what it printed is in no error.
//! Must not know: what the key is for.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::key::KEY_BYTES_MAX;

/// Long enough for a person to unlock a password store.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What a program prints on its standard output; an error says how it failed, to be put after its name.
pub(super) async fn run(command: &[String]) -> Result<String, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("names no program".to_owned());
    };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It may say anything there, the key included.
        .stderr(Stdio::null())
        // A group of its own: what it started is stopped with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot be run: {error}"))?;
    let mut group = ProcessGroup(child);
    match timeout(TIME_MAX, read(&mut group.0)).await {
        Ok(printed) => printed,
        Err(_) => Err(format!("printed no key within {} s", TIME_MAX.as_secs())),
    }
}

async fn read(child: &mut Child) -> Result<String, String> {
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        let mut output = output.take(KEY_BYTES_MAX + 1);
        let read = output.read_to_end(&mut bytes).await;
        read.map_err(|error| format!("cannot be read: {error}"))?;
    }
    if bytes.len() as u64 > KEY_BYTES_MAX {
        return Err("prints more than a key".to_owned());
    }
    let status = child.wait().await.map_err(|error| format!("cannot be waited for: {error}"))?;
    if !status.success() {
        return Err(format!("failed ({status}); run it in a terminal to see why"));
    }
    String::from_utf8(bytes).map_err(|_| "prints no text".to_owned())
}

/// A child that leads a process group; the group ends with this.
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // One that has ended and was waited for has no id any more.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            // Only of one that is gone already does this fail.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
