//! MCP servers that an agent is passed, so that it starts them itself (MC-9).
//!
//! Promises: an agent gets only servers that are switched on; those of the directory because the user trusts that, as what the
//! agent reads there itself (TR-1), and those that read variables of the user's only after a yes that names them (TR-3). What it reads itself is not passed twice. A token that a client brought never is.
//! Must not know: how agents use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::agent_core::AgentCore;
use super::agent_process::AgentProcess;
use super::config::AcpAgentConfig;
use super::connection::Abilities;
use super::failed_server::FailedServer;
use super::turn::{AcpTurn, TurnStopped};
use crate::mcp::{DeclaredServer, McpDeclaration, McpInputs, McpTransport, start_program};
use crate::mcp_settings::{McpSettings, find_servers};
use crate::server_entry::{
    customization_id, error_state, is_switched_off, make_entry, shadowed_entry,
};
use crate::trust::{DeclaredItem, ServerAnswer, ask_about_server, describe_refusal};

/// Sessions whose servers are remembered, to be shown again.
const SHOWN_MAX: usize = 256;

/// Servers of a session that are remembered as failed.
const FAILED_MAX: usize = 256;

/// What a session of the agent is opened with.
#[derive(Clone, Default)]
pub(super) struct PassedServers {
    /// `McpServer`s of the protocol.
    pub(super) servers: Vec<Value>,
    /// Changes with what is passed.
    pub(super) digest: String,
    /// Names, and the ids that clients know them by.
    pub(super) ids: Vec<(String, String)>,
    /// All that are declared, as clients see them once the session is open.
    entries: Vec<Value>,
}

/// What a core remembers of servers.
#[derive(Default)]
pub(super) struct ServerRecords {
    /// What was last shown, by session.
    shown: BTreeMap<String, Vec<Value>>,
    refused: BTreeSet<RefusedServer>,
    /// Servers that an agent could not start and why, by session.
    failed: BTreeMap<String, BTreeMap<String, String>>,
}

/// A declared server that the user did not allow in a session.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RefusedServer {
    session: String,
    digest: String,
}

/// Refusals that are remembered; forgotten when there are more.
const REFUSED_MAX: usize = 1_024;

impl ServerRecords {
    fn refuse(&mut self, server: RefusedServer) {
        if self.refused.len() >= REFUSED_MAX {
            self.refused.clear(); // the user is asked again
        }
        self.refused.insert(server);
    }
}

/// Finds out what an agent gets in a directory that is trusted.
pub(super) async fn find_passed_servers(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    directory: &Path,
) -> Result<PassedServers, TurnStopped> {
    let core = turn.core;
    let (Some(settings), true) = (core.mcp.get(), core.config.hands_over_mcp) else {
        return Ok(PassedServers::default());
    };
    let plugins = &turn.facts.plugins;
    let found = find_servers(settings, directory, plugins, McpInputs::new()).await;
    for problem in &found.problems {
        let text = format!("MCP servers could not be read from a file. {problem}");
        core.notify_once(turn, text).await?;
    }
    let mut passed = PassedServers::default();
    for declared in &found.servers {
        if is_read_by_agent(&core.config, declared, directory) {
            continue; // it would be there twice
        }
        let id = customization_id(declared);
        let is_off = is_switched_off(declared, &turn.input.switched_off);
        let state = if is_off || !is_allowed(turn, settings, directory, declared).await? {
            json!({"kind": "stopped"})
        } else {
            match to_server(declared, &process.abilities, directory) {
                Ok(server) => {
                    passed.servers.push(server);
                    passed.ids.push((declared.name.clone(), id));
                    json!({"kind": "ready"})
                }
                Err(why) => error_state("notHandedOver", &why),
            }
        };
        let mut entry = make_entry(declared, state);
        if entry["state"]["kind"] == "ready" {
            // Whether it really runs only the agent knows.
            entry["_meta"] = json!({"assumed": true});
        }
        passed.entries.push(entry);
    }
    let shadowed = found.shadowed.iter().map(|(declared, by)| shadowed_entry(declared, by));
    passed.entries.extend(shadowed);
    let digest = Sha256::digest(wire::rpc::to_json(&passed.servers));
    passed.digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(passed)
}

/// Whether an agent may be handed a server. What a client brought is not part of the directory that the user trusts: they are
/// asked about it as for any other agent (TR-6). So are they about one of the directory that reads variables of theirs: trust in a
/// directory names none of these (TR-3).
async fn is_allowed(
    turn: &AcpTurn<'_>,
    settings: &McpSettings,
    directory: &Path,
    declared: &DeclaredServer,
) -> Result<bool, TurnStopped> {
    let plugin = declared.plugin.as_ref();
    let is_of_client = plugin.is_some_and(|plugin| plugin.client_id.is_some());
    let reads_variables = !declared.is_users && !declared.variables.is_empty();
    if !(is_of_client || reads_variables) || declared.declaration.is_err() {
        return Ok(true); // the user's own, or the directory's; or it is not passed, with words
    }
    let session = &turn.facts.conversation;
    let asked = RefusedServer { session: session.clone(), digest: declared.digest.clone() };
    if turn.core.servers().refused.contains(&asked) {
        return Ok(false);
    }
    let item = DeclaredItem::new(directory, declared);
    let why = match item.is_known(&settings.trust, session).await {
        Ok(true) => return Ok(true),
        Ok(false) => {
            let (trust, events) = (&settings.trust, turn.events);
            match ask_about_server(trust, session, directory, declared, events).await? {
                ServerAnswer::Yes => return Ok(true),
                ServerAnswer::No => {
                    turn.core.servers().refuse(asked);
                    "you did not allow it".to_owned()
                }
                ServerAnswer::Unasked(why) => why,
            }
        }
        Err(error) => error.to_string(),
    };
    let text = describe_refusal(declared, &why);
    turn.core.notify_once(turn, text).await?;
    Ok(false)
}

impl PassedServers {
    /// Shows the servers while the agent starts them, and when its session is open.
    pub(super) fn show(&self, core: &AgentCore, conversation: &str, is_open: bool) {
        let mut entries = self.entries.clone();
        if !is_open {
            core.servers().failed.remove(conversation); // the agent starts them anew
        }
        for entry in entries.iter_mut().filter(|_| !is_open) {
            if entry["state"]["kind"] == "ready" {
                entry["state"] = json!({"kind": "starting", "blocking": true});
                entry["_meta"] = Value::Null;
                if let Some(entry) = entry.as_object_mut() {
                    entry.remove("_meta");
                }
            }
        }
        core.show_servers(conversation, entries);
    }
}

fn is_read_by_agent(config: &AcpAgentConfig, declared: &DeclaredServer, directory: &Path) -> bool {
    let inside = declared
        .file
        .strip_prefix(directory)
        .ok()
        .and_then(Path::to_str)
        .filter(|_| !declared.is_users);
    inside.is_some_and(|inside| config.reads_mcp_files.iter().any(|file| file == inside))
}

/// `McpServer` of the protocol, or why the agent cannot have it.
fn to_server(
    declared: &DeclaredServer,
    abilities: &Abilities,
    directory: &Path,
) -> Result<Value, String> {
    let McpDeclaration { name, transport, .. } =
        declared.declaration.as_ref().map_err(Clone::clone)?;
    match transport {
        McpTransport::Process { command, args, env, cwd } => {
            let cwd = cwd.as_ref().map(|cwd| directory.join(cwd));
            let from = cwd.as_deref().unwrap_or(directory);
            let (program, first) = start_program(command, env, from, directory)?;
            let args: Vec<&String> = first.iter().chain(args).collect();
            Ok(json!({"name": name, "command": program, "args": args, "env": pairs(env)}))
        }
        McpTransport::Http { url, headers } => {
            let kind = match (abilities.mcp_http, abilities.mcp_sse, declared.is_sse) {
                (_, true, true) => "sse",
                (true, _, _) => "http",
                (false, true, false) | (false, false, _) => {
                    return Err("the agent takes no MCP servers over HTTP".to_owned());
                }
            };
            Ok(json!({"type": kind, "name": name, "url": url, "headers": pairs(headers)}))
        }
    }
}

/// Marks those that an agent was handed and could not start.
fn mark_failed(entries: &mut [Value], failed: &BTreeMap<String, String>) {
    for entry in entries {
        let why = entry["name"].as_str().and_then(|name| failed.get(name));
        if let Some(why) = why.filter(|_| entry["state"]["kind"] == "ready") {
            entry["state"] = error_state("failed", why);
            if let Some(meta) = entry.get_mut("_meta").and_then(Value::as_object_mut) {
                meta.remove("assumed");
            }
        }
    }
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<Value> {
    map.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

impl AgentCore {
    /// Shows clients the servers of a session, and remembers that.
    pub(super) fn show_servers(&self, conversation: &str, mut entries: Vec<Value>) {
        let mut records = self.servers();
        if let Some(failed) = records.failed.get(conversation) {
            mark_failed(&mut entries, failed);
        }
        let before = records.shown.get(conversation);
        if before == Some(&entries) || (before.is_none() && entries.is_empty()) {
            return; // it is no news
        }
        if records.shown.len() >= SHOWN_MAX && before.is_none() {
            records.shown.pop_first();
        }
        records.shown.insert(conversation.to_owned(), entries.clone());
        drop(records);
        self.tell_servers(conversation, entries);
    }

    /// The agent says that it could not start a server: its state is not assumed any more (MC-9).
    pub(super) fn note_failed_server(&self, conversation: &str, failed: FailedServer) {
        let entries = {
            let mut records = self.servers();
            if records.failed.len() >= SHOWN_MAX && !records.failed.contains_key(conversation) {
                records.failed.pop_first();
            }
            let known = records.failed.entry(conversation.to_owned()).or_default();
            if known.len() < FAILED_MAX {
                known.insert(failed.name, failed.why);
            }
            records.shown.get(conversation).cloned()
        };
        // Without one the session is being opened: what is shown then knows of it.
        if let Some(entries) = entries {
            self.show_servers(conversation, entries);
        }
    }

    /// A client wants something of a server. The agent has it, and only a new session of the agent changes that: what is
    /// switched is said to be pending until then (CU-6), and the truth follows in any case (H-305).
    pub(super) fn show_servers_again(&self, conversation: &str, pending: Option<&str>) {
        let mut records = self.servers();
        let Some(entries) = records.shown.get_mut(conversation) else {
            return; // no turn has begun since the host was started
        };
        for entry in entries.iter_mut() {
            if pending.is_some_and(|id| entry["id"] == id) {
                entry["_meta"]["pending"] = Value::Bool(true);
            }
        }
        let entries = entries.clone();
        drop(records);
        self.tell_servers(conversation, entries);
    }
}
