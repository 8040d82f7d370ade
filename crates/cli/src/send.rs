//! `greenroom send`: one turn against a running host.
//!
//! Promises: the answer streams to standard output as it comes; everything else goes to standard error. The exit code
//! says how the turn ended. Ctrl-C cancels the turn and waits for its end; only a second one, later, stops waiting.

use std::io::{Read, Stderr, Stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use client::chat::{
    ChatError, ChatEvent, ChatSelector, OpenChat, OpenOptions, TextKind, TurnEvent, TurnFollower,
};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::state::Outcome;
use wire::{ChannelUri, Object};

use crate::exit::Exit;
use crate::models::on_host::{ModelChoice, NATIVE, find_or_add};
use crate::output::{TurnOutput, print_json};
use crate::target::HostOptions;
use crate::terminal::{escape, escape_line};

/// Some programs send an interrupt twice at once; that is still one wish.
const SAME_INTERRUPT: Duration = Duration::from_millis(500);

/// Send one message and show the answer as it comes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom send hello
  greenroom send --session scripted:/0190... 'and then?'
  git diff | greenroom send -

Ctrl-C cancels the turn. Exit codes: 0 complete, 1 the turn failed, 2 wrong usage, 3 cancelled, 4 no host or refused.")]
pub(crate) struct SendOptions {
    /// The message; `-` reads it from standard input
    text: String,
    /// Continue this session; without it a new one is created
    #[arg(long, value_name = "URI", value_parser = ChannelUri::parse)]
    session: Option<ChannelUri>,
    /// Agent of the new session [default: the first one the host offers]
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    agent: Option<String>,
    /// Ask this model: the id of one that the host has, or BASE_URL#MODEL, which the host then has until it stops
    #[arg(long, value_name = "ID|URL#MODEL", conflicts_with = "agent")]
    model: Option<ModelChoice>,
    /// Print one JSON object when the turn has ended, instead of text as it comes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: SendOptions) -> anyhow::Result<Exit> {
    let text = message_text(&options.text)?;
    let chat = match open(&options).await {
        Ok(chat) => chat,
        Err(error) => {
            eprintln!("greenroom: {}", escape(&format!("{error:#}")));
            return Ok(Exit::NoHost);
        }
    };
    eprintln!("session {}", escape_line(chat.session().as_str()));
    let format = if options.json {
        SendFormat::Json
    } else {
        SendFormat::Text
    };
    let mut turn = SentTurn::start(chat, &text, format)?;
    let end = turn.run_to_end().await;
    turn.output.end_line()?;
    let exit = turn.report(end?)?;
    turn.chat.close().await;
    Ok(exit)
}

fn message_text(argument: &str) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("standard input cannot be read as text")?;
    Ok(text)
}

async fn open(options: &SendOptions) -> anyhow::Result<OpenChat> {
    let (live, updates) = options.host.live(&[ChannelUri::root()]).await?;
    let mut model = None;
    if let Some(choice) = &options.model {
        let found = find_or_add(&live, choice).await?;
        if let Some(note) = found.note {
            eprintln!("{note}");
        }
        model = Some(found.id);
    }
    let selector = match &options.session {
        Some(session) => ChatSelector::Channel(session.clone()),
        None => ChatSelector::NewSession {
            agent: match &model {
                Some(_) => Some(NATIVE.to_owned()),
                None => options.agent.clone(),
            },
        },
    };
    let mut chat = OpenChat::open(live, updates, &selector, &OpenOptions::default()).await?;
    if model.is_some() {
        chat.set_model(model);
    }
    Ok(chat)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendFormat {
    Text,
    Json,
}

/// How following the turn ended.
enum TurnEnd {
    Turn(Outcome),
    /// The host did not take the message.
    Refused(String),
    /// The user did not want to wait for the end of a cancelled turn.
    NotAwaited,
}

/// The turn that was sent.
struct SentTurn {
    chat: OpenChat,
    turn_id: String,
    follower: TurnFollower,
    format: SendFormat,
    output: TurnOutput<Stdout, Stderr>,
    /// Whether an event of the follower is about this turn.
    is_followed: bool,
    answer: String,
    /// The part that says why the turn failed.
    error: Option<Object>,
    cancelled: Option<Instant>,
    /// What the session waited for at the last look.
    input_needed: Vec<String>,
}

impl SentTurn {
    fn start(mut chat: OpenChat, text: &str, format: SendFormat) -> anyhow::Result<Self> {
        let mut follower = TurnFollower::without_waiting_for_calls();
        if let Some(state) = chat.confirmed() {
            follower.skip(&state);
        }
        Ok(Self {
            turn_id: chat.start_turn(text)?,
            input_needed: chat.input_needed_ids(),
            chat,
            follower,
            format,
            output: TurnOutput::standard(),
            is_followed: false,
            answer: String::new(),
            error: None,
            cancelled: None,
        })
    }

    async fn run_to_end(&mut self) -> anyhow::Result<TurnEnd> {
        let mut interrupts: Signal =
            signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        loop {
            tokio::select! {
                event = self.chat.next() => {
                    let event = event.map_err(|error| self.explain(error))?;
                    if let Some(end) = self.take_event(event)? {
                        return Ok(end);
                    }
                }
                _ = interrupts.recv() => match self.cancelled {
                    Some(at) if at.elapsed() > SAME_INTERRUPT => return Ok(TurnEnd::NotAwaited),
                    Some(_) => {}
                    // The end of the turn comes as an event of its own; until then we go on listening.
                    None => {
                        self.cancelled = Some(Instant::now());
                        self.chat.cancel()?;
                    }
                },
            }
        }
    }

    fn take_event(&mut self, event: ChatEvent) -> anyhow::Result<Option<TurnEnd>> {
        match event {
            ChatEvent::Refused { what, reason } => {
                let is_ours = what.turn_id.as_ref() == Some(&self.turn_id);
                return Ok(is_ours.then_some(TurnEnd::Refused(reason)));
            }
            ChatEvent::ConnectionLost { why } => return Err(self.explain(why.into())),
            ChatEvent::Changed
            | ChatEvent::NotResent { .. }
            | ChatEvent::ReconnectFailed { .. }
            | ChatEvent::Reconnected => {}
        }
        self.note_input_needed()?;
        let Some(state) = self.chat.confirmed() else {
            return Ok(None); // it is held as long as there is a connection
        };
        let events = self.follower.follow(&state, 0);
        for event in events {
            if let Some(outcome) = self.show(event)? {
                return Ok(Some(TurnEnd::Turn(outcome)));
            }
        }
        Ok(None)
    }

    /// Says once that another client has to answer.
    fn note_input_needed(&mut self) -> std::io::Result<()> {
        let needed = self.chat.input_needed_ids();
        let is_new = needed.iter().any(|id| !self.input_needed.contains(id));
        self.input_needed = needed;
        if is_new {
            self.output
                .note("The agent is waiting. Answer in another client, or press Ctrl-C")?;
        }
        Ok(())
    }

    /// Shows what is new of the turn; how it ended, if it did.
    fn show(&mut self, event: TurnEvent) -> std::io::Result<Option<Outcome>> {
        if let TurnEvent::Started { turn_id, .. } = &event {
            self.is_followed = *turn_id == self.turn_id;
        }
        if !self.is_followed {
            return Ok(None);
        }
        match event {
            TurnEvent::Ended { outcome, .. } => return Ok(Some(outcome)),
            TurnEvent::Text {
                kind,
                position,
                text,
            } => {
                if kind == TextKind::Markdown {
                    self.answer.push_str(&text);
                }
                if self.format == SendFormat::Text {
                    self.output.text(kind, position, &text)?;
                }
            }
            TurnEvent::Part(part) => match part["kind"].as_str() {
                Some("error") => self.error = Some(part),
                Some("systemNotification") if self.format == SendFormat::Text => {
                    let content = &part["content"];
                    let text = content.as_str().or_else(|| content["markdown"].as_str());
                    self.output.note(text.unwrap_or(""))?;
                }
                // Only the answer is printed; calls and questions are for clients that can answer them.
                _ => {}
            },
            TurnEvent::Started { .. }
            | TurnEvent::TextEnded
            | TurnEvent::Resumed
            | TurnEvent::Rewound
            | TurnEvent::Omitted { .. } => {}
        }
        Ok(None)
    }

    fn explain(&self, error: ChatError) -> anyhow::Error {
        match error {
            ChatError::Gone => anyhow!("the session was disposed of while the turn ran"),
            ChatError::Client(error) => anyhow::Error::new(error).context(format!(
                "the turn may still be running; `greenroom sessions` shows it as {}",
                self.chat.session()
            )),
            error => error.into(),
        }
    }

    /// Says how the turn ended: on standard error, and as JSON if that is wanted.
    fn report(&self, end: TurnEnd) -> anyhow::Result<Exit> {
        let outcome = match end {
            TurnEnd::Turn(outcome) => outcome,
            TurnEnd::Refused(reason) => {
                let reason = escape(&reason);
                eprintln!("greenroom: the host refused the message: {reason}");
                return Ok(Exit::NoHost);
            }
            TurnEnd::NotAwaited => return Ok(Exit::Cancelled),
        };
        if self.format == SendFormat::Json {
            print_json(&self.to_json(outcome))?;
        }
        Ok(match outcome {
            Outcome::Complete => Exit::Complete,
            Outcome::Cancelled => {
                eprintln!("cancelled");
                Exit::Cancelled
            }
            Outcome::Error { resumable } => {
                let session = escape_line(self.chat.session().as_str());
                eprintln!(
                    "greenroom: the turn failed: {}",
                    escape(self.error_field("message"))
                );
                eprintln!(
                    "{}",
                    match resumable {
                        true => format!(
                            "It can be resumed by a client that offers it; or continue with --session {session}."
                        ),
                        false =>
                            format!("It cannot be resumed; continue with --session {session}."),
                    }
                );
                Exit::Failed
            }
        })
    }

    fn error_field(&self, field: &str) -> &str {
        let error = self.error.as_ref().and_then(|part| part.get("error"));
        error.map_or("unknown", |error| {
            error[field].as_str().unwrap_or("unknown")
        })
    }

    fn to_json(&self, outcome: Outcome) -> Value {
        let mut result = json!({
            "session": self.chat.session().as_str(),
            "chat": self.chat.chat().as_str(),
            "turnId": self.turn_id,
            "state": outcome.wire_name(),
            "text": self.answer,
        });
        if let Outcome::Error { resumable } = outcome {
            result["error"] = json!({
                "errorType": self.error_field("errorType"),
                "message": self.error_field("message"),
                "resumable": resumable,
            });
        }
        result
    }
}
