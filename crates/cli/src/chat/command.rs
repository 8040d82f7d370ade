//! The commands of this client: lines that begin with `/`. Other commands are the host's and the agent's.
//!
//! Promises: a line that begins with a command is never a message to a model because of a typing error (G-65).
//! Must not know: terminals, connections.

use client::SessionSummary;
use compositor::parse::command_in;
use wire::{ChannelUri, Timestamp};

use crate::format::{format_age, format_status};
use crate::terminal::escape_line;

/// Sessions that are listed.
const LISTED_MAX: usize = 20;
const TITLE_CHARS_MAX: usize = 40;
/// Names that are proposed for one that is not known.
const PROPOSED_MAX: usize = 3;
/// How much two names must have in common, of 1.
const SIMILARITY_MIN: f64 = 0.75;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    Help,
    Status,
    Usage,
    Sessions,
    /// A number of the list, or a URI.
    Open(String),
    New,
    /// A new session with this agent, or asks which.
    Agents(String),
    Rename(String),
    /// To this file, or one with a name of ours.
    Export(String),
    Archive,
    Delete,
    /// This model, or asks.
    Model(String),
    /// This permission mode, or asks.
    Approvals(String),
    Permissions,
    /// To this MCP server, or the only one that wants a token; or the address that a browser elsewhere was sent to.
    SignIn(String),
    /// Lists comments on files, or changes them.
    Annotations(String),
    /// This limit in dollars, or shows the one there is.
    Budget(String),
    /// A changeset, the number of a file of the list, marks, or an operation.
    Changes(String),
    /// The number of a file of the list, or `all`.
    Discard(String),
    /// With this message.
    Commit(String),
    /// The list; or `new`, a number to open, `kill` and a number.
    Terminals(String),
    Earlier,
    /// With a name for the branch, or none.
    Fork(String),
    Resume,
    Steer(String),
    Quit,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entered {
    Command(ChatCommand),
    /// A command of this client that is not complete, or has too much; what to do.
    Wrong(String),
    /// A command that is not one of this client's.
    Other(String),
    Message,
}

/// A command as people find it.
#[derive(Debug)]
pub(crate) struct OwnCommand {
    pub(crate) name: &'static str,
    aliases: &'static [&'static str],
    /// What may stand behind it; nothing if empty.
    pub(crate) arguments: &'static str,
    pub(crate) what: &'static str,
    /// It is not for `--plain`.
    pub(crate) needs_terminal: bool,
    make: fn(String) -> ChatCommand,
}

impl OwnCommand {
    /// Whether something must stand behind it.
    pub(crate) fn needs_arguments(&self) -> bool {
        !self.arguments.is_empty() && !self.arguments.starts_with('[')
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

const fn command(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    what: &'static str,
    make: fn(String) -> ChatCommand,
) -> OwnCommand {
    OwnCommand {
        name,
        aliases,
        arguments,
        what,
        needs_terminal: false,
        make,
    }
}

const fn on_terminals(command: OwnCommand) -> OwnCommand {
    OwnCommand {
        needs_terminal: true,
        ..command
    }
}

/// What can be typed.
pub(crate) const COMMANDS: &[OwnCommand] = &[
    command("/help", &["/?"], "", "show commands and keys", |_| {
        ChatCommand::Help
    }),
    on_terminals(command(
        "/status",
        &[],
        "",
        "show the session, its model, mode and cost",
        |_| ChatCommand::Status,
    )),
    command(
        "/usage",
        &["/cost", "/context"],
        "",
        "show the tokens and cost of the last turn and of this chat",
        |_| ChatCommand::Usage,
    ),
    command(
        "/model",
        &[],
        "[NAME [KEY=VALUE ..]]",
        "choose the model of later messages and its settings",
        ChatCommand::Model,
    ),
    command(
        "/approvals",
        &[],
        "[MODE]",
        "choose what the agent may do without asking",
        ChatCommand::Approvals,
    ),
    command(
        "/budget",
        &[],
        "[DOLLARS|off]",
        "show or set what this session may spend on models",
        ChatCommand::Budget,
    ),
    on_terminals(command(
        "/permissions",
        &["/rules"],
        "",
        "show the mode and the rules that hold here",
        |_| ChatCommand::Permissions,
    )),
    command(
        "/sign-in",
        &["/login"],
        "[SERVER|ADDRESS]",
        "sign in to an MCP server that wants a token",
        ChatCommand::SignIn,
    ),
    command(
        "/annotations",
        &["/comments"],
        "[add|reply|edit|resolve|reopen|remove|send ..]",
        "list, make and send comments on files",
        ChatCommand::Annotations,
    ),
    command("/sessions", &[], "", "find a session and go to it", |_| {
        ChatCommand::Sessions
    }),
    command(
        "/open",
        &[],
        "URI",
        "go to a session or chat",
        ChatCommand::Open,
    ),
    command("/new", &["/clear"], "", "start a new session", |_| {
        ChatCommand::New
    }),
    command(
        "/agents",
        &["/agent"],
        "[ID]",
        "start a new session with another agent",
        ChatCommand::Agents,
    ),
    command(
        "/rename",
        &[],
        "TITLE",
        "give this session another title",
        ChatCommand::Rename,
    ),
    on_terminals(command(
        "/export",
        &[],
        "[FILE]",
        "write this session to a file: .jsonl or .md",
        ChatCommand::Export,
    )),
    on_terminals(command(
        "/archive",
        &[],
        "",
        "put this session away, or take it out again",
        |_| ChatCommand::Archive,
    )),
    on_terminals(command(
        "/delete",
        &[],
        "",
        "delete this session; asks first",
        |_| ChatCommand::Delete,
    )),
    on_terminals(command(
        "/changes",
        &["/diff"],
        "[WHICH|N|reviewed N|OPERATION ..]",
        "list what changed (session, turn, uncommitted, branch), show, mark or change it",
        ChatCommand::Changes,
    )),
    on_terminals(command(
        "/discard",
        &[],
        "N|all",
        "take back the changes of a listed file; asks first",
        ChatCommand::Discard,
    )),
    on_terminals(command(
        "/commit",
        &[],
        "MESSAGE",
        "commit what is staged, or everything; runs the repository's hooks",
        ChatCommand::Commit,
    )),
    on_terminals(command(
        "/terminals",
        &[],
        "[new|NUMBER|kill NUMBER]",
        "list terminals, open one and type in it, or end one",
        ChatCommand::Terminals,
    )),
    on_terminals(command(
        "/earlier",
        &[],
        "",
        "read earlier turns; PageUp does too",
        |_| ChatCommand::Earlier,
    )),
    command(
        "/fork",
        &["/branch"],
        "[NAME]",
        "continue in a new branch of this chat",
        ChatCommand::Fork,
    ),
    command("/resume", &[], "", "resume a turn that failed", |_| {
        ChatCommand::Resume
    }),
    command(
        "/steer",
        &[],
        "TEXT",
        "tell the agent something while it works",
        ChatCommand::Steer,
    ),
    command(
        "/quit",
        &["/exit"],
        "",
        "leave; the session stays, and a running turn goes on",
        |_| ChatCommand::Quit,
    ),
];

impl Entered {
    pub(crate) fn parse(line: &str) -> Self {
        let name = match command_in(line) {
            Some(name) => name,
            None if line.trim_end() == "/?" => "/?",
            None => return Self::Message,
        };
        let Some(command) = COMMANDS.iter().find(|command| command.is_called(name)) else {
            return Self::Other(name.to_owned());
        };
        let rest = line.get(name.len()..).unwrap_or("").trim();
        if command.arguments.is_empty() && !rest.is_empty() {
            return Self::Wrong(format!("{name} takes nothing behind it"));
        }
        if command.needs_arguments() && rest.is_empty() {
            return match name {
                "/open" => Self::Command(ChatCommand::Sessions),
                _ => Self::Wrong(format!("{name} needs {} behind it", command.arguments)),
            };
        }
        Self::Command((command.make)(rest.to_owned()))
    }
}

/// What to say about a command that nobody knows: those that look like it, and how to send it all the same.
pub(crate) fn unknown_command(name: &str, others: &[String]) -> String {
    let own = COMMANDS.iter().map(|command| command.name);
    let known = own.chain(others.iter().map(String::as_str));
    let mut close: Vec<(f64, &str)> = known
        .map(|known| {
            // What all have in common makes none of them closer.
            let (name, known_name) = (name.trim_start_matches('/'), known.trim_start_matches('/'));
            (strsim::jaro_winkler(name, known_name), known)
        })
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .collect();
    close.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    close.dedup_by_key(|(_, name)| *name);
    let close: Vec<&str> = close
        .iter()
        .take(PROPOSED_MAX)
        .map(|(_, name)| *name)
        .collect();
    let proposal = match close.as_slice() {
        [] => "/help lists all".to_owned(),
        close => format!("did you mean {}?", close.join(", ")),
    };
    format!("there is no command {name}: {proposal} To send it as a message, type \\{name}")
}

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
    ("Ctrl-O", "all of what is asked, or of the last result"),
    ("Ctrl-T", "show reasoning, or fold it"),
    ("Tab", "complete / and @; at a question: put the text aside"),
    ("Esc", "interrupt the turn; twice: edit the last message"),
    ("Ctrl-_, Ctrl-Y", "undo; bring back what was deleted"),
    ("Ctrl-X Ctrl-E", "edit the text in $EDITOR"),
    ("Shift-Tab", "the next permission mode"),
    ("PageUp", "earlier turns"),
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
        let text = |text: &str| text.to_owned();
        for (line, command) in [
            ("/help", ChatCommand::Help),
            ("/?", ChatCommand::Help),
            ("/quit ", ChatCommand::Quit),
            ("/fork", ChatCommand::Fork(String::new())),
            ("/branch x", ChatCommand::Fork(text("x"))),
            ("/open 3", ChatCommand::Open(text("3"))),
            ("/open", ChatCommand::Sessions),
            ("/model", ChatCommand::Model(String::new())),
            ("/rename  a b ", ChatCommand::Rename(text("a b"))),
            (
                "/steer left\na bit",
                ChatCommand::Steer(text("left\na bit")),
            ),
        ] {
            assert_eq!(Entered::parse(line), Entered::Command(command), "{line:?}");
        }
        for line in [
            "quit",
            "",
            " /quit",
            "\\/quit",
            "/etc/passwd is there",
            "/",
            "//",
        ] {
            assert_eq!(Entered::parse(line), Entered::Message, "{line:?}");
        }
        for (line, name) in [("/review the code", "/review"), ("/quitt", "/quitt")] {
            assert_eq!(Entered::parse(line), Entered::Other(text(name)), "{line:?}");
        }
        for (line, why) in [
            ("/new idea: fork it", "/new takes nothing behind it"),
            ("/steer", "/steer needs TEXT behind it"),
            ("/rename ", "/rename needs TITLE behind it"),
        ] {
            assert_eq!(Entered::parse(line), Entered::Wrong(text(why)), "{line:?}");
        }
    }

    #[test]
    fn close_names_are_proposed() {
        let others = ["/compact".to_owned(), "/review".to_owned()];
        let said = unknown_command("/modle", &others);
        assert!(said.contains("did you mean /model"), "{said}");
        assert!(said.ends_with("type \\/modle"), "{said}");
        let said = unknown_command("/compcat", &others);
        assert!(said.contains("/compact"), "{said}");
        let said = unknown_command("/zzyzx", &others);
        assert!(said.contains("/help lists all"), "{said}");
    }

    #[test]
    fn every_command_has_one_name() {
        let mut names: Vec<&str> = Vec::new();
        for command in COMMANDS {
            names.push(command.name);
            names.extend(command.aliases);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
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
