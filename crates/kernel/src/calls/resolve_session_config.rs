//! `resolveSessionConfig` and `sessionConfigCompletions`: the form before a session exists (H-120, H-121).

use serde_json::json;
use wire::published::commands::{ResolveSessionConfigParams, SessionConfigCompletionsParams};
use wire::rpc::code;
use wire::{Id, Object, RpcError};

use crate::io::PeerId;
use crate::load::Flow;
use crate::{Kernel, config};

impl Kernel {
    pub(crate) fn resolve_session_config(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &ResolveSessionConfigParams,
    ) -> Flow<()> {
        let empty = Object::new();
        let resolved = self.agent(params.provider.as_deref()).and_then(|agent| {
            let values = config::with_defaults(
                &agent.config_schema,
                params.config.as_ref().unwrap_or(&empty),
            )
            .map_err(|bad| RpcError::new(code::INVALID_PARAMS, format!("config: {bad}")))?;
            Ok(json!({"schema": agent.config_schema, "values": values}))
        });
        match resolved {
            Ok(result) => self.respond(peer, id, &result),
            Err(error) => self.fail(peer, id, &error),
        }
        Flow::Ready(())
    }

    /// No schema of this host has values that are only known by asking; a known property has none to offer.
    pub(crate) fn session_config_completions(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &SessionConfigCompletionsParams,
    ) -> Flow<()> {
        let known = self.agent(params.provider.as_deref()).and_then(|agent| {
            let known = agent.config_schema["properties"]
                .get(&params.property)
                .is_some();
            let unknown = || {
                RpcError::new(
                    code::INVALID_PARAMS,
                    format!("no property `{}`", params.property),
                )
            };
            known.then_some(()).ok_or_else(unknown)
        });
        match known {
            Ok(()) => self.respond(peer, id, &json!({"items": []})),
            Err(error) => self.fail(peer, id, &error),
        }
        Flow::Ready(())
    }
}
