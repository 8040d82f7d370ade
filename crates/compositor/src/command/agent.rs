//! Commands that an agent knows by itself: they are for it alone, and it gets them as they were typed (AG-28).
//!
//! Promises: names are bounded and can be typed; what the host does itself keeps its name, but for `/compact`.
//! Must not know: which agent it is.

use std::collections::BTreeMap;

use super::{Catalogue, CommandEffect, Entry, Source};
use crate::parse;

/// Commands of one agent.
const COMMANDS_MAX: usize = 256;

/// Characters of a name and of a description.
const NAME_CHARS_MAX: usize = 128;
const DESCRIPTION_CHARS_MAX: usize = 300;

/// What shortens a conversation: only who remembers it can do that.
const COMPACT: &str = "/compact";

/// What an agent can be told to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentCommands {
    pub commands: Vec<AgentCommandEntry>,
    /// Why the host cannot do `/compact` for this agent, if it cannot.
    pub compact_refusal: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommandEntry {
    /// Without the slash; may be several words.
    pub name: String,
    pub description: Option<String>,
    pub hint: Option<String>,
    /// Whether it stands for a text ([`CommandEffect::Prompt`]).
    pub expands: bool,
}

impl AgentCommands {
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.compact_refusal.is_none()
    }
}

impl Catalogue {
    /// Adds the commands of an agent. Those of files with the same name are reached by their qualified name: the agent reads
    /// such files itself.
    pub fn add_agent_commands(&mut self, agent: &AgentCommands) {
        if let Some(reason) = &agent.compact_refusal
            && let Some(entry) = self.entries.get_mut(COMPACT)
        {
            entry.effect = CommandEffect::Refused { reason: reason.clone() };
        }
        for command in agent.commands.iter().take(COMMANDS_MAX) {
            if !is_agent_command_name(&command.name) {
                continue; // it could not be typed
            }
            self.add_agent_command(command);
        }
    }

    fn add_agent_command(&mut self, command: &AgentCommandEntry) {
        let id = format!("/{}", command.name);
        let (source, effect) = if command.expands {
            (
                Source::Mcp {
                    server: String::new(), // it is in the name
                },
                CommandEffect::Prompt { name: command.name.clone(), answers: BTreeMap::new() },
            )
        } else {
            (Source::Agent, CommandEffect::Agent { name: command.name.clone() })
        };
        let entry = Entry {
            source,
            description: command.description.as_deref().map(one_line),
            argument_hint: command.hint.as_deref().map(one_line),
            effect,
        };
        let is_ours = |entry: &Entry| matches!(entry.effect, CommandEffect::Refused { .. });
        if id == COMPACT && self.entries.get(&id).is_some_and(is_ours) {
            self.entries.insert(id, entry);
        } else {
            // Two of one name are nobody's mistake here: each can be reached.
            let _ = self.insert(&command.name, entry);
        }
    }

    /// The id of the agent's command of several words that a text begins with: the longest there is.
    pub(crate) fn find_phrase(&self, text: &str) -> Option<&str> {
        let begins = |id: &&str| {
            let rest = text.strip_prefix(id);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        };
        self.phrases().filter(begins).max_by_key(|id| id.len())
    }

    /// The ids of commands that are several words.
    pub fn phrases(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str).filter(|id| id.contains(' '))
    }
}

/// A first word like that of any command, and others that can be read.
pub(super) fn is_agent_command_name(name: &str) -> bool {
    let mut words = name.split(' ');
    let first = words.next().unwrap_or_default();
    let is_word = |word: &str| {
        let is_shown = |c: char| !c.is_control() && !c.is_whitespace();
        !word.is_empty() && word.chars().all(is_shown)
    };
    parse::is_command_name(first) && words.all(is_word) && name.chars().count() <= NAME_CHARS_MAX
}

/// Words of an agent in a list: short, and without anything that controls a terminal.
fn one_line(text: &str) -> String {
    let chars = text
        .trim()
        .chars()
        .take(DESCRIPTION_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c });
    chars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Mentions;

    fn command(name: &str) -> AgentCommandEntry {
        AgentCommandEntry { name: name.to_owned(), description: None, hint: None, expands: false }
    }

    fn with(names: &[&str]) -> AgentCommands {
        AgentCommands {
            commands: names.iter().map(|name| command(name)).collect(),
            compact_refusal: Some("it remembers by itself".to_owned()),
        }
    }

    fn effect<'a>(catalogue: &'a Catalogue, id: &str) -> Option<&'a CommandEffect> {
        catalogue.lookup(id).map(|entry| &entry.effect)
    }

    #[test]
    fn ag_28_the_host_keeps_its_names_but_for_compact() {
        let agents = |name: &str| CommandEffect::Agent { name: name.to_owned() };
        let mut catalogue = Catalogue::built_in();
        catalogue.add_agent_commands(&with(&["compact", "help", "init"]));
        assert_eq!(effect(&catalogue, "/compact"), Some(&agents("compact")));
        assert_eq!(effect(&catalogue, "/help"), Some(&CommandEffect::Action));
        // The agent's own is reached by a longer name.
        assert_eq!(effect(&catalogue, "/agent:help"), Some(&agents("help")));
        assert_eq!(effect(&catalogue, "/init"), Some(&agents("init")));
        let mut without = Catalogue::built_in();
        without.add_agent_commands(&with(&["init"]));
        assert!(matches!(effect(&without, "/compact"), Some(CommandEffect::Refused { .. })));
        let mut other = Catalogue::built_in();
        other.add_agent_commands(&AgentCommands::default());
        assert_eq!(other, Catalogue::built_in());
    }

    #[test]
    fn ag_28_the_agents_command_wins_over_a_file_of_the_project() {
        let mut catalogue = Catalogue::built_in();
        let entry = Entry {
            source: Source::Project,
            description: None,
            argument_hint: None,
            effect: CommandEffect::Template {
                body: "Review.".to_owned(),
                mentions: Mentions::Literal,
            },
        };
        catalogue.insert("review", entry.clone());
        catalogue.add_agent_commands(&with(&["review"]));
        assert_eq!(catalogue.lookup("/review").unwrap().source, Source::Agent);
        assert_eq!(catalogue.lookup("/project:review"), Some(&entry));
    }

    #[test]
    fn ag_28_names_of_several_words_are_found_by_their_longest_beginning() {
        let mut catalogue = Catalogue::built_in();
        catalogue.add_agent_commands(&with(&["memory", "memory show", "memory show all"]));
        for (text, expected) in [
            ("/memory show", Some("/memory show")),
            ("/memory show x", Some("/memory show")),
            ("/memory show all", Some("/memory show all")),
            ("/memory show\nall", Some("/memory show")),
            ("/memory shows", None),
            ("/memory", None),
            ("memory show", None),
        ] {
            assert_eq!(catalogue.find_phrase(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ag_28_what_an_agent_says_is_bounded_and_plain() {
        let many: Vec<AgentCommandEntry> = (0..1_000).map(|n| command(&format!("c{n}"))).collect();
        let mut catalogue = Catalogue::new();
        catalogue.add_agent_commands(&AgentCommands { commands: many, compact_refusal: None });
        assert_eq!(catalogue.iter().count(), 256);
        let mut catalogue = Catalogue::new();
        let mut long = command("long");
        long.description = Some(format!("a\u{1b}[2J\n{}", "x".repeat(1_000)));
        let names = ["", " a", "a  b", "a\nb", "/a", "a\u{7}", "-x", "a \u{1b}"];
        let mut commands: Vec<AgentCommandEntry> = names.iter().map(|name| command(name)).collect();
        commands.push(command(&"n".repeat(129)));
        commands.push(long);
        catalogue.add_agent_commands(&AgentCommands { commands, compact_refusal: None });
        let ids: Vec<&str> = catalogue.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["/long"]);
        let entry = catalogue.lookup("/long").unwrap();
        let description = entry.description.as_deref().unwrap();
        assert_eq!(description.chars().count(), 300);
        assert!(description.starts_with("a [2J x"), "{description}");
    }
}
