//! Finds the local host: through the file that `greenroom serve` keeps in its data directory.
//!
//! Promises: where no host is found, the error says so in words and what to do next.
//! Must not know: what else lies in the data directory.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Target;

/// The name of the file in the data directory.
pub const FILE_NAME: &str = "endpoint.json";

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

impl Endpoint {
    /// Reads the endpoint file of a data directory.
    pub fn find(data: &Path) -> Result<Self, EndpointError> {
        let path = data.join(FILE_NAME);
        let file = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(EndpointError::NoHost {
                    data: data.display().to_string(),
                });
            }
            Err(error) => {
                return Err(EndpointError::Unreadable {
                    file,
                    why: error.to_string(),
                });
            }
        };
        Self::parse(&text).map_err(|why| EndpointError::Malformed { file, why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let url = value["url"].as_str().ok_or("it has no `url`")?.to_owned();
        let pid = value["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok());
        Ok(Self {
            url,
            token: value["token"].as_str().map(str::to_owned),
            pid: pid.ok_or("it has no `pid`")?,
            version: value["version"].as_str().unwrap_or("unknown").to_owned(),
        })
    }

    pub fn target(&self) -> Target {
        Target {
            url: self.url.clone(),
            token: self.token.clone(),
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
    let home = home
        .filter(|home| !home.as_os_str().is_empty())
        .ok_or(EndpointError::NoHome)?;
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
        assert_eq!(
            resolve_data(Some("d"), path("/x"), path("/h")),
            Ok("d".to_owned())
        );
        assert_eq!(
            resolve_data(None, path("/x"), path("/h")),
            Ok("/x/greenroom".to_owned())
        );
        assert_eq!(
            resolve_data(None, path("x"), path("/h")),
            Ok("/h/.local/share/greenroom".to_owned())
        );
        assert_eq!(
            resolve_data(None, None, path("/h")),
            Ok("/h/.local/share/greenroom".to_owned())
        );
        assert_eq!(
            resolve_data(None, None, path("")),
            Err(EndpointError::NoHome)
        );
    }

    #[test]
    fn a_missing_or_broken_file_is_reported_with_a_hint() {
        let data = tempfile::tempdir().unwrap();
        let missing = Endpoint::find(data.path()).unwrap_err();
        assert!(matches!(missing, EndpointError::NoHost { .. }));
        assert!(
            missing
                .to_string()
                .contains("Start one with `greenroom serve`")
        );

        for (text, why) in [
            ("{", "EOF"),
            ("{}", "no `url`"),
            (r#"{"url": "ws://x/"}"#, "no `pid`"),
        ] {
            std::fs::write(data.path().join(FILE_NAME), text).unwrap();
            let message = Endpoint::find(data.path()).unwrap_err().to_string();
            assert!(
                message.contains(why) && message.contains("Restart the host"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_valid_file_gives_the_address_and_debug_hides_the_token() {
        let data = tempfile::tempdir().unwrap();
        let text =
            r#"{"url": "ws://127.0.0.1:1/", "token": "secret", "pid": 7, "version": "0.1.0"}"#;
        std::fs::write(data.path().join(FILE_NAME), text).unwrap();
        let endpoint = Endpoint::find(data.path()).unwrap();
        assert_eq!(endpoint.target().token.as_deref(), Some("secret"));
        assert!(!format!("{endpoint:?} {:?}", endpoint.target()).contains("secret"));
    }
}
