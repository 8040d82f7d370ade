//! The host that the world is about: an agent with two models and a small configuration, and two that can do less.

use kernel::{AgentFacts, HostFacts};
use serde_json::{Value, json};
use wire::ext::system_message_transform::SystemMessageSection;

/// The provider id of the agent that is taken if none is named: many chats, forks, side chats (G-01).
pub const PROVIDER: &str = "scripted";
/// An agent with many chats, but without forks and side chats.
pub const FORKLESS: &str = "forkless";
/// An agent with one chat for each session.
pub const SINGLE: &str = "single";
/// The model that is filled in (G-12).
pub const DEFAULT_MODEL: &str = "plain";
/// The only directory that sessions may work in.
pub const WORKSPACE: &str = "/home/space";

/// Sections of the system prompt that every agent here lists; the last never leaves the host.
pub const SECTIONS: [&str; 3] = ["tone", "environment_context", "safety"];

fn sections() -> Vec<SystemMessageSection> {
    let section = |id: &str| SystemMessageSection {
        id: id.to_owned(),
        label: id.to_uppercase(),
        description: None,
        restricted: (id == "safety").then_some(true),
    };
    SECTIONS.into_iter().map(section).collect()
}

pub fn host_facts() -> HostFacts {
    let schema = json!({"type": "object", "properties": {
        "pace": {"type": "string", "title": "Pace", "enum": ["instant", "typing"], "default": "instant",
            "sessionMutable": true},
        "fixed": {"type": "string", "title": "Fixed", "default": "f"},
    }});
    let agent = |provider: &str, capabilities: Value| {
        json!({
            "provider": provider,
            "displayName": "Scripted",
            "description": "Says what its script says.",
            "capabilities": capabilities,
            "models": [
                {"id": DEFAULT_MODEL, "name": "Plain", "provider": provider},
                {"id": "fancy", "name": "Fancy", "provider": provider, "configSchema": {
                    "type": "object",
                    "properties": {"heat": {"type": "integer", "title": "Heat"}},
                }},
            ],
        })
    };
    let many = json!({"multipleChats": {"fork": true, "sideChat": true}});
    let kinds = [(PROVIDER, many), (FORKLESS, json!({"multipleChats": {}})), (SINGLE, json!({}))];
    let agents = kinds.into_iter().map(|(provider, capabilities)| AgentFacts {
        provider: provider.to_owned(),
        hidden: false,
        info: agent(provider, capabilities),
        config_schema: schema.clone(),
        renamed_settings: Vec::new(),
        default_model: Some(DEFAULT_MODEL.to_owned()),
        needs_history: false,
        sections: sections(),
        ..AgentFacts::default()
    });
    HostFacts {
        agents: agents.collect(),
        default_directory: Some(wire::file_uri::uri_of(WORKSPACE)),
        version: "0.0.0".to_owned(),
        config_schema: json!({"type": "object", "properties": {
            "logLevel": {"type": "string", "title": "Log level", "enum": ["info", "debug"], "default": "info"},
        }}),
        config_values: wire::Object::new(),
        clients_have_token: true,
    }
}
