//! Which host a client verb talks to: what the command line says, else the local one.
//!
//! Promises: a token never appears in a message or a log. One that comes from the data directory is sent only to who proves
//! that it knows it; an address that the user names with a token is trusted as it is (G-62).

use std::path::{Path, PathBuf};

use anyhow::Context;
use client::{
    ClientError, Destination, Endpoint, HostLocator, HostTarget, Live, Options, Updates, endpoint,
};
use uuid::Uuid;
use wire::ChannelUri;

/// How to find the host.
#[derive(Debug, Default, Clone, clap::Args)]
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
    /// The host that serves a data directory.
    pub(crate) fn local(data: &Path) -> Self {
        Self { data: Some(data.to_owned()), ..Self::default() }
    }

    /// Has another run of this program find the same host. A token goes by its environment, where others do not see it.
    pub(crate) fn pass_to(&self, command: &mut tokio::process::Command) {
        if let Some(host) = &self.host {
            command.arg("--host").arg(host);
        }
        if let Some(file) = &self.token_file {
            command.arg("--token-file").arg(file);
        }
        if let Some(data) = &self.data {
            command.arg("--data").arg(data);
        }
        if let Some(token) = &self.token {
            command.env("GREENROOM_TOKEN", token);
        }
    }

    pub(crate) fn data_directory(&self) -> anyhow::Result<PathBuf> {
        Ok(endpoint::data_directory(self.data.as_deref())?)
    }

    /// The host as named; `None` for the local one.
    pub(crate) fn named_host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(crate) fn destination(&self) -> anyhow::Result<Destination> {
        let token = self.token(std::env::var("GREENROOM_TOKEN").ok())?;
        let local = self.data_directory().and_then(|data| Ok(Endpoint::find(&data)?));
        let Some(url) = &self.host else { return Ok(local?.destination(token)) };
        let url = url.clone();
        if token.is_some() {
            return Ok(HostTarget { url, token }.into());
        }
        // The local host named by its address: its token is known, and goes to nobody else who may listen there.
        let is_named = |local: &Endpoint| address_of(&local.url) == address_of(&url);
        Ok(match local.ok().filter(is_named).map(|local| local.token) {
            Some(Some(secret)) => {
                let token = Some(secret.clone());
                Destination::proven(HostTarget { url, token }, secret)
            }
            Some(None) | None => HostTarget { url, token }.into(),
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
            return Ok(self.destination()?.into());
        }
        let data = self.data_directory()?;
        let token = self.token(std::env::var("GREENROOM_TOKEN").ok())?;
        Ok(HostLocator::from_fn(move || Ok(Endpoint::find(&data)?.destination(token.clone()))))
    }

    /// A client that stays connected and watches these channels.
    pub(crate) async fn live(
        &self,
        subscriptions: &[ChannelUri],
    ) -> anyhow::Result<(Live, Updates)> {
        let options = Options { subscriptions: subscriptions.to_vec(), ..Options::default() };
        let connected = Live::connect(self.locator()?, &client_id(), options).await;
        connected.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: ClientError) -> anyhow::Error {
        match (error, &self.host) {
            (error @ ClientError::Unreachable { .. }, None) => anyhow::Error::new(error).context(
                "the host that serves the data directory does not answer; `greenroom doctor` says more",
            ),
            (error, _) => error.into(),
        }
    }
}

const CLIENT_ID_BEGINNING: &str = "greenroom-";

/// One per running client.
pub(crate) fn client_id() -> String {
    format!("{CLIENT_ID_BEGINNING}{}", Uuid::now_v7())
}

/// Whether this is the id of a client in a terminal.
pub(crate) fn is_client_id(id: &str) -> bool {
    let number = id.strip_prefix(CLIENT_ID_BEGINNING);
    number.is_some_and(|number| Uuid::parse_str(number).is_ok())
}

fn read_token(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the token file {} cannot be read", file.display()))?;
    let token = text.trim();
    anyhow::ensure!(!token.is_empty(), "the token file {} is empty", file.display());
    Ok(token.to_owned())
}

/// Host and port of a URL, with the names of this machine made one.
fn address_of(url: &str) -> String {
    let address = url.trim_start_matches("ws://").split(['/', '?']).next().unwrap_or("");
    address.replace("localhost", "127.0.0.1").replace("[::1]", "127.0.0.1")
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn options(data: &Path) -> HostOptions {
        HostOptions { host: None, token_file: None, token: None, data: Some(data.to_owned()) }
    }

    /// The endpoint file of a host, and the directory held as by that host.
    fn hold(data: &Path) -> File {
        let text = r#"{"url": "ws://127.0.0.1:9/", "token": "local", "pid": 1, "version": "0"}"#;
        std::fs::write(data.join("endpoint.json"), text).unwrap();
        let lock = File::open(data).unwrap();
        lock.lock().unwrap();
        lock
    }

    #[test]
    fn without_a_running_host_the_error_says_what_to_do() {
        let data = tempfile::tempdir().unwrap();
        let message = || options(data.path()).destination().unwrap_err().to_string();
        assert!(message().contains("Start one with `greenroom serve`"));
        drop(hold(data.path()));
        assert!(message().contains("left by one that was killed"));
    }

    #[test]
    fn the_local_host_and_its_token_are_found_and_must_be_proven() {
        let data = tempfile::tempdir().unwrap();
        let lock = hold(data.path());
        let found = options(data.path()).destination().unwrap();
        assert_eq!(
            (found.target().url.as_str(), found.target().token.as_deref()),
            ("ws://127.0.0.1:9/", Some("local"))
        );
        assert!(found.must_prove());

        let by_address = |url: &str, token: Option<&str>| {
            let destination = HostOptions {
                host: Some(url.to_owned()),
                token: token.map(str::to_owned),
                ..options(data.path())
            }
            .destination()
            .unwrap();
            let token = destination.target().token.clone();
            (token.unwrap_or_default(), destination.must_prove())
        };
        let local = ("local".to_owned(), true);
        assert_eq!(by_address("ws://127.0.0.1:9/", None), local);
        assert_eq!(by_address("ws://localhost:9/", None), local);
        let given = ("given".to_owned(), false);
        assert_eq!(by_address("ws://127.0.0.1:9/", Some("given")), given);
        let nothing = (String::new(), false);
        assert_eq!(by_address("ws://elsewhere/", None), nothing);
        drop(lock);
        assert_eq!(by_address("ws://127.0.0.1:9/", None), nothing);
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
        assert!(options.token(None).unwrap_err().to_string().contains("is empty"));
    }
}
