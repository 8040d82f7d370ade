//! What models were sent, and how prompts were rendered: for the operator alone (G-37).
//!
//! Promises: a piece of a request is stored once for each chat, however many calls repeat it; calls are numbered from 1 in
//! their chat; what is too old or too much goes with the call that comes.
//! Must not know: what is in a request.

use bytes::Bytes;
use kernel::{DocumentPiece, ModelCallEndRecord, ModelCallRecord, Rendered};
use serde_json::{Value, json};
use wire::Digest;

use super::connection::{BoundStatement, int, values};
use crate::journal::sqlite::{RENDERS_KEPT, asked_json, section_json};

/// A piece belongs to the call that this batch brings, whose row is written after it.
const PUT_PIECE: &str = "INSERT INTO greenroom.sent_piece (space, chat, digest, content_type, size, last_call, bytes)
     VALUES ($1, $2, $3, $4, $5,
         (SELECT coalesce(max(n), 0) + 1 FROM greenroom.model_call WHERE space = $1 AND chat = $2), $6)
     ON CONFLICT (space, chat, digest, content_type) DO UPDATE SET last_call = excluded.last_call";

const PUT_CALL: &str = "INSERT INTO greenroom.model_call (space, chat, n, key, turn_id, at, purpose, round, api, model,
         body_bytes, body_digest, body_layout, details_layout)
     SELECT $1, $2, coalesce(max(n), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
     FROM greenroom.model_call WHERE space = $1 AND chat = $2";

/// Calls that must go, so that no more are left than may be, and no more bytes; the newest stays. The pieces that no later one
/// repeated go with them.
const FORGET: &str = "WITH sizes AS (
         SELECT last_call AS call, size FROM greenroom.sent_piece
             WHERE space = $1 AND chat = $2 AND content_type = ''
         UNION ALL
         SELECT n, octet_length(body_layout) + octet_length(details_layout) FROM greenroom.model_call
             WHERE space = $1 AND chat = $2),
     sums AS (SELECT call, sum(sum(size)) OVER (ORDER BY call DESC) AS newer FROM sizes GROUP BY call),
     oldest AS (SELECT least(max(n) - 1, greatest(max(n) - $3,
             coalesce((SELECT max(call) FROM sums WHERE newer > $4::bigint), 0))) AS gone
         FROM greenroom.model_call WHERE space = $1 AND chat = $2),
     pieces AS (DELETE FROM greenroom.sent_piece USING oldest
         WHERE space = $1 AND chat = $2 AND last_call <= gone)
     DELETE FROM greenroom.model_call USING oldest WHERE space = $1 AND chat = $2 AND n <= gone";

pub(super) fn put_call(space: i64, call: &ModelCallRecord) -> Vec<BoundStatement> {
    let chat = int(call.chat.0);
    let mut statements = Vec::new();
    let body = put_document(space, chat, &call.body, &mut statements);
    let details = put_document(space, chat, &call.details, &mut statements);
    statements.push(BoundStatement::new(
        PUT_CALL,
        values![
            space,
            chat,
            int(call.key),
            call.turn_id.clone(),
            call.at.0,
            call.purpose.clone(),
            int(call.round),
            call.api.clone(),
            call.model.clone(),
            int(call.body_bytes),
            call.body_digest.as_bytes().to_vec(),
            body,
            details
        ],
    ));
    statements.push(BoundStatement::new(
        FORGET,
        values![space, chat, int(call.calls_max), int(call.bytes_max)],
    ));
    statements
}

/// Stores the pieces of a document that are new; what it is made of, as JSON: texts, and names of pieces.
fn put_document(
    space: i64,
    chat: i64,
    pieces: &[DocumentPiece],
    statements: &mut Vec<BoundStatement>,
) -> Vec<u8> {
    let mut put = |digest: &Digest, content_type: &str, size: u64, bytes: Option<&Bytes>| {
        statements.push(BoundStatement::new(
            PUT_PIECE,
            values![
                space,
                chat,
                digest.as_bytes().to_vec(),
                content_type.to_owned(),
                int(size),
                bytes.map(|bytes| bytes.to_vec())
            ],
        ));
        json!({"digest": digest.to_hex(), "type": content_type})
    };
    let layout: Value = pieces
        .iter()
        .map(|piece| match piece {
            DocumentPiece::Short(text) => match std::str::from_utf8(text) {
                Ok(text) => json!(text),
                Err(_) => put(&crate::blobs::digest_of(text), "", text.len() as u64, Some(text)),
            },
            DocumentPiece::Shared { digest, bytes } => {
                put(digest, "", bytes.len() as u64, Some(bytes))
            }
            DocumentPiece::Body { digest, bytes, content_type } => {
                put(digest, content_type, *bytes, None)
            }
        })
        .collect();
    layout.to_string().into_bytes()
}

/// How a call ended. One that is gone has no end.
pub(super) fn put_end(space: i64, end: &ModelCallEndRecord) -> BoundStatement {
    BoundStatement::new(
        "UPDATE greenroom.model_call SET ended_at = $3, end_json = $4 WHERE space = $1 AND key = $2",
        values![space, int(end.key), end.at.0, end.json.to_vec()],
    )
}

pub(super) fn put_render(space: i64, rendered: &Rendered) -> Vec<BoundStatement> {
    let chat = int(rendered.chat.0);
    let before: Value = rendered.before.iter().map(section_json).collect();
    let asked = rendered.transform.attempt();
    let asked = asked.map(|asked| asked_json(asked, &rendered.transform).to_string().into_bytes());
    vec![
        BoundStatement::new(
            "INSERT INTO greenroom.render (space, chat, turn_id, at, before_json, after_json, outcome, asked_json)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            values![
                space,
                chat,
                rendered.turn_id.clone().unwrap_or_default(),
                rendered.at.0,
                before.to_string().into_bytes(),
                json!(rendered.rewritten).to_string().into_bytes(),
                rendered.transform.outcome_name().to_owned(),
                asked
            ],
        ),
        BoundStatement::new(
            "DELETE FROM greenroom.render WHERE space = $1 AND chat = $2 AND id <= (SELECT id FROM greenroom.render
                 WHERE space = $1 AND chat = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)",
            values![space, chat, RENDERS_KEPT],
        ),
    ]
}
