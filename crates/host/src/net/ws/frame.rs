//! WebSocket frames: an incremental decoder of what clients send, and the heads of what the host sends.
//!
//! Promises: the same stream gives the same events however it is cut; no byte sequence panics; what is held for an
//! unfinished message never exceeds the bound given at the start; between messages nothing is held at all.
//! Must not know: sockets, JSON, peers.

use std::fmt;

/// Close codes of RFC 6455, section 7.4.1, as far as the host sends them.
pub mod close {
    pub const NORMAL: u16 = 1000;
    pub const GOING_AWAY: u16 = 1001;
    pub const PROTOCOL: u16 = 1002;
    /// Never on the wire: stands for a close frame without a code.
    pub const NO_CODE: u16 = 1005;
    pub const BAD_TEXT: u16 = 1007;
    pub const POLICY: u16 = 1008;
    pub const TOO_BIG: u16 = 1009;
    /// Connect again: the same is served elsewhere, or here in a moment.
    pub const SERVICE_RESTART: u16 = 1012;
}

/// The longest payload of a ping, pong or close frame.
pub const CONTROL_BYTES_MAX: usize = 125;
/// Two bytes, eight of extended length, four of mask.
const HEAD_BYTES_MAX: usize = 14;
/// What is allocated because a frame's head announces it; beyond it memory follows the bytes that really came.
const TRUSTED_BYTES: usize = 16 * 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xA,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }
}

/// Whether a frame ends its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fin {
    More,
    Last,
}

/// Messages above this are announced before their bytes are taken.
pub const LARGE_MESSAGE_BYTES: usize = 64 * 1_024;

/// What a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WsEvent {
    /// A large message begins, or has become large: it takes at most so many bytes. Comes once for a message, before the
    /// bytes that make it large.
    Large {
        bytes_max: usize,
    },
    /// A whole message; a binary one that holds UTF-8 is taken like a text (H-003).
    Message(String),
    Ping(Vec<u8>),
    Pong,
    /// The code it gave, if any. Nothing is decoded after it.
    Close(Option<u16>),
}

/// Why the stream cannot go on; becomes the close frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WsFault {
    pub code: u16,
    pub reason: &'static str,
}

impl fmt::Display for WsFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.reason, self.code)
    }
}

impl std::error::Error for WsFault {}

fn protocol(reason: &'static str) -> WsFault {
    WsFault { code: close::PROTOCOL, reason }
}

/// A frame whose payload is being read.
#[derive(Debug, Clone, Copy)]
struct OpenFrame {
    opcode: Opcode,
    fin: Fin,
    left: usize,
    mask: [u8; 4],
}

/// Turns the bytes of one client into events.
#[derive(Debug)]
pub struct FrameDecoder {
    message_bytes_max: usize,
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    open: Option<OpenFrame>,
    /// A data message has begun and its last frame has not been seen.
    in_message: bool,
    /// The message that has begun was announced as large.
    announced: bool,
    message: Vec<u8>,
    control: Vec<u8>,
    ended: bool,
}

impl FrameDecoder {
    pub fn new(message_bytes_max: usize) -> Self {
        Self {
            message_bytes_max,
            head: [0; HEAD_BYTES_MAX],
            head_len: 0,
            open: None,
            in_message: false,
            announced: false,
            message: Vec::new(),
            control: Vec::new(),
            ended: false,
        }
    }

    /// Takes from `input` up to the end of the next event. `None`: all was taken and more is needed.
    ///
    /// After a fault or a close frame everything is swallowed.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<WsEvent>, WsFault> {
        let result = self.advance(input);
        if matches!(result, Err(_) | Ok(Some(WsEvent::Close(_)))) {
            self.ended = true;
            self.message = Vec::new();
            self.control = Vec::new();
        }
        if self.ended {
            *input = &[];
        }
        result
    }

    /// Bytes set aside for unfinished messages.
    pub fn held_bytes(&self) -> usize {
        self.message.capacity() + self.control.capacity()
    }

    fn advance(&mut self, input: &mut &[u8]) -> Result<Option<WsEvent>, WsFault> {
        while !self.ended {
            let Some(mut open) = self.open.take() else {
                if !self.take_head(input)? {
                    return Ok(None);
                }
                if let Some(large) = self.announce() {
                    return Ok(Some(large));
                }
                continue;
            };
            let count = open.left.min(input.len());
            let (bytes, rest) = input.split_at(count);
            *input = rest;
            if open.opcode.is_control() {
                append_unmasked(&mut self.control, bytes, open.mask);
            } else {
                self.reserve(count, open.left);
                append_unmasked(&mut self.message, bytes, open.mask);
            }
            open.left -= count;
            if open.left > 0 {
                open.mask.rotate_left(count % 4);
                self.open = Some(open);
                return Ok(None);
            }
            if let Some(event) = self.finish(open)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Gathers a frame's head; false when it is not complete yet.
    fn take_head(&mut self, input: &mut &[u8]) -> Result<bool, WsFault> {
        loop {
            let needed = match self.head_len {
                0 | 1 => 2,
                _ => 6 + extended_len(self.head[1]),
            };
            let count = (needed - self.head_len).min(input.len());
            let (bytes, rest) = input.split_at(count);
            self.head[self.head_len..self.head_len + count].copy_from_slice(bytes);
            *input = rest;
            let before = self.head_len;
            self.head_len += count;
            if before < 2 && self.head_len >= 2 {
                self.check_head()?;
                continue;
            }
            if self.head_len < needed {
                return Ok(false);
            }
            self.open = Some(self.read_head()?);
            self.head_len = 0;
            return Ok(true);
        }
    }

    /// What the first two bytes alone can be refused for.
    fn check_head(&self) -> Result<(), WsFault> {
        let [first, second] = [self.head[0], self.head[1]];
        if first & 0x70 != 0 {
            return Err(protocol("reserved bits are set and no extension was agreed on"));
        }
        let Some(opcode) = Opcode::from_bits(first & 0x0F) else {
            return Err(protocol("unknown opcode"));
        };
        if second & 0x80 == 0 {
            return Err(protocol("a client's frame must be masked"));
        }
        if opcode.is_control() {
            if first & 0x80 == 0 {
                return Err(protocol("a control frame cannot be fragmented"));
            }
            if usize::from(second & 0x7F) > CONTROL_BYTES_MAX {
                return Err(protocol("a control frame holds at most 125 bytes"));
            }
            return Ok(());
        }
        match (opcode, self.in_message) {
            (Opcode::Continuation, false) => Err(protocol("nothing to continue")),
            (Opcode::Text | Opcode::Binary, true) => {
                Err(protocol("a new message began inside another"))
            }
            _ => Ok(()),
        }
    }

    fn read_head(&mut self) -> Result<OpenFrame, WsFault> {
        let extended = extended_len(self.head[1]);
        let length = match extended {
            0 => u64::from(self.head[1] & 0x7F),
            _ => self.head[2..2 + extended].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        };
        if length >> 63 != 0 {
            return Err(protocol("a length has its highest bit clear"));
        }
        let mut mask = [0; 4];
        mask.copy_from_slice(&self.head[2 + extended..6 + extended]);
        let opcode = Opcode::from_bits(self.head[0] & 0x0F).ok_or(protocol("unknown opcode"))?;
        let fin = if self.head[0] & 0x80 == 0 { Fin::More } else { Fin::Last };
        let space = self.message_bytes_max.saturating_sub(self.message.len());
        let left = usize::try_from(length).unwrap_or(usize::MAX);
        if !opcode.is_control() {
            if left > space {
                let reason = "the message is larger than frame_in_bytes allows";
                return Err(WsFault { code: close::TOO_BIG, reason });
            }
            self.in_message = true;
        }
        Ok(OpenFrame { opcode, fin, left, mask })
    }

    /// What is known of a message that becomes large with the frame whose head was just read.
    fn announce(&mut self) -> Option<WsEvent> {
        let open = self.open.filter(|open| !open.opcode.is_control())?;
        let bytes = self.message.len() + open.left;
        if self.announced || bytes <= LARGE_MESSAGE_BYTES {
            return None;
        }
        self.announced = true;
        let bytes_max = match open.fin {
            Fin::Last => bytes,
            Fin::More => self.message_bytes_max,
        };
        Some(WsEvent::Large { bytes_max })
    }

    fn finish(&mut self, open: OpenFrame) -> Result<Option<WsEvent>, WsFault> {
        match open.opcode {
            Opcode::Ping => Ok(Some(WsEvent::Ping(std::mem::take(&mut self.control)))),
            Opcode::Pong => {
                self.control = Vec::new();
                Ok(Some(WsEvent::Pong))
            }
            Opcode::Close => {
                let payload = std::mem::take(&mut self.control);
                close_code(&payload).map(|code| Some(WsEvent::Close(code)))
            }
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {
                if open.fin == Fin::More {
                    return Ok(None);
                }
                self.in_message = false;
                self.announced = false;
                let message =
                    String::from_utf8(std::mem::take(&mut self.message)).map_err(|_| WsFault {
                        code: close::BAD_TEXT,
                        reason: "the message is not UTF-8",
                    })?;
                Ok(Some(WsEvent::Message(message)))
            }
        }
    }

    /// Space for `count` bytes of a frame that still has `left`: doubling, but never past the frame's own end.
    fn reserve(&mut self, count: usize, left: usize) {
        let needed = self.message.len() + count;
        if needed > self.message.capacity() {
            let end = self.message.len() + left;
            let target = (self.message.capacity() * 2).max(TRUSTED_BYTES).max(needed).min(end);
            self.message.reserve_exact(target - self.message.len());
        }
    }
}

fn extended_len(second: u8) -> usize {
    match second & 0x7F {
        126 => 2,
        127 => 8,
        _ => 0,
    }
}

fn append_unmasked(to: &mut Vec<u8>, bytes: &[u8], mask: [u8; 4]) {
    let start = to.len();
    to.extend_from_slice(bytes);
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = to[start..].as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= key;
    }
}

fn close_code(payload: &[u8]) -> Result<Option<u16>, WsFault> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return match payload {
            [] => Ok(None),
            _ => Err(protocol("a close code has two bytes")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(protocol("a close code that may not be sent"));
    }
    match std::str::from_utf8(reason) {
        Ok(_) => Ok(Some(code)),
        Err(_) => Err(WsFault { code: close::BAD_TEXT, reason: "the close reason is not UTF-8" }),
    }
}

/// Appends the head of a server's frame (never masked).
pub fn put_head(out: &mut Vec<u8>, opcode: Opcode, fin: Fin, len: usize) {
    let fin = if fin == Fin::Last { 0x80 } else { 0 };
    out.push(fin | opcode as u8);
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(short), _) if short < 126 => out.push(short),
        (_, Ok(medium)) => {
            out.push(126);
            out.extend_from_slice(&medium.to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

/// Appends a ping or a pong; a longer payload is cut, which no caller does.
pub fn put_control(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    let payload = &payload[..payload.len().min(CONTROL_BYTES_MAX)];
    put_head(out, opcode, Fin::Last, payload.len());
    out.extend_from_slice(payload);
}

/// Appends a close frame; the reason is cut to what fits, at a character.
pub fn put_close(out: &mut Vec<u8>, code: u16, reason: &str) {
    if code == close::NO_CODE {
        return put_head(out, Opcode::Close, Fin::Last, 0);
    }
    let reason = &reason[..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)];
    put_head(out, Opcode::Close, Fin::Last, 2 + reason.len());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
