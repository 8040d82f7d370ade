//! W-2 and W-3: what the page shows is what the host has, also when the host is killed in mid-answer.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Network, Page, Screen, button, labelled};
use common::{IS_LIVE, LOST_CONNECTION, open_session, send, sign_in};
use serde_json::{Value, json};

const SCRIPT: &str = r#"{"scenes": [
    {"when": "^slow", "steps": [
        {"stream": {"chunks": 400, "size": 12, "every_ms": 40, "first": "It begins. ", "end": " "}},
        {"say": ["The end."]}]},
    {"when": "^call", "steps": [
        {"tool": {"name": "list_files", "display": "List files", "input": {"directory": "."}, "confirm": "ask"}},
        {"say": ["Decided: {{last}}"]}]},
    {"steps": [{"say": ["Heard: {{text}}"]}]}]}"#;

fn start() -> Result<(Host, tempfile::TempDir)> {
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.json");
    std::fs::write(&script, SCRIPT)?;
    let host = Host::start(&["--script", script.to_str().context("a path")?])?;
    Ok((host, directory))
}

fn new_session(host: &Host, message: &str) -> Result<String> {
    let printed = host.run(&["send", "--json", message])?;
    let last: Value = serde_json::from_str(printed.lines().last().context("a line")?)?;
    Ok(last["session"].as_str().context("a session")?.to_owned())
}

/// The texts of the agent as `export` writes them, each with its turn.
fn exported(host: &Host, session: &str) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for line in host.run(&["export", session])?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let data = &row["data"];
        if let Some(turn) = data["message"].as_str().and_then(|it| it.strip_suffix("/assistant"))
            && data["type"] == "markdown"
        {
            let text = data["data"]["content"].as_str().context("a text")?;
            texts.push((turn.to_owned(), text.to_owned()));
        }
    }
    Ok(texts)
}

/// Without what is between words: how that is drawn is the page's own.
fn words(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Waits until every text that is exported is shown in its turn.
async fn shows_what_is_exported(page: &Page, host: &Host, session: &str) -> Result<()> {
    let texts = exported(host, session)?;
    ensure!(!texts.is_empty(), "there is something to compare");
    for (turn, text) in texts {
        let shown = format!(
            "(document.querySelector('[data-turn=' + JSON.stringify({}) + ']')?.textContent ?? '').replace(/\\s+/g, '').includes({})",
            json!(turn),
            json!(words(&text))
        );
        page.wait_for(&shown).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_started_and_its_stream_is_shown_as_it_is_stored() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (host, _script) = start()?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    page.evaluate("location.hash = '#/new'").await?;
    page.wait_for("document.querySelector('#new-agent option[value=scripted]')").await?;
    page.evaluate("(() => { const it = document.querySelector('#new-agent'); it.value = 'scripted'; it.dispatchEvent(new Event('change')); })()").await?;
    page.type_into(&labelled("First message"), "hello there").await?;
    page.press(&button("Start")).await?;
    page.wait_for_text("Heard: hello there").await?;
    send(&page, "slow please").await?;
    page.wait_for_text("It begins.").await?;
    page.wait_for_text("The end.").await?;
    let listed: Value = serde_json::from_str(&host.run(&["sessions", "--json"])?)?;
    let session = listed[0]["resource"].as_str().context("a session")?;
    shows_what_is_exported(&page, &host, session).await?;
    page.observed().check(&host.origin, &[])
}

/// Notes the number of every action that a page is told, over all its connections, live or in a replay.
const NOTE_SEQS: &str = "(() => { window.seqs = []; const Real = WebSocket; \
    window.WebSocket = class extends Real { constructor(...args) { super(...args); this.addEventListener('message', ({ data }) => { \
    const { method, params, result } = JSON.parse(data); const told = method === 'action' ? [params] : result?.actions ?? []; \
    for (const { serverSeq, rejectionReason } of told) if (rejectionReason === undefined) window.seqs.push(serverSeq); }); } }; })()";

/// No action was told twice, and each came behind those before it.
async fn check_seqs(page: &Page) -> Result<()> {
    let seqs = page.evaluate("window.seqs").await?;
    let seqs: Vec<i64> = serde_json::from_value(seqs)?;
    ensure!(seqs.len() > 10, "there is something to compare: {seqs:?}");
    ensure!(seqs.is_sorted_by(|one, next| one < next), "told twice, or in another order: {seqs:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_killed_in_mid_answer_comes_back_with_nothing_lost_or_doubled() -> Result<()>
{
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (mut host, _script) = start()?;
    let session = new_session(&host, "hello")?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    let note = json!({"source": NOTE_SEQS});
    page.command("Page.addScriptToEvaluateOnNewDocument", note).await?;
    page.reload().await?;
    page.wait_for(IS_LIVE).await?;
    open_session(&page, &session).await?;
    send(&page, "slow please").await?;
    page.wait_for("document.body.innerText.split('It begins.').at(-1).length > 200").await?;
    host.kill()?;
    page.wait_for(&format!("!{IS_LIVE}")).await?;
    host.start_again()?;
    page.wait_for(IS_LIVE).await?;
    page.wait_for(&button("Resume")).await?;
    shows_what_is_exported(&page, &host, &session).await?;
    page.press(&button("Resume")).await?;
    page.wait_for_text("The end.").await?;
    shows_what_is_exported(&page, &host, &session).await?;
    let begins = page.evaluate("document.body.innerText.split('The end.').length - 1").await?;
    ensure!(begins == 1, "nothing is shown twice: {begins}");
    check_seqs(&page).await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_a_killed_host_may_not_have_heard_is_not_shown_as_given() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (mut host, _script) = start()?;
    let session = new_session(&host, "hello")?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    open_session(&page, &session).await?;
    send(&page, "call it").await?;
    page.press(&button("Review")).await?;
    // It waits for the guard against taps that were meant for something else.
    let approve =
        "document.querySelector('.sheet-foot[data-armed=yes] [data-choice=approve]:enabled')";
    page.wait_for(approve).await?;
    host.freeze()?;
    page.press(approve).await?;
    // However long this machine takes: it is not shown as given.
    page.wait_for(
        "/Waiting for the host to confirm|Not confirmed yet/.test(document.body.innerText)",
    )
    .await?;
    host.kill()?;
    host.start_again()?;
    page.wait_for(IS_LIVE).await?;
    // The host ended the turn that the kill cut off; it goes on and asks again.
    page.wait_for_text("answered by someone else or withdrawn").await?;
    page.key("Escape", 0).await?;
    page.wait_for(&button("Resume")).await?;
    ensure!(!page.text().await?.contains("Decided"), "nothing was decided");
    page.press(&button("Resume")).await?;
    page.wait_for_text("Decided").await?;
    let text = page.text().await?;
    ensure!(
        !text.contains("\"approved\":true"),
        "a call ran on an approval that the host never confirmed: {text}"
    );
    shows_what_is_exported(&page, &host, &session).await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_was_lost_is_not_known_and_is_given_again() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (host, _script) = start()?;
    let session = new_session(&host, "hello")?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    open_session(&page, &session).await?;
    send(&page, "call it").await?;
    page.press(&button("Review")).await?;
    let approve =
        "document.querySelector('.sheet-foot[data-armed=yes] [data-choice=approve]:enabled')";
    page.wait_for(approve).await?;
    // The network loses the answer, and then everything.
    page.evaluate(
        "(() => { const send = window.send = WebSocket.prototype.send; \
         WebSocket.prototype.send = function (text) { if (!text.includes('chat/toolCallConfirmed')) send.call(this, text); }; })()",
    )
    .await?;
    page.press(approve).await?;
    page.wait_for_text("Waiting for the host to confirm").await?;
    page.set_network(Network::Offline).await?;
    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))").await?;
    page.wait_for_text("Offline").await?;
    host.thaw()?;
    // The chat goes on meanwhile: what was decided may not be meant for what it is now.
    let other = browser.page(Screen::PHONE).await?;
    other.go_to(&host.origin).await?;
    other.wait_for(IS_LIVE).await?;
    open_session(&other, &session).await?;
    send(&other, "then this").await?;
    other.wait_for("document.querySelector('.queue-item')").await?;
    page.evaluate("void (WebSocket.prototype.send = window.send)").await?;
    page.set_network(Network::Good).await?;
    page.wait_for_text("Your answer may not have arrived").await?;
    // A browser gives no input to a page that is behind another.
    page.command("Page.bringToFront", json!({})).await?;
    ensure!(!page.text().await?.contains("Decided"), "nothing was decided");
    page.wait_for(approve).await?;
    page.press(approve).await?;
    page.wait_for("document.querySelector('#main').textContent.includes('Decided')").await?;
    other.observed().check(&host.origin, &LOST_CONNECTION)?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}
