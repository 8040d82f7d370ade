//! What a host needs before it serves, made from its configuration: workspace roots, agents, facts for the kernel, stores.
//!
//! Promises: whatever the operator got wrong is an error that names the setting; nothing is listening yet.
//! Must not know: connections, the loop.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::Agent;
use agents::acp::AcpAgent;
use agents::{McpSettings, NativeAgent, Script, ScriptedAgent};
use compositor::lower::CapabilityMap;
use kernel::{Boot, HostFacts};
use serde_json::json;
use workspace::Confinement;

use crate::accounts::{SpaceBounds, SpaceLimits};
use crate::acp_agents::OfferedAgent;
use crate::blobs::{Blobs, FileBlobs, MemoryBlobs, ObjectBodies};
use crate::cluster::{ClusterNode, HeldJournal, Tenure};
use crate::config::{Config, JournalChoice, TokenChoice};
use crate::journal::{
    DirectoryLock, Journal, JournalError, JournalHandle, Memory, PostgresNode, PostgresSettings,
    SpaceCounters, Sqlite,
};
use crate::migrate::MovedDirectory;
use crate::model_facts_file::load_facts;
use crate::models::AgentRoster;
use crate::net::{TlsError, TlsIdentity};
use crate::server::{ServeError, VERSION};
use crate::space_agents::{SettingsSource, SpaceAgents};

/// What the loop is started with.
pub(crate) struct Parts {
    pub agents: SpaceAgents,
    /// Its settings, for what is made later.
    pub settings: SettingsSource,
    pub facts: Arc<HostFacts>,
    /// Where sessions may work.
    pub confinement: Confinement,
    /// Where copies of attachments are made for tools.
    pub staging: PathBuf,
    pub journal: OpenedJournal,
    pub blobs: Arc<dyn Blobs>,
    /// The data directory's, where the journal does not hold it.
    pub lock: Option<DirectoryLock>,
    /// Whether this node may still serve the space, where another could.
    pub tenure: Option<Tenure>,
    /// What addresses of content are signed with, where other nodes check them too.
    pub address_secret: Option<String>,
    /// What the space may take, where its database says so.
    pub bounds: Option<Arc<SpaceBounds>>,
}

/// The journal of a space: on this machine, or one that is booted already.
pub(crate) enum OpenedJournal {
    Local(Box<dyn Journal>),
    Elsewhere(JournalHandle, Boot),
}

impl OpenedJournal {
    pub(crate) fn start(self) -> Result<(JournalHandle, Boot), JournalError> {
        match self {
            Self::Local(journal) => JournalHandle::start(journal),
            Self::Elsewhere(journal, boot) => Ok((journal, boot)),
        }
    }
}

/// This process as a node on its database, if it has one.
pub(crate) async fn join_cluster(config: &Config) -> Result<Option<Arc<ClusterNode>>, ServeError> {
    let Some(url) = &config.postgres else { return Ok(None) };
    let failover = config.cluster.as_ref().map(|it| it.failover).unwrap_or_default();
    let settings = PostgresSettings {
        url: url.clone(),
        journal_patience_ms: config.limits.server.journal_patience_ms,
        failover: failover.into(),
    };
    let database = PostgresNode::connect(&settings).await?;
    if let Some(blobs) = &config.blobs {
        let objects =
            ObjectBodies::open(blobs).map_err(|error| ServeError::Spaces(error.to_string()))?;
        database.set_objects(Arc::new(objects));
    }
    Ok(Some(ClusterNode::join(config, database).await?))
}

impl Parts {
    /// Makes all of them from the configuration and takes the lock of the data directory. The journal of a space is found in the
    /// database by the name of the space.
    pub(crate) async fn prepare(
        config: &Config,
        name: &str,
        cluster: Option<&Arc<ClusterNode>>,
    ) -> Result<Self, ServeError> {
        make_data_directories(config)?;
        // Before everything else in the directory: its lock shows that no other process uses it.
        let OpenedStores { stores, lock, tenure, counters } =
            open_stores(config, name, cluster).await?;
        let parts = Self::assemble(config, stores, lock)?;
        let name = config.name_in_database(name);
        let address_secret = cluster.map(|node| node.database().address_secret(&name));
        let bounds = cluster.zip(counters).map(|(node, counters)| {
            let limits = &config.limits.server;
            let database = Arc::clone(node.database());
            SpaceBounds::new(database, name, SpaceLimits::from(limits), counters)
                .with_append_slow_ms(limits.append_slow_ms)
        });
        Ok(Self { tenure, address_secret, bounds: bounds.map(Arc::new), ..parts })
    }

    /// Makes the rest of them, in a directory that nobody else uses.
    pub(crate) fn assemble(
        config: &Config,
        stores: Stores,
        lock: Option<DirectoryLock>,
    ) -> Result<Self, ServeError> {
        make_data_directories(config)?;
        let roots = resolve_roots(config)?;
        let data_problem = |error: std::io::Error| ServeError::Data {
            path: config.data.clone(),
            message: error.to_string(),
        };
        let mut confinement = Confinement::within(&roots).map_err(data_problem)?;
        for data in config.data_directories() {
            let hidden = confinement.hiding(data);
            confinement = hidden.map_err(|error: std::io::Error| ServeError::Data {
                path: data.to_owned(),
                message: error.to_string(),
            })?;
        }
        let roster = create_agents(config, &confinement)?;
        let facts = collect_host_facts(config, &roster, &roots)?;
        Ok(Self {
            agents: SpaceAgents::of(roster),
            settings: SettingsSource::of(config),
            facts: Arc::new(facts),
            confinement,
            staging: make_staging_directory(&config.data).map_err(data_problem)?,
            journal: stores.journal,
            blobs: stores.blobs,
            lock,
            tenure: None,
            address_secret: None,
            bounds: None,
        })
    }
}

fn make_data_directories(config: &Config) -> Result<(), ServeError> {
    for data in config.data_directories() {
        make_private_directory(data).map_err(|error| ServeError::Data {
            path: data.to_owned(),
            message: error.to_string(),
        })?;
    }
    Ok(())
}

/// Copies of before are removed: turns make again what they need, and sessions that are gone need none.
fn make_staging_directory(data: &Path) -> std::io::Result<PathBuf> {
    let staging = data.join("staged");
    match std::fs::remove_dir_all(&staging) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    make_private_directory(&staging)?;
    std::path::absolute(staging)
}

/// What targets and models accept: what is built in, and the operator's file over it.
fn load_capabilities(config: &Config) -> Result<Arc<CapabilityMap>, ServeError> {
    let Some(path) = &config.capabilities else { return Ok(CapabilityMap::shared_built_in()) };
    let bad = |message: String| ServeError::Capabilities(format!("{}: {message}", path.display()));
    config.shared.capabilities(path, |path| {
        let text = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
        let over = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        CapabilityMap::built_in().with(&over).map_err(|error| bad(error.to_string()))
    })
}

pub(crate) fn create_agents(
    config: &Config,
    confinement: &Confinement,
) -> Result<AgentRoster, ServeError> {
    let wrong = |error: agents::native::ModelError| ServeError::Model(error.to_string());
    let models = config.ordered_models();
    for model in models.iter().filter(|model| model.is_of_environment) {
        let variable = model.key_env.as_deref().unwrap_or_default();
        let server = model.endpoint().map_err(wrong)?.authority();
        tracing::info!(model = %model.id, variable, server, "no model is configured: this one is offered because its key is in the environment");
    }
    let native =
        NativeAgent::new(Vec::new()).map_err(wrong)?.sharing_models(config.shared.models());
    let reported = load_facts(&config.data);
    native.configure_models(models, reported).map_err(wrong)?;
    let mcp = Arc::new(McpSettings {
        entries: config.mcp.clone(),
        settings_file: config.file_path(),
        data: config.data.clone(),
        user: config.user_directories(),
        confinement: confinement.clone(),
        trust: Arc::new(config.trust_store()),
    });
    let native = native
        .with_confinement(confinement.clone())
        .with_tool_settings(config.tool_settings())
        .with_rules(&config.data)
        .with_user_directories(config.user_directories())
        .with_mcp(Arc::clone(&mcp))
        .with_compaction(config.compaction())
        .with_title_model(config.title_model.clone())
        .with_capabilities(load_capabilities(config)?);
    let native = Arc::new(native);
    let acp = create_acp_agents(config, &mcp)?;
    let mut agents: Vec<Arc<dyn Agent>> = vec![Arc::clone(&native) as Arc<dyn Agent>];
    agents.extend(acp.iter().map(|agent| Arc::clone(agent) as Arc<dyn Agent>));
    if !config.scripted {
        if !native.has_models() && acp.is_empty() {
            tracing::warn!(
                "no model is configured: no session can be created until one is added with `greenroom models add`"
            );
        }
        return Ok(AgentRoster::new(config, native, agents));
    }
    let scripted = match &config.script {
        None => ScriptedAgent::builtin(),
        Some(path) => {
            let script = config.shared.script(path, Script::load);
            ScriptedAgent::new(script.map_err(|error| ServeError::Script(error.to_string()))?)
        }
    };
    agents.push(Arc::new(scripted.with_confinement(confinement.clone())));
    Ok(AgentRoster::new(config, native, agents))
}

/// The external agents, in the order in which they are listed (AG-2). No process is started.
fn create_acp_agents(
    config: &Config,
    mcp: &Arc<McpSettings>,
) -> Result<Vec<Arc<AcpAgent>>, ServeError> {
    let offered = config.offered_agents().map_err(|error| ServeError::Agent(error.to_string()))?;
    let trust = Arc::new(config.trust_store());
    let agents = offered.into_iter().map(|offered| {
        let OfferedAgent { config: agent, is_configured } = offered;
        if !is_configured {
            tracing::info!(agent = %agent.id, "agent offered because its command is installed");
        }
        let agent = AcpAgent::new(agent, &config.data, Arc::clone(&trust));
        Arc::new(agent.with_mcp(Arc::clone(mcp)))
    });
    Ok(agents.collect())
}

/// Directories that working directories must lie in, without links, the default one first.
pub(crate) fn resolve_roots(config: &Config) -> Result<Vec<PathBuf>, ServeError> {
    let mut paths = Vec::new();
    let mut roots = config.root_names();
    if let Some(place) = &config.worktree_dir {
        let made = std::fs::create_dir_all(place);
        made.map_err(|error| ServeError::Workspace {
            path: place.clone(),
            message: error.to_string(),
        })?;
        roots.push(place.clone());
    }
    for root in &roots {
        let problem = |message: String| ServeError::Workspace { path: root.clone(), message };
        let real = std::fs::canonicalize(root).map_err(|error| problem(error.to_string()))?;
        if !paths.contains(&real) {
            paths.push(real);
        }
    }
    Ok(paths)
}

fn collect_host_facts(
    config: &Config,
    roster: &AgentRoster,
    roots: &[PathBuf],
) -> Result<HostFacts, ServeError> {
    let agents = roster.facts();
    let listed: BTreeSet<String> =
        agents.iter().flat_map(|agent| &agent.sections).map(|section| section.id.clone()).collect();
    // A misspelt name would leave a section readable that the operator wanted restricted.
    let mut restricted_ids = config.restricted_sections.iter();
    if let Some(unknown) = restricted_ids.find(|id| !listed.contains(*id)) {
        return Err(ServeError::Section {
            id: unknown.clone(),
            known: listed.into_iter().collect::<Vec<_>>().join(", "),
        });
    }
    Ok(HostFacts {
        agents,
        default_directory: roots
            .first()
            .map(|root| wire::file_uri::uri_of(root.as_os_str().as_bytes())),
        version: VERSION.to_owned(),
        config_schema: json!({"type": "object", "properties": {"logLevel": {
            "type": "string",
            "title": "Log level",
            "description": "How much the host writes to its log.",
            "enum": ["error", "warn", "info", "debug"],
            "default": "info",
        }}}),
        config_values: [("logLevel".to_owned(), json!("info"))].into_iter().collect(),
        clients_have_token: config.token != TokenChoice::None,
    })
}

/// Storage of a space.
pub(crate) struct Stores {
    pub journal: OpenedJournal,
    pub blobs: Arc<dyn Blobs>,
}

/// What a space is stored in, and by what right.
struct OpenedStores {
    stores: Stores,
    /// That of the data directory if it is not the journal that holds it.
    lock: Option<DirectoryLock>,
    tenure: Option<Tenure>,
    /// Those of a journal in a database.
    counters: Option<Arc<SpaceCounters>>,
}

async fn open_stores(
    config: &Config,
    name: &str,
    cluster: Option<&Arc<ClusterNode>>,
) -> Result<OpenedStores, ServeError> {
    let data = &config.data;
    let mut counters = None;
    let (stores, lock, tenure) = match (config.journal, cluster) {
        (JournalChoice::Sqlite, _) => {
            check_not_moved(data)?;
            let journal = Box::new(Sqlite::open(data)?);
            let blobs = Arc::new(FileBlobs::open(data)?);
            (Stores { journal: OpenedJournal::Local(journal), blobs }, None, None)
        }
        // Nothing is stored, but clients find the host by its endpoint file, and there is one for one host.
        (JournalChoice::Memory, _) => {
            let lock = DirectoryLock::take(data)?;
            let journal = Box::new(Memory::new());
            let blobs = Arc::new(MemoryBlobs::new());
            (Stores { journal: OpenedJournal::Local(journal), blobs }, Some(lock), None)
        }
        (JournalChoice::Postgres, Some(node)) => {
            let lock =
                if node.has_directory(data) { None } else { Some(DirectoryLock::take(data)?) };
            let held = node.hold(&config.name_in_database(name)).await?;
            let HeldJournal { journal, boot, tenure } = held;
            let blobs = Arc::new(journal.blobs());
            counters = Some(journal.counters());
            let journal = JournalHandle::over(Arc::new(journal));
            let journal = OpenedJournal::Elsewhere(journal, boot);
            (Stores { journal, blobs }, lock, Some(tenure))
        }
        (JournalChoice::Postgres, None) => {
            let text = "journal = \"postgres\" needs `postgres`, the address of the database";
            return Err(ServeError::Spaces(text.to_owned()));
        }
    };
    Ok(OpenedStores { stores, lock, tenure, counters })
}

/// What was carried into a database goes on there.
fn check_not_moved(data: &Path) -> Result<(), ServeError> {
    let problem = |message: String| ServeError::Data { path: data.to_owned(), message };
    let why = MovedDirectory::why_not_served(data).map_err(|error| problem(error.to_string()))?;
    why.map_or(Ok(()), |why| Err(problem(why)))
}

pub(crate) fn make_private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether a host could start with these settings, as far as that can be said without its data directory.
pub fn check_config(config: &Config) -> Result<(), ServeError> {
    let roots = resolve_roots(config)?;
    let confinement = Confinement::within(&roots).map_err(|error| ServeError::Workspace {
        path: roots.first().cloned().unwrap_or_default(),
        message: error.to_string(),
    })?;
    let agents = create_agents(config, &confinement)?;
    collect_host_facts(config, &agents, &roots)?;
    check_certificate(config)?;
    Ok(())
}

/// Whether the certificate and the key that the settings name, if they name any, can be used.
pub fn check_certificate(config: &Config) -> Result<(), TlsError> {
    match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => TlsIdentity::load(cert, key).map(drop),
        _ => Ok(()),
    }
}
