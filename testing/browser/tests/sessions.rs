//! What can be done with sessions, chats and turns on the page: renamed, archived, found, forked, switched between and deleted; searched,
//! branched and taken back; written to with suggestions, under other permissions.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button, css, labelled};
use common::{open_session, send, sign_in};
use serde_json::{Value, json};
use testkit::{Answer, ModelServer};

/// An entry of the menu that is open.
fn entry(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('.menu-entry')].find(it => it.firstChild.textContent === {})",
        json!(label)
    )
}

/// Chooses something in the menu of a session of the list.
async fn choose(page: &Page, title: &str, label: &str) -> Result<()> {
    page.press(&button(&format!("More about {title}"))).await?;
    page.press(&entry(label)).await
}

/// The titles of the list.
async fn lists(page: &Page, titles: &[&str]) -> Result<()> {
    page.wait_for(&format!(
        "JSON.stringify([...document.querySelectorAll('.session-title')].map(it => it.textContent).sort()) === {}",
        json!(json!(titles).to_string())
    ))
    .await
}

fn new_session(host: &Host, message: &str) -> Result<String> {
    let printed = host.run(&["send", "--json", message])?;
    let last: Value = serde_json::from_str(printed.lines().last().context("a line")?)?;
    Ok(last["session"].as_str().context("a session")?.to_owned())
}

fn in_dialog(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('dialog[open] button')].find(it => it.textContent === {})",
        json!(text)
    )
}

/// A host whose agent asks this model, which hears everything.
async fn start() -> Result<(Host, ModelServer)> {
    let model = ModelServer::start().await;
    model.behaves(|_| Answer::streams(["Heard."]));
    let host = Host::start(&["--model", &format!("{}#echo", model.url())])?;
    Ok((host, model))
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_renamed_archived_forked_and_deleted() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (host, _model) = start().await?;
    for message in ["alpha", "beta"] {
        new_session(&host, message)?;
    }
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    lists(&page, &["alpha", "beta"]).await?;
    choose(&page, "alpha", "Rename").await?;
    page.evaluate("document.querySelector('#dialog-text').value = ''").await?;
    page.type_into(&css("#dialog-text"), "gamma").await?;
    page.press(&in_dialog("Rename")).await?;
    lists(&page, &["beta", "gamma"]).await?;

    // What is archived is out of sight, and found again.
    choose(&page, "gamma", "Archive").await?;
    lists(&page, &["beta"]).await?;
    page.type_into(&labelled("Search titles and folders"), "gam").await?;
    lists(&page, &["gamma"]).await?;
    page.wait_for_text("Archived").await?;
    choose(&page, "gamma", "Restore from the archive").await?;
    page.evaluate("(() => { const field = document.querySelector('.search-field'); field.value = ''; field.dispatchEvent(new Event('input')); })()")
        .await?;
    lists(&page, &["beta", "gamma"]).await?;

    choose(&page, "gamma", "Fork").await?;
    page.wait_for(
        "document.querySelector('.chat-tab[aria-current]')?.textContent.includes('branch')",
    )
    .await?;
    page.wait_for_text("Heard.").await?;
    page.press(&button("Back to the sessions")).await?;

    // Deleting asks first.
    choose(&page, "beta", "Delete …").await?;
    page.press(&in_dialog("Cancel")).await?;
    lists(&page, &["beta", "gamma"]).await?;
    choose(&page, "beta", "Delete …").await?;
    page.press(&in_dialog("Delete")).await?;
    lists(&page, &["gamma"]).await?;
    let left: Value = serde_json::from_str(&host.run(&["sessions", "--json"])?)?;
    ensure!(left.as_array().map(Vec::len) == Some(1) && left[0]["title"] == "gamma", "{left}");
    page.observed().check(&host.origin, &[])
}

/// How many turns the chat shows.
async fn has_turns(page: &Page, count: usize) -> Result<()> {
    page.wait_for(&format!(
        "document.querySelectorAll('.turn[data-state=complete]').length === {count}"
    ))
    .await
}

/// Chooses something in the menu of the first turn.
async fn choose_of_first_turn(page: &Page, label: &str) -> Result<()> {
    page.press("document.querySelector('.turn [aria-label=\"More about this turn\"]')").await?;
    page.press(&entry(label)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_searched_branched_and_taken_back() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (host, _model) = start().await?;
    let session = new_session(&host, "alpha")?;
    new_session(&host, "another session")?;
    let page = sign_in(&browser, &host, Screen::DESKTOP).await?;
    open_session(&page, &session).await?;
    for (count, message) in [(2, "beta"), (3, "gamma")] {
        send(&page, message).await?;
        has_turns(&page, count).await?;
    }

    // The browser's own search would see only what is on the page.
    page.key("f", 2).await?;
    page.type_into(&labelled("Find in this chat"), "heard").await?;
    page.wait_for_text("3 of 3 turns").await?;
    page.key("Enter", 0).await?;
    page.wait_for_text("2 of 3 turns").await?;
    page.wait_for(
        "[...CSS.highlights.get('find-current') ?? []].some(it => it.toString() === 'Heard')",
    )
    .await?;
    page.key("Escape", 0).await?;
    page.wait_for("!document.querySelector('.find').checkVisibility()").await?;

    choose_of_first_turn(&page, "Branch from here").await?;
    page.wait_for("location.hash.includes('/c/')").await?;
    has_turns(&page, 1).await?;
    page.press("document.querySelector('.chat-tab')").await?;
    has_turns(&page, 3).await?;
    choose_of_first_turn(&page, "Rewind to here").await?;
    page.press(&in_dialog("Rewind")).await?;
    page.wait_for("!document.querySelector('.transcript').textContent.includes('gamma')").await?;
    page.wait_for_text("alpha").await?;

    // Another session is some letters away.
    page.key("k", 2).await?;
    page.wait_for(&css("dialog.switcher[open]")).await?;
    page.command("Input.insertText", json!({"text": "anoth"})).await?;
    page.wait_for("document.querySelectorAll('.switcher-entry').length === 1").await?;
    page.key("Enter", 0).await?;
    page.wait_for("document.querySelector('.session-names h1')?.textContent === 'another session'")
        .await?;
    page.observed().check(&host.origin, &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_written_with_suggestions_and_under_other_permissions() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let (host, _model) = start().await?;
    let session = new_session(&host, "alpha")?;
    std::fs::write(host.home().join("notes.md"), "# Notes\n")?;
    let page = sign_in(&browser, &host, Screen::DESKTOP).await?;
    open_session(&page, &session).await?;
    let field = labelled("Message");

    page.type_into(&field, "/").await?;
    page.wait_for("[...document.querySelectorAll('.completion')].some(it => it.textContent.includes('/rewind'))")
        .await?;
    page.key("Escape", 0).await?;
    page.wait_for("!document.querySelector('.completion')?.checkVisibility()").await?;
    page.evaluate(&format!("{field}.value = ''")).await?;
    page.type_into(&field, "read @note").await?;
    page.wait_for("document.querySelector('.completion[aria-selected=true]')?.textContent.includes('notes.md')")
        .await?;
    page.key("Tab", 0).await?;
    page.wait_for(&format!("{field}.value.includes('notes.md')")).await?;
    page.press(&css(".composer-bar button[type=submit]")).await?;
    page.wait_for("[...document.querySelectorAll('.message .chip-inline')].some(it => it.textContent.includes('notes.md'))")
        .await?;

    // What is named beside the model counts: it changes when the host has confirmed it.
    page.wait_for("document.querySelector('.picker').textContent.includes('Ask')").await?;
    page.press(&css(".picker")).await?;
    let approvals = labelled("Approvals");
    page.wait_for(&approvals).await?;
    page.evaluate(&format!(
        "(() => {{ const it = {approvals}; it.value = '\"plan\"'; it.dispatchEvent(new Event('change')); }})()"
    ))
    .await?;
    page.wait_for("document.querySelector('.picker').textContent.includes('Plan')").await?;
    let told = host.run(&["export", &session])?;
    ensure!(told.contains("\"approvals\":\"plan\""), "{told}");
    page.observed().check(&host.origin, &[])
}
