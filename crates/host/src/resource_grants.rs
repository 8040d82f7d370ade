//! What clients may use outside the roots: what the configuration grants, asked for by each client (G-55).
//!
//! Promises: nothing is granted that the configuration does not name, and what was granted ends when the configuration does
//! not name it any more: the settings file is looked at whenever a grant counts. A file that cannot be read grants nothing.
//! A settings file that clients can change is not looked at again while the host runs: they would grant themselves what they
//! like.
//! Must not know: what a client does with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use workspace::ResourceGrant;

use crate::config::Config;
use crate::sorted_map::SortedMap;
use crate::startup::resolve_roots;

/// Clients that hold grants, and grants of one client; beyond that the first go, and can be asked for again.
const CLIENTS_MAX: usize = 1_024;
const GRANTS_MAX: usize = 64;

/// A `resource_grants` entry of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantEntry {
    /// A file, or a directory with all that is in it.
    pub path: PathBuf,
    /// Whether it may be changed, too.
    #[serde(default)]
    pub write: bool,
}

/// What is granted to whom. A handle: clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ResourceGrants {
    shared: Arc<Mutex<Granted>>,
}

#[derive(Debug)]
struct Granted {
    /// Looked at again; `None` if no file was there when the host started, or clients can change it: then what it was started
    /// with stays.
    file: Option<SettingsFile>,
    /// When the file was last changed, as far as it was read.
    read: Option<SystemTime>,
    configured: Vec<ResourceGrant>,
    clients: SortedMap<String, Vec<ResourceGrant>>,
}

impl ResourceGrants {
    pub(crate) fn new(config: &Config) -> Self {
        let configured = resolve(&config.resource_grants);
        let found = SettingsFile::find(config);
        let is_there = found.is_some();
        let file = found.filter(|file| !file.is_in_root && !file.is_granted_by(&configured));
        if is_there && file.is_none() {
            tracing::warn!(
                "clients can change the settings file where it is; its `resource_grants` are not read again until the next start. \
                 It is safe in the data directory"
            );
        }
        Self {
            shared: Arc::new(Mutex::new(Granted {
                read: file.as_ref().and_then(|file| changed_at(&file.path)),
                file,
                configured,
                clients: SortedMap::default(),
            })),
        }
    }

    /// What the configuration grants now.
    pub(crate) fn configured(&self) -> Vec<ResourceGrant> {
        let mut granted = self.shared.lock();
        granted.refresh();
        granted.configured.clone()
    }

    /// Remembers that a client was granted something that the configuration grants.
    pub(crate) fn grant(&self, client_id: &str, grant: ResourceGrant) {
        let mut granted = self.shared.lock();
        let clients = &mut granted.clients;
        if !clients.contains_key(client_id) && clients.len() >= CLIENTS_MAX {
            clients.pop_first();
        }
        let grants = clients.get_or_insert_with(client_id.to_owned(), Vec::new);
        grants.retain(|known| known.path != grant.path || known.write && !grant.write);
        if grants.len() >= GRANTS_MAX {
            grants.remove(0);
        }
        grants.push(grant);
    }

    /// What a client was granted and the configuration still grants.
    pub(crate) fn of_client(&self, client_id: &str) -> Vec<ResourceGrant> {
        let mut granted = self.shared.lock();
        if !granted.clients.contains_key(client_id) {
            return Vec::new();
        }
        granted.refresh();
        let configured = &granted.configured;
        let is_configured = |grant: &&ResourceGrant| {
            let mut configured = configured.iter();
            configured.any(|now| grant.path.starts_with(&now.path) && (now.write || !grant.write))
        };
        let grants = granted.clients.get(client_id).into_iter().flatten();
        grants.filter(is_configured).cloned().collect()
    }
}

impl Granted {
    /// Reads the settings file again if it changed.
    fn refresh(&mut self) {
        let Some(file) = &self.file else {
            return; // no file says anything else
        };
        let changed = changed_at(&file.path);
        if changed.is_some() && changed == self.read {
            return;
        }
        let mut config = Config::default();
        self.configured = match config.load_toml(&file.path) {
            Ok(()) => resolve(&config.resource_grants),
            Err(_) => {
                // Its text may hold what is nobody's business in a log.
                tracing::warn!(
                    "the settings file cannot be read: nothing outside the roots is granted to clients"
                );
                Vec::new()
            }
        };
        self.read = changed;
        if file.is_granted_by(&self.configured) {
            self.file = None; // from now on what it says may be a client's word
        }
    }
}

/// The settings file, and who can change it.
#[derive(Debug)]
struct SettingsFile {
    /// Without links: one on the way to it could lie where clients can point it elsewhere.
    path: PathBuf,
    /// It lies in a directory of the host, which clients cannot use whatever is granted.
    is_hidden: bool,
    /// It lies where clients can change files without any grant.
    is_in_root: bool,
}

impl SettingsFile {
    /// That of a configuration, if it is there.
    fn find(config: &Config) -> Option<Self> {
        let path = std::fs::canonicalize(config.file_path()).ok()?;
        let is_in = |directory: &Path| {
            std::fs::canonicalize(directory).is_ok_and(|real| path.starts_with(real))
        };
        let is_hidden = config.data_directories().any(is_in);
        let is_in_own_root = match resolve_roots(config) {
            Ok(roots) => roots.iter().any(|root| path.starts_with(root)),
            Err(_) => true, // nobody can say
        };
        // The file is that of all spaces: clients of one must not grant anything to those of another.
        let mut others = config.spaces.iter().flat_map(|space| &space.workspaces);
        let is_in_other_root = others.any(|root| is_in(root));
        Some(Self {
            is_hidden,
            is_in_root: !is_hidden && (is_in_own_root || is_in_other_root),
            path,
        })
    }

    /// Whether clients that were granted these can change it.
    fn is_granted_by(&self, grants: &[ResourceGrant]) -> bool {
        let covers = |grant: &ResourceGrant| grant.write && self.path.starts_with(&grant.path);
        !self.is_hidden && grants.iter().any(covers)
    }
}

fn changed_at(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).ok()?.modified().ok()
}

/// Paths without links, as far as they are there.
fn resolve(entries: &[GrantEntry]) -> Vec<ResourceGrant> {
    let grants = entries.iter().map(|entry| ResourceGrant {
        path: std::fs::canonicalize(&entry.path).unwrap_or_else(|_| entry.path.clone()),
        write: entry.write,
    });
    grants.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(path: &str, write: bool) -> ResourceGrant {
        ResourceGrant { path: path.into(), write }
    }

    #[test]
    fn a_grant_lasts_as_long_as_the_configuration_names_it() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("greenroom.toml");
        let set = |text: &str, second: u64| {
            std::fs::write(&file, text).unwrap();
            let changed = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
            std::fs::File::open(&file).unwrap().set_modified(changed).unwrap();
        };
        set("resource_grants = [{ path = \"/srv/a\", write = true }]\n", 1);
        let mut config = Config::default_for(data.path().to_owned());
        config.load_toml(&file).unwrap();
        let grants = ResourceGrants::new(&config);
        assert_eq!(grants.configured(), [grant("/srv/a", true)]);
        assert_eq!(grants.of_client("c"), []);
        grants.grant("c", grant("/srv/a/x", true));
        assert_eq!(grants.of_client("c"), [grant("/srv/a/x", true)]);
        assert_eq!(grants.of_client("d"), []);
        set("resource_grants = [{ path = \"/srv/a\" }]\n", 2);
        assert_eq!(grants.of_client("c"), []);
        set("resource_grants = [{ path = \"/srv\", write = true }]\n", 3);
        assert_eq!(grants.of_client("c"), [grant("/srv/a/x", true)]);
        set("resource_grants = 7\n", 4);
        assert_eq!(grants.of_client("c"), []);
    }

    #[test]
    fn a_settings_file_that_clients_can_change_grants_nothing_new() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, apart) = (other.path().join("root"), other.path().join("apart"));
        for (is_in_root, is_granted) in [(true, false), (false, true), (false, false)] {
            let place = if is_in_root { &root } else { &apart };
            std::fs::create_dir_all(&root).unwrap();
            std::fs::create_dir_all(place).unwrap();
            let file = place.join("settings.toml");
            let first = if is_granted {
                format!("resource_grants = [{{ path = {apart:?}, write = true }}]\n")
            } else {
                "resource_grants = [{ path = \"/srv/a\" }]\n".to_owned()
            };
            std::fs::write(&file, first).unwrap();
            let mut config = Config::default_for(data.path().to_owned());
            config.load_toml(&file).unwrap();
            config.file = Some(file.clone());
            config.workspaces = vec![root.clone()];
            let grants = ResourceGrants::new(&config);
            let before = grants.configured();
            std::fs::write(&file, "resource_grants = [{ path = \"/\", write = true }]\n").unwrap();
            let later = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
            std::fs::File::open(&file).unwrap().set_modified(later).unwrap();
            let is_kept = grants.configured() == before;
            assert_eq!(is_kept, is_in_root || is_granted, "{is_in_root} {is_granted}");
        }
    }

    #[test]
    fn what_clients_of_the_first_space_can_change_grants_nothing_in_another() {
        let place = tempfile::tempdir().unwrap();
        let (first, second) = (place.path().join("first"), place.path().join("second"));
        std::fs::create_dir_all(&first).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        let file = first.join("settings.toml");
        std::fs::write(&file, "resource_grants = [{ path = \"/srv/a\" }]\n").unwrap();
        let mut config = Config::default_for(place.path().join("data"));
        config.load_toml(&file).unwrap();
        config.file = Some(file.clone());
        config.workspaces = vec![first];
        config.spaces = vec![crate::SpaceEntry {
            name: "other".to_owned(),
            data: place.path().join("other"),
            workspaces: vec![second],
        }];
        let other = config.of_space(&config.spaces[0]);
        let grants = ResourceGrants::new(&other);
        let before = grants.configured();
        std::fs::write(&file, "resource_grants = [{ path = \"/\" }]\n").unwrap();
        let later = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        std::fs::File::open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(grants.configured(), before);
        assert_eq!(before, [grant("/srv/a", false)]);
    }

    #[test]
    fn what_one_client_is_granted_is_bounded() {
        let config = Config::default_for(PathBuf::from("/nonexistent"));
        let grants = ResourceGrants::new(&config);
        for n in 0..2 * GRANTS_MAX {
            grants.grant("c", grant(&format!("/{n}"), false));
        }
        for n in 0..2 * CLIENTS_MAX {
            grants.grant(&n.to_string(), grant("/", false));
        }
        let granted = grants.shared.lock();
        assert!(granted.clients.len() <= CLIENTS_MAX);
        assert!(granted.clients.values().all(|grants| grants.len() <= GRANTS_MAX));
    }
}
