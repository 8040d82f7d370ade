//! Finds the local host: through the file that `greenroom serve` keeps in its data directory.
//!
//! Promises: the file counts only while a living host holds the directory, and looking for that keeps no host from
//! starting; where no host is found, the error says so in words and what to do next.
//! Must not know: what else lies in the data directory.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Destination, HostTarget};

/// The name of the file in the data directory.
pub const FILE_NAME: &str = "endpoint.json";
/// Names the process that holds the data directory, for people.
pub const LOCK_FILE: &str = "lock";

/// Where a running host listens.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    pub token: Option<String>,
    pub pid: u32,
    pub version: String,
}

/// The token stays out of logs and panics.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "(hidden)");
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("token", &token)
            .field("pid", &self.pid)
            .field("version", &self.version)
            .finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error(
        "no host is running with the data directory {data}. Start one with `greenroom serve`, or name one with --host"
    )]
    NoHost { data: String },
    #[error(
        "no host is running with the data directory {data}; {FILE_NAME} in it was left by one that was killed (pid {pid}) \
         and is not used. Start one with `greenroom serve`, or name one with --host"
    )]
    LeftBehind { data: String, pid: String },
    #[error(
        "a host of an earlier version (pid {pid}) serves the data directory {data}. Stop it with `kill {pid}` and start it \
         again with this version"
    )]
    Outdated { data: String, pid: String },
    #[error(
        "a host holds the data directory {data} but does not say where it listens: it is starting or stopping, or it \
         serves standard input and output. Try again in a moment, or name one with --host"
    )]
    NotListening { data: String },
    #[error(
        "{file} cannot be read: {why}. Is it another user's? Name a host with --host, or a directory with --data"
    )]
    Unreadable { file: String, why: String },
    #[error(
        "{file} does not say where a host listens: {why}. Restart the host, which writes it anew"
    )]
    Malformed { file: String, why: String },
    #[error("there is no home directory to look for a host in; name a data directory with --data")]
    NoHome,
}

impl EndpointError {
    /// Whether no host runs, so that one may be started.
    pub fn is_no_host(&self) -> bool {
        matches!(self, Self::NoHost { .. } | Self::LeftBehind { .. })
    }
}

/// Whether a living host holds the data directory. The host has an exclusive lock on the directory itself, which goes with
/// its process; a shared one that is given back at once finds out, and a host that starts meanwhile waits for it.
pub fn is_held(data: &Path) -> io::Result<bool> {
    is_locked(data)
}

/// Whether a host of an earlier version holds the directory: those locked only a file in it, and prove nothing.
pub fn is_held_by_earlier_version(data: &Path) -> bool {
    // Where the file cannot be opened, no host that started could open it either.
    !is_locked(data).unwrap_or(true) && is_locked(&data.join(LOCK_FILE)).unwrap_or(false)
}

fn is_locked(path: &Path) -> io::Result<bool> {
    match File::open(path)?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Endpoint {
    /// The host that serves a data directory now.
    pub fn find(data: &Path) -> Result<Self, EndpointError> {
        let path = data.join(FILE_NAME);
        let file = path.display().to_string();
        let data_name = || data.display().to_string();
        let unreadable = |file: String, error: io::Error| EndpointError::Unreadable {
            file,
            why: error.to_string(),
        };
        let held = match is_held(data) {
            Ok(held) => held,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(unreadable(data_name(), error)),
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let data = data_name();
                return Err(if held {
                    EndpointError::NotListening { data }
                } else {
                    EndpointError::NoHost { data }
                });
            }
            Err(error) => return Err(unreadable(file, error)),
        };
        let endpoint = Self::parse(&text);
        if !held {
            let data_name = data_name();
            let pid = endpoint.map_or_else(|_| "unknown".to_owned(), |it| it.pid.to_string());
            return Err(if is_held_by_earlier_version(data) {
                EndpointError::Outdated { data: data_name, pid }
            } else {
                EndpointError::LeftBehind { data: data_name, pid }
            });
        }
        endpoint.map_err(|why| EndpointError::Malformed { file, why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let url = value["url"].as_str().ok_or("it has no `url`")?.to_owned();
        let pid = value["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Ok(Self {
            url,
            token: value["token"].as_str().map(str::to_owned),
            pid: pid.ok_or("it has no `pid`")?,
            version: value["version"].as_str().unwrap_or("unknown").to_owned(),
        })
    }

    /// How to connect to it, with the token of the file or with another. Who listens there must prove that it knows that of
    /// the file. A host without one is sent none: it needs none, and could not prove anything.
    pub fn destination(&self, other_token: Option<String>) -> Destination {
        let url = self.url.clone();
        match &self.token {
            Some(secret) => {
                let token = Some(other_token.unwrap_or_else(|| secret.clone()));
                Destination::proven(HostTarget { url, token }, secret.clone())
            }
            None => HostTarget { url, token: None }.into(),
        }
    }
}

/// The data directory: as named, else `$XDG_DATA_HOME/greenroom`, else `~/.local/share/greenroom`.
pub fn data_directory(named: Option<&Path>) -> Result<PathBuf, EndpointError> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    data_directory_from(named, variable("XDG_DATA_HOME"), variable("HOME"))
}

fn data_directory_from(
    named: Option<&Path>,
    xdg_data_home: Option<PathBuf>,
    home: Option<PathBuf>,
) -> Result<PathBuf, EndpointError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    // The XDG specification says to ignore a path that is not absolute.
    if let Some(base) = xdg_data_home.filter(|base| base.is_absolute()) {
        return Ok(base.join("greenroom"));
    }
    let home = home.filter(|home| !home.as_os_str().is_empty()).ok_or(EndpointError::NoHome)?;
    Ok(home.join(".local/share/greenroom"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_the_named_one_then_xdg_then_home() {
        let path = |text: &str| Some(PathBuf::from(text));
        let resolve_data = |named: Option<&str>, xdg, home| {
            data_directory_from(named.map(Path::new), xdg, home).map(|p| p.display().to_string())
        };
        assert_eq!(resolve_data(Some("d"), path("/x"), path("/h")), Ok("d".to_owned()));
        assert_eq!(resolve_data(None, path("/x"), path("/h")), Ok("/x/greenroom".to_owned()));
        assert_eq!(
            resolve_data(None, path("x"), path("/h")),
            Ok("/h/.local/share/greenroom".to_owned())
        );
        assert_eq!(
            resolve_data(None, None, path("/h")),
            Ok("/h/.local/share/greenroom".to_owned())
        );
        assert_eq!(resolve_data(None, None, path("")), Err(EndpointError::NoHome));
    }

    /// A data directory as a living host holds it.
    fn held_directory(endpoint: &str) -> (tempfile::TempDir, File) {
        let data = tempfile::tempdir().unwrap();
        let lock = File::open(data.path()).unwrap();
        lock.lock().unwrap();
        std::fs::write(data.path().join(FILE_NAME), endpoint).unwrap();
        (data, lock)
    }

    const VALID: &str =
        r#"{"url": "ws://127.0.0.1:1/", "token": "secret", "pid": 7, "version": "0.1.0"}"#;

    #[test]
    fn a_broken_file_is_reported_with_a_hint() {
        for (text, why) in [("{", "EOF"), ("{}", "no `url`"), (r#"{"url": "ws://x/"}"#, "no `pid`")]
        {
            let (data, _lock) = held_directory(text);
            let message = Endpoint::find(data.path()).unwrap_err().to_string();
            assert!(message.contains(why) && message.contains("Restart the host"), "{message}");
        }
    }

    #[test]
    fn a_file_counts_only_while_a_host_holds_the_directory() {
        let (data, lock) = held_directory(VALID);
        assert_eq!(Endpoint::find(data.path()).unwrap().pid, 7);
        drop(lock);
        let left = Endpoint::find(data.path()).unwrap_err();
        assert!(left.is_no_host());
        let words = left.to_string();
        assert!(words.contains("pid 7") && words.contains("`greenroom serve`"), "{words}");
        std::fs::write(data.path().join(FILE_NAME), "{").unwrap();
        let left = Endpoint::find(data.path()).unwrap_err();
        assert!(left.to_string().contains("pid unknown"), "{left}");

        let earlier = File::create(data.path().join(LOCK_FILE)).unwrap();
        earlier.lock().unwrap();
        std::fs::write(data.path().join(FILE_NAME), VALID).unwrap();
        let outdated = Endpoint::find(data.path()).unwrap_err();
        assert!(!outdated.is_no_host());
        assert!(outdated.to_string().contains("`kill 7`"), "{outdated}");
        drop(earlier);

        std::fs::remove_file(data.path().join(FILE_NAME)).unwrap();
        let missing = Endpoint::find(data.path()).unwrap_err();
        assert!(matches!(missing, EndpointError::NoHost { .. }));
        let words = missing.to_string();
        assert!(words.contains("Start one with `greenroom serve`"));
        let lock = File::open(data.path()).unwrap();
        lock.lock().unwrap();
        let starting = Endpoint::find(data.path()).unwrap_err();
        assert!(!starting.is_no_host());
        assert!(starting.to_string().contains("in a moment"), "{starting}");

        let nowhere = Endpoint::find(&data.path().join("none")).unwrap_err();
        assert!(matches!(nowhere, EndpointError::NoHost { .. }));
    }

    #[test]
    fn the_token_of_the_file_must_be_proven_and_debug_hides_it() {
        let endpoint = Endpoint::parse(VALID).unwrap();
        let found = endpoint.destination(None);
        assert!(found.must_prove());
        assert_eq!(found.target().token.as_deref(), Some("secret"));
        assert!(!format!("{endpoint:?} {found:?}").contains("secret"));
        let given = endpoint.destination(Some("given".to_owned()));
        assert!(given.must_prove());
        assert_eq!(given.target().token.as_deref(), Some("given"));

        let open = Endpoint::parse(&VALID.replace(r#""secret""#, "null"))
            .unwrap()
            .destination(Some("given".to_owned()));
        assert_eq!(open.target().token, None, "nobody there needs it");
    }
}
