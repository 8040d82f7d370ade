//! Looks at working trees that several computations share: at the end of a turn one `git status` serves all that is watched.
//!
//! Promises: what is computed with the name of a look is computed from that look or from a newer one of the same directories. Few are kept,
//! and not for long: who comes too late has a look of its own.
//! Must not know: what is computed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::LookId;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use workspace::{Cancellation, TreeSnapshot, Workspace};

use super::recent_looks::RecentLooks;
use super::store;
use crate::effects::Bodies;
use crate::task;

/// Looks that are kept.
const LOOKS_MAX: usize = 8;

/// How long one is kept; whatever is computed from it has begun by then.
const LOOK_TIME: Duration = Duration::from_secs(60);

/// Working directories as they were when somebody looked.
#[derive(Debug)]
pub(crate) struct SharedLook {
    pub workspace: Workspace,
    pub look: TreeSnapshot,
}

/// The looks of the last turns. A handle.
#[derive(Clone, Default)]
pub(crate) struct SharedLooks {
    kept: Arc<Mutex<CachedLooks>>,
    recent: RecentLooks,
}

#[derive(Default)]
struct CachedLooks {
    last: u64,
    looks: VecDeque<CachedLook>,
}

struct CachedLook {
    id: LookId,
    directories: Vec<String>,
    since: Instant,
    taken: Arc<OnceCell<Arc<SharedLook>>>,
}

impl SharedLooks {
    /// What the next look at the same directories need not read again.
    pub(crate) fn recent(&self) -> &RecentLooks {
        &self.recent
    }

    /// Names a look that is about to be taken, or will be when it is first needed.
    pub(crate) fn name(&self, directories: &[String]) -> LookId {
        let mut kept = self.kept.lock();
        kept.last += 1;
        let id = LookId(kept.last);
        kept.looks.retain(|look| look.since.elapsed() < LOOK_TIME);
        if kept.looks.len() == LOOKS_MAX {
            kept.looks.pop_front();
        }
        kept.looks.push_back(CachedLook {
            id,
            directories: directories.to_vec(),
            since: Instant::now(),
            taken: Arc::default(),
        });
        id
    }

    /// It is taken; whoever took one under this name meanwhile keeps that.
    pub(crate) fn add(&self, id: LookId, taken: SharedLook) {
        let kept = self.kept.lock();
        let look = kept.looks.iter().find(|look| look.id == id);
        if let Some(look) = look {
            // Both are as new as they have to be.
            let _ = look.taken.set(Arc::new(taken));
        }
    }

    /// A look at directories: that of this name or a newer one, or one that is taken now.
    pub(crate) async fn get(
        &self,
        id: Option<LookId>,
        directories: &[String],
        bodies: &Bodies,
    ) -> Result<Arc<SharedLook>, String> {
        let kept = match id {
            Some(id) => self.newest(id, directories),
            None => {
                self.forget(directories);
                None
            }
        };
        let take = || take(directories.to_vec(), bodies.clone());
        match kept {
            Some(kept) => kept.get_or_try_init(take).await.cloned(),
            None => take().await,
        }
    }

    fn newest(&self, id: LookId, directories: &[String]) -> Option<Arc<OnceCell<Arc<SharedLook>>>> {
        let kept = self.kept.lock();
        let mut newer = kept.looks.iter().rev().take_while(|look| look.id >= id);
        let is_usable = |look: &&CachedLook| {
            look.directories == directories && look.since.elapsed() < LOOK_TIME
        };
        let found = newer.find(is_usable)?;
        Some(Arc::clone(&found.taken))
    }

    /// Something else than a turn changed the directories, or may have: whatever is computed from now on needs a newer look.
    fn forget(&self, directories: &[String]) {
        self.kept.lock().looks.retain(|look| look.directories != directories);
    }
}

/// Looks at the repositories that directories lie in.
async fn take(directories: Vec<String>, bodies: Bodies) -> Result<Arc<SharedLook>, String> {
    let work = task::spawn_blocking(move || {
        let confinement = bodies.confinement();
        let workspace =
            Workspace::open(&directories, confinement).map_err(|error| error.to_string())?;
        let mut keep = store::keep_in(&bodies);
        let never = Cancellation::default();
        let look = workspace.look_at_repositories(confinement, &mut keep, &never);
        Ok(Arc::new(SharedLook { workspace, look }))
    });
    work.await.unwrap_or_else(|died| Err(format!("computing failed because of a defect: {died}")))
}
