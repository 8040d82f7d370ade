//! Completions for what a user is typing: commands after a `/`, files, skills and contexts after an `@`, files after a `#`.
//!
//! Promises: an answer never waits for a walk over all files; that is done in the background and is bounded, and so is
//! the answer.
//! Must not know: channels, peers, how a suggestion is sent.

mod path_index;
mod paths;
mod ranking;
mod token;

use std::collections::BTreeSet;
use std::sync::Arc;

use compositor::Catalogue;
use compositor::command::agent::AgentCommands;
use compositor::command::{CommandEffect, Entry};

pub use paths::{IndexedPath, PathKind, Paths};

use crate::ClientPluginCopy;
use crate::discovery::{Discovered, DiscoveryCache, Skill};
use path_index::PathIndexes;
use token::{Token, TokenKind};

/// Suggestions of one answer.
pub const SUGGESTIONS_MAX: usize = 50;

/// Skills among files: there are not so many that one must scroll.
const SKILLS_AMONG_FILES_MAX: usize = 10;

/// A text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// `file:` URIs, the default one first.
    pub working_directories: Vec<String>,
    /// Plugins that clients brought.
    pub brought: Vec<ClientPluginCopy>,
    /// Ids of customizations that are switched off.
    pub switched_off: BTreeSet<String>,
    pub text: String,
    /// Where the cursor is, in UTF-16 units.
    pub offset: u64,
    /// The contexts that a client sends (C-065): nothing else would resolve.
    pub contexts: Vec<String>,
    /// What the agent can be told to do that the text is for (AG-28).
    pub agent_commands: AgentCommands,
}

/// The cursor is not in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`offset` must be from 0 to the length of `text` in UTF-16 units")]
pub struct OffsetOutsideText;

/// What a suggestion replaces, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    /// What it begins with: `/`, `@` or `#`.
    pub sigil: char,
}

/// Something that the text may be completed to.
#[derive(Debug, Clone, Copy)]
pub enum Suggestion<'a> {
    Command { id: &'a str, entry: &'a Entry },
    Context(&'a str),
    Skill(&'a Skill),
    Path(IndexedPath<'a>),
}

/// Answers completion requests. A handle: clones share the indexes of files.
#[derive(Debug, Clone, Default)]
pub struct Completer {
    discovery: DiscoveryCache,
    indexes: Arc<PathIndexes>,
}

impl Completer {
    pub fn new(discovery: DiscoveryCache) -> Self {
        Self { discovery, indexes: Arc::default() }
    }

    /// Suggestions, the likeliest first, each as `make` represents it; it may leave one out. Blocks for the files of
    /// commands and skills, and briefly if there is no index of files yet.
    pub fn complete<T>(
        &self,
        request: &CompletionRequest,
        make: impl FnMut(Suggestion<'_>, Span) -> Option<T>,
    ) -> Result<Vec<T>, OffsetOutsideText> {
        let token = match token::find(&request.text, request.offset)? {
            Some(token) => Some(token),
            None => {
                let names =
                    request.agent_commands.commands.iter().map(|command| command.name.as_str());
                token::find_phrase(&request.text, request.offset, names)?
            }
        };
        let Some(token) = token else {
            // Nothing is being typed that could be completed.
            return Ok(Vec::new());
        };
        let directories = &request.working_directories;
        let discovered = match token.kind {
            TokenKind::Command | TokenKind::Skill | TokenKind::Any => Some(
                self.discovery.get_enabled(directories, &request.brought, &request.switched_off),
            ),
            TokenKind::File => None,
        };
        let of_files = discovered.as_ref().map(|found| &found.catalogue);
        let with_agent = match (of_files, request.agent_commands.is_empty()) {
            (Some(of_files), false) => {
                let mut catalogue = of_files.clone();
                catalogue.add_agent_commands(&request.agent_commands);
                Some(catalogue)
            }
            _ => None,
        };
        let paths = match token.kind {
            TokenKind::File | TokenKind::Any => {
                let confinement = self.discovery.confinement();
                self.indexes.paths(directories, confinement)
            }
            TokenKind::Command | TokenKind::Skill => Arc::default(),
        };
        let known = SuggestedNames {
            catalogue: with_agent.as_ref().or(of_files),
            skills: discovered.as_ref().map_or(&[], |found| &found.skills),
            contexts: &request.contexts,
        };
        Ok(suggest_for(&token, &known, &paths, make))
    }
}

/// The same from what is in memory: what a completion costs once files are indexed.
pub fn suggest<T>(
    text: &str,
    offset: u64,
    discovered: &Discovered,
    paths: &Paths,
    make: impl FnMut(Suggestion<'_>, Span) -> Option<T>,
) -> Result<Vec<T>, OffsetOutsideText> {
    let token = token::find(text, offset)?;
    Ok(token.map_or_else(Vec::new, |token| {
        let known = SuggestedNames {
            catalogue: Some(&discovered.catalogue),
            skills: &discovered.skills,
            contexts: &[],
        };
        suggest_for(&token, &known, paths, make)
    }))
}

/// What there is beside files.
struct SuggestedNames<'a> {
    catalogue: Option<&'a Catalogue>,
    skills: &'a [Skill],
    contexts: &'a [String],
}

fn suggest_for<T>(
    token: &Token<'_>,
    known: &SuggestedNames<'_>,
    paths: &Paths,
    mut make: impl FnMut(Suggestion<'_>, Span) -> Option<T>,
) -> Vec<T> {
    let mut suggestions = Vec::new();
    if token.kind == TokenKind::Any {
        let contexts = known
            .contexts
            .iter()
            .filter(|name| name.starts_with(token.query))
            .take(SUGGESTIONS_MAX / 2);
        suggestions.extend(contexts.map(|name| Suggestion::Context(name)));
    }
    let among_files = SKILLS_AMONG_FILES_MAX;
    match token.kind {
        TokenKind::Command => {
            let catalogue = known.catalogue.into_iter();
            suggestions.extend(catalogue.flat_map(|catalogue| commands(catalogue, token)));
        }
        TokenKind::Skill => suggestions.extend(skills(known.skills, token, SUGGESTIONS_MAX)),
        TokenKind::Any => suggestions.extend(skills(known.skills, token, among_files)),
        TokenKind::File => {}
    }
    let remaining = SUGGESTIONS_MAX.saturating_sub(suggestions.len());
    let best = paths.best(token.query, remaining);
    suggestions.extend(best.into_iter().map(Suggestion::Path));
    debug_assert!(suggestions.len() <= SUGGESTIONS_MAX);
    let span = Span { start: token.start, end: token.end, sigil: token.sigil };
    suggestions.into_iter().filter_map(|suggestion| make(suggestion, span)).collect()
}

/// All that match, the built-in ones first if nothing is typed yet (G-40).
fn commands<'a>(catalogue: &'a Catalogue, token: &Token<'_>) -> Vec<Suggestion<'a>> {
    let can_be_done = |entry: &Entry| !matches!(entry.effect, CommandEffect::Refused { .. });
    let mut all: Vec<_> = catalogue.iter().filter(|(_, entry)| can_be_done(entry)).collect();
    all.sort_by(|(_, one), (_, other)| one.source.cmp(&other.source));
    let best = ranking::best_names(
        token.query,
        all,
        |(id, _)| id.trim_start_matches('/'),
        SUGGESTIONS_MAX,
    );
    best.into_iter().map(|(id, entry)| Suggestion::Command { id, entry }).collect()
}

fn skills<'a>(skills: &'a [Skill], token: &Token<'_>, max: usize) -> Vec<Suggestion<'a>> {
    let skills: Vec<&Skill> = skills.iter().filter(|skill| skill.is_for_users()).collect();
    let best = ranking::best_names(token.query, skills, |skill| &skill.name, max);
    best.into_iter().map(Suggestion::Skill).collect()
}
