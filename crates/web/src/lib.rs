//! The files of the page as they are sent: by path, with their type, their compressed forms and what names their version.
//!
//! Promises: one digest names all files below `/app/`, so they may be kept for ever; what is served without it has an
//! entity tag. Nothing here depends on who asks: the files hold nothing of the user.
//! Must not know: kernel, agents, sockets, HTTP beyond the words of its headers.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// One file of the page.
#[derive(Debug)]
pub struct PageFile {
    /// Where it is asked for.
    pub path: &'static str,
    pub content_type: &'static str,
    /// Its path names its content.
    pub is_immutable: bool,
    tag: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// How the bytes of a file are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    Brotli,
    Gzip,
}

/// What is sent of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Representation {
    pub bytes: &'static [u8],
    pub encoding: Encoding,
    /// With its quotation marks.
    pub etag: String,
}

impl Encoding {
    /// As in `Content-Encoding`, which is absent for plain bytes.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
        }
    }

    /// Whether the other side takes it. `accept` is its `Accept-Encoding`.
    pub fn is_accepted(self, accept: &str) -> bool {
        let Some(name) = self.name() else { return true };
        accept.split(',').any(|item| {
            let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
            let quality = parameters.trim().strip_prefix("q=");
            // `q=0`, `q=0.0`: anything but that.
            let is_refused =
                quality.is_some_and(|q| q.trim().bytes().all(|b| b == b'0' || b == b'.'));
            coding.trim().eq_ignore_ascii_case(name) && !is_refused
        })
    }
}

impl PageFile {
    /// The smallest form that the other side takes. `accept` is its `Accept-Encoding`.
    pub fn choose(&self, accept: &str) -> Representation {
        let packed = [(Encoding::Brotli, self.brotli), (Encoding::Gzip, self.gzip)];
        let accepted = packed.into_iter().find_map(|(encoding, bytes)| {
            let is_accepted = encoding.is_accepted(accept);
            // A small file can grow by being packed.
            let bytes = bytes.filter(|bytes| is_accepted && bytes.len() < self.plain.len())?;
            Some((encoding, bytes))
        });
        let (encoding, bytes) = accepted.unwrap_or((Encoding::Plain, self.plain));
        let etag = match encoding.name() {
            Some(name) => format!("\"{}-{name}\"", self.tag),
            None => format!("\"{}\"", self.tag),
        };
        Representation { bytes, encoding, etag }
    }

    /// Whether the other side has this file already, in whatever form. `known` is its `If-None-Match`.
    pub fn is_known(&self, known: &str) -> bool {
        known.split(',').any(|item| {
            let item = item.trim();
            let item = item.strip_prefix("W/").unwrap_or(item);
            let Some(tag) = item.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) else {
                return item == "*";
            };
            tag.split_once('-').map_or(tag, |(tag, _)| tag) == self.tag
        })
    }
}

/// The file at a path.
pub fn find(path: &str) -> Option<&'static PageFile> {
    let at = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    FILES.get(at)
}

/// All of them, by path.
pub fn files() -> &'static [PageFile] {
    FILES
}

#[cfg(test)]
mod tests;
