//! Takes a JSON document apart where a later one is likely to repeat it: around the elements of the lists at its top, around
//! long strings, around the Base64 of bodies.
//!
//! Promises: the pieces, one after the other, are the document; whatever bytes come in, none is lost and nothing panics.
//! Must not know: what a document means.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use compositor::media_type::{OCTET_STREAM, detect, essence};

/// Elements shorter than this are not worth a row.
const SHARED_BYTES_MIN: usize = 64;

/// A string from here on is a piece of its own: what surrounds it may change without it.
const STRING_BYTES_MIN: usize = 512;

/// Base64 from here on may be a body.
const BODY_BYTES_MIN: usize = 1_024;

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SplitPiece<'a> {
    Text(&'a [u8]),
    /// Base64: what it stands for, and its media type.
    Body {
        bytes: Vec<u8>,
        content_type: String,
    },
}

impl SplitPiece<'_> {
    /// Whether it is worth a row of its own.
    pub(super) fn is_shared(&self) -> bool {
        match self {
            Self::Text(text) => text.len() >= SHARED_BYTES_MIN,
            Self::Body { .. } => true,
        }
    }
}

/// Takes a document apart.
pub(super) fn split(document: &[u8]) -> Vec<SplitPiece<'_>> {
    let mut scanner = Scanner { document, begun: 0, pieces: Vec::new() };
    scanner.scan();
    scanner.pieces
}

struct Scanner<'a> {
    document: &'a [u8],
    /// Where the piece begins that is not cut off yet.
    begun: usize,
    pieces: Vec<SplitPiece<'a>>,
}

impl<'a> Scanner<'a> {
    fn scan(&mut self) {
        // What is open at each level: whether it is a list.
        let mut open: Vec<bool> = Vec::new();
        let mut at = 0;
        while let Some(byte) = self.document.get(at) {
            match byte {
                b'{' | b'[' => {
                    if is_top_list(&open) {
                        self.cut(at);
                    }
                    open.push(*byte == b'[');
                    at += 1;
                }
                b'}' | b']' => {
                    open.pop();
                    at += 1;
                    if is_top_list(&open) {
                        self.cut(at);
                    }
                }
                b'"' => at = self.take_string(at),
                _ => at += 1,
            }
        }
        self.cut(self.document.len());
    }

    /// Everything up to here is a piece.
    fn cut(&mut self, at: usize) {
        if let Some(text) = self.document.get(self.begun..at)
            && !text.is_empty()
        {
            self.pieces.push(SplitPiece::Text(text));
        }
        self.begun = at;
    }

    /// Takes the string that begins here; where it is over.
    fn take_string(&mut self, quote: usize) -> usize {
        let begin = quote + 1;
        let end = begin + string_length(self.document.get(begin..).unwrap_or_default());
        let text = self.document.get(begin..end).unwrap_or_default();
        if text.len() >= STRING_BYTES_MIN {
            self.cut(begin);
            let prefix = data_url_prefix(text);
            let (head, body) = text.split_at_checked(prefix).unwrap_or_default();
            match decode_body(head, body) {
                Some(body) => {
                    self.cut(begin + prefix);
                    self.pieces.push(body);
                    self.begun = end;
                }
                None => self.cut(end),
            }
        }
        end + 1 // the quote
    }
}

/// Whether what comes next is an element of a list that is a field of the document.
fn is_top_list(open: &[bool]) -> bool {
    open == [false, true]
}

/// How long a string is whose opening quote was read.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = text.iter().position(|byte| match byte {
        _ if is_escaped => {
            is_escaped = false;
            false
        }
        b'\\' => {
            is_escaped = true;
            false
        }
        byte => *byte == b'"',
    });
    end.unwrap_or(text.len())
}

/// The length of `data:image/png;base64,` at the beginning of a string.
fn data_url_prefix(text: &[u8]) -> usize {
    const MARK: &[u8] = b";base64,";
    const PREFIX_BYTES_MAX: usize = 256;
    if !text.starts_with(b"data:") {
        return 0;
    }
    let head = text.get(..PREFIX_BYTES_MAX.min(text.len())).unwrap_or_default();
    let mark = head.windows(MARK.len()).position(|window| window == MARK);
    mark.map_or(0, |mark| mark + MARK.len())
}

/// What Base64 stands for, if it is the body of something that people attach and has only this one spelling.
fn decode_body(head: &[u8], text: &[u8]) -> Option<SplitPiece<'static>> {
    if text.len() < BODY_BYTES_MIN {
        return None;
    }
    let bytes = BASE64.decode(text).ok()?;
    if BASE64.encode(&bytes).as_bytes() != text {
        return None;
    }
    let claimed = std::str::from_utf8(head).ok()?.strip_prefix("data:");
    let claimed = claimed.map(essence).filter(|claimed| !claimed.is_empty());
    // Signatures and encrypted reasoning are Base64, too: they are the server's, and nothing that could be opened.
    let content_type = match (detect(&bytes), head.is_empty()) {
        (Some(detected), _) => detected.to_owned(),
        (None, false) => claimed.unwrap_or_else(|| OCTET_STREAM.to_owned()),
        (None, true) => return None,
    };
    Some(SplitPiece::Body { bytes, content_type })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn join(pieces: &[SplitPiece<'_>]) -> Vec<u8> {
        let bytes = pieces.iter().flat_map(|piece| match piece {
            SplitPiece::Text(text) => text.to_vec(),
            SplitPiece::Body { bytes, .. } => BASE64.encode(bytes).into_bytes(),
        });
        bytes.collect()
    }

    fn picture() -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(3_000, 7);
        BASE64.encode(bytes)
    }

    #[test]
    fn elements_long_strings_and_bodies_are_pieces() {
        let long = "x\"y\\".repeat(200);
        let document = json!({
            "model": "m",
            "messages": [
                {"role": "user", "content": "a".repeat(100)},
                {"role": "user", "content": long},
                {"source": {"data": picture()}, "url": format!("data:image/png;base64,{}", picture())},
                {"signature": BASE64.encode(vec![250_u8; 3_000])},
            ],
            "stream": true,
        }).to_string();
        let pieces = split(document.as_bytes());
        assert_eq!(join(&pieces), document.as_bytes());
        let bodies = pieces.iter().filter(|piece| matches!(piece, SplitPiece::Body { content_type, .. } if content_type == "image/png"));
        assert_eq!(bodies.count(), 2);
        let escaped = serde_json::to_string(&long).unwrap();
        let escaped = &escaped.as_bytes()[1..escaped.len() - 1];
        assert!(pieces.contains(&SplitPiece::Text(escaped)), "{pieces:?}");
    }

    /// A conversation that grew repeats the pieces of the one before.
    #[test]
    fn a_longer_document_shares_the_pieces_of_a_shorter_one() {
        let message =
            |n: usize| json!({"role": "user", "content": format!("{n} {}", "word ".repeat(300))});
        let document = |count: usize| {
            let messages: Vec<_> = (0..count).map(message).collect();
            json!({"messages": messages, "stream": true}).to_string()
        };
        let (short, long) = (document(40), document(41));
        let (short, long) = (split(short.as_bytes()), split(long.as_bytes()));
        let new = long.iter().filter(|piece| piece.is_shared() && !short.contains(piece));
        let bytes: usize = new.map(|piece| join(std::slice::from_ref(piece)).len()).sum();
        assert!(bytes < 2_000, "{bytes}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_of_any_bytes(document in proptest::collection::vec(any::<u8>(), 0..4_000)) {
            prop_assert_eq!(join(&split(&document)), document);
        }

        #[test]
        fn nothing_is_lost_of_what_looks_like_json(document in "[\\[\\]{}\",:\\\\a-z=]{0,3000}") {
            prop_assert_eq!(join(&split(document.as_bytes())), document.as_bytes());
        }
    }
}
