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
    let Some(browser) = Browser::start().await? else {
        return Ok(()); // it was said
    };
    let host = Host::start(&[])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "hello").await?;
    page.wait_for("document.querySelector('.turn[data-state=complete] .md')")
        .await?;
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
        (
            "```rust\nlet a = 1;\n",
            "let b",
            &["rust", "Copy", "let a = 1;", "let b"],
        ),
        ("```rust\nlet a", " = 1;", &["rust", "Copy", "let a = 1;"]),
        (
            "```\nlet a\n```\n",
            "After it",
            &["text", "Copy", "let a", "After it"],
        ),
    ] {
        let written = page
            .evaluate(&format!("{WRITE}({})", json!([first, second])))
            .await?;
        ensure!(
            written == json!(lines),
            "{first:?} and {second:?} are read as {written}"
        );
    }
    // The first line of a fence says the language, whenever it comes.
    page.evaluate(&format!("void ({FENCE})()")).await?;
    page.wait_for("document.querySelector('.turns > .md .code-head span')?.textContent === 'rust'")
        .await?;
    page.observed().check(&host.origin, &[])
}
