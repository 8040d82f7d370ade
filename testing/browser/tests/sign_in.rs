//! Signing in to an MCP server from the page (MC-14): the page of the authorisation server is shown, the browser comes back to the host,
//! and the call goes on. Only the device that began can finish.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button};
use common::{open_session, send, sign_in};
use mcp_server::Switches;
use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};
use tokio::time::interval;

/// The MCP server, which is its own authorisation server; it ends with the test.
async fn serve_tracker(directory: &std::path::Path) -> Result<String> {
    let file = directory.join("url");
    let switches = Switches {
        http: Some(file.clone()),
        oauth: true,
        token_seconds: 3_600,
        ..Switches::default()
    };
    std::thread::spawn(move || {
        if let Err(error) = mcp_server::run_with(switches) {
            eprintln!("the MCP server ended: {error}"); // the test fails for want of it
        }
    });
    let mut poll = interval(Duration::from_millis(10));
    while !file.exists() {
        poll.tick().await;
    }
    Ok(std::fs::read_to_string(&file)?)
}

/// The head of the answer to a GET.
fn get(url: &str) -> Result<String> {
    let rest = url.strip_prefix("http://").context("plain http")?;
    let (address, path) = rest.split_once('/').context("a path")?;
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The address that the page of the authorisation server sends a browser to.
fn address_after(page: &str) -> Result<String> {
    let answer = get(page)?;
    let mut lines = answer.lines();
    let location = lines.find_map(|line| line.strip_prefix("location: "));
    Ok(location.with_context(|| answer.clone())?.to_owned())
}

/// Begins to sign in where the page offers it; the address of the page that is to be opened.
async fn begin(page: &Page, within: &str) -> Result<String> {
    let sign_in = format!(
        "[...document.querySelectorAll('{within} button')].find(it => it.checkVisibility() && it.textContent === 'Sign in')"
    );
    page.press(&sign_in).await?;
    let link = format!("document.querySelector('{within} a[target=_blank]')");
    page.wait_for(&link).await?;
    page.wait_for_text("Sign in to test at 127.0.0.1").await?;
    let told = page.evaluate(&format!("[{link}.href, {link}.rel]")).await?;
    ensure!(told[1] == "noopener noreferrer", "{told}");
    Ok(told[0].as_str().context("an address")?.to_owned())
}

fn call(text: &str) -> [Answer; 2] {
    let call = Call::new("call_mcp", "mcp__test__echo", &json!({"text": text}));
    [Answer::calls([call]), Answer::streams([format!("end {text}").as_str()])]
}

async fn approve(page: &Page) -> Result<()> {
    page.press(&button("Review")).await?;
    let approve =
        "document.querySelector('.sheet-foot[data-armed=yes] [data-choice=approve]:enabled')";
    page.press(approve).await
}

/// No token is in what a browser keeps, nor in what the host does.
async fn check_secrets(host: &Host, page: &Page) -> Result<()> {
    let kept = page
        .evaluate("JSON.stringify([localStorage, sessionStorage, history.length, location.href])")
        .await?;
    let kept = kept.as_str().context("a text")?;
    ensure!(!kept.contains("t0ken") && !kept.contains("code="), "{kept}");
    ensure!(!host.log()?.contains("t0ken"), "the log holds a token");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mc_14_the_page_signs_in_and_the_call_goes_on() -> Result<()> {
    let (Some(own), Some(strange)) = (Browser::start().await?, Browser::start().await?) else {
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let url = serve_tracker(directory.path()).await?;
    let model = ModelServer::start().await;
    let host = Host::start(&["--model", &format!("{}#echo", model.url())])?;
    let declared = json!({"mcpServers": {"test": {"url": url}}});
    std::fs::write(host.home().join("greenroom/mcp.json"), declared.to_string())?;
    model.answers([Answer::streams(["hello"])]);
    let printed = host.run(&["send", "--json", "one"])?;
    let last: Value = serde_json::from_str(printed.lines().last().context("a line")?)?;
    let session = last["session"].as_str().context("a session")?.to_owned();
    let phone = sign_in(&own, &host, Screen::PHONE).await?;
    open_session(&phone, &session).await?;
    phone.wait_for_text("test wants you to sign in").await?;

    // Another device cannot finish what this one began.
    let asked = begin(&phone, ".dock").await?;
    let back = address_after(&asked)?;
    ensure!(back.starts_with(&format!("{}/?code=", host.origin)), "{back}");
    let unpaired = strange.page(Screen::PHONE).await?;
    unpaired.go_to(&back).await?;
    unpaired.wait_for_text("This browser is not paired").await?;
    unpaired.wait_for_text(&back).await?;
    let stranger = sign_in(&strange, &host, Screen::PHONE).await?;
    stranger.go_to(&back).await?;
    stranger.wait_for_text("You are not signed in").await?;
    stranger.wait_for_text("no sign-in of this device waits").await?;
    let tab = own.page(Screen::PHONE).await?;
    tab.go_to(&back).await?;
    tab.wait_for_text("You are signed in").await?;
    ensure!(tab.evaluate("location.search").await? == "", "the code is not in the address");
    check_secrets(&host, &tab).await?;
    phone.wait_for("!document.body.innerText.includes('wants you to sign in') && !document.querySelector('.dock a[target=_blank]')")
        .await?;
    // It counts once.
    tab.go_to(&back).await?;
    tab.wait_for_text("You are not signed in").await?;

    // A browser gives no input to a page that is behind another.
    phone.command("Page.bringToFront", json!({})).await?;
    model.answers(call("in"));
    send(&phone, "call in").await?;
    approve(&phone).await?;
    phone.wait_for_text("end in").await?;

    // In the middle of a call: the sheet that waits for it leads to the page.
    get(&url.replace("/mcp", "/revoke"))?;
    model.answers(call("again"));
    send(&phone, "call again").await?;
    approve(&phone).await?;
    phone.wait_for_text("needs a sign-in").await?;
    phone.evaluate("void (location.hash = '#/inbox')").await?;
    phone.press("document.querySelector('.request-link')").await?;
    phone.wait_for_text("sign-in needed").await?;
    let asked = begin(&phone, ".sheet").await?;
    tab.go_to(&asked).await?;
    tab.wait_for_text("You are signed in").await?;
    phone.command("Page.bringToFront", json!({})).await?;
    open_session(&phone, &session).await?;
    phone.wait_for_text("end again").await?;
    check_secrets(&host, &phone).await?;
    // The page itself asked nobody but the host.
    phone.observed().check(&host.origin, &[])
}
