//! `greenroom sessions`: lists the sessions of a host.

use client::SessionSummary;
use serde_json::Value;
use wire::Timestamp;

use crate::clock::now;
use crate::exit::Exit;
use crate::format::{format_age, format_status};
use crate::output::{print, print_json};
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// Titles longer than this are cut in the table.
const TITLE_CHARS_MAX: usize = 40;

/// List the sessions of a host, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom sessions
  greenroom sessions --json | jq '.[].resource'")]
pub(crate) struct SessionsOptions {
    /// Print one JSON array of session summaries instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: SessionsOptions) -> anyhow::Result<Exit> {
    let (live, _updates) = options.host.live(&[]).await?;
    let sessions = live.list_all_sessions().await?;
    live.close().await;
    if options.json {
        let sessions: Value = sessions
            .iter()
            .map(|session| session.value().clone())
            .collect();
        print_json(&sessions)?;
    } else if sessions.is_empty() {
        print("No sessions yet. Start one with `greenroom chat`.\n")?;
    } else {
        print(&table(&sessions, now()))?;
    }
    Ok(Exit::Complete)
}

fn table(sessions: &[SessionSummary], now: Timestamp) -> String {
    let mut rows = vec![["TITLE", "STATUS", "MODIFIED", "SESSION"].map(str::to_owned)];
    rows.extend(sessions.iter().map(|session| {
        [
            short(&escape_line(session.title())),
            format_status(session.status()),
            format_age(session.modified_at(), now),
            escape_line(session.resource()),
        ]
    }));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let lines = rows.iter().map(|[title, status, modified, session]| {
        let [a, b, c] = widths;
        format!("{title:a$}  {status:b$}  {modified:c$}  {session}\n")
    });
    lines.collect()
}

fn short(title: &str) -> String {
    if title.is_empty() {
        return "(no title)".to_owned();
    }
    if title.chars().count() <= TITLE_CHARS_MAX {
        return title.to_owned();
    }
    title
        .chars()
        .take(TITLE_CHARS_MAX - 1)
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_is_aligned_and_shows_control_characters() {
        let now = Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap();
        let session = |title: &str, status: u32| {
            SessionSummary::new(json!({
                "title": title, "status": status,
                "modifiedAt": "2026-11-15T11:00:00Z", "resource": "scripted:/1",
            }))
        };
        let sessions = [session("A\u{1b}[31m\nred title", 1), session("", 24)];
        assert_eq!(
            table(&sessions, now),
            "TITLE                 STATUS           MODIFIED    SESSION\n\
             A\\x1b[31m\\nred title  idle             1 hour ago  scripted:/1\n\
             (no title)            needs an answer  1 hour ago  scripted:/1\n"
        );
    }

    #[test]
    fn long_titles_are_cut() {
        assert_eq!(short(&"x".repeat(50)).chars().count(), TITLE_CHARS_MAX);
    }
}
