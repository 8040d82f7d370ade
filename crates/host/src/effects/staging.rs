//! Copies of attachments under names that tools can open (C-032): in the data directory, never in the user's folders.
//!
//! Promises: a name cannot lead out of the directory; all copies together are bounded, the oldest go first.
//! Must not know: who reads them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::part::{Body, View};

use super::sources::digest_in;
use crate::blobs::{Blobs, Found, digest_of};

/// Bytes of all copies together.
const STAGED_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// Longest name of a copy, in bytes.
const NAME_BYTES_MAX: usize = 100;

pub(crate) struct Staging(Option<PathBuf>);

impl Staging {
    /// Copies go into this directory, if there is one.
    pub(super) fn at(directory: Option<PathBuf>) -> Self {
        Self(directory)
    }

    /// The path of a copy of an attachment's body.
    pub(super) fn stage(&self, part: &Part, blobs: &dyn Blobs) -> Option<String> {
        let directory = self.0.as_ref()?;
        let View::Attachment(attachment) = part.view() else {
            return None; // only attachments have bodies to copy
        };
        let body = match attachment.body {
            Body::Absent => return None,
            Body::Inline(data) => STANDARD.decode(data).ok()?,
            Body::Stored(content_id) => {
                match blobs.read(&digest_in(content_id)?, STAGED_BYTES_MAX) {
                    Ok(Found::Body(body)) => body,
                    Ok(_) | Err(_) => return None,
                }
            }
        };
        match put(directory, attachment.name, &body) {
            Ok(path) => path.to_str().map(str::to_owned),
            Err(error) => {
                tracing::warn!(%error, "no copy of an attachment can be made for tools");
                None
            }
        }
    }
}

fn put(directory: &Path, name: &str, body: &[u8]) -> io::Result<PathBuf> {
    let folder = directory.join(&digest_of(body).to_hex()[..16]);
    let path = folder.join(file_name(name));
    if fs::metadata(&path).is_ok_and(|there| there.len() == body.len() as u64) {
        return Ok(path);
    }
    make_room(directory, body.len() as u64)?;
    fs::create_dir_all(&folder)?;
    let half = folder.join(".half");
    fs::write(&half, body)?;
    fs::rename(&half, &path)?;
    Ok(path)
}

/// The last part of a name, without anything that means something to a file system or a terminal.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or("");
    let mut clean: String = last
        .chars()
        .map(|c| if c.is_control() { '_' } else { c })
        .collect();
    let start = clean.len().saturating_sub(NAME_BYTES_MAX);
    clean.drain(..clean.ceil_char_boundary(start));
    match clean.as_str() {
        "" | "." | ".." | ".half" => "attachment".to_owned(),
        _ => clean,
    }
}

fn make_room(directory: &Path, bytes: u64) -> io::Result<()> {
    let folders = match fs::read_dir(directory) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut copies: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for folder in folders.flatten() {
        let path = folder.path();
        let files = fs::read_dir(&path).into_iter().flatten().flatten();
        let size = files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum();
        let at = folder.metadata().and_then(|about| about.modified());
        copies.push((at.unwrap_or(SystemTime::UNIX_EPOCH), size, path));
    }
    copies.sort();
    let mut taken: u64 = copies.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in copies {
        if taken + bytes <= STAGED_BYTES_MAX {
            break;
        }
        fs::remove_dir_all(&path)?;
        taken -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_copy_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let first = put(dir.path(), "a.txt", b"body").unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"body");
        assert_eq!(put(dir.path(), "a.txt", b"body").unwrap(), first);
        assert_ne!(put(dir.path(), "a.txt", b"other").unwrap(), first);
    }
}
