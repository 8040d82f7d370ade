//! Pictures that are pasted or dropped as a path.
//!
//! Promises: a text is taken for a picture only if it is the path of a file that is one, and nothing else.
//! Must not know: keys, terminals.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use client::chat::Attachment;

use crate::format::format_bytes;

/// A picture larger than this is not sent: hosts take no larger message, and no model takes such a picture.
const IMAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A longer text is no path.
const PATH_BYTES_MAX: usize = 4_096;

/// A picture as it goes along with a message, and what it is called there.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) attachment: Attachment,
}

/// The picture whose path was pasted; `None` if it is any other text.
pub(crate) fn pasted_picture(text: &str) -> Option<anyhow::Result<Picture>> {
    let path = pasted_path(text)?;
    let content_type = content_type(&path)?;
    let size = std::fs::metadata(&path)
        .ok()
        .filter(|file| file.is_file())?;
    Some(read(&path, content_type, size.len()))
}

fn read(path: &Path, content_type: &str, size: u64) -> anyhow::Result<Picture> {
    ensure!(
        size <= IMAGE_BYTES_MAX,
        "the picture has {}; at most {} can be sent",
        format_bytes(size),
        format_bytes(IMAGE_BYTES_MAX)
    );
    let bytes = std::fs::read(path).context("the picture cannot be read")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Picture {
        attachment: Attachment::embedded(&name, content_type, &bytes),
        name: name.into_owned(),
    })
}

fn content_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return None,
    })
}

/// The path in a text as terminals write one that is dropped on them: plain, quoted, with backslashes, or as a URI.
fn pasted_path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.len() > PATH_BYTES_MAX || text.contains('\n') {
        return None;
    }
    if text.starts_with("file://") {
        let path = wire::file_uri::path_of(text)?;
        return Some(PathBuf::from(OsString::from_vec(path)));
    }
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let path = match quoted('\'').or_else(|| quoted('"')) {
        Some(path) => path.to_owned(),
        None => unescape(text),
    };
    let path = match path.strip_prefix("~/") {
        Some(rest) => Path::new(&std::env::var_os("HOME")?).join(rest),
        None => PathBuf::from(path),
    };
    path.is_absolute().then_some(path)
}

/// A path as a shell reads it.
fn unescape(text: &str) -> String {
    let mut path = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.extend(chars.next()),
            c => path.push(c),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_terminals_write_them() {
        for (text, path) in [
            ("/a/b.png", "/a/b.png"),
            (" /a/b c.png\n", "/a/b c.png"),
            ("'/a/b c.png'", "/a/b c.png"),
            ("\"/a/b.png\"", "/a/b.png"),
            ("/a/b\\ \\(1\\).png", "/a/b (1).png"),
            ("file:///a/b%20c.png", "/a/b c.png"),
        ] {
            assert_eq!(
                pasted_path(text).as_deref(),
                Some(Path::new(path)),
                "{text}"
            );
        }
        for text in ["", "a.png", "see /a.png", "/a.png\n/b.png"] {
            assert_eq!(
                pasted_path(text).filter(|path| path.exists()),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn only_a_file_that_is_there_is_a_picture() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shot 1.png");
        std::fs::write(&path, b"\x89PNG").unwrap();
        let picture = pasted_picture(&format!("'{}'", path.display())).unwrap();
        assert_eq!(picture.unwrap().name, "shot 1.png");
        let missing = directory.path().join("other.png");
        assert!(pasted_picture(missing.to_str().unwrap()).is_none());
        let text = directory.path().join("notes.txt");
        std::fs::write(&text, "x").unwrap();
        assert!(pasted_picture(text.to_str().unwrap()).is_none());
    }
}
