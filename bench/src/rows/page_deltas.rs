//! What the page's main thread does for a delta of a streaming answer, against a page that only appends: the same socket, the same
//! JSON, its text behind the last one, no Markdown.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{median_of, values};
use crate::driver::{DELTA_BYTES, Driver, session_of};
use crate::harness::{Harness, HostSetup};
use crate::measure::spread;
use crate::tab::Tab;
use crate::table::Figure;

/// A stream flows for so long before it is measured.
const WARM_UP: Duration = Duration::from_millis(1_500);
/// An answer of so many deltas and an empty line, again and again, is one that people read.
pub(crate) const SCRIPT: &str = r#"{"scenes": [
  {"when": "^answer (\\d+) (\\d+)$", "steps": [{"stream": {"chunks": "$1", "size": 40, "every_ms": "$2", "end": "\n\n"}}]}
]}"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Page,
    Appended,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    use Shown::{Appended, Page};
    let paces = [(5, "200/s"), (1, "1,000/s")];
    let subjects: Vec<(Shown, u64)> =
        paces.iter().flat_map(|(every_ms, _)| [(Page, *every_ms), (Appended, *every_ms)]).collect();
    let results = harness
        .shuffled(&subjects, |harness, (shown, every_ms)| measure(harness, shown, every_ms))?;
    let cost = |cost: &f64| *cost;
    let figure = |(every_ms, pace): (u64, &str)| {
        let (page, appended) = ((Page, every_ms), (Appended, every_ms));
        let of = |subject| median_of(&results, subject, cost);
        let rounds = |subject| spread(&values(&results, subject, cost));
        let note = format!("rounds: page {}, appended {}", rounds(page), rounds(appended));
        let what = format!("main thread of the page per delta, {pace}");
        Figure::at_most(&what, "ms", of(page), of(appended), 2.0).note(note)
    };
    Ok(paces.map(figure).into())
}

/// Milliseconds of the main thread for one delta.
fn measure(harness: &mut Harness, shown: Shown, every_ms: u64) -> Result<f64> {
    let data = harness.directory()?;
    let setup = HostSetup { script: "page.json", ..HostSetup::SHIPPED };
    let mut driver = Driver::on(harness.host(&data, setup)?)?;
    let tab = Tab::open(&driver.server)?;
    let length = match shown {
        Shown::Page => {
            let session = session_of("scripted", 1).replace(':', "%3A").replace('/', "%2F");
            tab.go_to(&format!("/#/s/{session}"))?;
            tab.wait_for("document.querySelector('textarea.composer-text')")?;
            "document.querySelector('.transcript').textContent.length"
        }
        Shown::Appended => {
            tab.evaluate(&append_only(&driver.chat))?;
            "window.text.length"
        }
    };
    let seconds = harness.seconds(6.0);
    let deltas = u64::try_from((seconds + 4 * WARM_UP).as_millis())? / every_ms;
    driver.send_message(&format!("answer {deltas} {every_ms}"))?;
    tab.wait_for(&format!("{length} > 2_000"))?;
    std::thread::sleep(WARM_UP);
    let (from, worked) = (tab.number(length)?, tab.main_thread_ms()?);
    std::thread::sleep(seconds);
    let (worked, to) = (tab.main_thread_ms()? - worked, tab.number(length)?);
    let shown = (to - from) / DELTA_BYTES as f64;
    ensure!(shown > 20.0, "only {shown} deltas were shown");
    Ok(worked / shown)
}

/// A page that subscribes to the chat and appends what comes, once a frame.
fn append_only(chat: &str) -> String {
    let first = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "appended", "initialSubscriptions": [chat]});
    let first = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first});
    format!(
        "(() => {{
          document.body.replaceChildren();
          const view = document.body.appendChild(document.createElement('div'));
          view.style.cssText = 'height: 90vh; overflow-y: auto; white-space: pre-wrap; font: 16px sans-serif';
          const text = window.text = view.appendChild(document.createTextNode(''));
          const socket = new WebSocket(`ws://${{location.host}}/ahp`, ['ahp']);
          let isAsked = false, waiting = '';
          const draw = () => {{ isAsked = false; text.appendData(waiting); waiting = ''; view.scrollTop = view.scrollHeight; }};
          socket.onmessage = ({{ data }}) => {{
            const {{ action }} = JSON.parse(data).params ?? {{}};
            if (action?.type !== 'chat/delta') return;
            waiting += action.content;
            if (!isAsked) {{ isAsked = true; requestAnimationFrame(draw); }}
          }};
          return new Promise((done, fail) => {{
            socket.onerror = fail;
            socket.onopen = () => {{ socket.send(JSON.stringify({first})); done(true); }};
          }});
        }})()"
    )
}
