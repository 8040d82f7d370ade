//! The chat line by line: for pipes, scripts, and terminals that can do no more.
//!
//! Promises: answers and nothing else go to standard output, the rest to standard error. A line is a message, or the answer
//! to what the agent asks. At the end of the input the turn that runs is waited for; the exit code tells how the last one
//! ended.

use std::io::{IsTerminal, Stderr, Stdout};

use anyhow::Context;
use client::{Link, Update, Updates};
use serde_json::Value;
use tokio::io::{BufReader, Lines, Stdin};
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::state::{ChatState, Outcome};

use super::command::{Command, HELP, pick, session_lines};
use super::confirm::Chosen;
use super::dialog::Dialog;
use super::follow::{Follow, Place, Seen, TextKind};
use super::part::{PROMPT, message_lines, part_lines};
use super::questions::Answered;
use super::room::{Branched, Room, Wanted, list};
use super::styled::{Line, Style};
use crate::exit::Exit;
use crate::screen::Screen;
use crate::send::view;
use crate::terminal::clean_line;
use crate::words::now;

/// No line is broken here: whoever reads it may.
const WIDTH: usize = usize::MAX / 4;

/// A conversation by lines.
pub(crate) struct Plain {
    room: Room,
    updates: Updates,
    input: Lines<BufReader<Stdin>>,
    screen: Screen<Stdout, Stderr>,
    follow: Follow,
    dialog: Option<Dialog>,
    /// What was typed here last, so that it is not shown to whoever typed it.
    typed: Vec<String>,
    sessions: Vec<Value>,
    exit: Exit,
    /// Whether somebody sits there who wants to know when to type.
    prompts: Prompts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompts {
    Never,
    /// Not since something else was printed.
    Due,
    Given,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Idle,
    Working,
    /// The agent wants an answer.
    Asking,
}

enum Event {
    Line(Option<String>),
    Update(Option<Update>),
    Interrupt,
}

impl Plain {
    pub(crate) fn new(room: Room, updates: Updates, input: Lines<BufReader<Stdin>>) -> Self {
        Self {
            room,
            updates,
            input,
            screen: Screen::standard(),
            follow: Follow::default(),
            dialog: None,
            typed: Vec::new(),
            sessions: Vec::new(),
            exit: Exit::Complete,
            prompts: match std::io::stdin().is_terminal() {
                true => Prompts::Due,
                false => Prompts::Never,
            },
        }
    }

    /// Talks until the input ends or someone quits. `first` is a line that was read already.
    pub(crate) async fn run(mut self, first: Option<String>) -> anyhow::Result<Exit> {
        let mut interrupts = signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        self.look_silently();
        let remark = self.room.remark().map(str::to_owned);
        self.screen
            .note(&format!("session {}", self.room.session()))?;
        if let Some(remark) = remark {
            self.screen.note(&remark)?;
        }
        let mut next = first;
        loop {
            self.look()?;
            let turn = self.turn();
            if turn != Turn::Working
                && let Some(line) = next.take()
            {
                if self.take_line(&line).await? == Flow::Leave {
                    break;
                }
                continue;
            }
            match self.event(turn, &mut interrupts).await? {
                Event::Line(Some(line)) => {
                    next = Some(line);
                    self.prompt_is_due();
                }
                Event::Line(None) if turn == Turn::Asking => {
                    self.screen.note(&format!(
                        "the input ended, but the agent waits for an answer: give it with `greenroom chat --session {}`",
                        self.room.session()
                    ))?;
                    self.exit = Exit::Failed;
                    break;
                }
                Event::Line(None) => break,
                Event::Update(update) => self.take_updates(update)?,
                Event::Interrupt => {
                    if !self.room.cancel()? {
                        self.exit = Exit::Cancelled;
                        break;
                    }
                    // A second one does not wait for the end of the turn.
                    interrupts = signal(SignalKind::interrupt())?;
                    if self.cancelled(&mut interrupts).await? == Flow::Leave {
                        break;
                    }
                }
            }
        }
        self.screen.end_line()?;
        self.room.live().clone().close().await;
        Ok(self.exit)
    }

    fn prompt_is_due(&mut self) {
        if self.prompts == Prompts::Given {
            self.prompts = Prompts::Due;
        }
    }

    async fn event(&mut self, turn: Turn, interrupts: &mut Signal) -> anyhow::Result<Event> {
        if turn != Turn::Working && self.prompts == Prompts::Due {
            self.prompts = Prompts::Given;
            eprint!("{}", if turn == Turn::Idle { PROMPT } else { "? " });
        }
        Ok(tokio::select! {
            biased;
            update = self.updates.next() => Event::Update(update),
            line = self.input.next_line(), if turn != Turn::Working => {
                Event::Line(line.context("standard input cannot be read as text")?)
            }
            _ = interrupts.recv() => Event::Interrupt,
        })
    }

    /// Waits for the end of a turn that was cancelled.
    async fn cancelled(&mut self, interrupts: &mut Signal) -> anyhow::Result<Flow> {
        while self
            .room
            .confirmed()
            .is_some_and(|chat| chat.active_turn.is_some())
        {
            match self.event(Turn::Working, interrupts).await? {
                Event::Update(update) => self.take_updates(update)?,
                Event::Interrupt | Event::Line(_) => {
                    self.exit = Exit::Cancelled;
                    return Ok(Flow::Leave);
                }
            }
            self.look()?;
        }
        Ok(Flow::GoOn)
    }

    fn turn(&self) -> Turn {
        if self.dialog.is_some() {
            return Turn::Asking;
        }
        let pending = self
            .room
            .live()
            .read(|replica| replica.pending().next().is_some());
        let chat = self.room.ahead();
        let working = chat.as_ref().is_some_and(|chat| chat.active_turn.is_some());
        let queued = chat.is_some_and(|chat| !chat.queued_messages.is_empty());
        // A queue that was held starts nothing by itself: what is typed next goes behind it.
        match working || pending || (queued && !self.is_held()) {
            true => Turn::Working,
            false => Turn::Idle,
        }
    }

    /// After a turn that was cancelled or failed the queue waits for somebody (G-08).
    fn is_held(&self) -> bool {
        let chat = self.room.confirmed();
        let last = chat.as_ref().and_then(|chat| chat.turns.last());
        last.is_some_and(|turn| turn.outcome != Outcome::Complete)
    }

    /// What is there when the chat is opened is not printed: a script wants its own answers.
    fn look_silently(&mut self) {
        if let Some(chat) = self.room.confirmed() {
            let _ = self.follow.look(&chat, 0);
        }
    }

    fn look(&mut self) -> anyhow::Result<()> {
        let (confirmed, ahead) = self.room.confirmed_and_ahead();
        if let Some(chat) = confirmed {
            self.show(&chat)?;
        }
        let Some(chat) = ahead else {
            return Ok(());
        };
        let before = self.dialog.take();
        let was_asking = before.clone();
        self.dialog = Dialog::refreshed(before, &chat);
        let new = match (&was_asking, &self.dialog) {
            (Some(before), Some(now)) => !before.is_same(now),
            (None, now) => now.is_some(),
            (Some(_), None) => false,
        };
        if new {
            self.show_waiting(&chat)?;
            self.show_dialog()?;
        }
        Ok(())
    }

    fn show(&mut self, chat: &ChatState) -> anyhow::Result<()> {
        for seen in self.follow.look(chat, 0) {
            match seen {
                Seen::Began(message) => {
                    self.screen.end_line()?;
                    let text = message["text"].as_str().unwrap_or("");
                    match self.typed.iter().position(|typed| typed == text) {
                        Some(ours) => drop(self.typed.remove(ours)),
                        None => self.notes(&message_lines(&message, Style::Plain, WIDTH))?,
                    }
                }
                Seen::Text { kind, place, text } => {
                    let text = match kind {
                        TextKind::Markdown => view::Text::Markdown(text),
                        TextKind::Reasoning => view::Text::Reasoning(text),
                    };
                    self.screen.show(&match place {
                        Place::Begins => view::Seen::PartBegan(text),
                        Place::GoesOn => view::Seen::Text(text),
                    })?;
                }
                Seen::TextEnded => self.screen.end_line()?,
                Seen::Part(part) => self.notes(&part_lines(&part, WIDTH))?,
                Seen::Ended(outcome) => {
                    self.exit = match outcome {
                        Outcome::Complete => Exit::Complete,
                        Outcome::Cancelled => Exit::Cancelled,
                        Outcome::Error { .. } => Exit::Failed,
                    };
                    if outcome == Outcome::Cancelled {
                        self.screen.note("cancelled")?;
                    }
                }
                Seen::Resumed => self.screen.note("resumed")?,
                Seen::CutBack => self.screen.note("the conversation was cut back")?,
                Seen::LeftOut { .. } => {}
            }
        }
        Ok(())
    }

    /// What the question is about.
    fn show_waiting(&mut self, chat: &ChatState) -> anyhow::Result<()> {
        self.screen.end_line()?;
        let lines: Vec<Line> = self
            .follow
            .open_parts(chat)
            .into_iter()
            .filter(|part| !matches!(part["kind"].as_str(), Some("markdown" | "reasoning")))
            .flat_map(|part| part_lines(part, WIDTH))
            .collect();
        self.notes(&lines)
    }

    fn show_dialog(&mut self) -> anyhow::Result<()> {
        let lines = self.dialog.as_ref().map(|dialog| dialog.lines(WIDTH));
        self.notes(&lines.unwrap_or_default())
    }

    fn notes(&mut self, lines: &[Line]) -> anyhow::Result<()> {
        for line in lines {
            self.screen.note(&line.text())?;
        }
        Ok(())
    }

    /// Takes an update and all that are there: they are told together.
    fn take_updates(&mut self, first: Option<Update>) -> anyhow::Result<()> {
        self.take_update(first)?;
        while let Some(update) = self.updates.try_next() {
            self.take_update(Some(update))?;
        }
        Ok(())
    }

    fn take_update(&mut self, update: Option<Update>) -> anyhow::Result<()> {
        match update {
            Some(Update::Refused { action, reason, .. }) => {
                if !self.room.queue_refused(&action)? {
                    let reason = clean_line(&reason);
                    self.screen
                        .note(&format!("the host refused it: {reason}"))?;
                    self.exit = Exit::NoHost;
                    self.typed.clear();
                }
            }
            Some(Update::NotResent { .. }) => {
                self.screen.note(
                    "the connection was lost before the host said whether it took the last message; look before you repeat it",
                )?;
                self.exit = Exit::NoHost;
            }
            Some(Update::Gone { channel }) if channel == self.room.chat().as_str() => {
                anyhow::bail!("the chat is gone: its session was disposed of");
            }
            Some(Update::Connection(Link::Lost { why })) => {
                self.screen.note(&format!("{why}; trying again"))?;
            }
            Some(Update::Connection(Link::Back { .. })) => self.screen.note("connected again")?,
            Some(Update::Connection(Link::Over { why })) => return Err(why.into()),
            Some(_) => {}
            None => anyhow::bail!("the connection is closed"),
        }
        Ok(())
    }

    async fn take_line(&mut self, line: &str) -> anyhow::Result<Flow> {
        if self.dialog.is_some() {
            self.answer(line)?;
            return Ok(Flow::GoOn);
        }
        if line.trim().is_empty() {
            return Ok(Flow::GoOn);
        }
        match Command::parse(line) {
            Some(Command::Quit) => return Ok(Flow::Leave),
            Some(command) => {
                if let Err(error) = self.command(command).await {
                    self.screen.note(&format!("{error:#}"))?;
                    self.exit = Exit::Failed;
                }
            }
            None => {
                self.typed.push(line.to_owned());
                self.room.say(line)?;
            }
        }
        Ok(Flow::GoOn)
    }

    fn answer(&mut self, line: &str) -> anyhow::Result<()> {
        let wrong = match &mut self.dialog {
            Some(Dialog::Confirm(confirm)) => match confirm.line(line) {
                Chosen::Act(action) => {
                    self.room.act(action)?;
                    None
                }
                Chosen::Edit(_) => Some("type `e` and the whole input behind it".to_owned()),
                Chosen::Suggest => Some("type `d` and what to do instead behind it".to_owned()),
                Chosen::Nothing => Some("that is none of the choices".to_owned()),
            },
            Some(Dialog::Questions(questions)) => match questions.line(line) {
                Answered::Act(action) => {
                    self.room.act(action)?;
                    None
                }
                Answered::Next => {
                    self.show_dialog()?;
                    None
                }
                Answered::Wrong(why) => Some(why),
            },
            None => None,
        };
        if let Some(wrong) = wrong {
            self.screen.note(&wrong)?;
            self.show_dialog()?;
        }
        Ok(())
    }

    async fn command(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Help => {
                for (name, what) in HELP {
                    self.screen.note(&format!("{name:12} {what}"))?;
                }
                for (name, what) in self.room.commands().await {
                    self.screen.note(&format!("{name:12} {what}"))?;
                }
            }
            Command::Sessions => {
                self.sessions = list(self.room.live()).await?;
                for line in session_lines(&self.sessions, self.room.session(), now()) {
                    self.screen.note(&line)?;
                }
                self.screen.note("/open NUMBER goes to one")?;
            }
            Command::Open(answer) => {
                if self.sessions.is_empty() {
                    self.sessions = list(self.room.live()).await?;
                }
                let uri = pick(&self.sessions, &answer).map_err(anyhow::Error::msg)?;
                self.go_to(Wanted::Channel(uri)).await?;
            }
            Command::New => self.go_to(Wanted::New { agent: None }).await?,
            Command::Fork(words) => {
                if let Branched::There(chat) = self.room.branch(&words).await? {
                    self.go_to(Wanted::Channel(chat)).await?;
                }
            }
            Command::Resume => self.room.resume()?,
            Command::Steer(text) => self.room.steer(&text, Vec::new())?,
            Command::Quit => {}
        }
        Ok(())
    }

    async fn go_to(&mut self, wanted: Wanted) -> anyhow::Result<()> {
        let live = self.room.live().clone();
        let directory = std::env::current_dir().ok();
        let room = Room::open(live, &wanted, directory.as_deref()).await?;
        let left = std::mem::replace(&mut self.room, room);
        left.leave_for(&self.room).await;
        self.follow = Follow::default();
        self.dialog = None;
        self.look_silently();
        self.screen.note(&format!(
            "session {}, chat {}",
            self.room.session(),
            self.room.chat()
        ))?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    Leave,
}
