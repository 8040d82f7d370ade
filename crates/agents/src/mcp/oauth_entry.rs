//! `oauth` of a declaration: the client that the user registered at a server's authorisation server (MC-14, MC-15).
//!
//! Promises: the secret is read when it is needed, and only if clients may have it: the host itself has no use for it. It is for the
//! issuer that the user named, whatever a server names.
//! Must not know: how anybody signs in.

use std::path::PathBuf;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::auth::is_safe;
use super::oauth_client::OAuthClient;
use crate::task;

/// Longest id and secret.
const BYTES_MAX: usize = 4 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuthEntry {
    pub client_id: String,
    /// The authorisation server that knows the client; the only one that it is shown to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// Clients of this host are told the secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share_secret: bool,
}

impl OAuthEntry {
    pub(super) fn check(&self) -> Result<(), String> {
        let is_id = !self.client_id.is_empty() && self.client_id.len() <= BYTES_MAX;
        if !is_id || self.client_id.contains(char::is_control) {
            return Err("`client_id` is what the authorisation server calls you".to_owned());
        }
        let is_address = |issuer: &String| Url::parse(issuer).is_ok_and(|url| is_safe(&url));
        if self.issuer.as_ref().is_some_and(|issuer| !is_address(issuer)) {
            return Err("`issuer` is the https address of the authorisation server".to_owned());
        }
        match (&self.client_secret_file, self.share_secret) {
            (Some(_), true) if self.issuer.is_none() => Err(
                "`client_secret_file` needs `issuer = \"https://..\"`, the authorisation server that the client is registered at: \
                 the secret is sent to no other, whichever the MCP server names"
                    .to_owned(),
            ),
            (Some(_), true) | (None, false) => Ok(()),
            (Some(_), false) => Err(
                "`client_secret_file` needs `share_secret = true`: it is clients who sign in, so they are told the secret"
                    .to_owned(),
            ),
            (None, true) => Err("`share_secret` needs a `client_secret_file`".to_owned()),
        }
    }

    /// What a client is told.
    pub(super) async fn client(&self) -> Result<OAuthClient, String> {
        let secret = match &self.client_secret_file {
            Some(file) if self.share_secret => Some(read_secret(file.clone()).await?),
            Some(_) | None => None,
        };
        Ok(OAuthClient { id: self.client_id.clone(), secret })
    }
}

async fn read_secret(file: PathBuf) -> Result<String, String> {
    let read = task::try_blocking(move || std::fs::read_to_string(file))
        .await
        .map_err(|error| error.to_string())?;
    let text = read.map_err(|error| format!("its client_secret_file cannot be read: {error}"))?;
    let secret = text.trim();
    if secret.is_empty() || secret.len() > BYTES_MAX || secret.contains(char::is_control) {
        Err("its client_secret_file holds no secret on one line".to_owned())
    } else {
        Ok(secret.to_owned())
    }
}
