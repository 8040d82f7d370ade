//! The whole public API: start a host, serve until told to stop, leave nothing behind.
//!
//! Promises: a host that cannot go on (its kernel or its journal died) returns an error at once and is not ready from
//! then on; one that is told to stop keeps its deadlines.
//! Must not know: what is served.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::Kernel;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::blobs::BlobError;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::config::{Config, TokenChoice};
use crate::credentials::{self, EndpointFile, EndpointRecord};
use crate::devices::{Devices, DevicesError};
use crate::document_reader::DocumentReader;
use crate::effects::{Bodies, Effects};
use crate::journal::{JournalError, JournalHandle};
use crate::kernel_task::KernelTask;
use crate::limits::ServerLimits;
use crate::net::{self, Admission};
use crate::news::start_agents;
use crate::page::PageServices;
use crate::startup::Parts;
use crate::stream_batcher::StreamBatcher;
use crate::supervisor::Supervisor;

/// The version of this host, as clients and operators see it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Called once, when connections are accepted.
#[derive(Debug, Clone)]
pub struct ServerReady {
    pub url: String,
    pub token: Option<String>,
    pub version: &'static str,
}

/// Why a host could not start or go on; for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error(
        "{0} is not a loopback address: without a token anyone on the network could use this host"
    )]
    TokenNeeded(SocketAddr),
    #[error("token file {path}: {message}")]
    Token { path: PathBuf, message: String },
    #[error("data directory {path}: {message}")]
    Data { path: PathBuf, message: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Blobs(#[from] BlobError),
    #[error(transparent)]
    Devices(#[from] DevicesError),
    #[error("{0}")]
    Model(String),
    #[error("{0}")]
    Agent(String),
    #[error("{0}")]
    Script(String),
    #[error("capabilities: {0}")]
    Capabilities(String),
    #[error("restricted_sections: no agent has a section `{id}`; there are: {known}")]
    Section { id: String, known: String },
    #[error("workspace {path}: {message}")]
    Workspace { path: PathBuf, message: String },
    #[error(
        "the kernel stopped: {0}; this is a defect, please report it. Everything that clients have seen is on disk: \
         start the host again"
    )]
    KernelStopped(String),
    #[error(
        "the journal stopped: {0}; nothing can be recorded any more. Everything that clients have seen is on disk: \
         start the host again"
    )]
    JournalStopped(String),
}

/// Runs a host until `shutdown` resolves: then turns end, readers are flushed, the journal is closed.
pub async fn serve(
    config: Config,
    on_ready: impl FnOnce(ServerReady),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    if config.token == TokenChoice::None && !config.stdio && !config.listen.ip().is_loopback() {
        return Err(ServeError::TokenNeeded(config.listen));
    }
    let parts = Parts::prepare(&config)?;
    serve_with(&config, parts, on_ready, shutdown).await
}

async fn serve_with(
    config: &Config,
    mut parts: Parts,
    on_ready: impl FnOnce(ServerReady),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    // Held until everything else here is dropped, the endpoint file above all.
    let _lock = parts.lock.take();
    let clock = Clock::start();
    let bodies = create_bodies(config, &parts, clock);
    let (listener, admission) = if config.stdio {
        let devices = Devices::in_memory();
        (None, create_admission(config, None, devices, &bodies))
    } else {
        let token = credentials::load_or_create_token(&config.token, &config.data)?;
        let devices = Devices::open(&config.data)?;
        let admission = create_admission(config, token, devices, &bodies);
        (Some(bind(config)?), admission)
    };
    let mut supervisor = start_kernel(config, parts, (bodies, clock), &admission)?;
    let mut shutdown = std::pin::pin!(shutdown);
    tokio::select! {
        booted = supervisor.wait_until_booted() => booted?,
        () = &mut shutdown => {
            supervisor.abort().await;
            return Ok(());
        }
    }
    let served = match listener {
        Some(listener) => {
            serve_sockets(
                config,
                listener,
                admission,
                &mut supervisor,
                on_ready,
                shutdown,
            )
            .await
        }
        None => serve_stdio(config, &admission, &mut supervisor, on_ready, shutdown).await,
    };
    // After a failure nothing is worth waiting for: a batch that is being written is written whole or not at all.
    served?;
    supervisor.close_journal()
}

/// Connections that the system holds until they are accepted. Beyond it a client waits for a second at least, so a burst of
/// others must fit.
const ACCEPT_BACKLOG: u32 = 4_096;

fn bind(config: &Config) -> Result<TcpListener, ServeError> {
    let listen = || {
        let socket = match config.listen {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A host that was just stopped does not keep the next one from its port.
        socket.set_reuseaddr(true)?;
        socket.bind(config.listen)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listen().map_err(|source| ServeError::Listen {
        address: config.listen,
        source,
    })
}

fn create_bodies(config: &Config, parts: &Parts, clock: Clock) -> Bodies {
    let bodies = Bodies::new(Arc::clone(&parts.blobs), clock, &config.limits.kernel);
    bodies
        .confined_to(parts.confinement.clone())
        .with_user_directories(config.user_directories())
}

fn create_admission(
    config: &Config,
    token: Option<String>,
    devices: Devices,
    bodies: &Bodies,
) -> Arc<Admission> {
    let limits = config.limits.server.clone();
    // On standard output the reader is flushed inside of the half that the kernel leaves.
    let shutdown_ms = match config.stdio {
        true => limits.shutdown_ms / 2,
        false => limits.shutdown_ms,
    };
    let limits = ServerLimits {
        shutdown_ms,
        ..limits
    };
    let (hosts, origins) = (config.allowed_hosts.clone(), config.allowed_origins.clone());
    let admission = Admission::new(limits, token, hosts, origins);
    let admission = admission.with_devices(Arc::new(devices));
    let admission = admission.with_page(PageServices::over(bodies.clone()));
    Arc::new(admission.with_embed_limits((&config.limits.kernel).into()))
}

fn start_kernel(
    config: &Config,
    parts: Parts,
    (bodies, clock): (Bodies, Clock),
    admission: &Arc<Admission>,
) -> Result<Supervisor, ServeError> {
    let (journal, boot) = JournalHandle::start(parts.journal)?;
    let limits = config.limits.kernel.clone();
    let (kernel, boot_output) = Kernel::boot(boot, parts.facts, limits, clock.now());
    let (queue, inbox) = mpsc::channel(config.limits.server.inputs_max);
    let coalesce = Duration::from_millis(config.limits.server.stream_coalesce_ms);
    let streams = StreamBatcher::new(coalesce);
    let (roster, journal_handle) = (parts.roster, journal.clone());
    let mut effects = Effects::new(
        queue.clone(),
        journal_handle,
        bodies,
        roster.agents().to_vec(),
        streams,
    );
    let roster = Arc::new(roster);
    start_agents(&roster, queue.clone());
    effects.roster = Some(roster);
    effects.services.staging = Some(parts.staging);
    effects.services.entities = Arc::clone(&config.entities);
    effects.services.documents = Arc::new(DocumentReader::new(config.document_reader.clone()));
    effects.services.calls = (&config.limits.server).into();
    let budget = Budget::open(config, clock);
    let budget = budget.map_err(|error| ServeError::Data {
        path: config.data.clone(),
        message: format!("what was spent of the budget cannot be read: {error}"),
    })?;
    effects.services.budget = Some(budget);
    let task = KernelTask::new(
        kernel,
        clock,
        journal.clone(),
        inbox,
        effects,
        &config.limits.server,
        config.on_log_level.clone(),
    );
    let admission = Arc::clone(admission);
    Supervisor::start(task, boot_output, queue, journal, admission)
}

async fn serve_sockets(
    config: &Config,
    listener: TcpListener,
    admission: Arc<Admission>,
    supervisor: &mut Supervisor,
    on_ready: impl FnOnce(ServerReady),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(|source| ServeError::Listen {
        address: config.listen,
        source,
    })?;
    let url = format!("ws://{}/", reachable_address(address));
    let token = admission.token.clone();
    let endpoint = EndpointRecord {
        url: url.clone(),
        token: token.clone(),
        pid: std::process::id(),
        version: VERSION.to_owned(),
    };
    let _endpoint =
        EndpointFile::write(&config.data, &endpoint).map_err(|error| ServeError::Data {
            path: config.data.clone(),
            message: error.to_string(),
        })?;
    admission.set_ready(true);
    let stop = CancellationToken::new();
    let queue = supervisor.queue();
    let mut listening = tokio::spawn(net::serve(
        listener,
        Arc::clone(&admission),
        queue,
        stop.clone(),
    ));
    let saving = tokio::spawn(save_device_uses(Arc::clone(&admission.devices)));
    on_ready(ServerReady {
        url,
        token,
        version: VERSION,
    });
    tokio::select! {
        () = shutdown => {}
        failure = supervisor.wait_for_failure() => {
            admission.set_ready(false);
            listening.abort();
            saving.abort();
            return Err(failure);
        }
    }
    admission.set_ready(false);
    // Half of the time for turns and the journal, half for readers: five seconds in all by contract.
    let half = Duration::from_millis(config.limits.server.shutdown_ms / 2);
    let stopped = supervisor.stop(half).await;
    stop.cancel();
    if tokio::time::timeout(half, &mut listening).await.is_err() {
        tracing::debug!("some connections did not close in time and are dropped");
    }
    saving.abort();
    save_uses(&admission.devices).await;
    stopped
}

/// How often it is written when devices were used: often enough for people, seldom enough for disks.
const USES_SAVED_EVERY: Duration = Duration::from_secs(60);

async fn save_device_uses(devices: Arc<Devices>) {
    let mut due = tokio::time::interval(USES_SAVED_EVERY);
    due.tick().await; // the first is at once
    loop {
        due.tick().await;
        save_uses(&devices).await;
    }
}

async fn save_uses(devices: &Arc<Devices>) {
    let devices = Arc::clone(devices);
    let saved = tokio::task::spawn_blocking(move || devices.save_uses()).await;
    match saved {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "when devices were last used is not recorded"),
        Err(error) => tracing::warn!(%error, "when devices were last used is not recorded"),
    }
}

/// An address that means "all of them" cannot be connected to: its loopback address can.
fn reachable_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn serve_stdio(
    config: &Config,
    admission: &Admission,
    supervisor: &mut Supervisor,
    on_ready: impl FnOnce(ServerReady),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    on_ready(ServerReady {
        url: "stdio:".to_owned(),
        token: None,
        version: VERSION,
    });
    let stop = CancellationToken::new();
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let queue = supervisor.queue();
    let mut client = std::pin::pin!(net::stdio::serve(
        input,
        output,
        admission,
        queue,
        stop.clone()
    ));
    let half = Duration::from_millis(config.limits.server.shutdown_ms / 2);
    tokio::select! {
        // End of input is a graceful stop (G-31).
        () = &mut client => supervisor.stop(half).await,
        () = shutdown => {
            let stopped = supervisor.stop(half).await;
            stop.cancel();
            client.await;
            stopped
        }
        failure = supervisor.wait_for_failure() => Err(failure),
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
