//! MCP servers that an agent is handed over, so that it starts them itself (MC-9).
//!
//! Promises: an agent gets only servers that are switched on and that the user wrote or said yes to; those that it reads from
//! files of the project itself are not handed over twice. A token that a client brought is never handed over.
//! Must not know: how agents use them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::agent_core::AgentCore;
use super::agent_process::AgentProcess;
use super::config::AcpAgentConfig;
use super::connection::Abilities;
use super::turn::{AcpTurn, TurnStopped};
use crate::mcp::{DeclaredServer, McpDeclaration, McpTransport, start_program};
use crate::mcp_settings::{McpSettings, find_servers};
use crate::server_entry::{customization_id, error_state, make_entry};
use crate::trust::{DeclaredItem, ServerAnswer, ask_about_server, describe_refusal};

/// Answers of a session that are remembered: a no is asked again in another one.
const REFUSED_MAX: usize = 256;

/// Sessions whose servers are remembered, to be shown again.
const SHOWN_MAX: usize = 256;

/// What a session of the agent is opened with.
#[derive(Clone, Default)]
pub(super) struct HandedOver {
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
    /// Session, name and digest of what the user said no to.
    refused: Vec<(String, String, String)>,
    /// What was last shown, by session.
    shown: BTreeMap<String, Vec<Value>>,
}

/// Finds out what an agent gets, and asks the user where that is needed.
pub(super) async fn find_handed_over(
    turn: &AcpTurn<'_>,
    process: &AgentProcess,
    directory: &Path,
) -> Result<HandedOver, TurnStopped> {
    let core = turn.core;
    let (Some(settings), true) = (core.mcp.get(), core.config.hands_over_mcp) else {
        return Ok(HandedOver::default());
    };
    let found = find_servers(settings, directory).await;
    for problem in &found.problems {
        let text = format!("MCP servers could not be read from a file. {problem}");
        core.tell_once(turn, text).await?;
    }
    let mut handed = HandedOver::default();
    for declared in &found.servers {
        if is_read_by_agent(&core.config, declared, directory) {
            continue; // it would be there twice
        }
        let id = customization_id(declared);
        let is_on = !turn.input.switched_off.contains(&id);
        let state = match is_on && is_allowed(turn, settings, (directory, declared)).await? {
            false => json!({"kind": "stopped"}),
            true => match to_server(declared, &process.abilities, directory) {
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
    let digest = Sha256::digest(wire::rpc::to_json(&handed.servers));
    handed.digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(handed)
}

impl HandedOver {
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

/// Whether a server may be started in the session, asked now if nobody said so before (TR-2).
async fn is_allowed(
    turn: &AcpTurn<'_>,
    settings: &Arc<McpSettings>,
    (directory, declared): (&Path, &DeclaredServer),
) -> Result<bool, TurnStopped> {
    if declared.is_users || declared.declaration.is_err() {
        return Ok(true); // what is wrong with it is said elsewhere
    }
    let (core, session) = (turn.core, &turn.facts.conversation);
    let key = (
        session.clone(),
        declared.name.clone(),
        declared.digest.clone(),
    );
    if core.servers().refused.contains(&key) {
        return Ok(false);
    }
    let item = DeclaredItem::new(directory, declared);
    match item.is_known(&settings.trust, session).await {
        Ok(true) => return Ok(true),
        Ok(false) => {}
        Err(error) => {
            let text = format!("No MCP server of this directory was handed over: {error}");
            core.tell_once(turn, text).await?;
            return Ok(false);
        }
    }
    if turn.input.brief.is_some() {
        return Ok(false); // nobody is asked in the chat of a worker
    }
    let about = (directory, declared);
    let why = match ask_about_server(&settings.trust, session, about, turn.events).await? {
        ServerAnswer::Yes => return Ok(true),
        ServerAnswer::No => {
            let mut records = core.servers();
            if records.refused.len() >= REFUSED_MAX {
                records.refused.remove(0);
            }
            records.refused.push(key);
            "you did not allow it".to_owned()
        }
        ServerAnswer::Unasked(why) => why,
    };
    core.tell_once(turn, describe_refusal(declared, &why))
        .await?;
    Ok(false)
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
