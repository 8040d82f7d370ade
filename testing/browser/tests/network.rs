//! W-13: the network is bad, the host does not answer, the page is open twice; the page says so, and recovers by itself.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Network, Page, Screen, SlowLine, button};
use common::{IS_LIVE, LOST_CONNECTION, pairing_link, sign_in};
use serde_json::json;

const IS_NOT_LIVE: &str =
    "document.querySelector('.mark') && !document.querySelector('.mark[data-status=live]')";

#[tokio::test(flavor = "multi_thread")]
async fn offline_and_back() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    // What comes behind the first screen is there.
    let loaded = "['sheet.js', 'diff.js', 'markup.js', 'news.js', 'worker.js'].every(name => performance \
                  .getEntriesByType('resource').some(it => it.name.endsWith('/view/' + name)))";
    page.wait_for(loaded).await?;
    page.set_network(Network::Offline).await?;
    // Chromium leaves open sockets alone when it plays offline; nothing comes over this one.
    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))").await?;
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
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    for message in ["the first", "hello before the host hung"] {
        host.run(&["send", "--json", message])?;
    }
    // The oldest is opened, so that what a chat needs is loaded.
    page.wait_for("document.querySelectorAll('.session-link').length === 2").await?;
    page.evaluate("[...document.querySelectorAll('.session-link')].at(-1).click()").await?;
    page.wait_for_text("the first").await?;
    page.evaluate("void (location.hash = '#/')").await?;
    page.wait_for("document.querySelectorAll('.session-link').length === 2").await?;
    host.freeze()?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))").await?;
    page.wait_for(IS_NOT_LIVE).await?;
    // What is not in memory is not there to be read, and the page says so instead of nothing.
    let other = "[...document.querySelectorAll('.session-link')].find(it => !it.textContent.includes('the first'))";
    page.evaluate(&format!("{other}.click()")).await?;
    page.wait_for_text("The chat appears as soon as the host answers.").await?;
    host.thaw()?;
    page.wait_for(IS_LIVE).await?;
    page.wait_for_text("hello before the host hung").await?;
    ensure!(!page.text().await?.contains("as soon as the host answers"), "it is there");
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_are_two_clients() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let first = sign_in(&browser, &host, Screen::DESKTOP).await?;
    let second = browser.page(Screen::DESKTOP).await?;
    second.go_to(&host.origin).await?;
    second.wait_for(IS_LIVE).await?;
    first.wait_for(IS_LIVE).await?;
    let client = "sessionStorage.getItem('greenroom.client')";
    let (one, other) = (first.evaluate(client).await?, second.evaluate(client).await?);
    ensure!(one != other, "each tab has an id of its own");
    for page in [&first, &second] {
        page.observed().check(&host.origin, &[])?;
    }
    Ok(())
}

const CLIENT: &str = "sessionStorage.getItem('greenroom.client')";

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicated_tab_gets_a_name_of_its_own() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let first = sign_in(&browser, &host, Screen::DESKTOP).await?;
    let own = first.evaluate(CLIENT).await?;
    // Duplicating a tab copies its storage.
    let copy = format!("sessionStorage.setItem('greenroom.client', {own})");
    let second = browser.page(Screen::DESKTOP).await?;
    second.go_to(&format!("{}/sw.js", host.origin)).await?;
    second.evaluate(&copy).await?;
    second.go_to(&host.origin).await?;
    second.wait_for(IS_LIVE).await?;
    ensure!(second.evaluate(CLIENT).await? != own, "both are {own}");
    first.wait_for(IS_LIVE).await?;
    // A reload keeps the name: what was on its way is answered to it.
    first.reload().await?;
    first.wait_for(IS_LIVE).await?;
    ensure!(first.evaluate(CLIENT).await? == own, "a reload took the name");
    for page in [&first, &second] {
        page.observed().check(&host.origin, &LOST_CONNECTION)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicated_tab_without_locks_takes_over_and_says_so() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let first = sign_in(&browser, &host, Screen::DESKTOP).await?;
    let second = browser.page(Screen::DESKTOP).await?;
    // An address without TLS has no locks.
    let no_locks = json!({"source": "Object.defineProperty(Navigator.prototype, 'locks', {get: () => undefined})"});
    for page in [&first, &second] {
        page.command("Page.addScriptToEvaluateOnNewDocument", no_locks.clone()).await?;
    }
    first.reload().await?;
    first.wait_for(IS_LIVE).await?;
    let own = first.evaluate(CLIENT).await?;
    second.go_to(&format!("{}/sw.js", host.origin)).await?;
    second.evaluate(&format!("sessionStorage.setItem('greenroom.client', {own})")).await?;
    second.go_to(&host.origin).await?;
    second.wait_for(IS_LIVE).await?;
    first.wait_for_text("open in another tab").await?;
    first.press(&button("Use here")).await?;
    first.wait_for(IS_LIVE).await?;
    second.wait_for_text("open in another tab").await?;
    for page in [&first, &second] {
        page.observed().check(&host.origin, &LOST_CONNECTION)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_slept_catches_up_when_it_is_looked_at() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let mut host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    // A page in the background is frozen after minutes: no timer runs, nothing is heard, and its connection is gone when it wakes.
    let sleep = json!({"state": "frozen"});
    page.command("Page.setWebLifecycleState", sleep).await?;
    host.kill()?;
    host.start_again()?;
    host.run(&["send", "--json", "hello while you slept"])?;
    page.command("Page.setWebLifecycleState", json!({"state": "active"})).await?;
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))").await?;
    page.wait_for(IS_LIVE).await?;
    page.wait_for("document.querySelector('.session-link')").await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_another_version_is_told_and_loaded_when_asked_for() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let mut host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    page.wait_for("navigator.serviceWorker.getRegistration().then(it => !!it?.active)").await?;
    let own =
        page.evaluate("/app.([0-9a-f]+)/.exec(document.querySelector('script').src)[1]").await?;
    let own = own.as_str().context("a digest")?;
    let other = page
        .evaluate("fetch('/').then(it => it.text())")
        .await?
        .as_str()
        .context("a page")?
        .replace(own, "0123456789abcdef");
    page.answer_instead(&format!("{}/", host.origin), &other).await?;
    page.evaluate("window.isOfBefore = true").await?;
    host.kill()?;
    page.wait_for(IS_NOT_LIVE).await?;
    host.start_again()?;
    page.wait_for_text("The host has a new version of this page").await?;
    ensure!(page.evaluate("window.isOfBefore").await? == true, "nothing is loaded by itself");
    page.stop_answering().await?;
    page.press(&button("Reload")).await?;
    page.wait_for(&format!("!window.isOfBefore && {IS_LIVE}")).await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_host_the_page_opens_and_says_so() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let mut host = Host::start(&[])?;
    let page = sign_in(&browser, &host, Screen::PHONE).await?;
    page.wait_for(
        "navigator.serviceWorker.getRegistration().then(it => it?.active?.state === 'activated')",
    )
    .await?;
    let installing = page.command("Page.getInstallabilityErrors", json!({})).await?;
    ensure!(installing["installabilityErrors"] == json!([]), "it can be installed: {installing}");
    let kept = page
        .evaluate("caches.keys().then(([name]) => caches.open(name)).then(it => it.keys()).then(all => all.map(it => new URL(it.url).pathname))")
        .await?;
    let kept: Vec<&str> =
        kept.as_array().context("addresses")?.iter().filter_map(|it| it.as_str()).collect();
    ensure!(kept.iter().any(|it| it.ends_with("/js/view/prompt.js")), "all of it: {kept:?}");
    ensure!(
        !kept
            .iter()
            .any(|it| it.contains("api") && !it.ends_with("api.js") || it.contains("content")),
        "nothing of the user: {kept:?}"
    );
    host.kill()?;
    page.reload().await?;
    page.wait_for(IS_NOT_LIVE).await?;
    // Screens that were never looked at are there, too.
    page.evaluate("location.hash = '#/settings'").await?;
    page.wait_for_text("Theme").await?;
    page.evaluate("location.hash = '#/'").await?;
    page.wait_for(
        "/Reconnecting|Connecting|Offline/.test(document.querySelector('.banner')?.innerText)",
    )
    .await?;
    host.start_again()?;
    page.wait_for(IS_LIVE).await?;
    page.observed().check(&host.origin, &LOST_CONNECTION)
}

/// Signs in over a slow line without loading any of the page before.
async fn open_over(browser: &Browser, host: &Host, line: &SlowLine) -> Result<Page> {
    let (_, code) = pairing_link(host, &[])?;
    let page = browser.page(Screen::PHONE).await?;
    page.go_to(&format!("http://{}/sw.js", line.address)).await?;
    let pair = format!(
        "fetch('/api/pair', {{method: 'POST', headers: {{'Content-Type': 'application/json'}}, body: {}}}) \
         .then(it => it.json()).then(it => localStorage.setItem('greenroom.token', it.token))",
        json!(json!({"code": code, "name": "phone"}).to_string())
    );
    page.evaluate(&pair).await?;
    Ok(page)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connection_begins_while_most_of_the_page_is_on_its_way() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    host.run(&["send", "--json", "hello"])?;
    // So long that the speed of the machine counts for nothing.
    let line = SlowLine::to(&host.origin, Duration::from_millis(500), 4_000_000).await?;
    let page = open_over(&browser, &host, &line).await?;
    let before = line.passed().len();
    line.end_connections();
    page.go_to(&format!("http://{}/#/", line.address)).await?;
    page.wait_for("document.querySelector('.session-link')").await?;
    page.wait_for(IS_LIVE).await?;
    let passed = line.passed().split_off(before);
    let at = |end: &str| passed.iter().position(|it| it.ends_with(end));
    let socket = at("/ahp").with_context(|| format!("{passed:#?}"))?;
    for module in ["/js/view/shell.js", "/js/view/sessions.js"] {
        ensure!(at(module) > Some(socket), "{module}: {passed:#?}");
    }
    let sockets = passed.iter().filter(|it| it.ends_with("/ahp")).count();
    ensure!(sockets == 1, "it is the one that is used: {passed:#?}");
    // A text that is opened by itself has no icon.
    page.observed().check(&format!("http://{}", line.address), &["favicon.ico"])
}
