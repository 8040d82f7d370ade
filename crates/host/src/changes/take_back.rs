//! Makes files what they were before some changes, all of them or none.
//!
//! Promises: a file that somebody changed since is left alone unless that is wanted. What files hold is kept first. If one cannot be
//! written (a full disk), those that were are brought back to what they held; which could not be is said by name.
//! Must not know: which changes, and why.

use wire::{ForceOffer, RpcError};
use workspace::{Cancellation, FileNow, WantedFile, Workspace, WorkspacePath, is_link};

use super::operate::{conflict, internal};
use super::{ChangedSide, FileChanges, RecordedChange, store};
use crate::blobs::Blobs;
use crate::effects::Bodies;

/// Files that are named in an error.
pub(super) const NAMED_MAX: usize = 10;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct TakenBack {
    /// What is there now, by URI.
    pub now: Vec<(String, Option<ChangedSide>)>,
}

impl TakenBack {
    pub(super) fn message(&self) -> String {
        match self.now.len() {
            0 => "The files are what they were already.".to_owned(),
            1 => "1 file is what it was.".to_owned(),
            many => format!("{many} files are what they were."),
        }
    }
}

/// A file that is to be changed.
struct PlannedRestore {
    uri: String,
    path: WorkspacePath,
    now: Option<FileNow>,
    wanted: Option<ChangedSide>,
    content: Vec<u8>,
    directories: usize,
    sets_mode: bool,
}

/// Makes files what they were before `changes`. What `known` says of a file as it is now is the agent's, too.
pub(super) fn take_back(
    workspace: &Workspace,
    bodies: &Bodies,
    changes: &FileChanges,
    known: &FileChanges,
    is_forced: bool,
) -> Result<TakenBack, RpcError> {
    let store = bodies.store();
    let (mut planned, mut foreign, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for file in changes.files.values() {
        match plan(workspace, &*store, file) {
            Ok(None) => {}
            Ok(Some(plan)) => {
                if !is_forced && !is_known(&plan, file, known.files.get(&file.uri)) {
                    foreign.push((workspace.display_path(&plan.path), file.uri.clone()));
                }
                planned.push(plan);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        problems.truncate(NAMED_MAX);
        return Err(conflict(format!("nothing was done: {}", problems.join("; "))));
    }
    if !foreign.is_empty() {
        foreign.truncate(NAMED_MAX);
        let (names, resources): (Vec<String>, Vec<String>) = foreign.into_iter().unzip();
        let offer = ForceOffer {
            reason: format!("nothing was done: {} changed since", names.join(", ")),
            resources,
        };
        return Err(offer.to_error("replace what is there"));
    }
    apply(workspace, bodies, &planned)?;
    let now = planned.into_iter().map(|plan| (plan.uri, plan.wanted));
    Ok(TakenBack { now: now.collect() })
}

fn plan(
    workspace: &Workspace,
    store: &dyn Blobs,
    file: &RecordedChange,
) -> Result<Option<PlannedRestore>, String> {
    let path = workspace.path_of_uri(&file.uri).map_err(|error| error.to_string())?;
    let name = workspace.display_path(&path);
    let is_link_side =
        |side: Option<ChangedSide>| side.and_then(|side| side.mode).is_some_and(is_link);
    let may_be_link = is_link_side(file.before) || is_link_side(file.after);
    let now = if may_be_link { workspace.look_at_any(&path) } else { workspace.look_at(&path) };
    let now = now.map_err(|error| error.to_string())?;
    let mode = |side: Option<ChangedSide>| side.and_then(|side| side.mode);
    let sets_mode =
        mode(file.before).zip(mode(file.after)).is_some_and(|(one, other)| one != other);
    let wanted_digest = match file.before {
        None => None,
        Some(side) => Some(side.digest.ok_or_else(|| {
            format!("what {name} held is not kept: it is too large, or could not be had")
        })?),
    };
    let has_mode = !sets_mode || mode(file.before) == now.as_ref().map(|now| now.mode);
    if wanted_digest == now.as_ref().map(|now| now.digest) && has_mode {
        return Ok(None);
    }
    let content = match wanted_digest {
        Some(digest) => store::read_content(store, digest)
            .ok_or_else(|| format!("what {name} held is not kept any more"))?,
        None => Vec::new(),
    };
    Ok(Some(PlannedRestore {
        uri: file.uri.clone(),
        path,
        now,
        wanted: file.before,
        content,
        directories: file.new_directories,
        sets_mode,
    }))
}

/// Whether what is there is something that a turn of the session left there.
fn is_known(
    plan: &PlannedRestore,
    file: &RecordedChange,
    session: Option<&RecordedChange>,
) -> bool {
    let left = [file.before, file.after]
        .into_iter()
        .chain(session.into_iter().flat_map(|file| [file.before, file.after]));
    match &plan.now {
        // What was removed since can be made again without loss.
        None => true,
        Some(now) => left.flatten().any(|side| side.digest == Some(now.digest)),
    }
}

fn apply(
    workspace: &Workspace,
    bodies: &Bodies,
    planned: &[PlannedRestore],
) -> Result<(), RpcError> {
    let mut keep = store::keep_in(bodies);
    for plan in planned {
        if let Some(now) = &plan.now {
            let kept = keep(&now.digest, &now.bytes);
            kept.map_err(|error| internal(format!("nothing was done: {error}")))?;
        }
    }
    let never = Cancellation::default();
    for (index, plan) in planned.iter().enumerate() {
        let seen = plan.now.as_ref().map(|now| now.digest);
        let wanted = match plan.wanted {
            Some(side) => WantedFile::Content {
                bytes: &plan.content,
                mode: side.mode,
                sets_mode: plan.sets_mode,
            },
            None => WantedFile::Absent { directories: plan.directories },
        };
        if let Err(error) = workspace.restore_file(&plan.path, seen, wanted, &never) {
            let done = planned.get(..index).unwrap_or_default();
            return Err(bring_back(workspace, done, &error.to_string()));
        }
    }
    Ok(())
}

/// Makes files again what they were before an operation that failed in the middle.
fn bring_back(workspace: &Workspace, done: &[PlannedRestore], why: &str) -> RpcError {
    let never = Cancellation::default();
    let mut left = Vec::new();
    for plan in done.iter().rev() {
        let seen = plan.wanted.and_then(|side| side.digest);
        let wanted = match &plan.now {
            Some(now) => WantedFile::Content {
                bytes: &now.bytes,
                mode: Some(now.mode),
                sets_mode: plan.sets_mode,
            },
            None => WantedFile::Absent { directories: 0 },
        };
        if workspace.restore_file(&plan.path, seen, wanted, &never).is_err() {
            left.push(workspace.display_path(&plan.path));
        }
    }
    if left.is_empty() {
        conflict(format!("nothing was done: {why}"))
    } else {
        conflict(format!(
            "{why}; these are what they were before, the others are not: {}",
            left.join(", ")
        ))
    }
}

#[cfg(test)]
#[path = "take_back_tests.rs"]
mod tests;
