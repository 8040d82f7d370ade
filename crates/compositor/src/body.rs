//! Bodies of attachments: checked, looked at, and moved out of the message if there is no room (C-033, C-035, C-036).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wire::{Digest, Object};

use crate::compose::{InlineRoom, KeptBody};
use crate::diagnostics::{Diagnostics, quoted};
use crate::sniff::{self, Class};

/// What became of a body.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It stays in its part.
    Inline,
    /// It is to be kept elsewhere, under this name.
    Moved { digest: Digest, size: u64 },
    /// It is no base64 and stays as it came in the message it came with.
    NotBase64(String),
}

/// Where bodies go.
pub(crate) struct Bodies {
    pub room: InlineRoom,
    pub inline_bytes: u64,
    pub kept: Vec<KeptBody>,
    names: BTreeSet<Digest>,
}

impl Bodies {
    pub fn new(room: InlineRoom) -> Self {
        Self {
            room,
            inline_bytes: 0,
            kept: Vec::new(),
            names: BTreeSet::new(),
        }
    }

    /// Puts a body into the `file-attachment` it belongs to, or its name if it is to be kept elsewhere. A body nobody can
    /// decode leaves a descriptor (G-38).
    pub fn settle(&mut self, part: &mut Object, body: String, said: &mut Diagnostics) -> Fate {
        let Ok(bytes) = STANDARD.decode(&body) else {
            describe(part, said);
            return Fate::NotBase64(body);
        };
        let size = bytes.len() as u64;
        part.insert("size".to_owned(), json!(size));
        let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or("");
        let (name, mime) = (quoted(text("name")), text("mime").to_owned());
        let kind = sniff::classify(&mime, &bytes);
        let is_unknown = kind.class == Class::Unknown;
        if is_unknown && kind.mime != sniff::essence(&mime) {
            let (mime, sniffed) = (quoted(&mime), kind.mime);
            said.say(|| format!("attachment: {name} is not {mime} but {sniffed} (described only)"));
            part.insert("sniffed_mime".to_owned(), json!(sniffed));
        } else {
            part.shift_remove("sniffed_mime");
        }
        if !is_unknown && self.takes(size) {
            part.shift_remove("content_id");
            part.insert("data".to_owned(), Value::String(body));
            return Fate::Inline;
        }
        let digest = self.keep(mime, bytes);
        part.shift_remove("data");
        part.insert("content_id".to_owned(), json!(format!("sha256:{digest}")));
        Fate::Moved { digest, size }
    }

    /// What is no base64 stays as it came, if there is room for it.
    pub fn as_it_came(&mut self, body: String) -> Fate {
        let size = body.len() as u64;
        if self.takes(size) {
            return Fate::NotBase64(body);
        }
        let digest = self.keep("text/plain".to_owned(), body.into_bytes());
        Fate::Moved { digest, size }
    }

    /// Whether so many bytes may stay inline; if so, they are counted.
    fn takes(&mut self, size: u64) -> bool {
        let takes = size <= self.room.each_bytes && size <= self.room.left_bytes;
        if takes {
            self.room.left_bytes -= size;
            self.inline_bytes += size;
        }
        takes
    }

    fn keep(&mut self, mime: String, bytes: Vec<u8>) -> Digest {
        let digest = Digest::new(Sha256::digest(&bytes).into());
        if self.names.insert(digest) {
            self.kept.push(KeptBody {
                content_id: format!("sha256:{digest}"),
                mime,
                bytes,
            });
        }
        digest
    }
}

fn describe(part: &mut Object, said: &mut Diagnostics) {
    let name = quoted(part.get("name").and_then(Value::as_str).unwrap_or(""));
    said.say(|| format!("attachment: the body of {name} is not base64 (described only)"));
    for key in ["data", "size", "content_id", "sniffed_mime"] {
        part.shift_remove(key);
    }
}
