//! Which directories are trusted: those of the settings file, and those that users answered for.
//!
//! Promises: what was recorded is on the disk when that is said. All functions block.
//! Must not know: how a user is asked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::command_files::CommandFiles;
use super::file::{self, ItemEntry, TRUST_FILE, TrustEntry, TrustText};
use crate::data_file::DataFile;

/// The directories that a host trusts.
#[derive(Debug)]
pub struct TrustStore {
    file: DataFile<TrustText>,
    /// Those of the settings file.
    configured: Vec<PathBuf>,
}

/// Why trust cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrustError(pub String);

/// Something that a file of a directory declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedItem<'a> {
    /// Absolute, without links.
    pub directory: &'a Path,
    /// `mcp:NAME`.
    pub name: &'a str,
    /// Of the declaration, and of what it starts.
    pub digest: &'a str,
}

/// How far a directory is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryTrust {
    Trusted,
    /// It was, and these files came since.
    Changed {
        fresh: Vec<String>,
    },
    /// Nobody said anything of it.
    Unknown,
}

impl TrustStore {
    /// What is trusted by a data directory, and by `trusted = [..]` of its settings file.
    pub fn new(data: &Path, configured: Vec<PathBuf>) -> Self {
        Self { file: DataFile::new(data, TRUST_FILE, file::parse), configured }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The directories of the settings file.
    pub fn configured(&self) -> &[PathBuf] {
        &self.configured
    }

    /// What users answered, oldest first. An error says what is wrong with the file, and then nothing is trusted by it.
    pub fn entries(&self) -> Result<Vec<TrustEntry>, TrustError> {
        let entries = self.file.load().map_err(TrustError)?;
        Ok(entries.trusted.clone())
    }

    /// What users answered about single things that files of directories declare, oldest first (TR-2).
    pub fn items(&self) -> Result<Vec<ItemEntry>, TrustError> {
        let entries = self.file.load().map_err(TrustError)?;
        Ok(entries.items.clone())
    }

    /// How far a directory is trusted in a session, with what was found in it. `directory` is absolute and without links.
    pub fn standing(
        &self,
        directory: &Path,
        session: Option<&str>,
        command_files: &CommandFiles,
    ) -> Result<DirectoryTrust, TrustError> {
        let is_configured = |trusted: &PathBuf| {
            // The settings file may name it by a link; one that is not there covers nothing.
            let real = std::fs::canonicalize(trusted);
            real.is_ok_and(|real| directory.starts_with(real))
        };
        if self.configured.iter().any(is_configured) {
            return Ok(DirectoryTrust::Trusted);
        }
        let entries = self.file.load().map_err(TrustError)?;
        let covers = |entry: &&TrustEntry| {
            let holds = entry.session.is_none() || entry.session.as_deref() == session;
            holds && directory.starts_with(&entry.directory)
        };
        let covering: Vec<&TrustEntry> = entries.trusted.iter().filter(covers).collect();
        if covering.is_empty() {
            return Ok(DirectoryTrust::Unknown);
        }
        let known: BTreeSet<&str> =
            covering.iter().flat_map(|entry| &entry.files).map(String::as_str).collect();
        let fresh = command_files.not_among(&known);
        Ok(if fresh.is_empty() {
            DirectoryTrust::Trusted
        } else {
            DirectoryTrust::Changed { fresh }
        })
    }

    /// Trusts a directory with the files that were found in it; it is on the disk afterwards.
    pub fn add(
        &self,
        directory: &Path,
        session: Option<&str>,
        by: &str,
        command_files: &CommandFiles,
    ) -> Result<(), TrustError> {
        if directory.to_str().is_none() {
            let reason = "a directory can only be remembered if its name is text";
            return Err(TrustError(format!("{TRUST_FILE}: {reason}")));
        }
        let entry = TrustEntry {
            directory: directory.to_owned(),
            session: session.map(str::to_owned),
            since: now(),
            by: by.to_owned(),
            files: command_files.files.clone(),
        };
        let added = self.file.change(|text| file::add(text, entry).map(Some));
        added.map(drop).map_err(TrustError)
    }

    /// Whether a thing that a file of a directory declares may be started in a session (TR-2).
    pub fn is_item_trusted(
        &self,
        item: TrustedItem<'_>,
        session: &str,
    ) -> Result<bool, TrustError> {
        let entries = self.file.load().map_err(TrustError)?;
        let covers = |entry: &ItemEntry| {
            let holds = entry.session.as_deref().is_none_or(|of| of == session);
            holds
                && entry.directory == item.directory
                && entry.item == item.name
                && entry.digest == item.digest
        };
        Ok(entries.items.iter().any(covers))
    }

    /// Trusts such a thing; it is on the disk afterwards.
    pub fn add_item(
        &self,
        item: TrustedItem<'_>,
        session: Option<&str>,
        by: &str,
    ) -> Result<(), TrustError> {
        let entry = ItemEntry {
            directory: item.directory.to_owned(),
            item: item.name.to_owned(),
            digest: item.digest.to_owned(),
            session: session.map(str::to_owned),
            since: now(),
            by: by.to_owned(),
        };
        let added = self.file.change(|text| file::add_item(text, entry).map(Some));
        added.map(drop).map_err(TrustError)
    }

    /// Takes back what was said of a directory, for good or in sessions. Whether anything was.
    pub fn revoke(&self, directory: &Path) -> Result<bool, TrustError> {
        let revoked = self.file.change(|text| file::remove(text, directory));
        revoked.map_err(TrustError)
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
