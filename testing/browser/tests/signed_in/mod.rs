//! A page that is signed in, and what people do on it in every test.

use std::path::Path;

use anyhow::{Context as _, Result};
use browser::{Host, Page, button, labelled};
use serde_json::json;

/// Opens the page with the token of the host, as a device that was paired before has one.
pub(crate) async fn sign_in(page: &Page, host: &Host) -> Result<()> {
    page.go_to(&format!("{}/#/", host.origin)).await?;
    let keep = format!("localStorage.setItem('greenroom.token', {})", json!(host.token));
    page.evaluate(&keep).await?;
    page.reload().await?;
    page.wait_for(&is_live()).await
}

/// Whether a mark on the page says that the connection is live.
pub(crate) fn is_live() -> String {
    "document.querySelector('.mark[data-status=live]')".to_owned()
}

/// Goes to a screen of the page that is open.
pub(crate) async fn go(page: &Page, hash: &str) -> Result<()> {
    page.evaluate(&format!("void (location.hash = {})", json!(hash))).await.map(drop)
}

/// Starts a session as people do, and waits until its message is in the chat.
pub(crate) async fn start_session_in(
    page: &Page,
    folder: Option<&Path>,
    message: &str,
) -> Result<()> {
    go(page, "#/new").await?;
    page.wait_for("document.querySelector('#new-agent option')").await?;
    if let Some(folder) = folder {
        let folder = folder.to_str().context("a path that can be typed")?;
        page.type_into(&labelled("Folder"), folder).await?;
    }
    page.type_into(&labelled("First message"), message).await?;
    page.press(&button("Start")).await?;
    page.wait_for("location.hash.startsWith('#/s/')").await?;
    page.wait_for(&format!(
        "document.querySelector('#main')?.innerText.includes({})",
        json!(message)
    ))
    .await
}
