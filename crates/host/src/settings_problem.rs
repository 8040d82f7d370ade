//! What is wrong with a settings file: in which line, with which key, and what was probably meant.
//!
//! Promises: a key that is not known comes with the nearest one that is; the message is short and on one line.
//! Must not know: what the settings are for.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::limits::LimitsTable;

/// Keys that are less alike than this are not worth a guess: 1 means equal.
const ALIKE_MIN: f64 = 0.8;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsProblem {
    pub line: Option<usize>,
    pub key: Option<String>,
    /// What was probably meant by a key that is not known.
    pub nearest: Option<String>,
    pub message: String,
}

/// As it follows the name of the file.
impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl SettingsProblem {
    /// A file that is no TOML, or holds a key or a type that is not expected.
    pub(crate) fn of_file(text: &str, error: &toml::de::Error) -> Self {
        let message = error.message();
        if let Some(key) = find_quoted(message, "unknown field `") {
            return Self::of_unknown_key(text, key, message);
        }
        let line = error.span().map(|span| line_of(text, span.start));
        let key = line.and_then(|line| key_in_line(text, line));
        let message = first_line(message);
        Self {
            line,
            message: match &key {
                Some(key) if !message.contains(key.as_str()) => format!("{key}: {message}"),
                _ => message,
            },
            key,
            nearest: None,
        }
    }

    /// A value that cannot work; the message begins with its key.
    pub(crate) fn of_value(text: &str, message: String) -> Self {
        let name = message.split([' ', ':']).next().unwrap_or_default();
        let path: Vec<&str> = name.split('.').collect();
        let line = find_path(text, &path).map(|offset| line_of(text, offset));
        Self { key: line.map(|_| name.to_owned()), line, nearest: None, message }
    }

    /// A value that cannot work, in one of several tables of the same name.
    pub(crate) fn of_entry(
        text: &str,
        table: &str,
        index: usize,
        key: &str,
        message: String,
    ) -> Self {
        let offset = find_in_entry(text, table, index, key);
        Self {
            line: offset.map(|offset| line_of(text, offset)),
            key: Some(key.to_owned()),
            nearest: None,
            message,
        }
    }

    fn of_unknown_key(text: &str, key: &str, message: &str) -> Self {
        let found = find_key(text, key);
        let in_limits = found.as_ref().is_some_and(|found| found.table == "limits");
        // The parts of that table are checked one after the other, and name only their own keys.
        let known: Vec<&str> =
            if in_limits { LimitsTable::keys().collect() } else { find_expected(message) };
        let nearest = nearest(key, &known).map(str::to_owned);
        let full = match &found {
            Some(found) if !found.table.is_empty() => format!("{}.{key}", found.table),
            _ => key.to_owned(),
        };
        let guess = match &nearest {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => String::new(),
        };
        Self {
            line: found.map(|found| line_of(text, found.offset)),
            message: format!("there is no setting `{full}`{guess}"),
            key: Some(key.to_owned()),
            nearest,
        }
    }
}

/// What stands between a beginning and the next quote.
fn find_quoted<'a>(message: &'a str, beginning: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(beginning)?;
    rest.split('`').next()
}

/// The keys that a message names as those that are expected.
fn find_expected(message: &str) -> Vec<&str> {
    let (_, list) = message.split_once("expected").unwrap_or(("", ""));
    list.split('`').skip(1).step_by(2).collect()
}

fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let alike = |other: &str| strsim::jaro_winkler(key, other);
    let best = known.iter().copied().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(best) >= ALIKE_MIN).then_some(best)
}

/// Counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// The key that a line sets.
fn key_in_line(text: &str, line: usize) -> Option<String> {
    let (key, _) = text.lines().nth(line - 1)?.split_once('=')?;
    let key = key.trim();
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (!key.is_empty() && key.chars().all(is_key)).then(|| key.to_owned())
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

/// Where a key is written, and in which table.
struct FoundKey {
    table: String,
    offset: usize,
}

fn find_key(text: &str, key: &str) -> Option<FoundKey> {
    let document = DeTable::parse(text).ok()?;
    find_in_table(document.get_ref(), "", key)
}

fn find_in_table(table: &DeTable<'_>, name: &str, key: &str) -> Option<FoundKey> {
    for (found, value) in table {
        if found.get_ref() == key {
            return Some(FoundKey { table: name.to_owned(), offset: found.span().start });
        }
        if let Some(found) = find_in_value(value, found.get_ref(), key) {
            return Some(found);
        }
    }
    None
}

fn find_in_value(value: &Spanned<DeValue<'_>>, name: &str, key: &str) -> Option<FoundKey> {
    match value.get_ref() {
        DeValue::Table(table) => find_in_table(table, name, key),
        DeValue::Array(items) => items.iter().find_map(|item| find_in_value(item, name, key)),
        _ => None,
    }
}

/// Where the key at the end of a path through tables is written.
fn find_path(text: &str, path: &[&str]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut offset = None;
    for name in path {
        let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        offset = Some(key.span().start);
        if let DeValue::Table(inner) = value.get_ref() {
            table = inner;
        }
    }
    offset
}

/// Where a key of one of several tables is written; where the table is, if it has no such key.
fn find_in_entry(text: &str, table: &str, index: usize, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let tables = document.get_ref().get(table)?.get_ref().as_array()?;
    let entry = tables.get(index)?;
    let keys = entry.get_ref().as_table()?.keys();
    let found = keys.into_iter().find(|found| found.get_ref() == key);
    Some(found.map_or(entry.span().start, |found| found.span().start))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{Config, ConfigError};

    fn problem(text: &str) -> SettingsProblem {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        std::fs::write(&path, text).unwrap();
        match Config::default_for(PathBuf::new()).load_toml(&path) {
            Err(ConfigError::Invalid { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_typing_error_is_located_and_the_right_key_is_named() {
        for (text, line, key, nearest) in [
            ("\nlisen = \"127.0.0.1:1\"\n", 2, "lisen", Some("listen")),
            ("[limits]\nconections_max = 3\n", 2, "conections_max", Some("connections_max")),
            ("[limits]\nclient_max = 3\n", 2, "client_max", Some("clients_max")),
            ("[[models]]\nid = \"a\"\nbase_ur = \"http://h/v1\"\n", 3, "base_ur", Some("base_url")),
            ("limits = { zzzz = 3 }\n", 1, "zzzz", None),
            ("[[agents]]\nid = \"claude\"\ncomand = \"x\"\n", 3, "comand", Some("command")),
        ] {
            let found = problem(text);
            assert_eq!(found.line, Some(line), "{found:?}");
            assert_eq!(found.key.as_deref(), Some(key));
            assert_eq!(found.nearest.as_deref(), nearest, "{found:?}");
            assert!(!found.message.contains('\n') && found.message.len() < 120, "{found:?}");
        }
    }

    #[test]
    fn wrong_values_are_located() {
        for (text, line, words) in [
            ("scripted = true\nlisten = 5\n", 2, "listen"),
            ("[limits]\nshutdown_ms = 9000\n", 2, "limits.shutdown_ms must be at most"),
            ("tool_env = [\"A*\"]\n", 1, "tool_env"),
            ("scripted = true\nbash_timeout_s = 601\n", 2, "bash_timeout_s"),
            ("web_fetch_allow = [\"*\"]\n", 1, "web_fetch_allow"),
            ("listen = \"127.0.0.1:1\"\nscripted = \n", 2, "scripted"),
            ("scripted = true\ntrusted = [\"~/src\"]\n", 2, "trusted"),
            (
                "[[agents]]\nid = \"claude\"\n[[agents]]\nid = \"x\"\ncommand = \"x y\"\n",
                5,
                "command of the agent `x`",
            ),
            (
                "[[agents]]\nid = \"claude\"\n\n[[agents]]\nid = \"y\"\n",
                4,
                "command of the agent `y`",
            ),
            ("[[agents]]\nid = \"claude\"\ntrust = \"yes\"\n", 3, "trust"),
            ("[[agents]]\nid = \"claude\"\n[agents.env_from]\nA = 5\n", 3, "env_from"),
        ] {
            let found = problem(text);
            assert_eq!(found.line, Some(line), "{found:?}");
            assert!(found.message.contains(words), "{found:?}");
            assert!(found.to_string().starts_with(&format!(":{line}: ")));
        }
    }
}
