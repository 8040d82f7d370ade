//! `resolveSessionConfig`: the form before a session exists (H-120).

use serde_json::{Value, json};
use wire::published::commands::ResolveSessionConfigParams;
use wire::{Object, RpcError, compat};

use super::create_session::agent_of;
use super::uri;
use crate::config;
use crate::io::PeerId;
use crate::state::Kernel;

/// The schema of a session's configuration, and its values.
pub(super) fn resolve(
    kernel: &Kernel,
    peer: PeerId,
    params: &ResolveSessionConfigParams,
) -> Result<Value, RpcError> {
    let agent = agent_of(kernel, peer, params.provider.as_deref())?;
    let empty = Object::new();
    let wanted = params.config.as_ref().unwrap_or(&empty);
    let wanted = config::rename(&agent.renamed_settings, wanted);
    let values = config::with_defaults(&agent.config_schema, &wanted)
        .map_err(|bad| uri::bad(format!("config: {bad}")))?;
    let mut schema = agent.config_schema.clone();
    if let Some(ready) = kernel.ready(peer) {
        compat::down_schema(ready.generation, &mut schema);
    }
    Ok(json!({"schema": schema, "values": values}))
}
