//! Questions of all kinds, their bounds, and a second client that answers first (W-6).

use anyhow::{Result, ensure};
use browser::{Browser, Host, Page, Screen, labelled};
use serde_json::json;

use crate::script::Script;
use crate::sheet::{in_sheet, open_inbox, sheet_part, wait_for_sheet};
use crate::signed_in::{sign_in, start_session_in};

/// Sets a field as typing would.
async fn fill(page: &Page, label: &str, text: &str) -> Result<()> {
    let field = labelled(label);
    page.wait_for(&field).await?;
    let set = format!(
        "(() => {{ const it = {field}; it.focus(); it.value = {}; it.dispatchEvent(new Event('input', {{bubbles: true}})); }})()",
        json!(text)
    );
    page.evaluate(&set).await.map(drop)
}

async fn tick(page: &Page, label: &str) -> Result<()> {
    page.press(&labelled(label)).await
}

#[tokio::test]
async fn every_kind_of_question_is_answered_within_its_bounds() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write()?;
    let host = Host::start(&["--script", script.path()])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "questions").await?;
    open_inbox(&page, 1).await?;
    page.press(&sheet_or_link()).await?;
    wait_for_sheet(&page, "Before we begin").await?;

    fill(&page, "How many seats?", "13").await?;
    fill(&page, "What may one cost?", "much").await?;
    for prop in ["A skull", "A letter", "A lamp"] {
        tick(&page, prop).await?;
    }
    page.press(&in_sheet("Send")).await?;
    for problem in
        ["An answer is required.", "At most 12.", "This is not a number.", "At most 2 of them."]
    {
        page.wait_for_text(problem).await?;
    }
    let is_focused = format!("document.activeElement === {}", labelled("What shall I call you?"));
    page.wait_for(&is_focused).await?;

    fill(&page, "What shall I call you?", "Ann").await?;
    fill(&page, "How many seats?", "7").await?;
    fill(&page, "What may one cost?", "4.5").await?;
    tick(&page, "The chorus").await?;
    tick(&page, "A lamp").await?;
    tick(&page, "Yes").await?;

    // What was typed is on another device before it is sent.
    let other = browser.page(Screen::DESKTOP).await?;
    sign_in(&other, &host).await?;
    open_inbox(&other, 1).await?;
    other.press(&sheet_or_link()).await?;
    wait_for_sheet(&other, "Before we begin").await?;
    let name = labelled("What shall I call you?");
    other.wait_for(&format!("{name}?.value === 'Ann'")).await?;

    page.command("Page.bringToFront", json!({})).await?;
    page.press(&in_sheet("Send")).await?;
    page.wait_for("!document.querySelector('.sheet[open]')").await?;
    other.wait_for_text("This was answered by someone else or withdrawn.").await?;
    let answers = json!({
        "name": "Ann", "seats": 7, "price": 4.5, "part": "chorus", "props": ["skull", "letter"], "encore": true,
    });
    check_told(&page, &host, &answers).await?;
    other.observed().check(&host.origin, &[])?;
    page.observed().check(&host.origin, &[])
}

fn sheet_or_link() -> String {
    "document.querySelector('.request-link')".to_owned()
}

/// The answers that the agent was told, as the host keeps them.
async fn check_told(page: &Page, host: &Host, answers: &serde_json::Value) -> Result<()> {
    page.evaluate("void (location.hash = '#/')").await?;
    page.press("document.querySelector('.session-link')").await?;
    page.wait_for_text("Told:").await?;
    let sessions = host.run(&["sessions", "--json"])?;
    let session: serde_json::Value =
        serde_json::from_str(sessions.lines().next().unwrap_or("null"))?;
    let uri = session["resource"].as_str().or_else(|| session[0]["resource"].as_str());
    let export = host.run(&["export", uri.unwrap_or_default()])?;
    for (question, value) in answers.as_object().into_iter().flatten() {
        let expected = format!("\"value\":{value}");
        ensure!(
            export.replace(": ", ":").contains(&expected),
            "{question}: {expected} is not in {export}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_page_to_open_is_named_by_its_host_and_can_be_declined() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write()?;
    let host = Host::start(&["--script", script.path()])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "page").await?;
    open_inbox(&page, 1).await?;
    page.press(&sheet_or_link()).await?;
    wait_for_sheet(&page, "Sign in").await?;
    let link = sheet_part("a.button");
    page.wait_for(&format!("{link}?.textContent.trim() === 'Open accounts.example.com'")).await?;
    let target = format!("[{link}.target, {link}.rel].join(' ')");
    let target = page.evaluate(&target).await?;
    ensure!(target == "_blank noopener noreferrer", "{target}");
    page.press(&in_sheet("Decline")).await?;
    page.wait_for_text("Nothing waits for you").await?;
    page.observed().check(&host.origin, &[])
}
