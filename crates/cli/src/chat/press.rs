//! What each key does, in each mode of the conversation.

use std::time::Instant;

use super::command::{Command, HELP, KEYS, pick, session_lines};
use super::complete::{Completing, may_complete};
use super::confirm::Chosen;
use super::dialog::Dialog;
use super::editor::Edited;
use super::keys::Key;
use super::questions::Answered;
use super::room::{Said, Wanted, list};
use super::shell::{Flow, Mode, Shell};
use super::styled::{Line, Style};
use crate::words::now;

impl Shell {
    pub(super) async fn press(&mut self, key: Key) -> anyhow::Result<Flow> {
        self.note = None;
        if key != Key::Ctrl('c') {
            self.interrupted = false;
        }
        if !matches!(key, Key::Tab | Key::Escape)
            && let Some(completing) = self.completing.take()
        {
            self.accepted.take_in(&completing);
        }
        match key {
            Key::Ctrl('c') => return self.interrupt(),
            Key::Ctrl('d') if self.editor.is_empty() => return Ok(Flow::Leave),
            Key::Ctrl('z') => self.suspend()?,
            Key::Ctrl('l') => self.clear_screen()?,
            Key::Ctrl('s') => self.steer_with_typed()?,
            Key::Tab if self.may_complete() => self.complete().await,
            Key::Tab => self.change_sides(),
            Key::Escape => self.step_back(),
            Key::Up if self.takes_from_queue() => {
                if let Some(text) = self.room.unqueue()? {
                    self.editor.set(&text);
                }
            }
            key => return self.type_key(key).await,
        }
        Ok(Flow::GoOn)
    }

    async fn type_key(&mut self, key: Key) -> anyhow::Result<Flow> {
        if let (Mode::Answering, Some(Dialog::Confirm(confirm))) = (&self.mode, &self.dialog) {
            if self
                .unseen_until
                .take()
                .is_some_and(|until| Instant::now() < until)
            {
                self.remark("this is another question: look, then press");
                return Ok(Flow::GoOn);
            }
            let chosen = match key {
                Key::Char(c) => confirm.key(c),
                _ => Chosen::Nothing,
            };
            self.answered = matches!(chosen, Chosen::Act(_));
            self.choose(chosen).await?;
            return Ok(Flow::GoOn);
        }
        self.answered = false;
        if matches!(key, Key::Char(_) | Key::Paste(_)) {
            self.typed_at = Some(Instant::now());
        }
        match self.editor.key(&key) {
            Edited::Entered(text) => {
                self.typed_at = None; // done with typing: the next keys may be an answer
                self.enter_text(&text).await
            }
            Edited::Taken | Edited::Unused => Ok(Flow::GoOn),
        }
    }

    /// Up brings back a message that waits, as long as nothing else is being typed.
    fn takes_from_queue(&self) -> bool {
        self.mode == Mode::Typing && self.editor.is_empty() && self.room.has_queued()
    }

    /// Ctrl-C: cancels what runs, or what is typed; twice in a row leaves.
    fn interrupt(&mut self) -> anyhow::Result<Flow> {
        if self.interrupted {
            return Ok(Flow::Leave);
        }
        self.interrupted = true;
        if self.room.cancel()? {
            self.remark("cancelled; Ctrl-C again leaves");
            return Ok(Flow::GoOn);
        }
        if self.mode != Mode::Typing {
            self.stop_answering();
        } else {
            self.editor.take();
        }
        self.remark("Ctrl-C again leaves");
        Ok(Flow::GoOn)
    }

    fn steer_with_typed(&mut self) -> anyhow::Result<()> {
        if self.mode != Mode::Typing || self.editor.is_empty() {
            return Ok(());
        }
        let text = self.editor.take();
        self.steer(&text)
    }

    fn steer(&mut self, text: &str) -> anyhow::Result<()> {
        self.editor.remember(text);
        let attachments = self.accepted.go_with(text);
        let works = self
            .room
            .ahead()
            .is_some_and(|chat| chat.active_turn.is_some());
        if works {
            self.room.steer(text, attachments)?;
        } else {
            self.room.say_with(text, attachments)?;
        }
        Ok(())
    }

    /// Tab: between a message and what the agent asks.
    fn change_sides(&mut self) {
        match (&self.mode, &self.dialog) {
            (Mode::Typing, Some(_)) => self.start_answering(),
            (Mode::Answering | Mode::Suggesting, _) => self.stop_answering(),
            (Mode::Typing | Mode::Picking(_), _) => {}
        }
    }

    /// Whether there is a word at the cursor that the host may complete.
    fn may_complete(&self) -> bool {
        let editor = &self.editor;
        self.mode == Mode::Typing
            && (self.completing.is_some() || may_complete(editor.text(), editor.cursor()))
    }

    /// Tab on such a word: what the host proposes first, then what it proposes next.
    async fn complete(&mut self) {
        let completing = match self.completing.take() {
            Some(mut completing) => {
                completing.next();
                completing
            }
            None => {
                let (text, cursor) = (self.editor.text(), self.editor.cursor());
                let proposed = match self.room.completions(text, cursor).await {
                    Ok(answer) => Completing::read(&answer, text, cursor),
                    Err(error) => return self.complain(&format!("{error:#}")),
                };
                match proposed {
                    Some(proposed) => proposed,
                    None => return self.remark("nothing there begins like that"),
                }
            }
        };
        let (text, cursor) = completing.text();
        self.editor.replace(text, cursor);
        self.remark(&completing.words());
        if completing.is_only() {
            self.accepted.take_in(&completing);
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
            Mode::Suggesting => {
                self.editor.take();
                self.mode = Mode::Answering;
            }
            Mode::Answering | Mode::Picking(_) => self.stop_answering(),
            Mode::Typing => {}
        }
    }

    async fn choose(&mut self, chosen: Chosen) -> anyhow::Result<()> {
        match chosen {
            Chosen::Act(action) => {
                self.room.act(action)?;
            }
            Chosen::Suggest => self.mode = Mode::Suggesting,
            Chosen::Nothing => {
                self.remark("press a key in brackets; Tab types a message, Ctrl-C cancels");
            }
            Chosen::Edit(input) => match self.edit(&input).await {
                Ok(edited) => {
                    if let Some(Dialog::Confirm(confirm)) = &mut self.dialog {
                        confirm.set_edited(edited);
                    }
                }
                Err(error) => self.complain(&format!("{error:#}")),
            },
        }
        Ok(())
    }

    /// Enter was pressed on a text.
    async fn enter_text(&mut self, text: &str) -> anyhow::Result<Flow> {
        match (&self.mode, &mut self.dialog) {
            (Mode::Suggesting, Some(Dialog::Confirm(confirm))) => {
                let denial = confirm.deny(text);
                self.room.act(denial)?;
            }
            (Mode::Answering, Some(Dialog::Questions(questions))) => match questions.line(text) {
                Answered::Act(action) => {
                    self.room.act(action)?;
                }
                Answered::Next => {}
                Answered::Wrong(why) => {
                    self.editor.set(text);
                    self.complain(&why);
                }
            },
            (Mode::Picking(sessions), _) => {
                let picked = match text.trim() {
                    "" => None,
                    answer => Some(pick(sessions, answer)),
                };
                match picked {
                    None => self.stop_answering(),
                    Some(Ok(uri)) => {
                        self.stop_answering();
                        self.attempt_to_go(Wanted::Channel(uri)).await;
                    }
                    Some(Err(why)) => self.complain(&why),
                }
            }
            (Mode::Typing | Mode::Answering | Mode::Suggesting, _) => {
                return self.enter_message(text).await;
            }
        }
        Ok(Flow::GoOn)
    }

    async fn enter_message(&mut self, text: &str) -> anyhow::Result<Flow> {
        if text.trim().is_empty() {
            let works = self
                .room
                .ahead()
                .is_some_and(|chat| chat.active_turn.is_some());
            if !works {
                self.room.release_queue()?;
            }
            return Ok(Flow::GoOn);
        }
        self.editor.remember(text);
        let Some(command) = Command::parse(text) else {
            let attachments = self.accepted.go_with(text);
            if self.room.say_with(text, attachments)? == Said::Queued && self.dialog.is_some() {
                self.remark("queued: the agent waits for your answer first; Tab gives it");
            }
            return Ok(Flow::GoOn);
        };
        match command {
            Command::Quit => return Ok(Flow::Leave),
            Command::Help => self.help().await,
            Command::Sessions => match list(self.room.live()).await {
                Ok(sessions) => {
                    let lines = session_lines(&sessions, self.room.session(), now());
                    self.say(lines.into_iter().map(|line| Line::new(Style::Plain, line)));
                    self.mode = Mode::Picking(sessions);
                }
                Err(error) => self.complain(&error.to_string()),
            },
            Command::Open(answer) => match pick(&[], &answer) {
                Ok(uri) => self.attempt_to_go(Wanted::Channel(uri)).await,
                Err(_) => self.complain("/open wants a URI; /sessions lists what there is"),
            },
            Command::New => self.attempt_to_go(Wanted::New { agent: None }).await,
            Command::Fork(words) => {
                if let Err(error) = self.fork(&words).await {
                    self.complain(&format!("{error:#}"));
                }
            }
            Command::Resume => {
                if let Err(error) = self.room.resume() {
                    self.complain(&format!("{error:#}"));
                }
            }
            Command::Steer(text) => self.steer(&text)?,
        }
        Ok(Flow::GoOn)
    }

    /// Goes to another chat, or stays and says why.
    async fn attempt_to_go(&mut self, wanted: Wanted) {
        if let Err(error) = self.go_to(wanted).await {
            self.complain(&format!("{error:#}"));
        }
    }

    async fn help(&mut self) {
        let row = |name: &str, what: &str| {
            Line::new(Style::Bold, format!("  {name:20}")).then(Style::Plain, what)
        };
        let ours = HELP.iter().chain(KEYS).map(|(name, what)| row(name, what));
        self.say(ours.collect::<Vec<Line>>());
        let theirs = self.room.commands().await;
        if !theirs.is_empty() {
            self.say([Line::new(Style::Dim, "  What the host does:")]);
            let theirs = theirs.iter().map(|(name, what)| row(name, what));
            self.say(theirs.collect::<Vec<Line>>());
        }
        let rest = "  Any other line that begins with / is for the agent.";
        self.say([Line::new(Style::Dim, rest)]);
    }
}
