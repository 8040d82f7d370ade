//! Starts a host in the background when none is running, and waits until it is there.
//!
//! Promises: the host outlives whoever started it; its log is in the data directory. If it does not start, the end of its
//! log is shown. Two who start one at once end up with the same. Only a host that proves what it is counts as started.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{ClientError, Connection, Endpoint, EndpointError, endpoint};

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
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::NotFound(error)) => is_absent(error),
        // A host that holds the directory and does not answer is there all the same; a second one could not start.
        Some(_) => false,
        None => error.downcast_ref::<EndpointError>().is_some_and(is_absent),
    }
}

/// One that starts or stops is waited for, and started if it was stopping.
fn is_absent(error: &EndpointError) -> bool {
    error.is_no_host() || matches!(error, EndpointError::NotListening { .. })
}

/// Starts a host for a data directory, unless another is just starting; returns a sentence about it for the user.
pub(crate) async fn start_host(data: &Path) -> anyhow::Result<String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("the data directory {} cannot be created", data.display()))?;
    wait_for_another_host(data).await?;
    if let Some(Endpoint { pid, .. }) = find_running_host(data).await {
        return Ok(format!("a host was just started: `kill {pid}` stops it"));
    }
    let path = data.join(LOG);
    let log =
        open_log(&path).with_context(|| format!("the log {} cannot be written", path.display()))?;
    let began = log.metadata().map_or(0, |metadata| metadata.len());
    let mut child = spawn(data, log).context("no host runs, and none could be started")?;
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        if let Some(Endpoint { pid, .. }) = find_running_host(data).await {
            return Ok(format!(
                "started a host in the background: `kill {pid}` stops it, its log is {}",
                path.display()
            ));
        }
        // A host that ends because another was quicker leaves that one behind, which may not be ready yet.
        let ended = child.try_wait().context("the host cannot be watched")?;
        if let Some(status) = ended
            && (!endpoint::is_held(data).unwrap_or(false) || Instant::now() > deadline)
            && find_running_host(data).await.is_none()
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

/// Waits while a host is starting or stopping.
async fn wait_for_another_host(data: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + READY_TIMEOUT;
    while let Err(EndpointError::NotListening { .. }) = Endpoint::find(data) {
        if Instant::now() > deadline {
            bail!(
                "a host holds the data directory {} but does not say where it listens; `greenroom doctor` says more",
                data.display()
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// The host that serves the data directory and answers.
async fn find_running_host(data: &Path) -> Option<Endpoint> {
    let endpoint = Endpoint::find(data).ok()?;
    let (connection, _events) = Connection::connect_to(&endpoint.destination(None))
        .await
        .ok()?;
    connection.close().await;
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

fn spawn(data: &Path, log: File) -> anyhow::Result<Child> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.args(["serve", "--background", "--data"]).arg(data);
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
        let left = EndpointError::LeftBehind {
            data: "d".to_owned(),
            pid: "7".to_owned(),
        };
        assert!(is_host_missing(
            &anyhow::Error::new(left).context("while connecting")
        ));
        assert!(!is_host_missing(&unreachable.into()));
        let starting = EndpointError::NotListening {
            data: "d".to_owned(),
        };
        assert!(is_host_missing(&ClientError::NotFound(starting).into()));
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
