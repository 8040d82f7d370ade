//! What an operator does with nodes, through the database: no way to a node is needed.
//!
//! Promises: a name that nothing has is an error with words.
//! Must not know: how any of it is printed.

use std::sync::Arc;

pub use crate::journal::ListedNode;
use crate::journal::{JournalError, PostgresNode, PostgresSettings};

/// Why an operator's wish is not done.
#[derive(Debug, thiserror::Error)]
pub enum ClusterAdminError {
    #[error("no node named `{0}` is alive; `greenroom node list` shows those that are")]
    NoNode(String),
    #[error("there is no space `{0}`; `greenroom space list` shows those that are")]
    NoSpace(String),
    #[error(transparent)]
    Database(#[from] JournalError),
}

/// The nodes on a database.
pub struct ClusterAdmin {
    database: Arc<PostgresNode>,
}

impl ClusterAdmin {
    pub async fn connect(settings: &PostgresSettings) -> Result<Self, ClusterAdminError> {
        let database = PostgresNode::connect(settings).await?;
        Ok(Self { database })
    }

    /// All nodes that are or were lately.
    pub async fn nodes(&self) -> Result<Vec<ListedNode>, ClusterAdminError> {
        Ok(self.database.list_nodes().await?)
    }

    /// Has a node give all its spaces away and take no more.
    pub async fn drain(&self, node: &str) -> Result<(), ClusterAdminError> {
        match self.database.order_drain(node).await? {
            true => Ok(()),
            false => Err(ClusterAdminError::NoNode(node.to_owned())),
        }
    }

    /// Has a node serve a space.
    pub async fn move_space(&self, space: &str, node: &str) -> Result<(), ClusterAdminError> {
        if self.database.place_of(space).await?.is_none() {
            return Err(ClusterAdminError::NoSpace(space.to_owned()));
        }
        match self.database.order_move(space, node).await? {
            true => Ok(()),
            false => Err(ClusterAdminError::NoNode(node.to_owned())),
        }
    }

    /// The node that serves a space, if one does.
    pub async fn place_of(&self, space: &str) -> Result<Option<String>, ClusterAdminError> {
        let place = self.database.place_of(space).await?;
        place.ok_or_else(|| ClusterAdminError::NoSpace(space.to_owned()))
    }
}
