//! What a line is that somebody entered: a command of this client (`command_table`), one of the host or the agent, or a message.
//!
//! Promises: a line that begins with a command is never a message to a model because of a typing error (G-65).
//! Must not know: terminals, connections.

use compositor::parse::command_in;

use super::command_table::{COMMANDS, ChatCommand};

/// Names that are proposed for one that is not known.
const PROPOSED_MAX: usize = 3;
/// How much two names must have in common, of 1.
const SIMILARITY_MIN: f64 = 0.75;

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnteredInput {
    Command(ChatCommand),
    /// A command of this client that is not complete, or has too much; what to do.
    Wrong(String),
    /// A command that is not one of this client's.
    Other(String),
    Message,
}

impl EnteredInput {
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
            return Self::Wrong(format!("{name} takes no argument"));
        }
        if command.needs_arguments() && rest.is_empty() {
            return match name {
                "/open" => Self::Command(ChatCommand::Sessions),
                _ => Self::Wrong(format!("{name} needs an argument: {}", command.arguments)),
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
    let close: Vec<&str> = close.iter().take(PROPOSED_MAX).map(|(_, name)| *name).collect();
    let proposal = match close.as_slice() {
        [] => "/help lists all.".to_owned(),
        close => format!("did you mean {}?", close.join(", ")),
    };
    format!("there is no command {name}: {proposal} To send it as a message, type \\{name}")
}

#[cfg(test)]
mod tests {
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
            ("/steer left\na bit", ChatCommand::Steer(text("left\na bit"))),
        ] {
            assert_eq!(EnteredInput::parse(line), EnteredInput::Command(command), "{line:?}");
        }
        for line in ["quit", "", " /quit", "\\/quit", "/etc/passwd is there", "/", "//"] {
            assert_eq!(EnteredInput::parse(line), EnteredInput::Message, "{line:?}");
        }
        for (line, name) in [("/review the code", "/review"), ("/quitt", "/quitt")] {
            assert_eq!(EnteredInput::parse(line), EnteredInput::Other(text(name)), "{line:?}");
        }
        for (line, why) in [
            ("/new idea: fork it", "/new takes no argument"),
            ("/steer", "/steer needs an argument: TEXT"),
            ("/rename ", "/rename needs an argument: TITLE"),
        ] {
            assert_eq!(EnteredInput::parse(line), EnteredInput::Wrong(text(why)), "{line:?}");
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
}
