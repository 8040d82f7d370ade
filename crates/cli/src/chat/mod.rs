//! `greenroom chat`: chat with an agent in a terminal, or through a pipe.
//!
//! Promises: finds the local host or starts one; the session stays when this client leaves. What agents say can never control
//! the terminal.

mod command;
mod complete;
mod confirm;
mod dialog;
mod editor;
mod external_editor;
mod history;
mod image;
mod keys;
mod line;
mod live_area;
mod paint;
mod part;
mod plain;
mod prompt;
mod questions;
mod tool;
mod transcript;
mod tty;
mod tui;
mod wrap;

use std::io::IsTerminal;

use anyhow::{Context, anyhow, ensure};
use client::chat::{ChatError, ChatSelector, OpenChat, OpenOptions};
use client::{Live, Updates};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinHandle;
use wire::ChannelUri;

use self::history::HistoryFile;
use self::plain::PlainChat;
use self::transcript::HISTORY_MAX;
use self::tui::TerminalChat;
use crate::exit::Exit;
use crate::models::local_servers;
use crate::models::on_host::{ModelChoice, NATIVE, find_or_add, model_ids};
use crate::restart::note_other_version;
use crate::start_host;
use crate::target::HostOptions;
use crate::terminal::escape;

/// Chat with an agent; this is also what `greenroom` alone does
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  greenroom chat                        a new session with the first agent
  greenroom chat --model http://localhost:11434/v1#qwen3
  greenroom chat --continue             continue the latest session
  greenroom chat --session scripted:/0190...
  printf 'hello\\nhelp\\n' | greenroom chat --plain

Where no host runs on this machine, one is started in the background and stays; its log is host.log in the data \
directory. While the agent works, Enter queues what you type and Ctrl-S steers; Escape interrupts, Ctrl-C twice leaves. \
When the agent asks, a digit or an arrow chooses and Enter confirms; whatever else you type is a message. /help shows \
the rest.

With --plain, or where standard input or output is no terminal, each line is one message. When the agent asks, a line \
decides only if it is exactly a digit or a word of the prompt (`1` or `Approve`); after `3 Deny and say why`, `4 Edit` or \
`1 Answer` the next line is that text; any other line is refused and decides nothing. Answers of the agent go to standard \
output, everything else to standard error. Exit codes: 0 the last turn is complete, 1 it \
failed, 2 wrong usage, 3 cancelled, 4 no host or refused.")]
pub(crate) struct ChatOptions {
    /// Continue this session, or one chat of it; without it a new session is created
    #[arg(long, value_name = "URI", value_parser = ChannelUri::parse)]
    session: Option<ChannelUri>,
    /// Continue the session that was used last
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["session", "agent"])]
    latest: bool,
    /// Agent of the new session [default: the first one the host offers]
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    agent: Option<String>,
    /// Talk to this model: the id of one that the host has, or [WIRE+]BASE_URL#MODEL of any server, which the host then
    /// has until it stops; WIRE is chat (the default), anthropic, responses or gemini
    #[arg(long, value_name = "ID|URL#MODEL", conflicts_with = "agent")]
    model: Option<ModelChoice>,
    /// Line by line, without drawing
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    host: HostOptions,
}

impl ChatOptions {
    fn selector(&self) -> ChatSelector {
        match (&self.session, self.latest) {
            (Some(uri), _) => ChatSelector::Channel(uri.clone()),
            (None, true) => ChatSelector::LatestSession,
            (None, false) => ChatSelector::NewSession {
                agent: match &self.model {
                    Some(_) => Some(NATIVE.to_owned()),
                    None => self.agent.clone(),
                },
            },
        }
    }

    /// Whether there is a terminal to draw on, and that is wanted.
    fn draws(&self) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !self.plain && !dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }
}

pub(crate) async fn run(options: ChatOptions) -> anyhow::Result<Exit> {
    if options.draws() {
        return match open(&options).await {
            Ok((chat, hint)) => {
                let history = HistoryFile::in_directory(&options.host.data_directory()?);
                TerminalChat::open(chat, history, hint)?.run().await
            }
            Err(error) => Ok(report(&error)),
        };
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut first = None;
    if !std::io::stdin().is_terminal() {
        // Nothing is started or created where there is no input.
        first = lines
            .next_line()
            .await
            .context("standard input cannot be read as text")?;
        if first.is_none() {
            eprintln!("greenroom: No input. `greenroom --help` lists the commands");
            return Ok(Exit::Complete);
        }
    }
    match open(&options).await {
        Ok((chat, hint)) => {
            if let Some(hint) = hint {
                for line in hint.await? {
                    eprintln!("{line}");
                }
            }
            PlainChat::new(chat, lines).run(first).await
        }
        Err(error) => Ok(report(&error)),
    }
}

fn report(error: &anyhow::Error) -> Exit {
    eprintln!("greenroom: {}", escape(&format!("{error:#}")));
    Exit::NoHost
}

/// Lines for somebody who has no model yet, when they are known.
type Hint = JoinHandle<Vec<String>>;

async fn open(options: &ChatOptions) -> anyhow::Result<(OpenChat, Option<Hint>)> {
    let (live, updates) = connect(&options.host).await?;
    if let Some(note) = note_other_version(&options.host) {
        eprintln!("{}", escape(&note));
    }
    let mut model = None;
    if let Some(choice) = &options.model {
        let found = find_or_add(&live, choice).await?;
        if let Some(note) = found.note {
            eprintln!("{note}");
        }
        model = Some(found.id);
    }
    // Only where there is none at all is anything looked for, and nobody waits for it.
    let is_new = matches!(options.selector(), ChatSelector::NewSession { agent: None });
    let is_first_look = is_new && options.host.named_host().is_none();
    let hint =
        (is_first_look && model_ids(&live).is_empty()).then(|| tokio::spawn(local_servers::hint()));
    let mut open_options = open_options();
    if options.host.named_host().is_some() {
        // Another machine's directories are not ours.
        open_options.directory = None;
    }
    let opened = OpenChat::open(live, updates, &options.selector(), &open_options).await;
    let mut chat = match (opened, hint) {
        (Ok(chat), hint) if model.is_none() => return Ok((chat, hint)),
        (Ok(chat), _) => chat,
        (Err(error @ ChatError::NoAgent), Some(hint)) => {
            let lines = hint.await?.join("\n");
            return Err(anyhow!(error).context(lines));
        }
        (Err(error), _) => return Err(error.into()),
    };
    let session = chat.session_state();
    let provider = session
        .map(|session| session.provider.clone())
        .unwrap_or_default();
    ensure!(
        provider == NATIVE,
        "this session belongs to the agent `{provider}`, which takes no --model; leave --continue or --session out"
    );
    chat.set_model(model);
    Ok((chat, None))
}

/// How every chat is opened: its agent works where this program does.
fn open_options() -> OpenOptions {
    OpenOptions {
        directory: std::env::current_dir().ok(),
        history_turns: HISTORY_MAX,
    }
}

/// Connects to the host; starts the local one if it is not there.
async fn connect(host: &HostOptions) -> anyhow::Result<(Live, Updates)> {
    let root = [ChannelUri::root()];
    match host.live(&root).await {
        Err(error) if host.named_host().is_none() && start_host::is_host_missing(&error) => {
            let started = start_host::start_host(&host.data_directory()?).await?;
            eprintln!("{started}");
            host.live(&root).await
        }
        connected => connected,
    }
}
