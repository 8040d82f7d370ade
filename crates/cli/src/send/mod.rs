//! `greenroom send`: one turn against the host that runs, or against one that is started for it if there is a model to ask.
//!
//! Promises: the answer streams to standard output as it comes; everything else goes to standard error. The exit code
//! says how the turn ended. Ctrl-C cancels the turn and waits for its end; only a second one, later, stops waiting. Where
//! nobody can be asked, nothing is consented to (G-66).

mod prompt;
mod report;
mod turn;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use client::chat::{MessageAttachment, OpenChat, OpenOptions, SessionBudget};
use wire::ChannelUri;

use crate::chat::{connect, explain_no_session};
use crate::dollars::parse_limit;
use crate::exit::Exit;
use crate::models::key_alone;
use crate::serve::settings;
use crate::session_choice::SessionChoice;
use crate::target::HostOptions;
use crate::terminal::{escape, escape_line};

use self::report::SendFormat;
use self::turn::{Consent, SentTurn};

/// What is read of a file that goes along. A host takes a message of 32 MiB, and encoding makes a file a third larger.
const ATTACHED_BYTES_MAX: u64 = 20 << 20;
/// The longest message from standard input; a host takes no longer one by default.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Send one message and show the answer as it comes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom send hello
  greenroom send --continue 'and then?'
  greenroom send --approvals accept-edits --timeout 600 'fix the failing test'
  git diff | greenroom send - --attach notes.txt
  greenroom send --json hello | jq -r 'select(.type == \"text\").text'

The agent of a new session works in the current directory, or with --host in the first of the host's workspaces. \
On a terminal you are asked before it does what needs consent. Without one (a pipe, a script, --json) whatever asks is denied at \
once and questions are dismissed; --approvals says what needs no asking.

Where no host runs and a model is configured, a key is in the environment, or an agent is installed, a host is started in the background and stays.

Ctrl-C cancels the turn. Exit codes: 0 complete, 1 the turn failed, 2 wrong usage, 3 cancelled, 4 no host or refused, 5 complete, but \
something was denied because nobody could be asked, 6 cancelled because --timeout passed.")]
pub(crate) struct SendOptions {
    /// The message; `-` reads it from standard input
    text: String,
    #[command(flatten)]
    choice: SessionChoice,
    /// What the agent may do without asking, from now on in this session
    #[arg(long, value_name = "MODE", value_enum)]
    approvals: Option<ApprovalMode>,
    /// What this session may spend on models from now on, in dollars; `off` for no limit of its own
    #[arg(long, value_name = "DOLLARS", value_parser = parse_limit)]
    budget: Option<f64>,
    /// A file to attach to the message; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Cancel the turn if it takes longer
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Print JSON Lines as things happen, the last one being the result
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

/// The permission modes (G-46).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ApprovalMode {
    /// Ask before edits and commands
    Ask,
    /// Edit without asking, ask before commands
    AcceptEdits,
    /// Read only and say what would be done
    #[value(alias = "read-only")]
    Plan,
    /// Never ask
    FullAccess,
}

impl ApprovalMode {
    fn wire_name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::FullAccess => "full-access",
        }
    }
}

pub(crate) async fn run(options: SendOptions) -> anyhow::Result<Exit> {
    let text = message_text(&options.text)?;
    let attached = options
        .attach
        .iter()
        .map(|path| read_attachment(path))
        .collect::<anyhow::Result<Vec<MessageAttachment>>>()?;
    let chat = match open(&options).await {
        Ok(chat) => chat,
        Err(error) => {
            eprintln!("greenroom: {}", escape(&explain_no_session(&error)));
            return Ok(Exit::of_opening(&error));
        }
    };
    eprintln!("session {}", escape_line(chat.session().as_str()));
    if let Some(notice) = chat.notice() {
        eprintln!("{}", escape(notice));
    }
    let format = if options.json { SendFormat::Json } else { SendFormat::Text };
    let timeout = options.timeout.map(Duration::from_secs);
    let mut turn = SentTurn::start(chat, &text, &attached, format, options.consent())?;
    let end = turn.run_to_end(timeout).await;
    turn.end_line()?;
    let exit = turn.report(end?)?;
    turn.close().await;
    Ok(exit)
}

impl SendOptions {
    /// Whether there is a person to ask: one who sees the question and whose lines are not the message.
    fn consent(&self) -> Consent {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if is_terminal && !self.json && self.text != "-" { Consent::Ask } else { Consent::Deny }
    }
}

fn message_text(argument: &str) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .take(MESSAGE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .context("standard input cannot be read as text")?;
    if text.len() as u64 > MESSAGE_BYTES_MAX {
        bail!(
            "standard input is longer than {} MiB: put it in a file and name that in the message",
            MESSAGE_BYTES_MAX >> 20
        );
    }
    Ok(text)
}

fn read_attachment(path: &Path) -> anyhow::Result<MessageAttachment> {
    let unreadable = || format!("the file {} cannot be read", path.display());
    let file = std::fs::File::open(path).with_context(unreadable)?;
    let mut data = Vec::new();
    let mut bounded = file.take(ATTACHED_BYTES_MAX + 1);
    bounded.read_to_end(&mut data).with_context(unreadable)?;
    if data.len() as u64 > ATTACHED_BYTES_MAX {
        bail!(
            "the file {} is larger than {} MiB; name it in the message instead, the agent may read it",
            path.display(),
            ATTACHED_BYTES_MAX >> 20
        );
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let content_type = content_type_of(path, &data);
    Ok(MessageAttachment::embedded(&name.to_string_lossy(), content_type, &data))
}

/// What a file most likely is: the host looks for itself where it matters.
fn content_type_of(path: &Path, data: &[u8]) -> &'static str {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.unwrap_or("").to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        _ if std::str::from_utf8(data).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

/// Whether a host that is started here would have a model, or an agent that brings its own, as far as can be told.
fn may_answer(host: &HostOptions) -> bool {
    let data = host.data_directory();
    let settings = data.and_then(|data| settings(data, None));
    // What is wrong with the settings is said by the host that is started with them.
    settings.map_or(true, |settings| {
        let agents = settings.offered_agents().unwrap_or_default();
        !settings.ordered_models().is_empty() || !agents.is_empty()
    })
}

async fn open(options: &SendOptions) -> anyhow::Result<OpenChat> {
    let (live, updates) = if may_answer(&options.host) {
        connect(&options.host).await?
    } else {
        // A new host would have nothing to answer with, so none is started here.
        options.host.live(&[ChannelUri::root()]).await?
    };
    let model = options.choice.find_model(&live).await?;
    if model.is_none()
        && let Some(note) = key_alone::note(&live)
    {
        eprintln!("{note}");
    }
    let directory = options.choice.directory(&options.host)?;
    let selector = options.choice.selector(&live, directory.clone()).await?;
    let open_options =
        OpenOptions { directory, worktree: options.choice.worktree(), ..OpenOptions::default() };
    let mut chat = OpenChat::open(live, updates, &selector, &open_options).await?;
    if model.is_some() {
        chat.set_model(model);
    }
    if let Some(wanted) = options.approvals {
        let modes = chat.permission_modes();
        let mode = modes.iter().find(|mode| mode.id == wanted.wire_name());
        let Some(mode) = mode else {
            let session = chat.session().clone();
            chat.close().await;
            bail!("the agent of {session} has no such permission mode: leave --approvals out");
        };
        chat.change_permission_mode(mode).await?;
    }
    if let Some(usd) = options.budget {
        if chat.session_budget() == SessionBudget::NotOffered {
            let session = chat.session().clone();
            chat.close().await;
            bail!("the agent of {session} has no budget: leave --budget out");
        }
        chat.change_session_budget(usd).await?;
    }
    Ok(chat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sent_as_what_they_are() {
        for (name, data, expected) in [
            ("a.PNG", &b"\x89PNG"[..], "image/png"),
            ("notes", b"hello", "text/plain"),
            ("blob", b"\xff\xfe", "application/octet-stream"),
        ] {
            assert_eq!(content_type_of(Path::new(name), data), expected, "{name}");
        }
    }
}
