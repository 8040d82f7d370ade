//! What a host needs before it serves, made from its configuration: workspace roots, agents, facts for the kernel, stores.
//!
//! Promises: whatever the operator got wrong is an error that names the setting; nothing is listening yet.
//! Must not know: connections, the loop.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::Agent;
use agents::{NativeAgent, Script, ScriptedAgent};
use compositor::lower::CapabilityMap;
use kernel::{AgentFacts, HostFacts};
use serde_json::json;
use wire::ext::system_message_transform::SystemMessageSection;
use workspace::Confinement;

use crate::blobs::{Blobs, FileBlobs, MemoryBlobs};
use crate::config::{Config, JournalChoice, Model};
use crate::journal::{DirectoryLock, Journal, Memory, Sqlite};
use crate::server::{ServeError, VERSION};

/// What the loop is started with.
pub(crate) struct Parts {
    pub agents: Vec<Arc<dyn Agent>>,
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
        let agents = create_agents(config, &confinement)?;
        let facts = collect_host_facts(config, &agents, &roots)?;
        // Before everything else in the directory: its lock shows that no other process uses it.
        let (journal, lock) = open_journal(config)?;
        Ok(Self {
            agents,
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

fn create_agents(
    config: &Config,
    confinement: &Confinement,
) -> Result<Vec<Arc<dyn Agent>>, ServeError> {
    let mut agents: Vec<Arc<dyn Agent>> = Vec::new();
    if !config.models.is_empty() {
        hide_environment();
        let native = NativeAgent::new(config.models.clone());
        let native = native.map_err(|error| ServeError::Model(error.to_string()))?;
        let native = native
            .confined_to(confinement.clone())
            .with_command_variables(&config.tool_env)
            .with_capabilities(load_capabilities(config)?);
        agents.push(Arc::new(native));
    }
    if !config.scripted {
        if agents.is_empty() {
            tracing::warn!("no agent is configured: sessions can be read, but none can be created");
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
    agents.push(Arc::new(scripted.confined_to(confinement.clone())));
    Ok(agents)
}

/// Commands that an agent runs belong to the same user: without this they could read what they were not given of the
/// host's environment, such as the keys of models, from `/proc`.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "the environment could not be hidden: commands that agents run can read all of it");
    }
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
    agents: &[Arc<dyn Agent>],
    roots: &[PathBuf],
) -> Result<HostFacts, ServeError> {
    let listed = agents.iter().flat_map(|agent| agent.info().sections);
    let listed: BTreeSet<String> = listed.map(|section| section.id).collect();
    // A misspelt name would leave a section readable that the operator wanted restricted.
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
            renamed_settings: info.renamed_settings,
            default_model: info.default_model,
            needs_history,
            sections: mark_restricted(info.sections, &config.restricted_sections),
        });
    Ok(HostFacts {
        agents: facts.collect(),
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
    })
}

/// The sections as they are published: the content of a restricted one never leaves the host.
fn mark_restricted(
    mut sections: Vec<SystemMessageSection>,
    ids: &[String],
) -> Vec<SystemMessageSection> {
    for section in &mut sections {
        section.restricted = ids.contains(&section.id).then_some(true);
    }
    sections
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

/// Asks a model's server whether it is there, accepts the key and has the model.
pub async fn check_model(model: &Model) -> Result<(), String> {
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
