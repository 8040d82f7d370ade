//! What the model was sent, on the page: the sections of the prompt with who rewrote them, the parts of the message, the request. A
//! restricted section is its size and digest, and a device that may not look is told so.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button, css};
use common::{IS_LIVE, open_session, pairing_link, send, sign_in};
use serde_json::Value;
use testkit::{Answer, ModelServer};

/// A client that rewrites a section; it ends with the test.
struct Rewriter(Child);

impl Rewriter {
    /// Waits until it says that it is there.
    fn start(host: &Host, session: &str) -> Result<Self> {
        let pack = host.home().join("pack");
        std::fs::create_dir(&pack)?;
        let text = "---\nsections: [tone]\nmode: append\n---\nNo jokes.\n";
        std::fs::write(pack.join("tone.md"), text)?;
        let pack = pack.to_str().context("a path that can be typed")?;
        let mut child = host.spawn(&["transform", pack, "--session", session])?;
        let output = child.stdout.take().context("its output is piped")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line.contains("tone"), "it says what it rewrites: {line}");
        Ok(Self(child))
    }
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A section of the prompt, by its name.
fn section(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.prompt-section')].find(it => it.querySelector('.prompt-name').textContent === '{name}')"
    )
}

async fn check_sections(page: &Page) -> Result<()> {
    page.wait_for_text("call 2 of 2").await?;
    let tone = section("tone");
    page.wait_for(&format!(
        "{tone}?.open && /rewritten by Transform pack/.test({tone}.textContent)"
    ))
    .await?;
    page.wait_for(&format!(
        "[...{tone}.querySelectorAll('.diff-add')].some(it => it.textContent.includes('No jokes.'))"
    ))
    .await?;
    let identity = section("identity");
    page.press(&format!("{identity}.querySelector('summary')")).await?;
    page.wait_for(&format!("{identity}.querySelector('pre')?.textContent.includes('Greenroom')"))
        .await?;
    let restricted = page.evaluate(&format!("{}.textContent", section("safety"))).await?;
    let restricted = restricted.as_str().context("a text")?;
    ensure!(restricted.contains("restricted") && restricted.contains("sha256"), "{restricted}");
    ensure!(
        page.evaluate(&format!("{}.matches('details')", section("safety"))).await? == false,
        "there is nothing to open"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_was_sent_is_read_call_by_call() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let model = ModelServer::start().await;
    let host = Host::start(&["--model", &format!("{}#echo", model.url())])?;
    model.answers([Answer::streams(["hello"]), Answer::streams(["again"])]);
    let printed = host.run(&["send", "--json", "the first message"])?;
    let last: Value = serde_json::from_str(printed.lines().last().context("a line")?)?;
    let session = last["session"].as_str().context("a session")?.to_owned();
    let _rewriter = Rewriter::start(&host, &session)?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    open_session(&page, &session).await?;
    send(&page, "the second message").await?;
    page.wait_for_text("again").await?;

    page.evaluate("location.hash += '/prompt'").await?;
    check_sections(&page).await?;
    page.press(&button("Message")).await?;
    page.wait_for(&css(".prompt-scroller .prompt-line")).await?;
    page.press(&button("As sent")).await?;
    page.wait_for_text("the second message").await?;
    page.wait_for_text("No jokes.").await?;

    // The call before was sent without it.
    page.press(&button("Previous call")).await?;
    page.wait_for_text("call 1 of 2").await?;
    page.wait_for("!document.querySelector('#prompt-body').textContent.includes('No jokes.')")
        .await?;
    let address = page.evaluate("location.hash").await?;
    page.reload().await?;
    page.wait_for_text("call 1 of 2").await?;
    page.observed().check(&host.origin, &[])?;

    // Who was paired without the right to look is told how to get it.
    page.evaluate("localStorage.clear()").await?;
    let other = browser.page(Screen::PHONE).await?;
    other.go_to(&pairing_link(&host, &[])?.0).await?;
    other.press(&button("Pair")).await?;
    other.wait_for(IS_LIVE).await?;
    other.evaluate(&format!("void (location.hash = {address})")).await?;
    other.wait_for_text("This device may not look at prompts").await?;
    other.observed().check(&host.origin, &["403"])
}
