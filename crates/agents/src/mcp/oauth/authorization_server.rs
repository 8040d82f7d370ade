//! The authorisation server of a resource: found by its metadata, which must be its own, and asked to register a client.
//!
//! Promises: an address is asked only if the resource may make this machine ask it; answers are bounded in time and size; a server
//! that does not promise to check verifiers (S256) is refused.
//! Must not know: what the token is for.

use reqwest::Url;
use serde_json::{Value, json};

use super::super::allowed_addresses::AllowedAddresses;
use super::super::auth::may_be_asked;
use super::super::document::{fetch_json, post_json};
use super::super::http::is_this_machine;
use super::token_request::describe_error;
use super::{OAuthClient, SignInError};

/// Longest id and secret of a client.
const CLIENT_BYTES_MAX: usize = 4 << 10;

/// Scopes of a server that are looked at.
const SCOPES_MAX: usize = 1_024;

/// The scope of tokens that can be renewed while nobody is there.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// What of an authorisation server's metadata is used.
#[derive(Debug, Clone)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    registration_endpoint: Option<Url>,
    /// How clients with a secret show it.
    pub(super) takes_secret_in_body: bool,
    /// It names itself in what it sends back.
    pub(super) names_itself: bool,
    /// The scopes that it says it knows; none if it does not say.
    scopes: Option<Vec<String>>,
    resource: Url,
    pub(super) allowed: AllowedAddresses,
}

impl AuthorizationServer {
    /// The first that a resource names; one that names none is its own.
    pub(super) async fn find(
        resource: &Url,
        named: &[String],
        allowed: AllowedAddresses,
    ) -> Result<Self, SignInError> {
        let own = || resource.origin().ascii_serialization();
        let issuer = named.first().cloned().unwrap_or_else(own);
        let address = Url::parse(&issuer);
        let address = address.map_err(|_| bad("has no address"))?;
        let mut problem = bad("does not say how to sign in");
        for document in metadata_addresses(&address) {
            if !may_be_asked(resource, &document) {
                return Err(bad("is at an address that is not asked"));
            }
            match fetch_json(&document, allowed).await {
                Ok(metadata) => {
                    let server = Self::read(resource, &issuer, &metadata, allowed)?;
                    // It is a browser that asks for this one.
                    let page = allowed.check(&server.authorization_endpoint).await;
                    let unusable = "has no usable `authorization_endpoint`";
                    page.map_err(|why| SignInError::Server(format!("{unusable}: {why}")))?;
                    return Ok(server);
                }
                Err(why) => {
                    problem = SignInError::Server(format!("does not say how to sign in: {why}"));
                }
            }
        }
        Err(problem)
    }

    fn read(
        resource: &Url,
        issuer: &str,
        metadata: &Value,
        allowed: AllowedAddresses,
    ) -> Result<Self, SignInError> {
        // RFC 8414, 3.3: metadata that are another's could send the code anywhere.
        let said = metadata["issuer"].as_str().unwrap_or_default();
        if said.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(bad("has the metadata of another"));
        }
        let includes = |field: &str, value: &str| {
            let listed = metadata[field].as_array();
            listed.is_some_and(|listed| listed.iter().any(|it| it == value))
        };
        if !includes("code_challenge_methods_supported", "S256") {
            return Err(bad("does not check who redeems a code (PKCE, S256)"));
        }
        let endpoint = |field: &str| {
            let url = Url::parse(metadata[field].as_str()?).ok()?;
            may_be_asked(resource, &url).then_some(url)
        };
        let missing = |field: &str| SignInError::Server(format!("has no usable `{field}`"));
        let methods = "token_endpoint_auth_methods_supported";
        Ok(Self {
            issuer: said.to_owned(),
            authorization_endpoint: endpoint("authorization_endpoint")
                .ok_or_else(|| missing("authorization_endpoint"))?,
            token_endpoint: endpoint("token_endpoint").ok_or_else(|| missing("token_endpoint"))?,
            registration_endpoint: endpoint("registration_endpoint"),
            takes_secret_in_body: includes(methods, "client_secret_post"),
            names_itself: metadata["authorization_response_iss_parameter_supported"] == true,
            scopes: read_scopes(&metadata["scopes_supported"]),
            resource: resource.clone(),
            allowed,
        })
    }

    /// Whether tokens can be renewed only if this is asked for (OpenID Connect Core, 11): such servers give no refresh token otherwise.
    pub(super) fn offers_offline_access(&self) -> bool {
        self.scopes.as_deref().unwrap_or_default().iter().any(|scope| scope == OFFLINE_ACCESS)
    }

    /// Whether a client may be registered for these scopes. Those of a resource need not be among those of the server, and some
    /// servers then register no client at all; a client without scopes may ask for any.
    fn registers(&self, scopes: &[String]) -> bool {
        let is_known = |scope| self.scopes.as_ref().is_none_or(|known| known.contains(scope));
        !scopes.is_empty() && scopes.iter().all(is_known)
    }

    /// Registers this program as a client that can hold no secret (RFC 7591).
    pub(super) async fn register(
        &self,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<OAuthClient, SignInError> {
        let endpoint = self.registration_endpoint.as_ref().ok_or(SignInError::NoRegistration)?;
        debug_assert!(may_be_asked(&self.resource, endpoint), "checked when read");
        let mut client = json!({
            "client_name": "greenroom",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": application_type(redirect_uri),
        });
        if self.registers(scopes) {
            client["scope"] = json!(scopes.join(" "));
        }
        let registered = post_json(endpoint, self.allowed, &client)
            .await
            .map_err(|why| SignInError::Server(format!("registers no client: {why}")))?;
        let text = |field: &str| {
            let text = registered[field].as_str();
            let text = text.filter(|text| !text.is_empty() && text.len() <= CLIENT_BYTES_MAX);
            text.map(str::to_owned)
        };
        match text("client_id") {
            Some(id) => Ok(OAuthClient { id, secret: text("client_secret") }),
            None => {
                let error = registered["error"].as_str().unwrap_or("it gave no id");
                let why = describe_error(error, registered["error_description"].as_str());
                Err(SignInError::Server(format!("registers no client: {why}")))
            }
        }
    }
}

/// What kind of program is sent back to an address (OpenID Connect Registration, 2): one that listens on this machine is native.
fn application_type(redirect_uri: &str) -> &'static str {
    if Url::parse(redirect_uri).is_ok_and(|uri| uri.scheme() == "http" && is_this_machine(&uri)) {
        "native"
    } else {
        "web"
    }
}

fn read_scopes(listed: &Value) -> Option<Vec<String>> {
    let listed = listed.as_array()?.iter().take(SCOPES_MAX);
    let scopes = listed.filter_map(|scope| scope.as_str().map(str::to_owned));
    Some(scopes.collect())
}

fn bad(what: &str) -> SignInError {
    SignInError::Server(what.to_owned())
}

/// Where the metadata of an issuer are, in the order in which they are looked for (RFC 8414, OpenID Connect Discovery).
fn metadata_addresses(issuer: &Url) -> Vec<Url> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        places.push(format!("{path}{OPENID}"));
    }
    let places = places.iter().map(|place| {
        let mut address = issuer.clone();
        address.set_path(place);
        address.set_query(None);
        address.set_fragment(None);
        address
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Value {
        json!({
            "issuer": "https://auth.example/tenant",
            "authorization_endpoint": "https://auth.example/authorize",
            "token_endpoint": "https://auth.example/token",
            "code_challenge_methods_supported": ["plain", "S256"],
        })
    }

    fn read(metadata: &Value) -> Result<AuthorizationServer, SignInError> {
        let resource = Url::parse("https://mcp.example/mcp").unwrap();
        AuthorizationServer::read(
            &resource,
            "https://auth.example/tenant",
            metadata,
            AllowedAddresses::Own,
        )
    }

    #[test]
    fn metadata_are_looked_for_where_both_standards_put_them() {
        let of = |issuer: &str| -> Vec<String> {
            metadata_addresses(&Url::parse(issuer).unwrap()).into_iter().map(String::from).collect()
        };
        assert_eq!(
            of("https://a.example/t?x=1#y"),
            [
                "https://a.example/.well-known/oauth-authorization-server/t",
                "https://a.example/.well-known/openid-configuration/t",
                "https://a.example/t/.well-known/openid-configuration",
            ]
        );
        assert_eq!(of("https://a.example/").len(), 2);
    }

    #[test]
    fn scopes_that_the_server_does_not_list_are_not_registered() {
        let tools = ["tools".to_owned()];
        let scopes = |listed: Value| {
            let mut metadata = metadata();
            metadata["scopes_supported"] = listed;
            let server = read(&metadata).unwrap();
            (server.registers(&tools), server.offers_offline_access())
        };
        assert_eq!(scopes(Value::Null), (true, false), "it does not say");
        assert_eq!(scopes(json!(["openid", "offline_access"])), (false, true));
        assert_eq!(scopes(json!(["tools"])), (true, false));
        assert!(!read(&metadata()).unwrap().registers(&[]));
    }

    #[test]
    fn a_program_on_this_machine_is_native() {
        assert_eq!(application_type("http://127.0.0.1:7/callback"), "native");
        assert_eq!(application_type("https://laptop.example/"), "web");
    }

    #[test]
    fn metadata_that_are_not_its_own_or_not_safe_are_refused() {
        read(&metadata()).unwrap();
        for (field, value, why) in [
            ("issuer", json!("https://other.example"), "of another"),
            ("issuer", json!(null), "of another"),
            ("code_challenge_methods_supported", json!(["plain"]), "PKCE"),
            ("code_challenge_methods_supported", json!(null), "PKCE"),
            ("token_endpoint", json!("http://auth.example/t"), "token_endpoint"),
            ("token_endpoint", json!("https://127.0.0.1/t"), "token_endpoint"),
            ("authorization_endpoint", json!("file:///etc/passwd"), "authorization_endpoint"),
            ("authorization_endpoint", json!("javascript:alert(1)"), "authorization_endpoint"),
        ] {
            let mut metadata = metadata();
            metadata[field] = value;
            let refused = read(&metadata).unwrap_err().to_string();
            assert!(refused.contains(why), "{field}: {refused}");
        }
    }
}
