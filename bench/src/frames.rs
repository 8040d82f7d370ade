//! Finds the messages in a server's WebSocket bytes without copying what is not looked at.
//!
//! Promises: counts are exact over any way of cutting the bytes; of each message at most `head_max` bytes are held.
//! Must not know: sockets, what messages mean.

/// What went by.
pub(crate) enum Seen<'a> {
    /// A whole message: its beginning, as far as it is held, and its length.
    Message {
        head: &'a [u8],
        bytes: usize,
    },
    Ping,
    Close,
}

pub(crate) struct Scanner {
    head_max: usize,
    /// A frame header that is not complete yet.
    header: Vec<u8>,
    in_frame: bool,
    fin: bool,
    opcode: u8,
    /// Payload bytes of the frame that have not come yet.
    left: usize,
    head: Vec<u8>,
    message_bytes: usize,
}

struct Header {
    fin: bool,
    opcode: u8,
    payload: usize,
    len: usize,
}

impl Scanner {
    pub(crate) fn new(head_max: usize) -> Self {
        Self {
            head_max,
            header: Vec::new(),
            in_frame: false,
            fin: false,
            opcode: 0,
            left: 0,
            head: Vec::new(),
            message_bytes: 0,
        }
    }

    pub(crate) fn set_head_max(&mut self, head_max: usize) {
        self.head_max = head_max;
    }

    pub(crate) fn feed(&mut self, mut input: &[u8], mut on: impl FnMut(Seen<'_>)) {
        loop {
            if !self.in_frame {
                let Some(rest) = self.take_header(input) else { return };
                input = rest;
            }
            let (now, rest) = input.split_at(self.left.min(input.len()));
            self.left -= now.len();
            input = rest;
            if self.opcode >= 8 {
                if self.left > 0 {
                    return;
                }
                match self.opcode {
                    9 => on(Seen::Ping),
                    8 => on(Seen::Close),
                    _ => {}
                }
            } else if self.left == 0 && self.fin && self.message_bytes == 0 {
                on(Seen::Message { head: &now[..now.len().min(self.head_max)], bytes: now.len() });
            } else {
                let space = self.head_max.saturating_sub(self.head.len());
                self.head.extend_from_slice(&now[..now.len().min(space)]);
                self.message_bytes += now.len();
                if self.left > 0 {
                    return;
                }
                if self.fin {
                    on(Seen::Message { head: &self.head, bytes: self.message_bytes });
                    self.head.clear();
                    self.message_bytes = 0;
                }
            }
            self.in_frame = false;
        }
    }

    /// What follows the header; `None` if it is not complete yet.
    fn take_header<'a>(&mut self, input: &'a [u8]) -> Option<&'a [u8]> {
        let (header, rest) = if self.header.is_empty() {
            match parse(input) {
                Some(header) => {
                    let rest = &input[header.len..];
                    (header, rest)
                }
                None => {
                    self.header.extend_from_slice(input);
                    return None;
                }
            }
        } else {
            let mut rest = input;
            loop {
                let (byte, after) = rest.split_first()?;
                self.header.push(*byte);
                rest = after;
                if let Some(header) = parse(&self.header) {
                    self.header.clear();
                    break (header, rest);
                }
            }
        };
        self.in_frame = true;
        self.fin = header.fin;
        self.opcode = header.opcode;
        self.left = header.payload;
        Some(rest)
    }
}

/// A server's frames are not masked.
fn parse(bytes: &[u8]) -> Option<Header> {
    let [first, second, rest @ ..] = bytes else { return None };
    let (payload, len) = match second & 0x7f {
        126 => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), 4),
        127 => (usize::try_from(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?)).ok()?, 10),
        short => (usize::from(short), 2),
    };
    Some(Header { fin: first & 0x80 != 0, opcode: first & 0x0f, payload, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(bytes: &[u8], cut: usize, head_max: usize) -> Vec<(Vec<u8>, usize)> {
        let mut scanner = Scanner::new(head_max);
        let mut seen = Vec::new();
        for piece in bytes.chunks(cut) {
            scanner.feed(piece, |what| {
                seen.push(match what {
                    Seen::Message { head, bytes } => (head.to_vec(), bytes),
                    Seen::Ping => (b"ping".to_vec(), 0),
                    Seen::Close => (b"close".to_vec(), 0),
                });
            });
        }
        seen
    }

    #[test]
    fn messages_are_split_correctly_wherever_the_bytes_are_cut() {
        let mut bytes = vec![0x81, 2, b'h', b'i'];
        bytes.extend([0x01, 126, 1, 0]);
        bytes.extend([b'a'; 256]);
        bytes.extend([0x89, 0]);
        bytes.extend([0x80, 3, b'b', b'b', b'b']);
        bytes.extend([0x81, 0]);
        bytes.extend([0x88, 2, 3, 232]);
        for cut in [1, 2, 3, 7, 100, 1_000] {
            let seen = messages(&bytes, cut, 4);
            let expected = [
                (b"hi".to_vec(), 2),
                (b"ping".to_vec(), 0),
                (b"aaaa".to_vec(), 259),
                (Vec::new(), 0),
                (b"close".to_vec(), 0),
            ];
            assert_eq!(seen, expected, "cut into pieces of {cut}");
        }
    }
}
