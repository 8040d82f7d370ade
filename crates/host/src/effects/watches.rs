//! Watches of files for clients: each is a task that waits for the operating system and sends changes to the kernel in batches.
//!
//! Promises: at most so many at once; what happens within a moment is one batch; a watch ends when the kernel wants it to, and
//! when what it watches outside the roots is not granted any more; what ends by itself says why.
//! Must not know: who listens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kernel::{FileRefusal, FileRefusalReason, Input, SeenResources, Ticket, WatchTask};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;
use wire::ChannelUri;
use workspace::{
    ResourceAccess, ResourceChange, ResourceChangeKind, ResourceWatch, WatchRequest, WatchedBatch,
};

use super::files::{ClientFileAccess, FileWork, refusal};
use super::{Effects, send};
use crate::kernel_queue::KernelQueue;
use crate::task;

/// Watches at once: a system has 128 for all programs of a user.
const WATCHES_MAX: usize = 64;

/// How long changes are gathered.
const BATCH: Duration = Duration::from_millis(100);

/// Watches that run, by their channels. A handle: clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches {
    running: Arc<Mutex<HashMap<ChannelUri, CancellationToken>>>,
}

impl Watches {
    /// A name for one more watch, if there may be one.
    fn enter(&self) -> Result<(ChannelUri, CancellationToken), FileRefusal> {
        let failed = |message: String| FileRefusal { why: FileRefusalReason::Failed, message };
        let mut running = self.running.lock();
        if running.len() >= WATCHES_MAX {
            return Err(failed(format!(
                "this host has {WATCHES_MAX} watches, and no more at once; unsubscribe from some"
            )));
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| failed(error.to_string()))?;
        let name = format!("ahp-resource-watch:/{:032x}", u128::from_ne_bytes(random));
        let uri = ChannelUri::parse(&name).map_err(|error| failed(error.to_string()))?;
        let token = CancellationToken::new();
        running.insert(uri.clone(), token.clone());
        Ok((uri, token))
    }
}

impl Effects {
    pub(crate) fn begin_watch(&self, ticket: Ticket, task: WatchTask) {
        let (files, arrivals) = (self.tools().files.clone(), self.arrivals.clone());
        let watches = self.tools().watches.clone();
        task::spawn(async move {
            let (uri, ended) = match watches.enter() {
                Ok(entered) => entered,
                Err(refused) => {
                    let begun = Err(refused);
                    return send(&arrivals, Input::WatchBegun { ticket, begun }).await;
                }
            };
            match files.clone().watch(task.clone()).await {
                Ok(watch) => {
                    let begun = Ok(uri.clone());
                    send(&arrivals, Input::WatchBegun { ticket, begun }).await;
                    let next = tokio::select! {
                        () = ended.cancelled() => None,
                        last = tell(watch, &uri, &task, &files, &arrivals) => Some(last),
                    };
                    if let Some(seen) = next {
                        let watch = uri.clone();
                        send(&arrivals, Input::ResourcesChanged { watch, seen }).await;
                    }
                }
                Err(refused) => {
                    let begun = Err(refused);
                    send(&arrivals, Input::WatchBegun { ticket, begun }).await;
                }
            }
            watches.running.lock().remove(&uri);
        });
    }

    pub(crate) fn end_watch(&self, watch: &ChannelUri) {
        // One that ended by itself is not there any more.
        if let Some(token) = self.tools().watches.running.lock().get(watch) {
            token.cancel();
        }
    }
}

impl ClientFileAccess {
    async fn watch(self, task: WatchTask) -> Result<ResourceWatch, FileRefusal> {
        self.run(FileWork::Look, move |access| {
            let request = WatchRequest {
                uri: &task.uri,
                recursive: task.recursive,
                excludes: &task.excludes,
                includes: task.includes.as_deref(),
            };
            let watch = access.files().watch(&request, &access.grants_of(&task.client_id));
            watch.map_err(|error| refusal(&error, None))
        })
        .await
    }

    /// Whether a client may still watch what it watches.
    fn may_watch(&self, task: &WatchTask) -> bool {
        let grants = self.grants_of(&task.client_id);
        let found = self.files().find_grant(&task.uri, ResourceAccess::Read, &grants);
        !matches!(found, Err(workspace::ResourceError::Outside { .. }))
    }
}

/// Sends changes to the kernel until the watch fails. Returns the last report.
async fn tell(
    watch: ResourceWatch,
    uri: &ChannelUri,
    task: &WatchTask,
    files: &ClientFileAccess,
    arrivals: &KernelQueue,
) -> SeenResources {
    let mut watch = watch;
    // Registered with the runtime like a pipe, which is all that is safe to have for a descriptor of another kind.
    let ready = watch.share_events().and_then(Receiver::from_file_unchecked);
    let ready = match ready {
        Ok(ready) => ready,
        Err(error) => {
            tracing::error!(%error, "a watch of files cannot be waited for; it ends");
            return last_words(task, format!("it cannot be watched: {error}"));
        }
    };
    loop {
        if let Err(error) = ready.readable().await {
            tracing::error!(%error, "a watch of files failed; it ends");
            return last_words(task, format!("it cannot be watched any more: {error}"));
        }
        tokio::time::sleep(BATCH).await;
        let (access, wanted) = (files.clone(), task.clone());
        // New directories are walked.
        let read = task::spawn_blocking(move || {
            let batch = access.may_watch(&wanted).then(|| watch.read_changes());
            (watch, batch)
        });
        let seen = match read.await {
            Ok((back, Some(batch))) => {
                watch = back;
                seen_resources(batch)
            }
            Ok((_, None)) => {
                let why = "it lies outside the directories that clients may use, and is not granted any more";
                return last_words(task, why.to_owned());
            }
            Err(died) => {
                tracing::error!(%died, "a watch of files failed because of a defect");
                return last_words(task, "it failed because of a defect".to_owned());
            }
        };
        if seen.end.is_some() {
            return seen;
        }
        if !seen.changes.is_empty() {
            let watch = uri.clone();
            send(arrivals, Input::ResourcesChanged { watch, seen }).await;
        }
        // No event fits into one byte: this reads nothing, and tells the runtime if there is nothing more to read.
        let _ = ready.try_read(&mut [0]);
    }
}

/// The report of a watch that ends without having seen anything.
fn last_words(task: &WatchTask, why: String) -> SeenResources {
    SeenResources {
        changes: vec![json!({"uri": task.uri, "type": "updated"})],
        is_incomplete: true,
        end: Some(why),
    }
}

fn seen_resources(batch: WatchedBatch) -> SeenResources {
    SeenResources {
        changes: batch.changes.into_iter().map(change_value).collect(),
        is_incomplete: batch.is_incomplete,
        end: batch.end.map(|why| why.to_string()),
    }
}

fn change_value(change: ResourceChange) -> Value {
    let kind = match change.kind {
        ResourceChangeKind::Added => "added",
        ResourceChangeKind::Updated => "updated",
        ResourceChangeKind::Deleted => "deleted",
    };
    json!({"uri": change.uri, "type": kind})
}
