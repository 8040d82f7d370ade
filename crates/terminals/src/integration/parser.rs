//! Takes shell integration out of a terminal's output.
//!
//! Promises: what is given in pieces comes out as if it had come at once; at most [`SEQUENCE_BYTES_MAX`] bytes wait; every
//! integration sequence is taken out, also those of others (`OSC 133`, `OSC 633`), but only ours mean something.

/// Longest sequence that is recognised; a longer one is handed on as it is.
const SEQUENCE_BYTES_MAX: usize = 64 * 1_024;

/// Longest command line that is told.
const LINE_CHARS_MAX: usize = 4_096;

/// What the output consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputPiece {
    Bytes(Vec<u8>),
    Mark(IntegrationMark),
}

/// What a script says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IntegrationMark {
    /// It was read.
    Loaded,
    /// A command line is carried out.
    Started(String),
    /// It ended. Also said before a prompt that follows no command.
    Ended(Option<i32>),
    /// Where the shell is.
    Directory(String),
}

#[derive(Debug)]
pub(crate) struct IntegrationParser {
    nonce: String,
    /// The beginning of something that may become a sequence.
    waiting: Vec<u8>,
}

impl IntegrationParser {
    pub(crate) fn new(nonce: String) -> Self {
        Self { nonce, waiting: Vec::new() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<OutputPiece> {
        let mut pieces = Vec::new();
        if self.waiting.is_empty() && memchr::memchr(0x1b, bytes).is_none() {
            add_bytes(&mut pieces, bytes);
            return pieces;
        }
        let mut input = std::mem::take(&mut self.waiting);
        input.extend_from_slice(bytes);
        let mut rest = input.as_slice();
        while let Some(start) = memchr::memchr(0x1b, rest) {
            let (before, from) = rest.split_at(start);
            add_bytes(&mut pieces, before);
            match read_sequence(from) {
                Sequence::None => {
                    let (escape, after) = from.split_at(1);
                    add_bytes(&mut pieces, escape);
                    rest = after;
                }
                Sequence::Unfinished => {
                    self.waiting = from.to_vec();
                    return pieces;
                }
                Sequence::Found { body, length } => {
                    pieces.extend(self.read_mark(body).map(OutputPiece::Mark));
                    rest = from.get(length..).unwrap_or_default();
                }
            }
        }
        add_bytes(&mut pieces, rest);
        pieces
    }

    /// What waits when nothing more comes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.waiting)
    }

    fn read_mark(&self, body: &[u8]) -> Option<IntegrationMark> {
        let body = std::str::from_utf8(body).ok()?;
        let said =
            body.strip_prefix("633;")?.strip_prefix(self.nonce.as_str())?.strip_prefix(';')?;
        let (kind, value) = said.split_once(';').unwrap_or((said, ""));
        match kind {
            "A" => Some(IntegrationMark::Loaded),
            "C" => Some(IntegrationMark::Started(unescape(value))),
            "D" => Some(IntegrationMark::Ended(value.parse().ok())),
            "P" => Some(IntegrationMark::Directory(unescape(value))),
            _ => None,
        }
    }
}

enum Sequence<'a> {
    /// Something else.
    None,
    /// More is needed to tell.
    Unfinished,
    Found {
        /// Between `ESC ]` and the end.
        body: &'a [u8],
        length: usize,
    },
}

/// Reads an integration sequence that begins here.
fn read_sequence(from: &[u8]) -> Sequence<'_> {
    const BEGINNINGS: [&[u8]; 2] = [b"\x1b]633;", b"\x1b]133;"];
    let is_begun = |begin: &&[u8]| from.starts_with(begin) || begin.starts_with(from);
    if !BEGINNINGS.iter().any(is_begun) {
        return Sequence::None;
    }
    let Some(after) = from.get(2..) else { return Sequence::Unfinished };
    for (at, byte) in after.iter().enumerate().take(SEQUENCE_BYTES_MAX) {
        let body = after.get(..at).unwrap_or_default();
        match byte {
            0x07 => return Sequence::Found { body, length: at + 3 },
            0x1b => match after.get(at + 1) {
                Some(b'\\') => return Sequence::Found { body, length: at + 4 },
                Some(_) => return Sequence::None,
                None => return Sequence::Unfinished,
            },
            // Cancelled.
            0x18 | 0x1a => return Sequence::None,
            _ => {}
        }
    }
    if after.len() >= SEQUENCE_BYTES_MAX { Sequence::None } else { Sequence::Unfinished }
}

fn add_bytes(pieces: &mut Vec<OutputPiece>, bytes: &[u8]) {
    if bytes.is_empty() {
        return; // nothing between two sequences
    }
    match pieces.last_mut() {
        Some(OutputPiece::Bytes(last)) => last.extend_from_slice(bytes),
        Some(OutputPiece::Mark(_)) | None => pieces.push(OutputPiece::Bytes(bytes.to_vec())),
    }
}

/// Undoes what the scripts do to characters that would end a sequence.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let escape =
            [("x3b", ';'), ("x0a", '\n'), ("x1b", '\u{1b}'), ("x07", '\u{7}'), ("\\", '\\')];
        let found = escape
            .iter()
            .find_map(|(name, meant)| after.strip_prefix(name).map(|after| (*meant, after)));
        let (meant, after) = found.unwrap_or(('\\', after));
        plain.push(meant);
        rest = after;
    }
    plain.push_str(rest);
    if plain.chars().nth(LINE_CHARS_MAX).is_some() {
        plain = plain.chars().take(LINE_CHARS_MAX).collect();
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OUTPUT: &[u8] = b"one\x1b[31m\x1b]633;n1;C;ls \\x3b echo \\\\n\x07two\x1b]633;n1;D;7\x1b\\\
        \x1b]133;A\x07\x1b]633;other;C;rm -rf\x07three\x1b]0;title\x07\x1b]633;n1;P;/a b\x07\x1b]633;n1;A\x07";

    fn expected() -> Vec<OutputPiece> {
        vec![
            OutputPiece::Bytes(b"one\x1b[31m".to_vec()),
            OutputPiece::Mark(IntegrationMark::Started("ls ; echo \\n".to_owned())),
            OutputPiece::Bytes(b"two".to_vec()),
            OutputPiece::Mark(IntegrationMark::Ended(Some(7))),
            OutputPiece::Bytes(b"three\x1b]0;title\x07".to_vec()),
            OutputPiece::Mark(IntegrationMark::Directory("/a b".to_owned())),
            OutputPiece::Mark(IntegrationMark::Loaded),
        ]
    }

    fn join(pieces: Vec<OutputPiece>) -> Vec<OutputPiece> {
        let mut joined = Vec::new();
        for piece in pieces {
            match piece {
                OutputPiece::Bytes(bytes) => add_bytes(&mut joined, &bytes),
                mark @ OutputPiece::Mark(_) => joined.push(mark),
            }
        }
        joined
    }

    #[test]
    fn sequences_are_taken_out_and_only_our_own_count() {
        let mut parser = IntegrationParser::new("n1".to_owned());
        assert_eq!(join(parser.push(OUTPUT)), expected());
        assert_eq!(parser.finish(), b"");
    }

    #[test]
    fn a_sequence_without_an_end_is_output() {
        let mut parser = IntegrationParser::new("n".to_owned());
        let mut seen = join(parser.push(b"\x1b]633;n;C;"));
        assert_eq!(seen, []);
        let chunk = vec![b'x'; 10_000];
        for _ in 0..10 {
            seen.extend(parser.push(&chunk));
            assert!(parser.waiting.len() <= SEQUENCE_BYTES_MAX + 20_000);
        }
        seen.push(OutputPiece::Bytes(parser.finish()));
        let joined = join(seen);
        let [OutputPiece::Bytes(bytes)] = joined.as_slice() else {
            panic!("it is no mark");
        };
        assert_eq!(bytes.len(), 100_010);
        assert_eq!(
            parser.push(b"\x1b]633;n;C;a\x1b[0m"),
            [OutputPiece::Bytes(b"\x1b]633;n;C;a\x1b[0m".to_vec())]
        );
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(0usize..OUTPUT.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut parser = IntegrationParser::new("n1".to_owned());
            let mut seen = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([OUTPUT.len()]) {
                seen.extend(parser.push(&OUTPUT[from..cut]));
                from = cut;
            }
            prop_assert_eq!(join(seen), expected());
        }

        #[test]
        fn anything_can_come(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut parser = IntegrationParser::new("n1".to_owned());
            parser.push(&bytes);
        }
    }
}
