//! The token and the endpoint file: how local clients find the host and are admitted.
//!
//! Promises: both files are readable by their owner only; the endpoint file is there while the host serves.
//! Must not know: who connects.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::config::TokenChoice;
use crate::private_file;
use crate::server::ServeError;

const TOKEN_FILE: &str = "token";
pub(crate) const ENDPOINT_FILE: &str = "endpoint.json";
/// `/proof` lets anybody try guesses at home, as fast as their machine can: a token must be too long for that.
const TOKEN_BYTES_GOOD: usize = 16;

/// What local clients need to connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointRecord {
    pub url: String,
    pub token: Option<String>,
    pub pid: u32,
    pub version: String,
}

/// The token that clients must present: read from its file, or created on the first start.
pub(crate) fn load_or_create_token(
    choice: &TokenChoice,
    data: &Path,
) -> Result<Option<String>, ServeError> {
    match choice {
        TokenChoice::None => Ok(None),
        TokenChoice::File(path) => read_token(path).map(Some),
        TokenChoice::Unstored => make_token(data).map(Some),
        TokenChoice::InDataDir => {
            let path = data.join(TOKEN_FILE);
            if path.exists() {
                restrict_permissions(&path).map_err(|error| ServeError::Token {
                    path: path.clone(),
                    message: error.to_string(),
                })?;
                return read_token(&path).map(Some);
            }
            let token = make_token(&path)?;
            private_file::write(&path, format!("{token}\n").as_bytes())
                .map_err(|error| ServeError::Token { path, message: error.to_string() })?;
            Ok(Some(token))
        }
    }
}

fn make_token(path: &Path) -> Result<String, ServeError> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| ServeError::Token {
        path: path.to_owned(),
        message: format!("the system gives no random bytes: {error}"),
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn read_token(path: &Path) -> Result<String, ServeError> {
    let problem = |message: String| ServeError::Token { path: path.to_owned(), message };
    let text = fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(problem(
            "is empty; put a token into it or delete it to have one made".to_owned(),
        ));
    }
    if token.len() < TOKEN_BYTES_GOOD {
        tracing::warn!(
            "the token is shorter than {TOKEN_BYTES_GOOD} characters: whoever reaches the address can guess it"
        );
    }
    Ok(token.to_owned())
}

/// A file that is there while the host serves.
#[derive(Debug)]
pub(crate) struct EndpointFile(PathBuf);

impl EndpointFile {
    pub(crate) fn write(data: &Path, endpoint: &EndpointRecord) -> std::io::Result<Self> {
        let path = data.join(ENDPOINT_FILE);
        private_file::replace(&path, &serde_json::to_vec(endpoint)?)?;
        Ok(Self(path))
    }
}

impl Drop for EndpointFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!(%error, "the endpoint file could not be removed; clients may try to connect to a host that is gone");
        }
    }
}

/// Others must not be able to read the token: the mode of its file is corrected before it is used.
fn restrict_permissions(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(
            "the token file was readable by others; its mode is now 0600. Replace the token if others use this machine"
        );
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}
