//! Starts a host in the background when none is running, and waits until it is there.
//!
//! Promises: the host outlives whoever started it; its log is in the data directory. If it does not start, the end of its
//! log is shown. Two who start one at once end up with the same.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{ClientError, Endpoint, EndpointError};
use host::Model;

const LOG: &str = "host.log";
/// A log larger than this begins anew.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// How much of the end of the log is looked at for the reason of a failure.
const LOG_END_BYTES: u64 = 4_096;
/// How long a host may take to start.
const READY_TIMEOUT: Duration = Duration::from_secs(15);
/// How often it is looked for: another process can only be asked, not waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Whether the reason for a failure is that no host runs here.
pub(crate) fn is_host_missing(error: &anyhow::Error) -> bool {
    let endpoint = |error: &EndpointError| matches!(error, EndpointError::NoHost { .. });
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::NotFound(error)) => endpoint(error),
        Some(ClientError::Unreachable { .. }) => true,
        Some(_) => false,
        None => error.downcast_ref::<EndpointError>().is_some_and(endpoint),
    }
}

/// Starts a host for a data directory; returns a sentence about it for the user.
pub(crate) async fn start_host(data: &Path, model: Option<&Model>) -> anyhow::Result<String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("the data directory {} cannot be created", data.display()))?;
    let path = data.join(LOG);
    let log =
        open_log(&path).with_context(|| format!("the log {} cannot be written", path.display()))?;
    let began = log.metadata().map_or(0, |metadata| metadata.len());
    let mut child = spawn(data, model, log).context("no host runs, and none could be started")?;
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        if let Some(Endpoint { pid, .. }) = find_running_host(data) {
            return Ok(format!(
                "started a host in the background: `kill {pid}` stops it, its log is {}",
                path.display()
            ));
        }
        // A host that ends because another was quicker leaves that one behind.
        if let Some(status) = child.try_wait().context("the host cannot be watched")?
            && find_running_host(data).is_none()
        {
            bail!(
                "no host runs, and the one that was started ended at once ({status}): {}\nIts log is {}; \
                 `greenroom serve` shows more",
                last_log_line(&path, began),
                path.display()
            );
        }
        if Instant::now() > deadline {
            bail!(
                "the host that was started (pid {}) is not ready after {} s; its log is {}",
                child.id(),
                READY_TIMEOUT.as_secs(),
                path.display()
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The host that listens where the data directory says. A file that a killed host left behind names one, too.
fn find_running_host(data: &Path) -> Option<Endpoint> {
    let endpoint = Endpoint::find(data).ok()?;
    let address = endpoint.url.trim_start_matches("ws://");
    TcpStream::connect(address.trim_end_matches('/')).ok()?;
    Some(endpoint)
}

fn open_log(path: &PathBuf) -> std::io::Result<File> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    if log.metadata()?.len() > LOG_BYTES_MAX {
        log.set_len(0)?;
    }
    Ok(log)
}

fn spawn(data: &Path, model: Option<&Model>, log: File) -> anyhow::Result<Child> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(["serve", "--background", "--data"]).arg(data);
    if let Some(model) = model {
        let named = format!("{}#{}", model.base_url, model.id);
        command.args(["--model", &named]);
    }
    // Clients find the host by its data directory, so that any port will do where the usual one is taken.
    if TcpListener::bind((Ipv4Addr::LOCALHOST, host::DEFAULT_PORT)).is_err() {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    Ok(command.spawn()?)
}

/// The last line of the log since the host was started.
fn last_log_line(path: &Path, began: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut log = File::open(path)?;
        let end = log.metadata()?.len();
        log.seek(SeekFrom::Start(
            began.max(end.saturating_sub(LOG_END_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        log.take(LOG_END_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it logged nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_that_is_not_there_is_missing() {
        let no_host = EndpointError::NoHost {
            data: "d".to_owned(),
        };
        let unreachable = ClientError::Unreachable {
            url: "ws://x/".to_owned(),
            why: "refused".to_owned(),
        };
        let unauthorized = ClientError::Unauthorized {
            url: "ws://x/".to_owned(),
        };
        assert!(is_host_missing(&no_host.clone().into()));
        assert!(is_host_missing(&ClientError::NotFound(no_host).into()));
        assert!(is_host_missing(
            &anyhow::Error::new(unreachable).context("while connecting")
        ));
        assert!(!is_host_missing(&unauthorized.into()));
        assert!(!is_host_missing(&anyhow::anyhow!("else")));
    }

    #[test]
    fn the_last_line_is_one_of_this_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(LOG);
        fs::write(&path, "old words\n").unwrap();
        assert_eq!(last_log_line(&path, 10), "it logged nothing");
        fs::write(&path, "old words\nnew\nlast words\n\n").unwrap();
        assert_eq!(last_log_line(&path, 10), "last words");
    }
}
