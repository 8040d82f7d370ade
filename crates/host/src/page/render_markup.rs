//! One item of what the page shows: Markdown as a tree, code as runs, a diff as rows.
//!
//! Promises: an item that cannot be rendered is an error that says why, and no other item suffers from it. Colours have a time;
//! what is not coloured in it is sent without them.
//! Must not know: HTTP, who asks.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use markup::highlight::{self, Language, NoColours};
use markup::markdown::{self, MarkdownBlock};
use markup::{diff, stable};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::Digest;

use crate::blobs::{Blobs, Found};

/// The longest content that is read to be coloured or read as Markdown.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// What is to be rendered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum MarkupItem {
    Markdown {
        markdown: MarkupText,
        /// The text is being written: its end is shown as if it ended well, and `stable` says how much cannot change.
        #[serde(default)]
        open: bool,
    },
    Code {
        code: MarkupText,
        #[serde(default)]
        lang: Option<String>,
    },
    Diff {
        diff: DiffSides,
    },
}

/// A text, or the name of content.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum MarkupText {
    Text(String),
    Content { uri: String },
}

/// Both sides of a diff. A string that is the name of content, and nothing else, means the content; a file that is not there is
/// absent.
#[derive(Debug, Clone, Serialize, Deserialize)]
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

/// An answer as JSON, and whether it would be the same the next time.
pub(super) struct RenderedItem {
    pub answer: Vec<u8>,
    pub is_final: bool,
}

/// Renders one item. Blocks.
pub(super) fn render(item: &MarkupItem, blobs: &dyn Blobs, time: Duration) -> RenderedItem {
    let mut clock = ColourTime {
        until: Instant::now() + time,
        was_cut: false,
    };
    let answer = match item {
        MarkupItem::Markdown { markdown, open } => {
            read_text(markdown, blobs).and_then(|text| render_markdown(&text, *open, &mut clock))
        }
        MarkupItem::Code { code, lang } => read_text(code, blobs).map(|code| {
            let language = lang.as_deref().and_then(Language::find);
            wire::rpc::to_json(&render_code(&code, language, &mut clock))
        }),
        MarkupItem::Diff { diff } => {
            render_diff(diff, blobs).map(|compared| wire::rpc::to_json(&compared))
        }
    };
    match answer {
        Ok(answer) => RenderedItem {
            answer,
            is_final: !clock.was_cut,
        },
        Err(why) => RenderedItem {
            answer: wire::rpc::to_json(&json!({"error": why})),
            is_final: false,
        },
    }
}

/// Until when colours may be made, and whether some were not.
struct ColourTime {
    until: Instant,
    was_cut: bool,
}

impl ColourTime {
    /// The runs of a code, counted as scripts count; none if there is no time.
    fn colour(&mut self, code: &str, language: Option<Language>) -> Option<Value> {
        let until = self.until;
        let mut is_over = || Instant::now() >= until;
        if is_over() {
            self.was_cut = true;
            return None;
        }
        match highlight::highlight(code, language?, &mut is_over) {
            Ok(runs) => serde_json::to_value(highlight::count_in_utf16(code, &runs)).ok(),
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

/// The answer for a Markdown text. `stable` and `blocks` are said of one that is being written.
#[derive(Serialize)]
struct MarkdownAnswer {
    tree: Vec<WrittenBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stable: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<usize>,
}

/// Most blocks are written as they are; one with code gets its colours first.
#[derive(Serialize)]
#[serde(untagged)]
enum WrittenBlock {
    AsItIs(MarkdownBlock),
    Coloured(Value),
}

fn render_markdown(text: &str, is_open: bool, clock: &mut ColourTime) -> Result<Vec<u8>, String> {
    let too_large = |error: markup::MarkupTooLarge| error.to_string();
    if !is_open {
        let tree = markdown::parse(text).map_err(too_large)?;
        return Ok(wire::rpc::to_json(&MarkdownAnswer {
            tree: colour_tree(tree, clock)?,
            stable: None,
            blocks: None,
        }));
    }
    let open = stable::parse_open_text(text).map_err(too_large)?;
    Ok(wire::rpc::to_json(&MarkdownAnswer {
        tree: colour_tree(open.blocks, clock)?,
        stable: Some(open.stable),
        blocks: Some(open.stable_blocks),
    }))
}

fn colour_tree(
    tree: Vec<MarkdownBlock>,
    clock: &mut ColourTime,
) -> Result<Vec<WrittenBlock>, String> {
    let mut written = Vec::with_capacity(tree.len());
    for block in tree {
        if !has_code(std::slice::from_ref(&block)) {
            written.push(WrittenBlock::AsItIs(block));
            continue;
        }
        let mut block = serde_json::to_value(block).map_err(|error| error.to_string())?;
        colour_blocks(&mut block, clock);
        written.push(WrittenBlock::Coloured(block));
    }
    Ok(written)
}

/// Whether there is code of a language in blocks. They are at most as deep as `markdown` makes them.
fn has_code(blocks: &[MarkdownBlock]) -> bool {
    blocks.iter().any(|block| match block {
        MarkdownBlock::Code { language, .. } => language.is_some(),
        MarkdownBlock::Quote(blocks) => has_code(blocks),
        MarkdownBlock::List(list) => list.items.iter().any(|item| has_code(&item.blocks)),
        MarkdownBlock::Heading { .. }
        | MarkdownBlock::Paragraph(_)
        | MarkdownBlock::Table(_)
        | MarkdownBlock::Rule => false,
    })
}

/// Adds the runs of each code block to its attributes. A tree is at most as deep as `markdown` makes it.
fn colour_blocks(node: &mut Value, clock: &mut ColourTime) {
    let Value::Array(items) = node else {
        return; // text, or attributes
    };
    if let [
        Value::String(tag),
        Value::Object(attributes),
        Value::String(code),
    ] = items.as_mut_slice()
        && tag == "pre"
    {
        let language = attributes.get("language").and_then(Value::as_str);
        if let Some(runs) = clock.colour(code, language.and_then(Language::find)) {
            attributes.insert("runs".to_owned(), runs);
        }
        return;
    }
    for item in items {
        colour_blocks(item, clock);
    }
}

fn render_code(code: &str, language: Option<Language>, clock: &mut ColourTime) -> Value {
    let runs = clock.colour(code, language).unwrap_or_else(|| json!([]));
    json!({"runs": runs, "language": language.map(Language::name)})
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
    let compared = diff::compare(&before, &after, &sides.path, context);
    let compared = compared.map_err(|error| error.to_string())?;
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
        Ok(Found::TooLarge { bytes }) => Err(format!(
            "{bytes} bytes are more than the {bytes_max} that are rendered"
        )),
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
        read(&render(&item, blobs, LONG))
    }

    fn read(rendered: &RenderedItem) -> Value {
        serde_json::from_slice(&rendered.answer).unwrap()
    }

    #[test]
    fn text_becomes_trees_runs_and_rows() {
        let blobs = MemoryBlobs::new();
        assert_eq!(
            answer(
                &json!({"markdown": "see `x`\n\n```rust\nlet ä = 1;\n```\n"}),
                &blobs
            ),
            json!({"tree": [
                ["p", "see ", ["code", "x"]],
                ["pre", {"language": "rust", "runs": [["keyword", 0, 3], ["number", 8, 1]]}, "let ä = 1;"],
            ]})
        );
        let nested = answer(
            &json!({"markdown": "> - ```rust\n>   let a;\n>   ```\n"}),
            &blobs,
        );
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
        assert_eq!(
            open["tree"],
            json!([["h1", "Ä"], ["p", "one"], ["p", ["em", "two"]]])
        );
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
        assert_eq!(
            answer(&item, &blobs)["rows"][0],
            json!(["-", 1, null, "one"])
        );
        let item = json!({"diff": {"after": after, "path": "a.txt"}});
        assert_eq!(answer(&item, &blobs)["added"], 1);
        assert_eq!(
            answer(&json!({"code": {"uri": after}}), &blobs)["runs"],
            json!([])
        );
        assert_eq!(
            answer(&json!({"markdown": after}), &blobs)["tree"][0][0],
            "p",
            "a text is a text"
        );
        let gone = Digest::new([7; 32]).uri();
        let item = json!({"diff": {"before": gone, "after": after, "path": "a.txt"}});
        assert_eq!(
            answer(&item, &blobs),
            json!({"error": "the content is not there any more"})
        );
        let item = json!({"markdown": {"uri": "file:///etc/passwd"}});
        assert_eq!(
            answer(&item, &blobs),
            json!({"error": "`uri` is not the name of content"})
        );
    }

    #[test]
    fn without_time_there_are_no_colours_but_the_text() {
        let item = json!({"markdown": "```rust\nlet a;\n```"});
        let item: MarkupItem = serde_json::from_value(item).unwrap();
        let cut = render(&item, &MemoryBlobs::new(), Duration::ZERO);
        assert_eq!(
            read(&cut),
            json!({"tree": [["pre", {"language": "rust"}, "let a;"]]})
        );
        assert!(!cut.is_final, "the next time there may be");
        assert!(render(&item, &MemoryBlobs::new(), LONG).is_final);
    }
}
