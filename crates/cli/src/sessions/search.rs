//! `greenroom sessions search`: what was said, in which session and turn.
//!
//! Reads the data directory, beside a host that runs or without one: the index is this command's own (ADR 0050).

use std::io::IsTerminal;

use host::journal::{SearchHit, SearchIndex, TextPiece};
use serde_json::{Value, json};
use wire::Timestamp;

use super::local_data;
use crate::clock::now;
use crate::exit::Exit;
use crate::format::format_age;
use crate::output::print_json;
use crate::target::HostOptions;
use crate::terminal::escape_line;

const BOLD: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

/// Find sessions by words: titles, messages and answers that contain all of them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom sessions search parser
  greenroom sessions search 'off by one' test      both in one turn, the first as it stands
  greenroom sessions search --json parser | jq -r '.[].session'

Upper and lower case are the same; parts of words are found. The newest come first, titles before everything else. A turn is found once it has \
ended. Exit codes: 0 something was found, 1 nothing was, 2 wrong usage.")]
pub(crate) struct SessionSearchOptions {
    /// Words to find; all must be in one turn
    #[arg(required = true)]
    words: Vec<String>,
    /// How many matches to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print one JSON array instead
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) fn run(options: &SessionSearchOptions) -> anyhow::Result<Exit> {
    let data = local_data(&options.host)?;
    anyhow::ensure!(
        data.join("journal.sqlite").exists(),
        "there is no SQLite journal in {}; name the data directory with --data. What is in PostgreSQL cannot be read this way",
        data.display()
    );
    let mut index = SearchIndex::open(&data)?;
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let hits = index.search(&options.words, limit)?;
    if options.json {
        print_json(&hits.iter().map(hit_json).collect::<Value>())?;
    } else if hits.is_empty() {
        eprintln!("Nothing was found.");
    } else {
        print_hits(&hits)?;
    }
    Ok(if hits.is_empty() { Exit::Failed } else { Exit::Complete })
}

fn print_hits(hits: &[SearchHit]) -> std::io::Result<()> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let (begin, end) =
        if std::io::stdout().is_terminal() && !is_plain { (BOLD, PLAIN) } else { ("*", "*") };
    let text: String = hits.iter().map(|hit| hit_text(hit, begin, end, now())).collect();
    write_marked(&text)
}

/// Everything in the text is escaped already; only our own marks are not.
fn write_marked(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn hit_text(hit: &SearchHit, begin: &str, end: &str, now: Timestamp) -> String {
    let title =
        if hit.title.is_empty() { "(no title)".to_owned() } else { escape_line(&hit.title) };
    let (age, place) = match &hit.turn {
        Some(turn) => {
            (format_age(&turn.started_at, now), format!("turn {}", escape_line(&turn.id)))
        }
        None => (format_age(&hit.session_modified.to_rfc3339(), now), "title".to_owned()),
    };
    let show = |piece: &TextPiece| {
        if piece.is_match {
            format!("{begin}{}{end}", escape_line(&piece.text))
        } else {
            escape_line(&piece.text)
        }
    };
    let excerpt: String = hit.excerpt.iter().map(show).collect();
    let session = escape_line(&hit.session);
    format!("{title}, {age}  {session}  {place}\n    {excerpt}\n")
}

fn hit_json(hit: &SearchHit) -> Value {
    let piece = |piece: &TextPiece| json!({"text": piece.text, "match": piece.is_match});
    let snippet: Vec<Value> = hit.excerpt.iter().map(piece).collect();
    let mut value = json!({
        "session": hit.session,
        "title": hit.title,
        "modifiedAt": hit.session_modified.to_rfc3339(),
        "snippet": snippet,
    });
    if let Some(turn) = &hit.turn {
        value["chat"] = json!(turn.chat);
        value["turnId"] = json!(turn.id);
        value["startedAt"] = json!(turn.started_at);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_cannot_control_the_terminal() {
        let piece = |text: &str, is_match| TextPiece { text: text.to_owned(), is_match };
        let hit = SearchHit {
            session: "s:/1".to_owned(),
            title: "T\u{1b}[2J".to_owned(),
            session_modified: Timestamp::parse_rfc3339("2026-11-15T11:00:00Z").unwrap(),
            turn: None,
            excerpt: vec![piece("a \u{202e}", false), piece("wo\u{7}rd", true)],
        };
        let now = Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap();
        assert_eq!(
            hit_text(&hit, "*", "*", now),
            "T\\x1b[2J, 1 hour ago  s:/1  title\n    a \\u{202e}*wo\\x07rd*\n"
        );
    }
}
