//! Small documents over HTTP: metadata of servers, and what authorisation servers answer.
//!
//! Promises: bounded in time and size; no redirect is followed; no error holds the address or what was sent, and each says what
//! went wrong.
//! Must not know: what a document means.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde_json::{Map, Value};

use super::allowed_addresses::AllowedAddresses;
use super::http::JSON;

const DOCUMENT_MAX: Duration = Duration::from_secs(10);
const DOCUMENT_BYTES_MAX: usize = 64 * 1_024;

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("it cannot be asked: {0}")]
    Unusable(String),
    #[error(
        "it is at an address of this machine or of a private network, which a host elsewhere cannot have asked from here"
    )]
    NotPublic,
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("the connection broke off: {0}")]
    BrokenOff(String),
    #[error("the answer did not come within {} s", DOCUMENT_MAX.as_secs())]
    TooLate,
    #[error("the answer has more than {} KiB", DOCUMENT_BYTES_MAX >> 10)]
    TooLarge,
    #[error("the answer is {0}: a redirect, which is not followed")]
    Redirect(StatusCode),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("the answer is not a JSON object")]
    NotAnObject,
}

/// Reads an object.
pub(super) async fn fetch_json(
    address: &Url,
    allowed: AllowedAddresses,
) -> Result<Value, DocumentError> {
    let (status, document) =
        exchange(address, allowed, |client| client.get(address.clone())).await?;
    check_status(status)?;
    document.ok_or(DocumentError::NotAnObject)
}

/// Sends an object; the answer may be an error in the server's own words.
pub(super) async fn post_json(
    address: &Url,
    allowed: AllowedAddresses,
    body: &Value,
) -> Result<Value, DocumentError> {
    post(address, allowed, JSON, body.to_string(), None).await
}

/// Sends a form; the answer may be an error in the server's own words.
pub(super) async fn post_form(
    address: &Url,
    allowed: AllowedAddresses,
    form: &str,
    authorization: Option<&str>,
) -> Result<Value, DocumentError> {
    let kind = "application/x-www-form-urlencoded";
    post(address, allowed, kind, form.to_owned(), authorization).await
}

async fn post(
    address: &Url,
    allowed: AllowedAddresses,
    content_type: &str,
    body: String,
    authorization: Option<&str>,
) -> Result<Value, DocumentError> {
    let exchanged = exchange(address, allowed, |client| {
        let mut request = client.post(address.clone()).header(CONTENT_TYPE, content_type);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(body)
    });
    let (status, document) = exchanged.await?;
    match document {
        // An error is told by the document; without one, by the status alone.
        Some(document) if status.is_client_error() && document["error"].is_string() => Ok(document),
        document => {
            check_status(status)?;
            document.ok_or(DocumentError::NotAnObject)
        }
    }
}

fn check_status(status: StatusCode) -> Result<(), DocumentError> {
    match status {
        status if status.is_success() => Ok(()),
        status if status.is_redirection() => Err(DocumentError::Redirect(status)),
        status => Err(DocumentError::Status(status)),
    }
}

/// The status of an answer, and the object in it.
async fn exchange(
    address: &Url,
    allowed: AllowedAddresses,
    make: impl FnOnce(&reqwest::Client) -> RequestBuilder,
) -> Result<(StatusCode, Option<Value>), DocumentError> {
    let exchanging = async {
        let client = allowed.client(address).await?;
        let sent = make(&client).header(ACCEPT, JSON).send().await;
        let mut response = sent.map_err(|error| {
            if error.is_builder() {
                DocumentError::Unusable(describe(error))
            } else {
                DocumentError::Unreachable(describe(error))
            }
        })?;
        let status = response.status();
        let mut body = Vec::new();
        let broken_off = |error| DocumentError::BrokenOff(describe(error));
        while let Some(chunk) = response.chunk().await.map_err(broken_off)? {
            if body.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(DocumentError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let document: Option<Map<String, Value>> = serde_json::from_slice(&body).ok();
        Ok((status, document.map(Value::Object)))
    };
    tokio::time::timeout(DOCUMENT_MAX, exchanging).await.unwrap_or(Err(DocumentError::TooLate))
}

/// The innermost reason, without the address: the outer ones say only that a request failed.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What becomes of a request that is answered with this.
    async fn fetched(answer: &'static str) -> Result<Value, DocumentError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/m?secret=1", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4_096];
            let read = stream.read(&mut head).await.unwrap();
            assert!(read > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        let fetched = fetch_json(&Url::parse(&address).unwrap(), AllowedAddresses::Own).await;
        served.await.unwrap();
        if let Err(error) = &fetched {
            let said = error.to_string();
            assert!(!said.contains("secret") && !said.contains("127.0.0.1"), "{said}");
        }
        fetched
    }

    #[tokio::test]
    async fn what_went_wrong_is_named() {
        let good = fetched("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}").await;
        assert_eq!(good.unwrap()["a"], 1);
        let status = fetched("HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\n{}").await;
        let expected = DocumentError::Status(StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(status, Err(expected));
        // Nobody listens at the address: following it would be another error.
        let redirect =
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        let expected = DocumentError::Redirect(StatusCode::FOUND);
        assert_eq!(fetched(redirect).await, Err(expected));
        let list = fetched("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]").await;
        assert_eq!(list, Err(DocumentError::NotAnObject));
        let cut = fetched("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").await;
        assert!(matches!(cut, Err(DocumentError::BrokenOff(_))), "{cut:?}");
        let nothing = fetched("").await;
        assert!(matches!(nothing, Err(DocumentError::Unreachable(_))), "{nothing:?}");
        let nobody = Url::parse("http://127.0.0.1:1/").unwrap();
        let nobody = fetch_json(&nobody, AllowedAddresses::Own).await.unwrap_err().to_string();
        assert!(nobody.contains("refused"), "{nobody}");
        let here = Url::parse("http://127.0.0.1:1/").unwrap();
        let here = fetch_json(&here, AllowedAddresses::Public).await;
        assert_eq!(here, Err(DocumentError::NotPublic), "nothing is asked");
    }
}
