//! Where a browser finds the host's page, and the link that pairs it.
//!
//! Promises: a link goes over plain http beyond this machine only if that was asked for; the code is in its fragment, which no
//! browser sends.
//! Must not know: how a link is shown.

use std::path::Path;

use anyhow::{bail, ensure};
use client::Endpoint;
use url::{Host, Url};

use crate::start_host;

/// An address of the page: scheme, host and port, nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageAddress(Url);

impl PageAddress {
    /// An address that somebody typed.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let Some(url) = Url::parse(text).ok().filter(has_page_scheme) else {
            bail!("`{text}` is not the address of a page; one looks like https://laptop.example/");
        };
        let has_more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
        ensure!(
            !has_more && url.username().is_empty() && url.password().is_none(),
            "`{text}` holds more than a name and a port; the page is at the root: {}",
            Self(url.clone()).text()
        );
        Ok(Self(url))
    }

    /// The address of the host that runs here.
    pub(crate) fn of_endpoint(endpoint: &Endpoint) -> anyhow::Result<Self> {
        // `ws` becomes `http`, and `wss` `https`.
        let address = endpoint.url.split('?').next().unwrap_or_default();
        Self::parse(&address.replacen("ws", "http", 1))
    }

    pub(crate) fn text(&self) -> String {
        format!("{}/", self.0.origin().ascii_serialization())
    }

    /// The host as its `Host` header names it.
    pub(crate) fn name(&self) -> String {
        self.0.host_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// What pairs the browser that opens it.
    pub(crate) fn pairing_link(&self, code: &str) -> String {
        format!("{}#pair={code}", self.text())
    }
}

fn has_page_scheme(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// The host of a data directory, which is started if none runs.
pub(crate) async fn find_or_start_host(data: &Path) -> anyhow::Result<Endpoint> {
    match Endpoint::find(data).map_err(anyhow::Error::from) {
        Err(error) if start_host::is_host_missing(&error) => {
            let started = start_host::start_host(data).await?;
            eprintln!("{started}");
            Ok(Endpoint::find(data)?)
        }
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_name_and_a_port() {
        let page = |text: &str| PageAddress::parse(text).map_err(|error| error.to_string());
        for (typed, text, is_loopback, is_encrypted) in [
            ("https://Laptop.Example", "https://laptop.example/", false, true),
            ("https://laptop.example:443/", "https://laptop.example/", false, true),
            ("http://127.0.0.1:4790", "http://127.0.0.1:4790/", true, false),
            ("http://[::1]:4790/", "http://[::1]:4790/", true, false),
            ("http://localhost:1", "http://localhost:1/", true, false),
            ("http://192.168.1.7:4790/", "http://192.168.1.7:4790/", false, false),
        ] {
            let page = page(typed).unwrap();
            assert_eq!(page.text(), text);
            assert_eq!((page.is_loopback(), page.is_encrypted()), (is_loopback, is_encrypted));
        }
        for wrong in ["laptop", "laptop:4790", "ws://laptop/", "file:///x", "https://", ""] {
            assert!(page(wrong).unwrap_err().contains("one looks like"), "{wrong}");
        }
        for more in ["https://a/b", "https://a/?x", "https://a/#x", "https://u@a/"] {
            assert!(page(more).unwrap_err().contains("https://a/"), "{more}");
        }
    }

    #[test]
    fn the_code_is_in_the_fragment() {
        let page = PageAddress::parse("https://a:8443").unwrap();
        assert_eq!(page.pairing_link("CODE"), "https://a:8443/#pair=CODE");
    }
}
