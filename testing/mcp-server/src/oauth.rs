//! A small authorisation server: everybody is let in at once, with a code that only whoever asked can redeem (PKCE, S256).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What was asked for and given out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Issuer(Arc<Mutex<Issued>>);

#[derive(Debug, Default)]
struct Issued {
    /// Codes, and the challenge that each was asked for with.
    codes: BTreeMap<String, String>,
    tokens: BTreeSet<String>,
    count: usize,
}

impl Issuer {
    fn with<T>(&self, change: impl FnOnce(&mut Issued) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_token(&self, token: &str) -> bool {
        self.with(|issued| issued.tokens.contains(token))
    }

    /// `/.well-known/oauth-authorization-server`
    pub(crate) fn metadata(origin: &str) -> Value {
        json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })
    }

    /// Where whoever asks for a code is sent with it; none if the request is not right.
    pub(crate) fn authorize(&self, query: &str) -> Option<String> {
        let fields = read_form(query);
        let is_s256 = fields.get("code_challenge_method")? == "S256";
        let challenge = fields.get("code_challenge")?.clone();
        let (redirect, state) = (fields.get("redirect_uri")?, fields.get("state")?);
        is_s256.then(|| {
            let code = self.with(|issued| {
                issued.count += 1;
                let code = format!("code{}", issued.count);
                issued.codes.insert(code.clone(), challenge);
                code
            });
            format!("{redirect}?code={code}&state={state}")
        })
    }

    /// A token for a code, once, for whoever knows what the challenge was made from.
    pub(crate) fn redeem(&self, form: &str) -> Option<Value> {
        let fields = read_form(form);
        let verifier = fields.get("code_verifier")?;
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
        self.with(|issued| {
            let expected = issued.codes.remove(fields.get("code")?)?;
            if expected != challenge {
                return None;
            }
            issued.count += 1;
            let token = format!("t0ken-{}", issued.count);
            issued.tokens.insert(token.clone());
            Some(json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
        })
    }

    pub(crate) fn revoke_all(&self) {
        self.with(|issued| issued.tokens.clear());
    }
}

/// The fields of a form; escapes are not needed here.
fn read_form(form: &str) -> BTreeMap<String, String> {
    let fields = form.split('&').filter_map(|field| field.split_once('='));
    fields
        .map(|(name, value)| {
            (
                name.to_owned(),
                value.replace("%3A", ":").replace("%2F", "/"),
            )
        })
        .collect()
}
