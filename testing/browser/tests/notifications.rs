//! Who does not look at the page is told what needs them: by a notification, the title and the badge; and no more once it is answered.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button};
use common::{IS_LIVE, sign_in};
use serde_json::json;

const SCRIPT: &str = r#"{"scenes": [
    {"when": "^call", "steps": [
        {"tool": {"name": "list_files", "display": "List files", "input": {"directory": "."}, "confirm": "ask"}},
        {"say": ["Decided."]}]},
    {"steps": [{"say": ["Heard."]}]}]}"#;

/// What the browser shows outside of the page.
const SHOWN: &str = "navigator.serviceWorker.ready.then(it => it.getNotifications()).then(all => all.map(it => [it.title, it.data.hash]))";

/// Starts a session by script: a browser gives no input to a page that is behind another.
async fn start_session(page: &Page, message: &str) -> Result<()> {
    page.evaluate("location.hash = '#/new'").await?;
    let message_field = "document.querySelector('#new-message')";
    page.wait_for(&format!("document.querySelector('#new-agent option') && {message_field}"))
        .await?;
    let start = button("Start");
    page.evaluate(&format!(
        "(() => {{ const field = {message_field}; field.value = {}; field.dispatchEvent(new Event('input', {{bubbles: true}})); {start}.click(); }})()",
        json!(message)
    ))
    .await?;
    page.wait_for("location.hash.startsWith('#/s/')").await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_look_is_told_once_and_led_to_what_waits() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let script = directory.path().join("script.json");
    std::fs::write(&script, SCRIPT)?;
    let host = Host::start(&["--script", script.to_str().context("a path")?])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    // Nothing is asked for before a button is pressed.
    ensure!(page.evaluate("Notification.permission").await? != "granted", "not yet");
    browser.allow(&host.origin, "notifications").await?;
    page.evaluate("location.hash = '#/settings'").await?;
    page.press(&button("Turn on")).await?;
    page.wait_for(&button("Turn off")).await?;
    page.evaluate("location.hash = '#/'").await?;
    page.wait_for(IS_LIVE).await?;
    page.evaluate(
        "(() => { window.badges = []; navigator.setAppBadge = async (count) => { window.badges.push(count); }; \
         navigator.clearAppBadge = async () => { window.badges.push(0); }; })()",
    )
    .await?;

    // Whoever looks at the page needs no notification.
    let other = browser.page(Screen::PHONE).await?;
    other.go_to(&host.origin).await?;
    other.wait_for(IS_LIVE).await?;
    page.command("Page.bringToFront", json!({})).await?;
    page.wait_for("document.visibilityState === 'visible'").await?;
    other.wait_for("document.visibilityState === 'hidden'").await?;
    start_session(&other, "call the first").await?;
    for tab in [&page, &other] {
        tab.wait_for("document.title.startsWith('(1)')").await?;
    }
    page.wait_for("window.badges.at(-1) === 1").await?;
    ensure!(page.evaluate(SHOWN).await? == json!([]), "somebody looks");

    // Nobody does: both tabs are behind a third.
    let _elsewhere = browser.page(Screen::PHONE).await?;
    for tab in [&page, &other] {
        tab.wait_for("document.visibilityState === 'hidden'").await?;
    }
    start_session(&other, "call the second").await?;
    page.wait_for("document.title.startsWith('(2)') && window.badges.at(-1) === 2").await?;
    // The one of the second call, told once by two tabs; the worker takes what it is told in order, so none of the first comes later.
    page.wait_for(&format!("({SHOWN}).then(all => all.length === 1)")).await?;
    let shown = page.evaluate(SHOWN).await?;
    ensure!(
        shown[0][0].as_str().is_some_and(|title| title.starts_with("Approval needed: ")),
        "{shown}"
    );
    let hash = shown[0][1].as_str().context("where it leads")?;
    ensure!(hash.starts_with("#/inbox"), "{shown}");

    // It leads to what waits.
    let go = json!({"kind": "go", "hash": hash});
    page.evaluate(&format!(
        "navigator.serviceWorker.dispatchEvent(new MessageEvent('message', {{data: {go}}}))"
    ))
    .await?;
    page.wait_for("document.querySelector('dialog.sheet[open] [data-choice=approve]')").await?;

    // What was answered elsewhere is withdrawn.
    other.command("Page.bringToFront", json!({})).await?;
    other.press(&button("Review")).await?;
    let approve = "document.querySelector('dialog.sheet[open] .sheet-foot[data-armed=yes] [data-choice=approve]:enabled')";
    other.press(approve).await?;
    page.wait_for("document.title.startsWith('(1)') && window.badges.at(-1) === 1").await?;
    page.wait_for(&format!("({SHOWN}).then(all => all.length === 0)")).await?;
    for page in [&page, &other] {
        page.observed().check(&host.origin, &[])?;
    }
    Ok(())
}
