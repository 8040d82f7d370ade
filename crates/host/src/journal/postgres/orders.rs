//! The statements about nodes that operators make: who is there, who is to give its spaces away, which space goes where.
//!
//! An order is a row, and the nodes it is for read it: operators need no way to a node but the database.
//!
//! Promises: while a space is ordered to a node that lives, no other takes it; no space is ordered to a node of a format older than
//! its own; an order that nobody follows is void after a minute.
//! Must not know: how an order is followed.

use tokio_postgres::Row;

use super::PostgresNode;
use super::connection::StatementError;
use crate::cluster::{NodeId, SpaceId};
use crate::journal::JournalError;
use crate::mounts::MountEntry;

const LIST_NODES: &str = "SELECT n.id, n.name, n.address, n.fingerprint, n.format, n.draining,
         extract(epoch FROM n.expires - clock_timestamp())::float8,
         (SELECT count(*) FROM greenroom.lease l WHERE l.node = n.id),
         (SELECT count(*) FROM greenroom.lease l JOIN greenroom.space s ON s.id = l.space
             WHERE l.node = n.id AND s.name NOT IN ('default', 'node-' || n.name) AND l.space <> ALL (n.held)), n.mounts
     FROM greenroom.node n ORDER BY n.name, n.id";

const LIVING: &str = "SELECT fingerprint FROM greenroom.node WHERE expires > clock_timestamp()";

const DRAIN: &str = "UPDATE greenroom.node SET draining = true WHERE name = $1 AND expires > clock_timestamp() RETURNING id";

const ORDER: &str = "INSERT INTO greenroom.move_order (space, target, asked_at)
     SELECT s.id, n.id, clock_timestamp() FROM greenroom.space s LEFT JOIN greenroom.lease l ON l.space = s.id, greenroom.node n
         WHERE s.name = $1 AND s.removed_at IS NULL AND n.name = $2 AND n.expires > clock_timestamp() AND NOT n.draining
             AND coalesce(l.format <= n.format, true)
     ON CONFLICT (space) DO UPDATE SET target = excluded.target, asked_at = excluded.asked_at RETURNING space, target";

/// A node wants a space of its own settings that another has taken over. One that is of the other's settings too stays there.
const CLAIM: &str = "INSERT INTO greenroom.move_order (space, target, asked_at)
     SELECT l.space, $2, clock_timestamp() FROM greenroom.lease l JOIN greenroom.space s ON s.id = l.space
         JOIN greenroom.node o ON o.id = l.node JOIN greenroom.node me ON me.id = $2
         WHERE l.space = $1 AND o.id <> $2 AND l.space <> ALL (o.held) AND s.name <> 'node-' || o.name AND l.format <= me.format
     ON CONFLICT (space) DO UPDATE SET target = excluded.target, asked_at = excluded.asked_at RETURNING space";

/// A node says that a space is its own for as long as it runs.
const HELD: &str =
    "UPDATE greenroom.node SET held = array_append(array_remove(held, $2), $2) WHERE id = $1";

/// A space that nobody has, or that its holder does not serve, goes to the one it is ordered to. Whatever was begun under the old
/// epoch writes nothing; a holder that has taken it again since it read the order keeps it.
const HAND_OVER: &str = "UPDATE greenroom.lease l SET node = o.target, epoch = l.epoch + 1
     FROM greenroom.move_order o JOIN greenroom.node n ON n.id = o.target
     WHERE l.space = $1 AND o.space = $1 AND (l.node IS NULL OR (l.node = $2 AND l.epoch = $3)) AND n.expires > clock_timestamp() AND NOT n.draining AND l.format <= n.format
     RETURNING l.node";

/// A space that is ordered to a node and that nobody who lives has is the node's to take: no other may for a minute. Whoever holds one
/// that is ordered to a node which is gone or drains keeps it: given back, it would be taken and given back again until the order is
/// void.
const READ_ORDERS: &str = "SELECT n.draining, o.space, s.name, o.target, l.node, l.epoch FROM greenroom.node n
     LEFT JOIN (greenroom.move_order o JOIN greenroom.lease l ON l.space = o.space JOIN greenroom.space s ON s.id = o.space)
         ON ((l.node = n.id AND (o.target = n.id OR EXISTS (
             SELECT 1 FROM greenroom.node t WHERE t.id = o.target AND t.expires > clock_timestamp() AND NOT t.draining)))
             OR (o.target = n.id AND NOT EXISTS (
             SELECT 1 FROM greenroom.node h WHERE h.id = l.node AND h.expires > clock_timestamp())))
             AND o.asked_at > clock_timestamp() - interval '60 s'
     WHERE n.id = $1";

const END_ORDER: &str = "DELETE FROM greenroom.move_order WHERE space = $1 AND target = $2";

const PLACE: &str = "SELECT n.name FROM greenroom.space s LEFT JOIN greenroom.lease l ON l.space = s.id
     LEFT JOIN greenroom.node n ON n.id = l.node AND n.expires > clock_timestamp() WHERE s.name = $1 AND s.removed_at IS NULL";

const SETTINGS_HOLDER: &str = "SELECT n.name FROM greenroom.space s JOIN greenroom.lease l ON l.space = s.id
     JOIN greenroom.node n ON n.id = l.node AND n.expires > clock_timestamp()
     WHERE s.name = $1 AND s.removed_at IS NULL AND (s.name IN ('default', 'node-' || n.name) OR l.space = ANY (n.held))";

/// A node as operators see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNode {
    pub id: i64,
    pub name: String,
    pub address: String,
    pub fingerprint: Vec<u8>,
    pub format: i32,
    pub is_draining: bool,
    /// In seconds; negative: it is gone for so long.
    pub expires_in: f64,
    pub spaces: i64,
    /// Those that are not the node's own.
    pub movable_spaces: i64,
    pub mounts: Vec<MountEntry>,
}

/// What operators want of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NodeOrders {
    pub is_draining: bool,
    pub moves: Vec<MoveOrder>,
}

/// A space that is to be served by a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoveOrder {
    pub space: SpaceId,
    pub name: String,
    pub target: NodeId,
    pub holder: Option<NodeId>,
    /// That of its lease when the order was read.
    pub epoch: i64,
}

fn unwritten(error: StatementError) -> JournalError {
    JournalError::Unwritable(error.words())
}

fn damaged(error: tokio_postgres::Error) -> JournalError {
    JournalError::Unreadable(error.to_string())
}

impl PostgresNode {
    /// Notes what the busiest spaces of a node do, as JSON.
    pub(crate) async fn note_busiest(
        &self,
        node: NodeId,
        busiest: &str,
    ) -> Result<(), JournalError> {
        let sql = "UPDATE greenroom.node SET busiest = $2::text::jsonb WHERE id = $1";
        let mut connection = self.lease_connection().await?;
        connection.query(sql, &[&node, &busiest]).await.map(drop).map_err(unwritten)
    }

    /// The node that lives and serves a space because its settings say so, if it is such a space.
    pub(crate) async fn find_settings_holder(
        &self,
        space: &str,
    ) -> Result<Option<String>, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(SETTINGS_HOLDER, &[&space]).await.map_err(unwritten)?;
        let name = rows.first().map(|row| row.try_get(0)).transpose();
        name.map_err(damaged)
    }

    /// All nodes that are or were lately.
    pub(crate) async fn list_nodes(&self) -> Result<Vec<ListedNode>, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(LIST_NODES, &[]).await.map_err(unwritten)?;
        rows.iter().map(listed_node).collect()
    }

    /// The certificates of nodes that live.
    pub(crate) async fn living_fingerprints(&self) -> Result<Vec<Vec<u8>>, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(LIVING, &[]).await.map_err(unwritten)?;
        rows.iter().map(|row| row.try_get(0).map_err(damaged)).collect()
    }

    /// Has a node give its spaces away; false: none of this name lives.
    pub(crate) async fn order_drain(&self, name: &str) -> Result<bool, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(DRAIN, &[&name]).await.map_err(unwritten)?;
        Ok(!rows.is_empty())
    }

    /// Has a space served by a node; false: one of them is not there.
    pub(crate) async fn order_move(&self, space: &str, node: &str) -> Result<bool, JournalError> {
        let mut connection = self.lease_connection().await?;
        let ordered = connection.query(ORDER, &[&space, &node]).await.map_err(unwritten)?;
        let Some(row) = ordered.first() else { return Ok(false) };
        let space: SpaceId = row.try_get(0).map_err(damaged)?;
        let (nobody, no_epoch): (Option<NodeId>, Option<i64>) = (None, None);
        connection.query(HAND_OVER, &[&space, &nobody, &no_epoch]).await.map_err(unwritten)?;
        Ok(true)
    }

    /// Has a space served by a node whose own it is; false: it is its holder's own as well, or nobody has it.
    pub(crate) async fn claim(&self, space: SpaceId, node: NodeId) -> Result<bool, JournalError> {
        let mut connection = self.lease_connection().await?;
        let claimed = connection.query(CLAIM, &[&space, &node]).await;
        Ok(!claimed.map_err(unwritten)?.is_empty())
    }

    /// A space is a node's own from now on: nobody can have it moved.
    pub(crate) async fn note_held(&self, space: SpaceId, node: NodeId) -> Result<(), JournalError> {
        let mut connection = self.lease_connection().await?;
        connection.query(HELD, &[&node, &space]).await.map(drop).map_err(unwritten)
    }

    /// Hands a space that a node does not serve any more to the one it is ordered to, whether its lease could be given back or not;
    /// false: that one is gone, or it has an owner already.
    pub(crate) async fn hand_over(
        &self,
        order: &MoveOrder,
        from: NodeId,
    ) -> Result<bool, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(HAND_OVER, &[&order.space, &from, &order.epoch]).await;
        Ok(!rows.map_err(unwritten)?.is_empty())
    }

    /// What is wanted of a node.
    pub(crate) async fn read_orders(&self, node: NodeId) -> Result<NodeOrders, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(READ_ORDERS, &[&node]).await;
        let mut orders = NodeOrders::default();
        for row in &rows.map_err(unwritten)? {
            orders.is_draining = row.try_get(0).map_err(damaged)?;
            let space: Option<SpaceId> = row.try_get(1).map_err(damaged)?;
            if let Some(space) = space {
                orders.moves.push(MoveOrder {
                    space,
                    name: row.try_get(2).map_err(damaged)?,
                    target: row.try_get(3).map_err(damaged)?,
                    holder: row.try_get(4).map_err(damaged)?,
                    epoch: row.try_get(5).map_err(damaged)?,
                });
            }
        }
        Ok(orders)
    }

    /// The space is where it was ordered to.
    pub(crate) async fn end_order(
        &self,
        space: SpaceId,
        target: NodeId,
    ) -> Result<(), JournalError> {
        let mut connection = self.lease_connection().await?;
        connection.query(END_ORDER, &[&space, &target]).await.map(drop).map_err(unwritten)
    }

    /// Which node serves a space: `None`, there is no such space; `Some(None)`, nobody does.
    pub(crate) async fn place_of(
        &self,
        space: &str,
    ) -> Result<Option<Option<String>>, JournalError> {
        let mut connection = self.lease_connection().await?;
        let rows = connection.query(PLACE, &[&space]).await.map_err(unwritten)?;
        rows.first().map(|row| row.try_get(0).map_err(damaged)).transpose()
    }
}

fn listed_node(row: &Row) -> Result<ListedNode, JournalError> {
    let mounts: Vec<String> = row.try_get(9).map_err(damaged)?;
    Ok(ListedNode {
        id: row.try_get(0).map_err(damaged)?,
        name: row.try_get(1).map_err(damaged)?,
        address: row.try_get(2).map_err(damaged)?,
        fingerprint: row.try_get(3).map_err(damaged)?,
        format: row.try_get(4).map_err(damaged)?,
        is_draining: row.try_get(5).map_err(damaged)?,
        expires_in: row.try_get(6).map_err(damaged)?,
        spaces: row.try_get(7).map_err(damaged)?,
        movable_spaces: row.try_get(8).map_err(damaged)?,
        mounts: mounts.iter().filter_map(|it| MountEntry::from_column(it)).collect(),
    })
}
