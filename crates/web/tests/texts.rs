//! What the page does with texts by itself, held to what ours do: hidden characters are written out alike, accepted completions go
//! along with the same ranges, bytes are counted as characters of the page, fences are found where the parser finds them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use markup::markdown::{self, MarkdownBlock};
use markup::visible;
use proptest::prelude::*;
use rquickjs::loader::{FileResolver, ScriptLoader};
use rquickjs::{CatchResultExt, Context, Function, Module, Runtime};
use serde_json::{Value, json};

/// Views ask for the document when they are loaded; nothing here draws.
const ENTRANCE: &str = r"
globalThis.document = { addEventListener() {} };
globalThis.matchMedia = () => ({ matches: false });
const { writeOut, writeOutName } = await import('app/js/ui/visible.js');
const { countUnits, findFence } = await import('app/js/view/markdown.js');
const { Accepted } = await import('app/js/view/completion.js');
const { joinMessages } = await import('app/js/view/message.js');
const { collectEdits } = await import('app/js/view/changes.js');
const { contextPercent, describeUsage } = await import('app/js/view/usage.js');
const accept = ({ text, accepted }) => {
  const all = new Accepted();
  for (const words of accepted) all.add({ insertText: words, attachment: { type: 'simple', label: words } });
  return all.attachmentsIn(text);
};
const calls = {
  accept, findFence, describeUsage,
  writeOut: (text) => [writeOut(text), writeOutName(text)],
  contextPercent: ({ usages, models }) => contextPercent(usages, models),
  countUnits: ({ text, bytes }) => countUnits(text, bytes),
  collectEdits: (turns) => collectEdits(turns),
  joinMessages: (messages) => joinMessages(...messages),
};
globalThis.run = (what, text) => JSON.stringify(calls[what](JSON.parse(text)));
";

struct Page {
    context: Context,
    _runtime: Runtime,
}

impl Page {
    fn load() -> Self {
        let runtime = Runtime::new().unwrap();
        // Tests run in the directory of their crate.
        let resolver = FileResolver::default().with_path("./");
        runtime.set_loader(resolver, ScriptLoader::default());
        let context = Context::full(&runtime).unwrap();
        context.with(|ctx| {
            let loaded = Module::evaluate(ctx.clone(), "entrance", ENTRANCE)
                .and_then(|promise| promise.finish::<()>());
            if let Err(error) = loaded.catch(&ctx) {
                panic!("the page's modules do not load: {error}");
            }
        });
        Self { context, _runtime: runtime }
    }

    fn call(&self, what: &str, given: &Value) -> Value {
        let text = self.context.with(|ctx| {
            let run: Function = ctx.globals().get("run").unwrap();
            let called: rquickjs::Result<String> = run.call((what, given.to_string()));
            called.catch(&ctx).unwrap_or_else(|error| panic!("{what}: {error}"))
        });
        serde_json::from_str(&text).unwrap()
    }
}

thread_local! {
    static PAGE: Page = Page::load();
}

fn call(what: &str, given: &Value) -> Value {
    PAGE.with(|page| page.call(what, given))
}

/// Texts with what hides, reorders, joins and piles up in them.
const HOSTILE: &str = "([a-z0-9#*{}\\\\ ]|[\u{0}-\u{9f}]|[\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}]|[\u{ad}\u{34f}\u{61c}\u{feff}\u{3164}\u{ffa0}]|[\u{300}-\u{30f}]|[\u{fe00}-\u{fe0f}]|[\u{e0001}\u{e0100}\u{e01f0}]|[äß漢字😀]){0,40}";

proptest! {
    #[test]
    fn hidden_characters_are_written_out_alike(text in HOSTILE) {
        let expected = json!([visible::write_out(&text), visible::write_out_name(&text)]);
        prop_assert_eq!(call("writeOut", &json!(text)), expected);
    }

    #[test]
    fn bytes_are_counted_as_characters_of_the_page(text in "[a-zäß漢😀\\n]{0,30}", cut in 0_usize..40) {
        let cut = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(cut).unwrap_or(text.len());
        let units = text[..cut].encode_utf16().count();
        prop_assert_eq!(call("countUnits", &json!({"text": text, "bytes": cut})), json!(units));
    }
}

#[test]
fn what_was_accepted_goes_along_with_its_range() {
    let at = |line: u32, start: u32, end: u32| json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}});
    for (text, accepted, expected) in [
        ("see @a and @a.", vec!["@a ", "@a"], vec![("@a", at(0, 4, 6)), ("@a", at(0, 11, 13))]),
        ("😀\nä @b, ok", vec!["@b"], vec![("@b", at(1, 2, 4))]),
        // Typed on, typed over, or a command that does not come first any more.
        ("@ab", vec!["@a"], vec![]),
        ("gone", vec!["@a"], vec![]),
        ("first /fix", vec!["/fix"], vec![]),
        ("/fix it", vec!["/fix"], vec![("/fix", at(0, 0, 4))]),
    ] {
        let found: Vec<_> = call("accept", &json!({"text": text, "accepted": accepted}))
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["label"].as_str().unwrap().trim().to_owned(), one["range"].clone()))
            .collect();
        let expected: Vec<_> =
            expected.into_iter().map(|(words, range)| (words.to_owned(), range)).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn two_messages_become_one_with_what_both_carry() {
    let at = |line: u32| json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 2}});
    let first = json!({"text": "@a\nis", "origin": {"kind": "user"}, "model": {"id": "m"}, "attachments": [{"label": "a", "range": at(0)}]});
    let second = json!({"text": "@b", "origin": {"kind": "user"}, "attachments": [{"label": "b", "range": at(0)}, {"label": "c"}]});
    let joined = json!({"text": "@a\nis\n\n@b", "origin": {"kind": "user"}, "model": {"id": "m"},
        "attachments": [{"label": "a", "range": at(0)}, {"label": "b", "range": at(3)}, {"label": "c"}]});
    assert_eq!(call("joinMessages", &json!([first, second])), joined);
    let alone = json!({"text": "", "attachments": [{"label": "c"}]});
    let joined = json!({"text": "@b", "origin": {"kind": "user"},
        "attachments": [{"label": "c"}, {"label": "b", "range": at(0)}, {"label": "c"}]});
    assert_eq!(call("joinMessages", &json!([alone, second])), joined);
    let texts = call("joinMessages", &json!([{"text": "a"}, {"text": "b"}]));
    assert_eq!(texts, json!({"text": "a\n\nb"}));
}

#[test]
fn an_open_fence_is_found_where_the_parser_finds_it() {
    for (text, expected) in [
        ("a\n```rust\nlet a;", 2),
        ("```\na\n```\nb", -1),
        ("````\n```\n", 0),
        ("```a`b\n", -1),
        ("~~~ `x`\n```\n", 0),
        ("    ```\n", -1),
        ("ä\n\n~~~\n~~~ no\n", 3),
    ] {
        assert_eq!(call("findFence", &json!(text)), json!(expected), "{text}");
        // A heading that follows is one, unless it stands in code.
        let more = markdown::parse(&format!("{text}\n\n# x")).unwrap();
        let is_open = !matches!(more.last(), Some(MarkdownBlock::Heading { .. }));
        assert_eq!(is_open, expected >= 0, "{text}");
    }
}

#[test]
fn edits_of_a_file_are_one_change_from_the_first_to_the_last() {
    let side = |uri: &str, content: &str| json!({"uri": uri, "content": {"uri": content}});
    let call_with = |content: Value| json!({"responseParts": [{"kind": "toolCall", "toolCall": {"content": content}}]});
    let edit =
        |before: Value, after: Value| json!({"type": "fileEdit", "before": before, "after": after});
    let turns = json!([
        call_with(json!([
            edit(side("a", "1"), side("a", "2")),
            edit(side("c", "1"), side("c", "2"))
        ])),
        call_with(json!([
            edit(side("a", "2"), side("b", "3")),
            edit(side("c", "2"), side("c", "1"))
        ])),
    ]);
    let expected = json!([{"before": side("a", "1"), "after": side("b", "3"), "steps": 2}]);
    assert_eq!(call("collectEdits", &turns), expected);
}

#[test]
fn what_a_chat_used_is_added_up_as_far_as_it_is_reported() {
    let turn = json!({"inputTokens": 900, "outputTokens": 50, "_meta": {"turn": {"inputTokens": 12_000, "cacheReadTokens": 9_000, "outputTokens": 1_100},
        "cost": {"amount": 0.25, "currency": "USD"}}});
    let plain = json!({"inputTokens": 400, "outputTokens": 100, "_meta": {"cost": {"amount": 3.0, "currency": "EUR"}}});
    for (usages, expected) in [
        (json!([]), ""),
        (json!([{"model": "m"}]), ""),
        (json!([plain]), "400 in, 100 out · 3.00 EUR"),
        // Another currency is not added up.
        (json!([turn, turn, plain]), "24.4k in (18.0k cached), 2.3k out · $0.500"),
    ] {
        assert_eq!(call("describeUsage", &usages), json!(expected), "{usages}");
    }
}

#[test]
fn how_full_the_context_is_is_known_or_not_told() {
    let models = json!([{"id": "m", "maxContextWindow": 1_000}, {"id": "n"}]);
    for (usages, expected) in [
        (json!([]), Value::Null),
        (json!([{"model": "m"}]), Value::Null),
        (json!([{"model": "n", "inputTokens": 5}]), Value::Null),
        (json!([{"inputTokens": 5}]), Value::Null),
        (
            json!([{"model": "m", "inputTokens": 900}, {"model": "m", "inputTokens": 301, "outputTokens": 79}]),
            json!(38),
        ),
        (json!([{"model": "m", "inputTokens": 301}, {}]), json!(31)),
        (
            json!([{"model": "m", "inputTokens": 1, "_meta": {"contextUsed": 50, "contextSize": 200}}]),
            json!(25),
        ),
        (json!([{"model": "m", "inputTokens": 100_000}]), json!(999)),
    ] {
        let given = json!({"usages": usages, "models": models});
        assert_eq!(call("contextPercent", &given), expected, "{usages}");
    }
}
