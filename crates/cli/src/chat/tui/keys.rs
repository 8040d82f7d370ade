//! What each key does, in each mode of the chat.

use std::time::Instant;

use client::chat::{ChatSelector, PendingInput, Sent, is_completable};

use super::{Flow, KeyMode, TerminalChat};
use crate::chat::command::{ChatCommand, HELP, KEYS, pick, session_lines};
use crate::chat::complete::CompletionCycle;
use crate::chat::confirm::{self, Choice};
use crate::chat::editor::EditorOutcome;
use crate::chat::keys::Key;
use crate::chat::line::{Line, Style};
use crate::chat::questions::{self, AnswerOutcome};
use crate::clock::now;
use crate::terminal::escape;

impl TerminalChat {
    pub(super) async fn press(&mut self, key: Key) -> anyhow::Result<Flow> {
        self.note = None;
        if key != Key::Ctrl('c') {
            self.is_interrupted = false;
        }
        if !matches!(key, Key::Tab | Key::Escape)
            && let Some(completing) = self.completing.take()
        {
            self.accepted.accept(completing.current());
        }
        match key {
            Key::Ctrl('c') => return self.interrupt(),
            Key::Ctrl('d') if self.editor.is_empty() => return Ok(Flow::Leave),
            Key::Ctrl('z') => self.suspend()?,
            Key::Ctrl('l') => self.clear_screen()?,
            Key::Ctrl('o') => self.open_whole().await?,
            Key::Ctrl('t') => self.toggle_reasoning(),
            Key::Ctrl('s') => self.steer_with_typed()?,
            Key::Tab if self.may_complete() => self.complete().await,
            Key::Tab => self.toggle_answering(),
            Key::Escape => self.step_back(),
            Key::Up if self.takes_from_queue() => {
                if let Some(text) = self.chat.unqueue()? {
                    self.editor.set(&escape(&text));
                }
            }
            key => return self.press_in_mode(key).await,
        }
        Ok(Flow::Continue)
    }

    async fn press_in_mode(&mut self, key: Key) -> anyhow::Result<Flow> {
        if let (KeyMode::Answering, Some(PendingInput::Confirmation(confirmation))) =
            (&self.mode, &self.pending)
        {
            let too_new_until = self.too_new_until.take();
            if too_new_until.is_some_and(|until| Instant::now() < until) {
                self.note("This is another question: read it, then press a key");
                return Ok(Flow::Continue);
            }
            let choice = match key {
                Key::Char(c) => confirm::choose_by_key(confirmation, c),
                _ => None,
            };
            self.has_just_answered = matches!(choice, Some(Choice::Decided(_)));
            self.choose(choice).await?;
            return Ok(Flow::Continue);
        }
        self.has_just_answered = false;
        if matches!(key, Key::Char(_) | Key::Paste(_)) {
            self.last_typed = Some(Instant::now());
        }
        match self.editor.key(&key) {
            EditorOutcome::Entered(text) => {
                self.last_typed = None; // done with typing: the next keys may be an answer
                self.enter_text(&text).await
            }
            EditorOutcome::Taken | EditorOutcome::Unused => Ok(Flow::Continue),
        }
    }

    /// Up brings back a message that waits, as long as nothing else is being typed.
    fn takes_from_queue(&self) -> bool {
        self.mode == KeyMode::Typing && self.editor.is_empty() && self.chat.has_queued()
    }

    /// Ctrl-C: cancels what runs, or what is typed; twice in a row leaves.
    fn interrupt(&mut self) -> anyhow::Result<Flow> {
        if self.is_interrupted {
            return Ok(Flow::Leave);
        }
        self.is_interrupted = true;
        if self.chat.cancel()? {
            self.note("cancelled; Ctrl-C again leaves");
            return Ok(Flow::Continue);
        }
        if self.mode != KeyMode::Typing {
            self.stop_answering();
        } else {
            self.editor.take();
        }
        self.note("Ctrl-C again leaves");
        Ok(Flow::Continue)
    }

    fn steer_with_typed(&mut self) -> anyhow::Result<()> {
        if self.mode != KeyMode::Typing || self.editor.is_empty() {
            return Ok(());
        }
        let text = self.editor.take();
        self.steer(&text)
    }

    fn steer(&mut self, text: &str) -> anyhow::Result<()> {
        self.editor.remember(text);
        let attachments = self.accepted.take_attachments(text);
        if self.chat.is_working() {
            self.chat.steer(text, &attachments)?;
        } else {
            self.chat.send_with(text, &attachments)?;
        }
        Ok(())
    }

    /// Tab: between a message and what the agent asks.
    fn toggle_answering(&mut self) {
        match (&self.mode, &self.pending) {
            (KeyMode::Typing, Some(_)) => self.start_answering(),
            (KeyMode::Answering | KeyMode::Suggesting, _) => self.stop_answering(),
            (KeyMode::Typing | KeyMode::Picking(_), _) => {}
        }
    }

    /// Whether there is a word at the cursor that the host may complete.
    fn may_complete(&self) -> bool {
        let editor = &self.editor;
        self.mode == KeyMode::Typing
            && (self.completing.is_some() || is_completable(editor.text(), editor.cursor()))
    }

    /// Tab on such a word: the host's first suggestion, then its next.
    async fn complete(&mut self) {
        let completing = match self.completing.take() {
            Some(mut completing) => {
                completing.advance();
                completing
            }
            None => {
                let (text, cursor) = (self.editor.text(), self.editor.cursor());
                let suggested = match self.chat.completions(text, cursor).await {
                    Ok(completions) => CompletionCycle::new(completions, text, cursor),
                    Err(error) => return self.note_error(&error.to_string()),
                };
                match suggested {
                    Some(suggested) => suggested,
                    None => return self.note("No matches"),
                }
            }
        };
        let (text, cursor) = completing.text();
        self.editor.replace(text, cursor);
        self.note(&completing.describe());
        if completing.is_only() {
            self.accepted.accept(completing.current());
        } else {
            self.completing = Some(completing);
        }
    }

    fn step_back(&mut self) {
        if let Some(completing) = self.completing.take() {
            let (text, cursor) = completing.before;
            return self.editor.replace(text, cursor);
        }
        match self.mode {
            KeyMode::Suggesting => {
                self.editor.take();
                self.mode = KeyMode::Answering;
            }
            KeyMode::Answering | KeyMode::Picking(_) => self.stop_answering(),
            KeyMode::Typing => {}
        }
    }

    async fn choose(&mut self, choice: Option<Choice>) -> anyhow::Result<()> {
        match choice {
            Some(Choice::Decided(decision)) => self.chat.confirm(&decision)?,
            Some(Choice::Suggest) => self.mode = KeyMode::Suggesting,
            Some(Choice::Edit(input)) => match self.edit(&input).await {
                Ok(edited) => {
                    if let Some(PendingInput::Confirmation(confirmation)) = &mut self.pending {
                        confirmation.edit_input(edited);
                    }
                }
                Err(error) => self.note_error(&format!("{error:#}")),
            },
            None => self.note("Press a key in brackets. Tab: type a message, Ctrl-C: cancel"),
        }
        Ok(())
    }

    /// Enter was pressed on a text.
    async fn enter_text(&mut self, text: &str) -> anyhow::Result<Flow> {
        match (&self.mode, &mut self.pending) {
            (KeyMode::Suggesting, Some(PendingInput::Confirmation(confirmation))) => {
                let denial = confirmation.deny(text);
                self.chat.confirm(&denial)?;
            }
            (KeyMode::Answering, Some(PendingInput::Questions(form))) => {
                match questions::answer_line(form, text) {
                    AnswerOutcome::Complete(response) => self.chat.answer(&response)?,
                    AnswerOutcome::Next => {}
                    AnswerOutcome::Wrong(why) => {
                        self.editor.set(text);
                        self.note_error(&why);
                    }
                }
            }
            (KeyMode::Picking(sessions), _) => {
                let picked = match text.trim() {
                    "" => None,
                    answer => Some(pick(sessions, answer)),
                };
                match picked {
                    None => self.stop_answering(),
                    Some(Ok(uri)) => {
                        self.stop_answering();
                        self.try_to_go_to(ChatSelector::Channel(uri)).await;
                    }
                    Some(Err(why)) => self.note_error(&why),
                }
            }
            (KeyMode::Typing | KeyMode::Answering | KeyMode::Suggesting, _) => {
                return self.enter_message(text).await;
            }
        }
        Ok(Flow::Continue)
    }

    async fn enter_message(&mut self, text: &str) -> anyhow::Result<Flow> {
        if text.trim().is_empty() {
            if !self.chat.is_working() {
                self.chat.release_queue()?;
            }
            return Ok(Flow::Continue);
        }
        self.editor.remember(text);
        match ChatCommand::parse(text) {
            Some(command) => self.run_command(command).await,
            None => {
                let attachments = self.accepted.take_attachments(text);
                let sent = self.chat.send_with(text, &attachments)?;
                if sent == Sent::Queued && self.pending.is_some() {
                    self.note("Queued. The agent is waiting. Press Tab to answer");
                }
                Ok(Flow::Continue)
            }
        }
    }

    async fn run_command(&mut self, command: ChatCommand) -> anyhow::Result<Flow> {
        match command {
            ChatCommand::Quit => return Ok(Flow::Leave),
            ChatCommand::Help => self.show_help().await,
            ChatCommand::Sessions => match self.chat.live().list_sessions().await {
                Ok(sessions) => {
                    let lines = session_lines(&sessions, self.chat.session(), now());
                    self.print(lines.into_iter().map(|line| Line::new(Style::Plain, line)));
                    self.mode = KeyMode::Picking(sessions);
                }
                Err(error) => self.note_error(&error.to_string()),
            },
            ChatCommand::Open(answer) => match pick(&[], &answer) {
                Ok(uri) => self.try_to_go_to(ChatSelector::Channel(uri)).await,
                Err(_) => self.note_error("/open needs a URI; /sessions lists what there is"),
            },
            ChatCommand::New => {
                self.try_to_go_to(ChatSelector::NewSession { agent: None })
                    .await;
            }
            ChatCommand::Fork(name) => {
                if let Err(error) = self.branch(&name).await {
                    self.note_error(&format!("{error:#}"));
                }
            }
            ChatCommand::Resume => {
                if let Err(error) = self.chat.resume() {
                    self.note_error(&error.to_string());
                }
            }
            ChatCommand::Steer(text) => self.steer(&text)?,
        }
        Ok(Flow::Continue)
    }

    /// Goes to another chat, or stays and says why.
    async fn try_to_go_to(&mut self, selector: ChatSelector) {
        if let Err(error) = self.go_to(selector).await {
            self.note_error(&format!("{error:#}"));
        }
    }

    async fn show_help(&mut self) {
        let row = |name: &str, what: &str| {
            Line::new(Style::Bold, format!("  {name:20}")).then(Style::Plain, what)
        };
        let ours = HELP.iter().chain(KEYS).map(|(name, what)| row(name, what));
        self.print(ours.collect::<Vec<Line>>());
        let commands = crate::chat::complete::host_commands(&self.chat).await;
        if !commands.is_empty() {
            self.print([Line::new(Style::Dim, "  Commands of the host:")]);
            let commands = commands.iter().map(|(name, what)| row(name, what));
            self.print(commands.collect::<Vec<Line>>());
        }
        let rest = "  Any other line that begins with / is for the agent.";
        self.print([Line::new(Style::Dim, rest)]);
    }
}
