//! One space at work: its journal, its kernel with a thread of its own, its effects, its agents, and the way in.
//!
//! Agents are a space's own: what they may do without asking, whom they trust and what they spent belong to the people of the
//! space (ADR 0091). What the kernel is told of the host is shared by all spaces that are told the same.
//!
//! Promises: whatever the operator got wrong is an error before anything is served.
//! Must not know: sockets, other spaces.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{HostFacts, Kernel};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use workspace::ResourceFiles;

use crate::accounts::SpaceBounds;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::cluster::{ClusterNode, Tenure};
use crate::config::{Config, JournalChoice};
use crate::credentials;
use crate::devices::Devices;
use crate::document_reader::DocumentReader;
use crate::effects::{Bodies, ClientFileAccess, EffectTools, Effects};
use crate::journal::DirectoryLock;
use crate::kernel_task::KernelTask;
use crate::limits::ServerLimits;
use crate::net::{Admission, TlsIdentity};
use crate::page::PageServices;
use crate::resource_grants::ResourceGrants;
use crate::server::ServeError;
use crate::space_agents::SettingsSource;
use crate::startup::Parts;
use crate::stream_batcher::StreamBatcher;
use crate::supervisor::Supervisor;
use crate::task;
use crate::telemetry::{Telemetry, send_while_running};
use crate::terminals::ShellSettings;

/// A space that is ready to be started.
pub(crate) struct PreparedSpace {
    pub config: Config,
    pub parts: Parts,
    pub admission: Admission,
    bodies: Bodies,
    clock: Clock,
}

/// A space that is served.
pub(crate) struct SpaceHost {
    pub data: PathBuf,
    pub admission: Arc<Admission>,
    pub supervisor: Supervisor,
    /// Telemetry is sent until it is dropped; none: its node does that for all of its spaces.
    _telling: Option<DropGuard>,
    /// Held until everything else here is dropped.
    lock: Option<DirectoryLock>,
}

impl SpaceHost {
    /// Opens what a space lies in; nothing is served yet.
    pub(crate) async fn prepare(
        config: &Config,
        name: &str,
        cluster: Option<&Arc<ClusterNode>>,
    ) -> Result<PreparedSpace, ServeError> {
        let parts = Parts::prepare(config, name, cluster).await?;
        let mut space = PreparedSpace::over(config, parts)?;
        space.admission = space.admission.of_space(name);
        space.read_limits().await;
        Ok(space)
    }

    /// Lets turns end and what has arrived be written, for at most so long.
    pub(crate) async fn stop(&mut self, limit: Duration) -> Result<(), ServeError> {
        self.supervisor.stop(limit).await
    }

    /// Ends a space that this node has lost, or that is not what its journal says: nothing of it runs afterwards, and its
    /// directory is free.
    pub(crate) async fn end_lost(&mut self, limit: Duration) {
        self.admission.set_ready(false);
        if let Some(tenure) = &self.admission.tenure {
            tenure.lose();
        }
        self.supervisor.wait_until_over(limit).await;
        self.supervisor.close_lost_journal().await;
        self.lock = None;
    }

    /// Waits for the journal to write what it was handed, and gives the directory back.
    pub(crate) async fn close(self) -> Result<(), ServeError> {
        self.supervisor.close_journal().await
    }
}

impl PreparedSpace {
    /// The same with parts that are there already.
    pub(crate) fn over(config: &Config, parts: Parts) -> Result<Self, ServeError> {
        let clock = Clock::start();
        let bodies = Bodies::new(Arc::clone(&parts.blobs), clock, &config.limits.kernel)
            .with_confinement(parts.confinement.clone())
            .with_user_directories(config.user_directories());
        let (token, devices) = if config.stdio {
            (None, Devices::in_memory())
        } else {
            (
                credentials::load_or_create_token(&config.token, &config.data)?,
                Devices::open(&config.data)?,
            )
        };
        // Without one of the database it follows from the token of the data directory.
        let secret = parts.address_secret.clone().or_else(|| token.clone());
        let page = PageServices::over(bodies.clone(), secret.as_deref())
            .map_err(|error| ServeError::Data {
                path: config.data.clone(),
                message: format!("the system gives no random bytes: {error}"),
            })?
            .with_agents(parts.agents.clone());
        let mut admission = create_admission(config, token, devices, page)?;
        admission.tenure = parts.tenure.clone();
        admission.bounds = parts.bounds.clone();
        Ok(Self { config: config.clone(), parts, admission, bodies, clock })
    }

    /// What an operator allows the space in memory counts from its start on.
    pub(crate) async fn read_limits(&mut self) {
        if let Some(bounds) = &self.parts.bounds {
            let limits = &mut self.config.limits.server;
            limits.space_loaded_bytes_max = bounds.loaded_bytes().await;
        }
    }

    /// The facts for the kernel are shared with other spaces that get the same.
    pub(crate) fn share_facts(&mut self, known: &mut Vec<Arc<HostFacts>>) {
        match known.iter().find(|known| **known == self.parts.facts) {
            Some(same) => self.parts.facts = Arc::clone(same),
            None => known.push(Arc::clone(&self.parts.facts)),
        }
    }

    /// Starts its kernel, and its telemetry.
    pub(crate) fn start(self) -> Result<SpaceHost, ServeError> {
        self.start_with(|config, admission, supervisor| {
            let telling = CancellationToken::new();
            task::spawn(send_while_running(
                Arc::clone(admission),
                supervisor.queue(),
                config.otlp_endpoint.clone(),
                config.spaces.is_empty(),
                telling.clone(),
            ));
            Some(telling.drop_guard())
        })
    }

    /// Starts its kernel; its node has telemetry for all spaces together.
    pub(crate) fn start_untold(self) -> Result<SpaceHost, ServeError> {
        self.start_with(|_, _, _| None)
    }

    fn start_with(
        self,
        tell: impl FnOnce(&Config, &Arc<Admission>, &Supervisor) -> Option<DropGuard>,
    ) -> Result<SpaceHost, ServeError> {
        let Self { config, mut parts, admission, bodies, clock } = self;
        let lock = parts.lock.take();
        let admission = Arc::new(admission);
        let supervisor = start_kernel(&config, parts, bodies, clock, &admission)?;
        Ok(SpaceHost {
            _telling: tell(&config, &admission, &supervisor),
            data: config.data,
            admission,
            supervisor,
            lock,
        })
    }
}

fn create_admission(
    config: &Config,
    token: Option<String>,
    devices: Devices,
    mut page: PageServices,
) -> Result<Admission, ServeError> {
    let limits = config.limits.server.clone();
    // On standard output the reader is flushed inside of the half that the kernel leaves.
    let shutdown_ms = if config.stdio { limits.shutdown_ms / 2 } else { limits.shutdown_ms };
    let limits = ServerLimits { shutdown_ms, ..limits };
    let (hosts, origins) = (config.allowed_hosts.clone(), config.allowed_origins.clone());
    if config.journal == JournalChoice::Sqlite {
        page = page.with_prompts(config.data.clone(), &config.restricted_sections);
    }
    let limits = config.shared.server_limits(limits);
    let mut admission = Admission::new(limits, token, hosts, origins)
        .with_devices(Arc::new(devices))
        .with_page(page);
    if let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) {
        admission = admission.with_tls(TlsIdentity::load(cert, key)?);
    }
    Ok(admission.with_embed_limits((&config.limits.kernel).into()))
}

fn start_kernel(
    config: &Config,
    parts: Parts,
    bodies: Bodies,
    clock: Clock,
    admission: &Arc<Admission>,
) -> Result<Supervisor, ServeError> {
    let tenure = parts.tenure;
    let (journal, boot) = parts.journal.start()?;
    let mut limits = config.limits.kernel.clone();
    // Where one of many spaces must not take what others need.
    if config.journal == JournalChoice::Postgres && limits.loaded_bytes_max == 0 {
        limits.loaded_bytes_max = config.limits.server.space_loaded_bytes_max;
    }
    let limits = config.shared.kernel_limits(limits);
    let (mut kernel, boot_output) = Kernel::boot(boot, parts.facts, limits, clock.now())?;
    config.shared.share_root(&mut kernel);
    let (queue, inbox) = mpsc::channel(config.limits.server.inputs_max);
    let coalesce = Duration::from_millis(config.limits.server.stream_coalesce_ms);
    let streams = StreamBatcher::new(coalesce);
    let (agents, journal_handle) = (parts.agents, journal.clone());
    agents.start(queue.clone());
    let budget = Budget::open(config, clock);
    let budget = budget.map_err(|error| ServeError::Data {
        path: config.data.clone(),
        message: format!("what was spent of the budget cannot be read: {error}"),
    })?;
    let telemetry = Arc::clone(&admission.telemetry);
    let tools = ToolParts {
        settings: parts.settings,
        staging: parts.staging,
        budget,
        tenure: tenure.clone(),
        bounds: admission.bounds.clone(),
        telemetry: Arc::clone(&telemetry),
    };
    let make_tools = Box::new(move |arrivals: &_, journal: &_, bodies: &_| {
        tools.complete(EffectTools::new(arrivals, journal, bodies))
    });
    let arrivals = queue.clone();
    let mut effects = Effects::new(arrivals, journal_handle, bodies, agents, streams, make_tools);
    effects.telemetry = Some(telemetry);
    let task = KernelTask::new(
        kernel,
        clock,
        journal.clone(),
        inbox,
        effects,
        &config.limits.server,
        config.on_log_level.clone(),
    )
    .under(tenure);
    let admission = Arc::clone(admission);
    Supervisor::start(task, boot_output, queue, journal, admission)
}

/// What the tools of effects are completed with.
struct ToolParts {
    settings: SettingsSource,
    staging: PathBuf,
    budget: Arc<Budget>,
    tenure: Option<Tenure>,
    bounds: Option<Arc<SpaceBounds>>,
    telemetry: Arc<Telemetry>,
}

impl ToolParts {
    fn complete(&self, mut tools: EffectTools) -> EffectTools {
        let services = &mut tools.services;
        services.staging = Some(self.staging.clone());
        services.budget = Some(Arc::clone(&self.budget));
        services.tenure = self.tenure.clone();
        services.bounds = self.bounds.clone();
        services.telemetry = Some(Arc::clone(&self.telemetry));
        let config = match self.settings.get() {
            Ok(config) => config,
            Err(error) => {
                // The space is about to end; nothing that it still does needs its own settings.
                tracing::debug!(%error, "effects of a space that ends have no settings");
                return tools;
            }
        };
        services.terminals.set_settings(ShellSettings::of(&config));
        services.entities = Arc::clone(&config.entities);
        services.documents = Arc::new(DocumentReader::new(config.document_reader.clone()));
        services.calls = (&config.limits.server).into();
        let files = ResourceFiles::new(services.bodies.confinement().clone());
        tools.files = ClientFileAccess::new(files, Some(ResourceGrants::new(&config)));
        tools.worktree_dir = config.worktree_dir.clone();
        tools
    }
}
