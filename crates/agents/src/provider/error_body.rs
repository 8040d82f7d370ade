//! The error messages of model servers, in all their shapes.
//!
//! Promises: whatever comes becomes a message or nothing; never an error of its own.
//! Must not know: when it came.

use serde_json::Value;

use super::ProviderErrorKind;
use super::refusal::{self, RefusalCause};

/// Enough for a sentence of ours and five hundred characters of the server's.
const MESSAGE_CHARS_MAX: usize = 600;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ErrorBody {
    /// Empty if there is nothing readable.
    pub message: String,
    pub(super) status: Option<u64>,
    /// Types and codes in words, in lower case.
    words: String,
}

impl ErrorBody {
    /// From the body of an answer with an error status: JSON of some shape, text, or a web page.
    pub(super) fn from_body(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            return Self::from_json(&value).unwrap_or_default();
        }
        if text.starts_with('<') {
            return Self::default();
        }
        Self { message: text.to_owned(), ..Self::default() }
    }

    /// `error.message`, `error`, `message` or `detail`, also as the first of a list.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|error| is_something(error));
        let object = error.filter(|error| error.is_object()).unwrap_or(value);
        let message = [
            text_at(object, "message"),
            error.and_then(text_of),
            text_at(value, "message"),
            text_at(value, "detail"),
            value.pointer("/detail/0/msg").and_then(text_of),
        ]
        .into_iter()
        .flatten()
        .next();
        if message.is_none() && error.is_none() {
            return None;
        }
        let codes = ["type", "code", "status"].map(|field| &object[field]);
        let words = codes.iter().filter_map(|code| code.as_str());
        let own = Self {
            message: message.unwrap_or_default(),
            status: codes.iter().find_map(|code| status_of(code)),
            words: words.map(str::to_lowercase).collect::<Vec<_>>().join(" "),
        };
        Some(match wrapped_body(object) {
            Some(wrapped) => own.explained_by(&wrapped),
            None => own,
        })
    }

    /// With what another server said, whose error this one hands on.
    fn explained_by(self, wrapped: &Self) -> Self {
        let separator = if self.message.is_empty() { "" } else { ": " };
        Self {
            message: format!("{}{separator}{}", self.message, wrapped.message),
            status: self.status.or(wrapped.status),
            words: format!("{} {}", self.words, wrapped.words),
        }
    }

    /// What a refusal is about, if a smaller request may mend it. `status` is that of the response.
    pub(super) fn refusal_cause(&self, status: Option<u16>) -> Option<RefusalCause> {
        let own = self.status.and_then(|status| u16::try_from(status).ok());
        let said = format!("{} {}", self.message.to_lowercase(), self.words);
        refusal::cause_of_refusal(status.or(own), &said)
    }

    /// What kind of failure this is without an HTTP status.
    pub(super) fn kind(&self) -> ProviderErrorKind {
        const KEY: &[&str] = &["auth", "api_key", "permission", "billing", "insufficient_"];
        const REQUEST: &[&str] = &[
            "invalid",
            "bad_request",
            "badrequest",
            "context",
            "not_found",
            "notfound",
            "unsupported",
            "filter",
            "policy",
        ];
        match self.status {
            Some(401..=403) => ProviderErrorKind::Unauthorized,
            Some(408 | 409 | 429) => ProviderErrorKind::Unavailable,
            Some(400..=499) => ProviderErrorKind::Rejected,
            Some(_) => ProviderErrorKind::Unavailable,
            None if self.mentions(KEY) => ProviderErrorKind::Unauthorized,
            None if self.mentions(REQUEST) => ProviderErrorKind::Rejected,
            None => ProviderErrorKind::Unavailable,
        }
    }

    /// Gemini answers a bad key as it answers a bad request.
    pub(super) fn is_about_the_key(&self) -> bool {
        self.message.to_lowercase().contains("api key not valid")
    }

    /// The account is empty: no try in the next minutes does better.
    pub(super) fn is_about_payment(&self) -> bool {
        self.mentions(&["insufficient_quota", "billing", "insufficient_balance"])
    }

    fn mentions(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }
}

/// The error of the server behind a broker, as OpenRouter hands it on: what the broker itself says explains nothing.
fn wrapped_body(error: &Value) -> Option<ErrorBody> {
    let raw = error.pointer("/metadata/raw")?;
    let body = match raw {
        Value::String(text) => ErrorBody::from_body(text.as_bytes()),
        raw => ErrorBody::from_json(raw)?,
    };
    (!body.message.is_empty()).then_some(body)
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

fn text_at(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(text_of)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn status_of(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    (400..600).contains(&number).then_some(number)
}

/// Without control characters; white space of any length is one space.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|character: char| character.is_whitespace()) {
        let printable = word.chars().filter(|character| !character.is_control());
        let before = line.len();
        if before > 0 {
            line.push(' ');
        }
        let length = line.len();
        line.extend(printable);
        if line.len() == length {
            line.truncate(before);
        }
    }
    line
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProviderErrorKind::{Rejected, Unauthorized, Unavailable};

    fn check(body: &str, message: &str, kind: ProviderErrorKind) {
        let error_body = ErrorBody::from_body(body.as_bytes());
        assert_eq!(error_body.message, message, "{body}");
        assert_eq!(error_body.kind(), kind, "{body}");
    }

    #[test]
    fn errors_come_in_many_shapes() {
        check(
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            "Incorrect API key",
            Unauthorized,
        );
        check(
            r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#,
            "too long",
            Rejected,
        );
        check(
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"no images\",\"type\":\"invalid_request_error\"}}","provider_name":"X"}}}"#,
            "Provider returned error: no images",
            Rejected,
        );
        check(
            r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream is gone"}}}"#,
            "Provider returned error: upstream is gone",
            Unavailable,
        );
        check(
            r#"{"error":{"message":"Rate limit","type":"tokens","code":"rate_limit_exceeded"}}"#,
            "Rate limit",
            Unavailable,
        );
        check(r#"{"error":"model 'x' not found"}"#, "model 'x' not found", Unavailable);
        check(
            r#"{"object":"error","message":"no such model","code":404}"#,
            "no such model",
            Rejected,
        );
        check(r#"{"message":"Unauthorized","code":"401"}"#, "Unauthorized", Unauthorized);
        check(r#"{"detail":"Not Found"}"#, "Not Found", Unavailable);
        check(r#"{"detail":[{"msg":"field required"}]}"#, "field required", Unavailable);
        check(
            r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
            "bad",
            Rejected,
        );
        check(r#"{"error":{"code":503}}"#, "", Unavailable);
        check("upstream is gone\n", "upstream is gone", Unavailable);
        check("<html><body>502</body></html>", "", Unavailable);
        check("", "", Unavailable);
        check("{\"error\":", "{\"error\":", Unavailable);
    }

    #[test]
    fn other_documents_are_no_errors() {
        for value in [r#"{"choices":[]}"#, r#"{"error":null,"id":"x"}"#, "{}", "[]", "1"] {
            assert_eq!(
                ErrorBody::from_json(&serde_json::from_str(value).unwrap()),
                None,
                "{value}"
            );
        }
    }

    #[test]
    fn an_empty_account_is_not_tried_again() {
        let body =
            br#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
        assert!(ErrorBody::from_body(body).is_about_payment());
        assert!(!ErrorBody::from_body(b"busy").is_about_payment());
    }

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}[31m \u{0} c "), "a b[31m c");
        assert_eq!(cut(&"ä".repeat(601)).chars().count(), 601);
        assert_eq!(cut(&"ä".repeat(600)), "ä".repeat(600));
    }
}
