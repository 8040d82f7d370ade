//! Directories and what is in them, opened one by one beneath their root: a walk cannot be led out by a swap.
//!
//! Promises: entries in the order of their names; links are shown and never followed; git's own directory is passed
//! over; what one directory yields is bounded.
//! Must not know: what entries are looked for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::sync::Arc;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use super::beneath::{self, Links, Stat};
use super::ignored::Rules;
use super::{Place, ToolError, Workspace};

/// Entries of one directory that are looked at.
const ENTRIES_MAX: usize = 50_000;

/// What of a directory is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All but what ignore rules say.
    NotIgnored,
    All,
}

/// A directory to look into.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) place: Place,
    wanted: Wanted,
    rules: Option<Arc<Rules>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

/// What is in a directory.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    /// There is more than was looked at.
    pub(crate) is_cut: bool,
    wanted: Wanted,
    rules: Option<Arc<Rules>>,
}

impl Workspace {
    /// A directory that somebody named, with the rules that hold in it. What is named is looked into even if it is
    /// ignored itself; then only its own rules hold.
    pub(crate) fn folder(&self, place: &Place, wanted: Wanted) -> Result<Folder, ToolError> {
        let root = self.root(place);
        let told = |errno| beneath::told(errno, &self.shown(place));
        let opened = beneath::open_directory(&root.directory, &place.path, Links::Followed);
        let real = root.real_inside(&opened.map_err(told)?);
        let place = place.at(real.ok_or_else(|| told(Errno::AGAIN))?);
        let rules = match wanted {
            Wanted::NotIgnored => self.rules_above(&place),
            Wanted::All => None,
        };
        Ok(Folder {
            place,
            wanted,
            rules,
        })
    }

    fn rules_above(&self, place: &Place) -> Option<Arc<Rules>> {
        let mut rules = None;
        let mut at = place.at(std::path::PathBuf::new());
        for part in place.path.components() {
            let Component::Normal(name) = part else {
                continue;
            };
            rules = Rules::in_directory(self, &at, rules);
            at = at.join(name);
            let path = self.absolute(&at);
            rules = rules.filter(|rules| !rules.ignore(&path, Kind::Directory));
        }
        rules
    }

    /// What is in a directory.
    pub(crate) fn look_into(&self, folder: &Folder) -> Result<Listing, ToolError> {
        let place = &folder.place;
        let told = |errno| beneath::told(errno, &self.shown(place));
        let root = &self.root(place).directory;
        let directory = beneath::open_directory(root, &place.path, Links::Refused).map_err(told)?;
        let (mut found, is_cut) =
            entries(Dir::read_from(&directory).map_err(told)?, place).map_err(told)?;
        for entry in &mut found {
            // Some file systems tell the kind only when asked for it.
            if entry.kind == Kind::Other
                && let Ok(stat) = Stat::of_entry(&directory, &entry.name)
            {
                entry.kind = Kind::of(stat.kind);
            }
        }
        let mut rules = folder.rules.clone();
        if folder.wanted == Wanted::NotIgnored {
            let may_have_rules = |entry: &Entry| {
                matches!(entry.name.as_bytes(), b".ignore" | b".gitignore" | b".git")
            };
            if found.iter().any(may_have_rules) {
                rules = Rules::in_directory(self, place, rules);
            }
        }
        found.retain(|entry| {
            let ignored = rules
                .as_ref()
                .is_some_and(|rules| rules.ignore(&self.absolute(&entry.place), entry.kind));
            entry.name != OsStr::new(".git") && !ignored
        });
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Listing {
            entries: found,
            is_cut,
            wanted: folder.wanted,
            rules,
        })
    }
}

impl Listing {
    /// A directory among the entries.
    pub(crate) fn folder(&self, entry: &Entry) -> Option<Folder> {
        (entry.kind == Kind::Directory).then(|| Folder {
            place: entry.place.clone(),
            wanted: self.wanted,
            rules: self.rules.clone(),
        })
    }
}

impl Kind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

fn entries(mut directory: Dir, place: &Place) -> Result<(Vec<Entry>, bool), Errno> {
    let mut found = Vec::new();
    while let Some(entry) = directory.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() == ENTRIES_MAX {
            return Ok((found, true));
        }
        found.push(Entry {
            place: place.join(name),
            name: name.to_owned(),
            kind: Kind::of(entry.file_type()),
        });
    }
    Ok((found, false))
}
