//! One page over HTTP: redirects on the same host are followed, everything is bounded.
//!
//! Promises: every hop is judged like the first; no credentials and no proxy are used; a redirect to another host is told
//! and not followed, for it was not consented to.
//! Must not know: what the page says.

use std::time::Duration;

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION,
};
use reqwest::{Client, Response, Url};

use super::super::ToolError;
use super::super::format::group_digits;
use super::address::{authority, resolve};
use crate::provider::{plain_client_config, trusting_client_config};
use crate::task;

const REDIRECTS_MAX: usize = 5;

/// A URL, of a call or of a redirect: it is in what the model reads.
const URL_BYTES_MAX: usize = 8 * 1_024;

/// Read of the type that a server gives a page. All headers together are bounded by the library: a hundred, in 400 KiB.
const CONTENT_TYPE_BYTES_MAX: usize = 256;

/// Read of a page.
const BODY_BYTES_MAX: usize = 5 << 20;

/// How long all of it may take.
const TOTAL_MAX: Duration = Duration::from_secs(60);

const CONNECT_MAX: Duration = Duration::from_secs(15);

const ACCEPTED: &str =
    "text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.5";

/// What a server answered.
pub(super) struct WebPage {
    /// Where it was found, after redirects.
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    /// There was more than is read.
    pub(super) is_cut: bool,
}

/// A URL that may be fetched.
pub(super) fn parse_url(text: &str) -> Result<Url, ToolError> {
    let text = text.trim();
    let invalid =
        |why: &str| ToolError(format!("`url` {why}; for example https://example.org/page"));
    if text.len() > URL_BYTES_MAX {
        return Err(invalid(&format!("has more than {URL_BYTES_MAX} bytes")));
    }
    let mut url = Url::parse(text).map_err(|error| invalid(&format!("cannot be used: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("must begin with http:// or https://"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(invalid("names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must not hold a user name or a password"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Fetches a page.
pub(super) async fn fetch(url: &Url, allowed: &[String]) -> Result<WebPage, ToolError> {
    let fetched = tokio::time::timeout(TOTAL_MAX, follow(url.clone(), allowed)).await;
    fetched.unwrap_or_else(|_| {
        let seconds = TOTAL_MAX.as_secs();
        Err(ToolError(format!(
            "{} did not answer in full within {seconds} seconds",
            authority(url)
        )))
    })
}

async fn follow(mut url: Url, allowed: &[String]) -> Result<WebPage, ToolError> {
    let first = url.clone();
    for _ in 0..=REDIRECTS_MAX {
        let response = ask(&url, allowed).await?;
        let status = response.status();
        if status.is_redirection()
            && let Some(target) = response.headers().get(LOCATION)
        {
            let next = target
                .to_str()
                .ok()
                .and_then(|target| url.join(target).ok())
                .ok_or_else(|| ToolError(format!("{url} redirects to what is not a URL")))?;
            url = check_redirect(&first, next)?;
            continue;
        }
        if !status.is_success() {
            return Err(ToolError(format!("{url} answered {status}")));
        }
        return read(url, response).await;
    }
    Err(ToolError(format!("{first} redirects more than {REDIRECTS_MAX} times")))
}

/// Where a redirect leads, if it may be followed: consent was for one host.
fn check_redirect(first: &Url, next: Url) -> Result<Url, ToolError> {
    let next = parse_url(next.as_str())
        .map_err(|ToolError(why)| ToolError(format!("{first} redirects: {why}")))?;
    let is_upgrade = first.host_str() == next.host_str()
        && (first.scheme(), next.scheme()) == ("http", "https")
        && (first.port(), next.port()) == (None, None);
    if is_upgrade || authority(first) == authority(&next) {
        Ok(next)
    } else {
        Err(ToolError(format!(
            "{first} redirects to another host: fetch {next} if that is what you want"
        )))
    }
}

async fn ask(url: &Url, allowed: &[String]) -> Result<Response, ToolError> {
    let addresses = resolve(url, allowed).await?;
    let failed = |why: String| ToolError(format!("{} cannot be asked: {why}", authority(url)));
    let config = match url.scheme() {
        "https" => task::try_blocking(trusting_client_config)
            .await
            .map_err(|error| failed(error.to_string()))?,
        _ => plain_client_config(),
    };
    let client = Client::builder()
        .tls_backend_preconfigured(config.map_err(|error| failed(error.to_string()))?)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        // A proxy would resolve the name once more.
        .no_proxy()
        .connect_timeout(CONNECT_MAX)
        .resolve_to_addrs(url.host_str().unwrap_or(""), &addresses)
        .build()
        .map_err(|error| failed(error.without_url().to_string()))?;
    let request = client
        .get(url.clone())
        .header(ACCEPT, HeaderValue::from_static(ACCEPTED))
        // What is sent is what is counted: a small answer cannot become a large one.
        .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    request.send().await.map_err(|error| failed(describe(&error.without_url())))
}

/// An error with what caused it, which says more.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

async fn read(url: Url, mut response: Response) -> Result<WebPage, ToolError> {
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let end = content_type.floor_char_boundary(CONTENT_TYPE_BYTES_MAX);
    let content_type = content_type[..end].to_owned();
    if !is_text(&content_type) {
        let size = response.content_length().map(group_digits);
        let size = size.map_or_else(String::new, |size| format!(" of {size} bytes"));
        return Err(ToolError(format!("{url} is {content_type}{size}; only text can be fetched")));
    }
    let encoding = response.headers().get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(ToolError(format!(
            "{url} was sent compressed, though that was not asked for; it cannot be read"
        )));
    }
    let mut body = Vec::new();
    let mut is_cut = false;
    loop {
        let chunk = response.chunk().await.map_err(|error| {
            let why = describe(&error.without_url());
            ToolError(format!("{url} did not come whole: {why}"))
        })?;
        let Some(chunk) = chunk else { break };
        let space = BODY_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(space)]);
        if chunk.len() > space {
            is_cut = true;
            break;
        }
    }
    if content_type.is_empty() && workspace::is_binary(&body) {
        return Err(ToolError(format!("{url} is not text; only text can be fetched")));
    }
    Ok(WebPage { url, content_type, body, is_cut })
}

/// Whether something of this type is read as text. What does not say may be.
fn is_text(content_type: &str) -> bool {
    let essence = compositor::media_type::essence(content_type);
    essence.is_empty()
        || essence.ends_with("+xml")
        || compositor::media_type::Class::of_mime(&essence) == compositor::media_type::Class::Text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_without_credentials_are_fetched() {
        for (text, expected) in [
            ("ftp://example.org/", "must begin with http"),
            ("file:///etc/passwd", "must begin with http"),
            ("example.org", "cannot be used"),
            ("http://user:secret@example.org/", "a user name or a password"),
            ("https://", "cannot be used"),
        ] {
            let why = parse_url(text).unwrap_err().0;
            assert!(why.contains(expected), "{text}: {why}");
        }
        let long = format!("https://example.org/{}", "a".repeat(URL_BYTES_MAX));
        let why = parse_url(&long).unwrap_err().0;
        assert!(why.contains("more than 8192 bytes"), "{why}");
        let url = parse_url(" HTTPS://Example.org/a#b ").unwrap();
        assert_eq!(url.as_str(), "https://example.org/a");
        assert_eq!(authority(&url), "example.org:443");
    }

    #[test]
    fn a_redirect_stays_on_its_host() {
        let first = Url::parse("http://example.org/a").unwrap();
        let check = |next: &str| check_redirect(&first, Url::parse(next).unwrap());
        assert!(check("http://example.org/b").is_ok());
        assert!(check("https://example.org/b").is_ok());
        for other in [
            "https://www.example.org/",
            "http://example.org:8080/",
            "https://example.org:8443/",
            "file:///etc/passwd",
        ] {
            assert!(check(other).is_err(), "{other}");
        }
    }

    #[test]
    fn only_text_is_read() {
        for text in [
            "",
            "text/html; charset=utf-8",
            "application/json",
            "application/xhtml+xml",
            "image/svg+xml",
        ] {
            assert!(is_text(text), "{text}");
        }
        for other in ["image/png", "application/pdf", "application/octet-stream", "video/mp4"] {
            assert!(!is_text(other), "{other}");
        }
    }
}
