//! The statements about mounts: which label a space names, and which nodes offer it.
//!
//! A row of `node` has its mounts as `label=path`; a row of `space` has the label that it names, or none.
//!
//! Promises: a space that names a label is served by a node that offers it, as long as one lives; the same label leads to the same
//! path on all nodes that live.
//! Must not know: what a node does with a space that it cannot run turns for.

use super::connection::StatementError;
use super::{FORMAT, PostgresNode};
use crate::cluster::NodeId;
use crate::journal::JournalError;
use crate::mounts::MountEntry;

/// Whether the space of a lease `l` names a label that the node of a number does not offer, and another that lives does.
macro_rules! belongs_elsewhere {
    ($me:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM greenroom.space w JOIN greenroom.node m ON m.id <> ", $me, "
                 AND m.expires > clock_timestamp() AND NOT m.draining AND m.format >= l.format
                 AND w.mount IN (SELECT split_part(offered, '=', 1) FROM unnest(m.mounts) AS offered)
             WHERE w.id = l.space AND NOT EXISTS (SELECT 1 FROM greenroom.node me, unnest(me.mounts) AS offered
                 WHERE me.id = ", $me, " AND split_part(offered, '=', 1) = w.mount))"
        )
    };
}
pub(super) use belongs_elsewhere;

/// The node that is to serve the space of a lease `l` because it offers what the space names, and the one of a number does not: always
/// the same for a space, as long as it lives.
macro_rules! offering {
    ($me:literal) => {
        concat!(
            "SELECT n.id, n.name, n.address, n.fingerprint FROM greenroom.space w JOIN greenroom.node n ON n.id <> ", $me, "
                 AND n.expires > clock_timestamp() AND NOT n.draining AND n.address <> '' AND n.format >= l.format
                 AND w.mount IN (SELECT split_part(offered, '=', 1) FROM unnest(n.mounts) AS offered)
             WHERE w.id = l.space AND NOT EXISTS (SELECT 1 FROM greenroom.node me, unnest(me.mounts) AS offered
                 WHERE me.id = ", $me, " AND split_part(offered, '=', 1) = w.mount)
             ORDER BY md5(n.id::text || ' ' || l.space::text) LIMIT 1"
        )
    };
}
pub(super) use offering;

const OF_OTHERS: &str =
    "SELECT name, mounts FROM greenroom.node WHERE home <> $1 AND expires > clock_timestamp()";

/// Spaces that a node is to serve because it offers what they name, and that one without it serves for reading. What somebody ordered
/// elsewhere a moment ago is left alone.
const CLAIM_MOUNTED: &str = "INSERT INTO greenroom.move_order (space, target, asked_at)
     SELECT l.space, $1, clock_timestamp() FROM greenroom.space s JOIN greenroom.lease l ON l.space = s.id
         JOIN greenroom.node o ON o.id = l.node AND o.expires > clock_timestamp()
         WHERE EXISTS (SELECT 1 FROM greenroom.node me WHERE me.id = $1 AND NOT me.draining)
             AND s.mount = ANY ($2) AND s.removed_at IS NULL AND l.format <= $3 AND l.space <> ALL (o.held)
             AND s.mount NOT IN (SELECT split_part(offered, '=', 1) FROM unnest(o.mounts) AS offered)
         ORDER BY l.space LIMIT $4
     ON CONFLICT (space) DO UPDATE SET target = excluded.target, asked_at = excluded.asked_at
         WHERE move_order.asked_at < clock_timestamp() - interval '60 s'";

/// The holder of before learns with its next heartbeat that the space is not its own any more, and whoever takes it reads the label.
/// Nodes are locked before leases, as by everybody.
const NAME_MOUNT: &str = "WITH named AS (UPDATE greenroom.space s SET mount = $2 WHERE s.name = $1 AND s.removed_at IS NULL
         AND s.name <> 'default' AND s.name NOT LIKE 'node-%'
         AND NOT EXISTS (SELECT 1 FROM greenroom.node n WHERE s.id = ANY (n.held) AND n.expires > clock_timestamp()) RETURNING s.id),
     told AS (UPDATE greenroom.node n SET taken = taken + 1 FROM greenroom.lease l, named
         WHERE l.space = named.id AND n.id = l.node RETURNING n.id),
     freed AS (UPDATE greenroom.lease l SET node = NULL, epoch = l.epoch + 1 FROM named WHERE l.space = named.id
         AND l.node IS NOT NULL AND (SELECT count(*) FROM told) >= 0)
     SELECT id FROM named";

/// Spaces that a node claims at a time.
const CLAIMED_MAX: i64 = 50;

fn unwritten(error: StatementError) -> JournalError {
    JournalError::Unwritable(error.words())
}

fn damaged(error: tokio_postgres::Error) -> JournalError {
    JournalError::Unreadable(error.to_string())
}

impl PostgresNode {
    /// What another node that lives offers under a label of these at another path: its name, and what it offers.
    pub(crate) async fn find_other_path(
        &self,
        home: &str,
        mounts: &[MountEntry],
    ) -> Result<Option<(String, MountEntry)>, JournalError> {
        if mounts.is_empty() {
            return Ok(None);
        }
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(OF_OTHERS, &[&home]).await;
        for row in &rows.map_err(unwritten)? {
            let name: String = row.try_get(0).map_err(damaged)?;
            let offered: Vec<String> = row.try_get(1).map_err(damaged)?;
            let mut offered = offered.iter().filter_map(|it| MountEntry::from_column(it));
            let is_other = |theirs: &MountEntry| {
                let mut ours = mounts.iter();
                ours.any(|ours| ours.label == theirs.label && ours.path != theirs.path)
            };
            if let Some(other) = offered.find(is_other) {
                return Ok(Some((name, other)));
            }
        }
        Ok(None)
    }

    /// Orders spaces to a node that offers what they name, if one that does not offer it serves them.
    pub(crate) async fn claim_mounted(
        &self,
        node: NodeId,
        labels: &[String],
    ) -> Result<(), JournalError> {
        let mut connection = self.lease_connection().await?;
        let claimed =
            connection.query(CLAIM_MOUNTED, &[&node, &labels, &FORMAT, &CLAIMED_MAX]).await;
        claimed.map(drop).map_err(unwritten)
    }

    /// Has a space name a label, or none; false: there is no such space, or it is of a node's own settings. Whoever serves it drops it
    /// within a heartbeat, and its clients connect again.
    pub(crate) async fn name_mount(
        &self,
        space: &str,
        label: Option<&str>,
    ) -> Result<bool, JournalError> {
        let mut connection = self.lease_connection().await?;
        let named = connection.query(NAME_MOUNT, &[&space, &label]).await;
        Ok(!named.map_err(unwritten)?.is_empty())
    }

    /// The label that a space names: `None`, there is no such space; `Some(None)`, it names none.
    pub(crate) async fn mount_of(
        &self,
        space: &str,
    ) -> Result<Option<Option<String>>, JournalError> {
        let sql = "SELECT mount FROM greenroom.space WHERE name = $1 AND removed_at IS NULL";
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(sql, &[&space]).await.map_err(unwritten)?;
        let mount = rows.first().map(|row| row.try_get(0).map_err(damaged));
        mount.transpose()
    }
}
