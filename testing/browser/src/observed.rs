//! What a page did beside what a test asked of it: messages, reports, requests, sockets.
//!
//! Promises: nothing is left out, from the page's first byte on; an error that a test causes on purpose is named by it.
//! Must not know: how it was heard.

use anyhow::{Result, ensure};
use serde_json::Value;

/// What a policy report begins with in the console of the page.
pub(crate) const POLICY_REPORT: &str = "policy report: ";

/// Everything that was seen of a page.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Errors and warnings of the console, exceptions, and what the browser itself logged.
    pub errors: Vec<String>,
    /// Addresses that were asked for, with their headers as JSON.
    pub requests: Vec<(String, Value)>,
    /// Addresses of WebSockets.
    pub sockets: Vec<String>,
    /// `Set-Cookie` of any answer.
    pub cookies: Vec<String>,
    /// How many frames sockets received.
    pub frames: usize,
}

impl Observed {
    pub(crate) fn note(&mut self, method: &str, params: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match method {
            "Runtime.consoleAPICalled"
                if matches!(params["type"].as_str(), Some("error" | "assert")) =>
            {
                let words = params["args"].as_array().into_iter().flatten().map(
                    |word| match &word["value"] {
                        Value::Null => text(&word["description"]),
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    },
                );
                self.errors.push(words.collect::<Vec<_>>().join(" "));
            }
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                let thrown = text(&details["exception"]["description"]);
                self.errors.push(format!("{}: {thrown}", text(&details["text"])));
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                let entry = &params["entry"];
                self.errors.push(format!("{} {}", text(&entry["text"]), text(&entry["url"])));
            }
            "Network.requestWillBeSent" => {
                let request = &params["request"];
                self.requests.push((text(&request["url"]), request["headers"].clone()));
            }
            "Network.webSocketCreated" => self.sockets.push(text(&params["url"])),
            "Network.webSocketFrameReceived" => self.frames += 1,
            "Network.responseReceivedExtraInfo" => {
                let headers = params["headers"].as_object().into_iter().flatten();
                let cookies = headers.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
                self.cookies.extend(cookies.map(|(_, value)| text(value)));
            }
            // The others are not asked for, or answer what a command began.
            _ => {}
        }
    }

    /// No policy report, no error but those that contain one of `caused`, nothing from another origin, no cookie.
    pub fn check(&self, origin: &str, caused: &[&str]) -> Result<()> {
        let is_unexpected = |error: &&String| {
            error.starts_with(POLICY_REPORT) || !caused.iter().any(|cause| error.contains(cause))
        };
        let unexpected: Vec<&String> = self.errors.iter().filter(is_unexpected).collect();
        ensure!(unexpected.is_empty(), "the page reported: {unexpected:#?}");
        let is_own = |address: &str| {
            let page = address.strip_prefix("blob:").unwrap_or(address);
            page.starts_with(&format!("{origin}/"))
                || page.starts_with("about:")
                || page.starts_with("data:")
        };
        let elsewhere: Vec<&str> =
            self.requests.iter().map(|(address, _)| address.as_str()).collect();
        let elsewhere: Vec<&str> =
            elsewhere.into_iter().filter(|address| !is_own(address)).collect();
        ensure!(elsewhere.is_empty(), "requests to others: {elsewhere:#?}");
        let sockets = origin.replacen("http", "ws", 1);
        let others: Vec<&String> =
            self.sockets.iter().filter(|it| !it.starts_with(&sockets)).collect();
        ensure!(others.is_empty(), "sockets to others: {others:#?}");
        ensure!(self.cookies.is_empty(), "cookies: {:?}", self.cookies);
        Ok(())
    }
}
