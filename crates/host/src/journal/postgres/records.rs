//! Records into statements, each with its space.
//!
//! Promises: every statement names its space first; what a record needs is complete in its statements, in their order, without
//! an answer in between, so that a batch is one flight.
//! Must not know: when they are run, what the bytes mean.

use bytes::Bytes;
use kernel::{
    ChannelRecord, ClientRecord, FloorRecord, FrozenRecord, LoweredRecord, MessageRecord, Record,
    SummaryRecord,
};
use wire::Digest;
use wire::state::Turn;

use super::connection::{BoundStatement, int, values};
use super::{inspection, sweep};

/// `modified` of a session that is in no list: at the end of the index, where no page reaches.
pub(super) const UNLISTED: i64 = i64::MIN;
/// Instead of a turn: stored as long as the channel.
const OF_THE_CHANNEL: i64 = -1;
/// Lowered messages that are stored of a chat.
const LOWERED_MAX: i64 = 50;

/// The statements of a record.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn statements(space: i64, record: &Record) -> Vec<BoundStatement> {
    match record {
        Record::Action {
            seq,
            channel,
            envelope,
        } => vec![BoundStatement::new(
            "INSERT INTO greenroom.action (space, channel, seq, bytes) VALUES ($1, $2, $3, $4)",
            values![space, int(channel.0), int(seq.0), envelope.to_vec()],
        )],
        Record::Message(message) => put_message(space, message),
        Record::MessageStarted { id, turn_id } => vec![BoundStatement::new(
            "UPDATE greenroom.message SET turn_id = $3 WHERE space = $1 AND id = $2",
            values![space, id.clone(), turn_id.clone()],
        )],
        Record::MessageGone { id } => forget_message(space, id),
        Record::Frozen(frozen) => freeze(space, frozen),
        Record::PartReference { part_id, digest } => vec![refer_by_part(space, part_id, digest)],
        Record::Lowered(lowered) => put_lowered(space, lowered),
        Record::ModelOutput(output) => vec![BoundStatement::new(
            "INSERT INTO greenroom.model_output (space, chat, turn_id, round, json) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (space, chat, turn_id, round) DO UPDATE SET json = $5",
            values![
                space,
                int(output.chat.0),
                output.turn_id.clone(),
                int(output.round),
                output.json.to_vec()
            ],
        )],
        Record::FileChanges(changes) => vec![BoundStatement::new(
            "INSERT INTO greenroom.file_changes (space, channel, turn_id, json) VALUES ($1, $2, $3, $4)
             ON CONFLICT (space, channel, turn_id) DO UPDATE SET json = $4",
            values![
                space,
                int(changes.channel.0),
                changes.turn_id.clone(),
                changes.json.to_vec()
            ],
        )],
        Record::ModelCall(call) => inspection::put_call(space, call),
        Record::ModelCallEnd(end) => vec![inspection::put_end(space, end)],
        Record::Render(rendered) => inspection::put_render(space, rendered),
        Record::Channel(channel) => vec![put_channel(space, channel)],
        Record::Fork {
            chat,
            source,
            through_n,
            as_of,
        } => fork(
            space,
            [int(chat.0), int(source.0), int(*through_n), int(as_of.0)],
        ),
        Record::Turn { chat, n, turn } => vec![put_turn(space, int(chat.0), int(*n), turn)],
        Record::HideTurns { chat, from_n, at } => {
            hide_turns(space, int(chat.0), int(*from_n), int(at.0))
        }
        Record::Dispose { channel, at } => vec![BoundStatement::new(
            "UPDATE greenroom.channel SET disposed_at = $3
             WHERE space = $1 AND (id = $2 OR parent = $2) AND disposed_at IS NULL",
            values![space, int(channel.0), at.0],
        )],
        Record::Reference {
            channel,
            turn,
            digest,
            content_type,
        } => vec![BoundStatement::new(
            "INSERT INTO greenroom.reference (space, channel, turn, digest, content_type) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (space, channel, turn, digest)
                 DO UPDATE SET content_type = coalesce($5, greenroom.reference.content_type)",
            values![
                space,
                int(channel.0),
                turn.map_or(OF_THE_CHANNEL, int),
                digest.as_bytes().to_vec(),
                content_type.clone()
            ],
        )],
        Record::Summary(summary) => vec![put_summary(space, summary)],
        Record::SummaryGone { session } => vec![BoundStatement::new(
            "DELETE FROM greenroom.summary WHERE space = $1 AND session = $2",
            values![space, int(session.0)],
        )],
        Record::Checkpoint {
            chat,
            turn_id,
            data,
        } => vec![put_checkpoint(space, int(chat.0), turn_id, data.as_ref())],
        Record::Client(client) => vec![put_client(space, client)],
        Record::ClientGone { client_id } => forget_client(space, client_id),
        Record::Floor { client_id, floor } => vec![put_floor(space, client_id, floor)],
        Record::FloorGone { client_id, channel } => vec![BoundStatement::new(
            "DELETE FROM greenroom.floor WHERE space = $1 AND client_id = $2 AND channel = $3",
            values![space, client_id.clone(), channel.as_str().to_owned()],
        )],
        Record::Trim { through } => trim(space, int(through.0)),
        Record::Sweep {
            disposed_before,
            clients_before,
            clients_max,
        } => sweep::statements(space, disposed_before.0, clients_before.0, *clients_max),
    }
}

fn put_channel(space: i64, channel: &ChannelRecord) -> BoundStatement {
    BoundStatement::new(
        "WITH named AS (
             INSERT INTO greenroom.channel (space, id, uri, kind, parent, duty) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (space, id) DO UPDATE SET uri = $3, kind = $4, parent = $5, duty = $6
                 WHERE (channel.uri, channel.kind, channel.parent, channel.duty) IS DISTINCT FROM ($3, $4, $5, $6))
         INSERT INTO greenroom.head (space, channel, head_seq, private, bytes) VALUES ($1, $2, $7, $8, $9)
             ON CONFLICT (space, channel) DO UPDATE SET head_seq = $7, private = $8, bytes = $9",
        values![
            space,
            int(channel.id.0),
            channel.uri.as_str().to_owned(),
            i16::from(channel.kind.to_code()),
            channel.parent.map(|parent| int(parent.0)),
            i16::from(channel.boot_work.to_bits()),
            int(channel.head_seq.0),
            channel.private.to_vec(),
            channel.head.encode(),
        ],
    )
}

/// A fork sees what its source sees: the source's own ranges as far as they are visible, then the source's own rows.
fn fork(space: i64, [chat, source, through_n, as_of]: [i64; 4]) -> Vec<BoundStatement> {
    vec![
        BoundStatement::new(
            "INSERT INTO greenroom.turn_range (space, chat, pos, source, first_n, last_n, visible_n, as_of)
             SELECT $1, $2, pos, source, first_n, least(visible_n, $4), least(visible_n, $4), as_of
             FROM greenroom.turn_range WHERE space = $1 AND chat = $3 AND first_n <= least(visible_n, $4)",
            values![space, chat, source, through_n],
        ),
        BoundStatement::new(
            "INSERT INTO greenroom.turn_range (space, chat, pos, source, first_n, last_n, visible_n, as_of)
             SELECT $1, $2, coalesce(max(pos), -1) + 1, $3, coalesce(max(last_n), -1) + 1, $4, $4, $5
             FROM greenroom.turn_range WHERE space = $1 AND chat = $2 HAVING coalesce(max(last_n), -1) < $4",
            values![space, chat, source, through_n, as_of],
        ),
    ]
}

fn put_turn(space: i64, chat: i64, n: i64, turn: &Turn) -> BoundStatement {
    BoundStatement::new(
        "INSERT INTO greenroom.turn (space, channel, n, id, outcome, size, body) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        values![
            space,
            chat,
            n,
            turn.id.clone(),
            i16::from(turn.outcome.to_code()),
            int(turn.json.len() as u64),
            turn.json.to_vec()
        ],
    )
}

fn hide_turns(space: i64, chat: i64, from_n: i64, at: i64) -> Vec<BoundStatement> {
    vec![
        BoundStatement::new(
            "UPDATE greenroom.turn SET hidden_at = $4
             WHERE space = $1 AND channel = $2 AND n >= $3 AND hidden_at IS NULL",
            values![space, chat, from_n, at],
        ),
        BoundStatement::new(
            "UPDATE greenroom.turn_range SET visible_n = $3 - 1
             WHERE space = $1 AND chat = $2 AND visible_n >= $3",
            values![space, chat, from_n],
        ),
    ]
}

fn put_message(space: i64, message: &MessageRecord) -> Vec<BoundStatement> {
    let mut statements = vec![BoundStatement::new(
        "INSERT INTO greenroom.message (space, id, session, chat, turn_id, created_at, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        values![
            space,
            message.id.clone(),
            int(message.session.0),
            int(message.chat.0),
            message.turn_id.clone(),
            message.at.0,
            message.metadata.to_vec()
        ],
    )];
    let parts = &message.parts;
    if !parts.is_empty() {
        statements.push(BoundStatement::new(
            "INSERT INTO greenroom.part (space, id, message, pos, type, json)
             SELECT $1, part.id, $2, part.pos - 1, part.kind, part.json
             FROM unnest($3::text[], $4::text[], $5::bytea[]) WITH ORDINALITY AS part(id, kind, json, pos)",
            values![
                space,
                message.id.clone(),
                parts.iter().map(|part| part.id.clone()).collect::<Vec<String>>(),
                parts.iter().map(|part| part.kind.clone()).collect::<Vec<String>>(),
                parts.iter().map(|part| part.json.to_vec()).collect::<Vec<Vec<u8>>>()
            ],
        ));
    }
    statements
}

fn forget_message(space: i64, id: &str) -> Vec<BoundStatement> {
    let sql = [
        "DELETE FROM greenroom.part_reference WHERE space = $1
             AND part IN (SELECT id FROM greenroom.part WHERE space = $1 AND message = $2)",
        "DELETE FROM greenroom.frozen WHERE space = $1
             AND part IN (SELECT id FROM greenroom.part WHERE space = $1 AND message = $2)",
        "DELETE FROM greenroom.part WHERE space = $1 AND message = $2",
        "DELETE FROM greenroom.message WHERE space = $1 AND id = $2",
    ];
    sql.map(|sql| BoundStatement::new(sql, values![space, id.to_owned()])).into()
}

/// The first time counts, and only for a part that is still there.
fn freeze(space: i64, frozen: &FrozenRecord) -> Vec<BoundStatement> {
    vec![BoundStatement::new(
        "WITH now AS (
             INSERT INTO greenroom.frozen (space, part, json)
             SELECT $1, id, $3 FROM greenroom.part WHERE space = $1 AND id = $2
             ON CONFLICT (space, part) DO NOTHING RETURNING part)
         INSERT INTO greenroom.part_reference (space, part, digest)
         SELECT $1, part, $4 FROM now WHERE $4::bytea IS NOT NULL
         ON CONFLICT (space, part, digest) DO NOTHING",
        values![
            space,
            frozen.part_id.clone(),
            frozen.json.to_vec(),
            frozen.digest.map(|digest| digest.as_bytes().to_vec())
        ],
    )]
}

/// A part that is gone refers to nothing.
fn refer_by_part(space: i64, part: &str, digest: &Digest) -> BoundStatement {
    BoundStatement::new(
        "INSERT INTO greenroom.part_reference (space, part, digest)
         SELECT $1, id, $3 FROM greenroom.part WHERE space = $1 AND id = $2
         ON CONFLICT (space, part, digest) DO NOTHING",
        values![space, part.to_owned(), digest.as_bytes().to_vec()],
    )
}

fn put_lowered(space: i64, lowered: &LoweredRecord) -> Vec<BoundStatement> {
    let chat = int(lowered.chat.0);
    vec![
        BoundStatement::new(
            "INSERT INTO greenroom.lowered (space, chat, turn_id, at, target, model, blocks, diagnostics)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            values![
                space,
                chat,
                lowered.turn_id.clone(),
                lowered.at.0,
                lowered.target.clone(),
                lowered.model.clone(),
                lowered.blocks.to_vec(),
                lowered.diagnostics.to_vec()
            ],
        ),
        BoundStatement::new(
            "DELETE FROM greenroom.lowered WHERE space = $1 AND chat = $2 AND id <= (SELECT id FROM greenroom.lowered
                 WHERE space = $1 AND chat = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)",
            values![space, chat, LOWERED_MAX],
        ),
    ]
}

fn put_summary(space: i64, summary: &SummaryRecord) -> BoundStatement {
    let modified = if summary.is_listed() { summary.modified.0 } else { UNLISTED };
    BoundStatement::new(
        "INSERT INTO greenroom.summary (space, session, uri, modified, created, empty, creator, json)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (space, session) DO UPDATE
             SET uri = $3, modified = $4, created = $5, empty = $6, creator = $7, json = $8",
        values![
            space,
            int(summary.session.0),
            summary.uri.as_str().to_owned(),
            modified,
            summary.created.0,
            summary.empty,
            summary.creator.clone(),
            summary.json.to_vec()
        ],
    )
}

/// Without data it is removed, but only that of the same turn.
fn put_checkpoint(space: i64, chat: i64, turn_id: &str, data: Option<&Bytes>) -> BoundStatement {
    match data {
        Some(data) => BoundStatement::new(
            "INSERT INTO greenroom.checkpoint (space, chat, turn_id, data) VALUES ($1, $2, $3, $4)
             ON CONFLICT (space, chat) DO UPDATE SET turn_id = $3, data = $4",
            values![space, chat, turn_id.to_owned(), data.to_vec()],
        ),
        None => BoundStatement::new(
            "DELETE FROM greenroom.checkpoint WHERE space = $1 AND chat = $2 AND turn_id = $3",
            values![space, chat, turn_id.to_owned()],
        ),
    }
}

fn put_client(space: i64, client: &ClientRecord) -> BoundStatement {
    BoundStatement::new(
        "INSERT INTO greenroom.client (space, client_id, version, capabilities, locale, last_seen_ms, transform)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (space, client_id) DO UPDATE
             SET version = $3, capabilities = $4, locale = $5, last_seen_ms = $6, transform = $7",
        values![
            space,
            client.client_id.clone(),
            client.version.clone(),
            client.capabilities.as_ref().map(ToString::to_string),
            client.locale.clone(),
            client.last_seen_ms,
            client
                .transform
                .as_ref()
                .map(|ids| serde_json::json!(ids).to_string())
        ],
    )
}

fn forget_client(space: i64, client_id: &str) -> Vec<BoundStatement> {
    let sql = [
        "DELETE FROM greenroom.client WHERE space = $1 AND client_id = $2",
        "DELETE FROM greenroom.floor WHERE space = $1 AND client_id = $2",
    ];
    sql.map(|sql| BoundStatement::new(sql, values![space, client_id.to_owned()])).into()
}

fn put_floor(space: i64, client_id: &str, floor: &FloorRecord) -> BoundStatement {
    BoundStatement::new(
        "INSERT INTO greenroom.floor (space, client_id, channel, floor, replaced, oldest_turn, view_turns, max_latency_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (space, client_id, channel) DO UPDATE
             SET floor = $4, replaced = $5, oldest_turn = $6, view_turns = $7, max_latency_ms = $8",
        values![
            space,
            client_id.to_owned(),
            floor.channel.as_str().to_owned(),
            int(floor.floor.0),
            floor.replaced,
            floor.oldest_turn.clone(),
            floor.view_turns.map(i64::from),
            floor.max_latency_ms.map(i64::from)
        ],
    )
}

/// Actions that a live channel's head does not hold yet stay: loading the channel needs them.
fn trim(space: i64, through: i64) -> Vec<BoundStatement> {
    vec![
        BoundStatement::new(
            "DELETE FROM greenroom.action USING (
                 SELECT id, coalesce((SELECT head_seq FROM greenroom.head
                     WHERE head.space = $1 AND head.channel = channel.id AND disposed_at IS NULL), $2) AS held
                 FROM greenroom.channel WHERE space = $1) AS kept
             WHERE action.space = $1 AND action.channel = kept.id AND action.seq <= least($2, kept.held)",
            values![space, through],
        ),
        BoundStatement::new(
            "DELETE FROM greenroom.action WHERE space = $1 AND seq <= $2 AND NOT EXISTS (
                 SELECT 1 FROM greenroom.channel WHERE channel.space = $1 AND channel.id = action.channel)",
            values![space, through],
        ),
        BoundStatement::new(
            "UPDATE greenroom.lease SET log_floor = greatest(log_floor, $2) WHERE space = $1",
            values![space, through],
        ),
    ]
}
