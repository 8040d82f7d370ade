//! What relays ask: where spaces are, and who lives.
//!
//! Must not know: how that is found out.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use kernel::Role;
use serde::{Deserialize, Serialize};

use super::{ClusterNode, NodeFingerprint, NodeId, SpaceId, SpaceLocation, SpaceUnavailable};
use crate::accounts::GrantedToken;
use crate::net::Access;

/// Ends when a node is gone.
pub(crate) type NodeGone = BoxFuture<'static, ()>;

/// What is known of spaces and nodes.
#[async_trait]
pub(crate) trait SpaceDirectory: Send + Sync {
    /// Where a space is served from now on: it is taken if nobody has it.
    async fn locate(&self, space: &str) -> Result<SpaceLocation, SpaceUnavailable>;

    /// Takes a space here that nobody serves; whether it is served here now.
    async fn take(&self, space: SpaceId) -> bool;

    /// The certificates of all nodes that live.
    async fn living_nodes(&self) -> Result<Vec<NodeFingerprint>, SpaceUnavailable>;

    /// Ends when a node that lives now does not any more. It costs no statement.
    fn wait_until_gone(&self, node: NodeId) -> NodeGone;
}

#[async_trait]
impl SpaceDirectory for ClusterNode {
    async fn locate(&self, space: &str) -> Result<SpaceLocation, SpaceUnavailable> {
        self.space(space).await
    }

    async fn take(&self, space: SpaceId) -> bool {
        self.take_space(space).await
    }

    async fn living_nodes(&self) -> Result<Vec<NodeFingerprint>, SpaceUnavailable> {
        let found = self
            .database()
            .living_fingerprints()
            .await
            .map_err(|error| SpaceUnavailable::Failed(error.to_string()))?;
        let fingerprints = found.iter().filter_map(|it| NodeFingerprint::from_bytes(it));
        Ok(fingerprints.collect())
    }

    fn wait_until_gone(&self, node: NodeId) -> NodeGone {
        let living = Arc::clone(&self.shared().living);
        Box::pin(async move { living.wait_until_gone(node).await })
    }
}

/// Who is behind a connection, as one node tells another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RelayedClient {
    pub space: String,
    /// The id of its token; no secret.
    pub token: String,
    pub principal: String,
    pub role: String,
    /// Where it came from.
    pub address: SocketAddr,
}

impl RelayedClient {
    /// What it may do here; `None` if this node does not know its role.
    pub(super) fn access(&self) -> Option<Access> {
        let role = Role::from_name(&self.role)?;
        let (space, principal) = (self.space.clone(), self.principal.clone());
        let granted = GrantedToken::relayed(&self.token, space, principal, role);
        Some(Access::Account(Arc::new(granted)))
    }
}
