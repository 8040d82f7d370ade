//! Copies of attachments under names that tools can open (C-032): in the data directory, never in the user's folders.
//!
//! Promises: a name cannot lead out of the session's directory; all copies of all sessions together are bounded, the oldest go
//! first.
//! Must not know: who reads them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::part::{Body, View};
use wire::Digest;

use super::sources::digest_in;
use crate::blobs::{Blobs, Found};
use crate::client_plugins;

/// Bytes of all copies together.
const STAGED_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// Longest name of a copy, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The copies of one session. Its directory lies among those of the other sessions.
pub(crate) struct Staging(Option<PathBuf>);

impl Staging {
    /// Copies go into this directory of the session, if there is one.
    pub(super) fn at(directory: Option<PathBuf>) -> Self {
        Self(directory)
    }

    /// The path of a copy of an attachment's body.
    pub(super) fn stage(&self, part: &Part, blobs: &dyn Blobs) -> Option<String> {
        let directory = self.0.as_ref()?;
        let View::Attachment(attachment) = part.view() else {
            return None; // only attachments have bodies to copy
        };
        let (digest, body) = match attachment.body {
            Body::Absent => return None, // nothing to copy
            Body::Inline(data) => {
                let body = STANDARD.decode(data).ok()?;
                (Digest::of(&body), body)
            }
            Body::Stored(content_id) => {
                let digest = digest_in(content_id)?;
                (digest, read_whole(blobs, &digest)?)
            }
        };
        match put(directory, attachment.name, &digest, &body) {
            Ok(path) => path.to_str().map(str::to_owned),
            Err(error) => {
                tracing::warn!(%error, "no copy of an attachment can be made for tools");
                None
            }
        }
    }
}

/// A stored body; none if it is not there, too large to be copied, or cannot be read.
fn read_whole(blobs: &dyn Blobs, digest: &Digest) -> Option<Vec<u8>> {
    match blobs.read(digest, STAGED_BYTES_MAX) {
        Ok(Found::Body(body)) => Some(body),
        Ok(Found::Missing) => {
            tracing::warn!(%digest, "an attachment is not there any more; tools get no copy of it");
            None
        }
        Ok(Found::TooLarge { bytes }) => {
            tracing::warn!(%digest, bytes, "an attachment is too large to be copied for tools");
            None
        }
        Err(error) => {
            tracing::error!(%error, "an attachment cannot be read; tools get no copy of it");
            None
        }
    }
}

fn put(directory: &Path, name: &str, digest: &Digest, body: &[u8]) -> io::Result<PathBuf> {
    let folder = directory.join(&digest.to_hex()[..16]);
    let path = folder.join(file_name(name));
    if fs::metadata(&path).is_ok_and(|there| there.len() == body.len() as u64) {
        return Ok(path);
    }
    make_room(directory.parent().unwrap_or(directory), body.len() as u64)?;
    fs::create_dir_all(&folder)?;
    let half = folder.join(".half");
    fs::write(&half, body)?;
    fs::rename(&half, &path)?;
    Ok(path)
}

/// The last part of a name, without anything that means something to a file system or a terminal.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or("");
    let mut clean: String = last.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    let start = clean.len().saturating_sub(NAME_BYTES_MAX);
    clean.drain(..clean.ceil_char_boundary(start));
    match clean.as_str() {
        "" | "." | ".." | ".half" => "attachment".to_owned(),
        _ => clean,
    }
}

/// Removes the oldest copies, whosever they are, until there is room.
fn make_room(sessions: &Path, bytes: u64) -> io::Result<()> {
    let mut copies: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for session in directories_in(sessions)? {
        for copy in directories_in(&session)? {
            if copy.ends_with(client_plugins::DIRECTORY) {
                continue; // plugins are bounded apart, and used as long as their clients are there
            }
            let files = fs::read_dir(&copy).into_iter().flatten().flatten();
            let size = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
            let at = fs::metadata(&copy).and_then(|about| about.modified());
            copies.push((at.unwrap_or(SystemTime::UNIX_EPOCH), size, copy));
        }
    }
    copies.sort();
    let mut taken: u64 = copies.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in copies {
        if taken + bytes <= STAGED_BYTES_MAX {
            break;
        }
        match fs::remove_dir_all(&path) {
            Ok(()) => {}
            // Another turn made room at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        taken -= size;
    }
    Ok(())
}

/// None if the directory itself is not there.
fn directories_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let entries =
        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(entries.map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(directory: &Path, body: &[u8]) -> io::Result<PathBuf> {
        put(directory, "a.txt", &Digest::of(body), body)
    }

    #[test]
    fn a_name_stays_inside_and_is_short() {
        for (name, expected) in [
            ("a.png", "a.png"),
            ("../../etc/passwd", "passwd"),
            ("..", "attachment"),
            ("", "attachment"),
            ("C:\\x\\y.doc", "y.doc"),
            ("a\nb\0", "a_b_"),
        ] {
            assert_eq!(file_name(name), expected);
        }
        assert!(file_name(&"é".repeat(200)).len() <= NAME_BYTES_MAX);
    }

    #[test]
    fn the_copies_of_all_sessions_share_one_bound() {
        let dir = tempfile::tempdir().unwrap();
        let first = copy(&dir.path().join("1"), b"body").unwrap();
        let second = copy(&dir.path().join("2"), b"body").unwrap();
        assert_ne!(first, second, "each session has its own");
        make_room(dir.path(), STAGED_BYTES_MAX - 8).unwrap();
        assert!(first.exists() && second.exists());
        make_room(dir.path(), STAGED_BYTES_MAX).unwrap();
        assert!(!first.exists() && !second.exists());
    }

    #[test]
    fn a_copy_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("1");
        let first = copy(&own, b"body").unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"body");
        assert_eq!(copy(&own, b"body").unwrap(), first);
        assert_ne!(copy(&own, b"other").unwrap(), first);
    }
}
