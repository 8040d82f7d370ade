//! Tokens for codes, and newer tokens for older ones: forms to one address (RFC 6749, 4.1.3 and 6; RFC 8707).
//!
//! Promises: a token is one that can be sent in a header; what the server says of a refusal is shown bounded and on one line. Only
//! the server's own word ends what tokens are renewed with: a fault on the way does not.
//! Must not know: pages, where codes come from.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::Url;
use serde_json::Value;

use super::super::allowed_addresses::AllowedAddresses;
use super::super::document::post_form;
use super::super::error::clean;
use super::authorization_server::AuthorizationServer;
use super::{OAuthClient, SignInError, TokenGrant, TokenRenewal};

/// Longest token that a host takes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Errors that say nothing of what was sent: the same may be taken later (RFC 6749, 4.1.2.1; RFC 8628, 3.5).
const PASSING: [&str; 3] = ["server_error", "temporarily_unavailable", "slow_down"];

/// Why there is no newer token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenewalError {
    /// The server takes no more of it: somebody has to sign in again.
    #[error("{0}")]
    Ended(String),
    /// It could not be asked, or does not know now: the same is tried again.
    #[error("{0}")]
    Later(String),
}

/// What a server answered instead of a token.
enum TokenRequestError {
    /// Its own judgement of what was sent.
    Final(String),
    Passing(String),
}

/// Where a client gets tokens for a resource.
#[derive(Debug, Clone)]
pub(super) struct TokenEndpoint {
    address: Url,
    client: OAuthClient,
    takes_secret_in_body: bool,
    resource: String,
    allowed: AllowedAddresses,
}

impl TokenEndpoint {
    pub(super) fn new(server: &AuthorizationServer, client: OAuthClient, resource: String) -> Self {
        Self {
            address: server.token_endpoint.clone(),
            client,
            takes_secret_in_body: server.takes_secret_in_body,
            resource,
            allowed: server.allowed,
        }
    }

    pub(super) async fn redeem(
        self,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<TokenGrant, SignInError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let asked = self.ask(&fields, None).await;
        asked.map_err(|(TokenRequestError::Final(why) | TokenRequestError::Passing(why))| {
            SignInError::Refused(why)
        })
    }

    pub(super) async fn renew(self, refresh_token: &str) -> Result<TokenGrant, RenewalError> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        let asked = self.ask(&fields, Some(refresh_token)).await;
        asked.map_err(|refusal| match refusal {
            TokenRequestError::Final(why) => RenewalError::Ended(why),
            TokenRequestError::Passing(why) => RenewalError::Later(why),
        })
    }

    async fn ask(
        self,
        fields: &[(&str, &str)],
        renewed_with: Option<&str>,
    ) -> Result<TokenGrant, TokenRequestError> {
        let mut fields = fields.to_vec();
        fields.push(("resource", &self.resource));
        fields.push(("client_id", &self.client.id));
        let secret = self.client.secret.as_deref();
        let in_header = secret.filter(|_| !self.takes_secret_in_body);
        if let Some(secret) = secret.filter(|_| self.takes_secret_in_body) {
            fields.push(("client_secret", secret));
        }
        let basic = in_header.map(|secret| self.basic(secret));
        let form = make_form(&fields);
        let answer = post_form(&self.address, self.allowed, &form, basic.as_deref())
            .await
            .map_err(|error| TokenRequestError::Passing(error.to_string()))?;
        self.read(&answer, renewed_with)
    }

    /// Both halves are encoded as in forms first (RFC 6749, 2.3.1).
    fn basic(&self, secret: &str) -> String {
        let encoded = |text: &str| {
            make_form(&[("x", text)]).strip_prefix("x=").unwrap_or_default().to_owned()
        };
        let both = format!("{}:{}", encoded(&self.client.id), encoded(secret));
        format!("Basic {}", BASE64_STANDARD.encode(both))
    }

    fn read(
        self,
        answer: &Value,
        renewed_with: Option<&str>,
    ) -> Result<TokenGrant, TokenRequestError> {
        // Not a judgement of what was sent, so the tokens stay.
        let refused = |why: &str| TokenRequestError::Passing(why.to_owned());
        if let Some(error) = answer["error"].as_str() {
            let why = describe_error(error, answer["error_description"].as_str());
            return Err(if PASSING.contains(&error) {
                TokenRequestError::Passing(why)
            } else {
                TokenRequestError::Final(why)
            });
        }
        let text = |field: &str| {
            let text = answer[field].as_str();
            text.filter(|text| !text.is_empty() && text.len() <= TOKEN_BYTES_MAX)
        };
        let token =
            text("access_token").ok_or_else(|| refused("there is no token in the answer"))?;
        if token.contains(char::is_control) {
            return Err(refused("the token holds control characters"));
        }
        if !answer["token_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err(refused("the token is not of the kind `Bearer`"));
        }
        let expires_in = &answer["expires_in"];
        // Some send it as a text.
        let seconds = expires_in.as_u64().or_else(|| expires_in.as_str()?.parse().ok());
        let refresh_token = text("refresh_token").or(renewed_with).map(str::to_owned);
        Ok(TokenGrant {
            token: token.to_owned(),
            expires_in_s: seconds.filter(|seconds| *seconds > 0),
            renewal: refresh_token
                .map(|refresh_token| TokenRenewal { endpoint: self, refresh_token }),
        })
    }
}

/// The text of a refusal.
pub(super) fn describe_error(error: &str, description: Option<&str>) -> String {
    match description {
        Some(description) => format!("{} ({})", clean(description), clean(error)),
        None => clean(error),
    }
}

fn make_form(fields: &[(&str, &str)]) -> String {
    let Ok(mut url) = Url::parse("http://form.invalid/") else {
        debug_assert!(false, "a constant is a URL");
        return String::new();
    };
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn endpoint() -> TokenEndpoint {
        TokenEndpoint {
            address: Url::parse("https://auth.example/token").unwrap(),
            client: OAuthClient { id: "a b".to_owned(), secret: Some("s:x".to_owned()) },
            takes_secret_in_body: false,
            resource: "https://mcp.example/mcp".to_owned(),
            allowed: AllowedAddresses::Own,
        }
    }

    fn said(refusal: TokenRequestError) -> String {
        match refusal {
            TokenRequestError::Final(why) => format!("final: {why}"),
            TokenRequestError::Passing(why) => format!("passing: {why}"),
        }
    }

    #[test]
    fn answers_are_read_strictly() {
        let read = |answer: Value| endpoint().read(&answer, Some("old"));
        let grant = read(json!({"access_token": "t", "token_type": "bearer", "expires_in": "60"}))
            .map_err(said)
            .unwrap();
        assert_eq!((grant.token.as_str(), grant.expires_in_s), ("t", Some(60)));
        assert_eq!(grant.renewal.unwrap().refresh_token, "old", "it stays in use");
        for (answer, why) in [
            (json!({}), "passing: there is no token"),
            (json!({"access_token": "", "token_type": "Bearer"}), "no token"),
            (json!({"access_token": "a\nb", "token_type": "Bearer"}), "control"),
            (json!({"access_token": "t", "token_type": "mac"}), "Bearer"),
            (json!({"access_token": "t"}), "Bearer"),
            (
                json!({"error": "invalid_grant", "error_description": "gone\u{1b}[2J"}),
                "final: gone [2J (invalid_grant)",
            ),
            (json!({"error": "invalid_client"}), "final: invalid_client"),
            (json!({"error": "server_error"}), "passing: server_error"),
            (json!({"error": "temporarily_unavailable"}), "passing: "),
        ] {
            let refused = said(read(answer).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn secrets_are_encoded_and_not_shown() {
        let expected = BASE64_STANDARD.encode("a+b:s%3Ax");
        assert_eq!(endpoint().basic("s:x"), format!("Basic {expected}"));
        assert!(!format!("{:?}", endpoint()).contains("s:x"));
    }

    /// What becomes of a renewal that is answered with this.
    async fn renewed(answer: &'static str) -> Result<TokenGrant, RenewalError> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/token", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4_096];
            assert!(stream.read(&mut head).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        let renewal = TokenRenewal {
            endpoint: TokenEndpoint { address: Url::parse(&address).unwrap(), ..endpoint() },
            refresh_token: "r1".to_owned(),
        };
        let renewed = renewal.renew().await;
        served.await.unwrap();
        assert_eq!(renewal.refresh_token, "r1", "it can be tried again");
        renewed
    }

    #[tokio::test]
    async fn mc_14_only_the_servers_own_word_ends_a_renewal() {
        for (answer, is_ended) in [
            ("", false),
            ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", false),
            ("HTTP/1.1 502 Bad\r\ncontent-length: 25\r\n\r\n{\"error\":\"invalid_grant\"}", false),
            ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<p/>", false),
            ("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", false),
            ("HTTP/1.1 400 Bad\r\ncontent-length: 25\r\n\r\n{\"error\":\"invalid_grant\"}", true),
        ] {
            let error = renewed(answer).await.unwrap_err();
            let ended = matches!(error, RenewalError::Ended(_));
            assert_eq!(ended, is_ended, "{answer}: {error}");
        }
        let good = "HTTP/1.1 200 OK\r\ncontent-length: 43\r\n\r\n{\"access_token\":\"t2\",\"token_type\":\"Bearer\"}";
        assert_eq!(renewed(good).await.unwrap().token, "t2");
    }
}
