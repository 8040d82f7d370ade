//! One turn as far as files are concerned: what its calls say of their edits, and what two looks at the tree find.
//!
//! Promises: the first look is taken before the first call that may change files without saying which, the second when the turn is over;
//! a turn without such a call has none. A change counts to the turn if it was made while a call ran, else to the user (G-72). What was
//! found is on the disk before the turn is said to be over; of a turn that is cancelled, soon after.
//! Must not know: what calls do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_api::{AgentEvent, RecordedEdit, edits_of_call};
use kernel::{
    Batch, ChangedInTurn, ChangesInput, ChannelId, ComputedChangeset, Input, Record, Seq, TurnRun,
};
use serde_json::{Value, json};
use wire::ChannelUri;
use workspace::{Cancellation, DiffStats, TreeChange, TreeLook, Workspace};

use super::{ChangedSide, FileChanges, RecordedChange, find_git, operations_of_turn, store};
use crate::blobs::BodyHold;
use crate::effects::{Bodies, send};
use crate::journal::JournalHandle;
use crate::kernel_queue::KernelQueue;

/// How much earlier than it happened a file may be stamped: its clock goes by ticks.
const TICK: Duration = Duration::from_millis(20);

/// What the processes of a cancelled turn get to end before its files are looked at.
const END_TIME: Duration = Duration::from_millis(200);

/// Since 1970.
type Moment = (i64, u32);

/// Watches over the files of one turn.
pub(crate) struct TurnChanges {
    turn: TurnFacts,
    bodies: Bodies,
    /// Spares what files held before the turn until what it changed is recorded.
    hold: BodyHold,
    journal: JournalHandle,
    /// Held while a session's own row is read and written.
    sessions: Arc<tokio::sync::Mutex<()>>,
    /// Whether the agent's calls may change files before they are heard of.
    is_unseen: bool,
    seen: Mutex<SeenCalls>,
    look: tokio::sync::Mutex<Option<(Workspace, TreeLook)>>,
}

/// Which turn it is.
struct TurnFacts {
    session: ChannelUri,
    session_id: ChannelId,
    chat: ChannelId,
    turn_id: String,
    working_directories: Vec<String>,
    /// What a resumed turn did before.
    said: Vec<Value>,
}

/// What was heard of the turn's calls.
#[derive(Default)]
struct SeenCalls {
    /// Calls that run and may change anything, and since when.
    running: BTreeMap<u64, Moment>,
    /// When such calls ran.
    spans: Vec<(Moment, Moment)>,
    /// By call, in the order they were announced.
    edits: Vec<(u64, Vec<RecordedEdit>)>,
    /// How many of `edits` were there before the first look.
    edits_before_look: Option<usize>,
}

/// Finishes what a turn that is cancelled leaves behind.
pub(crate) struct ChangesGuard {
    changes: Option<Arc<TurnChanges>>,
    arrivals: KernelQueue,
}

impl ChangesGuard {
    pub(crate) fn new(changes: Arc<TurnChanges>, arrivals: KernelQueue) -> Self {
        Self {
            changes: Some(changes),
            arrivals,
        }
    }

    /// The turn is over: records what it changed and tells the kernel.
    pub(crate) async fn finish(mut self) {
        let Some(changes) = self.changes.take() else {
            return;
        };
        let arrivals = self.arrivals.clone();
        // A task of its own: a cancel from now on ends the waiting only, and what was begun is recorded.
        let work = tokio::spawn(async move { changes.finish(&arrivals).await });
        if let Err(died) = work.await {
            tracing::error!(%died, "recording what a turn changed failed because of a defect");
        }
    }
}

impl Drop for ChangesGuard {
    fn drop(&mut self) {
        let (Some(changes), Ok(runtime)) =
            (self.changes.take(), tokio::runtime::Handle::try_current())
        else {
            return; // it is finished, or the host is going down
        };
        let arrivals = self.arrivals.clone();
        runtime.spawn(async move {
            tokio::time::sleep(END_TIME).await;
            changes.finish(&arrivals).await;
        });
    }
}

impl TurnChanges {
    pub(crate) fn new(
        turn: &TurnRun,
        bodies: Bodies,
        journal: JournalHandle,
        sessions: Arc<tokio::sync::Mutex<()>>,
        is_unseen: bool,
    ) -> Self {
        Self {
            turn: TurnFacts {
                session: turn.session.clone(),
                session_id: turn.session_id,
                chat: turn.history.chat,
                turn_id: turn.turn_id.clone(),
                working_directories: turn.working_directories.clone(),
                said: turn.said.clone(),
            },
            hold: bodies.hold(),
            bodies,
            journal,
            sessions,
            is_unseen,
            seen: Mutex::default(),
            look: tokio::sync::Mutex::default(),
        }
    }

    /// The turn begins: looks at the tree if nobody will say when.
    pub(crate) async fn begin(&self) {
        if self.is_unseen {
            self.look_once().await;
        }
    }

    /// Before an event is handed on: what it announces has not happened yet.
    pub(crate) async fn before(&self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolEdits { call, edits } if edits.is_empty() => {
                self.look_once().await;
                self.seen().begin(*call);
            }
            AgentEvent::ToolEdits { call, edits } => {
                let mut seen = self.seen();
                seen.edits.push((*call, edits.clone()));
            }
            AgentEvent::ToolStarted { call, .. } if self.is_unseen => self.seen().begin(*call),
            AgentEvent::ToolCompleted { call, result, .. } => {
                let result = Value::Object(result.clone().into_object());
                self.seen().end(*call, &result);
            }
            AgentEvent::ToolRefused { call, .. } => self.seen().forget(*call),
            _ => {}
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, SeenCalls> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_once(&self) {
        let mut look = self.look.lock().await;
        if look.is_some() || self.turn.working_directories.is_empty() {
            return; // taken already, or there is nothing to look at
        }
        let (directories, bodies) = (self.turn.working_directories.clone(), self.bodies.clone());
        let hold = self.hold.clone();
        let taken = tokio::task::spawn_blocking(move || {
            let workspace = Workspace::open(&directories, bodies.confinement()).ok()?;
            let taken = look_at(&workspace, &bodies, &hold);
            Some((workspace, taken))
        });
        // A directory that cannot be opened cannot be changed either: the turn says so itself.
        *look = taken.await.ok().flatten();
        let mut seen = self.seen();
        let before = seen.edits.len();
        seen.edits_before_look.get_or_insert(before);
    }

    /// The turn is over: records what it changed.
    async fn finish(&self, arrivals: &KernelQueue) {
        let has_looked = self.look.lock().await.is_some();
        if let Some(changes) = self.collect().await {
            self.record(changes, arrivals).await;
        }
        if has_looked {
            // What ran may have made a repository, or checked out another branch.
            let directories = &self.turn.working_directories;
            let git = find_git(directories, self.bodies.confinement()).await;
            let session = self.turn.session.clone();
            send(
                arrivals,
                Input::Changes(ChangesInput::GitFound { session, git }),
            )
            .await;
        }
    }

    /// Writes what the turn changed, and tells the kernel.
    async fn record(&self, changes: FileChanges, arrivals: &KernelQueue) {
        let _writing = self.sessions.lock().await;
        let records = store::records_of(self.turn.chat, &self.turn.turn_id, &changes);
        let session = match store::read(&self.journal, self.turn.session_id, "").await {
            Ok(session) => self.add_to_session(session, &changes).await,
            Err(error) => {
                // The session's row stays as it is: better without this turn than with nothing else. Its changeset says so.
                tracing::warn!(%error, "a turn is not added to what its session changed");
                None
            }
        };
        let of_session = session.iter().flat_map(|session| {
            let session_id = self.turn.session_id;
            store::records_of(session_id, "", session)
        });
        let records = records.into_iter().chain(of_session).collect();
        if !self.append(records).await {
            return;
        }
        let name = format!("turn/{}", self.turn.turn_id);
        let Ok(changeset) = ChannelUri::changeset_of(&self.turn.session, &name) else {
            tracing::error!("the id of a turn is no part of a URI: its changes are not shown");
            return;
        };
        let changed = ChangedInTurn {
            session: self.turn.session.clone(),
            chat: self.turn.chat,
            changeset,
            computed: ComputedChangeset {
                files: changes.changeset_files(),
                operations: operations_of_turn(),
            },
            totals: session.map(|session| session.total().to_value()),
        };
        send(
            arrivals,
            Input::Changes(ChangesInput::FilesChanged(Box::new(changed))),
        )
        .await;
    }

    /// What a session changed, with a turn more.
    async fn add_to_session(
        &self,
        mut session: FileChanges,
        turn: &FileChanges,
    ) -> Option<FileChanges> {
        session.add(turn);
        session.remove_nothings();
        let bodies = self.bodies.clone();
        let counted = tokio::task::spawn_blocking(move || {
            store::count_lines(&mut session, &bodies);
            session
        });
        let counted = counted.await.inspect_err(|died| {
            tracing::error!(%died, "counting the lines that a session changed failed because of a defect");
        });
        counted.ok()
    }

    /// Whether these are on the disk now.
    async fn append(&self, records: Vec<Record>) -> bool {
        let batch = Batch {
            seq: Seq(0),
            records,
        };
        let appended = self.journal.append(batch).await;
        if let Err(error) = &appended {
            tracing::warn!(%error, "what a turn changed is not recorded");
        }
        appended.is_ok()
    }

    /// What the turn changed; `None` if nothing, or if it cannot be told what is recorded of it already.
    async fn collect(&self) -> Option<FileChanges> {
        let taken = self.look.lock().await.take();
        if taken.is_none() && self.turn.said.is_empty() && self.seen().edits.is_empty() {
            return None; // as most turns that only talk
        }
        let recorded = store::read(&self.journal, self.turn.chat, &self.turn.turn_id).await;
        let mut changes = match recorded {
            Ok(changes) => changes,
            Err(error) => {
                // What the turn did before it was resumed would be lost with its row.
                tracing::warn!(%error, "what a turn changed is not recorded");
                return None;
            }
        };
        let is_resumed = !changes.files.is_empty();
        if !is_resumed {
            for edit in said_edits(&self.turn.said) {
                changes.add_edit(&edit);
            }
        }
        let (spans, edits, edits_before_look) = {
            let mut seen = self.seen();
            seen.end_all();
            let edits = std::mem::take(&mut seen.edits);
            let before_look = seen.edits_before_look.unwrap_or(edits.len());
            (seen.spans.clone(), edits, before_look)
        };
        let (bodies, hold) = (self.bodies.clone(), self.hold.clone());
        let work = tokio::task::spawn_blocking(move || {
            let split = edits_before_look.min(edits.len());
            let (earlier, later) = edits.split_at(split);
            for edit in earlier.iter().flat_map(|(_, edits)| edits) {
                changes.add_edit(edit);
            }
            let found =
                taken.map(|(workspace, before)| compare(&workspace, &before, &bodies, &hold));
            let (found, problems) = found.unwrap_or_default();
            changes.problems.extend(problems);
            changes.add_looked(found, later, &spans);
            changes.remove_nothings();
            store::count_lines(&mut changes, &bodies);
            changes
        });
        let changes = work.await.unwrap_or_else(|died| {
            tracing::error!(%died, "looking for what a turn changed failed because of a defect");
            FileChanges::default()
        });
        (!changes.files.is_empty() || is_resumed).then_some(changes)
    }
}

/// What the calls of a resumed turn recorded.
fn said_edits(said: &[Value]) -> Vec<RecordedEdit> {
    let calls = said.iter().filter(|part| part["kind"] == "toolCall");
    calls
        .flat_map(|part| edits_of_call(&part["toolCall"]))
        .collect()
}

impl SeenCalls {
    fn begin(&mut self, call: u64) {
        self.running.entry(call).or_insert_with(now);
    }

    /// A call is over. One that failed changed nothing of what it said.
    fn end(&mut self, call: u64, result: &Value) {
        if let Some(since) = self.running.remove(&call) {
            self.spans.push((since, now()));
        }
        let has_edits = self.edits.iter().any(|(of, _)| *of == call);
        if result["success"] == false {
            self.forget(call);
        } else if !has_edits {
            // Agents of others say it with the result.
            let mut done = result.clone();
            done["status"] = json!("completed");
            let edits = edits_of_call(&done);
            if !edits.is_empty() {
                self.edits.push((call, edits));
            }
        }
    }

    fn forget(&mut self, call: u64) {
        self.edits.retain(|(of, _)| *of != call);
    }

    fn end_all(&mut self) {
        let running = std::mem::take(&mut self.running);
        let ended = now();
        self.spans
            .extend(running.into_values().map(|since| (since, ended)));
    }
}

impl FileChanges {
    /// What a look found, and the edits that were made after the first one.
    fn add_looked(
        &mut self,
        found: Vec<TreeChange>,
        later: &[(u64, Vec<RecordedEdit>)],
        spans: &[(Moment, Moment)],
    ) {
        let mut own: BTreeMap<&str, &RecordedEdit> = BTreeMap::new();
        for edit in later.iter().flat_map(|(_, edits)| edits) {
            own.insert(&edit.uri, edit);
        }
        for change in &found {
            let after = change.after.map(ChangedSide::from);
            let last = own.get(change.uri.as_str());
            let is_own = last.is_some_and(|edit| {
                edit.after.map(|content| content.digest)
                    == change.after.and_then(|side| side.digest)
            });
            let is_the_calls = match change.after {
                Some(_) => was_running(spans, change.made_at),
                None => ran_before(spans, change.made_at),
            };
            if !is_own && !is_the_calls {
                continue; // the user's, whatever it was before
            }
            let file = self.files.entry(change.uri.clone());
            let file = file.or_insert_with(|| RecordedChange {
                uri: change.uri.clone(),
                before: change.before.map(ChangedSide::from),
                after: None,
                new_directories: change.new_directories,
                stats: DiffStats::default(),
            });
            file.after = after;
        }
        let is_found = |uri: &str| found.iter().any(|change| change.uri == uri);
        for edit in later.iter().flat_map(|(_, edits)| edits) {
            let is_known = self.files.contains_key(&edit.uri);
            // Where a look found something else by now, that is what became of the edit.
            if !is_known || !is_found(&edit.uri) {
                self.add_edit(edit);
            }
        }
    }
}

/// Whether something was made while a call ran.
fn was_running(spans: &[(Moment, Moment)], at: Moment) -> bool {
    let mut spans = spans.iter();
    spans.any(|(from, to)| earlier(*from) <= at && at <= *to)
}

/// Whether a call had begun by then. All that is known of a removal is when something in its directory changed last, which may have been
/// later.
fn ran_before(spans: &[(Moment, Moment)], at: Moment) -> bool {
    spans.iter().any(|(from, _)| earlier(*from) <= at)
}

/// A tick before.
fn earlier((seconds, nanos): Moment) -> Moment {
    let tick = TICK.subsec_nanos();
    match nanos.checked_sub(tick) {
        Some(nanos) => (seconds, nanos),
        None => (seconds - 1, nanos + 1_000_000_000 - tick),
    }
}

fn now() -> Moment {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    (seconds, now.subsec_nanos())
}

fn look_at(workspace: &Workspace, bodies: &Bodies, hold: &BodyHold) -> TreeLook {
    let mut keep = store::keep_and_hold(bodies, hold);
    workspace.look_at_tree(bodies.confinement(), &mut keep, &Cancellation::default())
}

/// What changed since a look, and what is not known.
fn compare(
    workspace: &Workspace,
    before: &TreeLook,
    bodies: &Bodies,
    hold: &BodyHold,
) -> (Vec<TreeChange>, Vec<String>) {
    let after = look_at(workspace, bodies, hold);
    let mut keep = store::keep_and_hold(bodies, hold);
    let compared = workspace.compare_looks(before, &after, &mut keep, &Cancellation::default());
    let problems = before.problems.iter().chain(&after.problems).cloned();
    let mut problems: Vec<String> = problems.chain(compared.problems).collect();
    problems.dedup();
    (compared.changes, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_to_the_call_that_ran() {
        let spans = [((10, 5_000_000), (11, 0)), ((20, 0), (21, 0))];
        assert!(was_running(&spans, (10, 500)));
        assert!(was_running(&spans, (9, 995_000_000)), "a tick before");
        assert!(!was_running(&spans, (9, 0)));
        assert!(!was_running(&spans, (15, 0)));
        assert!(was_running(&spans, (21, 0)));
        assert!(!was_running(&spans, (21, 1)));
        assert!(ran_before(&spans, (21, 1)) && !ran_before(&spans, (9, 0)));
    }
}
