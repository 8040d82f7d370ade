//! `initialize`: version, identity, first subscriptions; all answered in one step (H-020 to H-038).

use std::sync::Arc;

use serde_json::json;
use wire::ext::{compose, models, system_message_transform as ext};
use wire::published::commands::InitializeParams;
use wire::version::{self, NegotiationError};
use wire::{Generation, Id, Object, RpcError, Version};

use super::completions::TRIGGER_CHARACTERS;
use super::serve::{SnapshotMode, WantedChannel, serve_snapshots};
use super::uri::{self, wanted_channels};
use crate::clients::record_client_later;
use crate::customization::survey_plugins_of;
use crate::frame::{Frame, LateResponse, LateResponseBody};
use crate::io::{CloseReason, Effect, PeerId};
use crate::load::need_channels;
use crate::pause::{HandlerAnswers, Pause, RequestStop};
use crate::peers::NegotiatedPeer;
use crate::record::Record;
use crate::rights::{check_client_id, may_watch};
use crate::role::Role;
use crate::state::{Kernel, Step};
use crate::telemetry;

/// Where a client that is no owner finds what it is.
const ROLE: &str = "x-role";

/// Longest client id taken, in bytes.
const CLIENT_ID_BYTES_MAX: usize = 512;

/// A client, and what it wants to be served.
pub(super) struct NewClient {
    ready: NegotiatedPeer,
    wanted: Vec<WantedChannel>,
}

/// The version both sides speak. A client that this host shares none with is closed after the error (H-023).
pub(super) fn negotiate(
    step: &mut Step,
    peer: PeerId,
    params: &InitializeParams,
) -> Result<(Version, Generation), RpcError> {
    version::negotiate(&params.protocol_versions).map_err(|error| {
        if matches!(error, NegotiationError::None) {
            let why = CloseReason::UnsupportedVersion;
            step.effect(Effect::Close { peer, why });
        }
        error.to_rpc()
    })
}

pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &InitializeParams,
    version: Version,
    generation: Generation,
    answers: &HandlerAnswers,
) -> Result<NewClient, RequestStop> {
    if params.client_id.is_empty() || params.client_id.len() > CLIENT_ID_BYTES_MAX {
        let message = format!("`clientId` must have 1 to {CLIENT_ID_BYTES_MAX} bytes");
        return Err(uri::bad(message).into());
    }
    let wanted = params.initial_subscriptions.as_deref().unwrap_or(&[]);
    let wanted = wanted_channels(kernel, wanted)?;
    // What a role does not allow is left out, like what does not exist: it is not offered either.
    let role = kernel.role(peer);
    let wanted: Vec<_> = wanted.into_iter().filter(|uri| may_watch(role, uri)).collect();
    check_client_id(kernel, peer, &params.client_id)?;
    wait_for_older(kernel, peer, &params.client_id)?;
    let with_views: Vec<_> = wanted.iter().map(|uri| (uri.clone(), u32::MAX)).collect();
    let exist = need_channels(kernel, &with_views, answers)?;
    // What does not exist is left out of the snapshots (H-029).
    let there = wanted.into_iter().zip(exist).filter(|(_, there)| *there);
    let wanted =
        there.map(|(uri, _)| WantedChannel { uri, view_turns: None, max_latency_ms: None });
    Ok(NewClient {
        wanted: wanted.collect(),
        ready: NegotiatedPeer {
            client_id: params.client_id.clone(),
            version,
            generation,
            capabilities: params.capabilities.as_ref().map(wire::action::to_value),
            locale: params.locale.clone(),
            transform: ext::of_meta(params.meta.as_ref()),
            volatile: false,
        },
    })
}

/// A newer connection takes over a client id: what was read from the older one is processed first (G-20). Whoever has the id has
/// the client's terminals and its place in sessions, and everybody can read it: `check_client_id` was asked before (H-035).
pub(super) fn wait_for_older(
    kernel: &Kernel,
    peer: PeerId,
    client_id: &str,
) -> Result<(), RequestStop> {
    match kernel.peers().peer_of(client_id) {
        Some(older) if older != peer => Err(Pause::After(older).into()),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, client: NewClient) {
    let ready = client.ready;
    step.peers_mut().admit(peer, ready.clone());
    step.find_active_client_again(&ready.client_id);
    survey_plugins_of(step, &ready.client_id);
    // A client that starts anew has no floors from before. Before it is served anything this need not be durable.
    if step.unwritable().is_none() {
        let client_id = ready.client_id.clone();
        let gone = Record::ClientGone { client_id };
        step.peers_mut().defer_record(&ready.client_id, gone);
    }
    step.peers_mut().set_forgotten(&ready.client_id, false);
    record_client_later(step, &ready);
    let snapshots = serve_snapshots(step, peer, &client.wanted, SnapshotMode::Replacing);
    let body = LateResponseBody::Initialize {
        fields: result_fields(step, step.role(peer), &ready),
        snapshots,
    };
    let id = id.clone();
    let response = LateResponse { id, generation: ready.generation, body };
    step.send(peer, Frame::Response(Arc::new(response)));
}

/// `InitializeResult` without its snapshots.
fn result_fields(kernel: &Kernel, role: Role, ready: &NegotiatedPeer) -> Object {
    let facts = kernel.facts();
    let mut fields = Object::new();
    let mut put = |name: &str, value| fields.insert(name.to_owned(), value);
    put("protocolVersion", json!(ready.version.to_string()));
    put("serverSeq", json!(kernel.seq().0));
    put("serverInfo", json!({"name": "greenroom", "version": facts.version}));
    put("completionTriggerCharacters", json!(TRIGGER_CHARACTERS));
    put("terminalCommandPrefix", json!(agent_api::COMMAND_PREFIX));
    let mut meta = ext::support();
    // What a role does not allow is not offered (ADR 0007).
    if facts.clients_have_token && role >= Role::Owner {
        meta[models::ADD_MODEL] = models::support();
    }
    if facts.clients_have_token && role >= Role::Member {
        meta[compose::COMPOSE] = compose::support();
    }
    if role < Role::Owner {
        meta[ROLE] = json!(role.name());
    }
    put("_meta", meta);
    if role >= Role::Owner {
        put(
            "telemetry",
            json!({
                "logs": telemetry::LOGS,
                "traces": telemetry::TRACES,
                "metrics": telemetry::METRICS,
            }),
        );
    }
    if let Some(directory) = &facts.default_directory {
        put("defaultDirectory", json!(directory));
    }
    fields
}
