//! What an operator does with nodes, through the database: no way to a node is needed.
//!
//! Promises: an unknown name is an error that says so.
//! Must not know: how any of it is printed.

use std::sync::Arc;

pub use crate::journal::ListedNode;
use crate::journal::{JournalError, PostgresNode, PostgresSettings};
use crate::mounts::is_mount_label;

/// Why an operator's wish is not done.
#[derive(Debug, thiserror::Error)]
pub enum ClusterAdminError {
    #[error("no node named `{0}` is alive; `greenroom node list` shows those that are")]
    NoNode(String),
    #[error("the node `{0}` is being drained and takes no spaces; start it again first")]
    Draining(String),
    #[error(
        "the node `{0}` has no `address` in its [cluster] settings, so other nodes cannot pass clients on to it"
    )]
    NoAddress(String),
    #[error(
        "the space `{space}` is of the settings of the node {node}, and stays there as long as that runs"
    )]
    HeldSpace { space: String, node: String },
    #[error("there is no space `{0}`; `greenroom space list` shows those that are")]
    NoSpace(String),
    #[error(
        "the space `{space}` works in the mount `{label}`, which the node {node} does not offer; `greenroom node list` shows who does"
    )]
    NoMount { space: String, label: String, node: String },
    #[error(
        "the space `{space}` was changed by a newer version than that of the node {node}; replace its program first"
    )]
    OlderNode { space: String, node: String },
    #[error(
        "`{0}` is no label of a mount: it takes small letters, digits and `-`, at most 64 of them"
    )]
    BadLabel(String),
    #[error(
        "the space `{0}` is of a node's own settings, which say where it works: set `workspaces` there"
    )]
    OwnSpace(String),
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
        if self.database.order_drain(node).await? {
            Ok(())
        } else {
            Err(ClusterAdminError::NoNode(node.to_owned()))
        }
    }

    /// Has a node serve a space.
    pub async fn move_space(&self, space: &str, node: &str) -> Result<(), ClusterAdminError> {
        self.check_target_of(space, node).await?;
        if let Some(holder) = self.database.find_settings_holder(space).await?
            && holder != node
        {
            let space = space.to_owned();
            return Err(ClusterAdminError::HeldSpace { space, node: holder });
        }
        if self.database.order_move(space, node).await? {
            Ok(())
        } else {
            // It may have been gone or drained since. A node that lives and takes spaces does not take one of a newer format.
            self.check_target_of(space, node).await?;
            Err(ClusterAdminError::OlderNode { space: space.to_owned(), node: node.to_owned() })
        }
    }

    async fn check_target_of(&self, space: &str, node: &str) -> Result<(), ClusterAdminError> {
        let label = self.mount_of(space).await?;
        let nodes = self.nodes().await?;
        let is_it = |it: &&ListedNode| it.name == node && it.expires_in > 0.0;
        let target =
            nodes.iter().find(is_it).ok_or_else(|| ClusterAdminError::NoNode(node.to_owned()))?;
        check_target(target, label, space)
    }

    /// The label that a space names, if it names one.
    pub async fn mount_of(&self, space: &str) -> Result<Option<String>, ClusterAdminError> {
        let mount = self.database.mount_of(space).await?;
        mount.ok_or_else(|| ClusterAdminError::NoSpace(space.to_owned()))
    }

    /// Has a space work in the mount of a label, or where the settings of its node say. Whoever serves it drops it.
    pub async fn name_mount(
        &self,
        space: &str,
        label: Option<&str>,
    ) -> Result<(), ClusterAdminError> {
        if let Some(label) = label.filter(|label| !is_mount_label(label)) {
            return Err(ClusterAdminError::BadLabel(label.to_owned()));
        }
        self.mount_of(space).await?;
        if self.database.name_mount(space, label).await? {
            Ok(())
        } else {
            Err(ClusterAdminError::OwnSpace(space.to_owned()))
        }
    }

    /// The node that serves a space, if one does.
    pub async fn place_of(&self, space: &str) -> Result<Option<String>, ClusterAdminError> {
        let place = self.database.place_of(space).await?;
        place.ok_or_else(|| ClusterAdminError::NoSpace(space.to_owned()))
    }
}

/// Whether a node that lives may get a space that names this mount.
fn check_target(
    node: &ListedNode,
    label: Option<String>,
    space: &str,
) -> Result<(), ClusterAdminError> {
    let name = node.name.clone();
    if node.is_draining {
        return Err(ClusterAdminError::Draining(name));
    }
    if node.address.is_empty() {
        return Err(ClusterAdminError::NoAddress(name));
    }
    match label {
        Some(label) if !node.mounts.iter().any(|mount| mount.label == label) => {
            Err(ClusterAdminError::NoMount { space: space.to_owned(), label, node: name })
        }
        Some(_) | None => Ok(()),
    }
}
