//! Ten thousand turns: opened by the end, scrolled to the first and back, within the bounds of memory (W-8).

use anyhow::{Result, ensure};
use browser::{Browser, Host, Screen};
use serde_json::json;

use crate::script::{IMPORTED, Script, VIEW};
use crate::signed_in::{go, sign_in};

const TURNS: usize = 10_000;
const HEAP_MAX: u64 = 60 << 20;
const NODES_MAX: u64 = 20_000;
const SHOWN_MAX: u64 = 150;

/// Whether the turn with this message is in view.
fn is_seen(number: usize) -> String {
    format!(
        "(() => {{ const view = {VIEW}.getBoundingClientRect(); \
         const turn = [...document.querySelectorAll('.turn:not(.is-dropped)')].find(it => it.querySelector('.message-text')?.textContent === 'message {number}'); \
         const box = turn?.getBoundingClientRect(); return box && box.bottom > view.top && box.top < view.bottom; }})()"
    )
}

#[tokio::test]
async fn ten_thousand_turns_are_scrolled_through() -> Result<()> {
    let Some(browser) = Browser::start().await? else {
        return Ok(()); // it was said
    };
    let script = Script::write(&json!([{"steps": [{"say": ["Heard."]}]}]))?;
    let host = Host::start(&["--script", &script.path()])?;
    script.import_turns(&host, TURNS)?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    go(&page, IMPORTED).await?;
    page.wait_for(&is_seen(TURNS - 1)).await?;
    let shown = page
        .evaluate("document.querySelectorAll('.turn').length")
        .await?;
    ensure!(
        shown.as_u64().is_some_and(|shown| shown < 60),
        "{shown} turns at first"
    );

    // To the first, page by page: each look at the top asks for what is above.
    let mut most = 0;
    while page.evaluate(&is_seen(0)).await? != true {
        let before = page.evaluate(&format!("{VIEW}.scrollHeight")).await?;
        page.evaluate(&format!("void ({VIEW}.scrollTop = 0)"))
            .await?;
        page.wait_for(&format!(
            "{VIEW}.scrollHeight !== {before} || {}",
            is_seen(0)
        ))
        .await?;
        let shown = page
            .evaluate("document.querySelectorAll('.turn').length")
            .await?;
        most = most.max(shown.as_u64().unwrap_or(u64::MAX));
    }
    ensure!(most <= SHOWN_MAX, "{most} turns were on the page");
    let (heap, nodes) = page.memory().await?;
    ensure!(
        heap <= HEAP_MAX && nodes <= NODES_MAX,
        "{heap} bytes, {nodes} nodes"
    );

    // What left memory comes again where somebody looks.
    page.evaluate(&format!(
        "void ({VIEW}.scrollTop = {VIEW}.scrollHeight / 2)"
    ))
    .await?;
    page.wait_for(
        "[...document.querySelectorAll('.turn:not(.is-dropped) .message-text')].some(it => /^message [3-6]\\d{3}$/.test(it.textContent))",
    )
    .await?;
    page.evaluate(&format!("void ({VIEW}.scrollTop = {VIEW}.scrollHeight)"))
        .await?;
    page.wait_for(&is_seen(TURNS - 1)).await?;
    let (heap, nodes) = page.memory().await?;
    ensure!(
        heap <= HEAP_MAX && nodes <= NODES_MAX,
        "{heap} bytes, {nodes} nodes"
    );
    page.observed().check(&host.origin, &[])
}
