//! The commands of this client: lines that begin with `/`. Other such lines are for the agent.

use client::SessionSummary;
use wire::{ChannelUri, Timestamp};

use crate::format::{format_age, format_status};
use crate::terminal::escape_line;

/// Sessions that are listed.
const LISTED_MAX: usize = 20;
const TITLE_CHARS_MAX: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    Help,
    Sessions,
    /// A number of the list, or a URI; asks if there is none.
    Open(String),
    New,
    /// With a name for the branch, or none.
    Fork(String),
    Resume,
    Steer(String),
    Quit,
}

impl ChatCommand {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim().to_owned();
        let command = match name {
            "/help" | "/?" => Self::Help,
            "/sessions" => Self::Sessions,
            "/open" if rest.is_empty() => Self::Sessions,
            "/open" => return Some(Self::Open(rest)),
            "/new" => Self::New,
            "/fork" | "/branch" => return Some(Self::Fork(rest)),
            "/resume" => Self::Resume,
            "/steer" if !rest.is_empty() => return Some(Self::Steer(rest)),
            "/quit" | "/exit" => Self::Quit,
            _ => return None,
        };
        // Words behind it: then it was meant for the agent.
        rest.is_empty().then_some(command)
    }
}

/// What can be typed.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("/sessions", "list the sessions and go to one"),
    ("/open URI", "go to a session or chat"),
    ("/new", "start a new session"),
    ("/fork, /branch", "continue in a new branch of this chat"),
    ("/resume", "resume a turn that failed"),
    ("/steer TEXT", "tell the agent something while it works"),
    (
        "/quit",
        "leave; the session stays, and a running turn goes on",
    ),
];

/// What can be pressed.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works: queue"),
    ("Ctrl-S", "steer: send now, while the agent works"),
    (
        "digit or ↑↓, Enter",
        "choose and confirm when the agent asks",
    ),
    (
        "Shift-Enter",
        "a new line; also Alt-Enter, Ctrl-J, \\ Enter",
    ),
    ("Up", "what was sent before; or what waits in the queue"),
    ("Alt-Up", "the messages that wait: edit, remove, steer"),
    ("Ctrl-R", "search what was sent before"),
    ("Tab", "complete / and @; at a question: put the text aside"),
    ("Esc", "interrupt the turn; twice: edit the last message"),
    ("Ctrl-_, Ctrl-Y", "undo; bring back what was deleted"),
    ("Ctrl-X Ctrl-E", "edit the text in $EDITOR"),
    ("Ctrl-C", "cancel the turn; twice: leave"),
    ("Ctrl-D", "leave"),
];

/// The sessions to choose from, a line each.
pub(crate) fn session_lines(
    sessions: &[SessionSummary],
    current: &ChannelUri,
    now: Timestamp,
) -> Vec<String> {
    let listed = sessions.iter().take(LISTED_MAX).enumerate();
    let mut lines: Vec<String> = listed
        .map(|(index, session)| {
            let here = if session.resource() == current.as_str() {
                " (here)"
            } else {
                ""
            };
            let title = escape_line(session.title());
            let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
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
        lines.push(format!(
            "   … {more} more: `greenroom sessions` lists them all"
        ));
    }
    lines
}

/// The session that a number or a URI names.
pub(crate) fn pick(sessions: &[SessionSummary], answer: &str) -> Result<ChannelUri, String> {
    let answer = answer.trim();
    if let Ok(number) = answer.parse::<usize>() {
        let session = number.checked_sub(1).and_then(|index| sessions.get(index));
        let session = session.ok_or_else(|| format!("there is no number {number}"))?;
        return session.uri().map_err(|error| error.to_string());
    }
    ChannelUri::parse(answer).map_err(|error| format!("neither a number nor a URI: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_distinguished_from_messages() {
        for (line, command) in [
            ("/help", Some(ChatCommand::Help)),
            (" /quit ", Some(ChatCommand::Quit)),
            ("/fork", Some(ChatCommand::Fork(String::new()))),
            ("/branch x", Some(ChatCommand::Fork("x".to_owned()))),
            ("/open 3", Some(ChatCommand::Open("3".to_owned()))),
            ("/open", Some(ChatCommand::Sessions)),
            (
                "/steer left a bit",
                Some(ChatCommand::Steer("left a bit".to_owned())),
            ),
            ("/steer", None),
            ("/new idea: fork it", None),
            ("/review the code", None),
            ("quit", None),
            ("", None),
        ] {
            assert_eq!(ChatCommand::parse(line), command, "{line:?}");
        }
    }

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
