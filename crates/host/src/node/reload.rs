//! What a node does when one of its own spaces ends unasked: loads it anew, if that can help.
//!
//! Promises: the old one has ended before the new one begins; its clients hear that they may connect again; devices, room and
//! counters go on.
//! Must not know: why a lease was lost.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;

use super::Node;
use crate::cluster::{ClusterNode, Tenure};
use crate::config::Config;
use crate::journal::JournalError;
use crate::net::{SpaceHandle, SpaceHandles};
use crate::server::ServeError;
use crate::space_entry::FIRST_SPACE;
use crate::space_host::{PreparedSpace, SpaceHost};
use crate::supervisor::SpaceEnd;

/// Between two attempts to load a space.
const AGAIN: Duration = Duration::from_secs(1);

/// What has ended.
enum NodeEnd {
    /// The space at this place, which this node may serve again.
    Space(usize),
    /// The whole of it.
    Whole(ServeError),
}

impl Node {
    /// Serves until `shutdown` resolves; an error: why it cannot go on.
    pub(super) async fn serve_until(
        &mut self,
        shutdown: impl Future<Output = ()>,
        handles: &SpaceHandles,
    ) -> Result<(), ServeError> {
        let mut shutdown = pin!(shutdown);
        loop {
            let end = tokio::select! {
                () = &mut shutdown => return Ok(()),
                end = self.wait_for_end() => end,
            };
            match end {
                NodeEnd::Whole(failure) => return Err(failure),
                NodeEnd::Space(index) => tokio::select! {
                    () = &mut shutdown => return Ok(()),
                    reloaded = self.reload(index, handles) => reloaded?,
                },
            }
        }
    }

    /// Waits until a space ends unasked, or another process has taken the node's place.
    async fn wait_for_end(&mut self) -> NodeEnd {
        let Some(cluster) = self.cluster.clone() else {
            let failures =
                self.spaces_mut().map(|space| Box::pin(space.supervisor.wait_for_failure()));
            return NodeEnd::Whole(select_all(failures).await.0);
        };
        let ends = self.spaces_mut().map(|space| {
            Box::pin(async move {
                let end = space.supervisor.wait_for_end().await;
                let tenure = space.admission.tenure.as_ref();
                (end, tenure.is_some_and(Tenure::is_lost))
            })
        });
        tokio::select! {
            ((end, is_lost), index, _) = select_all(ends) => match end {
                SpaceEnd::Journal(reason) => {
                    tracing::warn!(reason, "a space of this node is loaded anew");
                    NodeEnd::Space(index)
                }
                SpaceEnd::Kernel(_) if is_lost => NodeEnd::Space(index),
                SpaceEnd::Kernel(reason) => {
                    tracing::error!(reason, "the host cannot go on and stops");
                    NodeEnd::Whole(ServeError::KernelStopped(reason))
                }
            },
            () = cluster.wait_until_ended() => NodeEnd::Whole(ServeError::Spaces(
                "another process runs in place of this node".to_owned(),
            )),
        }
    }

    /// Loads a space anew, in its place.
    async fn reload(&mut self, index: usize, handles: &SpaceHandles) -> Result<(), ServeError> {
        let (name, config) = match index.checked_sub(1) {
            None => (FIRST_SPACE.to_owned(), self.config.clone()),
            Some(other) => match self.config.spaces.get(other) {
                Some(entry) => (entry.name.clone(), self.config.of_space(entry)),
                None => return Ok(()), // there is no such space
            },
        };
        let (cluster, limit) =
            (self.cluster.clone(), Duration::from_millis(self.config.limits.server.shutdown_ms));
        let name_in_database = self.config.name_in_database(&name);
        let Some(old) = self.spaces_mut().nth(index) else {
            return Ok(()); // there is no such space
        };
        old.end_lost(limit).await;
        let mut prepared = prepare_again(&config, &name, &name_in_database, &cluster).await?;
        prepared.admission.share_room(&old.admission.room);
        prepared.admission.devices = Arc::clone(&old.admission.devices);
        prepared.admission.telemetry = Arc::clone(&old.admission.telemetry);
        let mut host = prepared.start()?;
        host.supervisor.wait_until_booted().await?;
        host.admission.set_ready(true);
        let (admission, queue) = (Arc::clone(&host.admission), host.supervisor.queue());
        if let Some(cluster) = &cluster {
            let handle = SpaceHandle::new(&name_in_database, Arc::clone(&admission), queue.clone());
            cluster.add_handle(&name_in_database, handle);
        }
        handles.replace(&SpaceHandle::new(&name, admission, queue));
        *old = host;
        tracing::info!("a space of this node is served again");
        Ok(())
    }
}

/// Opens what a space lies in; while the database is away it waits for it, as others of the node do.
async fn prepare_again(
    config: &Config,
    name: &str,
    name_in_database: &str,
    cluster: &Option<Arc<ClusterNode>>,
) -> Result<PreparedSpace, ServeError> {
    loop {
        let prepared = async {
            if let Some(cluster) = cluster {
                cluster.let_go(name_in_database).await?;
            }
            SpaceHost::prepare(config, name, cluster.as_ref()).await
        };
        match prepared.await {
            Err(ServeError::Journal(
                error @ (JournalError::Unwritable(_)
                | JournalError::Unreadable(_)
                | JournalError::Lost(_)
                // Whoever has it is slow to give it back, or nobody could say who has.
                | JournalError::Locked(_)),
            )) => {
                tracing::warn!(%error, "a space of this node cannot be loaded anew yet");
                tokio::time::sleep(AGAIN).await;
            }
            prepared => return prepared,
        }
    }
}
