//! What our reducers and our replica made of 200 recorded sequences, made again by the page's in a real browser. The recordings are
//! held to the generators, and run in QuickJS, by the tests of `crates/web`.

use std::path::Path;

use anyhow::{Context as _, Result};
use browser::{Browser, Host, Screen};
use serde_json::json;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/web/tests");

/// Plays a file of sequences with the modules that the host serves.
fn replay(runner: &str, recorded: &str) -> String {
    format!(
        "(async () => {{
            {runner}
            const app = document.querySelector('script[type=module][src*=\"/app/\"]').src.replace(/js\\/entry\\.js.*/, 'js/wire/');
            const [mirror, envelope, replica, later] = await Promise.all(
                ['mirror.js', 'envelope.js', 'replica.js', 'reduce/later.js'].map((name) => import(app + name)));
            mirror.addKinds(later.LATER_KINDS);
            return replayAll({{ ...mirror, ...envelope, ...replica }}, {recorded});
        }})()"
    )
}

#[tokio::test]
async fn recorded_sequences_end_alike_in_a_browser() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = browser.page(Screen::PHONE).await?;
    page.go_to(&format!("{}/", host.origin)).await?;
    let tests = Path::new(TESTS);
    let runner = std::fs::read_to_string(tests.join("engine/replay.js"))?
        .replace("export function", "function");
    let mut count = 0;
    for file in ["reducers.json", "replicas.json"] {
        let recorded = std::fs::read_to_string(tests.join("recorded").join(file))?;
        let played = page.evaluate(&replay(&runner, &recorded)).await?;
        assert_eq!(played["wrong"], json!([]), "{file}");
        count += played["count"].as_u64().context("a number")?;
    }
    assert_eq!(count, 240);
    page.observed().check(&host.origin, &[])
}
