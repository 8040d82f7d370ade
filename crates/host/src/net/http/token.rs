//! The token of a request: where it may be carried, how it is compared, and the host's proof that it knows it.
//!
//! Promises: tokens are compared in constant time and never repeated; a token that is anywhere in a request must be right.
//! Must not know: sockets, what a connection is used for.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_PROTOCOL};
use sha2::Sha256;
use tokio::time::{Instant, timeout_at};
use wire::percent;

use super::answer::HttpResponse;
use super::gate::Headers;
use super::http_socket::{HttpSocket, UpgradedWay};
use super::query::values_of;
use super::request_head::HttpRequestHead;
use crate::accounts::{AccountToken, Accounts, GrantedToken, TokenRefusal};
use crate::cluster::{ClientRoute, RelayRefusal, RelayedClient};
use crate::net::access::Access;
use crate::net::{Admission, SpaceHandle};

/// A page puts its token into a subprotocol: browsers let it choose those, but no header and, for good, no query (G-25).
const PROTOCOL_PREFIX: &[u8] = b"tkn.";
/// The subprotocol that is agreed on, if it is offered.
pub(super) const PROTOCOL: &str = "ahp";

/// Clients give a connection up after ten seconds: they are told before, as another node may serve them by then.
const FINDING_WAIT: Duration = Duration::from_secs(5);

/// Hex digits of a nonce.
const NONCE_DIGITS: usize = 32;

/// Until when it is to be found out who asks and where their space is: one moment for all of a request.
pub(super) fn finding_deadline() -> Instant {
    Instant::now() + FINDING_WAIT
}

/// Who asks, and where their space is. A token of an account names its space; any other is tried at each. Only what opens a
/// WebSocket is passed on to another node.
pub(super) async fn identify(
    request: &HttpRequestHead<'_>,
    opens_websocket: bool,
) -> Result<(UpgradedWay, Access), HttpResponse> {
    let http_socket = request.http_socket;
    let presented = presented_tokens(request.headers, request.query);
    let is_of_account = presented.iter().any(|it| AccountToken::is_claimed(it));
    if let Some(accounts) = http_socket.handles.accounts().filter(|_| is_of_account) {
        let identified = async {
            let granted = check_account(accounts, &presented).await?;
            let way = find_way(&granted, http_socket, opens_websocket).await?;
            Ok((way, Access::Account(granted)))
        };
        return find_in_time(request.until, identified).await;
    }
    let address = http_socket.address.ip();
    let check = |handle: &SpaceHandle| check(&presented, &handle.admission, address);
    let (handle, access) = http_socket.handles.open(check)?;
    Ok((UpgradedWay::Here(handle), access))
}

/// The same for routes where a token must not be in an address: browsers keep those.
pub(super) async fn identify_by_header(
    request: &HttpRequestHead<'_>,
) -> Result<(SpaceHandle, Access), HttpResponse> {
    if values_of(request.query, "tkn").next().is_some() {
        let text = "a token is sent here in Authorization: Bearer ..., not in the address\n";
        return Err(HttpResponse::new(401, text));
    }
    match identify(request, false).await? {
        (UpgradedWay::Here(handle), access) => Ok((handle, access)),
        (UpgradedWay::There(_), _) => Err(HttpResponse::elsewhere()),
    }
}

/// Has whoever asks try again if nothing is found out in time, however many waits that is made of.
pub(super) async fn find_in_time<T>(
    until: Instant,
    finding: impl Future<Output = Result<T, HttpResponse>>,
) -> Result<T, HttpResponse> {
    timeout_at(until, finding).await.unwrap_or_else(|_| Err(refuse_relay(RelayRefusal::TryAgain)))
}

/// The way to the space of an account.
async fn find_way(
    granted: &GrantedToken,
    http_socket: &HttpSocket,
    opens_websocket: bool,
) -> Result<UpgradedWay, HttpResponse> {
    let space = &granted.space_name;
    let Some(relays) = http_socket.handles.relays() else {
        let handle = http_socket.handles.named(Some(space));
        return handle.map(UpgradedWay::Here).ok_or_else(HttpResponse::elsewhere);
    };
    if !opens_websocket {
        let handle = relays.find_here(space).await.map_err(refuse_relay)?;
        return Ok(UpgradedWay::Here(handle));
    }
    let client = RelayedClient {
        space: space.clone(),
        token: granted.id.clone(),
        principal: granted.principal_name.clone(),
        role: granted.role.name().to_owned(),
        address: http_socket.address,
    };
    match relays.reach(&client).await.map_err(refuse_relay)? {
        ClientRoute::Here(handle) => Ok(UpgradedWay::Here(handle)),
        ClientRoute::There(owner) => Ok(UpgradedWay::There(owner)),
    }
}

pub(super) fn refuse_relay(refusal: RelayRefusal) -> HttpResponse {
    match refusal {
        RelayRefusal::NoSpace => HttpResponse::new(404, "the space of this token is gone\n"),
        RelayRefusal::Elsewhere => HttpResponse::elsewhere(),
        RelayRefusal::Refused(status) if status == 429 => {
            HttpResponse::new(429, "the space has as many connections as it may\n")
        }
        RelayRefusal::Refused(status) => {
            let text = format!("the node that serves the space refuses with {status}; try again\n");
            try_again_after("2", text)
        }
        RelayRefusal::TryAgain => {
            let text = "nobody serves the space at the moment; try again\n";
            try_again_after("1", text.to_owned())
        }
    }
}

fn try_again_after(seconds: &'static str, text: String) -> HttpResponse {
    HttpResponse::text(503, text).with(RETRY_AFTER, HeaderValue::from_static(seconds))
}

/// The space of whoever asks with the token of an account; `None`: they show none.
pub(super) async fn find_space(
    headers: &Headers<'_>,
    query: &str,
    accounts: &Accounts,
) -> Result<Option<String>, HttpResponse> {
    let presented = presented_tokens(headers, query);
    if !presented.iter().any(|it| AccountToken::is_claimed(it)) {
        return Ok(None);
    }
    let granted = check_account(accounts, &presented).await?;
    Ok(Some(granted.space_name.clone()))
}

/// All tokens of a request must be the same one, as elsewhere.
async fn check_account(
    accounts: &Accounts,
    presented: &[Vec<u8>],
) -> Result<Arc<GrantedToken>, HttpResponse> {
    let tokens: Option<Vec<AccountToken>> =
        presented.iter().map(|it| AccountToken::parse(it)).collect();
    let tokens = tokens.ok_or_else(wrong)?;
    let (first, others) = tokens.split_first().ok_or_else(wrong)?;
    if others.iter().any(|other| other.id() != first.id()) {
        return Err(wrong());
    }
    let mut granted = None;
    for token in &tokens {
        granted = Some(accounts.check(token).await.map_err(refuse_account)?);
    }
    granted.ok_or_else(wrong)
}

fn refuse_account(refusal: TokenRefusal) -> HttpResponse {
    match refusal {
        TokenRefusal::Wrong => wrong(),
        TokenRefusal::Busy => {
            try_again_after("1", "too many sign in at once; try again\n".to_owned())
        }
        TokenRefusal::Unavailable(error) => {
            tracing::warn!(%error, "nobody can sign in: accounts cannot be read");
            refuse_unread_accounts()
        }
    }
}

/// The database does not answer.
pub(super) fn refuse_unread_accounts() -> HttpResponse {
    let text = "accounts cannot be read at the moment; try again\n";
    try_again_after("1", text.to_owned())
}

fn wrong() -> HttpResponse {
    HttpResponse::new(401, "the token is not the right one\n")
}

/// Every token in a request, wherever it is.
fn presented_tokens(headers: &Headers<'_>, query: &str) -> Vec<Vec<u8>> {
    let in_query = values_of(query, "tkn").map(percent::decode_leniently);
    let in_header = headers.all(AUTHORIZATION).filter_map(|value| {
        let (scheme, token) = value.split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii().to_vec())
    });
    let in_protocols = headers
        .items(SEC_WEBSOCKET_PROTOCOL)
        .filter_map(|item| item.strip_prefix(PROTOCOL_PREFIX).map(<[u8]>::to_vec));
    in_query.chain(in_header).chain(in_protocols).collect()
}

/// Who asks. Every token in the request must be of the same one, so that two that contradict each other are refused.
fn check(
    presented: &[Vec<u8>],
    admission: &Admission,
    address: IpAddr,
) -> Result<Access, HttpResponse> {
    let mut found: Option<Access> = None;
    for presented in presented {
        let access = Access::of_token(admission, presented, Some(address)).ok_or_else(wrong)?;
        if found.as_ref().is_some_and(|found| !found.is_same(&access)) {
            return Err(wrong());
        }
        found = Some(access);
    }
    match (found, &admission.token) {
        (Some(access), _) => Ok(access),
        // Everybody who reaches the address is admitted.
        (None, None) => Ok(Access::Owner),
        (None, Some(_)) => {
            let text = "a token is needed: ?tkn=..., Authorization: Bearer ... or the subprotocol tkn....\n";
            Err(HttpResponse::new(401, text))
        }
    }
}

/// The subprotocol of the answer: one that was offered, and never the one with the token in it.
pub(super) fn agreed_protocol(headers: &Headers<'_>) -> Option<&'static str> {
    let mut offered = headers.items(SEC_WEBSOCKET_PROTOCOL);
    offered.any(|item| item == PROTOCOL.as_bytes()).then_some(PROTOCOL)
}

/// The answer to `/proof`: shows that this host knows the token to somebody who will not send it before (G-62).
pub(super) fn prove(query: &str, token: Option<&str>) -> Result<String, HttpResponse> {
    let Some(token) = token else {
        let text = "this host asks for no token, so there is nothing to prove\n";
        return Err(HttpResponse::new(404, text));
    };
    let mut nonces = values_of(query, "nonce");
    let nonce = match (nonces.next(), nonces.next()) {
        (Some(nonce), None) if is_nonce(nonce) => nonce,
        _ => {
            let text = "/proof needs one nonce of 32 hex digits: /proof?nonce=...\n";
            return Err(HttpResponse::new(400, text));
        }
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes())
        .map_err(|_| HttpResponse::new(500, "the token cannot be used as a key\n"))?;
    mac.update(nonce.as_bytes());
    Ok(hex(&mac.finalize().into_bytes()))
}

fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[test]
    fn a_proof_is_the_hmac_of_the_nonce_as_it_was_sent() {
        // HMAC-SHA256 of 32 zeros under `key`, by another implementation.
        let nonce = "0".repeat(32);
        assert_eq!(
            prove(&format!("nonce={nonce}"), Some("key")).unwrap(),
            "3a94e7f3e0d284db532c793621888659904dce5dc6f97329a6ae7553395aaae1"
        );
        let upper = prove("nonce=ABCDEF00000000000000000000000000", Some("key")).unwrap();
        let lower = prove("nonce=abcdef00000000000000000000000000", Some("key")).unwrap();
        assert_ne!(upper, lower);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_too_long_for_their_space_is_told_when_to_try_again() {
        let began = tokio::time::Instant::now();
        let waiting = std::future::pending::<Result<(), HttpResponse>>;
        let until = finding_deadline();
        // First the node that serves the space, then who asks.
        let first = find_in_time(until, async {
            sleep(FINDING_WAIT * 4 / 5).await;
            Ok(())
        });
        assert!(first.await.is_ok());
        let answer = find_in_time(until, waiting()).await.unwrap_err();
        assert_eq!(began.elapsed(), FINDING_WAIT, "together");
        assert_eq!(answer.status, 503);
        assert_eq!(answer.headers[RETRY_AFTER], "1");
        let refused = HttpResponse::new(404, "gone\n");
        let answer = find_in_time(finding_deadline(), async { Err::<(), _>(refused) }).await;
        assert_eq!(answer.unwrap_err().status, 404, "what is known is told");
    }

    #[test]
    fn a_nonce_that_is_none_is_refused_with_words() {
        let digits = "0123456789abcdef0123456789abcdef";
        for query in [
            String::new(),
            "nonce".to_owned(),
            "nonce=".to_owned(),
            format!("nonce={}", &digits[1..]),
            format!("nonce={digits}0"),
            format!("nonce={}g", &digits[1..]),
            format!("nonce={digits}&nonce={digits}"),
            format!("n%6fnce={digits}"),
        ] {
            let answer = prove(&query, Some("key")).unwrap_err();
            assert_eq!(answer.status, 400, "{query}");
            assert!(answer.body.ends_with(b"32 hex digits: /proof?nonce=...\n"));
        }
        let answer = prove(&format!("nonce={digits}"), None).unwrap_err();
        assert_eq!(answer.status, 404);
    }
}
