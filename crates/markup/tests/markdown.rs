//! What Markdown becomes: the tree, its JSON, what is refused, and bounds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod tree_json;

use markup::MarkupTooLarge;
use markup::highlight::{CodeClass, CodeRun};
use markup::markdown::{self, Definitions, Inline, MarkdownBlock};
use proptest::prelude::*;
use serde_json::{Value, json};
use tree_json::blocks_json;

/// What a page gets, which is what the tree says.
fn tree(text: &str) -> Value {
    let mut json = Vec::new();
    markdown::write_json(text, &mut json, &mut |_, _| None).unwrap();
    let written = serde_json::from_slice(&json).unwrap();
    assert_eq!(written, blocks_json(&markdown::parse(text).unwrap()), "{text:?}");
    written
}

fn depth(value: &Value) -> usize {
    let children = value.as_array().into_iter().flatten();
    1 + children.map(depth).max().unwrap_or(0)
}

#[test]
fn blocks_and_inlines_have_their_tags() {
    for (text, expected) in [
        ("see `x`", json!([["p", "see ", ["code", "x"]]])),
        ("## a *b*", json!([["h2", "a ", ["em", "b"]]])),
        (
            "**a** ~~b~~\nc  \nd",
            json!([["p", ["strong", "a"], " ", ["del", "b"], "\nc", ["br"], "d"]]),
        ),
        ("> a\n>\n> b", json!([["quote", ["p", "a"], ["p", "b"]]])),
        ("---", json!([["hr"]])),
        ("```rust,ignore\nlet a;\n\n```", json!([["pre", {"language": "rust"}, "let a;\n"]])),
        ("    a\n     b", json!([["pre", "a\n b"]])),
        (
            "- a\n- b\n  1. c",
            json!([["ul", {"tight": true}, ["li", ["p", "a"]],
                ["li", ["p", "b"], ["ol", {"tight": true, "start": 1}, ["li", ["p", "c"]]]]]]),
        ),
        (
            "3. a\n\n4. b",
            json!([["ol", {"tight": false, "start": 3}, ["li", ["p", "a"]], ["li", ["p", "b"]]]]),
        ),
        (
            "- [x] a\n  - [ ] b\n- c",
            json!([["ul", {"tight": true},
                ["li", {"checked": true}, ["p", "a"], ["ul", {"tight": true}, ["li", {"checked": false}, ["p", "b"]]]],
                ["li", ["p", "c"]]]]),
        ),
        (
            "| a | b |\n|:--|--:|\n| 1 | `2` |\n| 3 |",
            json!([["table", {"align": ["left", "right"]},
                ["tr", ["th", "a"], ["th", "b"]],
                ["tr", ["td", "1"], ["td", ["code", "2"]]],
                ["tr", ["td", "3"], ["td"]]]]),
        ),
    ] {
        assert_eq!(tree(text), expected, "{text}");
    }
}

#[test]
fn code_is_coloured_where_it_stands_and_what_was_written_before_stays() {
    let mut seen = Vec::new();
    let mut colour = |code: &str, language: &str| {
        seen.push((language.to_owned(), code.to_owned()));
        let run = CodeRun { class: CodeClass::Keyword, start: 0, length: 3 };
        (language == "rust").then(|| vec![run, CodeRun { start: 10, ..run }])
    };
    let mut json = b"{\"tree\":".to_vec();
    let text = "> - ```rust\n>   let a;\n>   ```\n\n```none\n```\n\n    plain\n";
    markdown::write_json(text, &mut json, &mut colour).unwrap();
    json.push(b'}');
    assert_eq!(
        serde_json::from_slice::<Value>(&json).unwrap(),
        json!({"tree": [
            ["quote", ["ul", {"tight": true}, ["li",
                ["pre", {"language": "rust", "runs": [["keyword", 0, 3], ["keyword", 10, 3]]}, "let a;"]]]],
            ["pre", {"language": "none"}, ""],
            ["pre", "plain"],
        ]})
    );
    let expected = [("rust", "let a;"), ("none", "")]
        .map(|(language, code)| (language.to_owned(), code.to_owned()));
    assert_eq!(seen, expected);
}

#[test]
fn raw_html_is_text() {
    assert_eq!(
        tree("a <b onclick=x>b</b> <!-- c -->"),
        json!([["p", "a <b onclick=x>b</b> <!-- c -->"]])
    );
    assert_eq!(
        tree("<script>\nalert(1)\n</script>\n\nb"),
        json!([["p", "<script>", ["br"], "alert(1)", ["br"], "</script>"], ["p", "b"]])
    );
}

#[test]
fn only_links_to_the_web_and_to_mail_are_links() {
    for target in ["https://e.x/a_b", "http://e.x", "HTTPS://e.x", "mailto:a@e.x"] {
        assert_eq!(tree(&format!("[t]({target})")), json!([["p", ["a", {"to": target}, "t"]]]));
    }
    assert_eq!(
        tree("<a@e.x> <https://e.x>"),
        json!([["p", ["a", {"to": "mailto:a@e.x"}, "a@e.x"], " ", ["a", {"to": "https://e.x"}, "https://e.x"]]])
    );
    for (text, expected) in [
        ("[t](javascript:alert(1))", "t (javascript:alert(1))"),
        ("[t](java&#115;cript:x)", "t (javascript:x)"),
        ("[t](data:text/html,x)", "t (data:text/html,x)"),
        ("[t](file:///etc/passwd)", "t (file:///etc/passwd)"),
        ("[a.rs:1](src/a.rs#L1)", "a.rs:1 (src/a.rs#L1)"),
        ("[a.rs](a.rs)", "a.rs"),
        ("[t](//e.x)", "t (//e.x)"),
        ("[t](https://e.x/&#27;]8;;)", "t (https://e.x/\\x1b]8;;)"),
        ("[t](https://e.x/&#x202e;a)", "t (https://e.x/\\u{202e}a)"),
        ("<javascript:x>", "javascript:x"),
        ("![p](data:image/png;base64,AA)", "p (data:image/png;base64,AA)"),
        ("[t][nowhere]", "[t][nowhere]"),
    ] {
        assert_eq!(tree(text), json!([["p", expected]]), "{text}");
    }
    assert_eq!(
        tree("![a *b*](https://e.x/p.png)"),
        json!([["p", ["image", {"to": "https://e.x/p.png"}, "a b"]]])
    );
}

#[test]
fn a_text_that_looks_like_another_host_has_the_real_one_beside_it() {
    for (text, host) in [
        ("[https://bank.example/x](https://evil.example)", Some("evil.example")),
        ("[bank.example](https://evil.example)", Some("evil.example")),
        ("[bank.example](https://bank.example@evil.example:8/)", Some("evil.example")),
        ("[bank.example](https://BANK.example/a)", None),
        ("[the bank](https://evil.example)", None),
        ("[bank\u{200b}.example](https://evil.example)", Some("evil.example")),
        ("[\u{202e}elpmaxe.knab](https://evil.example)", Some("evil.example")),
        ("[die Straße\nder Bank](https://evil.example)", None),
    ] {
        let tree = tree(text);
        let attributes = tree.pointer("/0/1/1").unwrap();
        assert_eq!(attributes.get("host").and_then(Value::as_str), host, "{text}");
    }
}

#[test]
fn an_address_in_the_text_is_a_link_to_itself() {
    for (text, before, address, behind) in [
        ("see https://e.x/a_b_c?d=1&e.", "see ", "https://e.x/a_b_c?d=1&e", "."),
        ("(https://e.x/a_(b))", "(", "https://e.x/a_(b)", ")"),
        ("a http://localhost:8080/, b", "a ", "http://localhost:8080/", ", b"),
        ("**x** https://e.x!", " ", "https://e.x", "!"),
    ] {
        let tree = tree(text).to_string();
        let expected = json!([before, ["a", {"to": address}, address], behind]).to_string();
        assert!(tree.contains(expected.trim_matches(['[', ']'])), "{tree}");
    }
    for text in ["xhttps://e.x", "https://", "http:/e.x", "javascript://e.x", "https:// a"] {
        assert_eq!(tree(text), json!([["p", text]]));
    }
    assert_eq!(tree("`https://e.x`"), json!([["p", ["code", "https://e.x"]]]));
    let linked = tree("[https://e.x](https://e.x)").to_string();
    assert_eq!(linked.matches("\"a\"").count(), 1, "{linked}");
}

#[test]
fn definitions_of_earlier_parts_hold_and_the_first_wins() {
    let mut definitions = Definitions::default();
    markdown::parse_part("[A  b]: https://one.example\n", &mut definitions).unwrap();
    let later = "[x][a B]\n\n[a b]: https://two.example\n";
    let blocks = markdown::parse_part(later, &mut definitions).unwrap();
    let Some(MarkdownBlock::Paragraph(content)) = blocks.first() else {
        panic!("{blocks:?}");
    };
    assert!(
        matches!(content.as_slice(), [Inline::Link(link)] if link.to == "https://one.example"),
        "{content:?}"
    );
}

#[test]
fn a_long_target_that_is_used_often_does_not_make_a_large_tree() {
    let mut definitions = Definitions::default();
    let definition = format!("[a]: https://e.x/{}\n", "b".repeat(50_000));
    markdown::parse_part(&definition, &mut definitions).unwrap();
    let uses = "[a] ".repeat(10_000);
    for text in [uses.clone(), format!("{definition}\n{uses}")] {
        let blocks = markdown::parse_part(&text, &mut definitions).unwrap();
        let json = blocks_json(&blocks).to_string();
        assert!(json.len() < 1_000_000, "{}", json.len());
    }
}

#[test]
fn nesting_is_bounded_and_no_text_is_lost() {
    for text in [
        format!("{}deep", "> ".repeat(20_000)),
        format!("{}deep", "- ".repeat(20_000)),
        format!("{}deep{}", "*a ".repeat(5_000), " b*".repeat(5_000)),
        format!("{}deep{}", "**a ~~b ".repeat(2_000), " c~~ d**".repeat(2_000)),
        format!("{}deep{}", "[".repeat(5_000), "](https://e.x)".repeat(5_000)),
        format!("{}deep{}", "![".repeat(5_000), "](https://e.x)".repeat(5_000)),
    ] {
        let tree = tree(&text);
        assert!(depth(&tree) <= markdown::DEPTH_MAX + 8, "{}", depth(&tree));
        assert!(tree.to_string().contains("deep"));
    }
}

#[test]
fn a_text_above_the_bound_is_refused_with_the_bound() {
    let text = "a".repeat(markdown::BYTES_MAX + 1);
    let refused = markdown::parse(&text).unwrap_err();
    let max = markdown::BYTES_MAX;
    assert_eq!(refused, MarkupTooLarge { bytes: max + 1, max });
    assert!(refused.to_string().contains("1048576"), "{refused}");
}

/// Every attribute name and tag that is in a tree.
fn collect_names(value: &Value, names: &mut Vec<String>) {
    if let Some([tag, content @ ..]) = value.as_array().map(Vec::as_slice) {
        if let Some(tag) = tag.as_str() {
            names.push(tag.to_owned());
        }
        for child in content {
            names.extend(child.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
            collect_names(child, names);
        }
    }
}

proptest! {
    #[test]
    fn any_text_becomes_a_bounded_tree_of_known_tags(text in "[-#>*_~`\\[\\]()!|:<&; \n\t1.a\u{202e}\u{1b}]{0,200}") {
        let blocks = tree(&text);
        prop_assert!(depth(&blocks) <= markdown::DEPTH_MAX + 8);
        let mut names = Vec::new();
        for block in blocks.as_array().unwrap() {
            collect_names(block, &mut names);
        }
        const KNOWN: &[&str] = &[
            "h1", "h2", "h3", "h4", "h5", "h6", "p", "quote", "ul", "ol", "li", "pre", "table", "tr", "th", "td", "hr", "code",
            "em", "strong", "del", "a", "image", "br", "tight", "start", "checked", "language", "align", "to", "host",
        ];
        for name in names {
            prop_assert!(KNOWN.contains(&name.as_str()), "{name}");
        }
    }
}
