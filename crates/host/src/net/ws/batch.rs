//! A batch of WebSocket frames on its way out: small bytes gathered in one buffer, large payloads shared.
//!
//! Promises: a payload above `COPY_BYTES_MAX` is never copied; bytes leave in the order they were put; a batch can be
//! cut short at the end of the frame that has begun to leave, so that a close frame may follow.
//! Must not know: sockets, what the messages mean.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use kernel::Frame;

use super::frame::{Fin, Opcode, put_close, put_control, put_head};
use crate::net::text_run::{FramedRun, LinkItem};

/// Payloads up to this are copied beside their head: one large slice is cheaper to the kernel than many tiny ones.
const COPY_BYTES_MAX: usize = 256;

enum BatchPart {
    /// A range of `scratch`.
    Scratch(Range<usize>),
    Shared(Bytes),
}

impl BatchPart {
    fn len(&self) -> usize {
        match self {
            Self::Scratch(range) => range.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }
}

/// Where frames end.
enum FrameEnds {
    One(usize),
    /// Those of a run, counted from where it starts.
    Run {
        start: usize,
        ends: Arc<[usize]>,
    },
}

impl FrameEnds {
    fn first_at_or_after(&self, at: usize) -> Option<usize> {
        match self {
            Self::One(end) => (*end >= at).then_some(*end),
            Self::Run { start, ends } => {
                let index = ends.partition_point(|end| start + end < at);
                ends.get(index).map(|end| start + end)
            }
        }
    }
}

#[derive(Default)]
pub struct FrameBatch {
    scratch: Vec<u8>,
    parts: VecDeque<BatchPart>,
    /// Where each frame ends, counted in bytes from the start of the batch.
    ends: Vec<FrameEnds>,
    put: usize,
    left: usize,
}

impl FrameBatch {
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Bytes that are put and not written yet.
    pub fn left(&self) -> usize {
        self.left
    }

    /// A text message in one frame.
    pub fn put_text(&mut self, text: Bytes) {
        self.put_scratch(|scratch| put_head(scratch, Opcode::Text, Fin::Last, text.len()));
        self.put_payload(text);
        self.ends.push(FrameEnds::One(self.put));
    }

    /// An item that is encoded already, each message in one frame; `false`: it is not, and was not put.
    pub(crate) fn put_encoded(&mut self, item: &LinkItem) -> bool {
        match item {
            LinkItem::Run(run) => self.put_framed(run.framed()),
            LinkItem::Frame(Frame::Text(text)) => self.put_text(text.clone()),
            LinkItem::Frame(Frame::Response(_) | Frame::Refused(_)) => return false,
        }
        true
    }

    /// Frames that were made for several connections.
    pub(crate) fn put_framed(&mut self, run: &FramedRun) {
        let (start, ends) = (self.put, Arc::clone(&run.ends));
        self.put_payload(run.bytes.clone());
        self.ends.push(FrameEnds::Run { start, ends });
    }

    /// A text message, in fragments if it is larger than `fragment_bytes`.
    pub fn put_message(&mut self, pieces: Vec<Bytes>, fragment_bytes: usize) {
        let fragment_bytes = fragment_bytes.max(1);
        let mut left: usize = pieces.iter().map(Bytes::len).sum();
        let mut pieces = pieces.into_iter();
        let mut piece = Bytes::new();
        let mut opcode = Opcode::Text;
        loop {
            let len = left.min(fragment_bytes);
            left -= len;
            let fin = if left == 0 { Fin::Last } else { Fin::More };
            self.put_scratch(|scratch| put_head(scratch, opcode, fin, len));
            let mut unwritten = len;
            while unwritten > 0 {
                if piece.is_empty() {
                    let Some(next) = pieces.next() else {
                        debug_assert!(false, "`left` counts the bytes of all pieces");
                        break;
                    };
                    piece = next;
                    continue;
                }
                let chunk = piece.split_to(unwritten.min(piece.len()));
                unwritten -= chunk.len();
                self.put_payload(chunk);
            }
            self.ends.push(FrameEnds::One(self.put));
            if fin == Fin::Last {
                return;
            }
            opcode = Opcode::Continuation;
        }
    }

    pub fn put_ping(&mut self) {
        self.put_scratch(|scratch| put_control(scratch, Opcode::Ping, &[]));
        self.ends.push(FrameEnds::One(self.put));
    }

    pub fn put_pong(&mut self, payload: &[u8]) {
        self.put_scratch(|scratch| put_control(scratch, Opcode::Pong, payload));
        self.ends.push(FrameEnds::One(self.put));
    }

    pub fn put_close(&mut self, code: u16, reason: &str) {
        self.put_scratch(|scratch| put_close(scratch, code, reason));
        self.ends.push(FrameEnds::One(self.put));
    }

    /// Fills `slices` with what is to be written next and returns how many it filled.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slot, part) in slices.iter_mut().zip(&self.parts) {
            *slot = IoSlice::new(match part {
                BatchPart::Scratch(range) => &self.scratch[range.clone()],
                BatchPart::Shared(bytes) => bytes,
            });
            count += 1;
        }
        count
    }

    /// So many bytes were written.
    pub fn advance(&mut self, mut count: usize) {
        self.left = self.left.saturating_sub(count);
        while count > 0 {
            let Some(part) = self.parts.front_mut() else {
                debug_assert!(false, "more was written than was put");
                break;
            };
            if count >= part.len() {
                count -= part.len();
                self.parts.pop_front();
                continue;
            }
            match part {
                BatchPart::Scratch(range) => range.start += count,
                BatchPart::Shared(bytes) => bytes.advance(count),
            }
            count = 0;
        }
        if self.left == 0 {
            self.scratch.clear();
            self.ends.clear();
            self.put = 0;
        }
    }

    /// Drops every frame that has not begun to leave. A close frame may come between fragments, so what remains is
    /// at most one fragment.
    pub fn drop_unstarted_frames(&mut self) {
        let written = self.put - self.left;
        let mut ends = self.ends.iter();
        let end = match ends.find_map(|ends| ends.first_at_or_after(written)) {
            Some(end) if written > 0 => end,
            _ => written,
        };
        let mut remaining = end - written;
        self.left = remaining;
        self.put = end;
        self.ends = vec![FrameEnds::One(end)];
        let mut parts_left = 0;
        for part in &mut self.parts {
            if remaining == 0 {
                break;
            }
            parts_left += 1;
            if part.len() > remaining {
                match part {
                    BatchPart::Scratch(range) => range.end = range.start + remaining,
                    BatchPart::Shared(bytes) => bytes.truncate(remaining),
                }
            }
            remaining -= part.len();
        }
        self.parts.truncate(parts_left);
        if let Some(BatchPart::Scratch(range)) = self.parts.back() {
            self.scratch.truncate(range.end);
        }
    }

    fn put_payload(&mut self, bytes: Bytes) {
        if bytes.len() <= COPY_BYTES_MAX {
            self.put_scratch(|scratch| scratch.extend_from_slice(&bytes));
        } else {
            self.put += bytes.len();
            self.left += bytes.len();
            self.parts.push_back(BatchPart::Shared(bytes));
        }
    }

    fn put_scratch(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.scratch.len();
        write(&mut self.scratch);
        let end = self.scratch.len();
        self.put += end - start;
        self.left += end - start;
        match self.parts.back_mut() {
            Some(BatchPart::Scratch(range)) if range.end == start => range.end = end,
            _ => self.parts.push_back(BatchPart::Scratch(start..end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::TextRun;

    fn drain(batch: &mut FrameBatch, at_most: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !batch.is_empty() && out.len() < at_most {
            let mut slices = [IoSlice::new(&[]); 4];
            let count = batch.slices(&mut slices);
            let flat: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            let taken = flat.len().min(at_most - out.len()).min(7);
            out.extend_from_slice(&flat[..taken]);
            batch.advance(taken);
        }
        out
    }

    /// (opcode bits with FIN, payload) of each frame.
    fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Vec::new();
        while let [first, second, rest @ ..] = bytes {
            let (len, rest) = match second {
                126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
                127 => (u64::from_be_bytes(rest[..8].try_into().unwrap()) as usize, &rest[8..]),
                short => (usize::from(*short), rest),
            };
            frames.push((*first, rest[..len].to_vec()));
            bytes = &rest[len..];
        }
        frames
    }

    #[test]
    fn a_large_message_is_cut_over_its_pieces_into_fragments() {
        let pieces = [vec![b'a'; 1_000], vec![b'b'; 10], vec![], vec![b'c'; 2_500]];
        for fragment_bytes in [1, 300, 999, 1_000, 1_001, 3_509] {
            let mut batch = FrameBatch::default();
            batch.put_message(pieces.iter().cloned().map(Bytes::from).collect(), fragment_bytes);
            let frames = frames(&drain(&mut batch, usize::MAX));
            let whole: Vec<u8> = frames.iter().flat_map(|frame| frame.1.clone()).collect();
            assert_eq!(whole, pieces.concat());
            assert_eq!(frames.len(), 3_510usize.div_ceil(fragment_bytes));
            assert_eq!(frames[0].0, 0x01, "the first has the opcode, not FIN");
            assert_eq!(frames[frames.len() - 1].0, 0x80, "the last continues and has FIN");
            assert!(frames[1..frames.len() - 1].iter().all(|frame| frame.0 == 0));
        }
    }

    #[test]
    fn an_empty_and_a_whole_message_are_one_frame() {
        let mut batch = FrameBatch::default();
        batch.put_message(Vec::new(), 10);
        batch.put_message(vec![Bytes::from_static(b"hello")], 5);
        assert_eq!(
            frames(&drain(&mut batch, usize::MAX)),
            [(0x81, vec![]), (0x81, b"hello".to_vec())]
        );
    }

    #[test]
    fn a_large_payload_is_shared_and_a_small_one_gathered() {
        let large = Bytes::from(vec![b'x'; COPY_BYTES_MAX + 1]);
        let mut batch = FrameBatch::default();
        batch.put_message(vec![Bytes::from_static(b"small")], usize::MAX);
        batch.put_message(vec![large.clone()], usize::MAX);
        assert_eq!(batch.parts.len(), 2);
        assert!(
            matches!(&batch.parts[1], BatchPart::Shared(bytes) if bytes.as_ptr() == large.as_ptr())
        );
    }

    #[test]
    fn a_run_leaves_as_its_texts_would_and_is_cut_between_them() {
        let texts = ["one".to_owned(), "two".repeat(100), "three".to_owned()];
        let mut run = TextRun::default();
        for text in &texts {
            run.add(Bytes::from(text.clone()));
        }
        let one_by_one = || {
            let mut batch = FrameBatch::default();
            for text in &texts {
                batch.put_text(Bytes::from(text.clone()));
            }
            batch
        };
        let whole = drain(&mut one_by_one(), usize::MAX);
        for written in 0..=whole.len() {
            let (mut expected, mut batch) = (one_by_one(), FrameBatch::default());
            batch.put_framed(run.framed());
            for batch in [&mut expected, &mut batch] {
                drain(batch, written);
                batch.drop_unstarted_frames();
                batch.put_close(1008, "no");
            }
            let expected = drain(&mut expected, usize::MAX);
            assert_eq!(drain(&mut batch, usize::MAX), expected, "after {written}");
        }
    }

    #[test]
    fn unstarted_frames_are_dropped_and_started_ones_finished() {
        let messages = ["first".repeat(100), "second".to_owned(), "third".repeat(100)];
        let mut whole = FrameBatch::default();
        let ends: Vec<usize> = messages
            .iter()
            .map(|text| {
                whole.put_message(vec![Bytes::from(text.clone())], usize::MAX);
                whole.put
            })
            .collect();
        for written in 0..=ends[2] {
            let mut batch = FrameBatch::default();
            for text in &messages {
                batch.put_message(vec![Bytes::from(text.clone())], usize::MAX);
            }
            let mut out = drain(&mut batch, written);
            batch.drop_unstarted_frames();
            batch.put_close(1008, "no");
            out.extend(drain(&mut batch, usize::MAX));
            let frames = frames(&out);
            let begun = if written == 0 {
                0
            } else {
                ends.iter().position(|&end| end >= written).map_or(3, |index| index + 1)
            };
            assert_eq!(frames.len(), begun + 1, "after {written} bytes");
            assert_eq!(frames[begun].1, b"\x03\xF0no");
            for (frame, text) in frames.iter().zip(&messages[..begun]) {
                assert_eq!(frame.1, text.as_bytes());
            }
        }
    }
}
