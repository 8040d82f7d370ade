//! The host that the world is about: one agent with two models and a small configuration.

use kernel::{AgentFacts, HostFacts};
use serde_json::json;

/// The provider id of the only agent.
pub const PROVIDER: &str = "scripted";
/// The model that is filled in (G-12).
pub const DEFAULT_MODEL: &str = "plain";
/// The only directory that sessions may work in.
pub const WORKSPACE: &str = "/home/space";

pub fn host_facts() -> HostFacts {
    let schema = json!({"type": "object", "properties": {
        "pace": {"type": "string", "title": "Pace", "enum": ["instant", "typing"], "default": "instant",
            "sessionMutable": true},
        "fixed": {"type": "string", "title": "Fixed", "default": "f"},
    }});
    let info = json!({
        "provider": PROVIDER,
        "displayName": "Scripted",
        "description": "Says what its script says.",
        "models": [
            {"id": DEFAULT_MODEL, "name": "Plain", "provider": PROVIDER},
            {"id": "fancy", "name": "Fancy", "provider": PROVIDER, "configSchema": {
                "type": "object",
                "properties": {"heat": {"type": "integer", "title": "Heat"}},
            }},
        ],
    });
    HostFacts {
        agents: vec![AgentFacts {
            provider: PROVIDER.to_owned(),
            info,
            config_schema: schema,
            default_model: Some(DEFAULT_MODEL.to_owned()),
        }],
        default_directory: Some(kernel::file_uri_of(WORKSPACE)),
        roots: vec![WORKSPACE.to_owned()],
        version: "0.0.0".to_owned(),
        config_schema: json!({"type": "object", "properties": {
            "logLevel": {"type": "string", "title": "Log level", "enum": ["info", "debug"], "default": "info"},
        }}),
        config_values: wire::Object::new(),
    }
}
