//! A host proves that it knows the token before it is sent (G-62, ADR 0024).
//!
//! Promises: what is sent says nothing of the token; at most `ANSWER_BYTES_MAX` are read. Whoever proved it is at the other
//! end of this very connection, so that the token can follow on it.
//! Must not know: where the address came from, what the connection is used for.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::http::Uri;

/// More than the answer of any host; a stranger may send anything.
const ANSWER_BYTES_MAX: usize = 4_096;
const HEADERS_MAX: usize = 32;
const NO_HTTP: &str = "it does not speak HTTP";
/// The HTTP status of an answer that has nothing to say but that it is done.
const NO_CONTENT: u16 = 204;
/// The HTTP status of a host that cannot serve anybody now.
pub(crate) const BUSY: u16 = 503;

/// Why there was no proof.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProofError {
    /// Who listens there has too many connections, or is not ready.
    Busy,
    Failed(String),
}

impl From<String> for ProofError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Asks for the proof.
pub(crate) async fn demand(
    stream: &mut TcpStream,
    uri: &Uri,
    token: &str,
) -> Result<(), ProofError> {
    let nonce = make_nonce()?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    // A host with several spaces has a token for each.
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let space = pairs.find(|pair| pair.starts_with("space="));
    let space = space.map(|space| format!("&{space}")).unwrap_or_default();
    let request = format!("GET /proof?nonce={nonce}{space} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let broken = |error: std::io::Error| format!("the connection broke: {error}");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    let mut answer = Vec::with_capacity(512);
    loop {
        if let Some(proof) = read_answer(&answer)? {
            return Ok(check(&proof, &nonce, token)?);
        }
        if answer.len() >= ANSWER_BYTES_MAX {
            return Err("its answer is too long".to_owned().into());
        }
        if stream.read_buf(&mut answer).await.map_err(broken)? == 0 {
            return Err("it closed the connection without a proof".to_owned().into());
        }
    }
}

fn make_nonce() -> Result<String, String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The body of a complete answer; `None` while more is to come.
fn read_answer(answer: &[u8]) -> Result<Option<String>, ProofError> {
    match parse_status(answer)? {
        None => return Ok(None),
        Some(200) => {}
        Some(BUSY) => return Err(ProofError::Busy),
        Some(code) => return Err(format!("it answered with HTTP {code}").into()),
    }
    Ok(parse_response(answer, ANSWER_BYTES_MAX)?.map(|(_, body)| body))
}

/// The status of an answer; `None` while its head is not complete.
fn parse_status(answer: &[u8]) -> Result<Option<u16>, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(answer) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(_)) => Ok(response.code),
        Err(_) => Err(NO_HTTP.to_owned()),
    }
}

/// Status and body of a complete answer that is no longer than `bytes_max`; `None` while more is to come.
pub(crate) fn parse_response(
    answer: &[u8],
    bytes_max: usize,
) -> Result<Option<(u16, String)>, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(answer).map_err(|_| NO_HTTP.to_owned())? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(head) => head,
    };
    let status = response.code.ok_or_else(|| NO_HTTP.to_owned())?;
    let announced = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("Content-Length"))
        .and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok())
        .filter(|length: &usize| *length <= bytes_max);
    let length = match (announced, status) {
        (Some(length), _) => length,
        (None, NO_CONTENT) => 0,
        (None, _) => return Err("its answer has no length".to_owned()),
    };
    let body = answer.get(head..).unwrap_or_default();
    match body.len() {
        len if len < length => Ok(None),
        len if len == length => Ok(Some((status, String::from_utf8_lossy(body).into_owned()))),
        _ => Err("it sent more than was asked for".to_owned()),
    }
}

fn check(proof: &str, nonce: &str, token: &str) -> Result<(), String> {
    let wrong = || "its proof is wrong".to_owned();
    let digits = proof.trim();
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).map_err(|_| wrong())?;
    mac.update(nonce.as_bytes());
    mac.verify_slice(&bytes.ok_or_else(wrong)?).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_proof_counts() {
        let nonce = "0".repeat(32);
        // HMAC-SHA256 of 32 zeros under `key`, by another implementation.
        let proof = "3a94e7f3e0d284db532c793621888659904dce5dc6f97329a6ae7553395aaae1";
        assert_eq!(check(proof, &nonce, "key"), Ok(()));
        assert_eq!(check(&format!("{proof}\n"), &nonce, "key"), Ok(()));
        for (proof, nonce, token) in [
            (proof, nonce.as_str(), "other"),
            (proof, "1", "key"),
            (&proof[..62], &nonce, "key"),
            (&proof[..63], &nonce, "key"),
            ("", &nonce, "key"),
            ("ä", &nonce, "key"),
            ("zz", &nonce, "key"),
        ] {
            assert!(check(proof, nonce, token).is_err(), "{proof}");
        }
    }

    #[test]
    fn an_answer_is_complete_partial_or_none() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab";
        assert_eq!(read_answer(whole.as_bytes()), Ok(Some("ab".to_owned())));
        for len in 0..whole.len() {
            assert_eq!(read_answer(&whole.as_bytes()[..len]), Ok(None), "{len}");
        }
        for bad in [
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert!(read_answer(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_without_content_needs_no_length() {
        let done = "HTTP/1.1 204 No Content\r\n\r\n";
        let parsed = parse_response(done.as_bytes(), ANSWER_BYTES_MAX);
        assert_eq!(parsed, Ok(Some((204, String::new()))));
    }

    #[test]
    fn a_host_that_has_no_place_is_not_a_stranger() {
        let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(read_answer(busy.as_bytes()), Err(ProofError::Busy));
    }

    #[test]
    fn no_nonce_is_like_another() {
        let (one, other) = (make_nonce().unwrap(), make_nonce().unwrap());
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
    }
}
