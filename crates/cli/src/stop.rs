//! `greenroom stop`: ends the local host and waits until it is gone.
//!
//! Promises: only the process that the system names as holder of the data directory is sent a signal; a host that does not stop
//! is killed only if that was asked for; of a service, its manager kills after a minute what does not stop. Nothing that a client
//! has seen is lost either way.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{Endpoint, SessionSummary, endpoint};
use rustix::process::{Pid, Signal};

use crate::exit::Exit;
use crate::format::format_count;
use crate::host_process::{HostProcess, POLL_INTERVAL, is_held};
use crate::host_record::RunMode;
use crate::local_host::LocalHost;
use crate::output::print;
use crate::service::Service;
use crate::terminal::{escape, escape_line};

/// A host promises to stop within 5 s; a slow machine may take longer.
const TIMEOUT_SECONDS: u64 = 15;
/// What is killed is gone as soon as the system has cleaned up.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
/// Titles that are named; more are counted.
const TITLES_MAX: usize = 5;

/// Stop the host of this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom stop
  greenroom stop --force               kill it if it does not stop in time

Turns that are running end as errors that can be resumed; nothing that a client has seen is lost. The sessions are there \
again after the next start, which `greenroom chat` does by itself.

Exit codes: 0 no host runs any more, 1 it could not be stopped.")]
pub(crate) struct StopOptions {
    /// Kill the host if it has not stopped after --timeout
    #[arg(long)]
    force: bool,
    /// How long to wait for it
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_SECONDS)]
    timeout: u64,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// How long a host may take to stop, and what follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopLimits {
    pub(crate) timeout: Duration,
    pub(crate) force: bool,
}

impl Default for StopLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(TIMEOUT_SECONDS), force: false }
    }
}

pub(crate) async fn run(options: StopOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let Some(host) = LocalHost::find(&data)? else {
        print(&format!("No host is running with the data directory {}.\n", data.display()))?;
        return Ok(Exit::Complete);
    };
    let limits = StopLimits { timeout: Duration::from_secs(options.timeout), force: options.force };
    stop_host(&data, &host, limits).await?;
    print("The host has stopped.\n")?;
    Ok(Exit::Complete)
}

/// Stops a host: tells the user what is running, asks it to stop, waits until it is gone.
pub(crate) async fn stop_host(
    data: &Path,
    host: &LocalHost,
    limits: StopLimits,
) -> anyhow::Result<()> {
    let Some(process) = open_process(data, host)? else {
        return Ok(()); // it ended by itself a moment ago
    };
    let address = host.address().map_or_else(String::new, |address| format!(", {address}"));
    eprintln!("Stopping the host (pid {}{}).", process.pid(), escape(&address));
    // A host that does not answer is stopped all the same.
    let report = host.ask(data).await.ok();
    let turns = report.and_then(|report| describe_turns(&report.working()));
    if let Some(turns) = turns {
        eprintln!("{}", escape(&turns));
    }
    let is_service = host.record.as_ref().map(|record| record.mode) == Some(RunMode::Service);
    // The service manager would start again what it did not stop itself.
    let service = Service::installed_for(data).filter(|_| is_service);
    let stopped = service.map(|service| service.stop());
    if let Some(Err(error)) = &stopped {
        eprintln!("greenroom: {}; the host is asked directly", escape(&format!("{error:#}")));
    }
    if !matches!(stopped, Some(Ok(()))) {
        process
            .signal(data, Signal::TERM)
            .with_context(|| format!("the host (pid {}) cannot be stopped", process.pid()))?;
    }
    if wait_until_ended(data, &process, limits.timeout).await? {
        return Ok(());
    }
    if !limits.force {
        bail!(
            "the host (pid {}) has not stopped within {} s. `{} --force` kills it; nothing that a client has seen is lost",
            process.pid(),
            limits.timeout.as_secs(),
            command_for("stop", data)
        );
    }
    eprintln!("It has not stopped within {} s and is killed.", limits.timeout.as_secs());
    process.signal(data, Signal::KILL)?;
    if !wait_until_ended(data, &process, KILLED_WITHIN).await? {
        bail!("the host (pid {}) was killed and is still there", process.pid());
    }
    Ok(())
}

/// The process of the host. An error if the system does not name it: no signal is sent on the word of a file.
fn open_process(data: &Path, host: &LocalHost) -> anyhow::Result<Option<HostProcess>> {
    if let Some(pid) = host.pid.and_then(Pid::from_raw) {
        return Ok(HostProcess::open(data, pid)?);
    }
    if !is_held(data)? {
        return Ok(None);
    }
    let file = data.join(endpoint::FILE_NAME);
    let by_file = match &host.endpoint {
        Ok(Endpoint { pid, .. }) => format!(
            " {} names the pid {pid}: if `ps -p {pid}` shows a greenroom, `kill {pid}` stops it.",
            file.display()
        ),
        Err(_) => String::new(),
    };
    bail!(
        "{} is held, but the system does not say by which process: a host of an earlier version, one in another \
         container, or another program. No signal was sent.{by_file} Otherwise stop it where it was started",
        data.display()
    )
}

/// Which turns end with the host.
fn describe_turns(working: &[&SessionSummary]) -> Option<String> {
    if working.is_empty() {
        return None;
    }
    let title = |session: &&SessionSummary| match session.title() {
        "" => escape_line(session.resource()),
        title => format!("\"{}\"", escape_line(title)),
    };
    let mut titles: Vec<String> = working.iter().take(TITLES_MAX).map(title).collect();
    if working.len() > TITLES_MAX {
        titles.push(format!("{} more", working.len() - TITLES_MAX));
    }
    let is_one = working.len() == 1;
    Some(format!(
        "{} {} running ({}). {} can be resumed when a host runs again.",
        format_count(working.len() as u64, "turn"),
        if is_one { "is" } else { "are" },
        titles.join(", "),
        if is_one { "It" } else { "They" },
    ))
}

/// Waits, and says so on a terminal; whether the host is gone.
async fn wait_until_ended(
    data: &Path,
    process: &HostProcess,
    timeout: Duration,
) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let shows = std::io::stderr().is_terminal();
    let mut shown = 0;
    let ended = loop {
        if process.has_ended(data)? {
            break true;
        }
        if begun.elapsed() >= timeout {
            break false;
        }
        let seconds = begun.elapsed().as_secs();
        if shows && seconds > shown {
            shown = seconds;
            write!(std::io::stderr(), "\rWaiting: {seconds} s")?;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    if shown > 0 {
        eprintln!();
    }
    Ok(ended)
}

/// How to call a verb for this data directory.
pub(crate) fn command_for(verb: &str, data: &Path) -> String {
    match endpoint::data_directory(None) {
        Ok(default) if default == data => format!("greenroom {verb}"),
        _ => format!("greenroom {verb} --data {}", data.display()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn turns_that_end_are_named() {
        let session = |title: &str| {
            SessionSummary::new(json!({"title": title, "resource": "native:/1", "status": 8}))
        };
        assert_eq!(describe_turns(&[]), None);
        let one = session("Fix\u{1b}[31m it");
        assert_eq!(
            describe_turns(&[&one]).unwrap(),
            "1 turn is running (\"Fix\\x1b[31m it\"). It can be resumed when a host runs again."
        );
        let none = session("");
        let words = describe_turns(&[&none; 7]).unwrap();
        assert!(words.starts_with("7 turns are running (native:/1, "), "{words}");
        assert!(words.contains("2 more"), "{words}");
    }
}
