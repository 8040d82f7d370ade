//! Where a key comes from, and how it stays out of sight.
//!
//! Promises: a [`ApiKey`] holds no secret, only where to find one; it is read when it is used, so that a new one needs no
//! restart; what was read can neither be printed nor compared.
//! Must not know: servers, requests.

use std::io::Read;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;

use super::ProviderErrorKind::Unauthorized;
use super::{ProviderError, error_body};

/// No key is longer; a larger file is another one.
const KEY_BYTES_MAX: u64 = 16 << 10;
/// Shorter ones are placeholders for servers that want any key at all: redact them would only garble messages.
const HIDDEN_CHARS_MIN: usize = 4;

/// Where the key of a server is to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey(KeySource);

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeySource {
    Environment(String),
    File(PathBuf),
}

impl ApiKey {
    pub fn from_environment(variable: impl Into<String>) -> Self {
        Self(KeySource::Environment(variable.into()))
    }

    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self(KeySource::File(path.into()))
    }

    /// The variable that holds it: child processes must not get it.
    pub fn environment_variable(&self) -> Option<&str> {
        match &self.0 {
            KeySource::Environment(variable) => Some(variable),
            KeySource::File(_) => None,
        }
    }

    pub(super) async fn read(&self) -> Result<Secret, ProviderError> {
        let text = match &self.0 {
            KeySource::Environment(variable) => std::env::var(variable)
                .map_err(|_| unusable(format!("the environment variable {variable} is not set")))?,
            KeySource::File(path) => {
                let file = path.clone();
                tokio::task::spawn_blocking(move || read_file(&file))
                    .await
                    .map_err(std::io::Error::other)
                    .flatten()
                    .map_err(|error| {
                        unusable(format!(
                            "the key file {} cannot be read: {error}",
                            path.display()
                        ))
                    })?
            }
        };
        let source = match &self.0 {
            KeySource::Environment(variable) => format!("the environment variable {variable}"),
            KeySource::File(path) => format!("the key file {}", path.display()),
        };
        let secret = text.trim();
        if secret.is_empty() {
            return Err(unusable(format!("{source} is empty")));
        }
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unusable(format!(
                "{source} holds no key: it has spaces or other characters no key has"
            )));
        }
        Ok(Secret(secret.to_owned()))
    }
}

fn read_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(KEY_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > KEY_BYTES_MAX {
        return Err(std::io::Error::other("it is too large for a key"));
    }
    Ok(text)
}

fn unusable(message: String) -> ProviderError {
    ProviderError::new(Unauthorized, message)
}

/// A secret: a key, or the value of a header that serves as one.
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn of_header(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?;
        // `Bearer abc`: the scheme is no secret.
        let secret = text.rsplit(' ').next().unwrap_or(text);
        Some(Self(secret.to_owned()))
    }

    pub(super) fn of_query(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// As the value of `Authorization`.
    pub(super) fn authorization(&self) -> Result<HeaderValue, ProviderError> {
        Self::header_value(&format!("Bearer {}", self.0))
    }

    /// As the value of a header of its own.
    pub(super) fn alone(&self) -> Result<HeaderValue, ProviderError> {
        Self::header_value(&self.0)
    }

    fn header_value(text: &str) -> Result<HeaderValue, ProviderError> {
        let mut value = HeaderValue::from_str(text)
            .map_err(|_| unusable("the key cannot be sent".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The message as people may read it: without control characters and secrets, and not too long.
pub(super) fn redact(message: &str, secrets: &[Secret]) -> String {
    let mut text = error_body::one_line(message);
    for Secret(secret) in secrets {
        if secret.chars().count() >= HIDDEN_CHARS_MIN {
            text = text.replace(secret.as_str(), "[key]");
        }
    }
    error_body::cut(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_file(content: &str) -> (tempfile::TempDir, ApiKey) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, content).unwrap();
        (directory, ApiKey::from_file(path))
    }

    async fn fault(key: &ApiKey) -> String {
        match key.read().await {
            Ok(_) => panic!("it was read"),
            Err(error) => {
                assert_eq!(error.kind, Unauthorized);
                error.message
            }
        }
    }

    #[tokio::test]
    async fn a_key_is_read_when_it_is_used_and_trimmed() {
        let (directory, key) = key_file("  sk-first\r\n");
        assert_eq!(key.read().await.unwrap().0, "sk-first");
        std::fs::write(directory.path().join("key"), "sk-second\n").unwrap();
        assert_eq!(key.read().await.unwrap().0, "sk-second");
    }

    #[tokio::test]
    async fn an_invalid_key_is_reported_without_its_value() {
        let (_directory, key) = key_file(" \n");
        assert!(fault(&key).await.ends_with("is empty"));
        let (_directory, key) = key_file("-----BEGIN\nsecret words\n");
        let message = fault(&key).await;
        assert!(message.contains("holds no key"), "{message}");
        assert!(!message.contains("secret words"), "{message}");
        let (_directory, key) = key_file(&"k".repeat(20_000));
        assert!(fault(&key).await.ends_with("too large for a key"));
        let missing = ApiKey::from_environment("GREENROOM_TEST_NO_SUCH_VARIABLE");
        assert_eq!(
            fault(&missing).await,
            "the environment variable GREENROOM_TEST_NO_SUCH_VARIABLE is not set"
        );
    }

    #[tokio::test]
    async fn debug_shows_where_a_key_is_and_not_what_it_is() {
        let (_directory, key) = key_file("sk-hidden");
        assert!(!format!("{key:?}").contains("sk-hidden"));
        let value = key.read().await.unwrap().authorization().unwrap();
        assert!(!format!("{value:?}").contains("sk-hidden"));
    }

    #[test]
    fn secrets_are_hidden_before_a_message_is_cut() {
        let secret = Secret("sk-0123456789".to_owned());
        let message = format!("{}sk-0123456789 is wrong\u{7}", "x".repeat(590));
        let redacted = redact(&message, &[secret]);
        assert!(!redacted.contains("sk-"), "{redacted}");
        assert!(!redacted.contains('\u{7}'));
    }

    #[test]
    fn the_scheme_of_a_header_is_no_secret() {
        let value = HeaderValue::from_static("Bearer abcdef");
        assert_eq!(Secret::of_header(&value).unwrap().0, "abcdef");
    }
}
