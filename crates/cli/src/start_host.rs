//! Starts a host when none is running, and waits until it is there: as the service that is installed for the data directory,
//! else in the background.
//!
//! Promises: the host outlives whoever started it; its log is in the data directory. If it does not start, the end of its
//! log is shown. Two who start one at once end up with the same. Only a host that proves what it is counts as started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{ClientError, Connection, Endpoint, EndpointError, endpoint};

use crate::log_file;
use crate::private_directory::create_private_directory;
use crate::service::Service;
use crate::stop::command_for;

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

/// What a host in the background is started with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StartOptions {
    /// What follows `greenroom serve`.
    pub(crate) arguments: Vec<OsString>,
    /// Where it is started; here if that is not there any more.
    pub(crate) directory: Option<PathBuf>,
    /// The port that clients know from before.
    pub(crate) port: Option<u16>,
}

/// Starts a host for a data directory, unless another is just starting; returns a sentence about it for the user.
pub(crate) async fn start_host(data: &Path) -> anyhow::Result<String> {
    let options = StartOptions::default();
    create_data_directory(data)?;
    wait_for_another_host(data).await?;
    if find_running_host(data).await.is_some() {
        let stop = command_for("stop", data);
        return Ok(format!("a host was just started: `{stop}` stops it"));
    }
    // Two kinds of hosts must not compete for the directory: where there is a service, it is the host.
    if let Some(service) = Service::installed_for(data) {
        match start_service(data, &service).await {
            Ok(started) => return Ok(started),
            Err(error) => eprintln!(
                "greenroom: the service {} does not start, so a host is started in the background: {error:#}",
                service.name()
            ),
        }
    }
    start_in_background(data, &options).await
}

async fn start_service(data: &Path, service: &Service) -> anyhow::Result<String> {
    service.start()?;
    wait_until_ready(data).await?;
    Ok(format!("started the service {}", service.name()))
}

/// Waits until a host that somebody else starts answers.
pub(crate) async fn wait_until_ready(data: &Path) -> anyhow::Result<Endpoint> {
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        if let Some(endpoint) = find_running_host(data).await {
            return Ok(endpoint);
        }
        if Instant::now() > deadline {
            bail!(
                "the host is not ready after {} s; `{}` shows its log",
                READY_TIMEOUT.as_secs(),
                command_for("logs", data)
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Creates the data directory if there is none.
pub(crate) fn create_data_directory(data: &Path) -> anyhow::Result<()> {
    create_private_directory(data)
        .with_context(|| format!("the data directory {} cannot be created", data.display()))
}

/// Starts a host that belongs to no terminal and waits until it answers.
pub(crate) async fn start_in_background(
    data: &Path,
    options: &StartOptions,
) -> anyhow::Result<String> {
    create_data_directory(data)?;
    let path = log_file::path_in(data);
    let log = log_file::open(&path)
        .with_context(|| format!("the log {} cannot be written", path.display()))?;
    let began = log.metadata().map_or(0, |metadata| metadata.len());
    let mut child = spawn(data, options, log).context("no host runs, and none could be started")?;
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        if find_running_host(data).await.is_some() {
            return Ok(format!(
                "started a host in the background: `{}` stops it, its log is {}",
                command_for("stop", data),
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
    let (connection, _events) = Connection::connect_to(&endpoint.destination(None)).await.ok()?;
    connection.close().await;
    Some(endpoint)
}

fn spawn(data: &Path, options: &StartOptions, log: File) -> anyhow::Result<Child> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    // It may be started in another directory.
    let data = std::path::absolute(data)?;
    command.args(["serve", "--background", "--data"]).arg(data);
    if let Some(port) = options.port {
        command.args(["--earlier-port", &port.to_string()]);
    }
    command.args(&options.arguments);
    if let Some(directory) = options.directory.as_ref().filter(|path| path.is_dir()) {
        command.current_dir(directory);
    }
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok(command.spawn()?)
}

/// The last line of the log since the host was started.
fn last_log_line(path: &Path, began: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut log = File::open(path)?;
        let end = log.metadata()?.len();
        log.seek(SeekFrom::Start(began.max(end.saturating_sub(LOG_END_BYTES))))?;
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
    use std::fs;

    use super::*;

    const LOG: &str = "host.log";

    #[test]
    fn only_a_host_that_is_not_there_is_missing() {
        let no_host = EndpointError::NoHost { data: "d".to_owned() };
        let unreachable =
            ClientError::Unreachable { url: "ws://x/".to_owned(), why: "refused".to_owned() };
        let unauthorized = ClientError::Unauthorized { url: "ws://x/".to_owned() };
        assert!(is_host_missing(&no_host.clone().into()));
        assert!(is_host_missing(&ClientError::NotFound(no_host).into()));
        let left = EndpointError::LeftBehind { data: "d".to_owned(), pid: "7".to_owned() };
        assert!(is_host_missing(&anyhow::Error::new(left).context("while connecting")));
        assert!(!is_host_missing(&unreachable.into()));
        let starting = EndpointError::NotListening { data: "d".to_owned() };
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
