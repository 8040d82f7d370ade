//! One turn as far as files are concerned: what its calls say of their edits, and what two looks at the tree find.
//!
//! Promises: the first look is taken before the first call that may change files without saying which, the second when the turn is over;
//! a turn without such a call has none. Of an agent whose calls are heard of late no event is handed on before the first look. A change counts to the turn if it was made while a call ran, else to the user (G-72). What was
//! found is on the disk before the turn is said to be over; of a turn that is cancelled, soon after.
//! Must not know: what calls do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_api::{AgentEvent, RecordedEdit, edits_of_call};
use kernel::{
    Batch, ChangesInput, ChannelId, ComputedChangeset, Input, LookId, Record, Seq,
    TurnChangesReport, TurnRun,
};
use parking_lot::Mutex;
use serde_json::Value;
use wire::ChannelUri;
use workspace::{Cancellation, TreeChange, TreeSnapshot, Workspace};

use super::recent_looks::RecentLook;
use super::seen_calls::SeenCalls;
use super::shared_looks::{SharedLook, SharedLooks};
use super::{FileChanges, operations_of_turn, store, tell_git};
use crate::blobs::BodyHold;
use crate::effects::{Bodies, send};
use crate::journal::JournalHandle;
use crate::kernel_queue::KernelQueue;
use crate::task;

/// What the processes of a cancelled turn get to end before its files are looked at.
const END_TIME: Duration = Duration::from_millis(200);

/// Watches over the files of one turn.
pub(crate) struct TurnChanges {
    turn: TurnFacts,
    bodies: Bodies,
    /// Spares what files held before the turn until what it changed is recorded.
    hold: BodyHold,
    journal: JournalHandle,
    /// Held while a session's own row is read and written.
    sessions: Arc<tokio::sync::Mutex<()>>,
    /// Where the look at the end is left for whatever is computed then.
    looks: SharedLooks,
    /// Whether the agent's calls may change files before they are heard of.
    is_unseen: bool,
    seen: Mutex<SeenCalls>,
    look: tokio::sync::Mutex<Option<(Workspace, TreeSnapshot)>>,
    /// The first look was taken, or is not to be any more.
    has_looked: AtomicBool,
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

/// Finishes what a turn that is cancelled leaves behind.
pub(crate) struct ChangesGuard {
    changes: Option<Arc<TurnChanges>>,
    arrivals: KernelQueue,
}

impl ChangesGuard {
    pub(crate) fn new(changes: Arc<TurnChanges>, arrivals: KernelQueue) -> Self {
        Self { changes: Some(changes), arrivals }
    }

    /// The turn is over: records what it changed and tells the kernel. Why git could not be asked, for people.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        let Some(changes) = self.changes.take() else {
            debug_assert!(false, "a turn is finished once");
            return Vec::new();
        };
        let arrivals = self.arrivals.clone();
        // A task of its own: a cancel from now on ends the waiting only, and what was begun is recorded.
        let work = task::spawn_for(async move { changes.finish(&arrivals).await });
        work.await.unwrap_or_else(|died| {
            tracing::error!(%died, "recording what a turn changed failed because of a defect");
            Vec::new()
        })
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
        task::spawn_on(&runtime, async move {
            tokio::time::sleep(END_TIME).await;
            // The turn is over for its readers: what could not be seen stands in its changeset.
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
        looks: SharedLooks,
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
            looks,
            is_unseen,
            seen: Mutex::default(),
            look: tokio::sync::Mutex::default(),
            has_looked: AtomicBool::new(false),
        }
    }

    /// The turn begins: looks at the tree if nobody will say when. That goes on beside whatever the agent does first: it is asked
    /// nothing before an event of it, the note of its session, was handed on, which waits for the look.
    pub(crate) fn begin(self: &Arc<Self>) {
        if self.is_unseen {
            let changes = Arc::clone(self);
            task::spawn(async move { changes.look_once().await });
        }
    }

    /// Before an event is handed on: what it announces has not happened yet.
    pub(crate) async fn before(&self, event: &AgentEvent) {
        if self.is_unseen {
            self.look_once().await;
        }
        match event {
            AgentEvent::ToolEdits { call, edits } => {
                if edits.is_empty() {
                    self.look_once().await;
                    self.seen.lock().begin(*call, None);
                }
                self.seen.lock().announce(*call, edits);
            }
            AgentEvent::ToolStarted { call, start } if self.is_unseen => {
                self.seen.lock().begin(*call, start.began);
            }
            AgentEvent::ToolCompleted { call, result, .. } => {
                let result = Value::Object(result.clone().into_object());
                self.seen.lock().end(*call, &result);
            }
            AgentEvent::ToolRefused { call, .. } => self.seen.lock().forget(*call),
            _ => {}
        }
    }

    async fn look_once(&self) {
        if self.has_looked.load(Ordering::Acquire) {
            return; // as with most events
        }
        let mut look = self.look.lock().await;
        if self.has_looked.load(Ordering::Acquire) || self.turn.working_directories.is_empty() {
            return; // taken meanwhile, or there is nothing to look at
        }
        let (directories, bodies) = (self.turn.working_directories.clone(), self.bodies.clone());
        let hold = self.hold.clone();
        let earlier = self.looks.recent().find(&directories);
        let taken = task::spawn_blocking(move || {
            let workspace = Workspace::open(&directories, bodies.confinement()).ok()?;
            let earlier = earlier.as_deref().map(RecentLook::look);
            let taken = look_at(&workspace, &bodies, &hold, earlier);
            Some((workspace, taken))
        });
        // A directory that cannot be opened cannot be changed either: the turn says so itself.
        *look = taken.await.ok().flatten();
        let mut seen = self.seen.lock();
        let before = seen.edits.len();
        seen.edits_before_look.get_or_insert(before);
        self.has_looked.store(true, Ordering::Release);
    }

    /// The turn is over: records what it changed. Why git could not be asked, for people.
    async fn finish(&self, arrivals: &KernelQueue) -> Vec<String> {
        let directories = &self.turn.working_directories;
        let has_looked = {
            let look = self.look.lock().await;
            // A turn that ended before anything was looked at needs no look any more.
            self.has_looked.store(true, Ordering::Release);
            look.is_some()
        };
        let look = self.looks.name(directories);
        let CollectedChanges { changes, failures } = self.collect(look).await;
        if has_looked && failures.is_empty() {
            // What ran may have made a repository, or checked out another branch; what is watched is computed with that.
            let session = &self.turn.session;
            tell_git(arrivals, session, directories, &self.bodies, None).await;
        }
        let is_told = match changes {
            Some(changes) => self.record(changes, look, arrivals).await,
            None => false,
        };
        if has_looked && !is_told {
            let session = self.turn.session.clone();
            let looked = ChangesInput::TreeLooked { session, look };
            send(arrivals, Input::Changes(looked)).await;
        }
        failures
    }

    /// Writes what the turn changed, and tells the kernel; whether it could be told.
    async fn record(&self, changes: FileChanges, look: LookId, arrivals: &KernelQueue) -> bool {
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
            return false;
        }
        let named = ChannelUri::turn_changeset_of(&self.turn.session, &self.turn.turn_id);
        let Ok(changeset) = named.inspect_err(|error| {
            tracing::warn!(%error, "no changeset for a turn: its URI is too long; /undo works");
        }) else {
            return false;
        };
        let changed = TurnChangesReport {
            session: self.turn.session.clone(),
            chat: self.turn.chat,
            changeset,
            computed: ComputedChangeset {
                files: changes.changeset_files(),
                operations: operations_of_turn(),
                problem: changes.problem(),
            },
            totals: session.map(|session| session.total().to_value()),
            look: Some(look),
        };
        send(arrivals, Input::Changes(ChangesInput::FilesChanged(Box::new(changed)))).await;
        true
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
        let counted = task::spawn_blocking(move || {
            store::count_lines(&mut session, &bodies);
            session
        }).await.inspect_err(|died| {
            tracing::error!(%died, "counting the lines that a session changed failed because of a defect");
        });
        counted.ok()
    }

    /// Whether these are on the disk now.
    async fn append(&self, records: Vec<Record>) -> bool {
        let batch = Batch { seq: Seq(0), records };
        let appended = self.journal.append(batch).await;
        if let Err(error) = &appended {
            tracing::warn!(%error, "what a turn changed is not recorded");
        }
        appended.is_ok()
    }

    /// What the turn changed. Its last look is left for others under this name.
    async fn collect(&self, look: LookId) -> CollectedChanges {
        let taken = self.look.lock().await.take();
        if taken.is_none() && self.turn.said.is_empty() && self.seen.lock().edits.is_empty() {
            return CollectedChanges::default(); // as most turns that only talk
        }
        let recorded = store::read(&self.journal, self.turn.chat, &self.turn.turn_id).await;
        let mut changes = match recorded {
            Ok(changes) => changes,
            Err(error) => {
                // What the turn did before it was resumed would be lost with its row.
                tracing::warn!(%error, "what a turn changed is not recorded");
                return CollectedChanges::default();
            }
        };
        let is_resumed = !changes.files.is_empty();
        if !is_resumed {
            for edit in said_edits(&self.turn.said) {
                changes.add_edit(&edit);
            }
        }
        let (spans, edits, edits_before_look) = {
            let mut seen = self.seen.lock();
            seen.end_all();
            let edits = std::mem::take(&mut seen.edits);
            let before_look = seen.edits_before_look.unwrap_or(edits.len());
            (seen.spans.clone(), edits, before_look)
        };
        let (bodies, hold, looks) = (self.bodies.clone(), self.hold.clone(), self.looks.clone());
        let directories = self.turn.working_directories.clone();
        let work = task::spawn_blocking(move || {
            let split = edits_before_look.min(edits.len());
            let (earlier, later) = edits.split_at(split);
            for edit in earlier.iter().flat_map(|(_, edits)| edits) {
                changes.add_edit(edit);
            }
            let mut found = Comparison::default();
            if let Some((workspace, before)) = taken {
                let after;
                (found, after) = compare(&workspace, &before, &bodies, &hold);
                if let Some(taken) = after {
                    looks.recent().remember(directories, taken.clone(), bodies.hold());
                    let taken = SharedLook { workspace, look: taken };
                    looks.add(look, taken);
                }
            }
            changes.problems.extend(found.problems);
            changes.add_looked(found.changes, later, &spans);
            changes.remove_nothings();
            store::make_durable(&mut changes, &bodies);
            store::count_lines(&mut changes, &bodies);
            (changes, found.failures)
        });
        let (changes, failures) = work.await.unwrap_or_else(|died| {
            tracing::error!(%died, "looking for what a turn changed failed because of a defect");
            (FileChanges::default(), Vec::new())
        });
        let is_something = !changes.files.is_empty() || !changes.problems.is_empty() || is_resumed;
        CollectedChanges { changes: is_something.then_some(changes), failures }
    }
}

/// What is known of a turn's changes when it is over.
#[derive(Default)]
struct CollectedChanges {
    /// Absent if there is nothing to tell.
    changes: Option<FileChanges>,
    /// Why git could not be asked.
    failures: Vec<String>,
}

/// What the calls of a resumed turn recorded.
fn said_edits(said: &[Value]) -> Vec<RecordedEdit> {
    let calls = said.iter().filter(|part| part["kind"] == "toolCall");
    calls.flat_map(|part| edits_of_call(&part["toolCall"])).collect()
}

/// Looks at the tree, and holds what is found. The contents of the earlier look are held by the caller until then.
fn look_at(
    workspace: &Workspace,
    bodies: &Bodies,
    hold: &BodyHold,
    earlier: Option<&TreeSnapshot>,
) -> TreeSnapshot {
    let mut keep = store::keep_and_hold(bodies, hold);
    let (confinement, never) = (bodies.confinement(), Cancellation::default());
    let look = workspace.look_at_tree(confinement, &mut keep, earlier, &never);
    look.contents().for_each(|digest| hold.add(digest));
    look
}

/// What two looks come to.
#[derive(Default)]
struct Comparison {
    changes: Vec<TreeChange>,
    /// What is not known.
    problems: Vec<String>,
    /// As far as git is the reason.
    failures: Vec<String>,
}

/// What changed since a look, and the look that it is compared with; none is taken where the first saw nothing.
fn compare(
    workspace: &Workspace,
    before: &TreeSnapshot,
    bodies: &Bodies,
    hold: &BodyHold,
) -> (Comparison, Option<TreeSnapshot>) {
    let after = (!before.is_blind()).then(|| look_at(workspace, bodies, hold, Some(before)));
    let looks = || [before].into_iter().chain(&after);
    let unseen = looks().flat_map(TreeSnapshot::unseen).map(str::to_owned);
    let failures = looks().flat_map(TreeSnapshot::failures).map(str::to_owned);
    let mut found = Comparison {
        changes: Vec::new(),
        problems: unseen.collect(),
        failures: failures.collect(),
    };
    if let Some(after) = &after {
        let mut keep = store::keep_and_hold(bodies, hold);
        let never = Cancellation::default();
        let compared = workspace.compare_looks(before, after, &mut keep, &never);
        found.changes = compared.changes;
        found.problems.extend(compared.problems);
    }
    found.problems.dedup();
    found.failures.dedup();
    (found, after)
}
