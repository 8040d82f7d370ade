//! Colours: what has which class in each language, how a language is found, bounds and ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use markup::highlight::{self, CodeRun, Language, NoColours, count_in_utf16};
use proptest::prelude::*;

fn highlight(code: &str, language: Language) -> Result<Vec<CodeRun>, NoColours> {
    highlight::highlight(code, language, &mut || false)
}

/// The coloured pieces as `class:text`.
fn pieces(code: &str, language: &str) -> Vec<String> {
    let language = Language::find(language).unwrap();
    let runs = highlight(code, language).unwrap();
    runs.iter()
        .map(|run| {
            let text = &code[run.start..run.start + run.length];
            format!("{}:{text}", run.class.name())
        })
        .collect()
}

/// Codes, and pieces that are coloured in each.
const CASES: &[(&str, &str, &[&str])] = &[
    (
        "rust",
        "// c\nfn main() { let a: u8 = 1; }",
        &["comment:// c", "keyword:fn", "function:main", "type:u8", "number:1"],
    ),
    (
        "ts",
        "const a: Foo = `x${b}y`; class Bar {}",
        &["keyword:const", "type:Foo", "string:`x", "keyword:class"],
    ),
    (
        "tsx",
        "const a: X = <b c=\"d\">{e}</b>;",
        &["keyword:const", "type:X", "tag:b", "attribute:c", "string:\"d\""],
    ),
    (
        "js",
        "function f() { return 'x' + 1 }",
        &["keyword:function", "function:f", "string:'x'", "number:1"],
    ),
    ("jsx", "let a = <b c={1}/>;", &["keyword:let", "tag:b", "attribute:c", "number:1"]),
    (
        "python",
        "def f(a):\n    return \"x\" # c\n",
        &["keyword:def", "function:f", "keyword:return", "string:\"x\"", "comment:# c"],
    ),
    (
        "go",
        "func f() string { return \"x\" }",
        &["keyword:func", "function:f", "type:string", "string:\"x\""],
    ),
    (
        "c",
        "int main(void) { return 0; } /* c */",
        &["type:int", "function:main", "keyword:return", "number:0", "comment:/* c */"],
    ),
    (
        "bash",
        "if true; then echo \"x\"; fi # c",
        &["keyword:if", "function:echo", "string:\"x\"", "comment:# c"],
    ),
    (
        "json",
        "{\"a\": [1, true, \"x\"]}",
        &["property:\"a\"", "number:1", "constant:true", "string:\"x\""],
    ),
    ("toml", "[a]\nb = \"x\" # c\n", &["property:b", "string:\"x\"", "comment:# c"]),
    (
        "html",
        "<p id=\"a\">x</p><script>let a = 1</script><style>a { color: red }</style>",
        &["tag:p", "attribute:id", "keyword:let", "number:1", "property:color"],
    ),
    ("css", "a { color: red; } /* c */", &["tag:a", "property:color", "comment:/* c */"]),
];

#[test]
fn each_language_has_its_colours() {
    for (language, code, expected) in CASES {
        let found = pieces(code, language);
        for piece in *expected {
            assert!(found.iter().any(|found| found == piece), "{language}: {piece} in {found:?}");
        }
    }
}

#[test]
fn a_language_is_found_by_name_alias_and_file() {
    for (name, expected) in [
        ("rs", Some(Language::Rust)),
        ("RUST", Some(Language::Rust)),
        (".py", Some(Language::Python)),
        ("klingon", None),
        ("", None),
    ] {
        assert_eq!(Language::find(name), expected, "{name}");
    }
    for (path, expected) in [
        ("src/a.rs", Some(Language::Rust)),
        ("a/b.test.tsx", Some(Language::Tsx)),
        ("C:\\a\\B.JSON", Some(Language::Json)),
        ("Cargo.lock", Some(Language::Toml)),
        ("/home/a/.bashrc", Some(Language::Bash)),
        (".json", None),
        ("rs", None),
        ("a.rs/README", None),
    ] {
        assert_eq!(Language::of_path(path), expected, "{path}");
    }
}

/// Cancels when it was asked as often as given; returns how often it was asked in all.
fn cancel_after(
    code: &str,
    language: Language,
    times: usize,
) -> (Result<Vec<CodeRun>, NoColours>, usize) {
    let mut asked = 0;
    let result = highlight::highlight(code, language, &mut || {
        asked += 1;
        asked > times
    });
    (result, asked)
}

#[test]
fn work_is_cancelled_whenever_it_is_asked_for() {
    let code = "fn a() { b(\"c\"); }\n".repeat(500);
    let (whole, asked) = cancel_after(&code, Language::Rust, usize::MAX);
    assert!(whole.is_ok() && asked > 100, "{asked}");
    for times in [0, 1, asked / 4, asked / 2, asked * 3 / 4, asked - 1] {
        let (result, asked) = cancel_after(&code, Language::Rust, times);
        assert_eq!(result, Err(NoColours::Cancelled));
        assert_eq!(asked, times + 1, "nothing is done after that");
    }
}

#[test]
fn a_code_above_the_bound_has_no_colours() {
    let code = "a".repeat(highlight::BYTES_MAX + 1);
    let why = highlight(&code, Language::C).unwrap_err();
    assert!(why.to_string().contains("131072"), "{why}");
}

#[test]
fn brackets_that_are_nested_too_deep_have_no_colours() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let colour = |code: String| highlight(&code, Language::Json);
    assert_eq!(colour(nested(highlight::NESTING_MAX)).err(), None);
    assert_eq!(colour(nested(highlight::NESTING_MAX + 1)), Err(NoColours::TooDeep));
}

#[test]
fn a_code_with_zero_bytes_has_no_colours() {
    assert_eq!(highlight("echo \0", Language::Bash), Err(NoColours::NotText));
}

#[test]
fn broken_code_has_colours_too() {
    for code in [
        "fn (",
        "<a>".repeat(50).as_str(),
        "a!{".repeat(50).as_str(),
        "\"${".repeat(50).as_str(),
        "\u{fffd}\u{1}",
    ] {
        for language in
            [Language::Rust, Language::Tsx, Language::Html, Language::Bash, Language::Json]
        {
            assert_eq!(highlight(code, language).err(), None, "{language:?}");
        }
    }
}

#[test]
fn a_page_counts_in_utf16() {
    let code = "// 😀é\nfn a() {}";
    let runs = highlight(code, Language::Rust).unwrap();
    let units: Vec<u16> = code.encode_utf16().collect();
    let converted = count_in_utf16(code, &runs);
    for (run, converted) in runs.iter().zip(&converted) {
        let text = String::from_utf16(&units[converted.start..converted.start + converted.length])
            .unwrap();
        assert_eq!(text, code[run.start..run.start + run.length]);
    }
    assert_eq!(
        serde_json::to_string(&converted[..2]).unwrap(),
        r#"[["comment",0,6],["keyword",7,2]]"#
    );
}

proptest! {
    #[test]
    fn runs_are_in_order_and_on_characters(code in "(fn|let|\"|'|`|\\$\\{|\\}|\\{|//|/\\*|<a>|</a>|é|😀|\n| |1|a|:|#|=){0,60}") {
        for language in [Language::Rust, Language::Tsx, Language::Html, Language::Python, Language::Bash] {
            let mut at = 0;
            for run in highlight(&code, language).unwrap() {
                prop_assert!(run.start >= at && run.length > 0);
                at = run.start + run.length;
                prop_assert!(code.get(run.start..at).is_some());
            }
        }
    }
}
