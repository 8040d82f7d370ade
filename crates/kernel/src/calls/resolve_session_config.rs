//! `resolveSessionConfig` and `sessionConfigCompletions`: the form before a session exists (H-120, H-121).

use serde_json::{Value, json};
use wire::published::commands::{ResolveSessionConfigParams, SessionConfigCompletionsParams};
use wire::{Object, RpcError};

use super::create_session::agent_of;
use super::uri;
use crate::config;
use crate::state::Kernel;

/// The schema of a session's configuration, and its values.
pub(super) fn resolve(
    kernel: &Kernel,
    params: &ResolveSessionConfigParams,
) -> Result<Value, RpcError> {
    let agent = agent_of(kernel, params.provider.as_deref())?;
    let empty = Object::new();
    let wanted = params.config.as_ref().unwrap_or(&empty);
    let wanted = config::rename(&agent.renamed_settings, wanted);
    let values = config::with_defaults(&agent.config_schema, &wanted)
        .map_err(|bad| uri::bad(format!("config: {bad}")))?;
    Ok(json!({"schema": agent.config_schema, "values": values}))
}

/// No schema of this host has values that are only known by asking; a known property has none to offer.
pub(super) fn complete(
    kernel: &Kernel,
    params: &SessionConfigCompletionsParams,
) -> Result<Value, RpcError> {
    let agent = agent_of(kernel, params.provider.as_deref())?;
    match agent.config_schema["properties"].get(&params.property) {
        Some(_) => Ok(json!({"items": []})),
        None => Err(uri::bad(format!("no property `{}`", params.property))),
    }
}
