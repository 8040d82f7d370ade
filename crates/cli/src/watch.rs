//! `greenroom watch`: follows one channel, whatever it is, until it is gone or stopped.
//!
//! Promises: the state first, then every action after it, each once and in order, over losses of the connection too. With
//! `--json` every line is one JSON object.

use anyhow::Context;
use client::{ConnectionEvent, Envelope, Live, Resync, Update, Updates};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use wire::ChannelUri;

use crate::exit::Exit;
use crate::format::{format_count, format_status};
use crate::output::{print, print_json};
use crate::session_name::SessionName;
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// Values longer than this are cut, unless as JSON.
const VALUE_CHARS_MAX: usize = 60;

/// Follow a channel: print everything that happens on it, live
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom watch ahp-root://                     sessions that come and go
  greenroom watch scripted:/0190...               a session
  greenroom watch --json ahp-chat://default/...   a chat, as JSON Lines

With --json the first line is {\"type\":\"state\"}, then come {\"type\":\"action\"}, {\"type\":\"notification\"} and
{\"type\":\"connection\"}; a later \"state\" replaces what came before. Ctrl-C stops. Exit codes: 0 stopped or the channel \
is gone, 4 no host or no such channel.")]
pub(crate) struct WatchOptions {
    /// The channel: its URI, or a part of a session's id or its title; `greenroom sessions` lists sessions, a session's state names its chats
    #[arg(value_name = "CHANNEL")]
    name: SessionName,
    /// Print JSON Lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: WatchOptions) -> anyhow::Result<Exit> {
    let (live, updates) = options.host.live(&[]).await?;
    let channel = options.name.find(&live).await?;
    live.subscribe(&channel).await?;
    let mut watch = WatchPrinter {
        live,
        channel,
        format: if options.json { WatchFormat::Json } else { WatchFormat::Text },
        printed: 0,
    };
    match watch.follow(updates).await {
        // Whoever closed the pipe has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Complete),
        ended => {
            watch.live.close().await;
            ended
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchFormat {
    Text,
    Json,
}

struct WatchPrinter {
    live: Live,
    channel: ChannelUri,
    format: WatchFormat,
    /// The last seq that was printed.
    printed: u64,
}

impl WatchPrinter {
    async fn follow(&mut self, mut updates: Updates) -> anyhow::Result<Exit> {
        let mut interrupt = signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
        self.print_state()?;
        loop {
            let update = tokio::select! {
                update = updates.next() => update,
                _ = interrupt.recv() => return Ok(Exit::Complete),
                _ = terminate.recv() => return Ok(Exit::Complete),
            };
            let Some(update) = update else { return Ok(Exit::NoHost) };
            match update {
                Update::Changed { channel, envelope } => {
                    // The state that was printed may be ahead of its updates.
                    if channel == self.channel.as_str() && envelope.server_seq > self.printed {
                        self.printed = envelope.server_seq;
                        self.print(&action_json(&envelope), &format_action(&envelope))?;
                    }
                }
                Update::Reset { channel } if channel == self.channel.as_str() => {
                    self.print_state()?;
                }
                Update::Gone { channel } if channel == self.channel.as_str() => {
                    let json = json!({"type": "gone", "channel": channel});
                    self.print(&json, "the channel is gone")?;
                    return Ok(Exit::Complete);
                }
                Update::Notification(notification) => {
                    let params = &notification.params;
                    if params["channel"] == self.channel.as_str() {
                        let text = format!("{} {}", notification.method, format_fields(params));
                        let json = json!({
                            "type": "notification",
                            "method": notification.method,
                            "params": params,
                        });
                        self.print(&json, &text)?;
                    }
                }
                Update::Connection(event) => {
                    if let Some((state, text)) = describe_connection(&event) {
                        let json = json!({"type": "connection", "state": state, "why": text});
                        self.print(&json, &text)?;
                    }
                    if let ConnectionEvent::Closed { why } = event {
                        return Err(why.into());
                    }
                }
                Update::Reset { .. }
                | Update::Gone { .. }
                | Update::Refused { .. }
                | Update::NotResent { .. } => {}
            }
        }
    }

    fn print_state(&mut self) -> anyhow::Result<()> {
        let channel = self.channel.as_str();
        let (state, text, seen) = self.live.read(|replica| {
            let (state, text) = if let Some(chat) = replica.confirmed_chat(channel) {
                let turns = chat.turns.len() + usize::from(chat.active_turn.is_some());
                let more = chat.turns_next_cursor.as_ref().map_or("", |_| " or more");
                let turns = format_count(turns, "turn");
                let text = format!("{turns}{more}, {}", format_status(chat.status));
                (chat.value(), text)
            } else if let Some(session) = replica.confirmed_session(channel) {
                let chats: Vec<&str> =
                    session.chats.iter().map(|chat| chat.resource.as_str()).collect();
                let text = format!(
                    "{} of {}; chats: {}",
                    session.lifecycle,
                    session.provider,
                    chats.join(" ")
                );
                (wire::action::to_value(&**session), text)
            } else if let Some(root) = replica.confirmed_root().filter(|_| self.channel.is_root()) {
                let agents: Vec<&str> =
                    root.agents.iter().filter_map(|agent| agent["provider"].as_str()).collect();
                (wire::action::to_value(&**root), format!("agents: {}", agents.join(" ")))
            } else if let Some(plain) = replica.plain(channel) {
                let title = plain.terminal().map(|terminal| terminal.title.clone());
                (
                    wire::action::to_value(plain),
                    title.unwrap_or_else(|| "its state; --json shows it".to_owned()),
                )
            } else {
                (Value::Null, "no state, only actions".to_owned())
            };
            (state, text, replica.last_seen())
        });
        self.printed = seen;
        let json = json!({"type": "state", "channel": channel, "serverSeq": seen, "state": state});
        self.print(&json, &format!("{channel}: {text}"))
    }

    fn print(&self, json: &Value, text: &str) -> anyhow::Result<()> {
        match self.format {
            WatchFormat::Json => print_json(json)?,
            WatchFormat::Text => print(&format!("{}\n", escape_line(text)))?,
        }
        Ok(())
    }
}

/// The envelope as it came over the wire.
fn action_json(envelope: &Envelope) -> Value {
    let mut json = json!({
        "type": "action",
        "channel": envelope.channel,
        "serverSeq": envelope.server_seq,
        "action": envelope.action.body,
    });
    if let Some(origin) = &envelope.origin {
        json["origin"] = wire::action::to_value(origin);
    }
    json
}

fn format_action(envelope: &Envelope) -> String {
    let fields = Value::Object(envelope.action.body.clone());
    let by = match &envelope.origin {
        Some(origin) => format!(" (by {})", escape_line(&origin.client_id)),
        None => String::new(),
    };
    format!(
        "{:>6} {}{by} {}",
        envelope.server_seq,
        escape_line(envelope.action.name()),
        format_fields(&fields)
    )
}

/// The fields of an object on one line, long values cut.
fn format_fields(fields: &Value) -> String {
    let fields = fields.as_object().into_iter().flatten();
    let known = ["type", "channel", "turnId", "startedAt"]; // or of no interest to people
    let other_fields =
        fields.filter(|(name, _)| !known.contains(&name.as_str())).map(|(name, value)| {
            let value = match value {
                Value::String(text) => format!("{text:?}"),
                other => other.to_string(),
            };
            let mut short: String = value.chars().take(VALUE_CHARS_MAX).collect();
            if short.len() < value.len() {
                short.push('…');
            }
            format!("{name}={short}")
        });
    escape_line(&other_fields.collect::<Vec<_>>().join(" "))
}

/// Changes of the connection; single attempts are not mentioned.
fn describe_connection(event: &ConnectionEvent) -> Option<(&'static str, String)> {
    match event {
        ConnectionEvent::Lost { why } => Some(("lost", format!("{why}; trying again"))),
        ConnectionEvent::Retrying { .. } => None,
        ConnectionEvent::Restored { how } => {
            let text = match how {
                Resync::Replay => "connected again: what was missed follows",
                Resync::Snapshot | Resync::Reinitialized => "connected again: the state follows",
            };
            Some(("back", text.to_owned()))
        }
        ConnectionEvent::Closed { why } => Some(("over", why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_printed_as_json_and_as_text() {
        let envelope = Envelope::from_value(json!({
            "channel": "ahp-chat:/c",
            "action": {"type": "chat/delta", "content": "a\u{1b}[2Jb".to_owned() + &"x".repeat(90), "n": 1},
            "serverSeq": 7,
            "origin": {"clientId": "ann", "clientSeq": 3},
        }))
        .unwrap();
        let json = action_json(&envelope);
        assert_eq!(json["serverSeq"], 7);
        assert_eq!(json["origin"], json!({"clientId": "ann", "clientSeq": 3}));
        assert_eq!(json["action"]["n"], 1);
        let text = format_action(&envelope);
        assert!(text.starts_with("     7 chat/delta (by ann) content=\"a"), "{text}");
        assert!(text.ends_with("… n=1") && !text.contains('\u{1b}'), "{text}");
    }
}
