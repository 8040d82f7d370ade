//! The text of `rules.toml`: reads rules from it, and adds and removes one.
//!
//! Promises: whatever else is in the text stays as it is, comments too. A text that is not understood, down to a key that
//! nobody knows, is an error with its line: a rule that was meant to deny must not be overlooked.
//! Must not know: files.

use std::ops::Range;
use std::path::PathBuf;

use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike, Value};

use super::pattern::Pattern;
use super::rule_set::{PermissionRule, RuleEffect, RuleScope, RuleSet};
use crate::data_file;

/// Its name in the data directory.
pub const RULES_FILE: &str = "rules.toml";

/// Rules of one file.
const RULES_MAX: usize = 4_096;

/// Sessions whose rules are stored: those of the oldest go when there are more.
const SESSIONS_MAX: usize = 200;

const SESSION: &str = "session";
const PROJECT: &str = "project";
const ALWAYS: &str = "always";
const DIRECTORY: &str = "directory";

const NO_LISTS: &str = "this must be a table with the lists `allow`, `ask`, `deny`";

/// Why rules cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RulesError(pub String);

/// What a new file says.
pub fn template() -> String {
    "# What agents may do without asking. `deny` wins over `ask`, `ask` over `allow`.\n\
     # A rule is a tool, or a tool and what it is about:\n\
     #   bash(cargo test:*)   commands that begin with `cargo test`; each of `a && b` must be allowed\n\
     #   bash(git status)     this very command\n\
     #   edit(src/**)         changing files in src, by whatever tool; read(..) likewise\n\
     #   web_fetch(domain:example.com)\n\
     # `greenroom rules check bash 'cargo test'` says which rule decides.\n"
        .to_owned()
}

/// The rules of a text.
pub fn parse(text: &str) -> Result<RuleSet, RulesError> {
    let document = Document::parse(text).map_err(|error| {
        let message = error.message().lines().next().unwrap_or("").to_owned();
        at_line(text, error.span(), &message)
    })?;
    let mut reader = RulesReader { text, rules: Vec::new() };
    for (name, item) in document.iter() {
        match name {
            ALWAYS => reader.read_lists(item, &RuleScope::Always)?,
            PROJECT => reader.read_projects(item)?,
            SESSION => reader.read_sessions(item)?,
            _ => {
                let message = format!(
                    "there is no `{name}`; tables are `always`, `project.\"DIRECTORY\"`, `session.\"NAME\"`"
                );
                return Err(at_line(text, item.span(), &message));
            }
        }
    }
    if reader.rules.len() > RULES_MAX {
        return Err(RulesError(format!("there are more than {RULES_MAX} rules")));
    }
    Ok(RuleSet::new(reader.rules))
}

struct RulesReader<'a> {
    text: &'a str,
    rules: Vec<PermissionRule>,
}

impl RulesReader<'_> {
    fn read_projects(&mut self, item: &Item) -> Result<(), RulesError> {
        for (name, item) in self.table(item, "this must be a table")?.iter() {
            let directory = PathBuf::from(name);
            if !directory.is_absolute() {
                return Err(self.error(item, "the directory of a project is an absolute path"));
            }
            self.read_lists(item, &RuleScope::Project(directory))?;
        }
        Ok(())
    }

    /// A session's table holds lists, and tables of lists by the directory that they hold in.
    fn read_sessions(&mut self, item: &Item) -> Result<(), RulesError> {
        for (session, item) in self.table(item, "this must be a table")?.iter() {
            let fields = self.table(item, NO_LISTS)?;
            // Files of before have one directory for the whole table.
            let of_table = fields.get(DIRECTORY).and_then(Item::as_str);
            for (name, item) in fields.iter() {
                let (is_path, is_text) = (name.starts_with('/'), item.is_str());
                match list_named(name) {
                    Some(effect) => {
                        let scope = RuleScope::Session {
                            session: session.to_owned(),
                            directory: of_table.map(PathBuf::from),
                        };
                        self.read_list(item, &scope, effect)?;
                    }
                    None if is_path => {
                        let scope = RuleScope::Session {
                            session: session.to_owned(),
                            directory: Some(PathBuf::from(name)),
                        };
                        self.read_lists(item, &scope)?;
                    }
                    None if is_text && name == DIRECTORY => {}
                    None => {
                        let message = format!(
                            "there is no `{name}`; a session has `allow`, `ask`, `deny`, and tables by directory"
                        );
                        return Err(self.error(item, &message));
                    }
                }
            }
        }
        Ok(())
    }

    fn read_lists(&mut self, item: &Item, scope: &RuleScope) -> Result<(), RulesError> {
        for (name, item) in self.table(item, NO_LISTS)?.iter() {
            let Some(effect) = list_named(name) else {
                let message = format!("there is no `{name}`; lists are `allow`, `ask`, `deny`");
                return Err(self.error(item, &message));
            };
            self.read_list(item, scope, effect)?;
        }
        Ok(())
    }

    fn table<'i>(&self, item: &'i Item, wrong: &str) -> Result<&'i dyn TableLike, RulesError> {
        item.as_table_like().ok_or_else(|| self.error(item, wrong))
    }

    fn read_list(
        &mut self,
        item: &Item,
        scope: &RuleScope,
        effect: RuleEffect,
    ) -> Result<(), RulesError> {
        let Some(list) = item.as_array() else {
            return Err(self.error(item, "this must be a list of rules in quotes"));
        };
        for value in list {
            let wrong = |message: &str| at_line(self.text, value.span(), message);
            let text = value.as_str().ok_or_else(|| wrong("a rule is a text in quotes"))?;
            let pattern = Pattern::parse(text).map_err(|error| wrong(&error.to_string()))?;
            self.rules.push(PermissionRule { scope: scope.clone(), effect, pattern });
        }
        Ok(())
    }

    fn error(&self, item: &Item, message: &str) -> RulesError {
        at_line(self.text, item.span(), message)
    }
}

fn list_named(name: &str) -> Option<RuleEffect> {
    let mut effects = RuleEffect::ALL.into_iter();
    effects.find(|effect| effect.name() == name)
}

fn at_line(text: &str, span: Option<Range<usize>>, message: &str) -> RulesError {
    RulesError(data_file::at_line(text, span, message))
}

/// The text with one rule more; as it was if it is there.
pub fn add_rule(text: &str, rule: &PermissionRule) -> Result<String, RulesError> {
    let known = parse(text)?;
    if known.rules().contains(rule) {
        return Ok(text.to_owned());
    }
    if known.rules().len() >= RULES_MAX {
        return Err(RulesError(format!("there are {RULES_MAX} rules already")));
    }
    let mut document = document_of(text)?;
    let table = scope_table(&mut document, &rule.scope)?;
    let list = table
        .entry(rule.effect.name())
        .or_insert(Item::Value(Value::Array(Array::new())))
        .as_array_mut();
    let list = list.ok_or_else(|| RulesError(format!("`{}` is not a list", rule.effect.name())))?;
    push(list, rule.pattern.as_str());
    if let RuleScope::Session { .. } = rule.scope {
        drop_oldest_sessions(&mut document);
    }
    let changed = document.to_string();
    // What was added must be what will be read.
    if parse(&changed)?.rules().contains(rule) {
        Ok(changed)
    } else {
        Err(RulesError("the rule cannot be written into this file".to_owned()))
    }
}

/// The text without a rule; none if it is not there.
pub fn remove_rule(text: &str, rule: &PermissionRule) -> Result<Option<String>, RulesError> {
    if !parse(text)?.rules().contains(rule) {
        return Ok(None);
    }
    let mut document = document_of(text)?;
    let list = scope_table(&mut document, &rule.scope)?.get_mut(rule.effect.name());
    if let Some(list) = list.and_then(Item::as_array_mut) {
        let is_other = |value: &Value| {
            let pattern = value.as_str().and_then(|text| Pattern::parse(text).ok());
            pattern.as_ref() != Some(&rule.pattern)
        };
        list.retain(is_other);
    }
    Ok(Some(document.to_string()))
}

fn document_of(text: &str) -> Result<DocumentMut, RulesError> {
    let text = if text.trim().is_empty() { &template() } else { text };
    text.parse().map_err(|error: toml_edit::TomlError| RulesError(error.message().to_owned()))
}

/// The table of a scope, made if it is not there.
fn scope_table<'a>(
    document: &'a mut DocumentMut,
    scope: &RuleScope,
) -> Result<&'a mut dyn TableLike, RulesError> {
    let no_table = || RulesError(format!("`{}` is not a table", scope.name()));
    // Comments of a file without tables stay at its beginning.
    let prefix = if document.is_empty() {
        let comments = document.trailing().as_str().unwrap_or("").to_owned();
        document.set_trailing("");
        format!("{comments}\n")
    } else {
        "\n".to_owned()
    };
    let text = |directory: &'_ PathBuf| {
        let reason = "rules can only be stored for a directory whose name is text";
        directory.to_str().map(str::to_owned).ok_or_else(|| RulesError(reason.to_owned()))
    };
    let path = match scope {
        RuleScope::Always => Vec::new(),
        RuleScope::Project(directory) => vec![text(directory)?],
        RuleScope::Session { session, directory } => {
            let directory = directory.as_ref().map(text).transpose()?;
            std::iter::once(session.clone()).chain(directory).collect()
        }
    };
    let mut item = document.as_item_mut();
    let mut names = std::iter::once(scope.name().to_owned()).chain(path).peekable();
    while let Some(name) = names.next() {
        let mut table = Table::new();
        table.set_implicit(names.peek().is_some());
        table.decor_mut().set_prefix(&prefix);
        let tables = item.as_table_like_mut().ok_or_else(no_table)?;
        item = tables.entry(&name).or_insert(Item::Table(table));
    }
    item.as_table_like_mut().ok_or_else(no_table)
}

/// The text without the rules of a session; none if it has none.
pub fn remove_session(text: &str, session: &str) -> Result<Option<String>, RulesError> {
    let known = parse(text)?;
    if !known.rules().iter().any(|rule| rule.is_of_session(session)) {
        return Ok(None);
    }
    let mut document = document_of(text)?;
    let sessions = document.get_mut(SESSION).and_then(Item::as_table_like_mut);
    if let Some(sessions) = sessions {
        sessions.remove(session);
    }
    Ok(Some(document.to_string()))
}

/// Puts a rule behind the others, on a line of its own as they are.
fn push(list: &mut Array, rule: &str) {
    let mut value = Value::from(rule);
    let is_broken = |value: &Value| {
        let prefix = value.decor().prefix().and_then(|prefix| prefix.as_str());
        prefix.is_some_and(|prefix| prefix.contains('\n'))
    };
    if list.is_empty() || list.iter().any(is_broken) {
        // What stands between the last rule and the bracket, a comment perhaps, stays before the new one.
        let before = list.trailing().as_str().unwrap_or("").trim_end().to_owned();
        value.decor_mut().set_prefix(format!("{before}\n    "));
        list.set_trailing("\n");
        list.set_trailing_comma(true);
        list.push_formatted(value);
    } else {
        list.push(value);
    }
}

fn drop_oldest_sessions(document: &mut DocumentMut) {
    let sessions = document.get_mut(SESSION).and_then(Item::as_table_like_mut);
    let Some(sessions) = sessions else {
        return; // no session has rules
    };
    let names: Vec<String> = sessions
        .iter()
        .filter(|(_, item)| !restricts(item))
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in names.iter().take(names.len().saturating_sub(SESSIONS_MAX)) {
        sessions.remove(name);
    }
}

/// Whether a table, or one in it, denies or asks: what a session may not do is not forgotten for what another one may.
fn restricts(item: &Item) -> bool {
    let table = item.as_table_like();
    table.is_some_and(|table| {
        let mut fields = table.iter();
        fields.any(|(name, item)| match list_named(name) {
            Some(RuleEffect::Deny | RuleEffect::Ask) => true,
            Some(RuleEffect::Allow) => false,
            None => restricts(item),
        })
    })
}
