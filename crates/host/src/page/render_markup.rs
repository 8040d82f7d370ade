//! One item of what the page shows: Markdown as a tree, code as runs, a diff as rows.
//!
//! Promises: an item that cannot be rendered is an error that says why, and no other item suffers from it. Colours have a time;
//! what is not coloured in it is sent without them.
//! Must not know: HTTP, who asks.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

use markup::highlight::{self, CodeRun, Language, NoColours};
use markup::{diff, markdown, stable};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wire::Digest;

use crate::blobs::{Blobs, Found};

/// The longest content that is read to be coloured or read as Markdown.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// What is to be rendered.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "ItemFields")]
pub(crate) enum MarkupItem {
    Markdown {
        markdown: MarkupText,
        /// The text is being written: its end is shown as if it ended well, and `stable` says how much cannot change.
        open: bool,
    },
    Code {
        code: MarkupText,
        lang: Option<String>,
    },
    Diff {
        diff: DiffSides,
    },
}

/// An item as it comes. What it is is told by which field it has; trying one shape after the other would read every text several times.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFields {
    markdown: Option<MarkupText>,
    open: Option<bool>,
    code: Option<MarkupText>,
    lang: Option<String>,
    diff: Option<DiffSides>,
}

impl TryFrom<ItemFields> for MarkupItem {
    type Error = &'static str;

    fn try_from(fields: ItemFields) -> Result<Self, Self::Error> {
        match fields {
            ItemFields { markdown: Some(markdown), open, code: None, lang: None, diff: None } => {
                Ok(Self::Markdown { markdown, open: open.unwrap_or(false) })
            }
            ItemFields { markdown: None, open: None, code: Some(code), lang, diff: None } => {
                Ok(Self::Code { code, lang })
            }
            ItemFields { markdown: None, open: None, code: None, lang: None, diff: Some(diff) } => {
                Ok(Self::Diff { diff })
            }
            _ => Err(
                "an item has one of `markdown`, `code` and `diff`, `open` with the first and `lang` with the second",
            ),
        }
    }
}

/// A text, or the name of content.
#[derive(Debug, Clone)]
pub(crate) enum MarkupText {
    Text(String),
    Content { uri: String },
}

impl<'de> Deserialize<'de> for MarkupText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = MarkupText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, or `uri` with the name of content")
    }

    fn visit_str<E>(self, text: &str) -> Result<MarkupText, E> {
        Ok(MarkupText::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<MarkupText, E> {
        Ok(MarkupText::Text(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MarkupText, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ContentName {
            uri: String,
        }
        let name = ContentName::deserialize(MapAccessDeserializer::new(map))?;
        Ok(MarkupText::Content { uri: name.uri })
    }
}

/// Both sides of a diff. A string that is the name of content, and nothing else, means the content; a file that is not there is
/// absent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffSides {
    #[serde(default)]
    before: Option<String>,
    #[serde(default)]
    after: Option<String>,
    path: String,
    #[serde(default)]
    context: Option<u32>,
}

impl MarkupItem {
    /// What it is remembered by.
    pub(super) fn key(&self) -> Digest {
        let mut hash = Sha256::new();
        // Each part with its length, so that no two items are the same bytes.
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        let mut add_text = |kind: &[u8], text: &MarkupText| {
            let (is_name, text): (&[u8], &String) = match text {
                MarkupText::Text(text) => (b"text", text),
                MarkupText::Content { uri } => (b"name", uri),
            };
            for part in [kind, is_name, text.as_bytes()] {
                add(part);
            }
        };
        match self {
            Self::Markdown { markdown, open } => {
                add_text(if *open { b"open" } else { b"markdown" }, markdown);
            }
            Self::Code { code, lang } => {
                add_text(b"code", code);
                add(lang.as_deref().unwrap_or("").as_bytes());
            }
            Self::Diff { diff } => {
                add(b"diff");
                for side in [&diff.before, &diff.after] {
                    add(&[u8::from(side.is_some())]);
                    add(side.as_deref().unwrap_or("").as_bytes());
                }
                add(diff.path.as_bytes());
                add(&diff.context.unwrap_or(diff::CONTEXT).to_le_bytes());
            }
        }
        Digest::new(hash.finalize().into())
    }

    /// How many bytes of text came with it.
    pub(super) fn text_bytes(&self) -> usize {
        let side = |side: &Option<String>| side.as_ref().map_or(0, String::len);
        match self {
            Self::Markdown { markdown: text, .. } | Self::Code { code: text, .. } => match text {
                MarkupText::Text(text) | MarkupText::Content { uri: text } => text.len(),
            },
            Self::Diff { diff } => side(&diff.before) + side(&diff.after),
        }
    }

    /// Whether it is rendered in no more time than it takes to read its text: it is Markdown, it is here, and there is no code in it that
    /// would be coloured.
    pub(super) fn is_prose(&self) -> bool {
        match self {
            Self::Markdown { markdown: MarkupText::Text(text), .. } => {
                !text.contains("```") && !text.contains("~~~")
            }
            Self::Markdown { .. } | Self::Code { .. } | Self::Diff { .. } => false,
        }
    }

    /// Whether somebody may ask for it again. A text that is being written is another one with every word.
    pub(super) fn is_remembered(&self) -> bool {
        !matches!(self, Self::Markdown { open: true, .. })
    }
}

/// Writes the answer for one item as JSON; returns whether it would be the same the next time. Blocks.
pub(super) fn render(
    item: &MarkupItem,
    blobs: &dyn Blobs,
    time: Duration,
    answer: &mut Vec<u8>,
) -> bool {
    let mut clock = ColourTime { until: Instant::now() + time, was_cut: false };
    let start = answer.len();
    let rendered = match item {
        MarkupItem::Markdown { markdown, open } => read_text(markdown, blobs)
            .and_then(|text| render_markdown(&text, *open, &mut clock, answer)),
        MarkupItem::Code { code, lang } => read_text(code, blobs).map(|code| {
            let language = lang.as_deref().and_then(Language::find);
            render_code(&code, language, &mut clock, answer);
        }),
        MarkupItem::Diff { diff } => render_diff(diff, blobs)
            .map(|compared| answer.extend_from_slice(&wire::rpc::to_json(&compared))),
    };
    match rendered {
        Ok(()) if clock.was_cut => {
            // Whoever asks again gets colours, so nobody should remember this.
            answer.pop();
            answer.extend_from_slice(b",\"cut\":true}");
            false
        }
        Ok(()) => true,
        Err(why) => {
            answer.truncate(start);
            answer.extend_from_slice(&wire::rpc::to_json(&json!({"error": why})));
            false
        }
    }
}

/// Until when colours may be made, and whether some were not.
struct ColourTime {
    until: Instant,
    was_cut: bool,
}

impl ColourTime {
    /// The runs of a code, counted as scripts count; none if there is no time.
    fn colour(&mut self, code: &str, language: Option<Language>) -> Option<Vec<CodeRun>> {
        let until = self.until;
        let mut is_over = || Instant::now() >= until;
        if is_over() {
            self.was_cut = true;
            return None;
        }
        match highlight::highlight(code, language?, &mut is_over) {
            Ok(runs) => Some(highlight::count_in_utf16(code, &runs)),
            Err(NoColours::Cancelled) => {
                self.was_cut = true;
                None
            }
            Err(NoColours::Grammar(language, error)) => {
                tracing::warn!(language, error, "code is shown without colours");
                None
            }
            Err(NoColours::TooLarge(_) | NoColours::NotText | NoColours::TooDeep) => None,
        }
    }
}

/// `{"tree": [..]}`; of a text that is being written also how many bytes and blocks of it are stable.
fn render_markdown(
    text: &str,
    is_open: bool,
    clock: &mut ColourTime,
    answer: &mut Vec<u8>,
) -> Result<(), String> {
    let too_large = |error: markup::MarkupTooLarge| error.to_string();
    let mut colour = |code: &str, language: &str| clock.colour(code, Language::find(language));
    answer.extend_from_slice(b"{\"tree\":");
    if is_open {
        let stable = stable::write_open_json(text, answer, &mut colour).map_err(too_large)?;
        let stable = format!(",\"stable\":{},\"blocks\":{}", stable.bytes, stable.blocks);
        answer.extend_from_slice(stable.as_bytes());
    } else {
        markdown::write_json(text, answer, &mut colour).map_err(too_large)?;
    }
    answer.push(b'}');
    Ok(())
}

fn render_code(
    code: &str,
    language: Option<Language>,
    clock: &mut ColourTime,
    answer: &mut Vec<u8>,
) {
    let runs = clock.colour(code, language).unwrap_or_default();
    answer.extend_from_slice(b"{\"runs\":");
    CodeRun::write_all(&runs, answer);
    answer.extend_from_slice(b",\"language\":");
    answer.extend_from_slice(&wire::rpc::to_json(&language.map(Language::name)));
    answer.push(b'}');
}

fn render_diff(sides: &DiffSides, blobs: &dyn Blobs) -> Result<Value, String> {
    let read = |side: &Option<String>| match side {
        None => Ok(Vec::new()),
        Some(text) => match Digest::from_uri(text) {
            Some(digest) => read_content(&digest, blobs, diff::BYTES_MAX as u64),
            None => Ok(text.clone().into_bytes()),
        },
    };
    let (before, after) = (read(&sides.before)?, read(&sides.after)?);
    let context = sides.context.unwrap_or(diff::CONTEXT);
    let compared =
        diff::compare(&before, &after, &sides.path, context).map_err(|error| error.to_string())?;
    serde_json::to_value(compared).map_err(|error| error.to_string())
}

fn read_text<'a>(text: &'a MarkupText, blobs: &dyn Blobs) -> Result<Cow<'a, str>, String> {
    match text {
        MarkupText::Text(text) => Ok(Cow::Borrowed(text)),
        MarkupText::Content { uri } => {
            let digest = Digest::from_uri(uri).ok_or("`uri` is not the name of content")?;
            let bytes = read_content(&digest, blobs, TEXT_BYTES_MAX)?;
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| "the content is not text".to_owned())?;
            Ok(Cow::Owned(text))
        }
    }
}

fn read_content(digest: &Digest, blobs: &dyn Blobs, bytes_max: u64) -> Result<Vec<u8>, String> {
    match blobs.read(digest, bytes_max) {
        Ok(Found::Body(body)) => Ok(body),
        Ok(Found::Missing) => Err("the content is not there any more".to_owned()),
        Ok(Found::TooLarge { bytes }) => {
            Err(format!("{bytes} bytes are more than the {bytes_max} that are rendered"))
        }
        Err(error) => {
            tracing::warn!(%error, "content cannot be rendered");
            Err("the content cannot be read".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::Timestamp;

    use super::*;
    use crate::blobs::MemoryBlobs;

    const LONG: Duration = Duration::from_secs(600);

    fn answer(item: &Value, blobs: &MemoryBlobs) -> Value {
        let item: MarkupItem = serde_json::from_value(item.clone()).unwrap();
        render_within(&item, blobs, LONG).0
    }

    fn render_within(item: &MarkupItem, blobs: &MemoryBlobs, time: Duration) -> (Value, bool) {
        // What was written before stays.
        let mut answer = b"[0,".to_vec();
        let is_final = render(item, blobs, time, &mut answer);
        answer.push(b']');
        let mut answer: Vec<Value> = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer.len(), 2);
        (answer.remove(1), is_final)
    }

    #[test]
    fn an_item_is_one_thing_with_its_own_fields() {
        for wrong in [
            json!({}),
            json!({"markdown": "a", "code": "b"}),
            json!({"code": "a", "open": true}),
            json!({"markdown": "a", "lang": "rust"}),
            json!({"diff": {"path": "a"}, "lang": "rust"}),
            json!({"markdown": {"uri": "a", "b": 1}}),
            json!({"markdown": 1}),
            json!({"markdown": "a", "other": 1}),
        ] {
            let read = serde_json::from_value::<MarkupItem>(wrong.clone());
            assert!(read.is_err(), "{wrong}");
        }
    }

    #[test]
    fn items_that_differ_are_remembered_apart() {
        let items = json!([
            {"markdown": "a"}, {"markdown": "a", "open": true}, {"markdown": "b"}, {"code": "a"},
            {"code": "a", "lang": "rust"}, {"markdown": {"uri": "a"}}, {"diff": {"after": "a", "path": "a"}},
            {"diff": {"before": "a", "path": "a"}}, {"diff": {"after": "a", "path": "a", "context": 9}},
        ]);
        let items: Vec<MarkupItem> = serde_json::from_value(items).unwrap();
        let keys: std::collections::BTreeSet<Digest> = items.iter().map(MarkupItem::key).collect();
        assert_eq!(keys.len(), items.len());
    }

    #[test]
    fn text_becomes_trees_runs_and_rows() {
        let blobs = MemoryBlobs::new();
        assert_eq!(
            answer(&json!({"markdown": "see `x`\n\n```rust\nlet ä = 1;\n```\n"}), &blobs),
            json!({"tree": [
                ["p", "see ", ["code", "x"]],
                ["pre", {"language": "rust", "runs": [["keyword", 0, 3], ["number", 8, 1]]}, "let ä = 1;"],
            ]})
        );
        let nested = answer(&json!({"markdown": "> - ```rust\n>   let a;\n>   ```\n"}), &blobs);
        assert!(nested.to_string().contains("\"runs\""), "{nested}");
        let code = answer(&json!({"code": "let a = 1;", "lang": "rs"}), &blobs);
        assert_eq!(code["language"], "rust");
        assert_eq!(code["runs"][0], json!(["keyword", 0, 3]));
        let plain = answer(&json!({"code": "x", "lang": "klingon"}), &blobs);
        assert_eq!(plain, json!({"runs": [], "language": null}));
        let diff = answer(
            &json!({"diff": {"before": "a\nb\n", "after": "a\nc\n", "path": "x.rs"}}),
            &blobs,
        );
        assert_eq!((&diff["added"], &diff["removed"]), (&json!(1), &json!(1)));
        assert_eq!(diff["rows"][1], json!(["-", 2, null, "b"]));
    }

    #[test]
    fn an_open_text_says_what_cannot_change() {
        let blobs = MemoryBlobs::new();
        let text = "# Ä\n\none\n\n*two";
        let open = answer(&json!({"markdown": text, "open": true}), &blobs);
        assert_eq!(open["tree"], json!([["h1", "Ä"], ["p", "one"], ["p", ["em", "two"]]]));
        assert_eq!((&open["stable"], &open["blocks"]), (&json!(6), &json!(1)));
        let done = answer(&json!({"markdown": &text[..6]}), &blobs);
        assert_eq!(done["tree"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn contents_are_named_and_missing_ones_spoil_nothing_else() {
        let blobs = MemoryBlobs::new();
        let put = |text: &str| blobs.put(text.as_bytes(), Timestamp(1)).unwrap().uri();
        let (before, after) = (put("one\n"), put("two\n"));
        let item = json!({"diff": {"before": before, "after": after, "path": "a.txt"}});
        assert_eq!(answer(&item, &blobs)["rows"][0], json!(["-", 1, null, "one"]));
        let item = json!({"diff": {"after": after, "path": "a.txt"}});
        assert_eq!(answer(&item, &blobs)["added"], 1);
        assert_eq!(answer(&json!({"code": {"uri": after}}), &blobs)["runs"], json!([]));
        assert_eq!(
            answer(&json!({"markdown": after}), &blobs)["tree"][0][0],
            "p",
            "a text is a text"
        );
        let gone = Digest::new([7; 32]).uri();
        let item = json!({"diff": {"before": gone, "after": after, "path": "a.txt"}});
        assert_eq!(answer(&item, &blobs), json!({"error": "the content is not there any more"}));
        let item = json!({"markdown": {"uri": "file:///etc/passwd"}});
        assert_eq!(answer(&item, &blobs), json!({"error": "`uri` is not the name of content"}));
    }

    #[test]
    fn without_time_there_are_no_colours_but_the_text() {
        let item = json!({"markdown": "```rust\nlet a;\n```"});
        let item: MarkupItem = serde_json::from_value(item).unwrap();
        let (cut, is_final) = render_within(&item, &MemoryBlobs::new(), Duration::ZERO);
        assert_eq!(cut, json!({"tree": [["pre", {"language": "rust"}, "let a;"]], "cut": true}));
        assert!(!is_final, "the next time there may be");
        assert!(render_within(&item, &MemoryBlobs::new(), LONG).1);
    }
}
