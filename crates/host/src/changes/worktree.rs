//! Sessions with a worktree of their own (G-54): made before the session is ready, removed with it if nothing would be lost.
//!
//! Promises: a session that wants a worktree and cannot have one is not begun in the user's own working tree instead.
//! Must not know: what the session does there.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use agent_api::AgentError;
use serde_json::{Value, json};
use wire::{ChannelUri, Object, file_uri};
use workspace::{Cancellation, Confinement, NewWorktree, Repository, WorktreeEnd, worktree_name};

use crate::task;

/// Names that are tried.
const NAMES_MAX: usize = 100;

/// Branches that are offered.
const BRANCHES_MAX: usize = 200;

/// A worktree that was made for a session.
#[derive(Debug)]
pub(crate) struct SessionWorktree {
    /// The working directory that it takes the place of, and the one in it: `file:` URIs.
    pub directory: String,
    pub replacement: String,
    /// `_meta.git.worktree`
    pub facts: Value,
}

/// A worktree that a session's settings want.
pub(crate) struct WorktreeRequest {
    /// What it may be called.
    name: String,
    /// The working directory that it is of, if the session has one.
    directory: Option<String>,
    branch: Option<String>,
}

impl WorktreeRequest {
    /// `None` if the session works where its client said.
    pub(crate) fn of(
        session: &ChannelUri,
        config: &Object,
        directories: &[String],
    ) -> Option<Self> {
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        if text("isolation") != Some("worktree") {
            return None;
        }
        let name = session.as_str().rsplit(['/', ':']).next();
        let branch = text("branch").filter(|branch| !branch.is_empty());
        Some(Self {
            name: worktree_name(name.unwrap_or_default()),
            directory: directories.first().cloned(),
            branch: branch.map(str::to_owned),
        })
    }
}

/// Makes a worktree if one is wanted; in `place` if worktrees do not lie in their repositories.
pub(crate) async fn make(
    request: Option<WorktreeRequest>,
    confinement: &Confinement,
    place: Option<PathBuf>,
) -> Result<Option<SessionWorktree>, AgentError> {
    let Some(request) = request else { return Ok(None) };
    let failed = |message: String| AgentError {
        error_type: "worktreeFailed".to_owned(),
        message: format!("no worktree can be made: {message}"),
        resumable: false,
    };
    let Some(directory) = request.directory.clone() else {
        return Err(failed("the session has no working directory".to_owned()));
    };
    let confinement = confinement.clone();
    let work = task::spawn_blocking(move || {
        let made = make_one(&directory, &request, place.as_deref(), &confinement)?;
        let uri = |path: &PathBuf| file_uri::uri_of(path.as_os_str().as_bytes());
        Ok(SessionWorktree {
            directory,
            replacement: uri(&made.directory),
            facts: json!({"top": uri(&made.top), "branch": made.branch, "base": made.base}),
        })
    });
    let made = work.await.unwrap_or_else(|died| Err(format!("a defect: {died}")));
    made.map(Some).map_err(failed)
}

fn make_one(
    directory: &str,
    request: &WorktreeRequest,
    place: Option<&Path>,
    confinement: &Confinement,
) -> Result<NewWorktree, String> {
    let (name, branch) = (&request.name, request.branch.as_deref());
    let never = Cancellation::default();
    let path = path_of(directory).ok_or("the working directory is no `file:` URI")?;
    let found = Repository::find(&path, confinement, &never).map_err(|error| error.to_string())?;
    let repository = found.ok_or("the working directory is in no git repository")?;
    let mut last = String::new();
    for number in 1..=NAMES_MAX {
        let name = match number {
            1 => name.to_owned(),
            number => format!("{name}-{number}"),
        };
        match repository.add_worktree(&name, branch, place, &never) {
            Ok(made) => return Ok(made),
            Err(error) if error.to_string().contains("already exists") => last = error.to_string(),
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(last)
}

fn path_of(uri: &str) -> Option<PathBuf> {
    let path = file_uri::path_of(uri)?;
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// A worktree as its session noted it; `None` if what it noted is damaged.
fn worktree_of(facts: &Value) -> Option<NewWorktree> {
    let text = |name: &str| facts[name].as_str().map(str::to_owned);
    let top = path_of(&text("top")?)?;
    Some(NewWorktree { directory: top.clone(), top, branch: text("branch")?, base: text("base")? })
}

/// Why the worktree of a session stays when the session ends, for people; `None` if it goes.
pub(crate) async fn why_kept(facts: Value) -> Option<String> {
    let Some(worktree) = worktree_of(&facts) else {
        return Some(
            "what the session noted of its worktree is damaged: the worktree is kept".to_owned(),
        );
    };
    let top = worktree.top.display().to_string();
    let never = Cancellation::default();
    let work = task::spawn_blocking(move || Repository::why_worktree_is_kept(&worktree, &never));
    match work.await {
        Ok(Ok(kept)) => kept,
        Ok(Err(error)) => Some(format!("the worktree {top} is kept: {error}")),
        Err(died) => {
            tracing::error!(%died, "looking at a worktree failed because of a defect");
            Some(format!("the worktree {top} may be kept: it could not be looked at"))
        }
    }
}

/// Removes the worktree of a session that is gone, unless something in it would be lost.
pub(crate) async fn remove(facts: Value) {
    let Some(worktree) = worktree_of(&facts) else {
        tracing::warn!("the record of a session's worktree is damaged; the worktree stays");
        return;
    };
    let never = Cancellation::default();
    let work = task::spawn_blocking(move || Repository::remove_worktree(&worktree, &never));
    match work.await {
        Ok(Ok(WorktreeEnd::Removed)) => {}
        // Why was told to whoever ended the session.
        Ok(Ok(WorktreeEnd::Kept(_))) => tracing::info!("the worktree of a session is kept"),
        Ok(Err(_)) => tracing::warn!("the worktree of a session stays: git failed"),
        Err(died) => tracing::error!(%died, "removing a worktree failed because of a defect"),
    }
}

/// The branches that a worktree can be made from: `SessionConfigValueItem`s.
pub(crate) async fn branches(directory: Option<String>, confinement: &Confinement) -> Vec<Value> {
    let Some(path) = directory.as_deref().and_then(path_of) else {
        return Vec::new(); // nobody said where
    };
    let confinement = confinement.clone();
    let work = task::spawn_blocking(move || {
        let never = Cancellation::default();
        Repository::find(&path, &confinement, &never).ok()??.branches("", &never).ok()
    });
    let names = work.await.ok().flatten().unwrap_or_default().into_iter().take(BRANCHES_MAX);
    names.map(|name| json!({"value": name, "label": name})).collect()
}
