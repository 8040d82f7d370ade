//! A small authorisation server: everybody is let in at once, with a code that only whoever asked can redeem (PKCE, S256), at the
//! address it was asked for (RFC 6749, 4.1). Strict, so that a test fails where a real server would refuse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A client that everybody knows, for tests that register none, and where it is sent back to.
const KNOWN_CLIENT: (&str, &str) = ("c", "http://127.0.0.1/back");

/// What was asked for and given out.
#[derive(Debug, Clone)]
pub(crate) struct Issuer {
    issued: Arc<Mutex<Issued>>,
    lifetime: Duration,
    /// Whether tokens can be renewed.
    renews: bool,
}

#[derive(Debug, Default)]
struct Issued {
    /// Where each client may be sent back to.
    clients: BTreeMap<String, String>,
    codes: BTreeMap<String, AskedCode>,
    tokens: BTreeMap<String, Instant>,
    refresh_tokens: BTreeMap<String, String>,
    count: usize,
    renewals: usize,
}

#[derive(Debug)]
struct AskedCode {
    challenge: String,
    client: String,
    redirect: String,
}

type Fields = BTreeMap<String, String>;

impl Issuer {
    pub(crate) fn new(lifetime: Duration, renews: bool) -> Self {
        let issuer = Self { issued: Arc::default(), lifetime, renews };
        let (client, redirect) = KNOWN_CLIENT;
        issuer.with(|issued| issued.clients.insert(client.to_owned(), redirect.to_owned()));
        issuer
    }

    fn with<T>(&self, change: impl FnOnce(&mut Issued) -> T) -> T {
        change(&mut self.issued.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_token(&self, token: &str) -> bool {
        self.with(|issued| {
            let given = issued.tokens.get(token);
            given.is_some_and(|given| given.elapsed() < self.lifetime)
        })
    }

    /// `/.well-known/oauth-authorization-server`
    pub(crate) fn metadata(origin: &str) -> Value {
        json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })
    }

    /// A client that holds no secret (RFC 7591).
    pub(crate) fn register(&self, body: &str) -> Option<Value> {
        let wanted: Value = serde_json::from_str(body).ok()?;
        let redirect = wanted["redirect_uris"][0].as_str()?;
        let is_public = wanted["token_endpoint_auth_method"] == "none";
        (is_public && redirect.starts_with("http://127.0.0.1:")).then(|| {
            self.with(|issued| {
                issued.count += 1;
                let client = format!("client{}", issued.count);
                issued.clients.insert(client.clone(), redirect.to_owned());
                json!({"client_id": client, "redirect_uris": [redirect]})
            })
        })
    }

    /// Where whoever asks for a code is sent with it; none if the request is not right.
    pub(crate) fn authorize(&self, query: &str, resource: &str) -> Option<String> {
        let fields = read_form(query);
        let is = |name: &str, value: &str| fields.get(name).is_some_and(|it| it == value);
        let is_asked = is("response_type", "code") && is("code_challenge_method", "S256");
        let challenge = fields.get("code_challenge")?.clone();
        let (redirect, state) = (fields.get("redirect_uri")?, fields.get("state")?);
        let client = fields.get("client_id")?;
        let is_for_it = fields.get("resource").is_none_or(|it| it == resource);
        self.with(|issued| {
            if !is_asked || !is_for_it || issued.clients.get(client) != Some(redirect) {
                return None;
            }
            issued.count += 1;
            let code = format!("code{}", issued.count);
            let asked = AskedCode { challenge, client: client.clone(), redirect: redirect.clone() };
            issued.codes.insert(code.clone(), asked);
            Some(format!("{redirect}?code={code}&state={state}"))
        })
    }

    /// `/token`: a token for a code, or for the right to renew one, each once.
    pub(crate) fn redeem(&self, form: &str) -> Option<Value> {
        let fields = read_form(form);
        let client = fields.get("client_id")?.clone();
        self.with(|issued| {
            match fields.get("grant_type")?.as_str() {
                "authorization_code" => check_code(issued, &fields, &client)?,
                "refresh_token" => {
                    let of = issued.refresh_tokens.remove(fields.get("refresh_token")?)?;
                    if of != client {
                        return None;
                    }
                    issued.renewals += 1;
                }
                _ => return None,
            }
            issued.count += 1;
            let token = format!("t0ken-{}", issued.count);
            issued.tokens.insert(token.clone(), Instant::now());
            let mut given = json!({
                "access_token": token, "token_type": "Bearer", "expires_in": self.lifetime.as_secs(),
            });
            if self.renews {
                let renewal = format!("renewal-{}", issued.count);
                issued.refresh_tokens.insert(renewal.clone(), client);
                given["refresh_token"] = json!(renewal);
            }
            Some(given)
        })
    }

    /// Tokens are not taken any more; those that can be renewed can still be.
    pub(crate) fn revoke_all(&self) {
        self.with(|issued| issued.tokens.clear());
    }

    /// How often tokens were renewed.
    pub(crate) fn renewals(&self) -> usize {
        self.with(|issued| issued.renewals)
    }
}

/// Whether a code is redeemed by whoever asked for it.
fn check_code(issued: &mut Issued, fields: &Fields, client: &str) -> Option<()> {
    let challenge = Sha256::digest(fields.get("code_verifier")?);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
    let asked = issued.codes.remove(fields.get("code")?)?;
    let is_theirs = asked.client == client && fields.get("redirect_uri") == Some(&asked.redirect);
    (is_theirs && asked.challenge == challenge).then_some(())
}

/// The fields of a form; no other escapes are needed here.
fn read_form(form: &str) -> Fields {
    let fields = form.split('&').filter_map(|field| field.split_once('='));
    fields
        .map(|(name, value)| (name.to_owned(), value.replace("%3A", ":").replace("%2F", "/")))
        .collect()
}
