//! The chat on a terminal: takes events of the host and keys, and draws what comes of them.
//!
//! Promises: the terminal is left as it was found. What another client does shows here at once; a question somebody else
//! answered goes away by itself.

mod agent_picker;
mod background;
mod change_answers;
mod change_operations;
mod changes;
mod commands;
mod compose;
mod draw;
mod entering;
mod events;
mod handover;
mod interrupt;
mod keys;
mod model_picker;
mod navigate;
mod overlay;
mod pager;
mod permissions;
mod picker;
mod popup;
mod prompt_keys;
mod queue;
mod reading;
mod rewrite;
mod search;
mod session_picker;
mod sign_in;
mod status_line;
mod terminals;

use std::collections::VecDeque;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use client::chat::{AcceptedCompletions, AskedInput, ChangesList, OpenChat};
use client::terminals::TerminalEntry;
use rustix::process::Signal as ProcessSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::background::Answers;
use self::draw::DrawnSubject;
use self::entering::EnteredLine;
use self::interrupt::Rewriting;
use self::overlay::Overlay;
use self::prompt_keys::UnreadQuestion;
use self::reading::ReadingState;
use self::status_line::Status;
use super::annotations::ListedThreads;
use super::attention::Signal as UserSignal;
use super::dialog::PromptNumber;
use super::editor::Editor;
use super::history::HistoryFile;
use super::keys::{Key, KeyDecoder};
use super::line::{Colors, Line};
use super::paint::Painter;
use super::popup::Popup;
use super::prompt::{PromptField, PromptState};
use super::sign_in::SignIns;
use super::terminal_traits::TerminalTraits;
use super::transcript::Transcript;
use super::tty::Tty;
use crate::exit::Exit;
use crate::models::local_servers::Hint;
use crate::target::HostOptions;
use crate::terminal::escape;

/// How long an Escape may be the beginning of something longer.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(40);
/// More keys than this at once are not typed: a terminal that does not mark what is pasted pastes.
const BURST_KEYS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    Leave,
}

/// How the chat is shown, beside what is shown.
pub(crate) struct TerminalOptions {
    /// What was sent in earlier runs.
    pub(crate) history: HistoryFile,
    /// Lines for somebody who has no model yet.
    pub(crate) hint: Option<Hint>,
    /// Where agents of new sessions work, if that is on this machine.
    pub(crate) directory: Option<PathBuf>,
    /// The list of sessions is opened first.
    pub(crate) begins_with_sessions: bool,
    pub(crate) signal: UserSignal,
    /// The data directory of the host, if it is on this machine.
    pub(crate) data: Option<PathBuf>,
    /// How the host is found.
    pub(crate) host: HostOptions,
}

pub(crate) struct TerminalChat {
    chat: OpenChat,
    tty: Tty,
    painter: Painter,
    decoder: KeyDecoder,
    editor: Editor,
    transcript: Transcript,
    reading: ReadingState,
    /// What was sent in earlier runs.
    history: HistoryFile,
    /// What the agent waits for, with what was answered so far, and where it stands among all that wait.
    asked: Option<AskedInput>,
    asked_number: PromptNumber,
    /// What is chosen at the prompt about it.
    prompt: PromptState,
    /// What the input line is for, if not for a message.
    field: Option<PromptField>,
    /// What is to be decided on, as it is drawn.
    subject: Option<DrawnSubject>,
    /// What has the keys first, if something is open.
    overlay: Option<Overlay>,
    /// What was typed and put aside to answer a question.
    stash: String,
    /// The message that is written anew.
    rewriting: Option<Rewriting>,
    /// Lines of our own that are still to be printed.
    unprinted: Vec<Line>,
    /// One line about what just happened.
    note: Option<Line>,
    /// How far the session is that is being made. A note stands above it: progress that comes late hides nothing.
    creation: Option<Line>,
    /// What the word at the cursor may become.
    popup: Popup,
    accepted: AcceptedCompletions,
    /// Why there is no connection, while there is none.
    disconnected: Option<String>,
    /// The last key was Ctrl-C.
    is_interrupted: bool,
    /// When the last key was Escape.
    escaped_at: Option<Instant>,
    /// The last key was Ctrl-X, which begins a command.
    is_after_ctrl_x: bool,
    /// The key came with others at once.
    is_burst: bool,
    last_typed: Option<Instant>,
    /// The last key answered a question.
    has_just_answered: bool,
    /// What is asked is too new to be answered by a key.
    unread: Option<UnreadQuestion>,
    /// The signal to continue answers our own suspension.
    is_suspended: bool,
    /// What was asked in the background.
    answers: Answers,
    /// Tokens of MCP servers that were got here.
    sign_ins: SignIns,
    /// The changed files that were listed last.
    changes: Option<ChangesList>,
    /// The comments that were listed last.
    annotations: ListedThreads,
    /// The terminals that were listed last.
    terminals: Vec<TerminalEntry>,
    /// It is being found out whether a command is one; what was entered behind it waits.
    is_checking: bool,
    unsent: VecDeque<EnteredLine>,
    status: Status,
    /// The data directory of the host, if it is on this machine.
    data: Option<PathBuf>,
    host: HostOptions,
    /// Where agents of new sessions work, if that is on this machine.
    directory: Option<PathBuf>,
    /// Lines for somebody who has no model yet.
    hint: Option<Hint>,
    exit: Exit,
}

struct Signals {
    resized: Signal,
    terminated: Signal,
    interrupted: Signal,
    hung_up: Signal,
    continued: Signal,
}

impl Signals {
    fn watch() -> anyhow::Result<Self> {
        let watch = |kind| signal(kind).context("signals cannot be watched");
        Ok(Self {
            resized: watch(SignalKind::window_change())?,
            terminated: watch(SignalKind::terminate())?,
            interrupted: watch(SignalKind::interrupt())?,
            hung_up: watch(SignalKind::hangup())?,
            continued: watch(SignalKind::from_raw(ProcessSignal::CONT.as_raw()))?,
        })
    }
}

impl TerminalChat {
    pub(crate) fn open(chat: OpenChat, options: TerminalOptions) -> anyhow::Result<Self> {
        let tty = Tty::open().context("the terminal cannot be used; try --plain")?;
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colors = if is_plain { Colors::Off } else { Colors::On };
        let traits = TerminalTraits::read(|name| std::env::var(name).ok());
        let painter = Painter::new(colors, tty.size()).with_traits(traits);
        let mut terminal = Self {
            chat,
            tty,
            painter,
            decoder: KeyDecoder::default(),
            editor: Editor::default(),
            transcript: Transcript::below(),
            reading: ReadingState::new(),
            history: options.history,
            asked: None,
            asked_number: PromptNumber::default(),
            prompt: PromptState::default(),
            field: None,
            subject: None,
            overlay: None,
            stash: String::new(),
            rewriting: None,
            unprinted: Vec::new(),
            note: None,
            creation: None,
            popup: Popup::default(),
            accepted: AcceptedCompletions::default(),
            disconnected: None,
            is_interrupted: false,
            escaped_at: None,
            is_after_ctrl_x: false,
            is_burst: false,
            last_typed: None,
            has_just_answered: false,
            unread: None,
            is_suspended: false,
            answers: Answers::new(),
            sign_ins: SignIns::new(),
            changes: None,
            annotations: ListedThreads::default(),
            terminals: Vec::new(),
            is_checking: false,
            unsent: VecDeque::new(),
            status: Status::new(options.signal, options.data.is_some()),
            data: options.data,
            host: options.host,
            directory: options.directory,
            hint: options.hint,
            exit: Exit::Complete,
        };
        terminal.read_history();
        terminal.show_header();
        if options.begins_with_sessions {
            terminal.open_sessions();
        }
        Ok(terminal)
    }

    pub(crate) async fn run(mut self) -> anyhow::Result<Exit> {
        let ended = self.run_until_left().await;
        let draft = self.draft();
        let saved = self.chat.save_draft(&draft);
        let farewell = self.how_to_return();
        let clear = self.painter.clear();
        let written = write(&clear);
        drop(self.tty);
        self.chat.close().await;
        ended?;
        saved?;
        written?;
        if let Some(farewell) = farewell {
            eprintln!("{farewell}");
        }
        Ok(self.exit)
    }

    async fn run_until_left(&mut self) -> anyhow::Result<()> {
        let mut signals = Signals::watch()?;
        self.refresh_asked();
        self.draw()?;
        // After the first drawing: nobody waits for it.
        self.ask_for_sessions();
        loop {
            let may_be_escape = self.decoder.is_waiting();
            let frame = self.reading.next_frame(self.chat.is_working());
            let readable_at = self.question_readable_at();
            let flow = tokio::select! {
                event = self.chat.next() => {
                    self.take_events(event?)?;
                    Flow::Continue
                }
                bytes = self.tty.read() => {
                    if bytes.is_empty() {
                        Flow::Leave
                    } else {
                        self.take_bytes(&bytes).await?
                    }
                }
                () = tokio::time::sleep(ESCAPE_TIMEOUT), if may_be_escape => {
                    match self.decoder.end_of_sequence() {
                        Some(key) => self.press(key).await?,
                        None => Flow::Continue,
                    }
                }
                answer = self.answers.next() => self.take_answer(answer).await?,
                event = self.sign_ins.next() => {
                    self.take_sign_in(&event);
                    Flow::Continue
                }
                () = self.reading.read_more() => Flow::Continue,
                () = reading::wait_for(readable_at) => {
                    self.end_reading_time();
                    Flow::Continue
                }
                () = reading::wait_for(frame) => {
                    self.draw()?;
                    continue;
                }
                lines = async { Some(self.hint.as_mut()?.await) }, if self.hint.is_some() => {
                    self.hint = None;
                    self.show_hint(lines.unwrap_or_default());
                    Flow::Continue
                }
                // The size is read whenever something is drawn.
                _ = signals.resized.recv() => Flow::Continue,
                _ = signals.continued.recv() => {
                    self.continue_after_stop()?;
                    Flow::Continue
                }
                _ = signals.terminated.recv() => Flow::Leave,
                // The terminal sends none while it is raw; others may.
                _ = signals.interrupted.recv() => self.press(Key::Ctrl('c')).await?,
                _ = signals.hung_up.recv() => Flow::Leave,
            };
            self.refresh_asked();
            if flow == Flow::Leave {
                return self.draw();
            }
            self.tell_terminal()?;
            if self.reading.is_frame_due() {
                self.draw()?;
            }
        }
    }

    async fn take_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<Flow> {
        let keys = self.decoder.decode(bytes);
        self.is_burst = keys.len() > BURST_KEYS;
        for key in keys {
            // What is asked may have changed since it was drawn: then the key is not about it.
            self.refresh_asked();
            if self.press(key).await? == Flow::Leave {
                return Ok(Flow::Leave);
            }
            // A key may be meant for what the one before it brought up.
            self.refresh_asked();
        }
        Ok(Flow::Continue)
    }

    /// What was sent in earlier runs can be brought back.
    fn read_history(&mut self) {
        match self.history.read() {
            Ok(entries) => {
                for entry in entries {
                    self.editor.remember(&escape(&entry));
                }
            }
            Err(error) => self.note_error(&format!("the history cannot be read: {error}")),
        }
    }

    /// What is half typed and worth keeping: a message, not an answer.
    fn draft(&self) -> String {
        let typed = match self.field {
            None => self.editor.whole_text(),
            Some(_) => String::new(),
        };
        let both: Vec<&str> = [self.stash.as_str(), typed.as_str()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        both.join("\n")
    }
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("the terminal cannot be written")
}
