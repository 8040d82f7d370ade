//! Reading along: contents that calls refer to, how often the screen is drawn, and the keys that unfold.
//!
//! Promises: the screen is drawn at most sixty times a second, however fast an answer comes in. A content is asked for once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use client::ReadContent;
use client::chat::WorkerSummary;
use tokio::sync::mpsc;

use super::TerminalChat;
use crate::chat::contents::{CONTENT_TIMEOUT, READS_MAX, read_all, read_content};
use crate::chat::dialog;
use crate::chat::external_pager;
use crate::chat::line::{Colors, Line};
use crate::chat::render::Page;
use crate::chat::status;
use crate::chat::tool::{Detail, ReferencedContent, References, WorkerState, whole_output};
use crate::chat::transcript::{ChatView, UnfoldedCall};

/// The shortest time between two drawings.
const FRAME: Duration = Duration::from_millis(16);

/// What is needed to show a chat beside the chat itself.
pub(super) struct ReadingState {
    references: References,
    sender: mpsc::Sender<(String, ReferencedContent)>,
    arrived: mpsc::Receiver<(String, ReferencedContent)>,
    drawn_at: Option<Instant>,
    is_due: bool,
    /// Since when workers are known, by their chats.
    workers: BTreeMap<String, Instant>,
}

impl ReadingState {
    pub(super) fn new() -> Self {
        let (sender, arrived) = mpsc::channel(READS_MAX);
        Self {
            references: References::default(),
            sender,
            arrived,
            drawn_at: None,
            is_due: false,
            workers: BTreeMap::new(),
        }
    }

    /// Notes how far the workers are.
    pub(super) fn update_workers(&mut self, workers: Vec<WorkerSummary>) {
        let now = Instant::now();
        self.workers.retain(|chat, _| workers.iter().any(|worker| worker.chat == *chat));
        let seen = workers
            .into_iter()
            .map(|worker| {
                let since = self.workers.entry(worker.chat.clone()).or_insert(now);
                let seconds = now.saturating_duration_since(*since).as_secs();
                let state = WorkerState {
                    status: worker.status,
                    activity: worker.activity,
                    seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
                };
                (worker.chat, state)
            })
            .collect();
        self.references.set_workers(seen);
    }

    /// The screen is drawn now.
    pub(super) fn begin_frame(&mut self) {
        self.drawn_at = Some(Instant::now());
        self.is_due = false;
    }

    pub(super) fn view(&self, page: Page) -> ChatView<'_> {
        ChatView { page, references: &self.references, now: Instant::now() }
    }

    /// Waits for contents that were asked for.
    pub(super) async fn read_more(&mut self) {
        // There is a sender here as well: it does not end.
        if let Some((uri, content)) = self.arrived.recv().await {
            self.references.set(&uri, content);
        }
    }

    /// Whether there may be a drawing now; if not, one is due when the time has come.
    pub(super) fn is_frame_due(&mut self) -> bool {
        let drawn_at = self.drawn_at;
        self.is_due = drawn_at.is_some_and(|drawn_at| drawn_at.elapsed() < FRAME);
        !self.is_due
    }

    /// When to draw if nothing happens.
    pub(super) fn next_frame(&self, is_working: bool) -> Option<Instant> {
        let drawn_at = self.drawn_at?;
        match (self.is_due, is_working) {
            (true, _) => Some(drawn_at + FRAME),
            (false, true) => Some(drawn_at + status::FRAME),
            (false, false) => None,
        }
    }
}

/// Waits for a moment; forever if there is none.
pub(super) async fn wait_for(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

impl TerminalChat {
    /// Asks the host for what is needed to show what is there.
    pub(super) fn read_needed(&mut self) {
        let asked = self.asked.as_ref().map(|asked| asked.part());
        let needed = self.transcript.needed_contents(asked);
        let references = &mut self.reading.references;
        references.set_needed(needed);
        for uri in references.next_to_read(READS_MAX) {
            references.set(&uri, ReferencedContent::Coming);
            let sender = self.reading.sender.clone();
            let (live, channel) = (self.chat.live().clone(), self.chat.session().clone());
            tokio::spawn(async move {
                let content = read_content(&live, &channel, &uri).await;
                // Nobody is left to tell if the chat was closed.
                let _ = sender.send((uri, content)).await;
            });
        }
    }

    /// Ctrl-T: reasoning whole, or folded.
    pub(super) fn toggle_reasoning(&mut self) {
        let folded = self.transcript.toggle_reasoning(self.painter.page());
        if !folded.is_empty() {
            self.print(folded);
        }
        self.note(if self.transcript.is_reasoning_shown() {
            "Reasoning is shown from now on; Ctrl-T folds it"
        } else {
            "Reasoning is folded from now on; Ctrl-T shows it"
        });
    }

    /// Ctrl-O: the whole of what is asked, or of the last result.
    pub(super) async fn open_whole(&mut self) -> anyhow::Result<()> {
        let whole = self.read_whole().await;
        let mut lines = whole.lines;
        if lines.is_empty() {
            self.note("There is nothing to open yet");
            return Ok(());
        }
        if let Some(uri) = whole.output {
            let read = self.chat.live().read_content(self.chat.session(), &uri);
            match tokio::time::timeout(CONTENT_TIMEOUT, read).await {
                Ok(Ok(ReadContent::Text(text))) => {
                    lines.push(Line::default());
                    lines.extend(external_pager::text_lines(&text));
                }
                Ok(Ok(ReadContent::Base64(_))) => {}
                Ok(Err(_)) | Err(_) => self.note_error("the whole output cannot be read"),
            }
        }
        match self.page(&lines).await {
            Ok(true) => {}
            // Without a pager it is printed.
            Ok(false) => self.print(lines),
            Err(error) => self.note_error(&format!("{error:#}")),
        }
        Ok(())
    }

    /// What is asked with all that can be chosen, or the last result: with nothing folded.
    async fn read_whole(&mut self) -> UnfoldedCall {
        let asked = self.asked.as_ref();
        let call = match asked {
            Some(asked) => asked.part().get("toolCall").and_then(|call| call.as_object()),
            None => self.transcript.last_call(),
        };
        if let Some(call) = call {
            let references = &mut self.reading.references;
            read_all(references, call, self.chat.live(), self.chat.session()).await;
        }
        let view = self.reading.view(self.painter.page());
        match asked {
            None => self.transcript.unfold_last_call(&view),
            Some(asked) => {
                let width = view.page.width;
                let mut lines =
                    dialog::subject_lines(asked, Detail::Unfolded, view.page, view.references);
                lines.extend(self.all_choices(width));
                UnfoldedCall { lines, output: call.and_then(whole_output) }
            }
        }
    }

    /// Shows lines in the user's pager; `false` if there is none.
    async fn page(&mut self, lines: &[Line]) -> anyhow::Result<bool> {
        let Some(command) = external_pager::find_pager() else { return Ok(false) };
        let colors = self.painter.page().colors;
        let text: String = lines.iter().map(|line| line.encode(colors) + "\n").collect();
        debug_assert!(colors == Colors::Off || !text.is_empty(), "there is something to show");
        self.hand_over(|| external_pager::open_pager(&command, text))
            .await
            .map(|status| status.success())
    }
}
