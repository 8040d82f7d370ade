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
use kernel::HostFacts;
use serde_json::json;
use workspace::Confinement;

use crate::acp_agents::OfferedAgent;
use crate::blobs::{Blobs, FileBlobs, MemoryBlobs};
use crate::config::{Config, JournalChoice, TokenChoice};
use crate::journal::{DirectoryLock, Journal, Memory, Sqlite};
use crate::models::AgentRoster;
use crate::server::{ServeError, VERSION};
use crate::told_models::load_facts;

/// What the loop is started with.
pub(crate) struct Parts {
    pub roster: AgentRoster,
    pub facts: HostFacts,
    /// Where sessions may work.
    pub confinement: Confinement,
    /// Where copies of attachments are made for tools.
    pub staging: PathBuf,
    pub journal: Box<dyn Journal>,
    pub blobs: Arc<dyn Blobs>,
    /// The data directory's, where the journal does not hold it.
    pub lock: Option<DirectoryLock>,
}

impl Parts {
    /// Makes all of them from the configuration and takes the lock of the data directory.
    pub(crate) fn prepare(config: &Config) -> Result<Self, ServeError> {
        let roots = resolve_roots(config)?;
        let data_problem = |error: std::io::Error| ServeError::Data {
            path: config.data.clone(),
            message: error.to_string(),
        };
        make_private_directory(&config.data).map_err(data_problem)?;
        let confinement = Confinement::within(&roots).and_then(|all| all.hiding(&config.data));
        let confinement = confinement.map_err(data_problem)?;
        let roster = create_agents(config, &confinement)?;
        let facts = collect_host_facts(config, &roster, &roots)?;
        // Before everything else in the directory: its lock shows that no other process uses it.
        let (journal, lock) = open_journal(config)?;
        Ok(Self {
            roster,
            facts,
            confinement,
            staging: make_staging_directory(&config.data).map_err(data_problem)?,
            journal,
            blobs: open_blobs(config)?,
            lock,
        })
    }
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
fn load_capabilities(config: &Config) -> Result<CapabilityMap, ServeError> {
    let built_in = CapabilityMap::built_in();
    let Some(path) = &config.capabilities else {
        return Ok(built_in);
    };
    let bad = |message: String| ServeError::Capabilities(format!("{}: {message}", path.display()));
    let text = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    let over = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
    built_in.with(&over).map_err(|error| bad(error.to_string()))
}

fn create_agents(config: &Config, confinement: &Confinement) -> Result<AgentRoster, ServeError> {
    let wrong = |error: agents::native::ModelError| ServeError::Model(error.to_string());
    let models = config.ordered_models();
    for model in models.iter().filter(|model| model.is_of_environment) {
        let variable = model.key_env.as_deref().unwrap_or_default();
        let server = model.endpoint().map_err(wrong)?.authority();
        tracing::info!(model = %model.id, variable, server, "no model is configured: this one is there by the key in the environment");
    }
    let native = NativeAgent::new(Vec::new()).map_err(wrong)?;
    let told = load_facts(&config.data);
    native.configure_models(models, told).map_err(wrong)?;
    let mcp = Arc::new(McpSettings {
        entries: config.mcp.clone(),
        settings_file: config.file_path(),
        data: config.data.clone(),
        trust: Arc::new(config.trust_store()),
    });
    let native = native
        .confined_to(confinement.clone())
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
            let script = Script::load(path);
            ScriptedAgent::new(script.map_err(|error| ServeError::Script(error.to_string()))?)
        }
    };
    agents.push(Arc::new(scripted.confined_to(confinement.clone())));
    Ok(AgentRoster::new(config, native, agents))
}

/// The agents of others, in the order in which they are listed (AG-2). No process is started.
fn create_acp_agents(
    config: &Config,
    mcp: &Arc<McpSettings>,
) -> Result<Vec<Arc<AcpAgent>>, ServeError> {
    let offered = config.offered_agents();
    let offered = offered.map_err(|error| ServeError::Agent(error.to_string()))?;
    let trust = Arc::new(config.trust_store());
    let agents = offered.into_iter().map(|offered| {
        let OfferedAgent {
            config: agent,
            is_configured,
        } = offered;
        if !is_configured {
            tracing::info!(agent = %agent.id, "this agent is installed, and offered for that reason");
        }
        let agent = AcpAgent::new(agent, &config.data, Arc::clone(&trust));
        Arc::new(agent.with_mcp(Arc::clone(mcp)))
    });
    Ok(agents.collect())
}

/// Directories that working directories must lie in, without links, the default one first.
fn resolve_roots(config: &Config) -> Result<Vec<PathBuf>, ServeError> {
    let mut roots = config.workspaces.clone();
    if roots.is_empty() {
        roots.push(PathBuf::from("."));
        // A home directory that does not exist is no reason not to serve.
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
    let listed = agents.iter().flat_map(|agent| &agent.sections);
    let listed: BTreeSet<String> = listed.map(|section| section.id.clone()).collect();
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
        config_values: [("logLevel".to_owned(), json!("info"))]
            .into_iter()
            .collect(),
        clients_have_token: config.token != TokenChoice::None,
    })
}

/// The journal, and the lock of the data directory if it is not the journal that holds it.
fn open_journal(config: &Config) -> Result<(Box<dyn Journal>, Option<DirectoryLock>), ServeError> {
    Ok(match config.journal {
        JournalChoice::Sqlite => (Box::new(Sqlite::open(&config.data)?), None),
        // Nothing is stored, but clients find the host by its endpoint file, and there is one for one host.
        JournalChoice::Memory => (
            Box::new(Memory::new()),
            Some(DirectoryLock::take(&config.data)?),
        ),
    })
}

fn open_blobs(config: &Config) -> Result<Arc<dyn Blobs>, ServeError> {
    Ok(match config.journal {
        JournalChoice::Sqlite => Arc::new(FileBlobs::open(&config.data)?),
        JournalChoice::Memory => Arc::new(MemoryBlobs::new()),
    })
}

fn make_private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Whether a host could start with these settings, as far as that can be said without its data directory.
pub fn check_config(config: &Config) -> Result<(), ServeError> {
    let roots = resolve_roots(config)?;
    let confinement = Confinement::within(&roots).map_err(|error| ServeError::Workspace {
        path: roots.first().cloned().unwrap_or_default(),
        message: error.to_string(),
    })?;
    let agents = create_agents(config, &confinement)?;
    collect_host_facts(config, &agents, &roots).map(drop)
}
