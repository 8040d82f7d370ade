//! Text that means harm, from the agent and in results of tools: nothing runs, nothing is fetched, nothing is hidden (W-10).

use anyhow::{Result, ensure};
use browser::{Browser, Host, Screen};
use serde_json::{Value, json};

use crate::script::Script;
use crate::signed_in::{sign_in, start_session_in};

const MARKDOWN: &str = "<script>window.hacked = 1</script><img src=x onerror=\"window.hacked=1\">\n\n\
    [script](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>) [file](file:///etc/passwd)\n\n\
    [https://bank.example.com](https://evil.example.net/login) [bank\u{200b}.example.com](https://hidden.example.net) ![cat](https://tracker.example.net/pixel.png)\n\n\
    ![svg](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+) <iframe src=\"https://evil.example.net\"></iframe>\n\n\
    <style>body { display: none }</style><form action=\"https://evil.example.net\"><input name=a></form>\n\n\
    <a href=\"https://evil.example.net\" style=\"position:fixed;inset:0\" onclick=\"window.hacked=1\">x</a>\n\n\
    `code \u{202e}gnp.exe`\n\n```html\n<script>window.hacked = 1</script>\u{202e}\n```\n";
const OUTPUT: &str =
    "<script>window.hacked=1</script>\u{1b}]0;title\u{7}\u{1b}[31mred\u{1b}[0m\nfdp\u{202e}exe";
const SVG: &str =
    "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0id2luZG93LmhhY2tlZD0xIi8+";

fn scenes() -> Value {
    json!([{"steps": [
        {"say": [MARKDOWN]},
        {"tool": {"name": "run\u{202e}x", "display": "Run\u{202e}x", "input": {"command": "rm \u{202e}x \u{1b}[2J", "path": "/a/\u{202e}fdp.exe"},
            "result": {"message": "Ran `rm \u{202e}x`", "content": [
                {"type": "text", "text": OUTPUT},
                {"type": "embeddedResource", "contentType": "image/svg+xml", "data": SVG},
                {"type": "embeddedResource", "contentType": "text/html", "data": "PHNjcmlwdD53aW5kb3cuaGFja2VkPTE8L3NjcmlwdD4="},
            ]}}},
        {"notify": "<script>window.hacked = 1</script> [x](javascript:window.hacked=1)"},
        {"fail": {"type": "<script>", "message": "<img src=x onerror=window.hacked=1> \u{1b}[2J"}},
    ]}])
}

#[tokio::test]
async fn nothing_that_an_agent_says_runs_or_is_fetched() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let script = Script::write(&scenes())?;
    let host = Host::start(&["--script", &script.path()])?;
    let page = browser.page(Screen::PHONE).await?;
    sign_in(&page, &host).await?;
    start_session_in(&page, None, "<img src=x onerror=window.hacked=1> \u{202e}").await?;
    page.wait_for("document.querySelector('.part-error')").await?;
    page.wait_for("document.querySelector('.part-text .md-host')").await?;
    page.evaluate(
        "document.querySelectorAll('.transcript details').forEach(it => { it.open = true; })",
    )
    .await?;
    page.wait_for("document.querySelector('.tool-output pre')").await?;

    let forbidden = "['script', 'iframe', 'style', 'form', 'object', 'embed', 'svg image', 'link', 'base', 'meta', '[onclick]', '[onerror]', '[style*=fixed]']\
        .filter(it => document.querySelector(`.transcript ${it}`))";
    ensure!(page.evaluate(forbidden).await? == json!([]), "elements that are not in the list");
    let pictures = page
        .evaluate("[...document.querySelectorAll('.transcript img')].map(it => it.src)")
        .await?;
    ensure!(pictures == json!([]), "{pictures}");
    let links = page
        .evaluate("[...document.querySelectorAll('.transcript a')].map(it => [it.protocol, it.rel, it.target])")
        .await?;
    for link in links.as_array().into_iter().flatten() {
        ensure!(*link == json!(["https:", "noopener noreferrer", "_blank"]), "{link}");
    }
    for seen in [
        "(evil.example.net)",
        "(hidden.example.net)",
        "cat: picture on tracker.example.net",
        "rm \\u{202e}x",
        "/a/\\u{202e}fdp.exe",
        "fdp\\u{202e}exe",
        "code \\u{202e}gnp.exe",
        "file:///etc/passwd",
        "<script>window.hacked=1</script>red",
    ] {
        page.wait_for_text(seen).await?;
    }
    ensure!(page.evaluate("typeof window.hacked").await? == "undefined", "it ran");
    ensure!(page.evaluate("document.title").await? != "title", "a title was set");
    page.observed().check(&host.origin, &[])
}
