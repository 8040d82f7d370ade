//! W-13: the network is bad, the host does not answer, the page is open twice; the page says so, and recovers by itself.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use anyhow::Result;
use browser::{Browser, Host, Network, Screen};
use common::{IS_LIVE, LOST_CONNECTION, sign_in};

const IS_NOT_LIVE: &str =
    "document.querySelector('.mark') && !document.querySelector('.mark[data-status=live]')";

#[tokio::test(flavor = "multi_thread")]
async fn offline_and_back() -> Result<()> {
    let Some(browser) = Browser::start().await? else {
        return Ok(());
    };
    let host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    // What comes behind the first screen is there.
    let loaded = "['sheet.js', 'diff.js', 'markup.js', 'news.js', 'worker.js'].every(name => performance \
                  .getEntriesByType('resource').some(it => it.name.endsWith('/view/' + name)))";
    page.wait_for(loaded).await?;
    page.set_network(Network::Offline).await?;
    // Chromium leaves open sockets alone when it plays offline; nothing comes over this one.
    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        .await?;
    page.wait_for_text("Offline").await?;
    host.thaw()?;
    page.set_network(Network::Good).await?;
    page.wait_for(IS_LIVE).await?;
    page.set_network(Network::Slow(400)).await?;
    page.reload().await?;
    page.wait_for(IS_LIVE).await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_hangs_is_noticed_when_the_page_is_looked_at() -> Result<()> {
    let Some(browser) = Browser::start().await? else {
        return Ok(());
    };
    let host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        .await?;
    page.wait_for(IS_NOT_LIVE).await?;
    host.thaw()?;
    page.wait_for(IS_LIVE).await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_are_two_clients() -> Result<()> {
    let Some(browser) = Browser::start().await? else {
        return Ok(());
    };
    let host = Host::start(&[])?;
    let first = sign_in(&browser, &host, Screen::DESKTOP).await?;
    let second = browser.page(Screen::DESKTOP).await?;
    second.go_to(&host.origin).await?;
    second.wait_for(IS_LIVE).await?;
    first.wait_for(IS_LIVE).await?;
    let client = "sessionStorage.getItem('greenroom.client')";
    let (one, other) = (
        first.evaluate(client).await?,
        second.evaluate(client).await?,
    );
    anyhow::ensure!(one != other, "each tab has an id of its own");
    for page in [&first, &second] {
        page.observed().check(&host.origin, &[])?;
    }
    Ok(())
}
