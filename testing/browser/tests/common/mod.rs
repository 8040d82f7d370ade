//! A device that is signed in, for tests of the page.

// Every test binary uses a part of it.
#![allow(dead_code)]

use anyhow::{Context as _, Result};
use browser::{Browser, Host, Page, Screen, button};
use serde_json::json;

/// The connection is live, as the page says itself.
pub const IS_LIVE: &str = "document.querySelector('.mark[data-status=live]')";

/// What is in the console after a connection was lost on purpose.
pub const LOST_CONNECTION: [&str; 3] =
    ["WebSocket connection to", "net::ERR_", "Failed to load resource"];

/// The link of `greenroom pair` and the code in it.
pub fn pairing_link(host: &Host, arguments: &[&str]) -> Result<(String, String)> {
    let printed = host.run(&[&["pair"], arguments].concat())?;
    let link = printed.trim().to_owned();
    let (_, code) = link.split_once("/#pair=").context("a link that pairs")?;
    let code = code.to_owned();
    Ok((link, code))
}

/// A page of a device that was paired by hand.
pub async fn sign_in(browser: &Browser, host: &Host, screen: Screen) -> Result<Page> {
    let (link, _) = pairing_link(host, &["--inspect"])?;
    let page = browser.page(screen).await?;
    page.go_to(&link).await?;
    page.press(&button("Pair")).await?;
    page.wait_for(IS_LIVE).await?;
    Ok(page)
}

/// Opens a session by its address; the first session of the list if there is one.
pub async fn open_session(page: &Page, session: &str) -> Result<()> {
    let script = format!("location.hash = '#/s/' + encodeURIComponent({})", json!(session));
    page.evaluate(&script).await?;
    page.wait_for("document.querySelector('textarea.composer-text')").await
}

/// Sends a message from the composer of the session that is open.
pub async fn send(page: &Page, text: &str) -> Result<()> {
    page.type_into("document.querySelector('textarea.composer-text')", text).await?;
    page.press("document.querySelector('.composer-bar button[type=submit]')").await
}
