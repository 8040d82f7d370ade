//! Requests of two sessions and a worker, answered in a row by touch and by keyboard (W-5).

use anyhow::{Result, ensure};
use browser::{Browser, Host, Page, Screen, button, css};
use serde_json::json;

use crate::script::Script;
use crate::sheet::{in_sheet, open_inbox, sheet_part, wait_for_sheet};
use crate::signed_in::{go, sign_in, start_session_in};

async fn start(screen: Screen) -> Result<Option<(Browser, Host, Page, Script)>> {
    let Some(browser) = Browser::start().await? else { return Ok(None) };
    let script = Script::write()?;
    let host = Host::start(&["--script", script.path()])?;
    let page = browser.page(screen).await?;
    sign_in(&page, &host).await?;
    for message in ["options", "edit", "worker"] {
        start_session_in(&page, None, message).await?;
    }
    Ok(Some((browser, host, page, script)))
}

/// What the agent was told in the session with this request.
async fn told(page: &Page, message: &str) -> Result<String> {
    go(page, "#/").await?;
    let find = "[...document.querySelectorAll('.session-link')].map(it => it.getAttribute('href'))";
    page.wait_for(&format!("{find}.length === 3")).await?;
    let links = page.evaluate(find).await?;
    for link in links.as_array().into_iter().flatten() {
        go(page, link.as_str().unwrap_or_default()).await?;
        page.wait_for("document.querySelector('#main')?.innerText.includes('Told:')").await?;
        let text = page
            .evaluate("document.querySelector('#main').innerText")
            .await?
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if text.lines().any(|line| line.trim() == message) {
            return Ok(text.replace(char::is_whitespace, ""));
        }
    }
    anyhow::bail!("no session begins with {message}")
}

#[tokio::test]
async fn requests_of_all_sessions_and_workers_are_answered_in_a_row_by_touch() -> Result<()> {
    let Some((_browser, host, page, _script)) = start(Screen::PHONE).await? else { return Ok(()) };
    open_inbox(&page, 3).await?;
    let inbox = page.text().await?;
    for shown in ["make applause", "poem.txt", "worker: counter"] {
        ensure!(inbox.contains(shown), "{shown} is not in {inbox}");
    }
    page.wait_for("document.title.startsWith('(3) ')").await?;

    // A tap in the moment in which the sheet appears was not meant for it.
    let early = "new Promise(done => { \
        new MutationObserver((_, it) => { const button = document.querySelector('.sheet-foot .primary'); \
            if (button) { it.disconnect(); button.click(); done(document.querySelector('.sheet').dataset.outcome ?? 'none'); } }) \
            .observe(document.querySelector('.sheet-foot'), {childList: true}); \
        document.querySelector('.request-link').click(); })";
    let outcome = page.evaluate(early).await?;
    ensure!(outcome == "none", "the tap counted: {outcome}");
    wait_for_sheet(&page, "Run in a terminal").await?;
    let focus = page.evaluate("document.activeElement.className").await?;
    ensure!(focus == "sheet-title", "the focus is on {focus}");

    page.press(&in_sheet("More choices")).await?;
    page.press(&button("Allow in this session")).await?;

    wait_for_sheet(&page, "Write a file").await?;
    page.wait_for(&format!("{}?.innerText.includes('The kettle is on')", sheet_part(".diff")))
        .await?;
    page.press(&in_sheet("Edit")).await?;
    let field = sheet_part("#edited-input");
    page.evaluate(&format!("{field}.value = '{{\"path\":'")).await?;
    page.press(&in_sheet("Approve")).await?;
    page.wait_for_text("This is not JSON").await?;
    page.evaluate(&format!("{field}.value = '{{\"path\": \"song.txt\"}}'")).await?;
    page.press(&in_sheet("Approve")).await?;

    wait_for_sheet(&page, "Count the seats").await?;
    page.press(&in_sheet("More choices")).await?;
    page.press(&button("Deny and say what to do instead")).await?;
    page.type_into(&sheet_part("#instead"), "count the rows").await?;
    page.press(&button("Deny and send")).await?;
    page.wait_for("!document.querySelector('.sheet[open]')").await?;
    page.wait_for_text("Nothing waits for you").await?;

    let told_options = told(&page, "options").await?;
    ensure!(told_options.contains("\"selectedOption\":{\"id\":\"session\""), "{told_options}");
    let told_edit = told(&page, "edit").await?;
    ensure!(
        told_edit.contains("\"approved\":true") && told_edit.contains("song.txt"),
        "{told_edit}"
    );
    ensure!(told(&page, "worker").await?.contains("Told:"), "the worker ended");
    page.observed().check(&host.origin, &[])
}

#[tokio::test]
async fn requests_are_answered_by_keyboard() -> Result<()> {
    let Some((_browser, host, page, _script)) = start(Screen::DESKTOP).await? else {
        return Ok(());
    };
    page.evaluate("document.activeElement?.blur()").await?;
    page.key("i", 0).await?;
    page.wait_for("document.querySelectorAll('.request-link').length === 3").await?;
    page.key("j", 0).await?;
    page.wait_for("document.activeElement?.classList.contains('request-link')").await?;
    page.key("Enter", 0).await?;
    wait_for_sheet(&page, "Run in a terminal").await?;
    choose(&page, "a", "Allow once").await?;

    wait_for_sheet(&page, "Write a file").await?;
    choose(&page, "d", "Deny").await?;

    wait_for_sheet(&page, "Count the seats").await?;
    // A menu of the sheet is closed without it.
    page.press(&in_sheet("More choices")).await?;
    page.wait_for(&css(".menu:popover-open")).await?;
    page.key("Escape", 0).await?;
    page.wait_for("!document.querySelector('.menu')").await?;
    ensure!(
        page.evaluate("document.querySelector('.sheet').open && location.hash.includes('ask=')")
            .await?
            == true,
        "the sheet stays"
    );
    // The sheet is closed and opened again by keys; the request is still there.
    page.key("Escape", 0).await?;
    page.wait_for("!document.querySelector('.sheet[open]')").await?;
    page.key("j", 0).await?;
    page.wait_for("document.activeElement?.classList.contains('request-link')").await?;
    page.key("Enter", 0).await?;
    wait_for_sheet(&page, "Count the seats").await?;
    choose(&page, "a", "Approve").await?;
    page.wait_for_text("Nothing waits for you").await?;

    let told_options = told(&page, "options").await?;
    ensure!(told_options.contains("\"selectedOption\":{\"id\":\"once\""), "{told_options}");
    let told_edit = told(&page, "edit").await?;
    ensure!(told_edit.contains("\"approved\":false"), "{told_edit}");
    page.observed().check(&host.origin, &[])
}

#[tokio::test]
async fn a_result_is_looked_at_before_the_agent_sees_it() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write()?;
    let host = Host::start(&["--script", script.path()])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    for answer in ["Withhold it", "Show it to the agent"] {
        start_session_in(&page, None, &format!("result {answer}")).await?;
        page.wait_for_text("result waits for you").await?;
        page.press(&button("Review")).await?;
        wait_for_sheet(&page, "Result of Fetch a page").await?;
        page.wait_for(&format!(
            "{}.innerText.includes('a secret of the page')",
            sheet_part(".sheet-body")
        ))
        .await?;
        page.press(&in_sheet(answer)).await?;
        page.wait_for("!document.querySelector('.sheet[open]')").await?;
        page.wait_for_text("Told:").await?;
        let is_withheld = page.text().await?.contains("result withheld");
        ensure!(is_withheld == (answer == "Withhold it"), "{answer}");
    }
    page.observed().check(&host.origin, &[])
}

/// Chooses by a letter, which focuses the button, and confirms by Enter.
async fn choose(page: &Page, letter: &str, label: &str) -> Result<()> {
    page.wait_for(&css(".sheet-foot[data-armed=yes]")).await?;
    page.key(letter, 0).await?;
    page.wait_for(&format!("document.activeElement?.textContent === {}", json!(label))).await?;
    page.key("Enter", 0).await
}
