//! Large bodies of spaces in an object store: S3 or what speaks like it, or a directory that all nodes share.
//!
//! Promises: an object is whole or not there; its name is made of the space, the digest and what the row of the body says, so that
//! nothing of one space is shared with another. Whether an object counts is for a row of the database to say, never for the store.
//! Must not know: who refers to a body, when one is removed.

use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, parse_url_opts};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use wire::Digest;

use super::BlobError;

/// For how long a request to the store is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Variables that say how the store is reached, and with what key.
const VARIABLES: &str = "AWS_";

/// The `[blobs]` table: where large bodies of spaces in a database lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobSettings {
    /// `s3://bucket/prefix`, or `file:///srv/bodies` on a disk that all nodes share.
    pub store: String,
    /// Smaller ones are in the database.
    #[serde(default = "from_bytes")]
    pub from_bytes: u64,
    /// For how long one that nothing refers to is kept: as long as the database can be restored to an earlier moment, and a day
    /// at least.
    #[serde(default = "grave_days")]
    pub grave_days: u32,
}

fn from_bytes() -> u64 {
    1 << 20
}

fn grave_days() -> u32 {
    7
}

impl BlobSettings {
    /// A store with everything else as it is without being said.
    pub fn at(store: &str) -> Self {
        Self { store: store.to_owned(), from_bytes: from_bytes(), grave_days: grave_days() }
    }
}

/// Bodies in a store.
pub struct ObjectBodies {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    pub(crate) settings: BlobSettings,
}

impl ObjectBodies {
    /// Says what is wrong with the settings; the store itself is not asked for anything yet.
    pub fn open(settings: &BlobSettings) -> Result<Self, BlobError> {
        let wrong = |why: String| BlobError::Unreadable(format!("blobs.store: {why}"));
        let url = url::Url::parse(&settings.store).map_err(|error| {
            wrong(format!(
                "{:?} is no address ({error}); it begins with s3:// or file://",
                settings.store
            ))
        })?;
        if !matches!(url.scheme(), "s3" | "file") {
            return Err(wrong("it begins with s3:// or file://".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(format!(
                "keys are taken from the environment ({VARIABLES}ACCESS_KEY_ID and so on)"
            )));
        }
        // Nothing younger than a day is deleted: who puts an object relies on it.
        if settings.grave_days == 0 {
            let why = "blobs.grave_days: what nothing refers to is kept for at least 1 day";
            return Err(BlobError::Unreadable(why.to_owned()));
        }
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let is_for_it = name.starts_with(VARIABLES);
            is_for_it.then_some((name.to_ascii_lowercase(), value.into_string().ok()?))
        });
        // The store's HTTP client takes the process's provider and panics without one. An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let opened = parse_url_opts(&url, variables);
        let (store, prefix) = opened.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { store: Arc::from(store), prefix, settings: settings.clone() })
    }

    /// Whether a body of this size belongs here.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes as u64 >= self.settings.from_bytes
    }

    /// Objects of earlier versions are called by their digest alone.
    fn path(&self, space: i64, digest: &Digest, object: &str) -> Path {
        let name = match object {
            "" => digest.to_hex(),
            object => format!("{}-{object}", digest.to_hex()),
        };
        self.prefix.clone().join(space.to_string()).join(name)
    }

    pub(crate) async fn put(
        &self,
        space: i64,
        digest: &Digest,
        object: &str,
        body: &[u8],
    ) -> Result<(), String> {
        let payload = PutPayload::from(body.to_vec());
        let path = self.path(space, digest, object);
        within(self.store.put(&path, payload)).await.map(drop)
    }

    /// `None` if there is no such object.
    pub(crate) async fn get(
        &self,
        space: i64,
        digest: &Digest,
        object: &str,
    ) -> Result<Option<Vec<u8>>, String> {
        let path = self.path(space, digest, object);
        let read = async {
            match self.store.get(&path).await {
                Ok(found) => found.bytes().await.map(Some),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        Ok(within(read).await?.map(Vec::from))
    }

    pub(crate) async fn copy(
        &self,
        from: i64,
        to: i64,
        digest: &Digest,
        object: &str,
    ) -> Result<(), String> {
        let from = self.path(from, digest, object);
        let to = self.path(to, digest, object);
        within(self.store.copy(&from, &to)).await
    }

    /// One that is gone already is no error.
    pub(crate) async fn delete(
        &self,
        space: i64,
        digest: &Digest,
        object: &str,
    ) -> Result<(), String> {
        let path = self.path(space, digest, object);
        let deleted = async {
            match self.store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                deleted => deleted,
            }
        };
        within(deleted).await
    }
}

async fn within<T>(work: impl Future<Output = object_store::Result<T>>) -> Result<T, String> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| format!("the object store: {error}")),
        Err(_) => Err("the object store does not answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_store_is_an_error_with_words() {
        for (store, why) in [
            ("", "blobs.store"),
            ("bodies", "blobs.store"),
            ("https://example.com/x", "s3://"),
            ("s3://key:secret@bucket/x", "environment"),
        ] {
            let error = ObjectBodies::open(&BlobSettings::at(store)).err().unwrap().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn objects_of_two_spaces_are_apart() {
        let directory = tempfile::tempdir().unwrap();
        let settings = BlobSettings::at(&format!("file://{}", directory.path().display()));
        let bodies = ObjectBodies::open(&settings).unwrap();
        let digest = super::super::digest_of(b"body");
        // The second is called as earlier versions did.
        for (object, name) in [("a0", digest.to_hex() + "-a0"), ("", digest.to_hex())] {
            bodies.put(1, &digest, object, b"body").await.unwrap();
            assert_eq!(bodies.get(2, &digest, object).await.unwrap(), None);
            bodies.copy(1, 2, &digest, object).await.unwrap();
            bodies.delete(1, &digest, object).await.unwrap();
            bodies.delete(1, &digest, object).await.unwrap();
            assert_eq!(bodies.get(1, &digest, object).await.unwrap(), None);
            let copied = bodies.get(2, &digest, object).await.unwrap();
            assert_eq!(copied.unwrap(), b"body");
            let path = directory.path().join("2").join(name);
            assert!(path.is_file(), "{}", path.display());
        }
    }

    #[test]
    fn what_nothing_refers_to_is_kept_for_a_day_at_least() {
        let settings = BlobSettings { grave_days: 0, ..BlobSettings::at("file:///srv/bodies") };
        let error = ObjectBodies::open(&settings).err().unwrap().to_string();
        assert!(error.contains("blobs.grave_days"), "{error}");
    }
}
