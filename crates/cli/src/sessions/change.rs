//! Changes to sessions: another title, put away, gone. And to the file that holds them.

use std::io::{BufRead, IsTerminal};

use client::{Live, SessionSummary};
use host::journal::Sqlite;
use wire::ChannelUri;

use crate::exit::Exit;
use crate::format::{format_bytes, format_count};
use crate::output::print;
use crate::own_host::HostConnection;
use crate::session_name::SessionName;
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// Give a session another title
#[derive(Debug, clap::Args)]
pub(crate) struct RenameOptions {
    /// The session: its URI, a part of its id, or its title
    session: SessionName,
    /// Its new title
    title: String,
    #[command(flatten)]
    host: HostOptions,
}

/// Archive sessions: they are kept, and listed only with --all
#[derive(Debug, clap::Args)]
pub(crate) struct ArchiveOptions {
    /// The sessions: URIs, parts of ids, or titles
    #[arg(required = true)]
    session: Vec<SessionName>,
    /// Restore them from the archive
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    host: HostOptions,
}

/// Delete sessions, for every client; asks first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What was deleted cannot be brought back: `greenroom export` writes a copy, `greenroom sessions import` reads it. \
The disk space is given back after `retention_disposed_s` of the host's settings (7 days)."
)]
pub(crate) struct DeleteOptions {
    /// The sessions: URIs, parts of ids, or titles
    #[arg(required = true)]
    session: Vec<SessionName>,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    host: HostOptions,
}

/// Free all unused disk space now; no host may run
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A running host does the same bit by bit. This is for a journal that an earlier version made and that is too large to be \
prepared for it at start. It needs as much free space as the journal has content, and leaves the journal as it was if that runs out."
)]
pub(crate) struct CompactOptions {
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn rename(options: RenameOptions) -> anyhow::Result<Exit> {
    let title = options.title.trim();
    anyhow::ensure!(!title.is_empty(), "a title has at least one character");
    let mut host = HostConnection::open(&options.host).await?;
    let renamed = async {
        let session = options.session.find(&host.live).await?;
        host.live.rename_session(&mut host.updates, &session, title).await?;
        anyhow::Ok(session)
    }
    .await;
    host.close().await?;
    print(&format!(
        "{} is called `{}` now.\n",
        escape_line(renamed?.as_str()),
        escape_line(title)
    ))?;
    Ok(Exit::Complete)
}

pub(crate) async fn archive(options: ArchiveOptions) -> anyhow::Result<Exit> {
    let mut host = HostConnection::open(&options.host).await?;
    let archived = async {
        let sessions = find_all(&host.live, &options.session).await?;
        for (uri, _) in &sessions {
            host.live.archive_session(&mut host.updates, uri, !options.undo).await?;
        }
        anyhow::Ok(sessions.len())
    }
    .await;
    host.close().await?;
    let count = format_count(archived?, "session");
    print(&if options.undo {
        format!("Took {count} out of the archive.\n")
    } else {
        format!("Archived {count}; `greenroom sessions --all` lists them.\n")
    })?;
    Ok(Exit::Complete)
}

pub(crate) async fn delete(options: DeleteOptions) -> anyhow::Result<Exit> {
    let host = HostConnection::open(&options.host).await?;
    let deleted = async {
        let sessions = find_all(&host.live, &options.session).await?;
        if !options.yes && !confirm(&sessions)? {
            return anyhow::Ok(None);
        }
        for (uri, _) in &sessions {
            if let Some(kept) = host.live.dispose_session(uri).await? {
                print(&format!("{}\n", escape_line(&kept)))?;
            }
        }
        Ok(Some(sessions.len()))
    }
    .await;
    host.close().await?;
    match deleted? {
        Some(count) => {
            print(&format!("Deleted {}.\n", format_count(count, "session")))?;
            Ok(Exit::Complete)
        }
        None => {
            eprintln!("nothing was deleted");
            Ok(Exit::Cancelled)
        }
    }
}

/// All sessions that are named, each once, before anything is done to any of them.
async fn find_all(
    live: &Live,
    names: &[SessionName],
) -> anyhow::Result<Vec<(ChannelUri, Option<SessionSummary>)>> {
    let listed = live.list_all_sessions().await?;
    let mut found: Vec<(ChannelUri, Option<SessionSummary>)> = Vec::new();
    for name in names {
        let uri = match name.as_uri() {
            Some(uri) => uri?,
            None => name.choose(&listed)?,
        };
        if found.iter().all(|(known, _)| *known != uri) {
            let summary = listed.iter().find(|session| session.resource() == uri.as_str());
            found.push((uri, summary.cloned()));
        }
    }
    Ok(found)
}

/// Asks the person at the terminal.
fn confirm(sessions: &[(ChannelUri, Option<SessionSummary>)]) -> anyhow::Result<bool> {
    anyhow::ensure!(
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        "nobody can be asked here: pass --yes to delete without asking"
    );
    for (uri, summary) in sessions {
        let title = summary.as_ref().map_or("", |summary| summary.title());
        eprintln!("  {}  {}", escape_line(uri.as_str()), escape_line(title));
    }
    let count = format_count(sessions.len(), "session");
    eprint!("Delete {count} for every client? Type yes and press Enter: ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().eq_ignore_ascii_case("yes"))
}

pub(crate) fn compact(options: &CompactOptions) -> anyhow::Result<Exit> {
    let data = super::local_data(&options.host)?;
    anyhow::ensure!(
        data.join("journal.sqlite").exists(),
        "there is no SQLite journal in {}; name the data directory with --data. What is in PostgreSQL cannot be read this way",
        data.display()
    );
    let mut journal = Sqlite::open(&data)?;
    let before = journal.file_bytes()?;
    journal.compact()?;
    let after = journal.file_bytes()?;
    print(&format!("The journal has {}, it had {}.\n", format_bytes(after), format_bytes(before)))?;
    Ok(Exit::Complete)
}
