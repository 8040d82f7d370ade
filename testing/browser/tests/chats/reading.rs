//! What is read stays where it is (W-9): while text streams below, an older page comes above, a picture loads late, a keyboard opens.

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button, labelled};
use serde_json::json;

use crate::script::{IMPORTED, Script, VIEW};
use crate::signed_in::{go, sign_in};

/// How far what is read may move, in pixels.
const MOVED_MAX: f64 = 1.0;

/// Waits until nothing in the view is shown as it was written.
async fn wait_until_rendered(page: &Page) -> Result<()> {
    let rendered = format!(
        "(() => {{ const box = {VIEW}.getBoundingClientRect(); return ![...document.querySelectorAll('.md-plain')].some(it => {{ \
         const {{ top, bottom }} = it.getBoundingClientRect(); return bottom > box.top && top < box.bottom; }}); }})()"
    );
    page.wait_for(&rendered).await
}

/// Remembers the lowest block in the view that is rendered already, whatever is above it.
async fn mark_lowest(page: &Page) -> Result<f64> {
    let script = format!(
        "(() => {{ const box = {VIEW}.getBoundingClientRect(); window.marked = [...document.querySelectorAll('.md > *:not(.md-plain)')].findLast(it => {{ \
         const {{ top, bottom }} = it.getBoundingClientRect(); return top > box.top && bottom < box.bottom; }}); }})()"
    );
    page.evaluate(&script).await?;
    watch(page).await
}

/// Remembers a block of text in the view, once all that is in the view is rendered: text that comes into view as it was written
/// takes other room when it is.
async fn mark(page: &Page) -> Result<f64> {
    wait_until_rendered(page).await?;
    let script = format!(
        "(() => {{ const box = {VIEW}.getBoundingClientRect(); window.marked = [...document.querySelectorAll('.md > *')].find(it => {{ \
         const top = it.getBoundingClientRect().top; return top > box.top + 40 && top < box.bottom; }}); }})()"
    );
    page.evaluate(&script).await?;
    watch(page).await
}

/// Watches the remembered block from now on; where it is.
async fn watch(page: &Page) -> Result<f64> {
    page.evaluate(WATCH_FRAMES).await?;
    let script = "new Promise(done => { const look = () => window.places.length > 0 ? done(window.places[0]) : requestAnimationFrame(look); look(); })";
    let top = page.evaluate(script).await?;
    top.as_f64().context("a block of text")
}

/// Notes where the remembered block is in every frame that is painted. An intersection is computed behind all else that a frame does.
const WATCH_FRAMES: &str = "(() => { const { marked } = window; const places = window.places = []; \
    const look = () => { if (window.places !== places) return; \
    const once = new IntersectionObserver(([seen]) => { once.disconnect(); places.push(marked.isConnected ? seen.boundingClientRect.top : null); }); \
    once.observe(marked); requestAnimationFrame(look); }; look(); })()";

async fn check(page: &Page, before: f64, what: &str) -> Result<()> {
    // What happened last is painted by then.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))")
        .await?;
    let places = page.evaluate("window.places").await?;
    let places = places.as_array().context("places")?;
    for place in places {
        let now = place.as_f64().context("what was read was drawn anew")?;
        ensure!((now - before).abs() <= MOVED_MAX, "{what}: from {before} to {now} in {places:?}");
    }
    Ok(())
}

/// Scrolls, and waits until the page heard of it.
async fn scroll_by(page: &Page, pixels: i32) -> Result<()> {
    let script = format!(
        "new Promise(done => {{ {VIEW}.addEventListener('scroll', () => requestAnimationFrame(done), {{once: true}}); {VIEW}.scrollTop += {pixels}; }})"
    );
    page.evaluate(&script).await.map(drop)
}

async fn grows_by(page: &Page, pixels: u32) -> Result<()> {
    let height = page.evaluate(&format!("{VIEW}.scrollHeight")).await?;
    page.wait_for(&format!("{VIEW}.scrollHeight > {height} + {pixels}")).await
}

/// A keyboard comes and goes: one that makes the page smaller, and one that covers it, as on iOS. What is read stays where it is.
async fn use_keyboards(page: &Page, before: f64) -> Result<()> {
    // A keyboard takes half of the screen, and goes.
    let size = |height: u32| json!({"width": 390, "height": height, "deviceScaleFactor": 1, "mobile": true});
    for height in [480, 844] {
        page.command("Emulation.setDeviceMetricsOverride", size(height)).await?;
        page.wait_for(&format!("innerHeight === {height}")).await?;
        grows_by(page, 100).await?;
        check(page, before, "a keyboard").await?;
    }

    // One that covers the page instead of making it smaller, as on iOS: the field is above it.
    for (height, is_above) in [(480, "<= 480"), (844, "> 480")] {
        let cover = format!(
            "(() => {{ Object.defineProperty(visualViewport, 'height', {{ configurable: true, get: () => {height} }}); \
             visualViewport.dispatchEvent(new Event('resize')); }})()"
        );
        page.evaluate(&cover).await?;
        let field = labelled("Message");
        page.wait_for(&format!("{field}.getBoundingClientRect().bottom {is_above}")).await?;
        grows_by(page, 100).await?;
        check(page, before, "a keyboard that covers the page").await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_read_stays_where_it_is() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write(&json!([
        {"when": "^stream", "steps": [{"stream": {"chunks": 100_000, "size": 60, "every_ms": 5, "end": "\n\n"}}]},
        {"steps": [{"say": ["Heard."]}]},
    ]))?;
    let host = Host::start(&["--script", &script.path()])?;
    script.import_turns(&host, 150)?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    go(&page, IMPORTED).await?;
    page.wait_for("document.querySelectorAll('.turn').length > 5").await?;

    // An older page comes above, first as room for it, then drawn when it is near.
    let height = page.evaluate(&format!("{VIEW}.scrollHeight")).await?;
    scroll_by(&page, -3_200).await?;
    let before = mark(&page).await?;
    page.wait_for(&format!("{VIEW}.scrollHeight > {height} + 3_000")).await?;
    check(&page, before, "an older page").await?;
    scroll_by(&page, -800).await?;
    let before = mark(&page).await?;
    page.wait_for("document.querySelectorAll('.turn').length > 20").await?;
    check(&page, before, "turns drawn above").await?;

    // What comes into view for the first time is rendered then; what is read below it stays.
    for _ in 0..6 {
        scroll_by(&page, -600).await?;
        let before = mark_lowest(&page).await?;
        wait_until_rendered(&page).await?;
        check(&page, before, "turns rendered above").await?;
    }

    // At the end the end is followed.
    page.press(&button("Go to the end")).await?;
    let at_end = format!("{VIEW}.scrollHeight - {VIEW}.clientHeight - {VIEW}.scrollTop < 3");
    page.wait_for(&at_end).await?;
    page.type_into(&labelled("Message"), "stream").await?;
    page.press(&button("Send")).await?;
    page.wait_for(&button("Stop")).await?;
    grows_by(&page, 800).await?;
    page.wait_for(&at_end).await?;

    // Above it nothing moves.
    scroll_by(&page, -500).await?;
    let before = mark(&page).await?;
    grows_by(&page, 1_500).await?;
    check(&page, before, "text that streams").await?;
    page.wait_for_text("more below").await?;

    use_keyboards(&page, before).await?;

    // A picture above is there late: in the message, which is out of the view by then.
    scroll_by(&page, 700).await?;
    let before = mark(&page).await?;
    let late = "(async () => { const canvas = document.createElement('canvas'); canvas.width = 200; canvas.height = 300; \
        const blob = await new Promise(done => canvas.toBlob(done)); const picture = new Image(); \
        window.marked.closest('.turn').querySelector('.message').append(picture); \
        await new Promise(done => { picture.onload = done; picture.src = URL.createObjectURL(blob); }); })()";
    page.evaluate(late).await?;
    grows_by(&page, 100).await?;
    check(&page, before, "a late picture").await?;

    page.press(&button("Stop")).await?;
    page.wait_for(&format!("!({})", button("Stop"))).await?;
    check(&page, before, "the end of the answer").await?;
    page.observed().check(&host.origin, &[])
}
