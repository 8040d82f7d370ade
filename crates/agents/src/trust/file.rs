//! The text of `trust.toml`: which directories were trusted, by whom, when, and with which files in them.
//!
//! Promises: a text that is not understood is an error with its line. Bounded.
//! Must not know: files of the disk.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data_file::at_line;

/// Its name in the data directory.
pub const TRUST_FILE: &str = "trust.toml";

/// Directories that are trusted for good.
const DIRECTORIES_MAX: usize = 1_000;

/// Directories that are trusted in one session: the oldest go when there are more.
const SESSION_ENTRIES_MAX: usize = 200;

/// Answers about single things: the oldest go when there are more.
const ITEMS_MAX: usize = 1_000;

const HEAD: &str = "# Directories in which agents may be started. `greenroom agents trust` lists and changes them.\n\n";

/// What was answered of one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustEntry {
    /// Absolute, without links.
    pub directory: PathBuf,
    /// The session that it holds for; for all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it was said.
    pub since: String,
    /// Who said it: a client by its id.
    pub by: String,
    /// What was found then that can run commands, as [shown](super::printable_path).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// What was answered of one thing that a file of a directory declares (TR-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemEntry {
    /// Absolute, without links.
    pub directory: PathBuf,
    /// `mcp:NAME`.
    pub item: String,
    /// SHA-256 of the declaration: another one asks again.
    pub digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub since: String,
    pub by: String,
}

/// All of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustText {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) trusted: Vec<TrustEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<ItemEntry>,
}

pub(super) fn parse(text: &str) -> Result<TrustText, String> {
    let read: Result<TrustText, toml::de::Error> = toml::from_str(text);
    let entries = read.map_err(|error| {
        let message = error.message().lines().next().unwrap_or("");
        at_line(text, error.span(), message)
    })?;
    let mut directories = entries
        .trusted
        .iter()
        .map(|entry| &entry.directory)
        .chain(entries.items.iter().map(|item| &item.directory));
    if let Some(directory) = directories.find(|directory| !directory.is_absolute()) {
        let directory = super::printable_path(directory);
        return Err(format!("`{directory}` is not an absolute path"));
    }
    let is_too_long = entries.trusted.len() > DIRECTORIES_MAX + SESSION_ENTRIES_MAX
        || entries.items.len() > ITEMS_MAX;
    if is_too_long { Err("there are too many entries in it".to_owned()) } else { Ok(entries) }
}

/// The text with an item more, in the place of an older answer about it.
pub(super) fn add_item(text: &str, item: ItemEntry) -> Result<String, String> {
    let mut entries = parse(text)?;
    let is_same = |other: &ItemEntry| {
        (&other.directory, &other.item, &other.session)
            == (&item.directory, &item.item, &item.session)
    };
    entries.items.retain(|other| !is_same(other));
    // The oldest answers go when there are too many: they are asked for again.
    let too_many = (entries.items.len() + 1).saturating_sub(ITEMS_MAX);
    entries.items.drain(..too_many);
    entries.items.push(item);
    write(&entries)
}

/// The text with an entry more, in the place of an older one of the same directory and session.
pub(super) fn add(text: &str, entry: TrustEntry) -> Result<String, String> {
    let mut all = parse(text)?;
    let mut entries = std::mem::take(&mut all.trusted);
    let is_same = |other: &TrustEntry| {
        (&other.directory, &other.session) == (&entry.directory, &entry.session)
    };
    entries.retain(|other| !is_same(other));
    let of_sessions = entries.iter().filter(|entry| entry.session.is_some()).count();
    if entry.session.is_some() {
        drop_oldest(&mut entries, (of_sessions + 1).saturating_sub(SESSION_ENTRIES_MAX))
    } else if entries.len() - of_sessions >= DIRECTORIES_MAX {
        return Err(format!(
            "{DIRECTORIES_MAX} directories are trusted already; `greenroom agents trust --revoke DIR` takes one out"
        ));
    }
    entries.push(entry);
    all.trusted = entries;
    write(&all)
}

fn drop_oldest(entries: &mut Vec<TrustEntry>, mut count: usize) {
    entries.retain(|entry| {
        let goes = entry.session.is_some() && count > 0;
        count -= usize::from(goes);
        !goes
    });
}

/// The text without what was said of a directory, in any session; none if nothing was.
pub(super) fn remove(text: &str, directory: &std::path::Path) -> Result<Option<String>, String> {
    let mut entries = parse(text)?;
    let count = |entries: &TrustText| entries.trusted.len() + entries.items.len();
    let before = count(&entries);
    entries.trusted.retain(|entry| entry.directory != directory);
    entries.items.retain(|item| item.directory != directory);
    if count(&entries) == before { Ok(None) } else { write(&entries).map(Some) }
}

fn write(entries: &TrustText) -> Result<String, String> {
    let text =
        toml::to_string(entries).map_err(|error| format!("it cannot be written: {error}"))?;
    Ok(format!("{HEAD}{text}"))
}
