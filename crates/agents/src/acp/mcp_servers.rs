//! MCP servers that an agent is handed over, so that it starts them itself (MC-9).
//!
//! Promises: an agent gets only servers that are switched on; those of the directory because the user trusts that, as what the
//! agent reads there itself (TR-1). What it reads itself is not handed over twice. A token that a client brought never is.
//! Must not know: how agents use them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::agent_core::AgentCore;
use super::agent_process::AgentProcess;
use super::config::AcpAgentConfig;
use super::connection::Abilities;
use super::turn::{AcpTurn, TurnStopped};
use crate::mcp::{DeclaredServer, McpDeclaration, McpInputs, McpTransport, start_program};
use crate::mcp_settings::find_servers;
use crate::server_entry::{customization_id, error_state, make_entry, shadowed_entry};

/// Sessions whose servers are remembered, to be shown again.
const SHOWN_MAX: usize = 256;

/// What a session of the agent is opened with.
#[derive(Clone, Default)]
pub(super) struct HandedServers {
    /// `McpServer`s of the protocol.
    pub(super) servers: Vec<Value>,
    /// Changes with what is handed over.
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
}

/// Finds out what an agent gets in a directory that is trusted.
pub(super) async fn find_handed_over(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    directory: &Path,
) -> Result<HandedServers, TurnStopped> {
    let core = turn.core;
    let (Some(settings), true) = (core.mcp.get(), core.config.hands_over_mcp) else {
        return Ok(HandedServers::default());
    };
    let found = find_servers(settings, directory, McpInputs::new()).await;
    for problem in &found.problems {
        let text = format!("MCP servers could not be read from a file. {problem}");
        core.tell_once(turn, text).await?;
    }
    let mut handed = HandedServers::default();
    for declared in &found.servers {
        if is_read_by_agent(&core.config, declared, directory) {
            continue; // it would be there twice
        }
        let id = customization_id(declared);
        let state = match turn.input.switched_off.contains(&id) {
            true => json!({"kind": "stopped"}),
            false => match to_server(declared, &process.abilities, directory) {
                Ok(server) => {
                    handed.servers.push(server);
                    handed.ids.push((declared.name.clone(), id));
                    json!({"kind": "ready"})
                }
                Err(why) => error_state("notHandedOver", &why),
            },
        };
        let mut entry = make_entry(declared, state);
        if entry["state"]["kind"] == "ready" {
            // Whether it really runs only the agent knows.
            entry["_meta"] = json!({"assumed": true});
        }
        handed.entries.push(entry);
    }
    let shadowed = found.shadowed.iter();
    let shadowed = shadowed.map(|(declared, by)| shadowed_entry(declared, by));
    handed.entries.extend(shadowed);
    let digest = Sha256::digest(wire::rpc::to_json(&handed.servers));
    handed.digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(handed)
}

impl HandedServers {
    /// Shows the servers while the agent starts them, and when its session is open.
    pub(super) fn show(&self, core: &AgentCore, conversation: &str, is_open: bool) {
        let mut entries = self.entries.clone();
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
    let inside = declared.file.strip_prefix(directory).ok();
    let inside = inside.and_then(Path::to_str).filter(|_| !declared.is_users);
    inside.is_some_and(|inside| config.reads_mcp_files.iter().any(|file| file == inside))
}

/// `McpServer` of the protocol, or why the agent cannot have it.
fn to_server(
    declared: &DeclaredServer,
    abilities: &Abilities,
    directory: &Path,
) -> Result<Value, String> {
    let McpDeclaration {
        name, transport, ..
    } = declared.declaration.as_ref().map_err(Clone::clone)?;
    match transport {
        McpTransport::Process {
            command,
            args,
            env,
            cwd,
        } => {
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

fn pairs(map: &BTreeMap<String, String>) -> Vec<Value> {
    let pairs = map.iter();
    pairs
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

impl AgentCore {
    /// Shows clients the servers of a session, and remembers that.
    pub(super) fn show_servers(&self, conversation: &str, entries: Vec<Value>) {
        let mut records = self.servers();
        let before = records.shown.get(conversation);
        if before == Some(&entries) || (before.is_none() && entries.is_empty()) {
            return; // it is no news
        }
        if records.shown.len() >= SHOWN_MAX && before.is_none() {
            records.shown.pop_first();
        }
        records
            .shown
            .insert(conversation.to_owned(), entries.clone());
        drop(records);
        self.tell_servers(conversation, entries);
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
