//! Which addresses may be asked: those of the public internet, and what the operator allowed by name.
//!
//! Promises: a name is resolved once, every address it has is judged, and the connection goes to those addresses alone: a
//! name that means something else a moment later leads nowhere else.
//! Must not know: requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;

use super::super::ToolError;

/// A server in Azure's machines that answers under a public address.
const AZURE_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Addresses of one name that are used.
const ADDRESSES_MAX: usize = 16;

/// `example.org:443`: what is consented to, and what the operator allows.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    let port = url.port_or_known_default().unwrap_or(0);
    format!("{host}:{port}")
}

/// The addresses behind a URL, if all of them may be asked.
pub(super) async fn resolve(url: &Url, allowed: &[String]) -> Result<Vec<SocketAddr>, ToolError> {
    let authority = authority(url);
    let host = url.host_str().unwrap_or("");
    let port = url.port_or_known_default().unwrap_or(0);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<SocketAddr> = match literal.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => {
            let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
                ToolError(format!("the name {host} cannot be resolved: {error}"))
            })?;
            found.take(ADDRESSES_MAX).collect()
        }
    };
    if addresses.is_empty() {
        return Err(ToolError(format!("the name {host} has no address")));
    }
    let is_allowed = allowed.iter().any(|it| it.eq_ignore_ascii_case(&authority));
    let private = addresses.iter().find(|address| !is_public(address.ip()));
    match private {
        Some(_) if !is_allowed => Err(ToolError(format!(
            "{host} leads to an address of this machine or of a private network, which is not fetched; the user can \
             allow it with `web_fetch_allow = [\"{authority}\"]` in the host's configuration"
        ))),
        Some(_) | None => Ok(addresses),
    }
}

/// Whether an address is one of the public internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_reserved = matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    );
    !is_reserved && address != AZURE_METADATA
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // IPv4 in other clothes: mapped, translated, tunnelled.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, benchmarks, documentation and the like.
        [0x2001, second, ..] if second < 0x0200 || second == 0x0db8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // All that is given out so far.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.170",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "93.184.216.34",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[tokio::test]
    async fn a_private_address_is_refused_unless_it_is_allowed_with_its_port() {
        let allowed = ["localhost:81".to_owned(), "[::1]:82".to_owned()];
        for (url, is_fine) in [
            ("http://localhost:80/", false),
            ("http://LOCALHOST:81/", true),
            ("http://127.0.0.1:81/", false),
            ("http://127.1/", false),
            ("http://2130706433/", false),
            ("http://0x7f.1/", false),
            ("http://[::1]:82/", true),
            ("http://[::ffff:127.0.0.1]/", false),
            ("http://169.254.169.254/latest/meta-data", false),
            ("http://1.1.1.1/", true),
        ] {
            let url = Url::parse(url).unwrap();
            let resolved = resolve(&url, &allowed).await;
            assert_eq!(resolved.is_ok(), is_fine, "{url}: {resolved:?}");
        }
    }
}
