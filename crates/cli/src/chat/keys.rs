//! What a terminal sends when keys are pressed, read as keys.
//!
//! Promises: bytes may come in any pieces; what is pasted is never taken for keys; what is not understood is left out.
//! Must not know: what a key does.

const ESC: u8 = 0x1b;
/// Longest sequence that is waited for; a longer one is none.
const SEQUENCE_BYTES_MAX: usize = 32;
/// The kind of event that says that a key was let go.
const RELEASED: u32 = 3;
const KEYPAD_ENTER: u32 = 57_414;
/// Longest text that is pasted at once: no message may be longer. What is beyond it is left out.
const PASTE_BYTES_MAX: usize = 16 * 1024 * 1024;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    /// Enter with Alt or Shift where the terminal reports it: a new line in the text.
    NewLine,
    Tab,
    /// Shift and Tab.
    BackTab,
    Escape,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    /// Alt and Up.
    AltUp,
    PageUp,
    PageDown,
    Home,
    End,
    WordLeft,
    WordRight,
    /// Ctrl and the key for `_`, `-` or `/`.
    Undo,
    /// Ctrl and a letter.
    Ctrl(char),
    /// Alt and a character.
    Alt(char),
    Paste(String),
    /// The terminal says that it can report more keys than terminals used to.
    Offers(KeyboardProtocol),
    /// Somebody looks at the terminal again, or no longer; only if it was asked to say so.
    FocusGained,
    FocusLost,
}

/// How a terminal tells keys apart that are one byte otherwise, Enter and Shift-Enter among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyboardProtocol {
    /// The progressive enhancement that kitty began.
    Kitty,
    /// `modifyOtherKeys` of xterm.
    ModifyOtherKeys,
}

/// Modifiers as terminals report them: 1 plus a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Modifiers(u32);

impl Modifiers {
    const SHIFT: u32 = 1;
    const ALT: u32 = 2;
    const CTRL: u32 = 4;
    /// Locks and the keys that desktops use are none of ours.
    const KNOWN: u32 = Self::SHIFT | Self::ALT | Self::CTRL;

    fn read(reported: Option<u32>) -> Self {
        Self(reported.unwrap_or(1).saturating_sub(1) & Self::KNOWN)
    }

    fn any(self) -> bool {
        self.0 != 0
    }

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

/// Turns bytes into keys.
#[derive(Debug, Default)]
pub(crate) struct KeyDecoder {
    /// What may be the beginning of something longer.
    held: Vec<u8>,
    pasted: Option<Vec<u8>>,
}

impl KeyDecoder {
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.held.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let held = std::mem::take(&mut self.held);
        let mut at = 0;
        while at < held.len() {
            let rest = &held[at..];
            let step = match &mut self.pasted {
                Some(pasted) => paste(pasted, rest),
                None => read(rest),
            };
            match step {
                EscapeStep::Key(key, used) => {
                    self.pasted = None;
                    keys.push(key);
                    at += used;
                }
                EscapeStep::Nothing(used) => at += used,
                EscapeStep::PasteBegins => {
                    self.pasted = Some(Vec::new());
                    at += PASTE_BEGIN.len();
                }
                EscapeStep::More => break,
            }
        }
        self.held = held[at..].to_vec();
        keys
    }

    /// Whether an Escape waits that may have been the key itself.
    pub(crate) fn is_waiting(&self) -> bool {
        self.pasted.is_none() && self.held.first() == Some(&ESC)
    }

    /// Nothing more came in time: an Escape that waits was the key itself.
    pub(crate) fn end_of_sequence(&mut self) -> Option<Key> {
        if !self.is_waiting() {
            return None;
        }
        let held = std::mem::take(&mut self.held);
        (held == [ESC]).then_some(Key::Escape)
    }
}

enum EscapeStep {
    Key(Key, usize),
    /// Bytes that mean nothing here.
    Nothing(usize),
    PasteBegins,
    /// What is there is not complete.
    More,
}

fn paste(pasted: &mut Vec<u8>, rest: &[u8]) -> EscapeStep {
    if let Some(end) = rest.windows(PASTE_END.len()).position(|window| window == PASTE_END) {
        extend(pasted, &rest[..end]);
        let text = String::from_utf8_lossy(pasted).replace("\r\n", "\n").replace('\r', "\n");
        return EscapeStep::Key(Key::Paste(text), end + PASTE_END.len());
    }
    // The end may be here in part.
    let tail_bytes =
        (1..PASTE_END.len()).rev().find(|len| rest.ends_with(&PASTE_END[..*len])).unwrap_or(0);
    match rest.len() - tail_bytes {
        0 => EscapeStep::More,
        used => {
            extend(pasted, &rest[..used]);
            EscapeStep::Nothing(used)
        }
    }
}

fn extend(pasted: &mut Vec<u8>, bytes: &[u8]) {
    let room = PASTE_BYTES_MAX.saturating_sub(pasted.len());
    pasted.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

fn read(rest: &[u8]) -> EscapeStep {
    let key = |key| EscapeStep::Key(key, 1);
    match rest[0] {
        ESC => escape(rest),
        b'\r' => key(Key::Enter),
        // What Ctrl-J and a pasted newline of an old terminal send.
        b'\n' => key(Key::NewLine),
        b'\t' => key(Key::Tab),
        0x7f | 0x08 => key(Key::Backspace),
        byte @ 0x01..=0x1a => key(Key::Ctrl((b'a' + byte - 1) as char)),
        0x1f => key(Key::Undo),
        0x00 | 0x1c..=0x1e => EscapeStep::Nothing(1),
        _ => character(rest, 0).map_or(EscapeStep::Nothing(1), |key| match key {
            Some((c, len)) => EscapeStep::Key(Key::Char(c), len),
            None => EscapeStep::More,
        }),
    }
}

/// The character at an index: `None` if these bytes are none, `Some(None)` if it is not complete.
fn character(rest: &[u8], at: usize) -> Option<Option<(char, usize)>> {
    let len = match rest[at] {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let Some(bytes) = rest.get(at..at + len) else {
        let so_far = &rest[at + 1..];
        let plausible = so_far.iter().all(|byte| byte & 0xc0 == 0x80);
        return plausible.then_some(None);
    };
    std::str::from_utf8(bytes).ok()?.chars().next().map(|c| Some((c, len)))
}

fn escape(rest: &[u8]) -> EscapeStep {
    if rest.starts_with(PASTE_BEGIN) {
        return EscapeStep::PasteBegins;
    }
    match rest.get(1) {
        None => EscapeStep::More,
        Some(b'[') => control(rest),
        Some(b'O') => match rest.get(2) {
            None => EscapeStep::More,
            Some(last) => {
                plain_control(*last).map_or(EscapeStep::Nothing(3), |key| EscapeStep::Key(key, 3))
            }
        },
        Some(b'\r' | b'\n') => EscapeStep::Key(Key::NewLine, 2),
        Some(0x7f | 0x08) => EscapeStep::Key(Key::Ctrl('w'), 2),
        Some(&ESC) => EscapeStep::Key(Key::Escape, 1),
        Some(0x00..=0x1f) => EscapeStep::Nothing(2),
        Some(_) => match character(rest, 1) {
            None => EscapeStep::Nothing(2),
            Some(None) => EscapeStep::More,
            Some(Some(('b', _))) => EscapeStep::Key(Key::WordLeft, 2),
            Some(Some(('f', _))) => EscapeStep::Key(Key::WordRight, 2),
            Some(Some((c, len))) => EscapeStep::Key(Key::Alt(c), 1 + len),
        },
    }
}

/// `ESC [ parameters final`.
fn control(rest: &[u8]) -> EscapeStep {
    let Some(end) = rest[2..].iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return match rest.len() {
            len if len > SEQUENCE_BYTES_MAX => EscapeStep::Nothing(len),
            _ => EscapeStep::More,
        };
    };
    let parameters = String::from_utf8_lossy(&rest[2..2 + end]);
    let last = rest[2 + end];
    let used = end + 3;
    let key = report(&parameters, last).or_else(|| key_of(&parameters, last));
    key.map_or(EscapeStep::Nothing(used), |key| EscapeStep::Key(key, used))
}

/// What a terminal answers when it is asked what it can do.
fn report(parameters: &str, last: u8) -> Option<Key> {
    match (parameters.as_bytes().first(), last) {
        (Some(b'?'), b'u') => Some(Key::Offers(KeyboardProtocol::Kitty)),
        (Some(b'>'), b'm') if parameters.starts_with(">4;") => {
            Some(Key::Offers(KeyboardProtocol::ModifyOtherKeys))
        }
        _ => None,
    }
}

/// `code;modifiers:event;text`, of which any may be absent.
fn key_of(parameters: &str, last: u8) -> Option<Key> {
    let number = |text: &str| text.parse::<u32>().ok();
    let mut fields = parameters.split(';').map(|field| {
        let mut numbers = field.split(':').map(number);
        (numbers.next().flatten(), numbers.next().flatten())
    });
    let (first, _) = fields.next().unwrap_or_default();
    let (modifiers, event) = fields.next().unwrap_or_default();
    let (third, _) = fields.next().unwrap_or_default();
    if event == Some(RELEASED) {
        return None;
    }
    let modifiers = Modifiers::read(modifiers);
    match (last, first) {
        (b'A', _) if modifiers.has(Modifiers::ALT) => Some(Key::AltUp),
        (b'D', _) if modifiers.any() => Some(Key::WordLeft),
        (b'C', _) if modifiers.any() => Some(Key::WordRight),
        (b'Z', _) => Some(Key::BackTab),
        (b'I', None) => Some(Key::FocusGained),
        (b'O', None) => Some(Key::FocusLost),
        (b'~', Some(1 | 7)) => Some(Key::Home),
        (b'~', Some(4 | 8)) => Some(Key::End),
        (b'~', Some(3)) => Some(Key::Delete),
        (b'~', Some(5)) => Some(Key::PageUp),
        (b'~', Some(6)) => Some(Key::PageDown),
        (b'~', Some(27)) => coded_key(third?, modifiers),
        (b'u', Some(code)) => coded_key(code, modifiers),
        (b'M', _) => Some(Key::Enter),
        (last, _) => plain_control(last),
    }
}

/// The key that a terminal reports by the code of its character.
fn coded_key(code: u32, modifiers: Modifiers) -> Option<Key> {
    let (alt, ctrl) = (modifiers.has(Modifiers::ALT), modifiers.has(Modifiers::CTRL));
    match code {
        13 | KEYPAD_ENTER if modifiers.any() => return Some(Key::NewLine),
        13 | KEYPAD_ENTER => return Some(Key::Enter),
        9 if modifiers.has(Modifiers::SHIFT) => return Some(Key::BackTab),
        9 => return Some(Key::Tab),
        27 => return Some(Key::Escape),
        8 | 127 if alt || ctrl => return Some(Key::Ctrl('w')),
        8 | 127 => return Some(Key::Backspace),
        // Keys that are no characters.
        57_344..=63_743 => return None,
        _ => {}
    }
    let c = char::from_u32(code).filter(|c| !c.is_control())?;
    Some(match c.to_ascii_lowercase() {
        '_' | '-' | '/' | '7' if ctrl => Key::Undo,
        'j' if ctrl => Key::NewLine,
        letter @ 'a'..='z' if ctrl => Key::Ctrl(letter),
        'b' if alt => Key::WordLeft,
        'f' if alt => Key::WordRight,
        _ if ctrl => return None,
        _ if alt => Key::Alt(c),
        _ => Key::Char(c),
    })
}

fn plain_control(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        KeyDecoder::default().decode(bytes)
    }

    #[test]
    fn every_key_is_read() {
        for (bytes, key) in [
            (&b"a"[..], Key::Char('a')),
            ("ü".as_bytes(), Key::Char('ü')),
            ("👩".as_bytes(), Key::Char('👩')),
            (b"\r", Key::Enter),
            (b"\x1b\r", Key::NewLine),
            (b"\n", Key::NewLine),
            (b"\x1b[13;2u", Key::NewLine),
            (b"\x1b[27;2;13~", Key::NewLine),
            (b"\x1b[13u", Key::Enter),
            (b"\x1b[27u", Key::Escape),
            (b"\x1b[99;5u", Key::Ctrl('c')),
            (b"\x1b[99;69:1u", Key::Ctrl('c')),
            (b"\x1b[98;3u", Key::WordLeft),
            (b"\x1b[33;3u", Key::Alt('!')),
            (b"\x1b[127;5u", Key::Ctrl('w')),
            (b"\x1b[45;5u", Key::Undo),
            (b"\x1f", Key::Undo),
            (b"\x1b[Z", Key::BackTab),
            (b"\x1b[9;2u", Key::BackTab),
            (b"\x1b[1;3A", Key::AltUp),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[I", Key::FocusGained),
            (b"\x1b[?1u", Key::Offers(KeyboardProtocol::Kitty)),
            (b"\x1b[>4;0m", Key::Offers(KeyboardProtocol::ModifyOtherKeys)),
            (b"\t", Key::Tab),
            (b"\x7f", Key::Backspace),
            (b"\x03", Key::Ctrl('c')),
            (b"\x13", Key::Ctrl('s')),
            (b"\x1b[A", Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[D", Key::Left),
            (b"\x1b[1;5D", Key::WordLeft),
            (b"\x1bf", Key::WordRight),
            (b"\x1b[H", Key::Home),
            (b"\x1b[4~", Key::End),
            (b"\x1b[3~", Key::Delete),
            (b"\x1b!", Key::Alt('!')),
            (b"\x1b[200~a\rb\x1b[A\x1b[201~", Key::Paste("a\nb\u{1b}[A".to_owned())),
        ] {
            assert_eq!(keys(bytes), std::slice::from_ref(&key), "{bytes:?}");
            // The same, byte by byte.
            let mut decoder = KeyDecoder::default();
            let singly: Vec<Key> = bytes.iter().flat_map(|byte| decoder.decode(&[*byte])).collect();
            assert_eq!(singly, [key], "{bytes:?}");
        }
    }

    #[test]
    fn escape_alone_is_a_key_once_nothing_follows() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.decode(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.end_of_sequence(), Some(Key::Escape));
        assert_eq!(decoder.decode(b"a"), [Key::Char('a')]);
        assert!(!decoder.is_waiting());
        assert_eq!(keys(b"\x1b\x1b[A"), [Key::Escape, Key::Up]);
    }

    #[test]
    fn unknown_sequences_are_ignored() {
        assert_eq!(keys(b"\x1b[99;99Qa"), [Key::Char('a')]);
        assert_eq!(keys(b"\x1b[97;1:3ua"), [Key::Char('a')], "let go");
        assert_eq!(keys(b"\x1b[57358u\x1b[?62;4ca"), [Key::Char('a')]);
        assert_eq!(keys(b"\xffa\xc3(b"), [Key::Char('a'), Key::Char('('), Key::Char('b')]);
        assert_eq!(keys(b"\x1bOza\x00"), [Key::Char('a')]);
        let mut endless = b"\x1b[".to_vec();
        endless.extend([b'1'; 64]);
        assert_eq!(keys(&endless), []);
    }
}
