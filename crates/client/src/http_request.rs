//! One HTTP request to a host beside the protocol, over a connection of its own.
//!
//! Promises: the token follows the same proof, over the same connection, as for a client that connects (G-62); at most
//! `ANSWER_BYTES_MAX` are read and `WAIT_MAX` waited.
//! Must not know: what is asked.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::destination::{self, Destination};
use crate::{ClientError, proof};

/// More than the answer of any host.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What is asked.
pub(crate) struct HttpRequest<'a> {
    pub method: &'static str,
    pub path: &'a str,
    pub body: Option<Value>,
}

impl HttpRequest<'_> {
    /// Asks, and returns the status with the body. A token that is refused is an error.
    pub(crate) async fn send(
        &self,
        destination: &Destination,
    ) -> Result<(u16, String), ClientError> {
        match tokio::time::timeout(WAIT_MAX, self.exchange(destination)).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Unreachable {
                url: destination.target().url.clone(),
                why: format!("no answer within {} s", WAIT_MAX.as_secs()),
            }),
        }
    }

    async fn exchange(&self, destination: &Destination) -> Result<(u16, String), ClientError> {
        let url = || destination.target().url.clone();
        let broken =
            |error: std::io::Error| ClientError::Unreachable { url: url(), why: error.to_string() };
        let (mut stream, authority) = destination::open_stream(destination).await?;
        let token = destination.target().token.as_deref();
        // A token that is no header value was never one of a host.
        if token.is_some_and(|token| token.contains(|c: char| c.is_control())) {
            return Err(ClientError::Unauthorized { url: url() });
        }
        let request = self.text(&authority, token);
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::with_capacity(1_024);
        loop {
            match proof::parse_response(&answer, ANSWER_BYTES_MAX) {
                Ok(None) => {}
                Ok(Some((401, _))) => return Err(ClientError::Unauthorized { url: url() }),
                Ok(Some(answer)) => return Ok(answer),
                Err(why) => return Err(ClientError::Unreadable(format!("its answer: {why}"))),
            }
            if answer.len() >= ANSWER_BYTES_MAX {
                return Err(ClientError::Unreadable("its answer is too long".to_owned()));
            }
            if stream.read_buf(&mut answer).await.map_err(broken)? == 0 {
                return Err(ClientError::Closed("the host closed it without an answer".to_owned()));
            }
        }
    }

    fn text(&self, authority: &str, token: Option<&str>) -> String {
        let Self { method, path, body } = self;
        let authorization =
            token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let body = body.as_ref().map(Value::to_string);
        let described = body.as_ref().map_or_else(String::new, |body| {
            let length = body.len();
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
        });
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {authority}\r\n{authorization}{described}Connection: close\r\n\r\n{}",
            body.unwrap_or_default()
        )
    }
}
