//! `initialize`: version, identity, first subscriptions; all answered in one step (H-020 to H-038).

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ext::system_message_transform as ext;
use wire::published::commands::InitializeParams;
use wire::rpc::code;
use wire::version::{self, NegotiationError};
use wire::{ChannelUri, Id, RpcError};

use crate::Kernel;
use crate::calls::Serving;
use crate::calls::completions::TRIGGER_CHARACTERS;
use crate::frame::{Frame, LateBody, LateResponse};
use crate::io::{CloseReason, Effect, PeerId};
use crate::load::{Flow, Memo};
use crate::peers::{Ready, Stage};
use crate::record::Record;

/// Longest client id taken, in bytes.
const CLIENT_ID_BYTES_MAX: usize = 512;

impl Kernel {
    pub(crate) fn initialize(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &InitializeParams,
        memo: &Memo,
    ) -> Flow<()> {
        let (version, generation) = match version::negotiate(&params.protocol_versions) {
            Ok(chosen) => chosen,
            Err(error) => {
                self.fail(peer, id, &error.to_rpc());
                if matches!(error, NegotiationError::None) {
                    self.out.effects.push(Effect::Close {
                        peer,
                        why: CloseReason::UnsupportedVersion,
                    }); // H-023
                }
                return Flow::Ready(());
            }
        };
        if params.client_id.is_empty() || params.client_id.len() > CLIENT_ID_BYTES_MAX {
            let message = format!("`clientId` must have 1 to {CLIENT_ID_BYTES_MAX} bytes");
            return self.answer_error(peer, id, &RpcError::new(code::INVALID_PARAMS, message));
        }
        let wanted =
            match self.wanted_channels(params.initial_subscriptions.as_deref().unwrap_or(&[])) {
                Ok(wanted) => wanted,
                Err(error) => return self.answer_error(peer, id, &error),
            };
        if self.supersede(peer, &params.client_id) {
            return Flow::Ready(());
        }
        let with_views: Vec<_> = wanted.iter().map(|uri| (uri.clone(), u32::MAX)).collect();
        let exist = match self.need_channels(&with_views, memo) {
            Flow::Ready(exist) => exist,
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        let ready = Ready {
            client_id: params.client_id.clone(),
            version,
            generation,
            capabilities: params.capabilities.as_ref().map(wire::action::to_value),
            locale: params.locale.clone(),
            transform: ext::of_meta(params.meta.as_ref()),
            volatile: false,
        };
        self.admit(peer, ready.clone());
        // A client that starts anew has no floors from before.
        if self.unwritable().is_none() {
            self.out.records.push(Record::ClientGone {
                client_id: ready.client_id.clone(),
            });
        }
        self.forgotten.remove(&ready.client_id);
        self.forget(&ready.client_id);
        self.record_client(&ready);
        // What does not exist is left out of the snapshots (H-029).
        let there: Vec<(ChannelUri, Option<u32>, Option<u32>)> = wanted
            .into_iter()
            .zip(exist)
            .filter(|(_, there)| *there)
            .map(|(uri, _)| (uri, None, None))
            .collect();
        let snapshots = self.snapshots_for(peer, &there, Serving::Anew);
        let mut fields = json!({
            "protocolVersion": ready.version.to_string(),
            "serverSeq": self.seq.0,
            "serverInfo": {"name": "greenroom", "version": self.facts.version},
            "completionTriggerCharacters": TRIGGER_CHARACTERS,
            "_meta": ext::support(),
        });
        if let Some(directory) = &self.facts.default_directory {
            fields["defaultDirectory"] = json!(directory);
        }
        let Value::Object(fields) = fields else {
            return Flow::Ready(());
        };
        let body = LateBody::Initialize { fields, snapshots };
        self.say(
            peer,
            Frame::Response(Arc::new(LateResponse {
                id: id.clone(),
                body,
            })),
        );
        Flow::Ready(())
    }

    /// Well-formed URIs, each once; too many are refused (G-21).
    pub(crate) fn wanted_channels(&self, texts: &[String]) -> Result<Vec<ChannelUri>, RpcError> {
        let most = self.limits.subscriptions_max;
        if texts.len() > most {
            let message = format!("at most {most} subscriptions per connection");
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        let mut wanted: Vec<ChannelUri> = Vec::with_capacity(texts.len());
        let mut seen = std::collections::BTreeSet::new();
        for uri in texts.iter().filter_map(|text| ChannelUri::parse(text).ok()) {
            if seen.insert(uri.clone()) {
                wanted.push(uri);
            }
        }
        Ok(wanted)
    }

    /// The connection belongs to this client from now on.
    pub(crate) fn admit(&mut self, peer: PeerId, ready: Ready) {
        self.clients.insert(ready.client_id.clone(), peer);
        self.lost.remove(&ready.client_id);
        self.undo.admitted.push(peer);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.stage = Stage::Ready(ready);
        }
    }
}
