//! The first words with an agent: which protocol, what each side can do (AG-14 to AG-16).
//!
//! Promises: version 1 is offered and nothing else is taken.
//! Must not know: sessions.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AcpConnection, RequestError};

const PROTOCOL_VERSION: u64 = 1;

/// What is offered to an agent.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct ClientOffer {
    /// Whether files may be read and written through us (AG-50, AG-51).
    pub(in super::super) files: bool,
}

/// What an agent said of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in super::super) struct Abilities {
    pub(in super::super) title: Option<String>,
    pub(in super::super) version: Option<String>,
    pub(in super::super) load: bool,
    pub(in super::super) resume: bool,
    pub(in super::super) fork: bool,
    pub(in super::super) close: bool,
    pub(in super::super) set_title: bool,
    pub(in super::super) system_prompt: bool,
    pub(in super::super) additional_directories: bool,
    pub(in super::super) steering: bool,
    pub(in super::super) images: bool,
    pub(in super::super) audio: bool,
    pub(in super::super) embedded_context: bool,
    pub(in super::super) mcp_http: bool,
    pub(in super::super) mcp_sse: bool,
    pub(in super::super) sign_in: Vec<SignInMethod>,
}

/// A way to sign in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in super::super) struct SignInMethod {
    pub(in super::super) id: String,
    pub(in super::super) name: String,
    pub(in super::super) description: Option<String>,
    /// What to run in a terminal: a command with its arguments, or arguments for the agent's own command.
    pub(in super::super) command: Option<String>,
    pub(in super::super) args: Vec<String>,
    pub(in super::super) is_terminal: bool,
}

/// Says hello.
pub(in super::super) async fn initialize(
    connection: &AcpConnection,
    offer: ClientOffer,
    limit: Duration,
) -> Result<Abilities, RequestError> {
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientInfo": {"name": "greenroom", "title": "greenroom", "version": env!("CARGO_PKG_VERSION")},
        "clientCapabilities": {
            "fs": {"readTextFile": offer.files, "writeTextFile": offer.files},
            "terminal": true,
            "auth": {"terminal": true},
            "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
            "elicitation": {"form": {}, "url": {}},
            "_meta": {"terminal_output": true, "terminal-auth": true},
        },
    });
    let answer: Value = connection.request("initialize", &params, limit).await?;
    let unreadable =
        |why: String| RequestError::Unreadable { method: "initialize".to_owned(), why };
    // Looked at before anything else: another version has another shape.
    let version = &answer["protocolVersion"];
    if version.as_u64() != Some(PROTOCOL_VERSION) {
        return Err(unreadable(format!(
            "it speaks version {version} of the protocol, and greenroom speaks version {PROTOCOL_VERSION}"
        )));
    }
    let steering = answer["_meta"]["steering"]["supported"] == Value::Bool(true);
    let sign_in = read_methods(&answer["authMethods"]);
    let answer: acp::InitializeResponse =
        serde_json::from_value(answer).map_err(|error| unreadable(error.to_string()))?;
    let abilities = read_abilities(answer, steering, sign_in);
    connection.set_closes_sessions(abilities.close);
    Ok(abilities)
}

fn read_abilities(
    answer: acp::InitializeResponse,
    steering: bool,
    sign_in: Vec<SignInMethod>,
) -> Abilities {
    let can = answer.agent_capabilities;
    let session = can.session_capabilities;
    let info = answer.agent_info;
    Abilities {
        title: info.as_ref().map(|info| {
            let title = info.title.as_ref().unwrap_or(&info.name);
            short(title)
        }),
        version: info.as_ref().map(|info| short(&info.version)),
        load: can.load_session,
        resume: session.resume.is_some(),
        fork: session.fork.is_some(),
        close: session.close.is_some(),
        set_title: session.title.is_some(),
        system_prompt: session.system_prompt.is_some(),
        additional_directories: session.additional_directories.is_some(),
        steering,
        images: can.prompt_capabilities.image,
        audio: can.prompt_capabilities.audio,
        embedded_context: can.prompt_capabilities.embedded_context,
        mcp_http: can.mcp_capabilities.http,
        mcp_sse: can.mcp_capabilities.sse,
        sign_in,
    }
}

/// Ways to sign in, as an agent lists them when it is started or when it wants one.
pub(in super::super) fn read_methods(methods: &Value) -> Vec<SignInMethod> {
    methods.as_array().into_iter().flatten().take(16).map(read_method).collect()
}

/// Read by hand: where the command is said differs from agent to agent.
fn read_method(method: &Value) -> SignInMethod {
    let text = |value: &Value| value.as_str().map(short);
    let meta = &method["_meta"];
    let terminal = &meta["terminal-auth"];
    let is_terminal =
        method["type"] == "terminal" || meta["type"] == "terminal" || terminal.is_object();
    let args =
        [&terminal["args"], &method["args"], &meta["args"]].into_iter().find_map(Value::as_array);
    SignInMethod {
        id: text(&method["id"]).unwrap_or_default(),
        name: text(&method["name"]).unwrap_or_default(),
        description: text(&method["description"]),
        command: text(&terminal["command"]),
        args: args.into_iter().flatten().take(32).filter_map(text).collect(),
        is_terminal,
    }
}

/// A label, as it is shown (TR-8).
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
