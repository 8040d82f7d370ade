//! What may be meant by what somebody has begun to type: commands after a `/`, files, skills and contexts after an `@`
//! (compositor.md 3.4).
//!
//! Promises: an answer never waits for a look at all files; that is done beside it and is bounded, and so is the answer.
//! Must not know: channels, peers, how an answer is sent.

mod index;
mod item;
mod path;
mod token;
mod top;

use std::sync::Arc;

use serde_json::Value;

pub use path::{Kind, Paths};

use crate::catalogue::{Catalogues, Discovered};
use index::Indexes;
use item::{CONTEXTS, Span};
use token::{Token, Wanted};

/// Items of one answer.
pub const ITEMS_MAX: usize = 50;

/// Skills among files: nobody should have to scroll past them.
const SKILLS_AMONG_FILES_MAX: usize = 10;

/// What somebody is typing, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typing {
    /// `file:` URIs, the default one first.
    pub working_directories: Vec<String>,
    pub text: String,
    /// Where the cursor is, in UTF-16 units.
    pub offset: u64,
}

/// The cursor is not in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`offset` must be from 0 to the length of `text` in UTF-16 units")]
pub struct OutsideText;

/// Answers what may be meant.
#[derive(Debug, Clone, Default)]
pub struct Completer {
    catalogues: Catalogues,
    indexes: Arc<Indexes>,
}

impl Completer {
    pub fn new(catalogues: Catalogues) -> Self {
        Self {
            catalogues,
            indexes: Arc::default(),
        }
    }

    /// `CompletionItem`s, the likeliest first. Blocks for the files of commands and skills, and shortly if no list of files
    /// is there yet.
    pub fn complete(&self, typing: &Typing) -> Result<Vec<Value>, OutsideText> {
        let Some(token) = token::at(&typing.text, typing.offset)? else {
            return Ok(Vec::new());
        };
        let directories = &typing.working_directories;
        let found = match token.wanted {
            Wanted::Command | Wanted::Skill | Wanted::Any => Some(self.catalogues.of(directories)),
            Wanted::File => None,
        };
        let paths = match token.wanted {
            Wanted::File | Wanted::Any => self.indexes.paths(directories),
            Wanted::Command | Wanted::Skill => Arc::default(),
        };
        Ok(items(&token, found.as_deref(), &paths))
    }
}

/// The same from what is at hand: what a completion costs once files are known.
pub fn propose(
    text: &str,
    offset: u64,
    found: &Discovered,
    paths: &Paths,
) -> Result<Vec<Value>, OutsideText> {
    let token = token::at(text, offset)?;
    Ok(token.map_or_else(Vec::new, |token| items(&token, Some(found), paths)))
}

fn items(token: &Token<'_>, found: Option<&Discovered>, paths: &Paths) -> Vec<Value> {
    let span = Span {
        start: token.start,
        end: token.end,
    };
    let mut items = Vec::new();
    if token.wanted == Wanted::Any {
        let known = CONTEXTS.iter().filter(|name| name.starts_with(token.query));
        items.extend(known.map(|name| item::context(name, span)));
    }
    if let Some(found) = found {
        match token.wanted {
            Wanted::Command => items.extend(commands(found, token, span)),
            Wanted::Skill => items.extend(skills(found, token, span, ITEMS_MAX)),
            Wanted::Any => items.extend(skills(found, token, span, SKILLS_AMONG_FILES_MAX)),
            Wanted::File => {}
        }
    }
    let room = ITEMS_MAX.saturating_sub(items.len());
    let best = paths.best(token.query, room);
    items.extend(best.into_iter().filter_map(|path| item::file(path, span)));
    items
}

/// All that fit, those built in first if nothing is typed yet (G-40).
fn commands(found: &Discovered, token: &Token<'_>, span: Span) -> Vec<Value> {
    let mut all: Vec<_> = found.catalogue.iter().collect();
    all.sort_by(|(_, one), (_, other)| one.source.cmp(&other.source));
    let best = top::named(
        token.query,
        all,
        |(id, _)| id.trim_start_matches('/'),
        ITEMS_MAX,
    );
    best.into_iter()
        .map(|(id, entry)| item::command(id, entry, span))
        .collect()
}

fn skills(found: &Discovered, token: &Token<'_>, span: Span, max: usize) -> Vec<Value> {
    let skills = found.skills.iter().filter(|skill| skill.is_for_users());
    let best = top::named(token.query, skills.collect(), |skill| &skill.name, max);
    best.into_iter()
        .map(|skill| item::skill(skill, span))
        .collect()
}

#[cfg(test)]
mod tests;
