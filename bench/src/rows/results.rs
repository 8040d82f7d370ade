//! What large results of tools cost: a turn with 200 tool calls of 1 MB output each, in one chat, while another chat
//! is watched as in `latency`.
//!
//! The floor is the same host relaying as many results of 100 bytes at the same pace: beside it stand what the bodies
//! cost, to be written, synced and named, and the memory they pass through.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::latency::{EVERY, Percentiles};
use super::{median_of, values};
use crate::driver::{Driver, WATCHERS, WatcherOptions, Watchers};
use crate::harness::{Harness, HostSetup};
use crate::measure::{Cpu, Peak, rss_anon_kib, spread};
use crate::protocol;
use crate::socket::Socket;
use crate::table::Figure;

const CALLS: usize = 200;
/// How often a result repeats the word it is given.
const REPEATED: usize = 100;
const WORD_BYTES: usize = 10_486; // 1 MiB in all
const NUMBER_BYTES: usize = 8;

const SESSION: &str = "scripted:/01900000-0000-7000-8000-000000000002";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Large,
    Small,
}

#[derive(Debug, Clone, Copy)]
struct ResultsRun {
    percentiles: Percentiles,
    /// The most that was added to the memory the host had before.
    grown_mib: f64,
    seconds: f64,
    /// CPU of the host from the beginning of the turn to its end.
    cpu_ms: f64,
}

/// One of its figures.
type Look = fn(&ResultsRun) -> f64;

/// What the agent plays: `print WORD MS` makes so many calls, one every so many milliseconds.
pub(crate) fn script() -> String {
    let call = |number: usize| {
        // No two alike: what is there already would not be written again.
        let text = format!("{number:NUMBER_BYTES$}{}", "$1".repeat(REPEATED));
        let content = json!([{"type": "text", "text": text}]);
        json!({"tool": {"name": "print", "result": {"content": content}}})
    };
    let steps: Vec<Value> =
        (0..CALLS).flat_map(|number| [call(number), json!({"wait_ms": "$2"})]).collect();
    json!({"scenes": [{"when": r"^print (\w+) (\d+)$", "steps": steps}]}).to_string()
}

pub(crate) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Output::Large, Output::Small], relayed)?;
    let of = |output, value: Look| median_of(&results, output, value);
    let rounds = |value: Look| {
        let (large, small) = (
            spread(&values(&results, Output::Large, value)),
            spread(&values(&results, Output::Small, value)),
        );
        format!("rounds: large {large}, small {small}")
    };
    let grown: Look = |relayed| relayed.grown_mib;
    let p99: Look = |relayed| relayed.percentiles.p99;
    Ok(vec![
        Figure::within(
            "memory added by 200 results of 1 MB",
            "MiB",
            of(Output::Large, grown),
            of(Output::Small, grown),
            32e6 / 1_048_576.0,
            "32 MB",
        )
        .note(rounds(grown)),
        Figure::at_most(
            "p99 of another chat while they come",
            "us",
            of(Output::Large, p99),
            of(Output::Small, p99),
            2.0,
        )
        .note(format!(
            "p50: large {:.0} us, small {:.0} us; a turn took {:.1} s, {:.1} s; CPU {:.0} ms, {:.0} ms",
            of(Output::Large, |relayed| relayed.percentiles.p50),
            of(Output::Small, |relayed| relayed.percentiles.p50),
            of(Output::Large, |relayed| relayed.seconds),
            of(Output::Small, |relayed| relayed.seconds),
            of(Output::Large, |relayed| relayed.cpu_ms),
            of(Output::Small, |relayed| relayed.cpu_ms),
        ))
        .note(rounds(p99)),
    ])
}

fn relayed(harness: &mut Harness, output: Output) -> Result<ResultsRun> {
    let data = harness.directory()?;
    let setup = HostSetup { script: "results.json", ..HostSetup::SHIPPED };
    let mut driver = Driver::on(harness.host(&data, setup)?)?;
    let options = WatcherOptions::stamped(WATCHERS);
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    let mut printer = Socket::join(&driver.server.address, "printer")?;
    printer.request(3, "createSession", &json!({"channel": SESSION}))?;
    watchers.mark(100)?;
    driver.stamp(100, EVERY)?;
    watchers.wait()?;

    let length = harness.seconds(4.0);
    let before = rss_anon_kib(driver.server.pid())?;
    let memory = Peak::of(driver.server.pid());
    let word = match output {
        Output::Large => "x".repeat(WORD_BYTES),
        Output::Small => "x".to_owned(),
    };
    let every_ms = length.as_millis() / CALLS as u128;
    let (chat, text) = (protocol::chat_of(SESSION), format!("print {word} {every_ms}"));
    let (began, cpu) = (std::time::Instant::now(), Cpu::of(driver.server.pid())?);
    printer.send(&protocol::turn_started(&chat, 1, "turn-1", &text))?;
    // Drafts end before the turn does: all of them are sent while results come.
    let count = u32::try_from(length.as_millis() / EVERY.as_millis())?;
    watchers.mark(u64::from(count))?;
    driver.stamp(count, EVERY)?;
    watchers.wait()?;
    let percentiles = Percentiles::of(&watchers.latencies_us()?);
    while is_running(&mut printer)? {
        std::thread::sleep(Duration::from_millis(50));
    }
    let seconds = began.elapsed().as_secs_f64();
    let cpu = Cpu::of(driver.server.pid())?.since(cpu);
    let grown_mib = memory.kib().saturating_sub(before) as f64 / 1_024.0;
    check(&mut printer, &chat, output)?;
    Ok(ResultsRun { percentiles, grown_mib, seconds, cpu_ms: cpu.total_ns as f64 / 1e6 })
}

fn is_running(printer: &mut Socket) -> Result<bool> {
    let list = printer.request(4, "listSessions", &json!({"channel": protocol::root()}))?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let status = items
        .iter()
        .find(|item| item["resource"] == SESSION)
        .and_then(|item| item["status"].as_u64());
    Ok(status.is_some_and(|status| status & 8 != 0))
}

/// All results are there, and the large ones are where they belong.
fn check(printer: &mut Socket, chat: &str, output: Output) -> Result<()> {
    let answer = printer.request(5, "subscribe", &json!({"channel": chat}))?;
    let parts = &answer["snapshot"]["state"]["turns"][0]["responseParts"];
    let parts = parts.as_array().cloned().unwrap_or_default();
    ensure!(parts.len() == CALLS, "{} calls in the turn", parts.len());
    for part in parts {
        let content = &part["toolCall"]["content"];
        let stored = content[1]["sizeHint"].as_u64();
        let bytes = (NUMBER_BYTES + WORD_BYTES * REPEATED) as u64;
        let expected = (output == Output::Large).then_some(bytes);
        ensure!(stored == expected, "a result of {stored:?} bytes");
    }
    Ok(())
}
