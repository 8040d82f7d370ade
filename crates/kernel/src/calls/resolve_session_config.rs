//! `resolveSessionConfig`: the form before a session exists (H-120).

use serde_json::{Value, json};
use wire::published::commands::ResolveSessionConfigParams;
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
