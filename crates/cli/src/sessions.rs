//! `greenroom sessions`: what sessions the host has.

use client::ClientError;
use serde_json::{Value, json};
use wire::{ChannelUri, Timestamp};

use crate::exit::Exit;
use crate::screen::print;
use crate::target::HostOptions;
use crate::terminal::clean_line;
use crate::words::{ago, now, status_words};

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
    let greeted = options.host.greet(&[]).await?;
    let sessions = list(&greeted.connection).await?;
    greeted.connection.close().await;
    if options.json {
        print(&format!("{}\n", Value::Array(sessions)))?;
    } else if sessions.is_empty() {
        print("No sessions yet. Begin one with `greenroom chat`.\n")?;
    } else {
        print(&table(&sessions, now()))?;
    }
    Ok(Exit::Complete)
}

/// All pages of the list.
async fn list(connection: &client::Connection) -> Result<Vec<Value>, ClientError> {
    let mut sessions = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut params = json!({"channel": ChannelUri::root().as_str()});
        if let Some(cursor) = &cursor {
            params["cursor"] = json!(cursor);
        }
        let mut page = connection.request("listSessions", params).await?;
        let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
            return Err(ClientError::Unreadable(
                "a session list without `items`".to_owned(),
            ));
        };
        sessions.extend(items);
        let next = page["nextCursor"].as_str().map(str::to_owned);
        // A host that repeats itself would be asked forever.
        if next.is_none() || next == cursor {
            return Ok(sessions);
        }
        cursor = next;
    }
}

fn table(sessions: &[Value], now: Timestamp) -> String {
    let mut rows = vec![["TITLE", "STATUS", "MODIFIED", "SESSION"].map(str::to_owned)];
    rows.extend(sessions.iter().map(|session| {
        let text = |field: &str| clean_line(session[field].as_str().unwrap_or(""));
        let bits = session["status"]
            .as_u64()
            .and_then(|bits| u32::try_from(bits).ok());
        [
            short(&text("title")),
            status_words(bits.unwrap_or(0)),
            ago(&text("modifiedAt"), now),
            text("resource"),
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
    use super::*;

    #[test]
    fn the_table_is_aligned_and_clean() {
        let now = Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap();
        let session = |title: &str, status: u32| {
            json!({
                "title": title, "status": status,
                "modifiedAt": "2026-11-15T11:00:00Z", "resource": "scripted:/1",
            })
        };
        let sessions = [session("A\u{1b}[31m\nred title", 1), session("", 24)];
        assert_eq!(
            table(&sessions, now),
            "TITLE        STATUS           MODIFIED    SESSION\n\
             A red title  idle             1 hour ago  scripted:/1\n\
             (no title)   needs an answer  1 hour ago  scripted:/1\n"
        );
    }

    #[test]
    fn long_titles_are_cut() {
        assert_eq!(short(&"x".repeat(50)).chars().count(), TITLE_CHARS_MAX);
    }
}
