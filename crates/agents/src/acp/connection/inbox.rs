//! What an agent says of one session while somebody listens.
//!
//! Promises: in the order it came; bounded (AG-19): while a turn is behind, neighbouring pieces of text are joined and older content of a
//! tool call is dropped for newer. What comes while nobody prompts is dropped and counted (AG-43), but for what is said of the session itself.
//! Must not know: how anything is shown.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent_client_protocol_schema::v1 as acp;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{AgentQuestion, ConnectionEnd};
use crate::acp::rpc::{AcpError, RequestId};

/// What may wait for a turn.
const WAITING_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// How far back older content of a call is looked for.
const LOOK_BACK: usize = 64;

/// Hears what an agent says of a session itself, in a turn or not. Must not block.
pub(in super::super) trait SessionListener: Send + Sync {
    fn on_update(&self, update: &acp::SessionUpdate, is_in_turn: bool);
}

pub(in super::super) struct SessionInbox {
    pub(in super::super) session: String,
    listener: Arc<dyn SessionListener>,
    state: Mutex<InboxState>,
    /// Something came, or the phase changed.
    changed: Notify,
    /// Something was taken.
    taken: Notify,
}

struct InboxState {
    phase: InboxPhase,
    items: VecDeque<WaitingItem>,
    bytes: usize,
    /// When what was taken last came.
    last_arrival: SystemTime,
    /// Updates that nobody was to see.
    dropped: u64,
    last_dropped: Option<Instant>,
    /// A prompt was sent and is not answered.
    is_prompted: bool,
    /// What was said before may be said again (AG-43).
    is_replayed: bool,
    /// It was said that the agent asks too much at once.
    has_told_refusal: bool,
    end: Option<Arc<ConnectionEnd>>,
}

/// What waits for a turn.
struct WaitingItem {
    item: InboxItem,
    bytes: usize,
    /// When the last of it came.
    came_at: SystemTime,
}

/// What becomes of updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxPhase {
    /// No turn listens: what was said before is said again, or comes late.
    Quiet,
    Prompting,
    /// The turn is over, its prompt is not.
    Cancelling,
}

#[derive(Debug)]
pub(in super::super) enum InboxItem {
    Update(Box<acp::SessionUpdate>),
    Asked(Box<AgentQuestion>),
    /// More questions are open than may be: others were refused. Said once in a prompt.
    QuestionsRefused,
    Withdrawn(RequestId),
    PromptEnded(Result<Box<RawValue>, AcpError>),
    Ended(Arc<ConnectionEnd>),
}

impl SessionInbox {
    pub(super) fn new(session: String, listener: Arc<dyn SessionListener>) -> Arc<Self> {
        Arc::new(Self {
            session,
            listener,
            state: Mutex::new(InboxState {
                phase: InboxPhase::Quiet,
                items: VecDeque::new(),
                bytes: 0,
                last_arrival: SystemTime::now(),
                dropped: 0,
                last_dropped: None,
                is_prompted: false,
                is_replayed: false,
                has_told_refusal: false,
                end: None,
            }),
            changed: Notify::new(),
            taken: Notify::new(),
        })
    }

    /// Whether content and calls are wanted now; if not, one is counted as dropped.
    pub(super) fn wants_content(&self) -> bool {
        let mut state = self.state.lock();
        if state.phase == InboxPhase::Prompting {
            return true;
        }
        state.dropped += 1;
        state.last_dropped = Some(Instant::now());
        false
    }

    /// The session is one of before: until it is quiet, what is said of it may be old.
    pub(super) fn expect_replay(&self) {
        self.state.lock().is_replayed = true;
    }

    /// Whether what is said now is new.
    pub(super) fn is_settled(&self) -> bool {
        !self.state.lock().is_replayed
    }

    /// Takes an update that is wanted, or that is of the session itself.
    pub(super) fn deliver(&self, update: acp::SessionUpdate, bytes: usize) {
        let is_in_turn = self.state.lock().phase == InboxPhase::Prompting;
        self.listener.on_update(&update, is_in_turn);
        let mut state = self.state.lock();
        if state.phase != InboxPhase::Prompting {
            return; // The listener has heard it; nothing else of it is wanted.
        }
        state.push_update(update, bytes);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Takes a question; gives it back if nobody is there to answer.
    pub(super) fn ask(
        &self,
        question: Box<AgentQuestion>,
        bytes: usize,
    ) -> Result<(), Box<AgentQuestion>> {
        let mut state = self.state.lock();
        if state.phase != InboxPhase::Prompting {
            return Err(question);
        }
        state.push(InboxItem::Asked(question), bytes);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// A question was refused, because too many are open.
    pub(super) fn note_refusal(&self) {
        let mut state = self.state.lock();
        if state.phase == InboxPhase::Prompting && !state.has_told_refusal {
            state.has_told_refusal = true;
            state.push(InboxItem::QuestionsRefused, 0);
            self.changed.notify_waiters();
        }
    }

    pub(super) fn withdraw(&self, request: RequestId) {
        self.state.lock().push(InboxItem::Withdrawn(request), 64);
        self.changed.notify_waiters();
    }

    /// From now on a turn listens; the prompt is about to be sent.
    pub(super) fn begin_prompt(&self) {
        let mut state = self.state.lock();
        assert!(!state.is_prompted, "a second prompt of one session");
        state.clear();
        state.phase = InboxPhase::Prompting;
        state.is_prompted = true;
        state.is_replayed = false;
        state.has_told_refusal = false;
    }

    /// The prompt could not be sent.
    pub(super) fn take_back_prompt(&self) {
        let mut state = self.state.lock();
        state.is_prompted = false;
        state.clear();
        state.phase = InboxPhase::Quiet;
        drop(state);
        self.changed.notify_waiters();
        self.taken.notify_waiters();
    }

    /// The prompt's answer came.
    pub(super) fn end_prompt(&self, outcome: Result<Box<RawValue>, AcpError>) {
        let mut state = self.state.lock();
        state.is_prompted = false;
        let was_prompting = state.phase == InboxPhase::Prompting;
        state.phase = InboxPhase::Quiet;
        if was_prompting {
            state.push(InboxItem::PromptEnded(outcome), 0);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The turn is over. Whether a prompt is still unanswered.
    pub(super) fn stop_listening(&self) -> bool {
        let mut state = self.state.lock();
        state.clear();
        state.phase = if state.is_prompted { InboxPhase::Cancelling } else { InboxPhase::Quiet };
        let is_prompted = state.is_prompted && state.end.is_none();
        drop(state);
        self.taken.notify_waiters();
        is_prompted
    }

    pub(super) fn end(&self, end: Arc<ConnectionEnd>) {
        let mut state = self.state.lock();
        state.is_prompted = false;
        state.end = Some(end);
        drop(state);
        self.changed.notify_waiters();
        self.taken.notify_waiters();
    }

    /// What came next. After the connection's end that is said for ever.
    pub(in super::super) async fn next(&self) -> InboxItem {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state.lock();
                if let Some(waiting) = state.items.pop_front() {
                    state.bytes = state.bytes.saturating_sub(waiting.bytes);
                    state.last_arrival = waiting.came_at;
                    drop(state);
                    self.taken.notify_waiters();
                    return waiting.item;
                }
                if let Some(end) = &state.end {
                    return InboxItem::Ended(Arc::clone(end));
                }
            }
            changed.await;
        }
    }

    /// When what was taken last came: that may be a while ago if a turn is behind.
    pub(in super::super) fn last_arrival(&self) -> SystemTime {
        self.state.lock().last_arrival
    }

    /// Waits until there is room for more.
    pub(super) async fn wait_for_room(&self) {
        self.wait(&self.taken, |state| state.bytes <= WAITING_BYTES_MAX || state.end.is_some())
            .await;
    }

    /// Waits until no prompt is unanswered.
    pub(in super::super) async fn wait_until_free(&self) {
        self.wait(&self.changed, |state| !state.is_prompted).await;
    }

    async fn wait(&self, news: &Notify, is_reached: impl Fn(&InboxState) -> bool) {
        loop {
            let changed = news.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_reached(&self.state.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until nothing was dropped for so long: a replay is over (AG-43). At most so long in all.
    pub(in super::super) async fn wait_for_quiet(&self, quiet: Duration, longest: Duration) {
        let began = Instant::now();
        loop {
            let last = self.state.lock().last_dropped.map_or(began, |last| last.max(began));
            let until = (last + quiet).min(began + longest);
            if Instant::now() >= until {
                self.state.lock().is_replayed = false;
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

impl InboxState {
    fn clear(&mut self) {
        self.items.clear();
        self.bytes = 0;
    }

    fn push(&mut self, item: InboxItem, bytes: usize) {
        self.items.push_back(WaitingItem { item, bytes, came_at: SystemTime::now() });
        self.bytes += bytes;
    }

    fn push_update(&mut self, update: acp::SessionUpdate, bytes: usize) {
        let Some(update) = self.join_text(update) else {
            return; // Joined.
        };
        if let acp::SessionUpdate::ToolCallUpdate(newer) = &update
            && newer.fields.content.is_some()
        {
            self.drop_older_content(&newer.tool_call_id);
        }
        self.push(InboxItem::Update(Box::new(update)), bytes);
    }

    /// Appends a piece of text to the piece before it, if nothing lies between; gives it back otherwise.
    fn join_text(&mut self, update: acp::SessionUpdate) -> Option<acp::SessionUpdate> {
        use acp::SessionUpdate::{AgentMessageChunk, AgentThoughtChunk};
        let Some(WaitingItem { item: InboxItem::Update(last), bytes, came_at }) =
            self.items.back_mut()
        else {
            return Some(update);
        };
        let (last, next) = match (&mut **last, &update) {
            (AgentMessageChunk(last), AgentMessageChunk(next))
            | (AgentThoughtChunk(last), AgentThoughtChunk(next)) => (last, next),
            _ => return Some(update),
        };
        let (acp::ContentBlock::Text(text), acp::ContentBlock::Text(more)) =
            (&mut last.content, &next.content)
        else {
            return Some(update);
        };
        if next.message_id.is_some() && next.message_id != last.message_id {
            return Some(update);
        }
        text.text.push_str(&more.text);
        *bytes += more.text.len();
        *came_at = SystemTime::now();
        self.bytes += more.text.len();
        None
    }

    fn drop_older_content(&mut self, call: &acp::ToolCallId) {
        for waiting in self.items.iter_mut().rev().take(LOOK_BACK) {
            let InboxItem::Update(older) = &mut waiting.item else { continue };
            if let acp::SessionUpdate::ToolCallUpdate(older) = &mut **older
                && older.tool_call_id == *call
                && older.fields.content.take().is_some()
            {
                // What is left of it is small beside its content.
                let left = waiting.bytes.min(1_024);
                self.bytes = self.bytes.saturating_sub(waiting.bytes - left);
                waiting.bytes = left;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct IgnoreUpdates;

    impl SessionListener for IgnoreUpdates {
        fn on_update(&self, _: &acp::SessionUpdate, _: bool) {}
    }

    fn inbox() -> Arc<SessionInbox> {
        SessionInbox::new("s".to_owned(), Arc::new(IgnoreUpdates))
    }

    fn update(fields: serde_json::Value) -> acp::SessionUpdate {
        serde_json::from_value(fields).unwrap()
    }

    fn text(text: &str, id: Option<&str>) -> acp::SessionUpdate {
        update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}}),
        )
    }

    async fn texts(inbox: &SessionInbox) -> Vec<String> {
        let mut found = Vec::new();
        while !inbox.state.lock().items.is_empty() {
            match inbox.next().await {
                InboxItem::Update(update) => match *update {
                    acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk {
                        content: acp::ContentBlock::Text(text),
                        ..
                    }) => found.push(text.text),
                    other => found.push(format!("{other:?}")),
                },
                other => found.push(format!("{other:?}")),
            }
        }
        found
    }

    #[tokio::test]
    async fn pieces_of_text_are_joined_only_while_they_wait() {
        let inbox = inbox();
        inbox.begin_prompt();
        inbox.deliver(text("a", Some("1")), 10);
        assert_eq!(texts(&inbox).await, ["a"]);
        for (piece, id) in [("b", Some("1")), ("c", None), ("d", Some("2")), ("e", Some("2"))] {
            inbox.deliver(text(piece, id), 10);
        }
        assert_eq!(texts(&inbox).await, ["bc", "de"]);
    }

    #[tokio::test]
    async fn of_one_call_the_newest_content_waits() {
        let inbox = inbox();
        inbox.begin_prompt();
        let content = |size: usize| {
            let block =
                json!({"type": "content", "content": {"type": "text", "text": "x".repeat(size)}});
            update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress", "content": [block]}),
            )
        };
        for _ in 0..100 {
            inbox.deliver(content(1 << 20), 1 << 20);
            inbox.deliver(text("between", None), 100);
        }
        assert!(inbox.state.lock().bytes < 2 << 20, "{}", inbox.state.lock().bytes);
        inbox.wait_for_room().await;
    }

    #[tokio::test]
    async fn without_a_prompt_nothing_is_kept() {
        let inbox = inbox();
        assert!(!inbox.wants_content());
        inbox.begin_prompt();
        assert!(inbox.wants_content());
        inbox.deliver(text("a", None), 10);
        assert!(inbox.stop_listening(), "the prompt is not answered");
        assert!(!inbox.wants_content());
        inbox.end_prompt(Err(AcpError::new(0, "")));
        assert_eq!(texts(&inbox).await, Vec::<String>::new());
        inbox.wait_until_free().await;
        assert!(!inbox.stop_listening());
    }

    #[tokio::test(start_paused = true)]
    async fn a_replay_is_over_when_nothing_came_for_a_while() {
        let inbox = inbox();
        let began = Instant::now();
        let replay = {
            let inbox = Arc::clone(&inbox);
            tokio::spawn(async move {
                for _ in 0..10 {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    assert!(!inbox.wants_content());
                }
            })
        };
        let (quiet, longest) = (Duration::from_millis(300), Duration::from_secs(5));
        inbox.wait_for_quiet(quiet, longest).await;
        assert_eq!(began.elapsed(), Duration::from_millis(2_300));
        replay.await.unwrap();
        let began = Instant::now();
        inbox.wait_for_quiet(quiet, Duration::from_millis(100)).await;
        assert_eq!(began.elapsed(), Duration::from_millis(100));
    }
}
