//! Changesets that are computed when somebody looks at them.
//!
//! Promises: of one changeset at most one computation runs; asked meanwhile, it is computed once more after that. A few run at once,
//! the others wait, so a client that subscribes to very many costs no more than time.
//! Must not know: who looks.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{ChangesInput, ChangesetKind, ChangesetPlace, ChannelId, ComputedChangeset, Input};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wire::ChannelUri;
use workspace::{Cancellation, Confinement, Repository, TreeChanges, Workspace};

use super::changeset::{
    operations_of_branch, operations_of_session, operations_of_turn, operations_of_uncommitted,
};
use super::{ChangedSide, FileChanges, RecordedChange, store};
use crate::effects::{Bodies, send};
use crate::journal::JournalHandle;
use crate::kernel_queue::KernelQueue;

/// Computations at once.
const COMPUTING_MAX: usize = 2;

/// The computations that run.
#[derive(Clone)]
pub(crate) struct Computing {
    /// Those at work, and whether they are wanted again.
    running: Arc<Mutex<BTreeMap<ChannelUri, Option<ChangesetPlace>>>>,
    permits: Arc<Semaphore>,
}

impl Default for Computing {
    fn default() -> Self {
        Self {
            running: Arc::default(),
            permits: Arc::new(Semaphore::new(COMPUTING_MAX)),
        }
    }
}

impl Computing {
    /// Computes a changeset and tells the kernel.
    pub(crate) fn start(
        &self,
        place: ChangesetPlace,
        bodies: Bodies,
        journal: JournalHandle,
        arrivals: KernelQueue,
    ) {
        if !self.begin(&place) {
            return; // it is computed once more when the one at work is done
        }
        let own = self.clone();
        tokio::spawn(async move {
            let mut next = Some(place);
            while let Some(place) = next {
                let permit = own.permits.acquire().await;
                let computed = compute(&place, &bodies, &journal).await;
                drop(permit);
                if place.kind == ChangesetKind::Uncommitted
                    && let Ok(computed) = &computed
                {
                    let git = find_git(&place.working_directories, bodies.confinement()).await;
                    let git = git.map(|git| with_count(git, computed.files.len()));
                    let session = place.session.clone();
                    send(
                        &arrivals,
                        Input::Changes(ChangesInput::GitFound { session, git }),
                    )
                    .await;
                }
                let changeset = place.changeset.clone();
                let answer = Input::Changes(ChangesInput::Computed {
                    changeset,
                    computed,
                });
                send(&arrivals, answer).await;
                next = own.end(&place.changeset);
            }
        });
    }

    fn begin(&self, place: &ChangesetPlace) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(&place.changeset) {
            Some(again) => {
                *again = Some(place.clone());
                false
            }
            None => {
                running.insert(place.changeset.clone(), None);
                true
            }
        }
    }

    /// One is done; what is to be computed next.
    fn end(&self, changeset: &ChannelUri) -> Option<ChangesetPlace> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(changeset).and_then(Option::take) {
            Some(again) => Some(again),
            None => {
                running.remove(changeset);
                None
            }
        }
    }
}

fn with_count(mut git: Value, files: usize) -> Value {
    git["uncommittedChanges"] = json!(files);
    git
}

async fn compute(
    place: &ChangesetPlace,
    bodies: &Bodies,
    journal: &JournalHandle,
) -> Result<ComputedChangeset, String> {
    let (changes, operations) = match &place.kind {
        ChangesetKind::Session => (
            recorded(journal, place.session_id, "").await?,
            operations_of_session(),
        ),
        ChangesetKind::Turn { chat, turn_id } => {
            let chat = chat.ok_or("the chat of this turn is not known")?;
            let changes = recorded(journal, chat, turn_id).await?;
            (changes, operations_of_turn())
        }
        ChangesetKind::Uncommitted => (
            since_commit(place, None, bodies).await?,
            operations_of_uncommitted(),
        ),
        ChangesetKind::Branch => {
            let base = place.base.clone();
            let base = base.ok_or("there is no branch to compare with")?;
            let operations = operations_of_branch(&base);
            (since_commit(place, Some(base), bodies).await?, operations)
        }
    };
    Ok(ComputedChangeset {
        files: changes.changeset_files(),
        operations,
    })
}

/// What was recorded of a turn, or of a session by an empty turn id.
async fn recorded(
    journal: &JournalHandle,
    channel: ChannelId,
    turn_id: &str,
) -> Result<FileChanges, String> {
    let read = store::read(journal, channel, turn_id).await;
    read.map_err(|error| error.to_string())
}

/// What differs from the last commit, or from where a branch began.
async fn since_commit(
    place: &ChangesetPlace,
    base: Option<String>,
    bodies: &Bodies,
) -> Result<FileChanges, String> {
    let (directories, bodies) = (place.working_directories.clone(), bodies.clone());
    let work = tokio::task::spawn_blocking(move || {
        let confinement = bodies.confinement();
        let workspace = Workspace::open(&directories, confinement);
        let workspace = workspace.map_err(|error| error.to_string())?;
        let never = Cancellation::default();
        let mut keep = store::keep_in(&bodies);
        let found =
            workspace.changed_since_commit(confinement, base.as_deref(), &mut keep, &never)?;
        let mut changes = from_tree(found);
        store::count_lines(&mut changes, &bodies);
        Ok(changes)
    });
    let done = work.await;
    done.unwrap_or_else(|died| Err(format!("computing failed because of a defect: {died}")))
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
    FileChanges {
        files: files.collect(),
        problems: found.problems,
    }
}

/// `_meta.git` of a session that works in these directories; `None` if the first is in no repository.
pub(crate) async fn find_git(directories: &[String], confinement: &Confinement) -> Option<Value> {
    let first = wire::file_uri::path_of(directories.first()?)?;
    let first = PathBuf::from(std::ffi::OsString::from_vec(first));
    let confinement = confinement.clone();
    let work = tokio::task::spawn_blocking(move || {
        let never = Cancellation::default();
        let repository = Repository::find(&first, &confinement, &never).ok()??;
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
        Some(git)
    });
    work.await.ok().flatten()
}
