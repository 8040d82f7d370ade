//! One pass over the files of a project, and how much it may read.

use std::time::{Duration, Instant};

use super::checked_text::is_name;
use super::customization::{Child, Container};
use super::known_texts::KnownTexts;
use super::warning::{Warning, WarningKind};
use crate::directory::{Directory, EntryKind, Listing};
use crate::{Workspace, WorkspacePath};

/// Files that are read.
const FILES_MAX: usize = 1_000;

/// What is read of them in all.
const BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// How long it may take: a user waits for it.
const TIME_MAX: Duration = Duration::from_millis(1_000);

const WARNINGS_MAX: usize = 64;

/// Of a file whose name, or that of something in it, may not enter a session's state.
const UNSHOWABLE_NAME: &str = "its name, or one in it, is too long or cannot be shown";

/// What containers hold in all; so no one holds more.
pub(super) const CHILDREN_MAX: usize = 512;

pub(super) struct Scan<'a> {
    pub(super) workspace: &'a Workspace,
    files_left: usize,
    bytes_left: usize,
    deadline: Instant,
    visited: Vec<WorkspacePath>,
    warnings: Vec<Warning>,
    has_warned_of_limit: bool,
    /// What was read before; nothing for who looks once.
    texts: KnownTexts,
}

impl<'a> Scan<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self::with_texts(workspace, KnownTexts::default())
    }

    /// The same for who looks again and again: files that did not change are not read.
    pub(super) fn with_texts(workspace: &'a Workspace, texts: KnownTexts) -> Self {
        Self {
            workspace,
            files_left: FILES_MAX,
            bytes_left: BYTES_MAX,
            deadline: Instant::now() + TIME_MAX,
            visited: Vec::new(),
            warnings: Vec::new(),
            has_warned_of_limit: false,
            texts,
        }
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }

    /// A warning about a file.
    pub(super) fn warn_of(&mut self, kind: WarningKind, path: &WorkspacePath, reason: &str) {
        let path = self.workspace.absolute_path(path);
        self.warn(Warning::new(kind, format!("{}: {reason}", path.display())));
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        self.warnings
    }

    /// A directory that a project may have; `None` if it does not, or if it was visited already under another name.
    pub(super) fn directory(&mut self, path: &WorkspacePath) -> Option<Directory> {
        if self.is_spent() {
            return None;
        }
        match self.workspace.directory_if_exists(path) {
            Ok(directory) => {
                let directory = directory?;
                if self.visited.contains(&directory.path) {
                    return None;
                }
                self.visited.push(directory.path.clone());
                Some(directory)
            }
            Err(error) => {
                self.warn_of(WarningKind::Unreadable, path, &error.to_string());
                None
            }
        }
    }

    /// The entries of a directory; `None` after a warning.
    pub(super) fn list(&mut self, directory: &Directory) -> Option<Listing> {
        if self.is_spent() {
            return None;
        }
        match self.workspace.list_directory(directory) {
            Ok(listing) => Some(listing),
            Err(error) => {
                let kind = WarningKind::Unreadable;
                self.warn_of(kind, &directory.path, &error.to_string());
                None
            }
        }
    }

    /// The beginning of a text file, and whether there is more; `None` if it is not there, or after a warning.
    pub(super) fn read(
        &mut self,
        path: &WorkspacePath,
        bytes_max: usize,
    ) -> Option<(String, bool)> {
        if self.is_spent() {
            return None;
        }
        let prefix = match self.texts.read_prefix(self.workspace, path, bytes_max) {
            Ok(prefix) => prefix?,
            Err(error) => {
                self.warn_of(WarningKind::Unreadable, path, &error.to_string());
                return None;
            }
        };
        self.files_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(prefix.bytes.len());
        let text = decode_text(prefix.bytes, prefix.is_cut);
        if text.is_none() {
            self.warn_of(WarningKind::Invalid, path, "it is not UTF-8 text");
        }
        text.map(|text| (text, prefix.is_cut))
    }

    /// The whole of a text file; `None` if it is not there, or after a warning.
    pub(super) fn read_whole(&mut self, path: &WorkspacePath, bytes_max: usize) -> Option<String> {
        let (text, is_cut) = self.read(path, bytes_max)?;
        if is_cut {
            self.warn_invalid(path, &format!("it is larger than {} KiB", bytes_max / 1_024));
        }
        (!is_cut).then_some(text)
    }

    /// The files of a directory whose names end in one of these; the first ending that fits is taken off.
    pub(super) fn files(
        &mut self,
        directory: &Directory,
        endings: &[&'static str],
    ) -> Vec<FoundFile> {
        let listing = self.list(directory);
        let entries = listing.iter().flat_map(|listing| &listing.entries);
        let files =
            entries.filter(|entry| entry.kind != EntryKind::Directory).filter_map(|entry| {
                // What is no text could not be typed.
                let name = entry.name.to_str()?;
                let mut endings = endings.iter();
                let (stem, ending) =
                    endings.find_map(|ending| Some((name.strip_suffix(ending)?, *ending)))?;
                Some(FoundFile { path: entry.path.clone(), stem: stem.to_owned(), ending })
            });
        files.filter(|file| !file.stem.is_empty()).collect()
    }

    /// The directories in a directory that a project may have.
    pub(super) fn subdirectories(&mut self, path: &WorkspacePath) -> Vec<WorkspacePath> {
        let directory = self.directory(path);
        let listing = directory.and_then(|directory| self.list(&directory));
        let entries = listing.iter().flat_map(|listing| &listing.entries);
        let directories = entries.filter(|entry| entry.kind == EntryKind::Directory);
        directories.map(|entry| entry.path.clone()).collect()
    }

    /// Adds a child, unless the container has one of the same kind and name. False if no more may be added.
    #[must_use]
    pub(super) fn add_child(
        &mut self,
        container: &mut Container,
        child: Child,
        path: &WorkspacePath,
    ) -> bool {
        if container.children.len() >= CHILDREN_MAX || self.is_spent() {
            self.warn_of_limit();
            container.note_more();
            return false;
        }
        if !is_name(&child.name) {
            self.warn_of(WarningKind::Name, path, UNSHOWABLE_NAME);
            return true;
        }
        let mut others = container.children.iter();
        let kind = child.content.kind();
        match others.find(|other| other.name == child.name && other.content.kind() == kind) {
            None => container.children.push(child),
            Some(other) => {
                let reason = format!("{} has the same name and is used", other.uri);
                self.warn_of(WarningKind::Name, path, &reason);
            }
        }
        true
    }

    pub(super) fn warn_invalid(&mut self, path: &WorkspacePath, reason: &str) {
        self.warn_of(WarningKind::Invalid, path, reason);
    }

    pub(super) fn uri(&self, path: &WorkspacePath) -> String {
        self.workspace.uri(path)
    }

    /// How many warnings there are, to ask later which came since.
    pub(super) fn problem_count(&self) -> usize {
        self.warnings.len()
    }

    /// The warnings that came since there were so many.
    pub(super) fn problems_since(&self, count: usize) -> Vec<String> {
        self.warnings.iter().skip(count).map(Warning::to_string).collect()
    }

    /// Whether nothing more may be read; the first time, with a warning.
    fn is_spent(&mut self) -> bool {
        if self.files_left > 0 && self.bytes_left > 0 && Instant::now() < self.deadline {
            return false;
        }
        self.warn_of_limit();
        true
    }

    /// Says once that not everything was read.
    pub(super) fn warn_of_limit(&mut self) {
        if !std::mem::replace(&mut self.has_warned_of_limit, true) {
            self.warnings.truncate(WARNINGS_MAX - 1);
            let message = "there are too many commands and skills; not all were read".to_owned();
            self.warn(Warning::new(WarningKind::LimitReached, message));
        }
    }
}

/// A file by its name without the ending that says what it is.
pub(super) struct FoundFile {
    pub(super) path: WorkspacePath,
    pub(super) stem: String,
    pub(super) ending: &'static str,
}

/// Text, of which the last character may be cut.
fn decode_text(mut bytes: Vec<u8>, is_cut: bool) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    if is_cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}
