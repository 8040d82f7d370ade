//! Commands: which there are (C-042, C-043) and which of them the host carries out itself (C-040).
//!
//! A catalogue is only read here; its entries are discovered by the crate that may read files.

pub mod agent;
pub mod args;
pub mod template;

use std::collections::BTreeMap;

use wire::Object;

use crate::parse;
use crate::part::{Part, View};

/// Where a command comes from. The order is that of precedence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    BuiltIn,
    /// The agent that the message is for.
    Agent,
    Project,
    User,
    Skill,
    Mcp {
        server: String,
    },
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEffect {
    /// The host does something before the model sees the message.
    Action,
    /// The text after it is sent with an intent.
    Intent(String),
    /// Expands to a text.
    Template { body: String, mentions: Mentions },
    /// Expands to a text that is sent with an intent.
    Directed { intent: String, body: String, mentions: Mentions },
    /// The text after it is sent, and a skill is suggested.
    Skill { skill: String },
    /// The agent gets it as it was typed, under the name that it has there (AG-28).
    Agent { name: String },
    /// Expands to a text that somebody else knows, by the words after it (MC-12). Without an answer for those words nothing is
    /// expanded yet; an answer may be a refusal.
    Prompt { name: String, answers: BTreeMap<String, Result<String, String>> },
    /// It cannot be done here: a message with it is refused, with the reason.
    Refused { reason: String },
}

/// Whether tokens such as `@file:` in an expansion mean anything (C-052).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mentions {
    Resolved,
    Literal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub source: Source,
    pub description: Option<String>,
    pub argument_hint: Option<String>,
    pub effect: CommandEffect,
}

/// The commands a message may name, by their id, such as `/review`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    entries: BTreeMap<String, Entry>,
    /// Entries whose name another one has, by their qualified id.
    shadowed: BTreeMap<String, Entry>,
}

/// Id, hint and description of what the host can do itself.
const BUILT_IN: [(&str, Option<&str>, &str); 8] = [
    ("/archive", None, "Archive this session"),
    ("/branch", Some("[title]"), "Continue in a copy of this chat"),
    ("/compact", Some("[what to keep]"), "Shorten what the model sees of this chat"),
    ("/help", None, "List the commands"),
    ("/redo", None, "Bring back the file changes that were undone last"),
    ("/retry-attachments", None, "Send the model attachments that it refused before"),
    ("/rewind", Some("[turns]"), "Remove the last turns of this chat, then ask about their files"),
    ("/undo", None, "Restore the files that the last turn changed; asks first"),
];

impl Catalogue {
    pub fn new() -> Self {
        Self::default()
    }

    /// What every host can do.
    pub fn built_in() -> Self {
        let entry = |(id, hint, description): &(&str, Option<&str>, &str)| {
            let entry = Entry {
                source: Source::BuiltIn,
                description: Some((*description).to_owned()),
                argument_hint: hint.map(str::to_owned),
                effect: CommandEffect::Action,
            };
            ((*id).to_owned(), entry)
        };
        Self { entries: BTreeMap::from_iter(BUILT_IN.iter().map(entry)), shadowed: BTreeMap::new() }
    }

    /// Adds a command, with or without its slash. The answer is a warning for the operator: the name cannot be typed, or
    /// two commands have it and the one of lower precedence is reached by its qualified name only (C-043).
    pub fn insert(&mut self, name: &str, entry: Entry) -> Option<String> {
        let name = name.strip_prefix('/').unwrap_or(name);
        let is_name = match entry.source {
            Source::Agent => agent::is_agent_command_name(name),
            _ => parse::is_command_name(name),
        };
        if !is_name {
            let name = crate::diagnostics::quoted(name);
            return Some(format!("command: {name} is not a name that can be typed"));
        }
        let id = format!("/{name}");
        let Some(other) = self.entries.get(&id) else {
            self.entries.insert(id, entry);
            return None;
        };
        let loser = if entry.source < other.source {
            self.entries.insert(id.clone(), entry)?
        } else {
            entry
        };
        let warning = match qualify_name(name, &loser.source) {
            Some(qualified) if !self.shadowed.contains_key(&qualified) => {
                let warning = format!("command: two are named {id}; one of them is {qualified}");
                self.shadowed.insert(qualified, loser);
                warning
            }
            _ => format!("command: two are named {id}; one of them cannot be reached"),
        };
        Some(warning)
    }

    /// The command of an id such as `/review`, by its plain name or qualified by where it comes from.
    pub fn lookup(&self, id: &str) -> Option<&Entry> {
        self.entries
            .get(id)
            .or_else(|| self.shadowed.get(id))
            .or_else(|| self.by_qualified_name(id))
    }

    fn by_qualified_name(&self, id: &str) -> Option<&Entry> {
        let bare = id.strip_prefix('/')?;
        // Names may have colons themselves; what comes before them has two at the most.
        let mut names = bare.match_indices(':').take(2).map(|(at, _)| &bare[at + 1..]);
        names.find_map(|name| {
            let entry = self.entries.get(&format!("/{name}"))?;
            (qualify_name(name, &entry.source).as_deref() == Some(id)).then_some(entry)
        })
    }

    /// Says what a [prompt](CommandEffect::Prompt) is with the words that were typed after it.
    pub fn answer_prompt(&mut self, used: PromptUse, answer: Result<String, String>) {
        if let Some(entry) = self.entries.get_mut(&used.id)
            && let CommandEffect::Prompt { answers, .. } = &mut entry.effect
        {
            answers.insert(used.raw, answer);
        }
    }

    /// All of them in the order of their ids; those whose plain name belongs to another by their qualified one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let mut all: Vec<_> = self.entries.iter().chain(&self.shadowed).collect();
        all.sort_by_key(|(id, _)| *id);
        all.into_iter().map(|(id, entry)| (id.as_str(), entry))
    }
}

fn qualify_name(name: &str, source: &Source) -> Option<String> {
    match source {
        Source::BuiltIn => None,
        Source::Agent => Some(format!("/agent:{name}")),
        Source::Project => Some(format!("/project:{name}")),
        Source::User => Some(format!("/user:{name}")),
        Source::Skill => Some(format!("/skill:{name}")),
        Source::Mcp { server } => Some(format!("/mcp:{server}:{name}")),
    }
}

/// A prompt in a message whose text is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptUse {
    /// With its slash.
    pub id: String,
    /// As whoever knows the text calls it.
    pub name: String,
    /// What was typed after it, and its words.
    pub raw: String,
    pub words: Vec<String>,
}

/// Something the host is to do before the model sees a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAction {
    /// With its slash: `/branch`.
    pub name: String,
    /// What was typed after it.
    pub raw: String,
    pub argv: Vec<String>,
}

/// Whether an id is that of something the host does itself. Nothing else can have such an id: what is built in wins.
pub fn is_action(id: &str) -> bool {
    BUILT_IN.iter().any(|(known, ..)| *known == id)
}

/// How many things one message may have the host do. More is never meant.
pub const ACTIONS_MAX: usize = 16;

/// What the host is to do itself, in the order of the parts; what is beyond [`ACTIONS_MAX`] is not done.
pub fn host_actions(parts: &[Part]) -> Vec<CommandAction> {
    parts.iter().filter_map(action_in).take(ACTIONS_MAX).collect()
}

fn action_in(part: &Part) -> Option<CommandAction> {
    let View::Command(command) = part.view() else { return None };
    command.is_action().then(|| action(command.id, command.args))
}

fn action(id: &str, args: &Object) -> CommandAction {
    let (raw, argv) = args::read(args);
    CommandAction { name: id.to_owned(), raw, argv }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(source: Source, body: &str) -> Entry {
        Entry {
            source,
            description: None,
            argument_hint: None,
            effect: CommandEffect::Template { body: body.to_owned(), mentions: Mentions::Literal },
        }
    }

    fn body<'a>(catalogue: &'a Catalogue, id: &str) -> Option<&'a str> {
        match &catalogue.lookup(id)?.effect {
            CommandEffect::Template { body, .. } => Some(body),
            _ => None,
        }
    }

    #[test]
    fn c_042_the_built_in_ones_are_there_and_do_something() {
        let catalogue = Catalogue::built_in();
        let ids: Vec<&str> = catalogue.iter().map(|(id, _)| id).collect();
        let expected = [
            "/archive",
            "/branch",
            "/compact",
            "/help",
            "/redo",
            "/retry-attachments",
            "/rewind",
            "/undo",
        ];
        assert_eq!(ids, expected);
        for id in expected {
            assert_eq!(catalogue.lookup(id).unwrap().effect, CommandEffect::Action);
            assert!(is_action(id));
        }
        assert!(!is_action("/review"));
    }

    #[test]
    fn c_043_the_nearer_source_wins_and_the_other_has_a_longer_name() {
        let mcp = || Source::Mcp { server: "docs".to_owned() };
        let mut catalogue = Catalogue::built_in();
        assert_eq!(catalogue.insert("review", template(mcp(), "m")), None);
        assert!(catalogue.insert("/review", template(Source::Skill, "s")).is_some());
        assert!(catalogue.insert("review", template(Source::Project, "p")).is_some());
        assert!(catalogue.insert("review", template(Source::User, "u")).is_some());
        assert_eq!(body(&catalogue, "/review"), Some("p"));
        assert_eq!(body(&catalogue, "/project:review"), Some("p"));
        assert_eq!(body(&catalogue, "/user:review"), Some("u"));
        assert_eq!(body(&catalogue, "/skill:review"), Some("s"));
        assert_eq!(body(&catalogue, "/mcp:docs:review"), Some("m"));
        assert_eq!(body(&catalogue, "/mcp:other:review"), None);
        assert_eq!(catalogue.insert("git:log", template(Source::Project, "g")), None);
        assert_eq!(body(&catalogue, "/project:git:log"), Some("g"));
        assert_eq!(catalogue.insert("git:show", template(mcp(), "h")), None);
        assert_eq!(body(&catalogue, "/mcp:docs:git:show"), Some("h"));

        let warning = catalogue.insert("compact", template(Source::Project, "x"));
        assert!(warning.unwrap().contains("/project:compact"));
        assert_eq!(catalogue.lookup("/compact").unwrap().effect, CommandEffect::Action);
        assert_eq!(body(&catalogue, "/project:compact"), Some("x"));
        // The first of two of the same rank wins.
        let warning = catalogue.insert("review", template(Source::Project, "q"));
        assert!(warning.is_some());
        assert_eq!(body(&catalogue, "/review"), Some("p"));
    }

    #[test]
    fn a_name_that_cannot_be_typed_is_not_taken() {
        let mut catalogue = Catalogue::new();
        for name in ["", "/", "a b", "-x", "ä", "a/b"] {
            assert!(catalogue.insert(name, template(Source::User, "")).is_some());
        }
        assert_eq!(catalogue.iter().count(), 0);
    }

    #[test]
    fn c_051_host_actions_are_recognised_with_and_without_arguments() {
        let part = |value| Part::from_value(value).unwrap();
        let parts = [
            part(json!({"type": "command", "id": "/compact", "args": {}})),
            part(json!({"type": "text", "text": "/branch"})),
            part(json!({"type": "command", "id": "/branch", "args": {"raw": "'a b' c"}})),
            part(json!({"type": "command", "id": "/review", "args": {}})),
            part(json!({"type": "command", "id": "/help"})),
        ];
        let actions = host_actions(&parts);
        assert_eq!(actions.len(), 2);
        assert_eq!(actions[0].name, "/compact");
        assert_eq!((actions[1].raw.as_str(), actions[1].argv.len()), ("'a b' c", 2));
    }
}
