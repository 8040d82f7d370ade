//! The conversation on a terminal: hears the host and the keys, and draws what comes of them.
//!
//! Promises: the terminal is left as it was found. What another client does shows here at once; a question somebody else
//! answered goes away by itself.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use client::{Link, Update, Updates};
use rustix::process::{Signal as ProcessSignal, kill_current_process_group};
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::Action;
use wire::state::ChatState;

use super::bottom::{Parts, bottom};
use super::complete::{Accepted, Completing};
use super::dialog::Dialog;
use super::editor::Editor;
use super::keys::{Decoder, Key};
use super::paint::Painter;
use super::room::{Branched, Room, Wanted};
use super::styled::{Colors, Line, Style};
use super::transcript::Transcript;
use super::tty::Tty;
use crate::exit::Exit;
use crate::terminal::{clean, clean_line};

/// How long an Escape may be the beginning of something longer.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(40);
/// Whoever typed this recently goes on typing: a question must not take the keys away.
const TYPING: Duration = Duration::from_millis(700);
/// How long a question that takes another's place is looked at before a key can answer it.
const LOOK: Duration = Duration::from_millis(400);

/// What the keys do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mode {
    /// They write a message.
    Typing,
    /// They answer what the agent asks.
    Answering,
    /// They write what to do instead of what was denied.
    Suggesting,
    /// They choose one of these sessions.
    Picking(Vec<Value>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    GoOn,
    Leave,
}

pub(crate) struct Shell {
    pub(super) room: Room,
    updates: Updates,
    tty: Tty,
    painter: Painter,
    decoder: Decoder,
    pub(super) editor: Editor,
    transcript: Transcript,
    pub(super) dialog: Option<Dialog>,
    pub(super) mode: Mode,
    /// What was half typed when a question came.
    stash: String,
    /// Lines of our own that are still to be printed.
    said: Vec<Line>,
    pub(super) note: Option<Line>,
    /// What the word at the cursor may become, while it is gone through.
    pub(super) completing: Option<Completing>,
    pub(super) accepted: Accepted,
    lost: Option<String>,
    /// The last key was Ctrl-C.
    pub(super) interrupted: bool,
    pub(super) typed_at: Option<Instant>,
    /// The last key answered a question.
    pub(super) answered: bool,
    pub(super) unseen_until: Option<Instant>,
    /// The signal to go on is the answer to our own stopping.
    continues: bool,
    exit: Exit,
}

struct Signals {
    resized: Signal,
    terminated: Signal,
    interrupted: Signal,
    hung_up: Signal,
    continued: Signal,
}

impl Shell {
    pub(crate) fn open(room: Room, updates: Updates) -> anyhow::Result<Self> {
        let tty = Tty::open().context("the terminal cannot be used; try --plain")?;
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colors = if plain { Colors::Off } else { Colors::On };
        let painter = Painter::new(colors, tty.size());
        let mut shell = Self {
            room,
            updates,
            tty,
            painter,
            decoder: Decoder::default(),
            editor: Editor::default(),
            transcript: Transcript::below(),
            dialog: None,
            mode: Mode::Typing,
            stash: String::new(),
            said: Vec::new(),
            note: None,
            completing: None,
            accepted: Accepted::default(),
            lost: None,
            interrupted: false,
            typed_at: None,
            answered: false,
            unseen_until: None,
            continues: false,
            exit: Exit::Complete,
        };
        shell.arrive();
        Ok(shell)
    }

    pub(crate) async fn run(mut self) -> anyhow::Result<Exit> {
        let talked = self.talk().await;
        let kept = self.room.keep_draft(&self.draft());
        let parting = self.parting();
        let clear = self.painter.clear();
        let written = write(&clear);
        drop(self.tty);
        self.room.live().clone().close().await;
        talked?;
        kept?;
        written?;
        if let Some(words) = parting {
            eprintln!("{words}");
        }
        Ok(self.exit)
    }

    async fn talk(&mut self) -> anyhow::Result<()> {
        let watch = |kind| signal(kind).context("signals cannot be watched");
        let mut signals = Signals {
            resized: watch(SignalKind::window_change())?,
            terminated: watch(SignalKind::terminate())?,
            interrupted: watch(SignalKind::interrupt())?,
            hung_up: watch(SignalKind::hangup())?,
            continued: watch(SignalKind::from_raw(ProcessSignal::CONT.as_raw()))?,
        };
        self.draw()?;
        loop {
            let waiting = self.decoder.is_waiting();
            let flow = tokio::select! {
                update = self.updates.next() => self.take_updates(update)?,
                bytes = self.tty.read() => {
                    if bytes.is_empty() {
                        Flow::Leave
                    } else {
                        self.take_bytes(&bytes).await?
                    }
                }
                () = tokio::time::sleep(ESCAPE_TIMEOUT), if waiting => {
                    match self.decoder.give_up_waiting() {
                        Some(key) => self.press(key).await?,
                        None => Flow::GoOn,
                    }
                }
                _ = signals.resized.recv() => {
                    self.painter.resize(self.tty.size());
                    Flow::GoOn
                }
                _ = signals.continued.recv() => self.continued()?,
                _ = signals.terminated.recv() => Flow::Leave,
                // The terminal sends none while it is raw; others may.
                _ = signals.interrupted.recv() => self.press(Key::Ctrl('c')).await?,
                _ = signals.hung_up.recv() => Flow::Leave,
            };
            self.refresh();
            if flow == Flow::Leave {
                return Ok(());
            }
            self.draw()?;
        }
    }

    async fn take_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<Flow> {
        for key in self.decoder.decode(bytes) {
            if self.press(key).await? == Flow::Leave {
                return Ok(Flow::Leave);
            }
            // A key may be meant for what the one before it brought up.
            self.refresh();
        }
        Ok(Flow::GoOn)
    }

    /// Takes an update and all that are there: they are drawn at once.
    fn take_updates(&mut self, first: Option<Update>) -> anyhow::Result<Flow> {
        let Some(first) = first else {
            anyhow::bail!("the connection is closed");
        };
        self.take_update(first)?;
        while let Some(update) = self.updates.try_next() {
            self.take_update(update)?;
        }
        Ok(Flow::GoOn)
    }

    fn take_update(&mut self, update: Update) -> anyhow::Result<()> {
        match update {
            Update::Refused { action, reason, .. } => {
                if !self.room.queue_refused(&action)? {
                    self.complain(&format!("the host refused it: {}", clean_line(&reason)));
                    self.give_back(&action);
                }
            }
            Update::NotResent { action, .. } => {
                self.complain(
                    "the connection was lost before the host took your last action: look, then repeat it",
                );
                self.give_back(&action);
            }
            Update::Gone { channel } if channel == self.room.chat().as_str() => {
                anyhow::bail!("the chat is gone: its session was disposed of");
            }
            Update::Connection(Link::Lost { why }) => self.lost = Some(why.to_string()),
            Update::Connection(Link::Trying { why: Some(why), .. }) => {
                self.lost = Some(why.to_string());
            }
            Update::Connection(Link::Back { .. }) => self.lost = None,
            Update::Connection(Link::Over { why }) => return Err(why.into()),
            Update::Connection(Link::Trying { why: None, .. })
            | Update::Changed { .. }
            | Update::Reset { .. }
            | Update::Gone { .. }
            | Update::Notification(_) => {}
        }
        Ok(())
    }

    /// A message that did not get through can be sent again.
    fn give_back(&mut self, action: &Action) {
        let message = action.get("message");
        let text = message.and_then(|message| message["text"].as_str());
        if let (Some(text), Mode::Typing, true) = (text, &self.mode, self.editor.is_empty()) {
            self.editor.set(&clean(text));
        }
    }

    /// Sees what the agent waits for now.
    fn refresh(&mut self) {
        let chat = self.room.ahead();
        let before = self.dialog.take();
        let now = chat.and_then(|chat| Dialog::refreshed(before.clone(), &chat));
        let same = match (&before, &now) {
            (Some(before), Some(now)) => before.is_same(now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.dialog = now;
        if same {
            return;
        }
        let asks = self.dialog.is_some();
        match self.mode {
            Mode::Answering | Mode::Suggesting if !asks => self.stop_answering(),
            Mode::Answering | Mode::Suggesting => {
                self.editor.take();
                self.mode = Mode::Answering;
            }
            Mode::Typing if asks && before.is_none() => {
                let typing = self.typed_at.is_some_and(|at| at.elapsed() < TYPING);
                if self.editor.is_empty() && !typing {
                    self.mode = Mode::Answering;
                }
            }
            Mode::Typing | Mode::Picking(_) => {}
        }
        // A key that is meant for one question must not answer the next.
        if asks && (before.is_some() || self.answered) {
            self.unseen_until = Some(Instant::now() + LOOK);
        }
    }

    pub(super) fn start_answering(&mut self) {
        self.stash = self.editor.take();
        self.mode = Mode::Answering;
    }

    pub(super) fn stop_answering(&mut self) {
        let stash = std::mem::take(&mut self.stash);
        self.editor.set(&stash);
        self.mode = Mode::Typing;
    }

    /// What is half typed and worth keeping.
    fn draft(&self) -> String {
        match self.mode {
            Mode::Typing => self.editor.text().to_owned(),
            Mode::Answering | Mode::Suggesting | Mode::Picking(_) => self.stash.clone(),
        }
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let width = self.painter.width();
        let mut settled = std::mem::take(&mut self.said);
        let mut moving = Vec::new();
        let (confirmed, ahead) = self.room.confirmed_and_ahead();
        if let Some(chat) = &confirmed {
            settled.extend(self.transcript.settle(chat, width));
            moving = self.transcript.moving(chat, width);
        }
        let turn = |chat: &Option<std::sync::Arc<ChatState>>| {
            let turn = chat.as_ref().and_then(|chat| chat.active_turn.as_ref());
            turn.map(|turn| turn.id.clone())
        };
        let sending = turn(&ahead).is_some() && turn(&ahead) != turn(&confirmed);
        let dialog = match (&self.dialog, &self.mode) {
            (Some(dialog), Mode::Answering | Mode::Suggesting) => dialog.lines(width),
            _ => Vec::new(),
        };
        let status = self.note.clone().or_else(|| self.status(ahead.as_deref()));
        let parts = Parts {
            moving,
            chat: ahead.as_deref(),
            sending,
            dialog,
            note: status,
            prompt: self.prompt(),
            editor: &self.editor,
        };
        let bottom = bottom(parts, width, self.painter.rows());
        let written = self.painter.draw(&settled, bottom);
        write(&written)
    }

    fn prompt(&self) -> &'static str {
        match (&self.mode, &self.dialog) {
            (Mode::Answering, Some(Dialog::Confirm(_))) => "? ",
            (Mode::Answering, _) => "answer › ",
            (Mode::Suggesting, _) => "instead › ",
            (Mode::Picking(_), _) => "number › ",
            (Mode::Typing, _) => "› ",
        }
    }

    /// What goes on, where that is not plain to see.
    fn status(&self, chat: Option<&ChatState>) -> Option<Line> {
        if let Some(why) = &self.lost {
            let words = format!("connection lost, trying again: {}", clean_line(why));
            return Some(Line::new(Style::Warn, words));
        }
        match self.mode {
            Mode::Suggesting => {
                let words = "what to do instead; Enter alone denies without; Escape goes back";
                return Some(Line::new(Style::Dim, words));
            }
            Mode::Picking(_) => {
                let words = "the number of a session; Enter alone stays here";
                return Some(Line::new(Style::Dim, words));
            }
            Mode::Answering => return None,
            Mode::Typing => {}
        }
        if self.dialog.is_some() {
            let words = "the agent waits for an answer: Tab gives it";
            return Some(Line::new(Style::Warn, words));
        }
        if let Some(chat) = self.room.asked_elsewhere() {
            let words = format!("another chat waits for an answer: /open {chat}");
            return Some(Line::new(Style::Warn, words));
        }
        let chat = chat?;
        if chat.active_turn.is_some() {
            let activity = chat.activity.as_deref().map(clean_line);
            let activity = activity.unwrap_or_else(|| "working".to_owned());
            let words = format!("{activity} · Ctrl-C cancels · Enter queues · Ctrl-S steers");
            return Some(Line::new(Style::Dim, words));
        }
        if !chat.queued_messages.is_empty() {
            let words = "the queue is held: Enter sets it going";
            return Some(Line::new(Style::Dim, words));
        }
        None
    }

    /// Prints lines of our own.
    pub(super) fn say(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.said.push(Line::default());
        self.said.extend(lines);
    }

    pub(super) fn remark(&mut self, words: &str) {
        self.note = Some(Line::new(Style::Dim, clean_line(words)));
    }

    pub(super) fn complain(&mut self, words: &str) {
        self.note = Some(Line::new(Style::Bad, clean_line(words)));
    }

    /// The chat was opened.
    fn arrive(&mut self) {
        let session = self.room.session_state();
        let provider = session
            .as_ref()
            .map_or("", |session| session.provider.as_str());
        let session_uri = clean_line(self.room.session().as_str());
        let words = format!("{} · {session_uri}", clean_line(provider));
        let mut lines = vec![
            Line::new(Style::Bold, "greenroom").then(Style::Dim, format!(" · {words}")),
            Line::new(
                Style::Dim,
                "Say something. /help shows what else can be done.",
            ),
        ];
        if let Some(remark) = self.room.remark() {
            lines.push(Line::new(Style::Warn, clean_line(remark)));
        }
        self.said.extend(lines);
        for message in self.room.messages() {
            self.editor.remember(&message);
        }
        if let Some(draft) = self.room.draft_text() {
            self.editor.set(&draft);
        }
    }

    /// Goes to another chat. What is half typed stays behind as its draft.
    pub(super) async fn go_to(&mut self, wanted: Wanted) -> anyhow::Result<()> {
        let room = self.next_room(&wanted).await?;
        let draft = self.editor.take();
        self.room.keep_draft(&draft)?;
        self.enter(room).await;
        self.said.push(Line::default());
        self.arrive();
        Ok(())
    }

    /// Goes on in a copy of the chat; what was said in it stands on the screen already.
    pub(super) async fn fork(&mut self, words: &str) -> anyhow::Result<()> {
        let chat = match self.room.branch(words).await? {
            Branched::There(chat) => chat,
            Branched::Later => {
                self.remark("queued: the copy is made when the agent is done");
                return Ok(());
            }
            Branched::Not => return Ok(()),
        };
        let room = self.next_room(&Wanted::Channel(chat)).await?;
        self.enter(room).await;
        if let Some(chat) = self.room.confirmed() {
            self.transcript = Transcript::after(&chat);
        }
        let words = format!("· from here on a copy: {}", self.room.chat());
        self.say([Line::new(Style::Dim, words)]);
        Ok(())
    }

    async fn next_room(&self, wanted: &Wanted) -> anyhow::Result<Room> {
        let directory = std::env::current_dir().ok();
        Room::open(self.room.live().clone(), wanted, directory.as_deref()).await
    }

    async fn enter(&mut self, room: Room) {
        let left = std::mem::replace(&mut self.room, room);
        left.leave_for(&self.room).await;
        self.transcript = Transcript::below();
        self.dialog = None;
        self.mode = Mode::Typing;
    }

    /// What is said to someone who leaves: how to come back.
    fn parting(&self) -> Option<String> {
        let chat = self.room.confirmed()?;
        let session = clean_line(self.room.session().as_str());
        if chat.active_turn.is_some() {
            return Some(format!(
                "the agent goes on; `greenroom chat --session {session}` comes back to it"
            ));
        }
        (!chat.turns.is_empty())
            .then(|| format!("`greenroom chat --session {session}` goes on with it"))
    }

    /// Gives the terminal back to whoever started this, until told to go on.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        let clear = self.painter.clear();
        write(&clear)?;
        self.tty.leave();
        self.continues = true;
        kill_current_process_group(ProcessSignal::TSTP).context("cannot be suspended")?;
        self.come_back().map(drop)
    }

    /// Someone had this program stopped, and now goes on. If it was us, all is done.
    fn continued(&mut self) -> anyhow::Result<Flow> {
        match std::mem::take(&mut self.continues) {
            true => Ok(Flow::GoOn),
            false => self.come_back(),
        }
    }

    fn come_back(&mut self) -> anyhow::Result<Flow> {
        self.tty.enter().context("the terminal cannot be used")?;
        self.painter.resize(self.tty.size());
        self.painter.forget();
        Ok(Flow::GoOn)
    }

    pub(super) fn clear_screen(&mut self) -> anyhow::Result<()> {
        self.painter.forget();
        write("\x1b[H\x1b[2J")
    }

    /// Lets the user edit a text in an editor of their own.
    pub(super) async fn edit(&mut self, text: &str) -> anyhow::Result<String> {
        let draft = super::edit::Draft::new(text)?;
        let clear = self.painter.clear();
        write(&clear)?;
        self.tty.leave();
        let ended = match draft.open_editor() {
            Ok(mut editor) => loop {
                // The host is heard meanwhile, or it would take this client for gone.
                tokio::select! {
                    ended = editor.wait() => break ended.map_err(anyhow::Error::from),
                    update = self.updates.next() => {
                        self.take_updates(update)?;
                    }
                }
            },
            Err(error) => Err(error),
        };
        self.come_back()?;
        anyhow::ensure!(ended?.success(), "the editor failed; nothing was changed");
        draft.read()
    }
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("the terminal cannot be written")
}
