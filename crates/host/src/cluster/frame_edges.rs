//! Where one WebSocket frame ends and the next begins, in a stream that is passed on.
//!
//! Promises: only heads are looked at; nothing is held but the head that is incomplete; no bytes panic.
//! Must not know: what frames hold, sockets.

/// Two bytes, eight of extended length, four of mask.
const HEAD_BYTES_MAX: usize = 14;
const OPCODE_BITS: u8 = 0x0F;
const CLOSE_OPCODE: u8 = 0x8;
const MASKED_BIT: u8 = 0x80;
const LENGTH_BITS: u8 = 0x7F;

/// Follows one direction of a connection.
#[derive(Debug, Default)]
pub(super) struct FrameEdges {
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    /// Bytes of the payload that are still to come.
    left: u64,
    has_closed: bool,
}

impl FrameEdges {
    /// Whether a frame of our own may be put in here.
    pub(super) fn is_between(&self) -> bool {
        self.head_len == 0 && self.left == 0
    }

    /// A close frame went by: nothing may follow it.
    pub(super) fn has_closed(&self) -> bool {
        self.has_closed
    }

    /// Follows all of some bytes.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = self.pass_to_edge(bytes);
            bytes = bytes.get(taken..).unwrap_or_default();
        }
    }

    /// Follows bytes up to the end of the frame that is open, or of the first one if none is. Returns how many that were; at
    /// least one, if there is one.
    pub(super) fn pass_to_edge(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while self.left == 0 {
            let Some(byte) = bytes.get(taken) else {
                return taken; // the rest of the head is still to come
            };
            taken += 1;
            if let Some(place) = self.head.get_mut(self.head_len) {
                *place = *byte;
            }
            self.head_len += 1;
            if self.head_len == self.head_size() {
                self.begin_payload();
                if self.left == 0 {
                    return taken; // a frame without a payload
                }
            }
        }
        let rest = bytes.len().saturating_sub(taken);
        let payload = usize::try_from(self.left).unwrap_or(usize::MAX).min(rest);
        self.left -= payload as u64;
        taken + payload
    }

    /// How long the head is, as far as is known yet.
    fn head_size(&self) -> usize {
        let [_, second, ..] = self.head;
        if self.head_len < 2 {
            return HEAD_BYTES_MAX;
        }
        let length = match second & LENGTH_BITS {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = match second & MASKED_BIT {
            0 => 0,
            _ => 4,
        };
        2 + length + mask
    }

    fn begin_payload(&mut self) {
        let [first, second, a, b, c, d, e, f, g, h, ..] = self.head;
        self.left = match second & LENGTH_BITS {
            126 => u64::from(u16::from_be_bytes([a, b])),
            127 => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            length => u64::from(length),
        };
        self.has_closed |= first & OPCODE_BITS == CLOSE_OPCODE;
        self.head_len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::ws::frame::{Fin, Opcode, put_head};

    fn frame(opcode: Opcode, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_head(&mut bytes, opcode, Fin::Last, length);
        bytes.resize(bytes.len() + length, 0x88); // looks like a close frame if it is taken for a head
        bytes
    }

    #[test]
    fn edges_are_found_however_the_stream_is_cut() {
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 3];
        let frames: Vec<Vec<u8>> = lengths.iter().map(|n| frame(Opcode::Text, *n)).collect();
        let stream = frames.concat();
        for cut in [1, 2, 3, 7, 13, 14, 1_000, 16_384, stream.len()] {
            let mut edges = FrameEdges::default();
            let (mut position, mut found) = (0, Vec::new());
            for chunk in stream.chunks(cut) {
                let mut rest = chunk;
                while !rest.is_empty() {
                    let taken = edges.pass_to_edge(rest);
                    assert!(taken > 0);
                    position += taken;
                    rest = &rest[taken..];
                    if edges.is_between() {
                        found.push(position);
                    }
                }
            }
            let ends = frames.iter().scan(0, |end, frame| {
                *end += frame.len();
                Some(*end)
            });
            assert_eq!(found, ends.collect::<Vec<_>>(), "cut into {cut}");
            assert!(!edges.has_closed());
        }
    }

    #[test]
    fn a_close_frame_and_masks_are_seen() {
        let mut edges = FrameEdges::default();
        edges.pass(&[0x81, 0x83, 1, 2, 3, 4, 0x88, 0x88, 0x88]);
        assert!(edges.is_between() && !edges.has_closed());
        edges.pass(&[0x88, 0x82, 1, 2, 3, 4, 5]);
        assert!(!edges.is_between() && edges.has_closed());
        edges.pass(&[6]);
        assert!(edges.is_between());
        edges.pass(&[0x81]);
        assert!(!edges.is_between(), "half a head");
    }
}
