//! Changesets that are computed when somebody looks at them.
//!
//! Promises: of one changeset at most one computation runs; asked meanwhile, it is computed once more after that. A few run at once,
//! the others wait, so a client that subscribes to very many costs no more than time. What is computed at the end of a turn is computed
//! from one look at the tree.
//! Must not know: who looks.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use kernel::{ChangesInput, ChangesetKind, ChangesetTarget, ChannelId, ComputedChangeset, Input};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wire::ChannelUri;
use workspace::{Cancellation, Confinement, GitError, Repository, TreeChanges};

use super::changeset::{
    operations_of_branch, operations_of_session, operations_of_turn, operations_of_uncommitted,
};
use super::shared_looks::{SharedLook, SharedLooks};
use super::{ChangedSide, FileChanges, RecordedChange, store};
use crate::effects::{Bodies, send};
use crate::journal::JournalHandle;
use crate::kernel_queue::KernelQueue;
use crate::sorted_map::SortedMap;
use crate::task;

/// Computations at once.
const COMPUTING_MAX: usize = 2;

/// The computations that run.
#[derive(Clone)]
pub(crate) struct Computing {
    /// Those at work, and whether they are wanted again.
    running: Arc<Mutex<SortedMap<ChannelUri, Option<ChangesetTarget>>>>,
    permits: Arc<Semaphore>,
    looks: SharedLooks,
}

impl Computing {
    pub(crate) fn new(looks: SharedLooks) -> Self {
        Self { running: Arc::default(), permits: Arc::new(Semaphore::new(COMPUTING_MAX)), looks }
    }

    /// Computes a changeset and tells the kernel.
    pub(crate) fn start(
        &self,
        place: ChangesetTarget,
        bodies: Bodies,
        journal: JournalHandle,
        arrivals: KernelQueue,
    ) {
        if !self.begin(&place) {
            return; // it is computed once more when the one at work is done
        }
        let own = self.clone();
        task::spawn(async move {
            let mut next = Some(place);
            while let Some(place) = next {
                let permit = own.permits.acquire().await;
                let computed = compute(&place, &own.looks, &bodies, &journal).await;
                drop(permit);
                if place.kind == ChangesetKind::Uncommitted
                    && let Ok(computed) = &computed
                {
                    let count = Some(computed.files.len());
                    let directories = &place.working_directories;
                    tell_git(&arrivals, &place.session, directories, &bodies, count).await;
                }
                let changeset = place.changeset.clone();
                let answer = Input::Changes(ChangesInput::Computed { changeset, computed });
                send(&arrivals, answer).await;
                next = own.end(&place.changeset);
            }
        });
    }

    fn begin(&self, place: &ChangesetTarget) -> bool {
        let mut running = self.running.lock();
        match running.get_mut(&place.changeset) {
            Some(again) => {
                let is_new = again.as_ref().is_some_and(|again| again.look.is_none());
                let again = again.insert(place.clone());
                // Whoever subscribed meanwhile sees what is there now.
                again.look = again.look.filter(|_| !is_new);
                false
            }
            None => {
                running.insert(place.changeset.clone(), None);
                true
            }
        }
    }

    /// One is done; what is to be computed next.
    fn end(&self, changeset: &ChannelUri) -> Option<ChangesetTarget> {
        let mut running = self.running.lock();
        match running.get_mut(changeset).and_then(Option::take) {
            Some(again) => Some(again),
            None => {
                running.remove(changeset);
                None
            }
        }
    }
}

async fn compute(
    place: &ChangesetTarget,
    looks: &SharedLooks,
    bodies: &Bodies,
    journal: &JournalHandle,
) -> Result<ComputedChangeset, String> {
    let (changes, operations) = match &place.kind {
        ChangesetKind::Session => {
            (read_recorded(journal, place.session_id, "").await?, operations_of_session())
        }
        ChangesetKind::Turn { chat, turn_id } => {
            let chat = chat.ok_or("the chat of this turn is not known")?;
            let changes = read_recorded(journal, chat, turn_id).await?;
            (changes, operations_of_turn())
        }
        ChangesetKind::Uncommitted => {
            (since_commit(place, None, looks, bodies).await?, operations_of_uncommitted())
        }
        ChangesetKind::Branch => {
            let base = place.base.clone().ok_or("there is no branch to compare with")?;
            let operations = operations_of_branch(&base);
            (since_commit(place, Some(base), looks, bodies).await?, operations)
        }
    };
    Ok(ComputedChangeset { files: changes.changeset_files(), operations, problem: None })
}

/// What was recorded of a turn, or of a session by an empty turn id.
async fn read_recorded(
    journal: &JournalHandle,
    channel: ChannelId,
    turn_id: &str,
) -> Result<FileChanges, String> {
    store::read(journal, channel, turn_id).await.map_err(|error| error.to_string())
}

/// What differs from the last commit, or from where a branch began.
async fn since_commit(
    place: &ChangesetTarget,
    base: Option<String>,
    looks: &SharedLooks,
    bodies: &Bodies,
) -> Result<FileChanges, String> {
    let taken = looks.get(place.look, &place.working_directories, bodies);
    let (taken, bodies) = (taken.await?, bodies.clone());
    let work = task::spawn_blocking(move || {
        let never = Cancellation::default();
        let mut keep = store::keep_in(&bodies);
        let SharedLook { workspace, look } = &*taken;
        let found = workspace.changed_since_commit(look, base.as_deref(), &mut keep, &never)?;
        let mut changes = from_tree(found);
        store::make_durable(&mut changes, &bodies);
        store::count_lines(&mut changes, &bodies);
        Ok(changes)
    });
    work.await.unwrap_or_else(|died| Err(format!("computing failed because of a defect: {died}")))
}

fn from_tree(found: TreeChanges) -> FileChanges {
    let files = found.changes.into_iter().map(|change| {
        let file = RecordedChange {
            before: change.before.map(ChangedSide::from),
            after: change.after.map(ChangedSide::from),
            new_directories: change.new_directories,
            stats: workspace::DiffStats::default(),
            uri: change.uri,
        };
        (file.uri.clone(), file)
    });
    FileChanges { files: files.collect(), problems: found.problems }
}

/// Finds out where the repository stands that a session works in, and tells the kernel; with how many files differ from the last commit, if
/// that was counted. If git fails, what is known stays as it is; whether it could be told.
pub(crate) async fn tell_git(
    arrivals: &KernelQueue,
    session: &ChannelUri,
    directories: &[String],
    bodies: &Bodies,
    uncommitted: Option<usize>,
) -> bool {
    match find_git(directories, bodies.confinement()).await {
        Ok(mut git) => {
            if let (Some(git), Some(uncommitted)) = (&mut git, uncommitted) {
                git["uncommittedChanges"] = json!(uncommitted);
            }
            let session = session.clone();
            let found = ChangesInput::GitFound { session, git };
            send(arrivals, Input::Changes(found)).await;
            true
        }
        Err(_) => {
            // What git says may hold a path.
            tracing::warn!(
                "git could not read the state of a session's repository; clients see none"
            );
            false
        }
    }
}

/// `_meta.git` of a session that works in these directories; `None` if the first is in no repository.
async fn find_git(
    directories: &[String],
    confinement: &Confinement,
) -> Result<Option<Value>, GitError> {
    let first = directories.first();
    let Some(first) = first.and_then(|uri| wire::file_uri::path_of(uri)) else {
        return Ok(None); // it works nowhere
    };
    let first = PathBuf::from(std::ffi::OsString::from_vec(first));
    let confinement = confinement.clone();
    let work = task::spawn_blocking(move || {
        let never = Cancellation::default();
        let Some(repository) = Repository::find(&first, &confinement, &never)? else {
            return Ok(None);
        };
        let mut git = json!({});
        let branch = repository.checked_out(&never).ok();
        if let Some(branch) = &branch {
            git["branchName"] = json!(branch);
        }
        let base = repository.base_branch(&never).ok().flatten();
        if let Some(base) = base.filter(|base| Some(base) != branch.as_ref()) {
            git["baseBranchName"] = json!(base);
        }
        if let Some(operation) = repository.unfinished() {
            git["unfinished"] = json!(operation);
        }
        Ok(Some(git))
    });
    work.await.unwrap_or_else(|died| {
        tracing::error!(%died, "looking at the repository of a session failed because of a defect");
        Err(GitError::Unreadable)
    })
}
