//! Housekeeping: rows nobody can ask for any more.
//!
//! Promises: one sweep is bounded work, the next goes on where it stopped; a turn stays as long as a fork refers to it,
//! whatever became of its own chat.
//! Must not know: how long anything is retained.

use super::connection::{BoundStatement, values};

/// `disposed_at` of a channel that is gone but for turns that forks refer to: no sweep finds it until it is let go.
const HELD: i64 = i64::MAX;
/// `disposed_at` of such a channel once a fork is gone: first in line for the next sweep.
const LET_GO: i64 = i64::MIN;

/// Channels that a sweep looks at, by `$1` and `$2`; few enough not to hold up everybody's batches.
macro_rules! due {
    () => {
        "(SELECT id FROM greenroom.channel WHERE space = $1 AND disposed_at < $2 ORDER BY disposed_at, id LIMIT 100)"
    };
}

/// Those of them that have nothing left to be removed row by row.
macro_rules! emptied {
    () => {
        concat!(
            "(SELECT due.id FROM ", due!(), " AS due
             WHERE NOT EXISTS (SELECT 1 FROM greenroom.action WHERE space = $1 AND channel = due.id)
             AND NOT EXISTS (SELECT 1 FROM greenroom.turn WHERE space = $1 AND channel = due.id AND NOT EXISTS (
                 SELECT 1 FROM greenroom.turn_range WHERE space = $1 AND source = due.id
                     AND turn.n BETWEEN first_n AND last_n)))"
        )
    };
}

const ACTIONS: &str = concat!(
    "DELETE FROM greenroom.action WHERE space = $1 AND (channel, seq) IN (
         SELECT channel, seq FROM greenroom.action WHERE space = $1 AND channel IN ",
    due!(),
    " LIMIT 2000)"
);

const TURNS: &str = concat!(
    "DELETE FROM greenroom.turn WHERE space = $1 AND (channel, n) IN (
         SELECT channel, n FROM greenroom.turn WHERE space = $1 AND channel IN ", due!(), " AND NOT EXISTS (
             SELECT 1 FROM greenroom.turn_range AS range WHERE range.space = $1 AND range.source = turn.channel
                 AND turn.n BETWEEN range.first_n AND range.last_n) LIMIT 2000)"
);

const REFERENCES: &str = concat!(
    "DELETE FROM greenroom.reference WHERE space = $1 AND channel IN ", due!(), " AND (turn = -1 OR NOT EXISTS (
         SELECT 1 FROM greenroom.turn WHERE turn.space = $1 AND turn.channel = reference.channel AND turn.n = reference.turn))"
);

/// Messages of no turn that is left.
macro_rules! orphans {
    () => {
        concat!(
            "(SELECT id FROM greenroom.message WHERE space = $1 AND chat IN ", due!(), " AND NOT EXISTS (
                 SELECT 1 FROM greenroom.turn
                     WHERE turn.space = $1 AND turn.channel = message.chat AND turn.id = message.turn_id))"
        )
    };
}

const PART_REFERENCES: &str = concat!(
    "DELETE FROM greenroom.part_reference WHERE space = $1 AND part IN (
         SELECT id FROM greenroom.part WHERE space = $1 AND message IN ",
    orphans!(),
    ")"
);

const FROZEN: &str = concat!(
    "DELETE FROM greenroom.frozen WHERE space = $1 AND part IN (
         SELECT id FROM greenroom.part WHERE space = $1 AND message IN ",
    orphans!(),
    ")"
);

const PARTS: &str =
    concat!("DELETE FROM greenroom.part WHERE space = $1 AND message IN ", orphans!());

const MESSAGES: &str =
    concat!("DELETE FROM greenroom.message WHERE space = $1 AND id IN ", orphans!());

const OUTPUTS: &str = concat!(
    "DELETE FROM greenroom.model_output WHERE space = $1 AND chat IN ",
    due!(),
    " AND NOT EXISTS (
         SELECT 1 FROM greenroom.turn WHERE turn.space = $1 AND turn.channel = model_output.chat
             AND turn.id = model_output.turn_id)"
);

const FILE_CHANGES: &str = concat!(
    "DELETE FROM greenroom.file_changes WHERE space = $1 AND channel IN ",
    due!(),
    " AND NOT EXISTS (
         SELECT 1 FROM greenroom.turn WHERE turn.space = $1 AND turn.channel = file_changes.channel
             AND turn.id = file_changes.turn_id)"
);

const INSPECTED: [&str; 5] = [
    concat!("DELETE FROM greenroom.checkpoint WHERE space = $1 AND chat IN ", emptied!()),
    concat!("DELETE FROM greenroom.render WHERE space = $1 AND chat IN ", emptied!()),
    concat!("DELETE FROM greenroom.lowered WHERE space = $1 AND chat IN ", emptied!()),
    concat!("DELETE FROM greenroom.sent_piece WHERE space = $1 AND chat IN ", emptied!()),
    concat!("DELETE FROM greenroom.model_call WHERE space = $1 AND chat IN ", emptied!()),
];

/// What is emptied goes, but for what forks refer to. In one statement: what it lets go of is due for the next sweep only.
const BURY: &str = concat!(
    "WITH emptied AS (SELECT id FROM ", emptied!(), " AS found),
     held AS (UPDATE greenroom.channel SET disposed_at = CASE WHEN EXISTS (SELECT 1 FROM greenroom.turn_range AS range
             WHERE range.space = $1 AND range.source = channel.id AND range.chat NOT IN (SELECT id FROM emptied))
             THEN $3::bigint ELSE $4::bigint END WHERE space = $1 AND id IN (SELECT id FROM emptied)
         AND EXISTS (SELECT 1 FROM greenroom.turn WHERE space = $1 AND turn.channel = channel.id)),
     gone AS (DELETE FROM greenroom.channel WHERE space = $1 AND id IN (SELECT id FROM emptied)
         AND NOT EXISTS (SELECT 1 FROM greenroom.turn WHERE space = $1 AND turn.channel = channel.id)),
     heads AS (DELETE FROM greenroom.head WHERE space = $1 AND channel IN (SELECT id FROM emptied)),
     let_go AS (UPDATE greenroom.channel SET disposed_at = $4 WHERE space = $1 AND disposed_at = $3
         AND id IN (SELECT source FROM greenroom.turn_range WHERE space = $1 AND chat IN (SELECT id FROM emptied)))
     DELETE FROM greenroom.turn_range WHERE space = $1 AND chat IN (SELECT id FROM emptied)"
);

const STALE_CLIENTS: &str = "WITH gone AS (DELETE FROM greenroom.client WHERE space = $1 AND client_id IN (
         SELECT client_id FROM greenroom.client WHERE space = $1 AND last_seen_ms < $2 ORDER BY last_seen_ms LIMIT 1000)
         RETURNING client_id)
     DELETE FROM greenroom.floor USING gone WHERE floor.space = $1 AND floor.client_id = gone.client_id";

const OLDEST_CLIENTS: &str = "WITH gone AS (DELETE FROM greenroom.client WHERE space = $1 AND client_id IN (
         SELECT client_id FROM greenroom.client WHERE space = $1 ORDER BY last_seen_ms, client_id
         LIMIT (SELECT greatest(0, least(1000, count(*) - $2)) FROM greenroom.client WHERE space = $1))
         RETURNING client_id)
     DELETE FROM greenroom.floor USING gone WHERE floor.space = $1 AND floor.client_id = gone.client_id";

pub(super) fn statements(
    space: i64,
    disposed_before: i64,
    clients_before: i64,
    clients_max: u32,
) -> Vec<BoundStatement> {
    let of_channels = [
        ACTIONS,
        TURNS,
        REFERENCES,
        PART_REFERENCES,
        FROZEN,
        PARTS,
        MESSAGES,
        OUTPUTS,
        FILE_CHANGES,
    ]
    .into_iter()
    .chain(INSPECTED);
    let mut statements: Vec<BoundStatement> =
        of_channels.map(|sql| BoundStatement::new(sql, values![space, disposed_before])).collect();
    statements.push(BoundStatement::new(BURY, values![space, disposed_before, HELD, LET_GO]));
    statements.push(BoundStatement::new(STALE_CLIENTS, values![space, clients_before]));
    let clients_max = i64::from(clients_max);
    statements.push(BoundStatement::new(OLDEST_CLIENTS, values![space, clients_max]));
    statements
}
