//! A visit to the page: what is loaded, when it is painted and when the list can be used, over a connection of 100 ms and 4 Mbit/s; a
//! later visit; a chat that is opened; a host that was killed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::json;

use super::{median_of, values};
use crate::driver::Driver;
use crate::harness::{Harness, HostSetup};
use crate::measure::{median, spread};
use crate::tab::Tab;
use crate::table::Figure;

/// Enough for a page of the list.
const SESSIONS: u32 = 100;
/// Those that are opened are read afterwards, so no other row uses them.
const OPENED_SESSIONS: u32 = 60;
/// The line of a visit, for requests and for the socket.
const ROUND_TRIP: Duration = Duration::from_millis(100);
const BITS_PER_SECOND: u32 = 4_000_000;

/// Notes when the list of sessions is there.
const WATCH_LIST: &str = "new MutationObserver((_, watch) => { if (document.querySelector('.session-link')) { \
    window.usable = performance.now(); watch.disconnect(); } }).observe(document, { childList: true, subtree: true })";
const FIRST_PAINT: &str = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    First,
    /// The same page and styles, no script.
    WithoutScript,
    Later,
}

struct Seen {
    painted_ms: f64,
    usable_ms: f64,
}

pub(super) fn visit(harness: &mut Harness) -> Result<Vec<Figure>> {
    use Visit::{First, Later, WithoutScript};
    let results = harness.shuffled(&[First, WithoutScript, Later], measure_visit)?;
    let painted = |seen: &Seen| seen.painted_ms;
    let usable = |seen: &Seen| seen.usable_ms;
    let floor = median_of(&results, WithoutScript, painted);
    let paint = |visit, what: &str, bound, words| {
        let figure = median_of(&results, visit, painted);
        let rounds = spread(&values(&results, visit, painted));
        Figure::within(what, "ms", figure, floor, bound, words).note(format!("rounds: {rounds}"))
    };
    let (first, files, rest) = sizes()?;
    let list = median_of(&results, First, usable);
    let rounds = spread(&values(&results, First, usable));
    Ok(vec![
        Figure::within("bytes of a first visit, brotli", "KB", first, f64::NAN, 60.0, "60 KB"),
        Figure::within("files of a first visit", "", files, f64::NAN, 40.0, "40"),
        Figure::reported("bytes of the whole page, brotli", "KB", first + rest, f64::NAN),
        paint(
            First,
            "first visit, 100 ms and 4 Mbit/s: first paint, against the page without script",
            800.0,
            "0.8 s",
        ),
        Figure::within("the same: the list can be used", "ms", list, floor, 1_800.0, "1.8 s")
            .note(format!("rounds: {rounds}")),
        paint(Later, "later visit from the service worker: first paint", 200.0, "0.2 s"),
    ])
}

/// KB and files of a first visit, KB of the rest as the service worker loads it.
fn sizes() -> Result<(f64, f64, f64)> {
    let packed = |path: &str| {
        let file = web::find(path).with_context(|| format!("{path} is not there"))?;
        anyhow::Ok(file.choose("br").bytes.len() as f64 / 1_024.0)
    };
    let page = std::str::from_utf8(web::find("/").context("there is no page")?.choose("").bytes)?;
    let named: std::collections::BTreeSet<String> = page
        .split("\"/app/")
        .skip(1)
        .filter_map(|part| Some(format!("/app/{}", part.split('"').next()?)))
        .collect();
    let mut first = packed("/")?;
    for path in &named {
        first += packed(path)?;
    }
    let rest = packed(&format!("/app/{}/rest.json", web::DIGEST))?;
    Ok((first, (named.len() + 1) as f64, rest))
}

fn measure_visit(harness: &mut Harness, visit: Visit) -> Result<Seen> {
    let data = harness.sessions(SESSIONS)?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    let tab = Tab::open_over(&server, ROUND_TRIP, BITS_PER_SECOND)?;
    tab.prepare_documents(WATCH_LIST)?;
    match visit {
        Visit::First => {}
        Visit::WithoutScript => {
            tab.command("Network.enable", json!({}))?;
            let scripts = json!({"urls": ["*.js"]});
            tab.command("Network.setBlockedURLs", scripts)?;
        }
        Visit::Later => {
            tab.go_to("/#/")?;
            tab.wait_for("navigator.serviceWorker.getRegistration().then(it => it?.active?.state === 'activated')")?;
            tab.go_to("/sw.js")?;
            tab.end_connections();
        }
    }
    tab.go_to("/#/")?;
    tab.wait_for(FIRST_PAINT)?;
    let painted_ms = tab.number(FIRST_PAINT)?;
    let usable_ms = match visit {
        Visit::WithoutScript => f64::NAN,
        Visit::First | Visit::Later => {
            tab.wait_for("window.usable")?;
            tab.number("window.usable")?
        }
    };
    server.stop()?;
    Ok(Seen { painted_ms, usable_ms })
}

/// Notes when the state of a chat came.
const WATCH_STATE: &str = "window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); \
    this.addEventListener('message', ({ data }) => { if (data.includes('\"snapshot\"') && data.includes('\"turns\"')) window.came = performance.now(); }); } }";
/// Opens a session. What was looked at is read from then on, so it stands elsewhere in the list afterwards.
const OPEN_FIRST: &str = "void (() => { const first = document.querySelector('.session-link'); window.opened = first.getAttribute('href'); first.click(); })()";
/// Opens another one, whose state has to come, and notes when the frame was painted that its last turn was first in.
const OPEN_OTHER: &str = "void (() => { window.came = window.painted = 0; \
    [...document.querySelectorAll('.session-link')].findLast((it) => it.getAttribute('href') !== window.opened).click(); \
    const look = () => { const last = [...document.querySelectorAll('.turn')].at(-1); \
    const isThere = window.came && last?.textContent.length > 40; \
    requestAnimationFrame(isThere ? () => { window.painted = performance.now(); } : look); }; look(); })()";

/// From the state of a chat to its last turn on the screen.
pub(super) fn open(harness: &mut Harness) -> Result<Vec<Figure>> {
    let mut took = Vec::new();
    for _ in 0..harness.rounds() {
        let data = harness.sessions(OPENED_SESSIONS)?;
        let server = harness.host(&data, HostSetup::SHIPPED)?;
        let tab = Tab::open(&server)?;
        tab.prepare_documents(WATCH_STATE)?;
        tab.go_to("/#/")?;
        tab.wait_for("document.querySelector('.session-link')")?;
        // The modules of a chat are there already: the service worker, or an earlier chat, loaded them.
        tab.evaluate(OPEN_FIRST)?;
        tab.wait_for("document.querySelector('.turn')")?;
        tab.evaluate("void (location.hash = '#/')")?;
        tab.wait_for("!document.querySelector('.turn') && document.querySelectorAll('.session-link').length > 1")?;
        tab.evaluate(OPEN_OTHER)?;
        tab.wait_for("window.painted")?;
        took.push(tab.number("window.painted - window.came")?);
        server.stop()?;
    }
    let what = "the page: from the state of a chat of 20 turns to its last turn painted";
    let figure = Figure::within(what, "ms", median(&took), f64::NAN, 150.0, "150 ms");
    Ok(vec![figure.note(format!("rounds: {}", spread(&took)))])
}

/// Notes when the page last said that it is live.
const WATCH_LIVE: &str = "(() => { const look = () => { const isLive = !!document.querySelector('.mark[data-status=live]'); \
    if (!isLive) window.liveAt = 0; else window.liveAt ||= Date.now(); }; \
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true }); look(); })()";

/// From the readiness of a host that was killed in mid-answer to a page that is live again.
pub(super) fn killed(harness: &mut Harness) -> Result<Vec<Figure>> {
    let mut took = Vec::new();
    for _ in 0..harness.rounds() {
        let data = harness.directory()?;
        let setup = HostSetup { script: "page.json", ..HostSetup::SHIPPED };
        let mut driver = Driver::on(harness.host(&data, setup)?)?;
        let tab = Tab::open(&driver.server)?;
        tab.go_to("/#/")?;
        tab.wait_for("document.querySelector('.mark[data-status=live]')")?;
        driver.send_message("answer 2000 5")?;
        tab.evaluate(WATCH_LIVE)?;
        std::thread::sleep(Duration::from_millis(500));
        let address = driver.server.address.clone();
        drop(driver); // SIGKILL
        tab.wait_for("!document.querySelector('.mark[data-status=live]')")?;
        let server = harness.host_at(&address, &data, setup)?;
        let ready = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as f64;
        tab.wait_for("window.liveAt > 0")?;
        took.push((tab.number("window.liveAt")? - ready).max(0.0));
        server.stop()?;
    }
    let what = "the page: live again after `kill -9` of the host, from its readiness";
    let figure = Figure::within(what, "ms", median(&took), f64::NAN, 300.0, "0.3 s");
    Ok(vec![figure.note(format!("rounds: {}", spread(&took)))])
}
