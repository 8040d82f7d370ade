//! Queue, reorder, edit, steer, stop: each heard by a second page (W-7).

use anyhow::{Result, ensure};
use browser::{Browser, Host, Page, Screen, button, labelled};
use serde_json::json;

use crate::script::{Script, VIEW};
use crate::signed_in::{go, sign_in, start_session_in};

/// The messages that a page shows as waiting.
async fn waits(page: &Page, messages: &[&str]) -> Result<()> {
    page.wait_for(&format!(
        "JSON.stringify([...document.querySelectorAll('.queue:not([hidden]) .queue-text')].map(it => it.textContent)) === {}",
        json!(json!(messages).to_string())
    ))
    .await
}

/// A button of the waiting message with this text.
fn on_message(text: &str, label: &str) -> String {
    format!(
        "[...document.querySelectorAll('.queue-item')].find(it => it.querySelector('.queue-text').textContent === {})\
         ?.querySelector('button[aria-label^=\"{label}\"]')",
        json!(text)
    )
}

async fn say(page: &Page, text: &str) -> Result<()> {
    page.type_into(&labelled("Message"), text).await?;
    page.key("Enter", 0).await
}

/// Picks a file, as the dialog of the browser does.
const ATTACH: &str = "(() => { const picked = new DataTransfer(); picked.items.add(new File(['notes'], 'notes.txt', {type: 'text/plain'})); \
    const field = document.querySelector('.composer input[type=file]'); field.files = picked.files; field.dispatchEvent(new Event('change')); })()";

#[tokio::test]
async fn waiting_messages_are_the_same_on_two_pages() -> Result<()> {
    // Two browsers: one page of a browser is behind the other, and slow.
    let (Some(browser), Some(other)) = (Browser::start().await?, Browser::start().await?) else {
        return Ok(());
    };
    let script = Script::write(&json!([
        {"when": "^hang", "steps": [{"say": ["Hanging on."]}, {"hang": true}]},
        {"steps": [{"say": ["Heard: {{text}}"]}]},
    ]))?;
    let host = Host::start(&["--script", &script.path()])?;
    let first = browser.page(Screen::DESKTOP).await?;
    sign_in(&first, &host).await?;
    start_session_in(&first, None, "hang").await?;
    first.wait_for(&button("Stop")).await?;
    let place = first.evaluate("location.hash").await?;
    let second = other.page(Screen::DESKTOP).await?;
    sign_in(&second, &host).await?;
    go(&second, place.as_str().unwrap_or_default()).await?;
    second.wait_for(&button("Stop")).await?;

    for text in ["one", "two", "three"] {
        say(&first, text).await?;
    }
    waits(&first, &["one", "two", "three"]).await?;
    waits(&second, &["one", "two", "three"]).await?;
    second.press(&on_message("three", "Move up")).await?;
    waits(&first, &["one", "three", "two"]).await?;
    first.press(&on_message("one", "Move down")).await?;
    waits(&second, &["three", "one", "two"]).await?;
    waits(&first, &["three", "one", "two"]).await?;

    // What is edited is out of the queue first, and its text is in the field, before what was there already.
    first.evaluate(ATTACH).await?;
    first
        .wait_for("document.querySelector('.chip-file .chip-size')?.textContent === '5 bytes'")
        .await?;
    first.press(&on_message("one", "Edit")).await?;
    waits(&second, &["three", "two"]).await?;
    first.wait_for(&format!("{}.value === 'one'", labelled("Message"))).await?;
    first
        .press("document.querySelector('.chip-file button[aria-label^=\"Remove notes.txt\"]')")
        .await?;
    first.press(&labelled("Message")).await?;
    first.key("Enter", 0).await?;
    waits(&second, &["three", "two", "one"]).await?;
    waits(&first, &["three", "two", "one"]).await?;

    // One message steers at a time: the next one says what it said, too.
    first.type_into(&labelled("Message"), "to the left").await?;
    first.press(&button("Steer")).await?;
    waits(&second, &["to the left", "three", "two", "one"]).await?;
    second.wait_for_text("steers this turn").await?;
    first.type_into(&labelled("Message"), "a bit").await?;
    first.press(&button("Steer")).await?;
    waits(&second, &["to the left\n\na bit", "three", "two", "one"]).await?;
    // What waits first can be said now.
    first.press(&on_message("three", "Send now")).await?;
    waits(&second, &["to the left\n\na bit\n\nthree", "two", "one"]).await?;
    waits(&first, &["to the left\n\na bit\n\nthree", "two", "one"]).await?;
    second.press(&on_message("two", "Remove")).await?;
    waits(&first, &["to the left\n\na bit\n\nthree", "one"]).await?;

    first.press(&button("Stop")).await?;
    second.wait_for_text("Queue paused. Send now?").await?;
    first.wait_for_text("Queue paused. Send now?").await?;
    second.press(&button("Send now")).await?;
    for said in ["Heard: to the left", "a bit", "three", "Heard: one"] {
        first.wait_for(&format!("{VIEW}.textContent.includes({})", json!(said))).await?;
    }
    waits(&first, &[]).await?;
    for page in [&first, &second] {
        page.observed().check(&host.origin, &[])?;
    }
    Ok(())
}

#[tokio::test]
async fn enter_is_a_new_line_on_touch_and_a_draft_survives_a_reload() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "hello").await?;
    page.type_into(&labelled("Message"), "first line").await?;
    page.key("Enter", 0).await?;
    page.command("Input.insertText", json!({"text": "second line"})).await?;
    let typed = format!("{}?.value === 'first line\\nsecond line'", labelled("Message"));
    page.wait_for(&typed).await?;
    page.reload().await?;
    page.wait_for(&typed).await?;
    page.press(&button("Send")).await?;
    page.wait_for("document.querySelectorAll('.turn').length === 2").await?;
    let said =
        page.evaluate("[...document.querySelectorAll('.message-text')].at(-1).textContent").await?;
    ensure!(said == "first line\nsecond line", "{said}");
    page.observed().check(&host.origin, &[])
}
