//! A further space in the settings: a name, and the directory that holds all it has.
//!
//! Promises: two spaces never share a name or a directory.
//! Must not know: how a space is served.

use std::path::{Path, PathBuf};

use agents::SettingsEntryError;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Settings, TokenChoice};

/// What the space of the data directory itself is called.
pub const FIRST_SPACE: &str = "default";
const NAME_BYTES_MAX: usize = 64;

/// A `[[spaces]]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpaceEntry {
    pub name: String,
    /// Its data directory: journal, bodies, token, devices, rules, what was spent.
    pub data: PathBuf,
    /// Where its sessions may work; where those of the host may if it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<PathBuf>,
}

impl SpaceEntry {
    pub(crate) fn check_all(entries: &[Self]) -> Result<(), SettingsEntryError> {
        for (index, entry) in entries.iter().enumerate() {
            let before = entries.get(..index).unwrap_or_default();
            let checked = entry.check(before);
            checked.map_err(|(key, message)| SettingsEntryError { index, key, message })?;
        }
        Ok(())
    }

    fn check(&self, before: &[Self]) -> Result<(), (&'static str, String)> {
        let name = &self.name;
        if !is_space_name(name) {
            let words = "takes small letters, digits and `-`, at most 64 of them";
            return Err(("name", format!("name: {name:?} {words}")));
        }
        if name == FIRST_SPACE {
            let words = "is the space of the data directory itself; choose another name";
            return Err(("name", format!("name: {name:?} {words}")));
        }
        if before.iter().any(|other| other.name == *name) {
            return Err(("name", format!("name: there are two spaces {name:?}")));
        }
        let mut paths = std::iter::once(&self.data).chain(&self.workspaces);
        if let Some(path) = paths.find(|path| !path.is_absolute()) {
            let message = format!("{path:?} is not an absolute path; `~` is not expanded here");
            return Err(("data", message));
        }
        if before.iter().any(|other| other.data == self.data) {
            let message = format!("data: {:?} belongs to another space", self.data);
            return Err(("data", message));
        }
        Ok(())
    }
}

/// Whether a space may have this name; it is also that of a directory.
pub(crate) fn is_space_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

impl Config {
    /// The settings of a further space: its own directory and token, everything else as for the host.
    pub(crate) fn of_space(&self, entry: &SpaceEntry) -> Self {
        let workspaces = if entry.workspaces.is_empty() {
            self.workspaces.clone()
        } else {
            entry.workspaces.clone()
        };
        let mut spaces = self.spaces.clone();
        spaces.retain(|space| space != entry);
        spaces.push(SpaceEntry {
            name: FIRST_SPACE.to_owned(),
            data: self.data.clone(),
            workspaces: self.root_names(),
        });
        Self {
            data: entry.data.clone(),
            token: TokenChoice::InDataDir,
            // The log is the process's, and its level not for every space to choose.
            on_log_level: None,
            file: Some(self.file_path()),
            settings: Settings {
                workspaces,
                spaces,
                // The certificate is the listener's.
                tls_cert: None,
                tls_key: None,
                ..self.settings.clone()
            },
            ..self.clone()
        }
    }

    /// What a space of the settings is called in the database. The one of the data directory is there once for each node.
    pub(crate) fn name_in_database(&self, name: &str) -> String {
        let node = self.cluster.as_ref().and_then(|it| it.name.as_deref());
        match (name, node) {
            (FIRST_SPACE, Some(node)) => format!("node-{node}"),
            _ => name.to_owned(),
        }
    }

    /// The directories that sessions work in, as they are named: those of the settings, else where the host was started and the home.
    pub(crate) fn root_names(&self) -> Vec<PathBuf> {
        if self.without_workspaces {
            return Vec::new();
        }
        if !self.workspaces.is_empty() {
            return self.workspaces.clone();
        }
        // A home directory that does not exist is no reason not to serve.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_dir());
        std::iter::once(PathBuf::from(".")).chain(home).collect()
    }

    /// The data directories of all spaces: no agent of one may look into another.
    pub(crate) fn data_directories(&self) -> impl Iterator<Item = &Path> {
        let others = self.spaces.iter().map(|space| space.data.as_path());
        std::iter::once(self.data.as_path()).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        std::fs::write(&path, text).unwrap();
        let mut config = Config::default_for(directory.path().to_owned());
        config.load_toml(&path).map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn spaces_have_names_and_directories_of_their_own() {
        let one = "[[spaces]]\nname = \"team-a\"\ndata = \"/srv/a\"\n";
        let config = load(one).unwrap();
        assert_eq!(config.spaces.len(), 1);
        let space = config.of_space(&config.spaces[0]);
        assert_eq!(space.data, Path::new("/srv/a"));
        assert_eq!(space.file, config.file, "models are those of the host");
        let all = |config: &Config| {
            let all = config.data_directories().map(Path::to_owned);
            all.collect::<std::collections::BTreeSet<PathBuf>>()
        };
        assert_eq!(all(&space), all(&config), "each hides all from its agents");
        for (text, why) in [
            (one.replace("team-a", "Team A"), "small letters"),
            (one.replace("team-a", "default"), "choose another name"),
            (one.replace("/srv/a", "srv/a"), "not an absolute path"),
            (one.repeat(2), "two spaces"),
            (format!("{one}{}", one.replace("team-a", "b")), "belongs to another space"),
            (format!("{one}tokn = \"x\"\n"), "no setting"),
        ] {
            let error = load(&text).err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    }
}
