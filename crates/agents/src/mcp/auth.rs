//! What a server wants that answers 401, or 403 for want of scopes: found out for whoever can get a token (MC-14).
//!
//! Promises: metadata are asked for over https, on this machine only if the server is there, and at an address of a private
//! network only if it is the server's own; bounded in time and size; no redirect
//! is followed. Metadata of another resource than the server are an error. A token is for https, or for this machine. None is in here.
//! Must not know: how tokens are got.

use std::net::IpAddr;

use reqwest::Url;
use serde_json::Value;

use super::allowed_addresses::AllowedAddresses;
use super::document::fetch_json;
use super::error::clean;
use super::http::{is_this_machine, literal};
use super::oauth_client::OAuthClient;

/// Scopes, and characters of each.
const SCOPES_MAX: usize = 64;
const SCOPE_CHARS_MAX: usize = 256;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Why a token is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenReason {
    Required,
    /// There was one, and it is not taken any more.
    Expired,
    InsufficientScope,
}

/// What a server said with its refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenChallenge {
    pub reason: TokenReason,
    /// `WWW-Authenticate`
    pub header: String,
}

/// What somebody must know to get a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRequest {
    pub reason: TokenReason,
    /// `ProtectedResourceMetadata`
    pub metadata: Value,
    pub scopes: Vec<String>,
    pub description: Option<String>,
    /// The client that the user registered, with its secret if clients may know it (MC-15).
    pub client: Option<OAuthClient>,
}

impl TokenRequest {
    /// What the token is for.
    pub fn resource(&self) -> &str {
        self.metadata["resource"].as_str().unwrap_or_default()
    }

    /// Adds the client that the user registered. One that belongs to an issuer is for that issuer alone: a server that names others
    /// must not have the secret of the client sent to them, so they are left out of what clients are told.
    pub(super) fn with_client(
        mut self,
        client: OAuthClient,
        issuer: Option<&str>,
    ) -> Result<Self, String> {
        if let Some(issuer) = issuer {
            let named = self.metadata["authorization_servers"].as_array();
            let is_named = match named.filter(|named| !named.is_empty()) {
                Some(named) => named.iter().any(|name| is_issuer(issuer, name)),
                // One that names none is its own.
                None => {
                    let own = Url::parse(self.resource()).map(|url| url.origin());
                    own.is_ok_and(|own| is_issuer(issuer, &Value::from(own.ascii_serialization())))
                }
            };
            if !is_named {
                return Err(format!(
                    "its metadata do not name the `issuer` {} of its `oauth`, which alone the client is registered at",
                    clean(issuer)
                ));
            }
            self.metadata["authorization_servers"] = Value::from(vec![issuer.to_owned()]);
        } else if client.secret.is_some() {
            return Err("its `oauth` has a secret, and no `issuer` that it is for".to_owned());
        }
        self.client = Some(client);
        Ok(self)
    }
}

/// Whether two names are of one authorisation server; a slash at the end is written by some.
fn is_issuer(issuer: &str, named: &Value) -> bool {
    named.as_str().unwrap_or_default().trim_end_matches('/') == issuer.trim_end_matches('/')
}

/// Finds out what a server wants.
pub(super) async fn discover(
    url: &str,
    challenge: &TokenChallenge,
) -> Result<TokenRequest, String> {
    let server = Url::parse(url).map_err(|_| "its URL is not one".to_owned())?;
    if !is_safe(&server) {
        return Err("none is sent to its address, which is not https".to_owned());
    }
    let named = parameter(&challenge.header, "resource_metadata");
    let addresses = match named {
        Some(named) => vec![Url::parse(&named).map_err(|_| "its metadata have no URL".to_owned())?],
        None => well_known(&server),
    };
    let mut problem = "it does not say where a token is got".to_owned();
    for address in addresses {
        match read_metadata(&server, &address).await {
            Ok(metadata) => return Ok(make_request(metadata, challenge)),
            Err(why) => problem = why,
        }
    }
    Err(problem)
}

/// Where metadata are without being named: with the path of the server, and for all of it.
fn well_known(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let with_path = server.join(&format!("{WELL_KNOWN}{path}"));
    let whole = server.join(WELL_KNOWN);
    let mut addresses: Vec<Url> = with_path.into_iter().chain(whole).collect();
    for address in &mut addresses {
        address.set_query(None);
    }
    addresses.dedup();
    addresses
}

/// Whether metadata of a server are read from an address. Another machine must not make this one ask itself, or its own network.
pub(super) fn may_be_asked(server: &Url, address: &Url) -> bool {
    if address.scheme() != "https" {
        return address.scheme() == "http" && is_this_machine(address) && is_this_machine(server);
    }
    if names_this_machine(address) {
        return names_this_machine(server);
    }
    let is_own = address.host_str() == server.host_str();
    is_own || !literal(address).is_some_and(is_of_own_network)
}

/// Whether a host may mean this machine: more than [`is_this_machine`] says for certain.
fn names_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    is_this_machine(url) || host == "localhost" || host.ends_with(".localhost")
}

/// Addresses that mean another machine in each network: private, shared, link-local, to many.
fn is_of_own_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            let is_here = first == 0;
            let is_to_many = v4.is_broadcast() || v4.is_multicast();
            v4.is_private() || v4.is_link_local() || is_shared || is_here || is_to_many
        }
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast(),
    }
}

async fn read_metadata(server: &Url, address: &Url) -> Result<Value, String> {
    if !may_be_asked(server, address) {
        return Err("its metadata are at an address that is not asked".to_owned());
    }
    // The user's declaration names the server, and this is the machine that it is for.
    let metadata = fetch_json(address, AllowedAddresses::Own).await;
    let metadata = metadata.map_err(|why| format!("its metadata cannot be read: {why}"))?;
    let resource = metadata.get("resource").and_then(Value::as_str);
    let resource = resource.and_then(|resource| Url::parse(resource).ok());
    if resource.is_some_and(|resource| covers(&resource, server)) {
        Ok(metadata)
    } else {
        Err("its metadata are those of another resource".to_owned())
    }
}

/// Whether a token for a resource may be sent to a URL: the same origin, and the same path or one below. Never in plain text to
/// another machine.
pub(super) fn covers(resource: &Url, url: &Url) -> bool {
    let (prefix, path) = (resource.path().trim_end_matches('/'), url.path());
    let is_below =
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_safe(url) && resource.origin() == url.origin() && is_below
}

/// Whether nobody on the way can read what is sent.
pub(super) fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_this_machine(url))
}

fn make_request(mut metadata: Value, challenge: &TokenChallenge) -> TokenRequest {
    let wanted = parameter(&challenge.header, "scope");
    let scopes: Vec<String> = match wanted {
        Some(wanted) => wanted.split_whitespace().map(str::to_owned).collect(),
        None => {
            let supported = metadata["scopes_supported"].as_array().into_iter().flatten();
            supported.filter_map(|scope| Some(scope.as_str()?.to_owned())).collect()
        }
    };
    let scopes = scopes
        .into_iter()
        .take(SCOPES_MAX)
        .map(|scope| scope.chars().take(SCOPE_CHARS_MAX).collect());
    // Clients need what is standard; the rest could be anything.
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|name, _| {
            matches!(
                name.as_str(),
                "resource"
                    | "resource_name"
                    | "authorization_servers"
                    | "scopes_supported"
                    | "bearer_methods_supported"
                    | "resource_documentation"
            )
        });
    }
    TokenRequest {
        reason: challenge.reason,
        metadata,
        scopes: scopes.collect(),
        description: parameter(&challenge.header, "error_description").map(|it| clean(&it)),
        client: None,
    }
}

/// A parameter of `WWW-Authenticate`, in quotes or not.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header;
    while let Some(at) = rest.find(name) {
        let is_whole =
            rest[..at].chars().next_back().is_none_or(|before| before == ' ' || before == ',');
        let after = &rest[at + name.len()..];
        if let (true, Some(value)) = (is_whole, after.trim_start().strip_prefix('=')) {
            let value = value.trim_start();
            return Some(match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
                None => {
                    let end = value.find([',', ' ']).unwrap_or(value.len());
                    value[..end].to_owned()
                }
            });
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_of_a_challenge_are_found() {
        let header = r#"Bearer error="insufficient_scope", scope="read write", resource_metadata="https://h/m", x=1"#;
        assert_eq!(parameter(header, "scope").as_deref(), Some("read write"));
        assert_eq!(parameter(header, "resource_metadata").as_deref(), Some("https://h/m"));
        assert_eq!(parameter(header, "x").as_deref(), Some("1"));
        assert_eq!(parameter(header, "metadata"), None, "a part of a name");
        assert_eq!(parameter("Bearer", "scope"), None);
    }

    #[test]
    fn mc_14_a_server_elsewhere_has_nothing_asked_here() {
        let url = |text: &str| Url::parse(text).unwrap();
        let remote = "https://mcp.example/mcp";
        for here in [
            "localhost:8443",
            "localhost.:8443",
            "m.localhost",
            "127.0.0.1:8443",
            "127.1",
            "2130706433",
            "0.0.0.0",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:0.0.0.0]",
        ] {
            let address = url(&format!("https://{here}/m"));
            assert!(!may_be_asked(&url(remote), &address), "{here}");
            let local = url("https://127.0.0.1:9/mcp");
            assert!(may_be_asked(&local, &address), "{here}");
        }
        for near in [
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.1.2.3",
            "[::ffff:10.0.0.1]",
            "[fd00::1]",
            "[fe80::1]",
        ] {
            let address = url(&format!("https://{near}:8443/m"));
            assert!(!may_be_asked(&url(remote), &address), "{near}");
            let own = url(&format!("https://{near}/mcp"));
            assert!(may_be_asked(&own, &address), "{near}");
        }
        for (server, address, is_asked) in [
            (remote, "https://mcp.example/m", true),
            (remote, "https://other.example/m", true),
            (remote, "https://8.8.8.8/m", true),
            (remote, "https://notlocalhost/m", true),
            (remote, "http://mcp.example/m", false),
            (remote, "http://127.0.0.1/m", false),
            (remote, "file:///etc/passwd", false),
            ("http://127.0.0.1:1/mcp", "http://localhost:2/m", true),
            ("http://127.0.0.1:1/mcp", "http://m.localhost/m", false),
            ("http://127.0.0.1:1/mcp", "http://mcp.example/m", false),
            ("https://10.0.0.1/mcp", "https://10.0.0.2/m", false),
        ] {
            let may_be = may_be_asked(&url(server), &url(address));
            assert_eq!(may_be, is_asked, "{server} {address}");
        }
    }

    #[test]
    fn mc_15_a_client_is_for_the_issuer_it_was_registered_at() {
        let request = |named: Value| TokenRequest {
            reason: TokenReason::Required,
            metadata: json!({"resource": "https://mcp.example/mcp", "authorization_servers": named}),
            scopes: Vec::new(),
            description: None,
            client: None,
        };
        let client = |secret: Option<&str>| OAuthClient {
            id: "c".to_owned(),
            secret: secret.map(str::to_owned),
        };
        let issuer = Some("https://auth.example");
        let both = json!(["https://evil.example", "https://auth.example/"]);
        let known = request(both.clone()).with_client(client(Some("s")), issuer).unwrap();
        assert_eq!(
            known.metadata["authorization_servers"],
            json!(["https://auth.example"]),
            "clients are told of no other"
        );
        assert_eq!(known.client, Some(client(Some("s"))));
        for named in [json!(["https://evil.example"]), json!([]), json!(null)] {
            let refused = request(named).with_client(client(Some("s")), issuer);
            assert!(refused.unwrap_err().contains("https://auth.example"));
        }
        let own = request(json!(null))
            .with_client(client(Some("s")), Some("https://mcp.example"))
            .unwrap();
        assert_eq!(own.metadata["authorization_servers"][0], "https://mcp.example");
        // Without a secret there is nothing to be had by naming another.
        let public = request(both.clone()).with_client(client(None), None);
        assert_eq!(public.unwrap().metadata["authorization_servers"], both);
        let nowhere = request(both).with_client(client(Some("s")), None);
        assert!(nowhere.unwrap_err().contains("issuer"));
    }

    #[tokio::test]
    async fn mc_14_no_token_is_asked_for_where_none_is_sent() {
        let challenge = TokenChallenge {
            reason: TokenReason::Required,
            header: r#"Bearer resource_metadata="https://127.0.0.1:1/m""#.to_owned(),
        };
        let wanted = discover("http://mcp.example/mcp", &challenge).await;
        assert!(wanted.unwrap_err().contains("not https"));
    }

    #[test]
    fn mc_14_a_token_goes_nowhere_else() {
        let url = |text: &str| Url::parse(text).unwrap();
        for (resource, server, is_covered) in [
            ("https://h/mcp", "https://h/mcp", true),
            ("https://h/", "https://h/mcp/x", true),
            ("https://h/mcp/", "https://h/mcp", true),
            ("https://h/mcp", "https://h/mcpother", false),
            ("https://h/mcp", "https://h:444/mcp", false),
            ("http://h/mcp", "https://h/mcp", false),
            ("https://other/mcp", "https://h/mcp", false),
            ("http://h/mcp", "http://h/mcp", false),
            ("http://10.0.0.1/mcp", "http://10.0.0.1/mcp", false),
            ("http://m.localhost/mcp", "http://m.localhost/mcp", false),
            ("http://localhost:1/mcp", "http://localhost:1/mcp", true),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp", true),
            ("http://[::1]:1/mcp", "http://[::1]:1/mcp", true),
            ("ftp://localhost/mcp", "ftp://localhost/mcp", false),
        ] {
            assert_eq!(covers(&url(resource), &url(server)), is_covered, "{resource} {server}");
        }
    }
}
