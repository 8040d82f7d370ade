//! The address that a browser is sent to after the page: what must be in it to be the answer that is waited for.
//!
//! Promises: a code counts only with the state that the page was made with, and from the server that it was asked of.
//! Must not know: how the address came here, what a code is redeemed for.

use reqwest::Url;
use sha2::{Digest, Sha256};

use super::authorization_server::AuthorizationServer;
use super::token_request::describe_error;

const CODE_BYTES_MAX: usize = 8 << 10;

/// What is said of an answer to another page.
pub(super) const FOREIGN: &str = "this is not the answer to the sign-in that waits";

/// What an answer must hold to be the one that is waited for.
#[derive(Debug)]
pub(super) struct ExpectedRedirect {
    /// A digest: how long a comparison takes says nothing of the state itself.
    state: [u8; 32],
    issuer: String,
    names_itself: bool,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RedirectAnswer {
    Code(String),
    Refused(String),
    /// Not from the page that was made.
    Foreign,
}

impl ExpectedRedirect {
    pub(super) fn new(state: &str, server: &AuthorizationServer) -> Self {
        Self {
            state: Sha256::digest(state).into(),
            issuer: server.issuer.clone(),
            names_itself: server.names_itself,
        }
    }

    /// One of a server that does not name itself.
    #[cfg(test)]
    pub(super) fn for_test(state: &str) -> Self {
        Self {
            state: Sha256::digest(state).into(),
            issuer: "https://auth.example".to_owned(),
            names_itself: false,
        }
    }

    /// Reads an address that a browser was sent to, whole or from its path on.
    pub(super) fn read(&self, address: &str) -> RedirectAnswer {
        let base = Url::parse("http://127.0.0.1/").ok();
        let Some(address) = base.and_then(|base| base.join(address.trim()).ok()) else {
            return RedirectAnswer::Foreign;
        };
        let field = |name: &str| {
            let mut fields = address.query_pairs();
            let found = fields.find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned())
        };
        let state = field("state").unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(state).into();
        if digest != self.state {
            return RedirectAnswer::Foreign;
        }
        // RFC 9207: a code of another server must not be brought to this one.
        match field("iss") {
            Some(issuer) if issuer != self.issuer => return RedirectAnswer::Foreign,
            None if self.names_itself => return RedirectAnswer::Foreign,
            Some(_) | None => {}
        }
        if let Some(error) = field("error") {
            let description = field("error_description");
            return RedirectAnswer::Refused(describe_error(&error, description.as_deref()));
        }
        match field("code") {
            Some(code) if !code.is_empty() && code.len() <= CODE_BYTES_MAX => {
                RedirectAnswer::Code(code)
            }
            Some(_) | None => RedirectAnswer::Refused("there was no code in the answer".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(names_itself: bool) -> ExpectedRedirect {
        ExpectedRedirect { names_itself, ..ExpectedRedirect::for_test("s1") }
    }

    #[test]
    fn a_code_counts_only_with_its_state_and_from_its_server() {
        let code = |code: &str| RedirectAnswer::Code(code.to_owned());
        for (address, names_itself, returned) in [
            ("/callback?code=c&state=s1", false, code("c")),
            ("http://127.0.0.1:7/callback?state=s1&code=a%2Fb", false, code("a/b")),
            ("/callback?code=c&state=s2", false, RedirectAnswer::Foreign),
            ("/callback?code=c", false, RedirectAnswer::Foreign),
            ("/callback?code=c&state=s1", true, RedirectAnswer::Foreign),
            ("/callback?code=c&state=s1&iss=https://auth.example", true, code("c")),
            ("/callback?code=c&state=s1&iss=https://evil.example", false, RedirectAnswer::Foreign),
            ("/callback?error=access_denied&state=s2", false, RedirectAnswer::Foreign),
            (
                "/callback?error=access_denied&error_description=no+way%0a&state=s1",
                false,
                RedirectAnswer::Refused("no way (access_denied)".to_owned()),
            ),
        ] {
            assert_eq!(expected(names_itself).read(address), returned, "{address}");
        }
        let empty = expected(false).read("/callback?state=s1&code=");
        assert!(matches!(empty, RedirectAnswer::Refused(_)));
    }
}
