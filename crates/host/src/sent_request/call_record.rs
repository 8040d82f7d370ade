//! A call of a model as it is recorded.
//!
//! Promises: a body is in the blob store before a record names it.
//! Must not know: who made the call.

use agent_api::{CallEnd, ModelCall, PartDecision, Section};
use bytes::Bytes;
use kernel::{ChannelId, DocumentPiece, ModelCallEndRecord, ModelCallRecord, Record};
use serde_json::{Value, json};
use wire::{Timestamp, rpc};

use super::{CallRetention, SplitPiece, split};
use crate::blobs::{BlobError, Blobs, digest_of};

/// Identity of a recorded call: its turn, and the key by which its end is recorded.
pub(crate) struct CallIdentity {
    pub chat: ChannelId,
    pub turn_id: String,
    pub key: u64,
}

/// Makes the record of a call. May wait for a disk.
pub(crate) fn make_record(
    call: &ModelCall,
    recorded_as: CallIdentity,
    at: Timestamp,
    retention: CallRetention,
    blobs: &dyn Blobs,
) -> Result<Record, BlobError> {
    let details = rpc::to_json(&details_of(call));
    Ok(Record::ModelCall(Box::new(ModelCallRecord {
        chat: recorded_as.chat,
        key: recorded_as.key,
        turn_id: recorded_as.turn_id,
        at,
        purpose: call.purpose.name().to_owned(),
        round: call.round,
        api: call.api.to_owned(),
        model: call.model.clone(),
        body_bytes: u64::try_from(call.body.len()).unwrap_or(u64::MAX),
        body_digest: digest_of(&call.body),
        body: store_pieces(&call.body, blobs, at)?,
        details: store_pieces(&details, blobs, at)?,
        calls_max: retention.calls_max,
        bytes_max: retention.bytes_max,
    })))
}

fn store_pieces(
    document: &[u8],
    blobs: &dyn Blobs,
    now: Timestamp,
) -> Result<Vec<DocumentPiece>, BlobError> {
    let pieces = split(document).into_iter().map(|piece| {
        let is_shared = piece.is_shared();
        Ok(match piece {
            SplitPiece::Text(text) if is_shared => DocumentPiece::Shared {
                digest: digest_of(text),
                bytes: Bytes::copy_from_slice(text),
            },
            SplitPiece::Text(text) => DocumentPiece::Short(Bytes::copy_from_slice(text)),
            SplitPiece::Body { bytes, content_type } => DocumentPiece::Body {
                digest: blobs.put(&bytes, now)?,
                bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                content_type,
            },
        })
    });
    pieces.collect()
}

/// What is known of a call besides its body. Lists stand at the top, so that calls share their elements.
fn details_of(call: &ModelCall) -> Value {
    let section = |before: &Section| {
        let mut after = call.sections_after.iter();
        let after = after.find(|after| after.id == before.id);
        let after = after.map(|after| after.content.as_ref());
        json!({"id": before.id, "before": before.content, "after": after})
    };
    json!({
        "url": call.url,
        "headers": call.headers,
        "sections": call.sections_before.iter().map(section).collect::<Value>(),
        "decisions": call.decisions.iter().map(decision_json).collect::<Value>(),
    })
}

fn decision_json(decision: &PartDecision) -> Value {
    json!({
        "message": decision.message,
        "part": decision.part,
        "kind": decision.kind,
        "name": decision.name,
        "treatment": decision.treatment.name(),
        "became": decision.became,
        "why": decision.why,
        "bytes": decision.bytes,
        "tokens": decision.tokens,
    })
}

/// The record of how a call ended.
pub(crate) fn end_record(key: u64, end: &CallEnd, at: Timestamp) -> Record {
    let json = json!({
        "outcome": end.outcome.name(),
        "reason": end.outcome.reason(),
        "inputTokens": end.input_tokens,
        "outputTokens": end.output_tokens,
        "cacheReadTokens": end.cache_read_tokens,
        "cacheWriteTokens": end.cache_write_tokens,
        "cost": end.cost,
        "repeats": end.repeats,
    });
    Record::ModelCallEnd(ModelCallEndRecord { key, at, json: Bytes::from(rpc::to_json(&json)) })
}
