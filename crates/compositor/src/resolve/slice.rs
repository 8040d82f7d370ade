//! A slice of a text, cut out of it while it is read in pieces (C-013 to C-015, C-018).
//!
//! Promises: memory is bounded by what is cut out, however long the text is; the bytes cut out are the file's own, but
//! for a mark of UTF-8 at its beginning; what is not text is not cut at all.

use std::ops::ControlFlow;

use crate::media_type::{BOM, TEXT_CHECK_BYTES};
use crate::part::{Range, Unit};

/// Of a longer file only the part up to the end of the slice is checked to be text.
const CHECKED_BYTES: u64 = 8 * 1_024 * 1_024;

/// The result of cutting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The range is what was really there.
    Text {
        text: String,
        range: Range,
    },
    TooLarge,
    Binary,
    Invalid,
    OutOfBounds {
        lines: Option<u64>,
    },
}

/// Whether a range means anything at all (C-015).
pub(crate) fn is_valid(range: &Range) -> bool {
    range.start <= range.end && (range.unit == Unit::Byte || range.start >= 1)
}

/// Cuts a slice out of bytes that are all there.
pub(crate) fn cut(bytes: &[u8], range: Range, bytes_max: u64) -> Cut {
    let mut slicer = Slicer::new(range, bytes_max);
    let _ = slicer.feed(bytes); // All there is: nothing follows that could be skipped.
    slicer.finish()
}

/// Takes a text piece by piece and collects the slice.
pub(crate) struct Slicer {
    requested: Range,
    bytes_max: u64,
    slice: Vec<u8>,
    is_too_large: bool,
    begins_with: Vec<u8>,
    seen_bytes: u64,
    lines: LineCounter,
    utf8: Utf8,
    has_nul: bool,
}

impl Slicer {
    pub(crate) fn new(requested: Range, bytes_max: u64) -> Self {
        Self {
            requested,
            bytes_max,
            slice: Vec::new(),
            is_too_large: false,
            begins_with: Vec::new(),
            seen_bytes: 0,
            lines: LineCounter::default(),
            utf8: Utf8::default(),
            has_nul: false,
        }
    }

    /// The next piece. Breaks when nothing that follows could change the outcome.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> ControlFlow<()> {
        let missing = BOM.len().saturating_sub(self.begins_with.len());
        let missing = &piece[..piece.len().min(missing)];
        self.begins_with.extend_from_slice(missing);
        let looked_at =
            TEXT_CHECK_BYTES.saturating_sub(usize::try_from(self.seen_bytes).unwrap_or(usize::MAX));
        self.has_nul |= memchr::memchr(0, &piece[..piece.len().min(looked_at)]).is_some();
        self.utf8.feed(piece);
        match self.requested.unit {
            Unit::Line => self.take_lines(piece),
            Unit::Byte => self.take_bytes(piece),
        }
        self.seen_bytes += piece.len() as u64;
        let is_past = match self.requested.unit {
            Unit::Line => self.lines.begun > self.requested.end,
            Unit::Byte => self.seen_bytes >= self.requested.end.saturating_add(4),
        };
        let is_decided = self.has_nul || self.utf8.is_bad || self.is_too_large;
        if is_decided || (is_past && self.seen_bytes > CHECKED_BYTES) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn take_lines(&mut self, piece: &[u8]) {
        let requested = self.requested;
        let mut rest = piece;
        while !rest.is_empty() && self.lines.begun <= requested.end {
            let (line, bytes) = self.lines.next_in(rest);
            if (requested.start..=requested.end).contains(&line) {
                self.append(&rest[..bytes]);
            }
            rest = &rest[bytes..];
        }
        // Whether there is a line after the requested ones no longer matters.
    }

    fn take_bytes(&mut self, piece: &[u8]) {
        let at = self.seen_bytes;
        let within = |offset: u64| {
            usize::try_from(offset.saturating_sub(at)).map_or(piece.len(), |o| o.min(piece.len()))
        };
        let (start, end) = (within(self.requested.start), within(self.requested.end));
        if start < end {
            self.append(&piece[start..end]);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.slice.len() as u64 + bytes.len() as u64 > self.bytes_max {
            self.is_too_large = true;
            self.slice = Vec::new();
        } else if !self.is_too_large {
            self.slice.extend_from_slice(bytes);
        }
    }

    pub(crate) fn finish(self) -> Cut {
        if !is_valid(&self.requested) {
            return Cut::Invalid;
        }
        if self.has_nul || self.utf8.is_bad || (self.utf8.is_cut() && !self.may_have_more()) {
            return Cut::Binary;
        }
        if self.is_too_large {
            return Cut::TooLarge;
        }
        match self.requested.unit {
            Unit::Line => self.finish_lines(),
            Unit::Byte => self.finish_bytes(),
        }
    }

    /// Whether feeding was broken off: the end of what was seen is not the end of the text.
    fn may_have_more(&self) -> bool {
        self.seen_bytes > CHECKED_BYTES
    }

    fn finish_lines(mut self) -> Cut {
        let Range { start, end, .. } = self.requested;
        let lines = self.lines.begun;
        if start > lines {
            return Cut::OutOfBounds { lines: Some(lines) };
        }
        if start == 1 && self.slice.starts_with(BOM) {
            self.slice.drain(..BOM.len());
        }
        let range = Range { unit: Unit::Line, start, end: end.min(lines) };
        text_or_binary(self.slice, range)
    }

    fn finish_bytes(mut self) -> Cut {
        let Range { mut start, end, .. } = self.requested;
        if start > self.seen_bytes || (start == self.seen_bytes && end > start) {
            return Cut::OutOfBounds { lines: None };
        }
        let mark = if self.begins_with == BOM { BOM.len() as u64 } else { 0 };
        let in_mark = mark.saturating_sub(start).min(self.slice.len() as u64);
        let cut_off = self.slice.iter().skip(usize::try_from(in_mark).unwrap_or(0));
        let continued = cut_off.take_while(|byte| **byte & 0xc0 == 0x80).count() as u64;
        let inward = usize::try_from(in_mark + continued).unwrap_or(0);
        self.slice.drain(..inward);
        start += inward as u64;
        if let Err(error) = std::str::from_utf8(&self.slice)
            && error.error_len().is_none()
        {
            self.slice.truncate(error.valid_up_to());
        }
        let range = Range { unit: Unit::Byte, start, end: start + self.slice.len() as u64 };
        text_or_binary(self.slice, range)
    }
}

fn text_or_binary(bytes: Vec<u8>, range: Range) -> Cut {
    match String::from_utf8(bytes) {
        Ok(text) => Cut::Text { text, range },
        Err(_) => Cut::Binary,
    }
}

/// Counts lines: LF, CRLF and CR each end one, and nothing after the last one begins none (C-014).
#[derive(Default)]
struct LineCounter {
    /// Which line the last byte was in, counted from one.
    begun: u64,
    within: Within,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    Line,
    /// After a CR: an LF still belongs to its line.
    AfterCr,
    #[default]
    Ended,
}

impl LineCounter {
    /// The number of the line that a text goes on with, and how many bytes of the text belong to it.
    fn next_in(&mut self, text: &[u8]) -> (u64, usize) {
        let was = std::mem::replace(&mut self.within, Within::Line);
        if was == Within::AfterCr && text.first() == Some(&b'\n') {
            self.within = Within::Ended;
            return (self.begun, 1);
        }
        if was != Within::Line {
            self.begun += 1;
        }
        let Some(at) = memchr::memchr2(b'\r', b'\n', text) else { return (self.begun, text.len()) };
        let is_cr = text[at] == b'\r';
        self.within = if is_cr { Within::AfterCr } else { Within::Ended };
        (self.begun, at + 1)
    }
}

/// Whether what passes is UTF-8.
#[derive(Default)]
struct Utf8 {
    carried: Vec<u8>,
    is_bad: bool,
}

impl Utf8 {
    fn feed(&mut self, piece: &[u8]) {
        if self.is_bad {
            return;
        }
        let mut rest = piece;
        while !self.carried.is_empty() && !rest.is_empty() {
            self.carried.push(rest[0]);
            rest = &rest[1..];
            match std::str::from_utf8(&self.carried) {
                Ok(_) => self.carried.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    self.is_bad = true;
                    return;
                }
            }
        }
        if let Err(error) = std::str::from_utf8(rest) {
            match error.error_len() {
                None => self.carried = rest[error.valid_up_to()..].to_vec(),
                Some(_) => self.is_bad = true,
            }
        }
    }

    /// Whether it stopped in the middle of a character.
    fn is_cut(&self) -> bool {
        !self.carried.is_empty()
    }
}
