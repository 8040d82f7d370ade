//! The list of sessions: titles, what they do, when they were used, where they work.
//!
//! Promises: empty sessions are left out, and in the table archived ones, unless all are wanted.

use std::path::{Path, PathBuf};

use client::SessionSummary;
use host::journal::Archive;
use serde_json::Value;
use wire::Timestamp;

use crate::clock::now;
use crate::exit::Exit;
use crate::format::{format_age, format_status, format_table, with_further};
use crate::output::{print, print_json};
use crate::start_host::is_host_missing;
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// Titles longer than this are cut in the table.
const TITLE_CHARS_MAX: usize = 40;

#[derive(Debug, clap::Args)]
pub(crate) struct ListOptions {
    /// Show archived and empty ones too
    #[arg(long)]
    all: bool,
    /// Print one JSON array of session summaries instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: ListOptions) -> anyhow::Result<Exit> {
    let mut sessions = match options.host.live(&[]).await {
        Ok((live, _updates)) => {
            let sessions = live.list_all_sessions().await?;
            live.close().await;
            sessions
        }
        // Without a host the data directory says the same.
        Err(error) if options.host.named_host().is_none() && is_host_missing(&error) => {
            read_list(&options.host.data_directory()?).map_err(|other| other.unwrap_or(error))?
        }
        Err(error) => return Err(error),
    };
    if options.all && options.host.named_host().is_none() {
        sessions.extend(read_unlisted(&options.host.data_directory()?)?);
    }
    if !options.all {
        sessions.retain(|session| !session.is_empty());
    }
    if options.json {
        let sessions: Value = sessions.iter().map(|session| session.value().clone()).collect();
        print_json(&sessions)?;
        return Ok(Exit::Complete);
    }
    let listed = sessions.len();
    if !options.all {
        sessions.retain(|session| !session.is_archived());
    }
    if sessions.is_empty() {
        print("No sessions yet. Start one with `greenroom chat`.\n")?;
    } else {
        print(&table(&sessions, now()))?;
    }
    if listed > sessions.len() {
        let archived = listed - sessions.len();
        eprintln!("{archived} archived: --all lists them");
    }
    Ok(Exit::Complete)
}

/// The list as the data directory holds it; nothing if there is no journal, which says less than that no host runs.
fn read_list(data: &Path) -> Result<Vec<SessionSummary>, Option<anyhow::Error>> {
    if !data.join("journal.sqlite").exists() {
        return Err(None);
    }
    let listed = Archive::open(data)
        .and_then(|archive| archive.sessions())
        .map_err(|error| Some(error.into()))?;
    Ok(listed.into_iter().map(SessionSummary::new).collect())
}

/// Sessions that no list has: they have no turn yet.
fn read_unlisted(data: &Path) -> anyhow::Result<Vec<SessionSummary>> {
    let archive = Archive::open(data)?;
    let unlisted = archive.unlisted_sessions()?.into_iter();
    Ok(unlisted.map(SessionSummary::new).collect())
}

fn table(sessions: &[SessionSummary], now: Timestamp) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut rows = vec![["TITLE", "STATE", "USED", "DIRECTORY", "SESSION"].map(str::to_owned)];
    rows.extend(sessions.iter().map(|session| {
        [
            short(&escape_line(session.title())),
            format_status(session.status()),
            format_age(session.modified_at(), now),
            with_further(
                format_directory(session.directory().as_deref(), home.as_deref()),
                session.further_directories(),
            ),
            escape_line(session.resource()),
        ]
    }));
    format_table(&rows)
}

fn format_directory(directory: Option<&Path>, home: Option<&Path>) -> String {
    let Some(directory) = directory else { return "-".to_owned() };
    let below_home = home.and_then(|home| directory.strip_prefix(home).ok());
    let shown = match below_home {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => directory.display().to_string(),
    };
    escape_line(&shown)
}

fn short(title: &str) -> String {
    if title.is_empty() {
        return "(no title)".to_owned();
    }
    if title.chars().count() <= TITLE_CHARS_MAX {
        return title.to_owned();
    }
    title.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_is_aligned_and_shows_control_characters() {
        let now = Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap();
        let session = |title: &str, status: u32, directory: &str| {
            SessionSummary::new(json!({
                "title": title, "status": status, "workingDirectories": [directory],
                "modifiedAt": "2026-11-15T11:00:00Z", "resource": "scripted:/1",
            }))
        };
        let sessions = [
            session("A\u{1b}[31m\nred title", 1, "file:///srv/a%0Ab"),
            session("", 24, "untitled:x"),
            session("漢字", 2, "file:///srv"),
        ];
        assert_eq!(
            table(&sessions, now),
            "TITLE                 STATE      USED        DIRECTORY  SESSION\n\
             A\\x1b[31m\\nred title  idle       1 hour ago  /srv/a\\nb  scripted:/1\n\
             (no title)            needs you  1 hour ago  -          scripted:/1\n\
             漢字                  failed     1 hour ago  /srv       scripted:/1\n"
        );
    }

    #[test]
    fn directories_below_the_home_directory_are_short() {
        let home = Path::new("/home/ann");
        let shown = |path: &str| format_directory(Some(Path::new(path)), Some(home));
        assert_eq!(shown("/home/ann"), "~");
        assert_eq!(shown("/home/ann/code/x"), "~/code/x");
        assert_eq!(shown("/home/annette"), "/home/annette");
    }

    #[test]
    fn long_titles_are_cut() {
        assert_eq!(short(&"x".repeat(50)).chars().count(), TITLE_CHARS_MAX);
    }
}
