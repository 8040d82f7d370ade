//! The statements about nodes and leases (ADR 0095).
//!
//! Promises: only the database's clock is compared; nobody is judged by a node that was unwell itself; a process that stopped
//! in the middle of something holds a lease up for a second at most.
//! Must not know: when anything is asked, what follows from the answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::{PooledConnection, StatementError};
use super::mounts::{belongs_elsewhere, offering};
use super::{BEAT_ANSWER_WAIT, FORMAT, PostgresJournal, PostgresNode};
use crate::cluster::{
    FoundLease, HeartbeatRow, LEASE_TIMES, LeaseAnswer, LeaseAsk, NodeId, PeerNode, SpaceId,
    TakenLease,
};
use crate::journal::JournalError;

/// What PostgreSQL calls a lock that was not to be had in time.
const LOCK_TIMEOUT: &str = "55P03";

const REGISTER: &str = "WITH before AS (DELETE FROM greenroom.node WHERE home = $1 RETURNING id),
     freed AS (UPDATE greenroom.lease SET node = NULL WHERE node IN (SELECT id FROM before))
     INSERT INTO greenroom.node (name, home, address, fingerprint, format, mounts, expires, steady_since, taken, draining)
     VALUES ($2, $1, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7), clock_timestamp(), 0, false) RETURNING id";

const FORGET_NODES: &str =
    "DELETE FROM greenroom.node WHERE expires < clock_timestamp() - interval '1 day'
     AND NOT EXISTS (SELECT 1 FROM greenroom.lease WHERE lease.node = node.id)";

const HEARTBEAT: &str = "WITH beat AS (UPDATE greenroom.node SET expires = clock_timestamp() + make_interval(secs => $2),
         steady_since = CASE WHEN expires < clock_timestamp() THEN clock_timestamp() ELSE steady_since END
         WHERE id = $1 RETURNING taken)
     SELECT taken, ARRAY(SELECT o.id FROM greenroom.node o WHERE o.expires < clock_timestamp() AND o.id <> $1
         AND EXISTS (SELECT 1 FROM greenroom.lease l WHERE l.node = o.id)),
         ARRAY(SELECT o.id FROM greenroom.node o WHERE o.expires > clock_timestamp()) FROM beat";

const FIND: &str = concat!(
    "SELECT l.node, o.id, o.name, o.address, o.fingerprint, b.id, b.name, b.address, b.fingerprint FROM greenroom.lease l
     LEFT JOIN greenroom.node o ON o.id = l.node AND o.expires > clock_timestamp()
     LEFT JOIN LATERAL (", offering!("$2"), ") AS b ON o.id IS NULL WHERE l.space = $1"
);

/// One statement, so that a process that stops leaves no transaction open. The old holder learns it with its next heartbeat.
///
/// The holder's row is locked before it is judged. A statement sees the tables as they were when it began, also after it has waited
/// for a batch that holds the lease: without the lock a heartbeat that came meanwhile would not count, and a node that speaks would
/// be judged. `holder` is asked before the lease is locked, as everybody locks nodes before leases.
const TAKE: &str = concat!(
    "WITH holder AS MATERIALIZED (SELECT o.expires FROM greenroom.node o WHERE o.id = $5 AND o.id <> $2 FOR NO KEY UPDATE),
     got AS (UPDATE greenroom.lease l SET node = $2, epoch = l.epoch + 1
         WHERE NOT EXISTS (SELECT 1 FROM holder h WHERE h.expires > clock_timestamp())
             AND l.space = $1 AND l.node IS NOT DISTINCT FROM $5 AND l.format <= $4 AND EXISTS (SELECT 1 FROM greenroom.node me
                 WHERE me.id = $2 AND me.expires > clock_timestamp() AND NOT me.draining AND (l.node IS NULL OR l.node = $2 OR
                     me.steady_since + make_interval(secs => $3) <= clock_timestamp()))
             AND NOT EXISTS (SELECT 1 FROM greenroom.move_order m JOIN greenroom.node t ON t.id = m.target
                 WHERE m.space = l.space AND m.target <> $2 AND m.asked_at > clock_timestamp() - interval '60 s'
                     AND t.expires > clock_timestamp() AND NOT t.draining)
             AND (l.node = $2 OR NOT ", belongs_elsewhere!("$2"), ")
         RETURNING l.epoch, l.batch),
     told AS (UPDATE greenroom.node SET taken = taken + 1 WHERE id = $5 AND id <> $2 AND EXISTS (SELECT 1 FROM got))
     SELECT epoch, batch FROM got"
);

const LIST_OWNED: &str = "SELECT space FROM greenroom.lease WHERE node = $1";

/// Spaces of nodes that are gone, and those that nobody has: after a leap, or since their node was started again. What is of a
/// node's own settings is left to that node.
const LIST_WORK: &str = concat!(
    "SELECT l.space, l.node FROM greenroom.lease l
     JOIN greenroom.space s ON s.id = l.space AND s.removed_at IS NULL
     LEFT JOIN greenroom.node o ON o.id = l.node
     WHERE l.format <= $3 AND ((o.expires < clock_timestamp() AND o.id <> $1) OR (l.node IS NULL AND s.name NOT LIKE 'node-%'
             AND NOT EXISTS (SELECT 1 FROM greenroom.node n WHERE l.space = ANY (n.held) AND n.expires > clock_timestamp())))
         AND EXISTS (SELECT 1 FROM greenroom.channel c WHERE c.space = l.space AND c.duty <> 0 AND c.disposed_at IS NULL)
         AND NOT ", belongs_elsewhere!("$1"), "
     ORDER BY l.space LIMIT $2"
);

const FIND_TAKER: &str = "SELECT n.id, n.name, n.address, n.fingerprint FROM greenroom.node n
     JOIN greenroom.lease l ON l.space = $2 AND l.format <= n.format
     LEFT JOIN greenroom.move_order m ON m.space = l.space AND m.target = n.id AND m.asked_at > clock_timestamp() - interval '60 s'
     WHERE n.id <> $1 AND NOT n.draining AND n.expires > clock_timestamp() AND n.address <> ''
         AND ($3 OR m.target IS NOT NULL OR EXISTS (SELECT 1 FROM greenroom.node me WHERE me.id = $1 AND me.draining))
     ORDER BY m.target IS NULL, NOT EXISTS (SELECT 1 FROM greenroom.space s, unnest(n.mounts) AS offered
             WHERE s.id = l.space AND split_part(offered, '=', 1) = s.mount),
         md5(n.id::text || ' ' || l.space::text) LIMIT 1";

/// Ends whoever has locked the lease of a space, or the row of its holder: the rows name their transactions.
const END_BLOCKER: &str = "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN (
         SELECT l.xmax AS blocker FROM greenroom.lease l WHERE l.space = $1
         UNION ALL SELECT o.xmax FROM greenroom.lease l JOIN greenroom.node o ON o.id = l.node WHERE l.space = $1) AS locked
         ON a.backend_xid = locked.blocker
     WHERE a.application_name = 'greenroom' AND a.pid <> pg_backend_pid()";

/// The same for all spaces of what ran in a data directory before.
const END_BLOCKERS: &str =
    "SELECT pg_terminate_backend(a.pid) FROM greenroom.lease l JOIN greenroom.node o ON o.id = l.node
     JOIN pg_stat_activity a ON a.backend_xid = l.xmax
     WHERE o.home = $1 AND a.application_name = 'greenroom' AND a.pid <> pg_backend_pid()";

/// How a node is known to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRegistration {
    pub name: String,
    /// The name of its data directory, made by chance: who runs in it ends what ran there before.
    pub home: String,
    /// Where it takes connections of other nodes; empty: nowhere.
    pub address: String,
    /// The SHA-256 of the certificate it shows there.
    pub fingerprint: Vec<u8>,
    pub mounts: Vec<String>,
}

/// A space as the table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpaceFacts {
    pub id: SpaceId,
    pub name: String,
    /// The label of the directory that it works in, on nodes that offer one.
    pub mount: Option<String>,
}

fn ttl_seconds() -> f64 {
    Duration::from_millis(LEASE_TIMES.ttl_ms).as_secs_f64()
}

impl PostgresNode {
    /// Registers a start of a process, and ends what ran in the same data directory before: its spaces are free at once.
    pub(crate) async fn register(
        &self,
        registration: &NodeRegistration,
    ) -> Result<NodeId, JournalError> {
        let NodeRegistration { name, home, address, fingerprint, mounts } = registration;
        let until = self.until();
        loop {
            let mut connection = self.lease_connection().await?;
            let ttl = ttl_seconds();
            let registered = connection
                .query(REGISTER, &[home, name, address, fingerprint, &FORMAT, mounts, &ttl])
                .await;
            let rows = match registered {
                Ok(rows) => rows,
                Err(error) if error.code() == LOCK_TIMEOUT && Instant::now() < until => {
                    connection.query(END_BLOCKERS, &[home]).await.map_err(unwritten)?;
                    continue;
                }
                Err(StatementError::Lost(_)) if Instant::now() < until => continue,
                Err(error) => return Err(unwritten(error)),
            };
            connection.query(FORGET_NODES, &[]).await.map_err(unwritten)?;
            let row = rows
                .first()
                .ok_or_else(|| JournalError::Unwritable("no node was made".to_owned()))?;
            return row.try_get(0).map_err(damaged);
        }
    }

    /// The node's row goes, and with it what others know of it.
    pub(crate) async fn unregister(&self, node: NodeId) -> Result<(), JournalError> {
        let sql = "WITH gone AS (DELETE FROM greenroom.node WHERE id = $1 RETURNING id)
             UPDATE greenroom.lease SET node = NULL WHERE node IN (SELECT id FROM gone)";
        let mut connection = self.lease_connection().await?;
        connection.query(sql, &[&node]).await.map_err(unwritten)?;
        Ok(())
    }

    /// Frees what a node that takes no more holds beside its own spaces and those it serves: a lease that was taken without an
    /// answer, that could not be given back, or whose space failed. What was begun under one of them writes nothing. The spaces among
    /// them that have work which waits for nobody.
    pub(crate) async fn free_orphans(
        &self,
        node: NodeId,
        served: &[SpaceId],
    ) -> Result<Vec<SpaceId>, JournalError> {
        let sql = "WITH freed AS (
                 UPDATE greenroom.lease l SET node = NULL, epoch = l.epoch + 1 FROM greenroom.node n
                 WHERE n.id = $1 AND l.node = n.id AND l.space <> ALL (n.held) AND l.space <> ALL ($2) RETURNING l.space)
             SELECT f.space FROM freed f WHERE EXISTS (SELECT 1 FROM greenroom.channel c
                 WHERE c.space = f.space AND c.duty <> 0 AND c.disposed_at IS NULL)";
        let mut connection = self.lease_connection().await?;
        let freed = connection.query(sql, &[&node, &served]).await.map_err(unwritten)?;
        let spaces = freed.iter().map(|row| row.try_get(0).map_err(damaged));
        spaces.collect()
    }

    /// The node that a space of this one goes to, always the same for a space as long as it lives: the one it is ordered to, or,
    /// where this one drains, any that offers what the space names, or any at all. Its row says that a node drains before the node
    /// itself has read that.
    pub(crate) async fn find_taker(
        &self,
        node: NodeId,
        space: SpaceId,
        is_draining: bool,
    ) -> Result<Option<PeerNode>, JournalError> {
        let mut connection = self.lease_connection().await?;
        let found = connection
            .query(FIND_TAKER, &[&node, &space, &is_draining])
            .await
            .map_err(unwritten)?;
        let taker = found.first().map(|row| peer_node(row, 0)).transpose();
        Ok(taker.map_err(damaged)?.flatten())
    }

    /// Whether the node takes spaces.
    pub(crate) async fn set_draining(
        &self,
        node: NodeId,
        is_draining: bool,
    ) -> Result<(), JournalError> {
        let sql = "UPDATE greenroom.node SET draining = $2 WHERE id = $1";
        let mut connection = self.lease_connection().await?;
        connection.query(sql, &[&node, &is_draining]).await.map(drop).map_err(unwritten)
    }

    /// Asks for a node; whatever goes wrong, nobody knows the outcome.
    pub(crate) async fn ask(&self, node: NodeId, ask: &LeaseAsk) -> LeaseAnswer {
        let asked = match ask {
            LeaseAsk::Heartbeat => {
                let until = Instant::now() + BEAT_ANSWER_WAIT;
                timeout_at(until, self.beat(node, until)).await.unwrap_or_else(|_| Err(too_late()))
            }
            LeaseAsk::Take { space, seen } => self.take(node, *space, *seen).await,
            LeaseAsk::Find { .. } | LeaseAsk::ListOwned | LeaseAsk::ListWork { .. } => {
                self.look(node, ask).await
            }
        };
        asked.unwrap_or_else(|error| {
            tracing::debug!(error = %error.words(), ?ask, "a question about leases was not answered");
            LeaseAnswer::Unknown
        })
    }

    async fn beat(&self, node: NodeId, until: Instant) -> Result<LeaseAnswer, StatementError> {
        let mut connection = self.heartbeats.get(until).await.map_err(StatementError::Lost)?;
        // One that is given up in the middle is not used again.
        connection.begin();
        let ttl = ttl_seconds();
        let values: [&(dyn ToSql + Sync); 2] = [&node, &ttl];
        let asked = connection.query(HEARTBEAT, &values);
        let Ok(rows) = timeout_at(until, asked).await else {
            self.trust.note_silent_beat();
            return Err(too_late());
        };
        // Also where the server ended it, as it took too long: the connection is there.
        connection.finish();
        let rows = rows?;
        self.trust.note_answered_beat();
        let row = rows.first().map(|row| -> Result<_, tokio_postgres::Error> {
            Ok(HeartbeatRow {
                taken: row.try_get(0)?,
                expired: row.try_get(1)?,
                living: row.try_get(2)?,
            })
        });
        Ok(LeaseAnswer::Heartbeat(row.transpose()?))
    }

    /// A holder that stopped in the middle of a transaction is ended.
    async fn take(
        &self,
        node: NodeId,
        space: SpaceId,
        seen: Option<NodeId>,
    ) -> Result<LeaseAnswer, StatementError> {
        let mut connection = self.leases.get(self.until()).await.map_err(StatementError::Lost)?;
        let ttl = ttl_seconds();
        let mut taken = connection.query(TAKE, &[&space, &node, &ttl, &FORMAT, &seen]).await;
        if taken.as_ref().is_err_and(|error| error.code() == LOCK_TIMEOUT) {
            end_blocker(&mut connection, space).await?;
            taken = connection.query(TAKE, &[&space, &node, &ttl, &FORMAT, &seen]).await;
        }
        let taken = taken?;
        let row = taken.first().map(|row| -> Result<_, tokio_postgres::Error> {
            Ok(TakenLease { epoch: row.try_get(0)?, batch: row.try_get(1)? })
        });
        Ok(LeaseAnswer::Taken(row.transpose()?))
    }

    async fn look(&self, node: NodeId, ask: &LeaseAsk) -> Result<LeaseAnswer, StatementError> {
        let mut connection =
            self.leases.get_in_turn(self.patience).await.map_err(StatementError::Lost)?;
        Ok(match ask {
            LeaseAsk::Find { space } => {
                let rows = connection.query(FIND, &[space, &node]).await?;
                LeaseAnswer::Found(rows.first().map(found_lease).transpose()?)
            }
            LeaseAsk::ListWork { limit } => {
                let limit = i64::from(*limit);
                let rows = connection.query(LIST_WORK, &[&node, &limit, &FORMAT]).await?;
                let work = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
                LeaseAnswer::Work(work.collect::<Result<_, tokio_postgres::Error>>()?)
            }
            LeaseAsk::ListOwned | LeaseAsk::Heartbeat | LeaseAsk::Take { .. } => {
                let rows = connection.query(LIST_OWNED, &[&node]).await?;
                let owned = rows.iter().map(|row| row.try_get(0));
                LeaseAnswer::Owned(owned.collect::<Result<_, _>>()?)
            }
        })
    }

    /// The space of a name, unless it was removed.
    pub(crate) async fn find_space(&self, name: &str) -> Result<Option<SpaceFacts>, JournalError> {
        let sql = "WITH found AS (SELECT id, name, mount FROM greenroom.space WHERE name = $1 AND removed_at IS NULL),
             leased AS (INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor, format)
                 SELECT id, 0, 0, 0, 0, $2 FROM found
                 WHERE NOT EXISTS (SELECT 1 FROM greenroom.lease WHERE lease.space = found.id)
                 ON CONFLICT (space) DO NOTHING)
             SELECT id, name, mount FROM found";
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(sql, &[&name, &FORMAT]).await.map_err(unwritten)?;
        rows.first().map(space_facts).transpose()
    }

    /// The same by its number.
    pub(crate) async fn name_space(&self, id: SpaceId) -> Result<Option<SpaceFacts>, JournalError> {
        let sql =
            "SELECT id, name, mount FROM greenroom.space WHERE id = $1 AND removed_at IS NULL";
        let mut connection = self.lease_connection().await?;
        connection.query(sql, &[&id]).await.map_err(unwritten)?.first().map(space_facts).transpose()
    }

    /// Makes a space, unless there is one of that name.
    pub(crate) async fn make_space(&self, name: &str) -> Result<(), JournalError> {
        let sql = "INSERT INTO greenroom.space (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
        let mut connection = self.lease_connection().await?;
        connection.query(sql, &[&name]).await.map_err(unwritten)?;
        Ok(())
    }

    /// The journal of a space whose lease was taken.
    pub(crate) fn journal_of(
        self: &Arc<Self>,
        space: SpaceId,
        holder: NodeId,
        lease: TakenLease,
    ) -> PostgresJournal {
        PostgresJournal::over(Arc::clone(self), space, holder, lease)
    }
}

/// Ends whoever holds a space's lease locked.
pub(super) async fn end_blocker(
    connection: &mut PooledConnection,
    space: SpaceId,
) -> Result<(), StatementError> {
    let ended = connection.query(END_BLOCKER, &[&space]).await?;
    tracing::warn!(
        space,
        ended = ended.len(),
        "a lease was locked for a second; the session that locked it is terminated"
    );
    Ok(())
}

/// Whether a lock was not to be had in time.
pub(super) fn is_lock_timeout(error: &StatementError) -> bool {
    error.code() == LOCK_TIMEOUT
}

fn found_lease(row: &Row) -> Result<FoundLease, tokio_postgres::Error> {
    Ok(FoundLease {
        holder: row.try_get(0)?,
        alive: peer_node(row, 1)?,
        offering: peer_node(row, 5)?,
    })
}

/// The node whose columns begin at a place, if there is one.
fn peer_node(row: &Row, first: usize) -> Result<Option<PeerNode>, tokio_postgres::Error> {
    let id: Option<i64> = row.try_get(first)?;
    let Some(id) = id else { return Ok(None) };
    Ok(Some(PeerNode {
        id,
        name: row.try_get(first + 1)?,
        address: row.try_get(first + 2)?,
        fingerprint: row.try_get(first + 3)?,
    }))
}

fn space_facts(row: &Row) -> Result<SpaceFacts, JournalError> {
    Ok(SpaceFacts {
        id: row.try_get(0).map_err(damaged)?,
        name: row.try_get(1).map_err(damaged)?,
        mount: row.try_get(2).map_err(damaged)?,
    })
}

fn too_late() -> StatementError {
    StatementError::Lost("it took too long".to_owned())
}

fn unwritten(error: StatementError) -> JournalError {
    JournalError::Unwritable(error.words())
}

fn damaged(error: tokio_postgres::Error) -> JournalError {
    JournalError::Unreadable(error.to_string())
}
