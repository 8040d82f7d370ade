//! The commands of this client, and its keys: one table each for whatever lists, completes or parses them.
//!
//! Must not know: terminals, connections.

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
    pub(super) make: fn(String) -> ChatCommand,
}

impl OwnCommand {
    /// Whether something must stand behind it.
    pub(crate) fn needs_arguments(&self) -> bool {
        !self.arguments.is_empty() && !self.arguments.starts_with('[')
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
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
    OwnCommand { name, aliases, arguments, what, needs_terminal: false, make }
}

const fn on_terminals(command: OwnCommand) -> OwnCommand {
    OwnCommand { needs_terminal: true, ..command }
}

/// What can be typed.
pub(crate) const COMMANDS: &[OwnCommand] = &[
    command("/help", &["/?"], "", "show commands and keys", |_| ChatCommand::Help),
    on_terminals(command("/status", &[], "", "show the session, its model, mode and cost", |_| {
        ChatCommand::Status
    })),
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
        "show the mode and the rules that apply here",
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
    command("/sessions", &[], "", "find a session and go to it", |_| ChatCommand::Sessions),
    command("/open", &[], "URI", "go to a session or chat", ChatCommand::Open),
    command("/new", &["/clear"], "", "start a new session", |_| ChatCommand::New),
    command(
        "/agents",
        &["/agent"],
        "[ID]",
        "start a new session with another agent",
        ChatCommand::Agents,
    ),
    command("/rename", &[], "TITLE", "change the title of this session", ChatCommand::Rename),
    on_terminals(command(
        "/export",
        &[],
        "[FILE]",
        "write this session to a file: .jsonl or .md",
        ChatCommand::Export,
    )),
    on_terminals(command("/archive", &[], "", "archive this session, or restore it", |_| {
        ChatCommand::Archive
    })),
    on_terminals(command("/delete", &[], "", "delete this session; asks first", |_| {
        ChatCommand::Delete
    })),
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
    on_terminals(command("/earlier", &[], "", "read earlier turns; PageUp does too", |_| {
        ChatCommand::Earlier
    })),
    command(
        "/fork",
        &["/branch"],
        "[NAME]",
        "continue in a new branch of this chat",
        ChatCommand::Fork,
    ),
    command("/resume", &[], "", "resume a turn that failed", |_| ChatCommand::Resume),
    command("/steer", &[], "TEXT", "tell the agent something while it works", ChatCommand::Steer),
    command(
        "/quit",
        &["/exit"],
        "",
        "leave; the session is kept and a running turn continues",
        |_| ChatCommand::Quit,
    ),
];

/// What can be pressed.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works: queue"),
    ("Ctrl-S", "steer: send now, while the agent works"),
    ("digit or ↑↓, Enter", "choose and confirm when the agent asks"),
    ("Shift-Enter", "a new line; also Alt-Enter, Ctrl-J, \\ Enter"),
    ("Up", "earlier messages, or those in the queue"),
    ("Alt-Up", "queued messages: edit, remove, steer"),
    ("Ctrl-R", "search earlier messages"),
    ("Ctrl-O", "show the whole question, or the whole last result"),
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
