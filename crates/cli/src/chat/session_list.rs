//! Sessions as a numbered list, and the one that somebody chooses from it.

use client::SessionSummary;
use wire::{ChannelUri, Timestamp};

use crate::format::{format_age, format_status};
use crate::terminal::escape_line;

/// Sessions that are listed.
const LISTED_MAX: usize = 20;
const TITLE_CHARS_MAX: usize = 40;

/// The sessions to choose from, a line each.
pub(crate) fn session_lines(
    sessions: &[SessionSummary],
    current: &ChannelUri,
    now: Timestamp,
) -> Vec<String> {
    let listed = sessions.iter().take(LISTED_MAX).enumerate();
    let mut lines: Vec<String> = listed
        .map(|(index, session)| {
            let here = if session.resource() == current.as_str() { " (here)" } else { "" };
            let title: String =
                escape_line(session.title()).chars().take(TITLE_CHARS_MAX).collect();
            format!(
                "{:>2} {title}, {}, {}{here}  {}",
                index + 1,
                format_status(session.status()),
                format_age(session.modified_at(), now),
                escape_line(session.resource()),
            )
        })
        .collect();
    if sessions.len() > LISTED_MAX {
        let more = sessions.len() - LISTED_MAX;
        lines.push(format!("   … {more} more: `greenroom sessions` lists them all"));
    }
    lines
}

/// The session that a number or a URI names.
pub(crate) fn pick(sessions: &[SessionSummary], answer: &str) -> Result<ChannelUri, String> {
    let answer = answer.trim();
    if let Ok(number) = answer.parse::<usize>() {
        let session = number
            .checked_sub(1)
            .and_then(|index| sessions.get(index))
            .ok_or_else(|| format!("there is no number {number}"))?;
        return session.uri().map_err(|error| error.to_string());
    }
    ChannelUri::parse(answer).map_err(|error| format!("neither a number nor a URI: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sessions_are_listed_and_picked() {
        let session = |uri: &str, title: &str| {
            SessionSummary::new(
                json!({"resource": uri, "title": title, "status": 1, "modifiedAt": "2026-11-15T11:00:00Z"}),
            )
        };
        let sessions = [session("s:/1", "First\u{1b}[2J"), session("s:/2", "Second")];
        let now = Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap();
        let here = ChannelUri::parse("s:/2").unwrap();
        assert_eq!(
            session_lines(&sessions, &here, now),
            [
                " 1 First\\x1b[2J, idle, 1 hour ago  s:/1",
                " 2 Second, idle, 1 hour ago (here)  s:/2",
            ]
        );
        assert_eq!(pick(&sessions, " 1 ").unwrap().as_str(), "s:/1");
        assert_eq!(pick(&sessions, "x:/y").unwrap().as_str(), "x:/y");
        assert!(pick(&sessions, "3").is_err() && pick(&sessions, "0").is_err());
        assert!(pick(&sessions, "second").is_err());
        let many: Vec<SessionSummary> = (0..30).map(|n| session(&format!("s:/{n}"), "x")).collect();
        let lines = session_lines(&many, &here, now);
        assert!(lines.last().unwrap().contains("10 more"), "{lines:?}");
    }
}
