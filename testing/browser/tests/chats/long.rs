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
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write(&json!([{"steps": [{"say": ["Heard."]}]}]))?;
    let host = Host::start(&["--script", &script.path()])?;
    script.import_turns(&host, TURNS)?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    go(&page, IMPORTED).await?;
    page.wait_for(&is_seen(TURNS - 1)).await?;
    let shown = page.evaluate("document.querySelectorAll('.turn').length").await?;
    ensure!(shown.as_u64().is_some_and(|shown| shown < 60), "{shown} turns at first");

    // To the first, page by page: each look at the top asks for what is above.
    let mut most = 0;
    while page.evaluate(&is_seen(0)).await? != true {
        let before = page.evaluate(&format!("{VIEW}.scrollHeight")).await?;
        page.evaluate(&format!("void ({VIEW}.scrollTop = 0)")).await?;
        page.wait_for(&format!("{VIEW}.scrollHeight !== {before} || {}", is_seen(0))).await?;
        let shown = page.evaluate("document.querySelectorAll('.turn').length").await?;
        most = most.max(shown.as_u64().unwrap_or(u64::MAX));
    }
    ensure!(most <= SHOWN_MAX, "{most} turns were on the page");
    let (heap, nodes) = page.memory().await?;
    ensure!(heap <= HEAP_MAX && nodes <= NODES_MAX, "{heap} bytes, {nodes} nodes");

    // What left memory comes again where somebody looks.
    page.evaluate(&format!("void ({VIEW}.scrollTop = {VIEW}.scrollHeight / 2)")).await?;
    page.wait_for(
        "[...document.querySelectorAll('.turn:not(.is-dropped) .message-text')].some(it => /^message [3-6]\\d{3}$/.test(it.textContent))",
    )
    .await?;
    page.evaluate(&format!("void ({VIEW}.scrollTop = {VIEW}.scrollHeight)")).await?;
    page.wait_for(&is_seen(TURNS - 1)).await?;
    let (heap, nodes) = page.memory().await?;
    ensure!(heap <= HEAP_MAX && nodes <= NODES_MAX, "{heap} bytes, {nodes} nodes");
    page.observed().check(&host.origin, &[])
}

/// Cuts the imported chat back to a turn, as another client.
fn truncate(host: &Host, turn: &str) -> String {
    let url = host.origin.replacen("http", "ws", 1);
    let action = json!({"type": "chat/truncated", "turnId": turn});
    let params = json!({"channel": "ahp-chat:/imported", "clientSeq": 1, "action": action});
    let first = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "other", "initialSubscriptions": ["ahp-chat:/imported"]});
    format!(
        "new Promise((done, fail) => {{ const socket = new WebSocket('{url}/ahp', ['ahp', 'tkn.{}']); socket.onclose = fail; \
         socket.onopen = () => socket.send(JSON.stringify({{jsonrpc: '2.0', id: 1, method: 'initialize', params: {first}}})); \
         socket.onmessage = ({{data}}) => {{ const heard = JSON.parse(data); \
         if (heard.id === 1) socket.send(JSON.stringify({{jsonrpc: '2.0', method: 'dispatchAction', params: {params}}})); \
         if (data.includes('chat/truncated')) done(data); }}; }})",
        host.token
    )
}

#[tokio::test]
async fn a_chat_is_cut_back_to_a_turn_that_left_memory() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write(&json!([{"steps": [{"say": ["Heard."]}]}]))?;
    let host = Host::start(&["--script", &script.path()])?;
    script.import_turns(&host, 1_300)?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    go(&page, IMPORTED).await?;
    page.wait_for(&is_seen(1_299)).await?;
    while page.evaluate(&is_seen(0)).await? != true {
        let before = page.evaluate(&format!("{VIEW}.scrollHeight")).await?;
        page.evaluate(&format!("void ({VIEW}.scrollTop = 0)")).await?;
        page.wait_for(&format!("{VIEW}.scrollHeight !== {before} || {}", is_seen(0))).await?;
    }
    let heard = page.evaluate(&truncate(&host, "t1250")).await?;
    ensure!(!heard.to_string().contains("rejection"), "{heard}");
    // The chat is subscribed to anew: its end is there whole.
    page.wait_for("[...document.querySelectorAll('.turn .message-text')].at(-1)?.textContent === 'message 1250'")
        .await?;
    let shown = "[...document.querySelectorAll('.turn .message-text')].map(it => it.textContent)";
    let texts = page.evaluate(shown).await?;
    let texts = texts.as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(texts.last() == Some(&json!("message 1250")), "{texts:?}");
    ensure!(!texts.contains(&json!("")), "all of it is there: {texts:?}");
    // What is older can be reached from there.
    page.evaluate(&format!("void ({VIEW}.scrollTop = 0)")).await?;
    page.wait_for("[...document.querySelectorAll('.turn .message-text')].some(it => Number(it.textContent.replace('message ', '')) <= 1225)")
        .await?;
    page.observed().check(&host.origin, &[])
}
