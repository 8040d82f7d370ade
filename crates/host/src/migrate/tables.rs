//! Which tables are carried, in which order, and what their rows are made of in either store.
//!
//! Promises: a row is the same list of values from both; rows come in the order of their key. Numbers that a store gives to rows
//! for itself (of bodies, of pieces, of renders) are not carried: only what they stand for is.
//! Must not know: how rows travel.

use super::row::ColumnKind::{self, Big, Bytes, Flag, Small, Text};

/// One table. Bodies are none: they are files in a directory, and carried one by one.
pub(super) struct CarriedTable {
    /// As PostgreSQL has it.
    pub(super) name: &'static str,
    /// Without `space`, which comes first there.
    pub(super) columns: &'static [(&'static str, ColumnKind)],
    /// The order, as PostgreSQL is asked for it.
    pub(super) order: &'static str,
    /// The same columns in the same order, from SQLite.
    pub(super) sqlite: &'static str,
}

/// Parts come after their messages, heads after channels, calls after pieces: in SQLite the later one needs the earlier.
pub(super) const TABLES: [CarriedTable; 20] = [
    CarriedTable {
        name: "channel",
        columns: &[("id", Big), ("uri", Text), ("kind", Small), ("parent", Big), ("duty", Small), ("disposed_at", Big)],
        order: "id",
        sqlite: "SELECT id, uri, kind, parent, duty, disposed_at FROM channel ORDER BY id",
    },
    CarriedTable {
        name: "head",
        columns: &[("channel", Big), ("head_seq", Big), ("private", Bytes), ("bytes", Bytes)],
        order: "channel",
        sqlite: "SELECT id, head_seq, private, head FROM channel ORDER BY id",
    },
    CarriedTable {
        name: "action",
        columns: &[("channel", Big), ("seq", Big), ("bytes", Bytes)],
        order: "channel, seq",
        sqlite: "SELECT action.channel, action.seq, coalesce(large_action.bytes, action.bytes) FROM action
             LEFT JOIN large_action ON large_action.channel = action.channel AND large_action.seq = action.seq
             ORDER BY action.channel, action.seq",
    },
    CarriedTable {
        name: "turn",
        columns: &[("channel", Big), ("n", Big), ("id", Text), ("outcome", Small), ("hidden_at", Big), ("size", Big), ("body", Bytes)],
        order: "channel, n",
        sqlite: "SELECT channel, n, turn.id, outcome, hidden_at, size, turn_body.bytes FROM turn
             JOIN turn_body ON turn_body.id = turn.body ORDER BY channel, n",
    },
    CarriedTable {
        name: "turn_range",
        columns: &[("chat", Big), ("pos", Big), ("source", Big), ("first_n", Big), ("last_n", Big), ("visible_n", Big), ("as_of", Big)],
        order: "chat, pos",
        sqlite: "SELECT chat, pos, source, first_n, last_n, visible_n, as_of FROM turn_range ORDER BY chat, pos",
    },
    CarriedTable {
        name: "summary",
        columns: &[("session", Big), ("uri", Text), ("modified", Big), ("created", Big), ("empty", Flag), ("creator", Text), ("json", Bytes)],
        order: "session",
        sqlite: "SELECT session, uri, modified, created, empty, creator, json FROM summary ORDER BY session",
    },
    CarriedTable {
        name: "client",
        columns: &[("client_id", Text), ("version", Text), ("capabilities", Text), ("locale", Text), ("last_seen_ms", Big), ("transform", Text)],
        order: "client_id COLLATE \"C\"",
        sqlite: "SELECT client_id, version, capabilities, locale, last_seen_ms, transform FROM client ORDER BY client_id",
    },
    CarriedTable {
        name: "floor",
        columns: &[("client_id", Text), ("channel", Text), ("floor", Big), ("replaced", Flag), ("oldest_turn", Text), ("view_turns", Big), ("max_latency_ms", Big)],
        order: "client_id COLLATE \"C\", channel COLLATE \"C\"",
        sqlite: "SELECT client_id, channel, floor, replaced, oldest_turn, view_turns, max_latency_ms FROM floor
             ORDER BY client_id, channel",
    },
    CarriedTable {
        name: "checkpoint",
        columns: &[("chat", Big), ("turn_id", Text), ("data", Bytes)],
        order: "chat",
        sqlite: "SELECT chat, turn_id, data FROM checkpoint ORDER BY chat",
    },
    CarriedTable {
        name: "message",
        columns: &[("id", Text), ("session", Big), ("chat", Big), ("turn_id", Text), ("created_at", Big), ("metadata", Bytes)],
        order: "id COLLATE \"C\"",
        sqlite: "SELECT id, session_id, chat, turn_id, created_at, CAST(metadata_json AS BLOB) FROM chat_messages ORDER BY id",
    },
    CarriedTable {
        name: "part",
        columns: &[("id", Text), ("message", Text), ("pos", Big), ("type", Text), ("json", Bytes)],
        order: "id COLLATE \"C\"",
        sqlite: "SELECT id, message_id, \"index\", type, CAST(data_json AS BLOB) FROM chat_parts ORDER BY id",
    },
    CarriedTable {
        name: "frozen",
        columns: &[("part", Text), ("json", Bytes)],
        order: "part COLLATE \"C\"",
        sqlite: "SELECT part_id, json FROM frozen ORDER BY part_id",
    },
    CarriedTable {
        name: "part_reference",
        columns: &[("part", Text), ("digest", Bytes)],
        order: "part COLLATE \"C\", digest",
        sqlite: "SELECT part_id, digest FROM part_reference ORDER BY part_id, digest",
    },
    CarriedTable {
        name: "model_output",
        columns: &[("chat", Big), ("turn_id", Text), ("round", Big), ("json", Bytes)],
        order: "chat, turn_id COLLATE \"C\", round",
        sqlite: "SELECT chat, turn_id, round, json FROM model_output ORDER BY chat, turn_id, round",
    },
    CarriedTable {
        name: "file_changes",
        columns: &[("channel", Big), ("turn_id", Text), ("json", Bytes)],
        order: "channel, turn_id COLLATE \"C\"",
        sqlite: "SELECT channel, turn_id, json FROM file_changes ORDER BY channel, turn_id",
    },
    CarriedTable {
        name: "reference",
        columns: &[("channel", Big), ("turn", Big), ("digest", Bytes), ("content_type", Text)],
        order: "channel, turn, digest",
        sqlite: "SELECT channel, turn, digest, content_type FROM reference ORDER BY channel, turn, digest",
    },
    CarriedTable {
        name: "render",
        columns: &[("chat", Big), ("turn_id", Text), ("at", Big), ("before_json", Bytes), ("after_json", Bytes), ("outcome", Text), ("asked_json", Bytes)],
        order: "chat, id",
        sqlite: "SELECT chat, turn_id, at, CAST(before_json AS BLOB), CAST(after_json AS BLOB), outcome, CAST(asked_json AS BLOB)
             FROM render ORDER BY chat, id",
    },
    CarriedTable {
        name: "lowered",
        columns: &[("chat", Big), ("turn_id", Text), ("at", Big), ("target", Text), ("model", Text), ("blocks", Bytes), ("diagnostics", Bytes)],
        order: "chat, id",
        sqlite: "SELECT chat, turn_id, at, provider, model, CAST(blocks_json AS BLOB), CAST(diagnostics_json AS BLOB)
             FROM lowered ORDER BY chat, id",
    },
    CarriedTable {
        name: "sent_piece",
        columns: &[("chat", Big), ("digest", Bytes), ("content_type", Text), ("size", Big), ("last_call", Big), ("bytes", Bytes)],
        order: "chat, digest, content_type COLLATE \"C\"",
        sqlite: "SELECT chat, digest, coalesce(content_type, '') AS type, size, last_call, sent_piece_body.bytes
             FROM sent_piece LEFT JOIN sent_piece_body ON sent_piece_body.id = sent_piece.id
             ORDER BY chat, digest, type",
    },
    CarriedTable {
        name: "model_call",
        columns: &[("chat", Big), ("n", Big), ("key", Big), ("turn_id", Text), ("at", Big), ("ended_at", Big), ("purpose", Text),
            ("round", Big), ("api", Text), ("model", Text), ("body_bytes", Big), ("body_digest", Bytes), ("body_layout", Bytes),
            ("details_layout", Bytes), ("end_json", Bytes)],
        order: "chat, n",
        sqlite: "SELECT chat, n, key, turn_id, at, ended_at, purpose, round, api, model, body_bytes, body_digest,
                 CAST(body_layout AS BLOB), CAST(details_layout AS BLOB), CAST(end_json AS BLOB)
             FROM model_call ORDER BY chat, n",
    },
];

/// Where layouts stand in a row of `model_call`.
pub(super) const LAYOUTS: [usize; 2] = [12, 13];
