//! The whole public API: start a host, serve until told to stop, leave nothing behind.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_api::Agent;
use agents::{NativeAgent, Script, ScriptedAgent};
use compositor::lower::CapabilityMap;
use kernel::{AgentFacts, HostFacts, Input, Kernel};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::ext::system_message_transform::SystemMessageSection;

use crate::arrival::{Arrival, Arrivals};
use crate::blobs::{BlobError, Blobs, FileBlobs, MemoryBlobs};
use crate::clock::Clock;
use crate::config::{Config, JournalChoice, Limits, Model, TokenChoice};
use crate::effects::{Bodies, Effects};
use crate::journal::{Journal, JournalError, JournalThread, Memory, Sqlite};
use crate::kernel_task::KernelTask;
use crate::net;
use crate::secret::{self, Endpoint, EndpointFile};

/// The version of this host, as clients and operators see it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Told once, when connections are accepted.
#[derive(Debug, Clone)]
pub struct Ready {
    pub url: String,
    pub token: Option<String>,
    pub version: &'static str,
}

/// Why a host could not start or go on; the operator hears it.
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
    #[error("{0}")]
    Model(String),
    #[error("{0}")]
    Script(String),
    #[error("capabilities: {0}")]
    Capabilities(String),
    #[error("restricted_sections: no agent has a section `{id}`; there are: {known}")]
    Section { id: String, known: String },
    #[error("workspace {path}: {message}")]
    Workspace { path: PathBuf, message: String },
}

/// Runs a host until `shutdown` resolves: then turns end, readers are flushed, the journal is closed.
pub async fn serve(
    config: Config,
    on_ready: impl FnOnce(Ready),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    if config.token == TokenChoice::None && !config.stdio && !config.listen.ip().is_loopback() {
        return Err(ServeError::TokenNeeded(config.listen));
    }
    let roots = roots_of(&config)?;
    let staging = make_staging(&config)?;
    let agents = agents_of(&config, &roots, &staging)?;
    let facts = facts_of(&config, &agents, roots)?;
    let journal = open_journal(&config)?;
    let blobs = open_blobs(&config)?;
    let token = if config.stdio {
        None
    } else {
        secret::token(&config.token, &config.data)?
    };
    let listener = if config.stdio {
        None
    } else {
        let listener = TcpListener::bind(config.listen).await;
        Some(listener.map_err(|source| ServeError::Listen {
            address: config.listen,
            source,
        })?)
    };
    let clock = Clock::start();
    let bodies = Bodies::new(blobs, clock, &config.limits);
    let (journal, boot) = JournalThread::start(journal)?;
    let (kernel, first) = Kernel::boot(boot, facts, config.limits.clone(), clock.now());
    let (arrivals, inbox) = mpsc::channel(config.limits.inputs_max);
    let mut effects = Effects::new(arrivals.clone(), journal.clone(), bodies, agents);
    effects.services.staging = Some(staging);
    effects.services.entities = Arc::clone(&config.entities);
    let hook = config.on_log_level.clone();
    let mut task = KernelTask::new(
        kernel,
        clock,
        journal.clone(),
        inbox,
        effects,
        config.limits.batch_inputs_max,
        hook,
    );
    let mut shutdown = std::pin::pin!(shutdown);
    tokio::select! {
        () = task.settle(first) => {}
        () = &mut shutdown => {
            journal.close();
            return Ok(());
        }
    }
    let stop = CancellationToken::new();
    let running = Running {
        task: tokio::spawn(task.run(stop.clone())),
        arrivals,
        stop,
    };
    let served = match listener {
        Some(listener) => {
            serve_sockets(&config, listener, token, running, on_ready, shutdown).await
        }
        None => {
            serve_stdio(&config, running, on_ready, shutdown).await;
            Ok(())
        }
    };
    journal.close();
    served
}

/// A kernel at work.
struct Running {
    task: tokio::task::JoinHandle<()>,
    arrivals: Arrivals,
    stop: CancellationToken,
}

impl Running {
    /// Turns end as resumable errors; what has arrived is still written and spoken; then the kernel rests.
    async fn stop(self, patience: Duration) {
        let stopped = async {
            let told = self.arrivals.send(Arrival::Input(Input::Stopping)).await;
            self.stop.cancel();
            (told, self.task.await)
        };
        match tokio::time::timeout(patience, stopped).await {
            Ok((_, Ok(()))) => {}
            Ok((_, Err(error))) => tracing::error!(%error, "the kernel's task died"),
            Err(_) => tracing::warn!("the kernel did not come to rest in time"),
        }
    }
}

async fn serve_sockets(
    config: &Config,
    listener: TcpListener,
    token: Option<String>,
    running: Running,
    on_ready: impl FnOnce(Ready),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(|source| ServeError::Listen {
        address: config.listen,
        source,
    })?;
    // An address that means "all of them" is no address to connect to.
    let reachable = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let url = format!("ws://{}/", SocketAddr::new(reachable, address.port()));
    let door = door_of(config, token.clone(), config.limits.shutdown_ms);
    let endpoint = Endpoint {
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
    door.set_ready(true);
    let accepting = CancellationToken::new();
    let arrivals = running.arrivals.clone();
    let listening = tokio::spawn(net::serve(
        listener,
        Arc::clone(&door),
        arrivals,
        accepting.clone(),
    ));
    on_ready(Ready {
        url,
        token,
        version: VERSION,
    });
    shutdown.await;
    door.set_ready(false);
    // Half of the time for turns and the journal, half for readers: five seconds in all by contract.
    let patience = Duration::from_millis(config.limits.shutdown_ms / 2);
    running.stop(patience).await;
    accepting.cancel();
    if tokio::time::timeout(patience, listening).await.is_err() {
        tracing::debug!("some connections did not close in time");
    }
    Ok(())
}

async fn serve_stdio(
    config: &Config,
    running: Running,
    on_ready: impl FnOnce(Ready),
    shutdown: impl Future<Output = ()>,
) {
    on_ready(Ready {
        url: "stdio:".to_owned(),
        token: None,
        version: VERSION,
    });
    let door = door_of(config, None, config.limits.shutdown_ms / 2);
    let stop = CancellationToken::new();
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let mut client = std::pin::pin!(net::stdio::serve(
        input,
        output,
        &door,
        running.arrivals.clone(),
        stop.clone()
    ));
    let patience = Duration::from_millis(config.limits.shutdown_ms / 2);
    tokio::select! {
        // End of input is a graceful stop (G-31).
        () = &mut client => running.stop(patience).await,
        () = shutdown => {
            running.stop(patience).await;
            stop.cancel();
            client.await;
        }
    }
}

fn door_of(config: &Config, token: Option<String>, shutdown_ms: u64) -> Arc<net::Door> {
    let limits = Limits {
        shutdown_ms,
        ..config.limits.clone()
    };
    let (hosts, origins) = (config.allowed_hosts.clone(), config.allowed_origins.clone());
    Arc::new(net::Door::new(limits, token, hosts, origins))
}

/// Where copies of attachments are made for tools.
fn make_staging(config: &Config) -> Result<PathBuf, ServeError> {
    let problem = |error: std::io::Error| ServeError::Data {
        path: config.data.clone(),
        message: error.to_string(),
    };
    let staging = config.data.join("staged");
    make_private_dir(&staging).map_err(problem)?;
    std::path::absolute(staging).map_err(problem)
}

/// What targets and models take.
fn capabilities_of(config: &Config) -> Result<CapabilityMap, ServeError> {
    let built_in = CapabilityMap::built_in();
    let Some(path) = &config.capabilities else {
        return Ok(built_in);
    };
    let bad = |message: String| ServeError::Capabilities(format!("{}: {message}", path.display()));
    let text = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    let over = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
    built_in.with(&over).map_err(|error| bad(error.to_string()))
}

fn agents_of(
    config: &Config,
    roots: &[String],
    staging: &Path,
) -> Result<Vec<Arc<dyn Agent>>, ServeError> {
    let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    let mut agents: Vec<Arc<dyn Agent>> = Vec::new();
    if !config.models.is_empty() {
        hide_environment(&config.models);
        let native = NativeAgent::new(config.models.clone());
        let native = native.map_err(|error| ServeError::Model(error.to_string()))?;
        let native = native
            .with_roots(roots.clone())
            .with_readable_directory(staging.to_owned())
            .with_capabilities(capabilities_of(config)?);
        agents.push(Arc::new(native));
    }
    if !config.scripted {
        if agents.is_empty() {
            tracing::warn!("there is no agent: sessions can be read, but none can be created");
        }
        return Ok(agents);
    }
    let scripted = match &config.script {
        None => ScriptedAgent::builtin(),
        Some(path) => {
            let script = Script::load(path);
            ScriptedAgent::new(script.map_err(|error| ServeError::Script(error.to_string()))?)
        }
    };
    agents.push(Arc::new(scripted.with_roots(roots)));
    Ok(agents)
}

/// Commands that an agent runs are the same user's: without this they could read the host's environment, and the keys of
/// models in it, from `/proc`.
fn hide_environment(models: &[Model]) {
    if models.iter().all(|model| model.key_env.is_none()) {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "commands can read the keys of models from the host's environment");
    }
}

/// Directories that working directories must lie in, the default one first.
fn roots_of(config: &Config) -> Result<Vec<String>, ServeError> {
    let mut roots = config.workspaces.clone();
    if roots.is_empty() {
        roots.push(PathBuf::from("."));
        // A home that does not exist is no reason not to serve.
        roots.extend(
            std::env::var_os("HOME")
                .map(PathBuf::from)
                .filter(|home| home.is_dir()),
        );
    }
    let mut paths = Vec::new();
    for root in &roots {
        let problem = |message: String| ServeError::Workspace {
            path: root.clone(),
            message,
        };
        let real = std::fs::canonicalize(root).map_err(|error| problem(error.to_string()))?;
        // As it really is, and as the user spells it: a home may be reached through a link.
        let spelled = std::path::absolute(root).map_err(|error| problem(error.to_string()))?;
        for path in [real, spelled] {
            let text = path
                .to_str()
                .ok_or_else(|| problem("is not valid UTF-8".to_owned()))?;
            let text = text.trim_end_matches("/.").to_owned();
            if !paths.contains(&text) {
                paths.push(text);
            }
        }
    }
    Ok(paths)
}

fn facts_of(
    config: &Config,
    agents: &[Arc<dyn Agent>],
    roots: Vec<String>,
) -> Result<HostFacts, ServeError> {
    let listed = agents.iter().flat_map(|agent| agent.info().sections);
    let listed: BTreeSet<String> = listed.map(|section| section.id).collect();
    // A name that is misspelt would leave open what was to be closed.
    let mut restricted_ids = config.restricted_sections.iter();
    if let Some(unknown) = restricted_ids.find(|id| !agents.is_empty() && !listed.contains(*id)) {
        return Err(ServeError::Section {
            id: unknown.clone(),
            known: listed.into_iter().collect::<Vec<_>>().join(", "),
        });
    }
    let facts = agents
        .iter()
        .map(|agent| (agent.info(), agent.needs_history()))
        .map(|(info, needs_history)| AgentFacts {
            provider: info.provider.clone(),
            info: info.to_wire(),
            config_schema: info.config_schema,
            default_model: info.default_model,
            needs_history,
            sections: restricted(info.sections, &config.restricted_sections),
        });
    Ok(HostFacts {
        agents: facts.collect(),
        default_directory: roots.first().map(wire::file_uri::uri_of),
        roots,
        version: VERSION.to_owned(),
        config_schema: json!({"type": "object", "properties": {"logLevel": {
            "type": "string",
            "title": "Log level",
            "description": "How much the host writes to its log.",
            "enum": ["error", "warn", "info", "debug"],
            "default": "info",
        }}}),
        config_values: [("logLevel".to_owned(), json!("info"))]
            .into_iter()
            .collect(),
    })
}

/// The catalogue as it is published: what the operator restricts never leaves the host.
fn restricted(
    mut sections: Vec<SystemMessageSection>,
    ids: &[String],
) -> Vec<SystemMessageSection> {
    for section in &mut sections {
        section.restricted = ids.contains(&section.id).then_some(true);
    }
    sections
}

fn open_journal(config: &Config) -> Result<Box<dyn Journal>, ServeError> {
    make_private_dir(&config.data).map_err(|error| ServeError::Data {
        path: config.data.clone(),
        message: error.to_string(),
    })?;
    Ok(match config.journal {
        JournalChoice::Sqlite => Box::new(Sqlite::open(&config.data)?),
        JournalChoice::Memory => Box::new(Memory::new()),
    })
}

/// Opened after the journal: its lock says that nobody else has the directory.
fn open_blobs(config: &Config) -> Result<Arc<dyn Blobs>, ServeError> {
    Ok(match config.journal {
        JournalChoice::Sqlite => Arc::new(FileBlobs::open(&config.data)?),
        JournalChoice::Memory => Arc::new(MemoryBlobs::new()),
    })
}

fn make_private_dir(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Whether a model answers: its server is there, takes the key, and knows it.
pub async fn ask_for(model: &Model) -> Result<(), String> {
    let endpoint = model.endpoint().map_err(|error| error.to_string())?;
    let names = agents::provider::list_models(&endpoint)
        .await
        .map_err(|error| error.to_string())?;
    let name = model.server_name();
    // Some servers list a name with a tag that they do not ask for.
    let known = names
        .iter()
        .any(|known| known == name || known.strip_suffix(":latest") == Some(name));
    match known {
        true => Ok(()),
        false => Err(format!(
            "the server has no model `{name}`; it has: {}",
            names.join(", ")
        )),
    }
}
