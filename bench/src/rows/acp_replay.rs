//! What it costs to load a session whose agent says all of it again: 20,000 updates that nobody is to see.
//!
//! The agent is killed after its first turn; the next one starts it again and loads the session. The same with nothing said again is
//! taken off. The floor is reading the same lines from the same agent.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::acp::{agents_of, counting, is_there, start_host};
use super::{median_of, values};
use crate::driver::{Driver, Watchers};
use crate::harness::{AcpSetup, Harness};
use crate::measure::{Cpu, Peak, rss_anon_kib, spread, thread_cpu_ns};
use crate::table::Figure;

const UPDATES: f64 = 20_000.0;
const REPLAY: &[&str] = &["--replay", "20000"];
const NOTHING: &[&str] = &["--replay", "0"];

const CPU_US: f64 = 4.0;
const ADDED_KIB: f64 = 1_024.0;
const WAIT_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Replay,
    Nothing,
    Reading,
}

/// CPU in microseconds, and memory that was added at most.
type Cost = (f64, f64);

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let subjects = [Subject::Replay, Subject::Nothing, Subject::Reading];
    let results = harness.shuffled(&subjects, |harness, subject| match subject {
        Subject::Replay => load(harness, REPLAY),
        Subject::Nothing => load(harness, NOTHING),
        Subject::Reading => read(harness),
    })?;
    let cpu = |cost: &Cost| cost.0 / UPDATES;
    let kib = |cost: &Cost| cost.1;
    let with = median_of(&results, Subject::Replay, cpu);
    let without = median_of(&results, Subject::Nothing, cpu);
    let reading = median_of(&results, Subject::Reading, cpu);
    let (most, least) =
        (median_of(&results, Subject::Replay, kib), median_of(&results, Subject::Nothing, kib));
    Ok(vec![
        Figure::within(
            "CPU for each of 20,000 updates of a replay that are dropped, against reading the lines",
            "us",
            with - without,
            reading,
            CPU_US,
            "4 us",
        )
        .note(format!(
            "rounds: {}; a load without a replay: {:.0} us in all",
            spread(&values(&results, Subject::Replay, cpu)),
            without * UPDATES,
        )),
        Figure::within(
            "the same: memory added, against a load without a replay",
            "KiB",
            most - least,
            least,
            ADDED_KIB,
            "1 MiB",
        )
        .note(format!(
            "rounds: with {}, without {}",
            spread(&values(&results, Subject::Replay, kib)),
            spread(&values(&results, Subject::Nothing, kib)),
        )),
    ])
}

fn load(harness: &mut Harness, options: &'static [&'static str]) -> Result<Cost> {
    let acp = AcpSetup { options, ..AcpSetup::default() };
    let server = start_host(harness, acp)?;
    let pid = server.pid();
    let mut driver = Driver::with(server, "acp", 1)?;
    let mut watchers = Watchers::join(harness, &driver, &counting(1))?;
    for _ in 0..2 {
        // The second kill leaves a host that has restarted an agent before: what that needs once is there.
        say(&mut driver, &mut watchers)?;
        kill_agents(pid)?;
    }
    let before = rss_anon_kib(pid)?;
    let (peak, began) = (Peak::of(pid), Cpu::of(pid)?);
    say(&mut driver, &mut watchers)?;
    let used = Cpu::of(pid)?.since(began);
    let words = watchers.sample()?.frames;
    ensure!(words == 3, "{words} updates were seen instead of three");
    let added = peak.kib().saturating_sub(before) as f64;
    Ok((used.total_ns as f64 / 1_000.0, added))
}

/// A turn of one update.
fn say(driver: &mut Driver, watchers: &mut Watchers) -> Result<()> {
    watchers.mark(1)?;
    driver.send_message("stream 1 100 0")?;
    watchers.wait()?;
    // The end of the turn follows its last word.
    driver.await_idle(&driver.chat.clone())
}

fn kill_agents(host: u32) -> Result<()> {
    let agents = agents_of(host)?;
    ensure!(!agents.is_empty(), "the agent is a process");
    for agent in agents {
        let pid = Pid::from_raw(i32::try_from(agent)?).context("a process has a number")?;
        kill_process(pid, Signal::KILL)?;
        let deadline = Instant::now() + WAIT_MAX;
        while is_there(agent) {
            ensure!(Instant::now() < deadline, "the agent cannot be killed");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // The host notices.
    std::thread::sleep(Duration::from_millis(700));
    Ok(())
}

/// Reads the lines of a replay; nothing else is done with them.
fn read(harness: &Harness) -> Result<Cost> {
    let mut agent = Command::new(harness.bench())
        .arg("acp-agent")
        .args(REPLAY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = agent.stdin.take().context("it has a pipe")?;
    let output = agent.stdout.take().context("it has a pipe")?;
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": {"sessionId": "bench-1"}});
    input.write_all(format!("{asked}\n").as_bytes())?;
    let began = thread_cpu_ns();
    let (mut lines, mut line) = (BufReader::new(output), Vec::new());
    let mut count = 0_u32;
    while count <= 20_000 {
        line.clear();
        ensure!(lines.read_until(b'\n', &mut line)? > 0, "the agent is gone");
        count += 1;
    }
    let used = thread_cpu_ns() - began;
    drop(input);
    agent.wait()?;
    Ok((used as f64 / 1_000.0, 0.0))
}
