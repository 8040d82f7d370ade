//! A text while it is written: what comes behind what is drawn stands there at once, with what is between them.

use anyhow::{Result, ensure};
use browser::{Browser, Host, Screen};
use serde_json::json;

use crate::signed_in::{sign_in, start_session_in};

/// Writes a text in two pieces, the second when the first is drawn; the lines as they are read before more is asked.
const WRITE: &str = "(async ([first, second]) => {
    const at = (name) => document.querySelector('script[src$=\"/main.js\"]').src.replace('main.js', `view/${name}.js`);
    const { MarkdownView } = await import(at('markdown'));
    const { findMarkup } = await import(at('chat_context'));
    const view = new MarkdownView(findMarkup(), { isWriting: true });
    document.querySelector('.turns').append(view.element);
    view.update(first, true);
    while (view.drawnTo !== first.length) await new Promise(requestAnimationFrame);
    view.append(second);
    const lines = view.element.innerText.split('\\n').map(it => it.trim()).filter(it => it !== '');
    view.update(first + second, false);
    view.element.remove();
    return lines;
})";

/// Writes a fence whose first line comes in two pieces, the second when the first is drawn, and goes on writing.
const FENCE: &str = "async () => {
    const at = (name) => document.querySelector('script[src$=\"/main.js\"]').src.replace('main.js', `view/${name}.js`);
    const { MarkdownView } = await import(at('markdown'));
    const { findMarkup } = await import(at('chat_context'));
    const view = new MarkdownView(findMarkup(), { isWriting: true });
    document.querySelector('.turns').append(view.element);
    view.update('```', true);
    while (view.drawnTo !== 3) await new Promise(requestAnimationFrame);
    view.append('rust\\nlet a');
}";

#[tokio::test]
async fn what_comes_next_is_read_as_it_will_be() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "hello").await?;
    page.wait_for("document.querySelector('.turn[data-state=complete] .md')").await?;
    for (first, second, lines) in [
        // White space at the end of what is drawn is in no block.
        ("so an ", "attacker", &["so an attacker"][..]),
        ("so an", "other", &["so another"]),
        ("one line\n", "goes on", &["one line goes on"]),
        ("one\n\n", "two", &["one", "two"]),
        ("## Title\n", "text", &["Title", "text"]),
        ("- one\n", "- two", &["one", "- two"]),
        ("- one ", "more", &["one more"]),
        // Code goes on in its block, line by line, and nothing behind it does.
        ("```rust\nlet a = 1;\n", "let b", &["rust", "Copy", "let a = 1;", "let b"]),
        ("```rust\nlet a", " = 1;", &["rust", "Copy", "let a = 1;"]),
        ("```\nlet a\n```\n", "After it", &["text", "Copy", "let a", "After it"]),
    ] {
        let written = page.evaluate(&format!("{WRITE}({})", json!([first, second]))).await?;
        ensure!(written == json!(lines), "{first:?} and {second:?} are read as {written}");
    }
    // The first line of a fence says the language, whenever it comes.
    page.evaluate(&format!("void ({FENCE})()")).await?;
    page.wait_for("document.querySelector('.turns > .md .code-head span')?.textContent === 'rust'")
        .await?;
    page.observed().check(&host.origin, &[])
}

/// Writes paragraphs, which take less room when they are drawn, into a chat whose end is followed. Then, before the next frame, somebody
/// asks where things are, and more comes. Ends when it is drawn and painted.
const SHRINK: &str = "(async () => {
    const at = (name) => document.querySelector('script[src$=\"/main.js\"]').src.replace('main.js', `view/${name}.js`);
    const { MarkdownView } = await import(at('markdown'));
    const { findMarkup } = await import(at('chat_context'));
    const frame = () => new Promise(requestAnimationFrame);
    const view = new MarkdownView(findMarkup(), { isWriting: true });
    const scroller = document.querySelector('.transcript');
    document.querySelector('.turns').append(view.element);
    const text = 'A paragraph.\\n\\n'.repeat(40);
    view.update(text, true);
    const more = document.createElement('div');
    const isDrawn = new Promise((done) => { new MutationObserver((_, it) => {
        if (view.drawnTo !== text.length) return;
        it.disconnect();
        setTimeout(() => { void scroller.scrollHeight; more.style.height = '200px'; view.element.after(more); done(); });
    }).observe(view.element, { childList: true }); });
    await isDrawn;
    for (let count = 0; count < 3; count += 1) await frame();
    const distance = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
    view.update(text, false);
    view.element.remove();
    more.remove();
    for (let count = 0; count < 3; count += 1) await frame();
    return distance;
})()";

#[tokio::test]
async fn the_end_is_followed_also_when_a_text_becomes_shorter() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "hello").await?;
    page.wait_for("document.querySelector('.turn[data-state=complete] .md')").await?;
    for _ in 0..5 {
        let distance = page.evaluate(SHRINK).await?;
        ensure!(
            distance.as_f64().is_some_and(|it| it.abs() < 3.0),
            "the end is {distance} pixels below"
        );
    }
    page.observed().check(&host.origin, &[])
}
