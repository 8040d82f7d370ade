//! The text of `rules.toml`: reads rules from it, and adds and removes one.
//!
//! Promises: whatever else is in the text stays as it is, comments too. A text that is not understood, down to a key that
//! nobody knows, is an error with its line: a rule that was meant to deny must not be overlooked.
//! Must not know: files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    let document = Document::parse(text);
    let document = document.map_err(|error| {
        let message = error.message().lines().next().unwrap_or("").to_owned();
        at_line(text, error.span(), &message)
    })?;
    let mut reader = RulesReader {
        text,
        rules: Vec::new(),
        session_directories: BTreeMap::new(),
    };
    for (name, item) in document.iter() {
        match name {
            ALWAYS => reader.read_lists(item, &RuleScope::Always)?,
            PROJECT => reader.read_each(item, |name| RuleScope::Project(PathBuf::from(name)))?,
            SESSION => reader.read_each(item, |name| RuleScope::Session(name.to_owned()))?,
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
    Ok(RuleSet::new(reader.rules, reader.session_directories))
}

struct RulesReader<'a> {
    text: &'a str,
    rules: Vec<PermissionRule>,
    session_directories: BTreeMap<String, String>,
}

impl RulesReader<'_> {
    /// The tables of all projects, or of all sessions.
    fn read_each(&mut self, item: &Item, scope: fn(&str) -> RuleScope) -> Result<(), RulesError> {
        let Some(tables) = item.as_table_like() else {
            return Err(self.error(item, "this must be a table"));
        };
        for (name, item) in tables.iter() {
            let scope = scope(name);
            if let RuleScope::Project(directory) = &scope
                && !directory.is_absolute()
            {
                return Err(self.error(item, "the directory of a project is an absolute path"));
            }
            self.read_lists(item, &scope)?;
        }
        Ok(())
    }

    fn read_lists(&mut self, item: &Item, scope: &RuleScope) -> Result<(), RulesError> {
        let Some(lists) = item.as_table_like() else {
            return Err(self.error(
                item,
                "this must be a table with the lists `allow`, `ask`, `deny`",
            ));
        };
        for (name, item) in lists.iter() {
            let effect = RuleEffect::ALL
                .into_iter()
                .find(|effect| effect.name() == name);
            match (effect, scope, item.as_str()) {
                (Some(effect), _, _) => self.read_list(item, scope, effect)?,
                (None, RuleScope::Session(session), Some(directory)) if name == DIRECTORY => {
                    let names = &mut self.session_directories;
                    names.insert(session.clone(), directory.to_owned());
                }
                (None, _, _) => {
                    let message = format!("there is no `{name}`; lists are `allow`, `ask`, `deny`");
                    return Err(self.error(item, &message));
                }
            }
        }
        Ok(())
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
            let text = value
                .as_str()
                .ok_or_else(|| wrong("a rule is a text in quotes"))?;
            let pattern = Pattern::parse(text).map_err(|error| wrong(&error.to_string()))?;
            self.rules.push(PermissionRule {
                scope: scope.clone(),
                effect,
                pattern,
            });
        }
        Ok(())
    }

    fn error(&self, item: &Item, message: &str) -> RulesError {
        at_line(self.text, item.span(), message)
    }
}

fn at_line(text: &str, span: Option<Range<usize>>, message: &str) -> RulesError {
    RulesError(data_file::at_line(text, span, message))
}

/// The text with one rule more; as it was if it is there. `directory` is where a session works.
pub fn add_rule(
    text: &str,
    rule: &PermissionRule,
    directory: Option<&Path>,
) -> Result<String, RulesError> {
    let known = parse(text)?;
    if known.rules().contains(rule) {
        return Ok(text.to_owned());
    }
    if known.rules().len() >= RULES_MAX {
        return Err(RulesError(format!("there are {RULES_MAX} rules already")));
    }
    let mut document = document_of(text)?;
    let table = scope_table(&mut document, &rule.scope)?;
    if let (RuleScope::Session(_), Some(directory), false) =
        (&rule.scope, directory, table.contains_key(DIRECTORY))
    {
        let directory = directory.display().to_string();
        table.insert(DIRECTORY, Item::Value(Value::from(directory)));
    }
    let list = table
        .entry(rule.effect.name())
        .or_insert(Item::Value(Value::Array(Array::new())));
    let list = list.as_array_mut();
    let list = list.ok_or_else(|| RulesError(format!("`{}` is not a list", rule.effect.name())))?;
    push(list, rule.pattern.as_str());
    if let RuleScope::Session(_) = rule.scope {
        drop_oldest_sessions(&mut document);
    }
    let changed = document.to_string();
    // What was added must be what will be read.
    match parse(&changed)?.rules().contains(rule) {
        true => Ok(changed),
        false => Err(RulesError(
            "the rule cannot be written into this file".to_owned(),
        )),
    }
}

/// The text without a rule; none if it is not there.
pub fn remove_rule(text: &str, rule: &PermissionRule) -> Result<Option<String>, RulesError> {
    if !parse(text)?.rules().contains(rule) {
        return Ok(None);
    }
    let mut document = document_of(text)?;
    let table = scope_table(&mut document, &rule.scope)?;
    let list = table.get_mut(rule.effect.name());
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
    let text = match text.trim().is_empty() {
        true => &template(),
        false => text,
    };
    text.parse()
        .map_err(|error: toml_edit::TomlError| RulesError(error.message().to_owned()))
}

/// The table of a scope, made if it is not there.
fn scope_table<'a>(
    document: &'a mut DocumentMut,
    scope: &RuleScope,
) -> Result<&'a mut dyn TableLike, RulesError> {
    let no_table = || RulesError(format!("`{}` is not a table", scope.name()));
    // Comments of a file without tables stay at its beginning.
    let prefix = match document.is_empty() {
        true => {
            let comments = document.trailing().as_str().unwrap_or("").to_owned();
            document.set_trailing("");
            format!("{comments}\n")
        }
        false => "\n".to_owned(),
    };
    let own = match scope {
        RuleScope::Always => None,
        RuleScope::Project(directory) => {
            let name = directory.to_str();
            let reason = "rules can only be stored for a directory whose name is text";
            Some(name.ok_or_else(|| RulesError(reason.to_owned()))?)
        }
        RuleScope::Session(session) => Some(session.as_str()),
    };
    let mut table = Table::new();
    table.set_implicit(own.is_some());
    table.decor_mut().set_prefix(&prefix);
    let outer = document.entry(scope.name()).or_insert(Item::Table(table));
    let outer = outer.as_table_like_mut().ok_or_else(no_table)?;
    let Some(own) = own else {
        return Ok(outer);
    };
    let mut table = Table::new();
    table.decor_mut().set_prefix(&prefix);
    let inner = outer.entry(own).or_insert(Item::Table(table));
    inner.as_table_like_mut().ok_or_else(no_table)
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
    // What a session may not do is not forgotten for what another one may.
    let only_allows = |item: &Item| {
        let table = item.as_table_like();
        table.is_some_and(|table| !table.contains_key("deny") && !table.contains_key("ask"))
    };
    let names = sessions.iter().filter(|(_, item)| only_allows(item));
    let names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    for name in names.iter().take(names.len().saturating_sub(SESSIONS_MAX)) {
        sessions.remove(name);
    }
}
