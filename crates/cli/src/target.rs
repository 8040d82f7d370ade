//! Which host a client verb talks to: what the command line says, else the local one.
//!
//! Promises: a token never appears in a message or a log.

use std::path::{Path, PathBuf};

use anyhow::Context;
use client::{ClientError, Endpoint, HostLocator, Live, Options, Target, Updates, endpoint};
use uuid::Uuid;
use wire::ChannelUri;

/// How to find the host.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Which host")]
pub(crate) struct HostOptions {
    /// Address of the host; without it the local one is found through the data directory
    #[arg(long, value_name = "ws://HOST:PORT/")]
    host: Option<String>,
    /// File that holds the token; the variable GREENROOM_TOKEN works too
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The token itself; it shows in process lists, so prefer --token-file
    #[arg(long, value_name = "T", conflicts_with = "token_file")]
    token: Option<String>,
    /// Data directory of the local host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl HostOptions {
    pub(crate) fn data_directory(&self) -> anyhow::Result<PathBuf> {
        Ok(endpoint::data_directory(self.data.as_deref())?)
    }

    /// The host as named; `None` for the local one.
    pub(crate) fn named_host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        let token = self.token(std::env::var("GREENROOM_TOKEN").ok())?;
        let local = self
            .data_directory()
            .and_then(|data| Ok(Endpoint::find(&data)?));
        let Some(url) = &self.host else {
            let Target {
                url,
                token: local_token,
            } = local?.target();
            return Ok(Target {
                url,
                token: token.or(local_token),
            });
        };
        // The local host named by its address: its token is known.
        let local_token = || {
            local
                .ok()
                .filter(|local| address_of(&local.url) == address_of(url))
                .and_then(|local| local.token)
        };
        Ok(Target {
            url: url.clone(),
            token: token.or_else(local_token),
        })
    }

    /// The token that was given, the most explicit way first.
    fn token(&self, variable: Option<String>) -> anyhow::Result<Option<String>> {
        match (&self.token, &self.token_file) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(file)) => read_token(file).map(Some),
            (None, None) => Ok(variable.filter(|token| !token.is_empty())),
        }
    }

    /// Finds the host before each attempt to connect: a local one may come back elsewhere.
    pub(crate) fn locator(&self) -> anyhow::Result<HostLocator> {
        if self.host.is_some() {
            return Ok(self.target()?.into());
        }
        let data = self.data_directory()?;
        let token = self.token(std::env::var("GREENROOM_TOKEN").ok())?;
        Ok(HostLocator::from_fn(move || {
            let Target { url, token: local } = Endpoint::find(&data)?.target();
            let token = token.clone().or(local);
            Ok(Target { url, token })
        }))
    }

    /// A client that stays connected and watches these channels.
    pub(crate) async fn live(
        &self,
        subscriptions: &[ChannelUri],
    ) -> anyhow::Result<(Live, Updates)> {
        let options = Options {
            subscriptions: subscriptions.to_vec(),
            ..Options::default()
        };
        let connected = Live::connect(self.locator()?, &client_id(), options).await;
        connected.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: ClientError) -> anyhow::Error {
        match (error, &self.host) {
            (error @ ClientError::Unreachable { .. }, None) => anyhow::Error::new(error).context(
                "the host that the data directory names does not answer; it may have been killed",
            ),
            (error, _) => error.into(),
        }
    }
}

/// One per running client.
pub(crate) fn client_id() -> String {
    format!("greenroom-{}", Uuid::now_v7())
}

fn read_token(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the token file {} cannot be read", file.display()))?;
    let token = text.trim();
    anyhow::ensure!(
        !token.is_empty(),
        "the token file {} is empty",
        file.display()
    );
    Ok(token.to_owned())
}

/// Host and port of a URL, with the names of this machine made one.
fn address_of(url: &str) -> String {
    let address = url
        .trim_start_matches("ws://")
        .split(['/', '?'])
        .next()
        .unwrap_or("");
    address
        .replace("localhost", "127.0.0.1")
        .replace("[::1]", "127.0.0.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(data: &Path) -> HostOptions {
        HostOptions {
            host: None,
            token_file: None,
            token: None,
            data: Some(data.to_owned()),
        }
    }

    fn endpoint_file(data: &Path) {
        let text = r#"{"url": "ws://127.0.0.1:9/", "token": "local", "pid": 1, "version": "0"}"#;
        std::fs::write(data.join("endpoint.json"), text).unwrap();
    }

    #[test]
    fn without_a_running_host_the_error_says_what_to_do() {
        let data = tempfile::tempdir().unwrap();
        let error = options(data.path()).target().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("Start one with `greenroom serve`"),
            "{error}"
        );
    }

    #[test]
    fn the_local_host_and_its_token_are_found() {
        let data = tempfile::tempdir().unwrap();
        endpoint_file(data.path());
        let target = options(data.path()).target().unwrap();
        assert_eq!(
            (target.url.as_str(), target.token.as_deref()),
            ("ws://127.0.0.1:9/", Some("local"))
        );

        let by_address = |url: &str| {
            HostOptions {
                host: Some(url.to_owned()),
                ..options(data.path())
            }
            .target()
            .unwrap()
            .token
        };
        assert_eq!(by_address("ws://127.0.0.1:9/").as_deref(), Some("local"));
        assert_eq!(by_address("ws://elsewhere/"), None);
    }

    #[test]
    fn the_most_explicit_token_wins() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("token");
        std::fs::write(&file, "filed\n").unwrap();
        let variable = || Some("variable".to_owned());
        let mut options = options(data.path());
        assert_eq!(options.token(None).unwrap(), None);
        assert_eq!(options.token(variable()).unwrap(), variable());
        options.token_file = Some(file.clone());
        assert_eq!(options.token(variable()).unwrap().as_deref(), Some("filed"));
        options.token = Some("given".to_owned());
        assert_eq!(options.token(variable()).unwrap().as_deref(), Some("given"));

        std::fs::write(&file, "\n").unwrap();
        options.token = None;
        assert!(
            options
                .token(None)
                .unwrap_err()
                .to_string()
                .contains("is empty")
        );
    }
}
