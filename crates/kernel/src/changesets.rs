//! Changesets of sessions: which there are, when they are computed, and what clients see of it (H-285 to H-289, G-53).
//!
//! Promises: what a turn changed is a channel of its own from the end of the turn on, so that subscribing to it is a lookup. The others
//! are computed when somebody subscribes to them, and again when a turn or an operation ended while somebody watches. A file that is
//! reviewed stays so as long as its content does.

use serde_json::{Value, json};
use wire::action::SessionAction;
use wire::reduce::Reduced;
use wire::state::ChangesetState;
use wire::{Action, ActionKind, ChannelUri, Object, SessionPart};

use crate::background_task::BackgroundTask;
use crate::changeset_content::{cut, set_content, unknown};
use crate::changeset_work::{
    ChangesInput, ChangesetKind, ChangesetTarget, ComputedChangeset, LookId, TurnChangesReport,
};
use crate::ids::ChannelId;
use crate::io::{Effect, ReadFailed};
use crate::plain::{NewPlainChannel, create_channel};
use crate::progress;
use crate::state::{Kernel, Step};
use crate::working_directories::follow_session;

/// The host found something out.
pub(crate) fn take(step: &mut Step, input: ChangesInput) {
    match input {
        ChangesInput::FilesChanged(changed) => {
            step.start_task(BackgroundTask::RecordChanges(changed));
        }
        ChangesInput::TreeLooked { session, look } => {
            refresh_watched(step, &session, Some(look));
        }
        ChangesInput::Computed { changeset, computed } => {
            finish_computing(step, &changeset, computed)
        }
        ChangesInput::OperationStatus { changeset, operation, running } => {
            set_operation_status(step, &changeset, &operation, running)
        }
        ChangesInput::WorktreeMade { session, directory, replacement, facts } => {
            set_worktree(step, &session, &directory, &replacement, facts)
        }
        ChangesInput::CreationAt { session, done, total, message } => {
            if step.find_session(&session).is_some() {
                progress::report(step, &session, Some((done, total)), Some(&message));
            }
        }
        ChangesInput::Counted { session, totals } => set_totals(step, &session, totals),
        ChangesInput::GitFound { session, git } => set_git(step, &session, git),
    }
}

/// What a channel's private record says when its files can be reviewed (H-288).
pub(crate) const REVIEW: &str = "review";

/// What the channel of a turn's changes knows of its chat.
const CHAT: &str = "chat";

/// The catalogue of a session (H-285). In a repository there is more to compare with.
fn catalogue(session: &ChannelUri, git: Option<&Value>) -> Value {
    let entry = |label: &str, name: &str, kind: &str| {
        json!({
            "label": label,
            "uriTemplate": format!("{session}/changeset/{name}"),
            "changeKind": kind,
            "capabilities": {"review": {}},
        })
    };
    let mut entries = vec![
        entry("All changes of this session", "session", "session"),
        entry("Changes of one turn", "turn/{turnId}", "turn"),
    ];
    if let Some(git) = git {
        entries.push(entry("Uncommitted changes", "uncommitted", "uncommitted"));
        if let Some(base) = git["baseBranchName"].as_str() {
            let label = format!("Changes since {base}");
            entries.push(entry(&label, "branch", "branch"));
        }
    }
    Value::Array(entries)
}

/// What is known of the repository that a session works in: its catalogue and `_meta.git` follow.
fn set_git(step: &mut Step, session: &ChannelUri, git: Option<Value>) {
    if step.find_session(session).is_none() {
        return; // gone, or not in memory: it is looked at again when it is used
    }
    let changesets = catalogue(session, git.as_ref());
    let fields = json!({"changesets": changesets});
    step.act_as_host(session, ActionKind::SessionChangesetsChanged, fields);
    let mut known = git_of(step, session);
    let worktree = known.shift_remove("worktree");
    let mut git = match git {
        Some(Value::Object(git)) => git,
        Some(_) | None => Object::new(),
    };
    git.extend(worktree.map(|worktree| ("worktree".to_owned(), worktree)));
    publish_git(step, session, git);
}

/// `_meta.git` of a session, as far as it is known.
fn git_of(kernel: &Kernel, session: &ChannelUri) -> Object {
    let meta = kernel.session(session).state().extra.get("_meta");
    let git = meta.and_then(|meta| meta.get("git")?.as_object());
    git.cloned().unwrap_or_default()
}

/// Tells of `_meta.git`, if it is something else by now.
fn publish_git(step: &mut Step, session: &ChannelUri, git: Object) {
    if git_of(step, session) == git {
        return; // its clients know that already
    }
    let mut meta = step
        .session(session)
        .state()
        .extra
        .get("_meta")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    meta.insert("git".to_owned(), Value::Object(git));
    let fields = json!({"_meta": meta});
    step.act_as_host(session, ActionKind::SessionMetaChanged, fields);
}

/// A session works in a worktree of its own instead of the directory that its client named (G-54).
fn set_worktree(
    step: &mut Step,
    session: &ChannelUri,
    directory: &str,
    replacement: &str,
    mut facts: Value,
) {
    facts["directory"] = json!(directory);
    facts["replacement"] = json!(replacement);
    if step.find_session(session).is_none() {
        return step.effect(Effect::RemoveWorktree(facts)); // it was disposed of meanwhile
    }
    let fields = json!({"directory": directory, "replacement": replacement});
    let action = Action::host(ActionKind::SessionWorkingDirectoryReplaced, fields);
    if step.act(session, action.clone(), None) == Reduced::Changed {
        // Its chats work there too, before any turn begins.
        follow_session(step, session, SessionAction::WorkingDirectoryReplaced, &action);
    }
    let mut git = git_of(step, session);
    git.insert("worktree".to_owned(), facts);
    publish_git(step, session, git);
}

/// What a session has instead of the directory that its client named.
pub(crate) struct OwnWorktree {
    /// `file:` URIs: what was named, and what is worked in.
    pub directory: String,
    pub replacement: String,
    pub branch: String,
}

impl OwnWorktree {
    /// `None` if the session works in the directory that its client named.
    pub(crate) fn of(kernel: &Kernel, session: &ChannelUri) -> Option<Self> {
        let facts = worktree_of(kernel, session)?;
        let text = |name: &str| Some(facts.get(name)?.as_str()?.to_owned());
        Some(Self {
            directory: text("directory")?,
            replacement: text("replacement")?,
            branch: text("branch")?,
        })
    }
}

/// The worktree of a session, if it has one of its own.
pub(crate) fn worktree_of(kernel: &Kernel, session: &ChannelUri) -> Option<Value> {
    kernel.find_session(session)?;
    git_of(kernel, session).shift_remove("worktree")
}

/// A changeset and where its files lie; `None` if this is not a changeset of a session that is in memory.
pub(crate) fn target_of(kernel: &Kernel, uri: &ChannelUri) -> Option<ChangesetTarget> {
    let (session, part) = uri.session_part()?;
    let SessionPart::Changeset(name) = part else { return None };
    let found = kernel.find_session(&session)?;
    let kind = match name {
        "session" => ChangesetKind::Session,
        "uncommitted" => ChangesetKind::Uncommitted,
        "branch" => ChangesetKind::Branch,
        _ => ChangesetKind::Turn {
            turn_id: part.turn_id()?,
            chat: kernel.find_plain(uri).and_then(|plain| {
                let chat = plain.private().get(CHAT)?.as_u64()?;
                Some(ChannelId(chat))
            }),
        },
    };
    let state = found.state();
    let meta = state.extra.get("_meta").unwrap_or(&Value::Null);
    let base = meta["git"]["baseBranchName"].as_str();
    let directories = state.working_directories.clone().unwrap_or_default();
    Some(ChangesetTarget {
        changeset: uri.clone(),
        kind,
        session_id: kernel.id_of(&session),
        session,
        working_directories: directories,
        base: base.map(str::to_owned),
        look: None,
    })
}

/// Somebody asks for a changeset that is not stored: it is made if its session has such a one. Whether it was.
pub(crate) fn create_on_demand(step: &mut Step, uri: &ChannelUri) -> Result<bool, ReadFailed> {
    let Some(target) = target_of(step, uri) else { return Ok(false) };
    let is_offered = |kind: &str| {
        let session = step.session(&target.session);
        let mut entries =
            session.state().extra.get("changesets").and_then(Value::as_array).into_iter().flatten();
        entries.any(|entry| entry["changeKind"] == kind)
    };
    let state = match &target.kind {
        // A turn that changed files has its own channel since it ended: this one changed none.
        ChangesetKind::Turn { turn_id, .. } if is_known_turn(step, &target.session, turn_id) => {
            let mut state = ChangesetState::computing();
            state.status = "ready".to_owned();
            state
        }
        ChangesetKind::Session if is_offered("session") => ChangesetState::computing(),
        ChangesetKind::Uncommitted if is_offered("uncommitted") => ChangesetState::computing(),
        ChangesetKind::Branch if is_offered("branch") => ChangesetState::computing(),
        ChangesetKind::Turn { .. }
        | ChangesetKind::Session
        | ChangesetKind::Uncommitted
        | ChangesetKind::Branch => return Ok(false),
    };
    if let Some(reason) = step.unwritable() {
        return Err(ReadFailed(reason));
    }
    create_changeset(step, uri, &target.session, state, None);
    Ok(true)
}

fn create_changeset(
    step: &mut Step,
    uri: &ChannelUri,
    session: &ChannelUri,
    state: ChangesetState,
    chat: Option<ChannelId>,
) {
    let mut private = Object::from_iter([(REVIEW.to_owned(), json!(true))]);
    if let Some(chat) = chat {
        private.insert(CHAT.to_owned(), json!(chat.0));
    }
    let new = NewPlainChannel {
        uri: uri.clone(),
        state: state.into(),
        session: Some(session.clone()),
        private,
    };
    create_channel(step, new);
}

/// Whether a turn of this id is in memory.
fn is_known_turn(kernel: &Kernel, session: &ChannelUri, turn_id: &str) -> bool {
    let chats = kernel.session(session).chat_uris();
    let mut chats = chats.iter().filter_map(|chat| kernel.find_chat(chat));
    chats.any(|chat| {
        let state = chat.state();
        let active = state.active_turn.as_ref();
        active.is_some_and(|turn| turn.id == turn_id) || state.turns.position(turn_id).is_some()
    })
}

/// Somebody subscribed: what depends on the working tree is computed anew. What a turn changed is as it is.
pub(crate) fn refresh(step: &mut Step, uri: &ChannelUri) {
    refresh_from(step, uri, None);
}

/// Computes a changeset anew, from a look that the host has if there is one.
fn refresh_from(step: &mut Step, uri: &ChannelUri, look: Option<LookId>) {
    let Some(mut target) = target_of(step, uri) else {
        return; // not a changeset
    };
    if matches!(target.kind, ChangesetKind::Turn { .. }) || step.find_plain(uri).is_none() {
        return; // known already, or gone meanwhile
    }
    if step.unwritable().is_some() {
        return; // the result could not be recorded: the next subscriber has it computed
    }
    let state = step.find_plain(uri).and_then(|plain| plain.state().changeset());
    if state.is_some_and(|state| state.status == "ready" || state.status == "error") {
        let fields = json!({"status": "recomputing"});
        step.act_as_host(uri, ActionKind::ChangesetStatusChanged, fields);
    }
    target.look = look;
    step.effect(Effect::ComputeChangeset(Box::new(target)));
}

/// The files of a session may have changed: what somebody watches of them is computed anew, all of it from one look if there is one.
fn refresh_watched(step: &mut Step, session: &ChannelUri, look: Option<LookId>) {
    let watched = step.peers().watched().filter(|uri| {
        let part = uri.session_part();
        matches!(part, Some((owner, SessionPart::Changeset(_))) if owner == *session)
    });
    for uri in watched.cloned().collect::<Vec<_>>() {
        refresh_from(step, &uri, look);
    }
}

/// A turn that changed files is over.
pub(crate) fn record_turn(step: &mut Step, mut changed: TurnChangesReport, exists: bool) {
    let session = changed.session.clone();
    if step.find_session(&session).is_none() {
        return; // it was disposed of meanwhile
    }
    if let Some(reason) = step.unwritable() {
        debug_assert!(!reason.is_empty(), "it says why");
        changed.look = None; // it will be an old one by then
        return step.recovery_mut().postpone(BackgroundTask::RecordChanges(Box::new(changed)));
    }
    let uri = changed.changeset.clone();
    if exists {
        let plain = step.plain_mut(&uri);
        let chat = json!(changed.chat.0);
        plain.private_mut().insert(CHAT.to_owned(), chat);
        set_content(step, &uri, changed.computed);
    } else {
        let mut state = ChangesetState::computing();
        state.status = "ready".to_owned();
        state.files = cut(changed.computed.files);
        state.operations = Some(changed.computed.operations);
        if let Some(problem) = &changed.computed.problem {
            state.status = "error".to_owned();
            state.error = Some(unknown(problem));
        }
        create_changeset(step, &uri, &session, state, Some(changed.chat));
    }
    if let Some(totals) = changed.totals {
        step.session_mut(&session).set_changes(totals);
    }
    refresh_watched(step, &session, changed.look);
}

/// An operation took changes of a session back.
fn set_totals(step: &mut Step, session: &ChannelUri, totals: Value) {
    if step.find_session(session).is_some() && step.unwritable().is_none() {
        step.session_mut(session).set_changes(totals);
    }
}

/// A changeset was computed, or could not be.
fn finish_computing(
    step: &mut Step,
    uri: &ChannelUri,
    computed: Result<ComputedChangeset, String>,
) {
    if step.find_plain(uri).is_none() || step.unwritable().is_some() {
        return; // unused, or it could not be recorded: the next subscriber has it computed
    }
    match computed {
        Ok(computed) => set_content(step, uri, computed),
        Err(message) => {
            let fields = json!({"status": "error", "error": unknown(&message)});
            step.act_as_host(uri, ActionKind::ChangesetStatusChanged, fields);
        }
    }
}

/// An operation begins or ends: `Ok(true)` while it runs.
fn set_operation_status(
    step: &mut Step,
    uri: &ChannelUri,
    operation: &str,
    running: Result<bool, String>,
) {
    let state = step.find_plain(uri).and_then(|plain| plain.state().changeset());
    let is_known = state.is_some_and(|state| state.operation(operation).is_some());
    if !is_known || step.unwritable().is_some() {
        return; // the operation is no longer offered, or its status could not be recorded
    }
    let is_over = running != Ok(true);
    let mut fields = json!({"operationId": operation});
    match running {
        Ok(running) => fields["status"] = json!(if running { "running" } else { "idle" }),
        Err(message) => {
            fields["status"] = json!("error");
            fields["error"] = json!({"errorType": "operationFailed", "message": message});
        }
    }
    step.act_as_host(uri, ActionKind::ChangesetOperationStatusChanged, fields);
    if is_over && let Some((session, _)) = uri.session_part() {
        refresh_watched(step, &session, None);
    }
}

/// A session ends: its changesets become empty for everyone who watches them (H-289).
pub(crate) fn clear_all(step: &mut Step, session: &ChannelUri) {
    for uri in step.channels().plain_of(session) {
        let is_changeset =
            step.find_plain(&uri).is_some_and(|plain| plain.state().changeset().is_some());
        if is_changeset && !step.peers().watchers(&uri).is_empty() {
            step.act_as_host(&uri, ActionKind::ChangesetCleared, json!({}));
        }
    }
}
