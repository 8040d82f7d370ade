//! A page that is signed in, and what people do on it in every test.

use anyhow::Result;
use browser::{Host, Page, button, labelled};
use serde_json::json;

/// Opens the page with the token of the host, as a device that was paired before has one.
pub async fn sign_in(page: &Page, host: &Host) -> Result<()> {
    page.go_to(&format!("{}/icons/icon.svg", host.origin))
        .await?;
    let keep = format!(
        "localStorage.setItem('greenroom.token', {})",
        json!(host.token)
    );
    page.evaluate(&keep).await?;
    page.go_to(&format!("{}/#/", host.origin)).await?;
    page.wait_for(&is_live()).await
}

/// Whether a mark on the page says that the connection is live.
pub fn is_live() -> String {
    "document.querySelector('.mark[data-status=live]')".to_owned()
}

/// Goes to a screen of the page that is open.
pub async fn go(page: &Page, hash: &str) -> Result<()> {
    page.evaluate(&format!("void (location.hash = {})", json!(hash)))
        .await
        .map(drop)
}

/// Starts a session as people do, and waits until its message is in the chat.
pub async fn start_session(page: &Page, message: &str) -> Result<()> {
    go(page, "#/new").await?;
    page.wait_for("document.querySelector('#new-agent option')")
        .await?;
    page.type_into(&labelled("First message"), message).await?;
    page.press(&button("Start")).await?;
    page.wait_for("location.hash.startsWith('#/s/')").await?;
    page.wait_for(&format!(
        "document.querySelector('#main')?.innerText.includes({})",
        json!(message)
    ))
    .await
}
