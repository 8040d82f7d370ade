//! Where a key comes from, and how it stays out of sight.
//!
//! Promises: a [`ApiKey`] is known by where to find the key; a file or a variable is read when the key is used, so that a new
//! key needs no restart; a command is run once, and again when the server did not accept what it printed. What was read can
//! neither be printed nor compared.
//! Must not know: servers, requests.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::header::HeaderValue;
use tokio::sync::Mutex;

use super::ProviderErrorKind::Unauthorized;
use super::{ProviderError, error_body, key_command};
use crate::task;

/// No key is longer; a larger file is another one.
pub const KEY_BYTES_MAX: u64 = 16 << 10;
/// Shorter ones are placeholders for servers that want any key at all: redact them would only garble messages.
const HIDDEN_CHARS_MIN: usize = 4;

/// Where the key of a server is to be found. Clones share what a command printed.
#[derive(Clone)]
pub struct ApiKey {
    source: KeySource,
    /// What the command printed.
    printed: Arc<Mutex<Option<Secret>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeySource {
    Environment(String),
    File(PathBuf),
    /// A file by the path it really has: what a link leads to in its place is another.
    RealFile(PathBuf),
    /// A program and its arguments; no shell reads them.
    Command(Vec<String>),
}

impl PartialEq for ApiKey {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for ApiKey {}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiKey").field(&self.source).finish()
    }
}

impl ApiKey {
    pub fn from_environment(variable: impl Into<String>) -> Self {
        Self::new(KeySource::Environment(variable.into()))
    }

    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::new(KeySource::File(path.into()))
    }

    /// A file by its canonical path. No link is followed: what is read is the file that was checked.
    pub fn from_real_file(path: impl Into<PathBuf>) -> Self {
        Self::new(KeySource::RealFile(path.into()))
    }

    /// A program that prints the key, and its arguments.
    pub fn from_command(command: Vec<String>) -> Self {
        Self::new(KeySource::Command(command))
    }

    fn new(source: KeySource) -> Self {
        Self { source, printed: Arc::default() }
    }

    pub(super) async fn read(&self) -> Result<Secret, ProviderError> {
        match &self.source {
            KeySource::Environment(variable) => {
                let source = format!("the environment variable {variable}");
                let text = std::env::var(variable)
                    .map_err(|_| unusable(format!("{source} is not set")))?;
                Secret::of_text(&text, &source)
            }
            KeySource::File(path) | KeySource::RealFile(path) => {
                let source = format!("the key file {}", path.display());
                let (file, is_real) = (path.clone(), matches!(self.source, KeySource::RealFile(_)));
                let read = move || {
                    if is_real {
                        open_real_file(&file).and_then(read_text)
                    } else {
                        std::fs::File::open(&file).and_then(read_text)
                    }
                };
                let text = task::try_blocking(read)
                    .await
                    .map_err(std::io::Error::other)
                    .flatten()
                    .map_err(|error| unusable(format!("{source} cannot be read: {error}")))?;
                Secret::of_text(&text, &source)
            }
            KeySource::Command(command) => self.read_command(command).await,
        }
    }

    /// One at a time: a second caller takes what the first one got.
    async fn read_command(&self, command: &[String]) -> Result<Secret, ProviderError> {
        let mut printed = self.printed.lock().await;
        if let Some(secret) = &*printed {
            return Ok(secret.clone());
        }
        let program = command.first().map_or("", String::as_str);
        let source = format!("the key command `{program}`");
        let text =
            key_command::run(command).await.map_err(|why| unusable(format!("{source} {why}")))?;
        let secret = Secret::of_text(&text, &source)?;
        *printed = Some(secret.clone());
        Ok(secret)
    }

    /// The server did not accept the key. Whether another may be read by now: one that a command printed is forgotten.
    pub(super) async fn forget(&self) -> bool {
        match self.source {
            KeySource::Command(_) => self.printed.lock().await.take().is_some(),
            KeySource::Environment(_) | KeySource::File(_) | KeySource::RealFile(_) => false,
        }
    }
}

/// Opens a file by its canonical path, without following a link, and without waiting for the other end of a pipe.
pub fn open_real_file(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    if std::fs::canonicalize(path)? != path {
        return Err(std::io::Error::other(
            "a link is in its place; add the model again with the file that is meant",
        ));
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(std::io::Error::other)?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::other("it is not a file"))
    }
}

fn read_text(file: std::fs::File) -> std::io::Result<String> {
    // A pipe or a device could keep its reader waiting for good.
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut text = String::new();
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
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    /// The key in a text, which is to hold nothing else.
    fn of_text(text: &str, source: &str) -> Result<Self, ProviderError> {
        let secret = text.trim();
        if secret.is_empty() {
            return Err(unusable(format!("{source} is empty")));
        }
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unusable(format!(
                "{source} holds no key: it has spaces or other characters no key has"
            )));
        }
        Ok(Self(secret.to_owned()))
    }

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
    pub(super) fn plain_value(&self) -> Result<HeaderValue, ProviderError> {
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
    async fn a_real_file_is_read_and_no_link_in_its_place() {
        let (directory, _) = key_file("sk-real");
        let directory = directory.path().canonicalize().unwrap();
        let path = directory.join("key");
        let key = ApiKey::from_real_file(&path);
        assert_eq!(key.read().await.unwrap().0, "sk-real");
        std::fs::rename(&path, directory.join("other")).unwrap();
        std::os::unix::fs::symlink(directory.join("other"), &path).unwrap();
        let message = fault(&key).await;
        assert!(message.contains("a link is in its place"), "{message}");
        let linked = ApiKey::from_file(&path);
        assert_eq!(linked.read().await.unwrap().0, "sk-real", "of the configuration");
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
    async fn a_command_is_run_once_and_again_when_its_key_was_not_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let count = directory.path().join("count");
        let script = format!("echo x >> {0}; echo sk-$(wc -l < {0} | tr -d ' ')", count.display());
        let key = ApiKey::from_command(vec!["sh".to_owned(), "-c".to_owned(), script]);
        let both = tokio::join!(key.read(), key.read());
        assert_eq!((both.0.unwrap().0, both.1.unwrap().0), ("sk-1".to_owned(), "sk-1".to_owned()));
        assert_eq!(key.clone().read().await.unwrap().0, "sk-1");
        assert!(key.forget().await);
        assert_eq!(key.read().await.unwrap().0, "sk-2");
        assert!(!format!("{key:?}").contains("sk-2"));
        assert!(!ApiKey::from_environment("PATH").forget().await);
    }

    #[tokio::test]
    async fn a_command_that_fails_is_named_without_what_it_printed() {
        let command = |words: &[&str]| {
            ApiKey::from_command(words.iter().map(|word| (*word).to_owned()).collect())
        };
        let message = fault(&command(&["sh", "-c", "echo sk-half; exit 3"])).await;
        assert!(message.contains("`sh`") && message.contains("exit status: 3"), "{message}");
        assert!(!message.contains("sk-half"), "{message}");
        let message = fault(&command(&["no-such-program-here"])).await;
        assert!(message.contains("`no-such-program-here` cannot be run"), "{message}");
        assert!(fault(&command(&["true"])).await.ends_with("is empty"));
        let message = fault(&command(&["yes", "key"])).await;
        assert!(message.contains("prints more than a key"), "{message}");
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
