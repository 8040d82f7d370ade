//! `greenroom send`: one turn against a running host.
//!
//! Promises: the answer streams to standard output as it comes; everything else goes to standard error. The exit code
//! says how the turn ended.

pub(crate) mod view;
mod watch;

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use client::{Connection, Envelope, Events, Mirror};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;
use wire::ChannelUri;

use crate::exit::Exit;
use crate::screen::print;
use crate::target::{Greeted, HostOptions};
use crate::terminal::clean;
use crate::words::now;

use self::view::Ending;
use self::watch::{End, Watch};

/// How long a new session may take to show its chat.
const CHAT_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// Go on with this session; without it a new one is made
    #[arg(long, value_name = "URI", value_parser = ChannelUri::parse)]
    session: Option<ChannelUri>,
    /// Agent of the new session [default: the first one the host offers]
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    agent: Option<String>,
    /// Print one JSON object when the turn has ended, instead of text as it comes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: SendOptions) -> anyhow::Result<Exit> {
    let text = message_text(&options.text)?;
    let mut turn = match Turn::prepare(&options).await {
        Ok(turn) => turn,
        Err(error) => {
            eprintln!("greenroom: {}", clean(&format!("{error:#}")));
            return Ok(Exit::NoHost);
        }
    };
    eprintln!("session {}", clean(turn.session.as_str()));
    let report = if options.json {
        Report::Json
    } else {
        Report::Text
    };
    let exit = turn.play(&text, report).await?;
    turn.connection.close().await;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    Text,
    Json,
}

/// A turn that is about to be sent, and where.
struct Turn {
    connection: Connection,
    events: Events,
    client_id: String,
    mirror: Mirror,
    session: ChannelUri,
    chat: ChannelUri,
}

impl Turn {
    /// Makes or opens the session and opens its chat.
    async fn prepare(options: &SendOptions) -> anyhow::Result<Self> {
        let Greeted {
            connection,
            mut events,
            client_id,
            initialized,
        } = options.host.greet(&[ChannelUri::root()]).await?;
        let mut mirror = Mirror::default();
        for snapshot in initialized.snapshots {
            mirror.take_snapshot(snapshot)?;
        }
        let session = match &options.session {
            Some(session) => session.clone(),
            None => create_session(&connection, &mirror, options.agent.as_deref()).await?,
        };
        if let Some(snapshot) = connection.subscribe(&session).await? {
            mirror.take_snapshot(snapshot)?;
        }
        let waiting = default_chat(&mut mirror, &mut events, &session);
        let chat = tokio::time::timeout(CHAT_TIMEOUT, waiting).await;
        let chat =
            chat.map_err(|_| anyhow!("the session {session} shows no chat to talk in"))??;
        if let Some(snapshot) = connection.subscribe(&chat).await? {
            mirror.take_snapshot(snapshot)?;
        }
        Ok(Self {
            connection,
            events,
            client_id,
            mirror,
            session,
            chat,
        })
    }

    /// Sends the message and shows what comes of it.
    async fn play(&mut self, text: &str, report: Report) -> anyhow::Result<Exit> {
        let interrupts = signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        let turn_id = format!("turn-{}", Uuid::now_v7());
        let action = json!({
            "type": "chat/turnStarted",
            "turnId": turn_id,
            "startedAt": now().to_rfc3339(),
            "message": {"text": text, "origin": {"kind": "user"}},
        });
        let dispatched = self.connection.dispatch(&self.chat, action).await?;
        let mut watch = Watch::new(self, &turn_id, dispatched, report);
        let end = watch.until_end(interrupts).await;
        let answer = watch.finish()?;
        let ending = match end? {
            End::Turn(ending) => ending,
            End::Refused(reason) => {
                eprintln!(
                    "greenroom: the host refused the message: {}",
                    clean(&reason)
                );
                return Ok(Exit::NoHost);
            }
            End::GivenUp => return Ok(Exit::Cancelled),
        };
        if report == Report::Json {
            print(&format!("{}\n", self.result(&turn_id, &answer, &ending)))?;
        }
        Ok(tell(&ending, &self.session))
    }

    fn result(&self, turn_id: &str, answer: &str, ending: &Ending) -> Value {
        let mut result = json!({
            "session": self.session.as_str(),
            "chat": self.chat.as_str(),
            "turnId": turn_id,
            "state": match ending {
                Ending::Complete => "complete",
                Ending::Cancelled => "cancelled",
                Ending::Failed { .. } => "error",
            },
            "text": answer,
        });
        if let Ending::Failed {
            error_type,
            message,
            resumable,
        } = ending
        {
            result["error"] =
                json!({"errorType": error_type, "message": message, "resumable": resumable});
        }
        result
    }
}

/// Says on standard error how a turn that is not complete ended.
fn tell(ending: &Ending, session: &ChannelUri) -> Exit {
    match ending {
        Ending::Complete => Exit::Complete,
        Ending::Cancelled => {
            eprintln!("cancelled");
            Exit::Cancelled
        }
        Ending::Failed {
            message, resumable, ..
        } => {
            eprintln!("greenroom: the turn failed: {}", clean(message));
            eprintln!(
                "{}",
                match resumable {
                    true => format!(
                        "It can be resumed by a client that offers it; or go on with --session {session}."
                    ),
                    false => format!("It cannot be resumed; go on with --session {session}."),
                }
            );
            Exit::Failed
        }
    }
}

async fn create_session(
    connection: &Connection,
    mirror: &Mirror,
    agent: Option<&str>,
) -> anyhow::Result<ChannelUri> {
    let agents = mirror.root().map_or(&[][..], |root| root.agents.as_slice());
    let offered: Vec<&str> = agents
        .iter()
        .filter_map(|agent| agent["provider"].as_str())
        .collect();
    let provider = match agent {
        Some(agent) if !offered.contains(&agent) => {
            bail!(
                "the host offers no agent `{}`; it has: {}",
                clean(agent),
                clean(&offered.join(", "))
            )
        }
        Some(agent) => agent,
        None => offered.first().copied().context(
            "the host offers no agent; start it without --no-scripted to get the scripted one",
        )?,
    };
    let session = ChannelUri::parse(&format!("{provider}:/{}", Uuid::now_v7())) // G-27
        .with_context(|| format!("`{}` cannot name a session", clean(provider)))?;
    let params = json!({"channel": session.as_str(), "provider": provider});
    connection.request("createSession", params).await?;
    Ok(session)
}

/// The chat that messages go to; waits for one while the session is being made.
async fn default_chat(
    mirror: &mut Mirror,
    events: &mut Events,
    session: &ChannelUri,
) -> anyhow::Result<ChannelUri> {
    loop {
        let state = mirror
            .session(session.as_str())
            .context("the host sent no state of the session")?;
        if state.lifecycle == "failed" {
            let why = state
                .extra
                .get("creationError")
                .and_then(|error| error["message"].as_str());
            bail!(
                "the session could not be started: {}",
                clean(why.unwrap_or("no reason was given"))
            );
        }
        let first = || state.chats.first().map(|chat| &chat.resource);
        if let Some(chat) = state.default_chat.as_ref().or_else(first) {
            return Ok(ChannelUri::parse(chat)?);
        }
        let notification = events.next().await?;
        if notification.method == "action" {
            mirror.apply(&Envelope::from_value(notification.params)?);
        }
    }
}
