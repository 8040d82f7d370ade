//! `greenroom chat`: chat with an agent in a terminal, or through a pipe.
//!
//! Promises: finds the local host or starts one; the session stays when this client leaves. What agents say can never control
//! the terminal.

mod annotations;
mod argument_words;
mod attention;
mod budget;
mod change_argument;
mod change_lines;
mod command;
mod command_table;
mod complete;
mod confirm;
pub(crate) mod contents;
#[cfg(test)]
mod damaged_parts_tests;
pub(crate) mod dialog;
mod directory;
mod editor;
mod external_editor;
mod external_pager;
mod history;
mod image;
mod keys;
mod line;
mod live_area;
mod menu;
mod model_argument;
mod pager;
mod paint;
pub(crate) mod part;
mod plain;
mod popup;
pub(crate) mod prompt;
mod questions;
mod reasoning;
pub(crate) mod render;
mod session_list;
mod session_menu;
pub(crate) mod sign_in;
mod status;
mod terminal_traits;
pub(crate) mod tool;
mod transcript;
mod tty;
mod tui;
mod usage;
mod wrap;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use client::chat::{ChatError, OpenChat, OpenOptions};
use client::{Live, Updates};
use host::acp_agents::Preset;
use wire::ChannelUri;

use self::attention::Signal;
use self::history::HistoryFile;
use self::plain::PlainChat;
use self::transcript::HISTORY_MAX;
pub(crate) use self::tty::Tty;
use self::tui::{TerminalChat, TerminalOptions};
use crate::clock::now;
use crate::exit::Exit;
use crate::format::format_age;
use crate::input_lines::{InputLines, LineSource};
use crate::models::key_alone;
use crate::models::local_servers::{self, Hint};
use crate::models::on_host::NATIVE;
use crate::restart::note_other_version;
use crate::session_choice::SessionChoice;
use crate::start_host;
use crate::target::HostOptions;
use crate::terminal::escape;

/// Chat with an agent; this is also what `greenroom` alone does
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  greenroom chat                        a new session with the first agent
  greenroom chat --model http://localhost:11434/v1#qwen3
  greenroom chat --agent claude         an agent that is installed here; `greenroom agents` lists them
  greenroom chat --worktree             in a git worktree and a branch of its own
  greenroom chat --continue             continue the latest session of this directory
  greenroom chat --resume               choose a session from a list
  greenroom chat --session scripted:/0190...
  printf 'hello\\nhelp\\n' | greenroom chat --plain

Where no host runs on this machine, one is started in the background and stays; its log is host.log in the data \
directory. While the agent works, Enter queues what you type and Ctrl-S steers; Escape interrupts, Ctrl-C twice leaves. \
When the agent asks, a digit or an arrow chooses and Enter confirms; whatever else you type is a message. /help shows \
the rest.

With --plain, or where standard input or output is not a terminal, each line is one message. When the agent asks, a line \
decides only if it is exactly a digit or a word of the prompt (`1` or `Approve`); after `3 Deny and say why`, `4 Edit` or \
`1 Answer` the next line is that text; any other line is refused and decides nothing. On a terminal a line counts only for \
the question that stood there when it was typed. Answers of the agent go to standard \
output, everything else to standard error. Exit codes: 0 the last turn is complete, 1 it \
failed or there is no session to continue, 2 wrong usage, 3 cancelled, 4 no host or refused.")]
pub(crate) struct ChatOptions {
    #[command(flatten)]
    choice: SessionChoice,
    /// Choose a session from a list first
    #[arg(long, short = 'r', conflicts_with_all = ["latest", "session", "plain", "worktree"])]
    resume: bool,
    /// Line by line, without drawing
    #[arg(long)]
    plain: bool,
    /// Neither ring the bell nor send a notification when you are needed; GREENROOM_NOTIFY=off|bell|desktop says more
    #[arg(long)]
    no_notify: bool,
    #[command(flatten)]
    host: HostOptions,
}

impl ChatOptions {
    /// `hint` is shown when it is known.
    fn terminal_options(
        &self,
        hint: Option<Hint>,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<TerminalOptions> {
        let variable = |name: &str| std::env::var_os(name);
        let terminal = [variable("TERM_PROGRAM"), variable("TERM")];
        let signal = Signal::choose(
            variable("GREENROOM_NOTIFY").as_deref(),
            &terminal.each_ref().map(Option::as_deref),
        );
        let data = self.host.data_directory()?;
        Ok(TerminalOptions {
            history: HistoryFile::in_directory(&data),
            hint,
            directory,
            begins_with_sessions: self.resume,
            signal: if self.no_notify { Signal::Off } else { signal },
            // Another machine's files are not ours.
            data: Some(data).filter(|_| self.host.named_host().is_none()),
            host: self.host.clone(),
        })
    }

    /// Whether there is a terminal to draw on, and that is wanted.
    fn draws(&self) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !self.plain && !dumb && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }
}

pub(crate) async fn run(options: ChatOptions) -> anyhow::Result<Exit> {
    let directory = options.choice.directory(&options.host)?;
    if options.draws() {
        return match open(&options, directory.clone()).await {
            Ok((chat, hint)) => {
                let shown = options.terminal_options(hint, directory)?;
                TerminalChat::open(chat, shown)?.run().await
            }
            Err(error) => Ok(report(&error)),
        };
    }
    let mut lines = InputLines::standard();
    // Nothing is started or created where there is no input.
    if lines.source() == LineSource::Pipe && !lines.has_any().await {
        eprintln!("greenroom: No input. `greenroom --help` lists the commands");
        return Ok(Exit::Complete);
    }
    match open(&options, directory.clone()).await {
        Ok((chat, hint)) => {
            if let Some(hint) = hint {
                for line in hint.await {
                    eprintln!("{line}");
                }
            }
            PlainChat::new(chat, lines, directory).run().await
        }
        Err(error) => Ok(report(&error)),
    }
}

fn report(error: &anyhow::Error) -> Exit {
    eprintln!("greenroom: {}", escape(&explain_no_session(error)));
    Exit::of_opening(error)
}

/// Why a chat could not be opened; where there was no session to continue, also what can be done instead.
pub(crate) fn explain_no_session(error: &anyhow::Error) -> String {
    let advice = match error.downcast_ref::<ChatError>() {
        Some(ChatError::NoSessionIn { newest: Some(newest), .. }) => {
            let directory = newest.directory();
            let place =
                directory.map_or(String::new(), |directory| format!(" in {}", directory.display()));
            format!(
                ".\nThe newest elsewhere is `{}`{place}, {}: greenroom chat --session {}\n`greenroom chat` starts a new one here",
                newest.title(),
                format_age(newest.modified_at(), now()),
                newest.resource(),
            )
        }
        Some(ChatError::NoSessionIn { newest: None, .. } | ChatError::NoSessionYet) => {
            ": `greenroom chat` starts one".to_owned()
        }
        Some(ChatError::UnknownAgent { agent, .. }) => explain_missing_agent(agent),
        _ => String::new(),
    };
    format!("{error:#}{advice}")
}

/// What to do about an agent that the host does not offer.
fn explain_missing_agent(id: &str) -> String {
    let Some(preset) = Preset::find(id) else {
        return ". `greenroom agents` lists those that are known".to_owned();
    };
    match preset.to_config().find_program() {
        Some(_) => ". It is installed here: `greenroom restart` lets the host look again, unless `agents_auto = false`".to_owned(),
        None => format!(". {}", preset.install.trim_end_matches('.')),
    }
}

async fn open(
    options: &ChatOptions,
    directory: Option<PathBuf>,
) -> anyhow::Result<(OpenChat, Option<Hint>)> {
    let (live, updates) = connect(&options.host).await?;
    if let Some(note) = note_other_version(&options.host) {
        eprintln!("{}", escape(&note));
    }
    let model = options.choice.find_model(&live).await?;
    // Only where there is none at all is anything looked for, and nobody waits for it.
    let is_first_look = options.choice.is_new() && options.host.named_host().is_none();
    let hint = (is_first_look && !live.has_real_agent()).then(local_servers::hint).flatten();
    let note = match (is_first_look, model.is_some()) {
        (true, false) => match key_alone::note(&live) {
            Some(note) => Some(note),
            None => key_alone::note_missing(&live, &options.host.data_directory()?),
        },
        _ => None,
    };
    if let Some(note) = note {
        eprintln!("{note}");
    }
    let open_options =
        OpenOptions { worktree: options.choice.worktree(), ..open_options(directory.clone()) };
    let selector = options.choice.selector(&live, directory).await?;
    let opened = OpenChat::open(live, updates, &selector, &open_options).await;
    let mut chat = match (opened, hint) {
        (Ok(chat), hint) if model.is_none() => return Ok((chat, hint)),
        (Ok(chat), _) => chat,
        (Err(error @ ChatError::NoAgent), Some(hint)) => {
            let lines = hint.await.join("\n");
            return Err(anyhow!(error).context(lines));
        }
        (Err(error), _) => return Err(error.into()),
    };
    let session = chat.session_state();
    let provider = session.map(|session| session.provider.clone()).unwrap_or_default();
    ensure!(
        provider == NATIVE,
        "this session belongs to the agent `{provider}`, which takes no --model; leave --continue or --session out"
    );
    chat.set_model(model);
    Ok((chat, None))
}

/// How every chat is opened: its agent works where this program was started.
fn open_options(directory: Option<PathBuf>) -> OpenOptions {
    OpenOptions { directory, history_turns: HISTORY_MAX, ..OpenOptions::default() }
}

/// Connects to the host; starts the local one if it is not there.
pub(crate) async fn connect(host: &HostOptions) -> anyhow::Result<(Live, Updates)> {
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
