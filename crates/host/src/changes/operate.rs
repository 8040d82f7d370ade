//! Operations on changesets: discard, restore, stage, commit, merge (H-287, G-53).
//!
//! Promises: what an operation was not asked to change it does not change; one that cannot be carried out says why and leaves files as
//! they were, or says exactly which it could not bring back.
//! Must not know: who asked.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{
    Batch, ChangesInput, ChangesetKind, ChangesetOperation, ChangesetTarget, ChannelId, Input, Seq,
};
use serde_json::{Value, json};
use wire::rpc::code;
use wire::{ForceOffer, RpcError};
use workspace::{Cancellation, GitError, Repository, Workspace};

use super::compute::tell_git;
use super::discard::DiscardPlan;
use super::take_back::{self, TakenBack};
use super::{FileChanges, store};
use crate::effects::{Bodies, send};
use crate::journal::JournalHandle;
use crate::kernel_queue::KernelQueue;
use crate::task;

/// Longest message of a commit, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1_024;

/// What an operation works with.
#[derive(Clone)]
pub(crate) struct OperationServices {
    pub bodies: Bodies,
    pub journal: JournalHandle,
    pub arrivals: KernelQueue,
    pub session_changes: Arc<tokio::sync::Mutex<()>>,
}

/// Carries out an operation; what its client is answered.
pub(crate) async fn operate(
    operation: ChangesetOperation,
    services: OperationServices,
) -> Result<Value, RpcError> {
    let (changeset, id) = (operation.place.changeset.clone(), operation.id.clone());
    let tell = |running: Result<bool, String>| {
        Input::Changes(ChangesInput::OperationStatus {
            changeset: changeset.clone(),
            operation: id.clone(),
            running,
        })
    };
    send(&services.arrivals, tell(Ok(true))).await;
    let place = operation.place.clone();
    let outcome = carry_out(operation, &services).await;
    if changes_repository(&place) {
        let directories = &place.working_directories;
        let (arrivals, bodies) = (&services.arrivals, &services.bodies);
        tell_git(arrivals, &place.session, directories, bodies, None).await;
    }
    let running =
        match &outcome {
            Ok(_) => Ok(false),
            // How a program insists is nothing for those who read this.
            Err(error) => Err(ForceOffer::of_error(error)
                .map_or_else(|| error.message.clone(), |offer| offer.reason)),
        };
    send(&services.arrivals, tell(running)).await;
    outcome.map(|message| json!({"message": message}))
}

fn changes_repository(place: &ChangesetTarget) -> bool {
    matches!(place.kind, ChangesetKind::Uncommitted | ChangesetKind::Branch)
}

async fn carry_out(
    operation: ChangesetOperation,
    services: &OperationServices,
) -> Result<String, RpcError> {
    let is_forced = operation.meta.get("force") == Some(&Value::Bool(true));
    match (&operation.place.kind, operation.id.as_str()) {
        (ChangesetKind::Turn { chat, turn_id }, "discard" | "restore") => {
            let chat = chat.ok_or_else(|| bad("this turn changed no files"))?;
            let changes = read(services, chat, turn_id).await?;
            take_back(&operation, changes, is_forced, services).await
        }
        (ChangesetKind::Session, "discard") => {
            let session = operation.place.session_id;
            let changes = read(services, session, "").await?;
            take_back(&operation, changes, is_forced, services).await
        }
        (ChangesetKind::Uncommitted | ChangesetKind::Branch, _) => {
            let bodies = services.bodies.clone();
            let work = task::spawn_blocking(move || with_git(&operation, &bodies, is_forced));
            work.await.unwrap_or_else(|died| Err(internal(format!("a defect: {died}"))))
        }
        (ChangesetKind::Turn { .. } | ChangesetKind::Session, _) => {
            Err(bad("this changeset has no such operation"))
        }
    }
}

/// What a turn changed, or a session by an empty turn id.
async fn read(
    services: &OperationServices,
    channel: ChannelId,
    turn_id: &str,
) -> Result<FileChanges, RpcError> {
    let read = store::read(&services.journal, channel, turn_id).await;
    read.map_err(|error| internal(format!("nothing was done: {error}")))
}

/// Makes files what they were before a turn or a session.
async fn take_back(
    operation: &ChangesetOperation,
    mut changes: FileChanges,
    is_forced: bool,
    services: &OperationServices,
) -> Result<String, RpcError> {
    if let Some(resource) = &operation.resource {
        changes.keep_only(resource);
        if changes.files.is_empty() {
            return Err(bad("this file is not in the changeset"));
        }
    }
    let _writing = services.session_changes.lock().await;
    let session_id = operation.place.session_id;
    let mut session = read(services, session_id, "").await?;
    let known = session.clone();
    let (directories, bodies) =
        (operation.place.working_directories.clone(), services.bodies.clone());
    let work = task::spawn_blocking(move || {
        let workspace = Workspace::open(&directories, bodies.confinement())
            .map_err(|error| internal(error.to_string()))?;
        let taken = take_back::take_back(&workspace, &bodies, &changes, &known, is_forced)?;
        for (uri, now) in &taken.now {
            session.set_after(uri, *now);
        }
        session.remove_nothings();
        store::count_lines(&mut session, &bodies);
        Ok((taken, session))
    });
    let done = work.await.unwrap_or_else(|died| Err(internal(format!("a defect: {died}"))));
    let (taken, session): (TakenBack, FileChanges) = done?;
    let batch = Batch { seq: Seq(0), records: store::records_of(session_id, "", &session) };
    if let Err(error) = services.journal.append(batch).await {
        tracing::warn!(%error, "the recorded changes of a session could not be updated and may be out of date");
    }
    let counted = Input::Changes(ChangesInput::Counted {
        session: operation.place.session.clone(),
        totals: session.total().to_value(),
    });
    send(&services.arrivals, counted).await;
    Ok(taken.message())
}

fn with_git(
    operation: &ChangesetOperation,
    bodies: &Bodies,
    is_forced: bool,
) -> Result<String, RpcError> {
    let place = &operation.place;
    let never = Cancellation::default();
    let workspace = Workspace::open(&place.working_directories, bodies.confinement())
        .map_err(|error| internal(error.to_string()))?;
    let directories = workspace.real_directories();
    let found = directories
        .first()
        .map(|first| Repository::find(first, bodies.confinement(), &never).map_err(of_git));
    let repository = found.transpose()?.flatten();
    let repository = repository.ok_or_else(|| bad("this session works in no git repository"))?;
    let path = operation.resource.as_deref().map(|uri| path_in(&repository, uri)).transpose()?;
    match (&place.kind, operation.id.as_str()) {
        (ChangesetKind::Uncommitted, "stage") => {
            let paths = path.map(|path| vec![path]);
            repository.stage(paths.as_deref(), &never).map_err(of_git)?;
            Ok("Staged.".to_owned())
        }
        (ChangesetKind::Uncommitted, "commit") => {
            let message = operation.meta.get("message").and_then(Value::as_str).unwrap_or_default();
            if message.trim().is_empty() || message.len() > MESSAGE_BYTES_MAX {
                return Err(bad(
                    "a commit needs its message in `_meta.message`, of at most 64 KiB",
                ));
            }
            let report = repository.commit(message, &never).map_err(of_git)?;
            let commit: String = report.commit.chars().take(12).collect();
            Ok(if report.said.is_empty() {
                format!("Committed {commit}. The hooks of this repository were run.")
            } else {
                format!("Committed {commit}. The hooks of this repository said:\n{}", report.said)
            })
        }
        (ChangesetKind::Uncommitted, "discard") => {
            let paths = path.map(|path| vec![path]);
            let paths = paths.as_deref();
            DiscardPlan::make(&workspace, &repository, bodies, paths, is_forced)?.carry_out()
        }
        (ChangesetKind::Branch, "merge") => {
            let base =
                place.base.as_deref().ok_or_else(|| bad("there is no branch to merge into"))?;
            let merged = repository.merge_into(base, &never).map_err(of_git)?;
            let commit: String = merged.commit.chars().take(12).collect();
            Ok(format!("Merged into {}, which is at {commit} now.", merged.base))
        }
        (_, _) => Err(bad("this changeset has no such operation")),
    }
}

/// A path of the repository, from a URI of a file in the session's directory.
fn path_in(repository: &Repository, uri: &str) -> Result<PathBuf, RpcError> {
    use std::os::unix::ffi::OsStringExt;
    let path =
        wire::file_uri::path_of(uri).ok_or_else(|| bad("`target.resource` is not a file"))?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let real = match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        // The directory is gone: its name is all there is.
        (None, _) | (_, None) => path.clone(),
    };
    let inside = real.strip_prefix(repository.directory()).is_ok();
    match real.strip_prefix(repository.top()) {
        Ok(path) if inside => Ok(path.to_owned()),
        Ok(_) | Err(_) => Err(bad("`target.resource` lies outside the working directory")),
    }
}

pub(super) fn bad(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message.into())
}

pub(super) fn conflict(message: impl Into<String>) -> RpcError {
    RpcError::new(code::CONFLICT, message.into())
}

pub(super) fn internal(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, message.into())
}

pub(super) fn of_git(error: GitError) -> RpcError {
    match error {
        GitError::Conflict { .. }
        | GitError::Unfinished { .. }
        | GitError::Locked
        | GitError::Refused(_)
        | GitError::Filtered { .. } => conflict(error.to_string()),
        GitError::NotStarted(_)
        | GitError::TimedOut { .. }
        | GitError::TooMuch { .. }
        | GitError::Failed(_)
        | GitError::Unreadable
        | GitError::Cancelled => internal(error.to_string()),
    }
}
