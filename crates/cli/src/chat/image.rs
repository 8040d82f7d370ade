//! Pictures that are pasted or dropped as a path.
//!
//! Promises: a text is taken for a picture only if it is the path of a file that is one, whatever it is called, and nothing else.
//! No more of a file is read than may be sent.
//! Must not know: keys, terminals.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use client::chat::MessageAttachment;

use crate::format::format_bytes;

/// A picture larger than this is not sent: hosts take no larger message, and no model takes such a picture.
const IMAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What distinguishes a picture from other files.
const HEAD_BYTES: u64 = 16;
/// A longer text is no path.
const PATH_BYTES_MAX: usize = 4_096;

/// A picture as it goes along with a message, and what it is called there.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) attachment: MessageAttachment,
}

/// The picture whose path was pasted; `None` if it is any other text.
pub(crate) fn pasted_picture(text: &str) -> Option<anyhow::Result<Picture>> {
    let path = pasted_path(text)?;
    // Only a regular file is opened: a pipe would be waited for.
    let is_file = std::fs::metadata(&path).is_ok_and(|file| file.is_file());
    let mut file = File::open(&path).ok().filter(|_| is_file)?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let content_type = image_type(&head)?;
    Some(read(&path, content_type, head, file))
}

/// Reads what is behind the head. The file may grow meanwhile: its size is what was read of it.
fn read(path: &Path, content_type: &str, head: Vec<u8>, rest: File) -> anyhow::Result<Picture> {
    let mut bytes = head;
    rest.take(IMAGE_BYTES_MAX + 1 - HEAD_BYTES)
        .read_to_end(&mut bytes)
        .context("the picture cannot be read")?;
    ensure!(
        bytes.len() as u64 <= IMAGE_BYTES_MAX,
        "the picture is larger than {}, the largest that can be sent",
        format_bytes(IMAGE_BYTES_MAX)
    );
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Picture {
        attachment: MessageAttachment::embedded(&name, content_type, &bytes),
        name: name.into_owned(),
    })
}

/// The kind of picture that a file begins like, if it is one that models take.
pub(crate) fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
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
            assert_eq!(pasted_path(text).as_deref(), Some(Path::new(path)), "{text}");
        }
        for text in ["", "a.png", "see /a.png", "/a.png\n/b.png"] {
            assert_eq!(pasted_path(text).filter(|path| path.exists()), None, "{text}");
        }
    }

    #[test]
    fn a_file_is_a_picture_by_what_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let paste = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            pasted_picture(&format!("'{}'", path.display()))
        };
        let png = b"\x89PNG\r\n\x1a\n and so on";
        let picture = paste("shot 1.png", png).unwrap().unwrap();
        assert_eq!(picture.name, "shot 1.png");
        let unnamed = paste("clipboard", b"\xff\xd8\xff\xe0 JFIF").unwrap().unwrap();
        assert_eq!(unnamed.name, "clipboard");
        for (name, bytes) in [
            ("notes.txt", &b"x"[..]),
            ("id_rsa.png", b"-----BEGIN PRIVATE KEY-----"),
            ("empty.png", b""),
            ("cut.png", b"\x89PNG"),
        ] {
            assert!(paste(name, bytes).is_none(), "{name}");
        }
        let missing = directory.path().join("other.png");
        assert!(pasted_picture(missing.to_str().unwrap()).is_none());
        assert!(pasted_picture(directory.path().to_str().unwrap()).is_none());
        assert!(pasted_picture("/dev/zero").is_none());
    }

    #[test]
    fn the_kinds_that_models_take_are_known() {
        for (head, kind) in [
            (&b"GIF89a"[..], Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"BM", None),
        ] {
            assert_eq!(image_type(head), kind);
        }
    }

    #[test]
    fn no_more_of_a_file_is_read_than_may_be_sent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("huge.png");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(IMAGE_BYTES_MAX).unwrap();
        let text = path.to_str().unwrap().to_owned();
        assert!(pasted_picture(&text).unwrap().is_ok());
        // As large as no memory is: it takes no room on the disk.
        file.set_len(1 << 42).unwrap();
        let Err(error) = pasted_picture(&text).unwrap() else {
            panic!("it was read");
        };
        assert!(error.to_string().contains("larger than"), "{error}");
    }
}
