//! What bytes are, whatever their name says (C-018, C-036): text by its encoding, media by their magic numbers.

/// How far into a file a NUL makes it binary.
pub(crate) const TEXT_CHECK_BYTES: usize = 8 * 1_024;
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";
/// The type of what has no better one.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// How an attachment is treated (C-030).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Text,
    Image,
    Pdf,
    Audio,
    Video,
    Unknown,
}

impl Class {
    /// The class that a media type names.
    pub fn of_mime(mime: &str) -> Self {
        let mime = essence(mime);
        match mime.split('/').next().unwrap_or("") {
            "text" => Self::Text,
            // Formats of programs, not images that a model sees.
            "image" if mime.starts_with("image/vnd.") || mime == "image/x-xcf" => Self::Unknown,
            "image" => Self::Image,
            "audio" => Self::Audio,
            "video" => Self::Video,
            _ if mime == "application/pdf" => Self::Pdf,
            _ if is_text_application(&mime) => Self::Text,
            _ => Self::Unknown,
        }
    }
}

/// A media type without its parameters, in lower case.
pub fn essence(mime: &str) -> String {
    let essence = mime.split(';').next().unwrap_or("");
    essence.trim().to_ascii_lowercase()
}

fn is_text_application(mime: &str) -> bool {
    matches!(
        mime,
        "application/json"
            | "application/javascript"
            | "application/xml"
            | "application/toml"
            | "application/yaml"
            | "application/x-yaml"
            | "application/x-sh"
            | "application/sql"
    ) || mime.ends_with("+json")
        || mime.ends_with("+xml")
}

/// The text in bytes, if they are text: a mark of UTF-8 at their beginning is not part of it.
pub fn as_text(bytes: &[u8]) -> Option<&str> {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    if bytes[..bytes.len().min(TEXT_CHECK_BYTES)].contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// A body's class and its media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType {
    pub class: Class,
    pub mime: String,
}

/// What a body is: by its bytes where they tell, by what it is called where they do not (C-036). What calls itself a
/// format that we know and is not it is never sent as one: a provider would refuse the whole request.
pub fn classify(mime: &str, bytes: &[u8]) -> MediaType {
    let claimed = essence(mime);
    let kind = |class, mime: &str| MediaType { class, mime: mime.to_owned() };
    let text = as_text(bytes);
    match (Class::of_mime(&claimed), detect(bytes)) {
        (Class::Text, _) if text.is_some() => kind(Class::Text, &claimed),
        (Class::Text, _) => kind(Class::Unknown, OCTET_STREAM),
        // A container that we do not know from the outside may be another's format: a film may be called a sound.
        (Class::Audio, Some("video/mp4" | "video/webm")) => kind(Class::Audio, &claimed),
        (_, Some(actual)) => kind(Class::of_mime(actual), actual),
        (Class::Unknown, None) if claimed == OCTET_STREAM && text.is_some_and(is_prose) => {
            kind(Class::Text, "text/plain")
        }
        (Class::Unknown, None) => kind(Class::Unknown, &claimed),
        // A drawing written as text.
        (Class::Image, None) if claimed == "image/svg+xml" && text.is_some() => {
            kind(Class::Text, &claimed)
        }
        (_, None) if is_detectable(&claimed) => match text {
            Some(text) if is_prose(text) => kind(Class::Text, "text/plain"),
            _ => kind(Class::Unknown, OCTET_STREAM),
        },
        (class, None) => kind(class, &claimed),
    }
}

/// Text without the control characters that formats of programs begin with.
fn is_prose(text: &str) -> bool {
    let is_odd = |byte: &u8| *byte < b' ' && !b"\t\n\r\x0c\x1b".contains(byte);
    !text.as_bytes()[..text.len().min(TEXT_CHECK_BYTES)].iter().any(is_odd)
}

/// Whether [`detect`] recognises bodies of this type.
fn is_detectable(mime: &str) -> bool {
    matches!(
        mime,
        "image/png"
            | "image/jpeg"
            | "image/jpg"
            | "image/gif"
            | "image/webp"
            | "image/heic"
            | "application/pdf"
            | "audio/wav"
            | "audio/flac"
            | "audio/ogg"
            | "video/mp4"
            | "video/mov"
            | "video/quicktime"
            | "video/webm"
    )
}

/// The media type of an image, document, sound or film, by its first bytes.
pub fn detect(bytes: &[u8]) -> Option<&'static str> {
    let at =
        |offset: usize, magic: &[u8]| bytes.get(offset..).is_some_and(|b| b.starts_with(magic));
    let riff = |form: &[u8]| at(0, b"RIFF") && at(8, form);
    let mime = if at(0, b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if at(0, b"\xff\xd8\xff") {
        "image/jpeg"
    } else if at(0, b"GIF87a") || at(0, b"GIF89a") {
        "image/gif"
    } else if riff(b"WEBP") {
        "image/webp"
    } else if riff(b"WAVE") {
        "audio/wav"
    } else if at(0, b"%PDF-") {
        "application/pdf"
    } else if at(0, b"ID3") || at(0, b"\xff\xfb") || at(0, b"\xff\xf3") || at(0, b"\xff\xf2") {
        "audio/mp3"
    } else if at(0, b"OggS") {
        "audio/ogg"
    } else if at(0, b"fLaC") {
        "audio/flac"
    } else if at(0, b"\xff\xf1") || at(0, b"\xff\xf9") {
        "audio/aac"
    } else if at(0, b"FORM") && (at(8, b"AIFF") || at(8, b"AIFC")) {
        "audio/aiff"
    } else if at(4, b"ftyp") {
        of_brand(bytes.get(8..12).unwrap_or_default())
    } else if at(0, b"\x1a\x45\xdf\xa3") {
        of_matroska(bytes)
    } else {
        return None;
    };
    Some(mime)
}

/// Pictures, sounds and films that share one container say in its first box which they are.
fn of_brand(brand: &[u8]) -> &'static str {
    match brand {
        b"avif" | b"avis" => "image/avif",
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => "image/heic",
        b"mif1" | b"msf1" => "image/heif",
        b"crx " => "image/x-canon-cr3",
        b"qt  " => "video/mov",
        b"M4A " | b"M4B " => "audio/mp4",
        [b'3', b'g', ..] => "video/3gpp",
        _ => "video/mp4",
    }
}

/// WebM is the part of Matroska that browsers play.
fn of_matroska(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(64)];
    match memchr::memmem::find(head, b"matroska") {
        Some(_) => "video/x-matroska",
        None => "video/webm",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_utf_8_without_nul() {
        assert_eq!(as_text(b"\xef\xbb\xbfa\xc3\xa9"), Some("aé"));
        assert_eq!(as_text(b"a\0b"), None);
        assert_eq!(as_text(b"\xff\xfe"), None);
        let mut late = vec![b'a'; TEXT_CHECK_BYTES];
        late.push(0);
        assert!(as_text(&late).is_some(), "only the beginning is looked at");
    }

    #[test]
    fn media_are_known_by_their_first_bytes() {
        assert_eq!(detect(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(detect(b"RIFF\x24\0\0\0WAVEfmt "), Some("audio/wav"));
        assert_eq!(detect(b"\0\0\0\x18ftypisom"), Some("video/mp4"));
        assert_eq!(detect(b"\0\0\0\x18ftypavif"), Some("image/avif"));
        assert_eq!(detect(b"\0\0\0\x18ftypqt  "), Some("video/mov"));
        assert_eq!(detect(b"\0\0\0\x18ftypM4A "), Some("audio/mp4"));
        assert_eq!(detect(b"\x1a\x45\xdf\xa3\x42\x82\x88matroska"), Some("video/x-matroska"));
        assert_eq!(detect(b"\x1a\x45\xdf\xa3\x42\x82\x84webm"), Some("video/webm"));
        assert_eq!(detect(b"FORM\0\0\0\0AIFF"), Some("audio/aiff"));
        assert_eq!(detect(b"hello"), None);
    }

    #[test]
    fn a_body_with_a_wrong_media_type_has_no_format() {
        let class = |mime: &str, bytes: &[u8]| classify(mime, bytes).class;
        assert_eq!(class("application/pdf", b"PK\x03\x04\x14\0"), Class::Unknown);
        assert_eq!(class("image/png", b"\0\0\0\x18ftypavif"), Class::Image);
        assert_eq!(classify("image/png", b"\0\0\0\x18ftypavif").mime, "image/avif");
        assert_eq!(class("audio/mp4", b"\0\0\0\x18ftypisom"), Class::Audio);
        assert_eq!(class("video/mpeg", b"\0\0\x01\xba"), Class::Video);
        assert_eq!(class("application/zip", b"just text"), Class::Unknown);
        assert_eq!(class("application/octet-stream", b"PK\x03\x04"), Class::Unknown);
    }

    #[test]
    fn formats_of_programs_are_not_pictures() {
        assert_eq!(Class::of_mime("image/vnd.adobe.photoshop"), Class::Unknown);
        assert_eq!(Class::of_mime("Image/PNG; q=1"), Class::Image);
        assert_eq!(Class::of_mime("application/ld+json"), Class::Text);
    }
}
