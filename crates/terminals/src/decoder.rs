//! Bytes of a terminal as text, however they are cut.
//!
//! Promises: the same bytes give the same text, whatever pieces they come in; at most three bytes wait.

/// Decodes a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct Utf8Decoder {
    /// The beginning of a character.
    waiting: Vec<u8>,
}

impl Utf8Decoder {
    /// The text of these bytes; what is no text becomes U+FFFD.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.waiting.is_empty() {
            bytes
        } else {
            joined = [self.waiting.as_slice(), bytes].concat();
            self.waiting.clear();
            &joined
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, wrong) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.waiting.extend_from_slice(wrong);
                        return text;
                    };
                    text.push('\u{fffd}');
                    rest = wrong.get(length..).unwrap_or_default();
                }
            }
        }
    }

    /// What is left when no more bytes come.
    pub(crate) fn finish(&mut self) -> Option<char> {
        let was_waiting = !std::mem::take(&mut self.waiting).is_empty();
        was_waiting.then_some('\u{fffd}')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode_all(pieces: &[&[u8]]) -> String {
        let mut decoder = Utf8Decoder::default();
        let mut text: String = pieces.iter().map(|piece| decoder.decode(piece)).collect();
        text.extend(decoder.finish());
        text
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        assert_eq!(decode_all(&[b"\xe2", b"\x82", b"\xac!"]), "€!");
        assert_eq!(decode_all(&[b"a\xff\xe2\x82b"]), "a\u{fffd}\u{fffd}b");
        assert_eq!(decode_all(&[b"\xf0\x9f"]), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let cut = cut.min(bytes.len());
            let (before, after) = bytes.split_at(cut);
            let text = decode_all(&[before, after]);
            prop_assert_eq!(&text, &decode_all(&[&bytes]));
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
