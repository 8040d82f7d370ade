//! What a client says: the upgrade, frames, and the few messages of the protocol that the measurements need.
//!
//! Must not know: sockets, who is asked.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use wire::{ChannelUri, Timestamp};

/// The id of `initialize`, and of every other request the helpers send: what is cached can then be sent as it is.
pub(crate) const HELLO_ID: u32 = 1;
pub(crate) const ASK_ID: u32 = 2;

/// The beginning of the answer to [`ASK_ID`].
pub(crate) const ANSWERED: &[u8] = br#"{"jsonrpc":"2.0","id":2,"#;

/// An empty pong, masked.
pub(crate) const PONG: &[u8] = &[0x8a, 0x80, 0, 0, 0, 0];

pub(crate) fn root() -> String {
    ChannelUri::root().as_str().to_owned()
}

/// The head of a client's first request, with a token where one is needed.
pub(crate) fn upgrade(address: &str, token: Option<&str>) -> String {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{token}\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// Where the head of an HTTP answer ends.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// A client's text frame. The mask is zero: legal to read, and it costs neither side anything.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    let len = text.len();
    let mut frame = vec![0x81];
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(short), _) if short < 126 => frame.push(0x80 | short),
        (_, Ok(medium)) => {
            frame.push(0x80 | 126);
            frame.extend(medium.to_be_bytes());
        }
        _ => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

pub(crate) fn request(id: u32, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// The version that clients speak where a row does not say otherwise.
pub(crate) const VERSION: &str = "1.0.0";

pub(crate) fn initialize(client_id: &str, subscriptions: &[String]) -> String {
    initialize_as(VERSION, client_id, subscriptions)
}

pub(crate) fn initialize_as(version: &str, client_id: &str, subscriptions: &[String]) -> String {
    let params = json!({
        "channel": root(),
        "protocolVersions": [version],
        "clientId": client_id,
        "initialSubscriptions": subscriptions,
    });
    request(HELLO_ID, "initialize", &params)
}

pub(crate) fn subscribe(channel: &str, view_turns: Option<u32>, window_ms: Option<u32>) -> String {
    let mut params = json!({"channel": channel});
    if let Some(turns) = view_turns {
        params["view"] = json!({"turns": turns});
    }
    if let Some(ms) = window_ms {
        params["delivery"] = json!({"maxLatencyMs": ms});
    }
    request(ASK_ID, "subscribe", &params)
}

pub(crate) fn reconnect(client_id: &str, last_seen: u64, subscriptions: &[String]) -> String {
    let params = json!({
        "channel": root(),
        "clientId": client_id,
        "lastSeenServerSeq": last_seen,
        "subscriptions": subscriptions,
    });
    request(ASK_ID, "reconnect", &params)
}

pub(crate) fn dispatch(channel: &str, client_seq: u64, action: &Value) -> String {
    notification(
        "dispatchAction",
        &json!({"channel": channel, "clientSeq": client_seq, "action": action}),
    )
}

pub(crate) fn turn_started(chat: &str, client_seq: u64, turn_id: &str, text: &str) -> String {
    turn_started_with(chat, client_seq, turn_id, text, json!([]))
}

/// The same with something attached.
pub(crate) fn turn_started_with(
    chat: &str,
    client_seq: u64,
    turn_id: &str,
    text: &str,
    attachments: Value,
) -> String {
    let action = turn_started_action(turn_id, text, attachments);
    dispatch(chat, client_seq, &action)
}

pub(crate) fn turn_started_action(turn_id: &str, text: &str, attachments: Value) -> Value {
    let mut message = json!({"text": text, "origin": {"kind": "user"}});
    if attachments.as_array().is_some_and(|list| !list.is_empty()) {
        message["attachments"] = attachments;
    }
    json!({
        "type": "chat/turnStarted",
        "turnId": turn_id,
        "startedAt": Timestamp(1_750_000_000_000).to_rfc3339(),
        "message": message,
    })
}

/// A draft that carries the moment it was sent at; see [`Stamp`].
pub(crate) fn stamped_draft(chat: &str, client_seq: u64, stamp: Stamp) -> String {
    let draft = json!({"text": stamp.text(), "origin": {"kind": "user"}});
    dispatch(chat, client_seq, &json!({"type": "chat/draftChanged", "draft": draft}))
}

/// The default chat of a session (G-26).
pub(crate) fn chat_of(session: &str) -> String {
    format!("ahp-chat://default/{}", URL_SAFE_NO_PAD.encode(session))
}

/// A number and a moment inside a text, found again by whoever receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub index: u32,
    pub sent_ns: u64,
}

const STAMP_MARK: &[u8] = b"k=";
/// `k=` and 8 digits, ` t=` and 20 digits.
pub(crate) const STAMP_BYTES: usize = 33;

impl Stamp {
    pub(crate) fn text(self) -> String {
        format!("k={:08} t={:020}", self.index, self.sent_ns)
    }

    pub(crate) fn position(message: &[u8]) -> Option<usize> {
        let at = message.windows(2).position(|window| window == STAMP_MARK)?;
        Self::at(message, at).map(|_| at)
    }

    pub(crate) fn at(message: &[u8], at: usize) -> Option<Self> {
        let text = message.get(at..at + STAMP_BYTES)?;
        if !text.starts_with(STAMP_MARK) || &text[10..13] != b" t=" {
            return None;
        }
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0_u64, |number, digit| {
                digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
            })
        };
        Some(Self {
            index: u32::try_from(number(&text[2..10])?).ok()?,
            sent_ns: number(&text[13..])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back() {
        let stamp = Stamp { index: 42, sent_ns: 1_234_567_890_123 };
        let text = stamped_draft("ahp-chat:/1", 3, stamp);
        let at = Stamp::position(text.as_bytes()).unwrap();
        assert_eq!(Stamp::at(text.as_bytes(), at), Some(stamp));
        assert_eq!(stamp.text().len(), STAMP_BYTES);
        assert_eq!(Stamp::position(b"no stamp k=here"), None);
    }
}
