//! `[[mounts]]`: directories that a node offers to spaces of the database, under labels that spaces name.
//!
//! A label on one node ties its spaces to that node; on several it is a directory that they share, at the same path.
//!
//! Promises: two mounts of a node never have one label; what is written into the table of nodes is read back as it was.
//! Must not know: which space names which label, what the directories hold.

use std::path::{Path, PathBuf};

use agents::SettingsEntryError;
use serde::{Deserialize, Serialize};

use crate::space_entry::is_space_name;

/// A `[[mounts]]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountEntry {
    /// What spaces call it.
    pub label: String,
    /// Where it is, on every node that offers it.
    pub path: PathBuf,
}

impl MountEntry {
    pub(crate) fn check_all(entries: &[Self]) -> Result<(), SettingsEntryError> {
        for (index, entry) in entries.iter().enumerate() {
            let before = entries.get(..index).unwrap_or_default();
            let checked = entry.check(before);
            checked.map_err(|(key, message)| SettingsEntryError { index, key, message })?;
        }
        Ok(())
    }

    fn check(&self, before: &[Self]) -> Result<(), (&'static str, String)> {
        let label = &self.label;
        if !is_mount_label(label) {
            let words = "takes small letters, digits and `-`, at most 64 of them";
            return Err(("label", format!("label: {label:?} {words}")));
        }
        if before.iter().any(|other| other.label == *label) {
            return Err(("label", format!("label: there are two mounts {label:?}")));
        }
        let path = &self.path;
        if !path.is_absolute() {
            let message = format!("{path:?} is not an absolute path; `~` is not expanded here");
            return Err(("path", message));
        }
        // It is compared with that of other nodes, in a column of text.
        if path.to_str().is_none() {
            return Err(("path", format!("path: {path:?} is not UTF-8")));
        }
        Ok(())
    }

    /// As the table of nodes has it: no label has a `=` in it.
    pub(crate) fn to_column(&self) -> String {
        format!("{}={}", self.label, self.path.display())
    }

    /// What a column of the table of nodes says; none if it was written by a version with other words.
    pub fn from_column(text: &str) -> Option<Self> {
        let (label, path) = text.split_once('=')?;
        Some(Self { label: label.to_owned(), path: Path::new(path).to_owned() })
    }
}

/// What a space that names a label, or none, finds on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpaceMount {
    /// It names none, and works where the node's settings say.
    None,
    /// Its sessions work there.
    Here(PathBuf),
    /// The node does not offer what it names: its sessions can be read, and no turn runs in them.
    Missing(String),
}

impl SpaceMount {
    pub(crate) fn find(label: Option<String>, offered: &[MountEntry]) -> Self {
        let Some(label) = label else { return Self::None };
        match offered.iter().find(|mount| mount.label == label) {
            Some(mount) => Self::Here(mount.path.clone()),
            None => Self::Missing(label),
        }
    }

    /// Where its sessions may work instead of where the node's settings say.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        match self {
            Self::Here(path) => vec![path.clone()],
            Self::None | Self::Missing(_) => Vec::new(),
        }
    }

    /// The label that is not offered here.
    pub(crate) fn missing(&self) -> Option<String> {
        match self {
            Self::Missing(label) => Some(label.clone()),
            Self::None | Self::Here(_) => None,
        }
    }
}

/// Whether a mount may be called so.
pub fn is_mount_label(label: &str) -> bool {
    is_space_name(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(label: &str, path: &str) -> MountEntry {
        MountEntry { label: label.to_owned(), path: PathBuf::from(path) }
    }

    #[test]
    fn mounts_have_labels_of_their_own_and_whole_paths() {
        let src = mount("src", "/srv/src");
        MountEntry::check_all(&[src.clone(), mount("data", "/srv/src")]).unwrap();
        for (wrong, index, key) in [
            (vec![mount("S r c", "/srv")], 0, "label"),
            (vec![mount("a=b", "/srv")], 0, "label"),
            (vec![src.clone(), mount("src", "/srv/other")], 1, "label"),
            (vec![mount("src", "srv")], 0, "path"),
        ] {
            let error = MountEntry::check_all(&wrong).unwrap_err();
            assert_eq!((error.index, error.key), (index, key), "{}", error.message);
        }
        assert_eq!(MountEntry::from_column(&src.to_column()), Some(src));
        let odd = mount("src", "/srv/a=b");
        assert_eq!(MountEntry::from_column(&odd.to_column()), Some(odd));
        assert_eq!(MountEntry::from_column("src"), None);
    }

    #[test]
    fn a_space_works_in_what_it_names_or_nowhere() {
        let offered = [mount("src", "/srv/src")];
        let find = |label: Option<&str>| SpaceMount::find(label.map(str::to_owned), &offered);
        assert_eq!(find(None), SpaceMount::None);
        let here = find(Some("src"));
        assert_eq!(here.workspaces(), [PathBuf::from("/srv/src")]);
        assert_eq!(here.missing(), None);
        let missing = find(Some("data"));
        assert_eq!(missing.missing().as_deref(), Some("data"));
        assert_eq!(missing.workspaces(), Vec::<PathBuf>::new());
    }
}
