//! W-1: a phone is paired by a link, stays signed in, and is out as soon as somebody signs it out.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Page, Screen, button, labelled};
use common::{IS_LIVE, LOST_CONNECTION, pairing_link};
use serde_json::{Value, json};

/// Notes how connections ended, over a reload too.
const NOTE_CLOSE: &str = "window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); \
    this.addEventListener('close', ({ code, reason }) => { sessionStorage.closed = `${sessionStorage.closed ?? ''}${code} ${reason}\\n`; }); } }";

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_paired_by_a_link_and_signed_out_from_elsewhere() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let (link, code) = pairing_link(&host, &[])?;
    let phone = browser.page(Screen::PHONE).await?;
    let note = json!({"source": NOTE_CLOSE});
    phone.command("Page.addScriptToEvaluateOnNewDocument", note).await?;
    phone.go_to(&link).await?;
    phone.wait_for_text("Pair this device?").await?;
    let shown = phone.evaluate("location.href + ' ' + document.documentElement.outerHTML").await?;
    ensure!(!shown.as_str().context("text")?.contains(&code), "the code left the address");
    let asked = phone.observed().requests;
    ensure!(
        !asked.iter().any(|(url, _)| url.contains("/api/")),
        "nothing is asked before somebody says so: {asked:?}"
    );

    phone.evaluate(&format!("{}.value = ''", labelled("Name of this device"))).await?;
    phone.type_into(&labelled("Name of this device"), "my phone").await?;
    phone.press(&button("Pair")).await?;
    phone.wait_for(IS_LIVE).await?;
    let token = phone.evaluate("localStorage.getItem('greenroom.token')").await?;
    let token = token.as_str().context("a token")?.to_owned();
    ensure!(token.len() == 43, "256 bits");

    // The same link again, in another tab: it was used.
    let second = browser.page(Screen::PHONE).await?;
    second.go_to(&link).await?;
    second.press(&button("Pair")).await?;
    second.wait_for_text("was used before").await?;

    phone.reload().await?;
    phone.wait_for(IS_LIVE).await?;
    let devices: Value = serde_json::from_str(&host.run(&["devices", "--json"])?)?;
    ensure!(
        devices[0]["name"] == "my phone" && devices[0]["scopes"] == json!(["use"]),
        "{devices}"
    );
    ensure!(devices[0]["connections"] == 1, "{devices}");

    // The host ends the connection at once and says why; a page that had to find out by itself would end it without a reason.
    host.run(&["devices", "revoke", "my phone"])?;
    phone.wait_for_text("This device was signed out").await?;
    let closed = phone.evaluate("sessionStorage.closed").await?;
    let closed = closed.as_str().context("a connection that ended")?;
    ensure!(closed.lines().next() == Some("1008 this device was signed out"), "{closed}");
    let kept = phone.evaluate("JSON.stringify([Object.keys(localStorage).filter(it => it.startsWith('greenroom.')), document.cookie])").await?;
    ensure!(kept == r#"[[],""]"#, "nothing is kept: {kept}");

    check_secrets(&host, [&phone, &second], &token, &code)
}

/// Neither the token nor the code is in an address or in the log.
fn check_secrets(host: &Host, pages: [&Page; 2], token: &str, code: &str) -> Result<()> {
    for page in pages {
        let seen = page.observed();
        let caused = [&LOST_CONNECTION[..], &["403", "401"]].concat();
        seen.check(&host.origin, &caused)?;
        let addresses = seen.requests.iter().map(|(url, _)| url).chain(&seen.sockets);
        for address in addresses {
            ensure!(
                !address.contains(token) && !address.contains(code),
                "a secret is in an address: {address}"
            );
        }
    }
    let log = host.log()?;
    ensure!(
        log.contains("a device was paired") && log.contains("a device was signed out"),
        "{log}"
    );
    ensure!(
        !log.contains(token) && !log.contains(code) && !log.contains("my phone"),
        "a secret is in the log"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn open_signs_the_browser_of_this_machine_in_and_it_signs_itself_out() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = browser.page(Screen::DESKTOP).await?;
    page.go_to(&host.origin).await?;
    page.wait_for_text("This device is not paired").await?;
    // A link in an address that is open already would only change its fragment.
    page.go_to("about:blank").await?;
    page.go_to(host.run(&["open", "--print"])?.trim()).await?;
    page.press(&button("Pair")).await?;
    page.wait_for(IS_LIVE).await?;
    let me = page.evaluate(
        "fetch('/api/me', {headers: {Authorization: 'Bearer ' + localStorage.getItem('greenroom.token')}}).then(it => it.json())",
    ).await?;
    ensure!(me["scopes"] == json!(["use", "inspect"]), "{me}");
    page.evaluate("location.hash = '#/settings'").await?;
    page.press(&button("Sign out this device")).await?;
    page.wait_for("document.body.innerText.includes('shows a QR code') || [...document.querySelectorAll('dialog[open] button')].length > 0").await?;
    if !page.text().await?.contains("shows a QR code") {
        page.press("[...document.querySelectorAll('dialog[open] button')].find(it => it.textContent.includes('Sign out'))").await?;
    }
    page.wait_for_text("shows a QR code").await?;
    ensure!(host.run(&["devices", "--json"])?.trim() == "[]", "the host was told");
    page.observed().check(&host.origin, &LOST_CONNECTION)
}
