//! How far a request may go that somebody else named the address of: the rules for a server's own URL, or the public internet alone.
//!
//! Promises: for the public internet a name is resolved once, every address of it is judged, and the connection goes to those
//! addresses alone, over no proxy: a name that means something else a moment later leads nowhere else.
//! Must not know: what is asked for.

use std::net::{IpAddr, SocketAddr};

use reqwest::{Client, Url};

use super::document::DocumentError;
use super::http::{client_builder, literal};
use crate::tool::is_public_address;

/// Addresses of one name that are used.
const ADDRESSES_MAX: usize = 16;

/// Which addresses are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedAddresses {
    /// Whoever named the server is on this machine, so the rules for the server's URL are enough.
    Own,
    /// A machine elsewhere named it: this one is not made to ask itself or its own network, whatever a name resolves to.
    Public,
}

impl AllowedAddresses {
    /// A client for requests to an address, if that may be asked.
    pub(super) async fn client(self, url: &Url) -> Result<Client, DocumentError> {
        let addresses = self.resolve(url).await?;
        let unusable = |why: String| DocumentError::Unusable(why);
        let mut builder = client_builder(url).await.map_err(|error| unusable(error.to_string()))?;
        if let (Some(addresses), Some(host)) = (addresses, url.host_str()) {
            builder = builder.no_proxy().resolve_to_addrs(host, &addresses);
        }
        builder.build().map_err(|error| unusable(error.without_url().to_string()))
    }

    /// Whether an address may be asked, for those that somebody's browser asks.
    pub(super) async fn check(self, url: &Url) -> Result<(), DocumentError> {
        self.resolve(url).await.map(drop)
    }

    /// The only addresses to connect to; absent where any may be.
    async fn resolve(self, url: &Url) -> Result<Option<Vec<SocketAddr>>, DocumentError> {
        if self == Self::Own {
            return Ok(None);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let addresses = match literal(url) {
            Some(address) => vec![SocketAddr::new(address, port)],
            None => {
                let host = url.host_str().unwrap_or_default();
                let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
                    DocumentError::Unreachable(format!("its name cannot be resolved: {error}"))
                })?;
                found.take(ADDRESSES_MAX).collect()
            }
        };
        check_addresses(&addresses)?;
        Ok(Some(addresses))
    }
}

/// Whether all addresses of a name are of the public internet.
fn check_addresses(addresses: &[SocketAddr]) -> Result<(), DocumentError> {
    if addresses.is_empty() {
        let why = "its name has no address".to_owned();
        return Err(DocumentError::Unreachable(why));
    }
    let is_public = |address: &SocketAddr| is_public_address(IpAddr::to_canonical(&address.ip()));
    if addresses.iter().all(is_public) { Ok(()) } else { Err(DocumentError::NotPublic) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_private_address_of_a_name_is_enough_to_refuse_it() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            let addresses = texts.iter().map(|text| text.parse().unwrap());
            addresses.collect()
        };
        let public = addresses(&["1.1.1.1:443", "[2606:4700::1111]:443"]);
        assert_eq!(check_addresses(&public), Ok(()));
        for private in [
            "127.0.0.1:443",
            "10.0.0.1:443",
            "169.254.169.254:443",
            "[::1]:443",
            "[::ffff:192.168.0.1]:443",
            "[fd00::1]:443",
        ] {
            let mixed = addresses(&["1.1.1.1:443", private]);
            assert_eq!(check_addresses(&mixed), Err(DocumentError::NotPublic));
        }
        assert!(check_addresses(&[]).is_err());
    }

    #[tokio::test]
    async fn a_name_counts_as_what_it_resolves_to() {
        let url = |text: &str| Url::parse(text).unwrap();
        for here in ["https://localhost/x", "https://127.0.0.1/", "https://[::1]/"] {
            let refused = AllowedAddresses::Public.client(&url(here)).await.map(drop);
            assert_eq!(refused, Err(DocumentError::NotPublic), "{here}");
            assert_eq!(AllowedAddresses::Own.check(&url(here)).await, Ok(()));
        }
        let public = url("https://1.1.1.1/");
        assert_eq!(AllowedAddresses::Public.check(&public).await, Ok(()));
    }
}
