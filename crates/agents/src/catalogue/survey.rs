//! One look at the files of a project, and what it may cost.

use std::time::{Duration, Instant};

use crate::tool::Workspace;
use crate::tool::workspace::{Folder, Listing, Place};

/// Files that are read.
const FILES_MAX: usize = 1_000;

/// What is read of them in all.
const BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// How long it may take: somebody waits for it.
const TIME_MAX: Duration = Duration::from_millis(1_000);

const WARNINGS_MAX: usize = 64;

pub(super) struct Survey<'a> {
    pub(super) workspace: &'a Workspace,
    files_left: usize,
    bytes_left: usize,
    until: Instant,
    looked_into: Vec<Place>,
    warnings: Vec<String>,
    is_over: bool,
}

impl<'a> Survey<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            files_left: FILES_MAX,
            bytes_left: BYTES_MAX,
            until: Instant::now() + TIME_MAX,
            looked_into: Vec::new(),
            warnings: Vec::new(),
            is_over: false,
        }
    }

    pub(super) fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            // A name must not be able to look like a line of its own.
            self.warnings
                .push(warning.replace(char::is_control, "\u{fffd}"));
        }
    }

    /// A warning about a file.
    pub(super) fn warn_of(&mut self, place: &Place, why: &str) {
        let path = self.workspace.absolute(place);
        self.warn(format!("{}: {why}", path.display()));
    }

    pub(super) fn warnings(self) -> Vec<String> {
        self.warnings
    }

    /// A directory that a project may have; `None` if it has not, or if it was looked into already under another name.
    pub(super) fn directory(&mut self, place: &Place) -> Option<Folder> {
        match self.workspace.folder_if_there(place) {
            Ok(folder) => {
                let folder = folder?;
                if self.looked_into.contains(&folder.place) {
                    return None;
                }
                self.looked_into.push(folder.place.clone());
                Some(folder)
            }
            Err(error) => {
                self.warn_of(place, &error.to_string());
                None
            }
        }
    }

    /// What is in a directory.
    pub(super) fn look_into(&mut self, folder: &Folder) -> Option<Listing> {
        if self.is_spent() {
            return None;
        }
        match self.workspace.look_into(folder) {
            Ok(listing) => Some(listing),
            Err(error) => {
                self.warn_of(&folder.place, &error.to_string());
                None
            }
        }
    }

    /// How a text file begins, and whether it goes on; `None` if it is not there or no good.
    pub(super) fn read(&mut self, place: &Place, bytes_max: usize) -> Option<(String, bool)> {
        if self.is_spent() {
            return None;
        }
        let beginning = match self.workspace.beginning(place, bytes_max) {
            Ok(beginning) => beginning?,
            Err(error) => {
                self.warn_of(place, &error.to_string());
                return None;
            }
        };
        self.files_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(beginning.bytes.len());
        let text = text_of(beginning.bytes, beginning.is_cut);
        if text.is_none() {
            self.warn_of(place, "it is no UTF-8 text");
        }
        text.map(|text| (text, beginning.is_cut))
    }

    fn is_spent(&mut self) -> bool {
        if self.files_left > 0 && self.bytes_left > 0 && Instant::now() < self.until {
            return false;
        }
        if !std::mem::replace(&mut self.is_over, true) {
            self.warnings.truncate(WARNINGS_MAX - 1);
            self.warn("there are too many commands and skills; not all were read".to_owned());
        }
        true
    }
}

/// Text, of which the last character may be cut.
fn text_of(mut bytes: Vec<u8>, is_cut: bool) -> Option<String> {
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
