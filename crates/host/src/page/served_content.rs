//! What a browser may do with some content, by what its bytes are.
//!
//! Promises: nothing that can hold a script is ever shown as a page; what a type claims counts for nothing where the bytes can be
//! asked.
//! Must not know: HTTP beyond its words, where content comes from.

use compositor::media_type;

/// How content is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServedAs {
    pub content_type: &'static str,
    /// Opened by itself it is saved, not shown; as a picture of the page it is shown all the same.
    pub is_download: bool,
}

/// `claimed` is the type that was asked for.
pub(crate) fn served_as(claimed: &str, body: &[u8]) -> ServedAs {
    let shown = |content_type| ServedAs { content_type, is_download: false };
    let saved = |content_type| ServedAs { content_type, is_download: true };
    if let Some(detected) = media_type::detect(body) {
        return match detected {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/avif" => {
                shown(detected)
            }
            "audio/mp3" => shown("audio/mpeg"),
            "video/mov" => shown("video/quicktime"),
            media if media.starts_with("audio/") || media.starts_with("video/") => shown(media),
            _ => saved("application/octet-stream"),
        };
    }
    let is_text = !body.contains(&0) && std::str::from_utf8(body).is_ok();
    let essence = claimed.split(';').next().unwrap_or("").trim();
    if !is_text {
        saved("application/octet-stream")
    } else if essence.eq_ignore_ascii_case("image/svg+xml") {
        saved("image/svg+xml")
    } else {
        shown("text/plain; charset=utf-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_decide() {
        let check = |claimed: &str, body: &[u8]| {
            let ServedAs { content_type, is_download } = served_as(claimed, body);
            (content_type, is_download)
        };
        let plain = ("text/plain; charset=utf-8", false);
        let binary = ("application/octet-stream", true);
        assert_eq!(check("text/html", b"\x89PNG\r\n\x1a\n"), ("image/png", false));
        assert_eq!(check("image/png", b"<script>alert(1)</script>"), plain);
        assert_eq!(check("text/html", b"<script>alert(1)</script>"), plain);
        assert_eq!(check("application/xhtml+xml", b"<html/>"), plain);
        assert_eq!(check("image/svg+xml; x", b"<svg/>"), ("image/svg+xml", true));
        assert_eq!(check("image/svg+xml", b"<svg/>\0"), binary);
        assert_eq!(check("", b"ID3\x04"), ("audio/mpeg", false));
        assert_eq!(check("", b"\0\0\0\x18ftypavif"), ("image/avif", false));
        assert_eq!(check("application/pdf", b"%PDF-1.7"), binary);
        assert_eq!(check("text/plain", b"\xff\xfe"), binary);
    }
}
