//! Rendering block by block while a text is written gives what rendering it at the end gives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends")]

mod tree_json;

use markup::markdown::{self, Definitions, MarkdownBlock};
use markup::stable::{StablePart, find_stable, parse_open, write_open_json};
use markup::stream::{ItemPosition, MarkdownStream, StablePiece};
use proptest::prelude::*;
use tree_json::blocks_json;

/// Pieces that change the meaning of what stands around them.
const PIECES: &[&str] = &[
    "a",
    "word ",
    "two words",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "  ",
    "    ",
    "\t",
    "- ",
    "* ",
    "+ ",
    "1. ",
    "2) ",
    "10. ",
    "> ",
    ">",
    "# ",
    "###",
    "---",
    "===",
    "***",
    "___",
    "```",
    "```rust\n",
    "~~~",
    "`",
    "``",
    "*",
    "**",
    "_",
    "~~",
    "[",
    "]",
    "](https://e.x)",
    "![",
    "|",
    "| a | b |\n",
    "|---|---|\n",
    "--|--",
    ":-:",
    "<div>",
    "</div>",
    "<!--",
    "-->",
    "<pre>",
    "</pre>",
    "<?",
    "\\",
    "&amp;",
    "[ ] ",
    "[x] ",
    "é",
    "\u{202e}",
    "0",
    ".",
    ")",
    "-",
    "=",
    "'",
    "\"",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 1..24).prop_map(|pieces| pieces.concat())
}

/// Cuts a text into pieces at character boundaries.
fn cut(text: &str, at: &[prop::sample::Index]) -> Vec<String> {
    let mut cuts: Vec<usize> = at
        .iter()
        .map(|index| text.floor_char_boundary(index.index(text.len() + 1)))
        .chain([0, text.len()])
        .collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

fn render_in_pieces(pieces: &[String]) -> Vec<MarkdownBlock> {
    let mut stream = MarkdownStream::default();
    let mut stable = Vec::new();
    for piece in pieces {
        stable.extend(stream.push(piece));
    }
    stable.extend(stream.finish());
    without_room(join(stable))
}

/// The blocks that pieces are of.
fn join(pieces: Vec<StablePiece>) -> Vec<MarkdownBlock> {
    let mut blocks = Vec::new();
    let mut code: Option<(Option<String>, Vec<String>)> = None;
    for piece in pieces {
        match piece {
            StablePiece::Block(block) => blocks.push(block),
            StablePiece::Items { list, position: ItemPosition::First } => {
                blocks.push(MarkdownBlock::List(list))
            }
            StablePiece::Items { list, .. } => match blocks.last_mut() {
                Some(MarkdownBlock::List(before)) => {
                    let next = before.start.map(|start| start + before.items.len() as u64);
                    assert_eq!(list.start, next, "numbered as in the whole");
                    before.items.extend(list.items);
                }
                other => panic!("items continue {other:?}"),
            },
            StablePiece::CodeStart { language } => code = Some((language, Vec::new())),
            StablePiece::CodeLine(line) => code.as_mut().unwrap().1.push(line),
            StablePiece::CodeEnd => {
                let (language, lines) = code.take().unwrap();
                let text = lines.join("\n");
                blocks.push(MarkdownBlock::Code { language, text });
            }
        }
    }
    blocks
}

/// Whether a list is tight is known only at its end.
fn without_room(mut blocks: Vec<MarkdownBlock>) -> Vec<MarkdownBlock> {
    for block in &mut blocks {
        if let MarkdownBlock::List(list) = block {
            list.is_tight = true;
        }
    }
    blocks
}

fn render_whole(text: &str) -> Vec<MarkdownBlock> {
    without_room(markdown::parse(text).unwrap())
}

/// A text without link definitions: those hold for what comes after them alone. None is thrown away for it, so that a run may have
/// any number of cases: proptest gives up after a thousand that were.
fn text_without_definitions() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.replace("]:", "] :"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn block_by_block_is_the_same_as_the_whole(text in text_without_definitions(), at in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        prop_assert_eq!(render_in_pieces(&cut(&text, &at)), render_whole(&text), "{:?}", text);
    }

    #[test]
    fn definitions_that_come_first_hold_for_all(text in text_without_definitions(), at in prop::collection::vec(any::<prop::sample::Index>(), 0..12), title in text_without_definitions()) {
        let text = format!("[a]: https://e.x\n{title}\n\n[a]\n\n{text}\n\nsee [a] and [word][A]\n");
        prop_assert_eq!(render_in_pieces(&cut(&text, &at)), render_whole(&text), "{:?}", text);
    }

    #[test]
    fn what_is_stable_stays_stable(text in text(), more in text()) {
        let before = find_stable(&text).unwrap();
        let whole = format!("{text}{more}");
        prop_assert!(find_stable(&whole).unwrap() >= before);
        prop_assert!(text.is_char_boundary(before));
        prop_assert!(before == 0 || text[..before].ends_with(['\n', '\r']));
    }

    #[test]
    fn reading_once_gives_what_reading_part_by_part_gives(text in text(), definition in any::<bool>()) {
        let text = if definition { format!("{text}\n\n[a]: https://e.x\n\n{text}") } else { text };
        let stable = find_stable(&text).unwrap();
        let mut definitions = Definitions::default();
        let mut blocks = markdown::parse_part(&text[..stable], &mut definitions).unwrap();
        let part = StablePart { bytes: stable, blocks: blocks.len() };
        blocks.extend(parse_open(&text[stable..], &definitions).unwrap());
        let mut json = Vec::new();
        prop_assert_eq!(write_open_json(&text, &mut json, &mut |_, _| None).unwrap(), part, "{:?}", text);
        prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&json).unwrap(), blocks_json(&blocks), "{:?}", text);
    }

    #[test]
    fn an_open_end_never_fails(text in text()) {
        parse_open(&text, &Default::default()).unwrap();
    }
}

#[test]
fn only_whole_lines_count_and_the_last_block_is_open() {
    for (text, stable) in [
        ("", 0),
        ("a", 0),
        ("a\n\nb", 0),
        ("a\n\nb\n", 3),
        ("a\n\n    code\n", 3),
        ("a\n---\nb\n", 6),
        ("- a\n\n- b\n", 0),
        ("- a\n\nb\n- c\n", 7),
        ("```\na\n\nb\n", 0),
        ("```\na\n```\nb\n", 10),
        ("a\n\n[b]: /c\n'd\n", 3),
        ("a\n\n---\n", 3),
    ] {
        assert_eq!(find_stable(text), Ok(stable), "{text:?}");
    }
}

fn open(text: &str) -> String {
    let blocks = parse_open(text, &Default::default()).unwrap();
    blocks_json(&blocks).to_string()
}

#[test]
fn open_spans_are_closed_and_begun_marks_are_not_shown() {
    for (text, expected) in [
        ("a **b", r#"[["p","a ",["strong","b"]]]"#),
        ("a **b ", r#"[["p","a ",["strong","b"]]]"#),
        ("a **b*", r#"[["p","a ",["strong","b"]]]"#),
        ("a **", r#"[["p","a"]]"#),
        ("a *b **c", r#"[["p","a ",["em","b ",["strong","c"]]]]"#),
        ("a `b *c", r#"[["p","a ",["code","b *c"]]]"#),
        ("a ``b`", r#"[["p","a ",["code","b"]]]"#),
        ("a `", r#"[["p","a"]]"#),
        ("2 * 3", r#"[["p","2 * 3"]]"#),
        ("snake_case_x", r#"[["p","snake_case_x"]]"#),
        ("a \\*b", r#"[["p","a *b"]]"#),
        ("see [the **text](https://exam", r#"[["p","see the ",["strong","text"]]]"#),
        ("see ![alt](https://exam", r#"[["p","see alt"]]"#),
        ("a[0", r#"[["p","a[0"]]"#),
        ("a\n-", r#"[["p","a"]]"#),
        ("a\n1.", r#"[["p","a"]]"#),
        ("a\n- [ ]", r#"[["p","a"]]"#),
        ("a ` b", r#"[["p","a ",["code","b"]]]"#),
        ("a\n==", r#"[["p","a"]]"#),
        ("a\n\n``", r#"[["p","a"]]"#),
        ("**a\n\nb", r#"[["p","**a"],["p","b"]]"#),
        ("**a\n\n", r#"[["p","**a"]]"#),
        ("```\na **b", r#"[["pre","a **b"]]"#),
        ("```\na\n``", r#"[["pre","a"]]"#),
        ("# a *b", r##"[["h1","a ",["em","b"]]]"##),
        (
            "- a\n- b `c",
            r#"[["ul",{"tight":true},["li",["p","a"]],["li",["p","b ",["code","c"]]]]]"#,
        ),
        (
            "|a|\n|-|\n|**b",
            r#"[["table",{"align":[""]},["tr",["th","a"]],["tr",["td",["strong","b"]]]]]"#,
        ),
    ] {
        assert_eq!(open(text), expected, "{text:?}");
    }
}

/// The text of a paragraph that consists of well-formed spans.
fn spans() -> impl Strategy<Value = String> {
    let word = "[a-z]{1,6}";
    let words = "[a-z]{1,4}( [a-z]{1,4}){0,2}";
    let span = prop_oneof![
        word.prop_map(String::from),
        words.prop_map(|text| format!("**{text}**")),
        words.prop_map(|text| format!("*{text}*")),
        words.prop_map(|text| format!("***{text}***")),
        words.prop_map(|text| format!("_{text}_")),
        words.prop_map(|text| format!("~~{text}~~")),
        words.prop_map(|text| format!("`{text}`")),
        words.prop_map(|text| format!("`` {text} ``")),
        (words, words).prop_map(|(outer, inner)| format!("**{outer} *{inner}* `{inner}`**")),
        word.prop_map(|text| format!("<https://e.x/{text}_b_*c*>")),
    ];
    prop::collection::vec(span, 1..8).prop_map(|spans| spans.join(" "))
}

fn plain(blocks: &[MarkdownBlock]) -> String {
    match blocks {
        [MarkdownBlock::Paragraph(content)] => markdown::plain_text(content),
        _ => String::new(),
    }
}

proptest! {
    #[test]
    fn no_mark_is_seen_while_a_span_is_open(text in spans()) {
        let whole = plain(&markdown::parse(&text).unwrap());
        for at in 0..=text.len() {
            // An address in `<>` is text until it ends.
            let is_in_address = text[..at].rfind('<') > text[..at].rfind('>');
            let seen = plain(&parse_open(&text[..at], &Default::default()).unwrap());
            prop_assert!(is_in_address || whole.starts_with(seen.trim_end()), "{seen:?} of {:?}", &text[..at]);
        }
    }
}

#[test]
fn a_list_is_given_out_item_by_item_and_code_line_by_line() {
    let mut stream = MarkdownStream::default();
    assert_eq!(stream.push("3. a\n"), []);
    let first = stream.push("3. b\n\n");
    assert!(
        matches!(&first[..], [StablePiece::Items { list, position: ItemPosition::First }]
            if list.start == Some(3) && list.items.len() == 1 && list.is_tight),
        "{first:?}"
    );
    assert!(stream.is_in_list());
    let MarkdownBlock::List(open) = &stream.parse_open(1_000)[0] else { panic!("a list") };
    assert_eq!(open.start, Some(4));
    let second = stream.push("3. c\n");
    assert!(
        matches!(&second[..], [StablePiece::Items { list, position: ItemPosition::Continued }]
            if list.start == Some(4) && !list.is_tight),
        "{second:?}"
    );
    let third = stream.push("\nend\n\n```rs\n");
    assert!(
        matches!(&third[..], [
            StablePiece::Items { list, position: ItemPosition::Continued },
            StablePiece::Block(MarkdownBlock::Paragraph(_)),
            StablePiece::CodeStart { language: Some(language) },
        ] if list.start == Some(5) && language == "rs"),
        "{third:?}"
    );
    assert_eq!(stream.push("  a"), []);
    assert_eq!(stream.open_text(), "  a");
    let line = |text: &str| StablePiece::CodeLine(text.to_owned());
    assert_eq!(stream.push("b\n\nc"), [line("  ab"), line("")]);
    assert_eq!(stream.push("\n```"), [line("c")]);
    assert_eq!(stream.finish(), [StablePiece::CodeEnd]);
}

#[test]
fn each_line_of_a_long_block_of_code_is_given_out_once() {
    let mut stream = MarkdownStream::default();
    stream.push("```\n");
    for _ in 0..20_000 {
        assert_eq!(stream.push("a line of code in a long block\n").len(), 1);
        assert_eq!(stream.open_text(), "");
    }
    assert_eq!(stream.push("```\n"), [StablePiece::CodeEnd]);
}

#[test]
fn a_block_above_the_bound_is_cut_and_nothing_is_lost() {
    let mut stream = MarkdownStream::default();
    let text = "word ".repeat(markdown::BYTES_MAX / 2);
    let mut pieces = stream.push(&text);
    assert!(stream.open_text().len() <= markdown::BYTES_MAX);
    pieces.extend(stream.finish());
    let blocks = join(pieces);
    let words: usize =
        blocks.iter().map(|block| plain(std::slice::from_ref(block)).matches("word").count()).sum();
    // One word may lie on each cut.
    assert!(words + blocks.len() > markdown::BYTES_MAX / 2, "{words}");
}
