//! A terminal of the host on the page: opened, typed in, and the same screen after a reload, a lost connection and on another device.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Network, Page, Screen, button, labelled};
use common::{IS_LIVE, LOST_CONNECTION, sign_in};
use serde_json::json;

/// The lines of the terminal on the page, without the spaces at their ends.
const LINES: &str =
    "[...document.querySelectorAll('.terminal-line')].map(it => it.textContent.trimEnd())";

/// The entry of the session's menu.
const NEW_TERMINAL: &str = "[...document.querySelectorAll('.menu-entry')].find(it => it.textContent.startsWith('New terminal'))";

/// Starts a session of the scripted agent.
async fn start_session(page: &Page, host: &Host) -> Result<()> {
    page.evaluate("location.hash = '#/new'").await?;
    page.wait_for("document.querySelector('#new-agent option[value=scripted]')").await?;
    page.evaluate("(() => { const it = document.querySelector('#new-agent'); it.value = 'scripted'; it.dispatchEvent(new Event('change')); })()").await?;
    let folder = host.home().join("myapp");
    std::fs::create_dir(&folder)?;
    let path = folder.to_str().context("a path that can be typed")?;
    page.type_into(&labelled("Folder"), path).await?;
    page.type_into(&labelled("First message"), "hello").await?;
    page.press(&button("Start")).await?;
    page.wait_for("location.hash.startsWith('#/s/') && document.querySelector('.turn')").await
}

/// Waits until a line of the terminal is this.
async fn wait_for_line(page: &Page, line: &str) -> Result<()> {
    page.wait_for(&format!("{LINES}.includes({})", json!(line))).await
}

/// Sends a line from the field.
async fn send_line(page: &Page, line: &str) -> Result<()> {
    page.type_into(&labelled("Line to send"), line).await?;
    page.press(&button("Send")).await
}

/// What is on the screen, without empty lines at its end.
async fn screen(page: &Page) -> Result<Vec<String>> {
    let lines = page.evaluate(LINES).await?;
    let mut lines: Vec<String> = serde_json::from_value(lines)?;
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    Ok(lines)
}

/// What the shell writes when it waits for a line, without the space at its end.
const PROMPT: &str = "ready>";

/// Waits until the shell has done all that it was given, and gives what is on the screen then.
async fn screen_at_rest(page: &Page) -> Result<Vec<String>> {
    page.wait_for(&format!("{LINES}.filter(it => it !== '').at(-1) === {}", json!(PROMPT))).await?;
    screen(page).await
}

/// Waits until the screen is this one.
async fn wait_for_screen(page: &Page, expected: &[String]) -> Result<()> {
    let is_same = format!(
        "JSON.stringify({LINES}).startsWith(JSON.stringify({}).slice(0, -1))",
        json!(expected)
    );
    page.wait_for(&is_same).await?;
    let shown = screen(page).await?;
    ensure!(shown == expected, "{shown:#?} is not {expected:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_typed_in_and_shows_the_same_screen_again() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::DESKTOP).await?;
    start_session(&page, &host).await?;
    page.press(&button("More about this session")).await?;
    page.press(NEW_TERMINAL).await?;
    page.wait_for("location.hash.includes('/terminal/')").await?;
    page.wait_for("document.querySelector('.terminal[data-state=running]')").await?;

    // Keys go to the shell, and what it prints is seen, with colours and moved cursors carried out.
    let screen_element = "document.querySelector('.terminal-screen')";
    page.press(screen_element).await?;
    let line = "printf 'one\\n\\033[31mred\\033[0m two\\rRED\\n'; pwd";
    for key in line.chars() {
        page.command(
            "Input.dispatchKeyEvent",
            json!({"type": "keyDown", "key": key.to_string(), "text": key.to_string()}),
        )
        .await?;
    }
    page.key("Enter", 0).await?;
    wait_for_line(&page, "one").await?;
    wait_for_line(&page, "RED two").await?;
    let folder = host.home().join("myapp").canonicalize()?;
    wait_for_line(&page, &folder.to_string_lossy()).await?;

    // A line from the field as well. From now on the shell says when it is at rest.
    send_line(&page, &format!("PS1='{PROMPT} '")).await?;
    screen_at_rest(&page).await?;
    send_line(&page, "echo from $((40 + 2))").await?;
    wait_for_line(&page, "from 42").await?;
    let shown = screen_at_rest(&page).await?;

    // The connection is lost, something is printed meanwhile, and it comes back.
    send_line(&page, "until [ -e go ]; do sleep 0.05; done; echo meanwhile; touch printed").await?;
    page.wait_for(&format!("{LINES}.some(it => it.includes('until [ -e go ]'))")).await?;
    page.set_network(Network::Offline).await?;
    // Chromium leaves open sockets alone when it plays offline; nothing comes over this one. The shell goes on.
    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))").await?;
    page.wait_for(&format!("!({IS_LIVE})")).await?;
    std::fs::write(folder.join("go"), "")?;
    wait_for_file(&folder.join("printed")).await?;
    host.thaw()?;
    page.set_network(Network::Good).await?;
    page.wait_for(IS_LIVE).await?;
    wait_for_line(&page, "meanwhile").await?;
    let shown_now = screen_at_rest(&page).await?;
    ensure!(shown_now.len() > shown.len(), "{shown_now:#?}");

    // A page that begins anew draws the same, and so does another device.
    page.reload().await?;
    page.wait_for(IS_LIVE).await?;
    wait_for_screen(&page, &shown_now).await?;
    let other = sign_in(&browser, &host, Screen::DESKTOP).await?;
    let place = page.evaluate("location.hash").await?;
    other.evaluate(&format!("location.hash = {place}")).await?;
    wait_for_screen(&other, &shown_now).await?;
    other.wait_for_text("Another client types here.").await?;
    other.observed().check(&host.origin, &[])?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

/// Waits for what a command in the terminal makes.
async fn wait_for_file(path: &std::path::Path) -> Result<()> {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    for _ in 0..1_500 {
        looks.tick().await;
        if path.exists() {
            return Ok(());
        }
    }
    anyhow::bail!("{} does not come about", path.display())
}

/// A program that takes the whole screen is drawn, and what was there before is there again when it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_the_whole_screen_comes_and_goes() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    start_session(&page, &host).await?;
    page.press(&button("More about this session")).await?;
    page.press(NEW_TERMINAL).await?;
    page.wait_for("document.querySelector('.terminal[data-state=running]')").await?;
    send_line(&page, "echo before").await?;
    wait_for_line(&page, "before").await?;
    let full = "printf '\\033[?1049h\\033[2J\\033[3;1Hwhole screen'; read key; printf '\\033[?1049l'; echo after";
    send_line(&page, full).await?;
    wait_for_line(&page, "whole screen").await?;
    ensure!(!screen(&page).await?.iter().any(|line| line == "before"), "it has the whole screen");
    page.press(&button("Tab")).await?;
    send_line(&page, "x").await?;
    wait_for_line(&page, "after").await?;
    wait_for_line(&page, "before").await?;
    page.observed().check(&host.origin, &[])
}
