//! Anonymous memory of the host with agents over ACP: for each idle chat whose agent's process runs, what is left when it is stopped
//! and the chats have left memory, and while 50 chats of one process stream at once.
//!
//! Each chat is in a session of its own and has a watcher, who is there before and after. "Idle" is a chat with one turn of one
//! update, which its agent remembers, too.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::acp::{agents_of, counting, start_host};
use crate::driver::{Driver, WatcherOptions, Watchers};
use crate::harness::{AcpSetup, Harness, HostSetup};
use crate::measure::{Peak, median, rss_anon_kib, spread};
use crate::table::Figure;

const CHATS: usize = 50;
const IDLE_KIB: f64 = 96.0;
const STREAMS_KIB: f64 = 32.0 * 1_024.0;
const EVERY_MS: u64 = 50;

/// Channels leave memory, and processes are stopped, after this.
const IDLE: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let idle = repeated(harness, idle_chats)?;
    let rest = repeated(harness, chats_at_rest)?;
    let streams = repeated(harness, streaming_chats)?;
    let column = |rounds: &[[f64; 2]], n: usize| -> Vec<f64> {
        rounds.iter().map(|round| round[n]).collect()
    };
    let each = column(&idle, 0);
    let (before, after) = (median(&column(&rest, 0)), median(&column(&rest, 1)));
    let added = column(&streams, 0);
    Ok(vec![
        Figure::within(
            "an idle chat of an agent over ACP whose process runs, over 50",
            "KiB",
            median(&each),
            f64::NAN,
            IDLE_KIB,
            "96 KiB",
        )
        .note(format!("rounds: {}", spread(&each))),
        Figure::within(
            "50 such chats after their process was stopped, against one",
            "KiB",
            after,
            before,
            (before * 1.1).max(before + 3_072.0),
            "10 % or 3 MB more",
        )
        .note(format!(
            "{:.2} KiB a chat; rounds after: {}",
            (after - before) / (CHATS - 1) as f64,
            spread(&column(&rest, 1))
        )),
        Figure::within(
            "50 chats of one agent's process, 20 updates/s each: RssAnon added",
            "KiB",
            median(&added),
            f64::NAN,
            STREAMS_KIB,
            "32 MiB",
        )
        .note(format!(
            "from {:.0} KiB; rounds: {}",
            median(&column(&streams, 1)),
            spread(&added)
        )),
    ])
}

fn repeated(
    harness: &mut Harness,
    run: fn(&mut Harness) -> Result<[f64; 2]>,
) -> Result<Vec<[f64; 2]>> {
    let results = harness.shuffled(&[()], |harness, ()| run(harness))?;
    Ok(results.into_iter().map(|(_, value)| value).collect())
}

fn apart() -> WatcherOptions {
    WatcherOptions { apart: true, ..counting(CHATS) }
}

/// KiB for each chat after the first; and of the whole host.
fn idle_chats(harness: &mut Harness) -> Result<[f64; 2]> {
    let server = start_host(harness, AcpSetup::default())?;
    let pid = server.pid();
    let mut driver = Driver::with(server, "acp", CHATS)?;
    let mut watchers = Watchers::join(harness, &driver, &apart())?;
    prompt_first(&mut driver, &mut watchers)?;
    let before = rss_anon_kib(pid)? as f64;
    prompt_others(&mut driver, &mut watchers)?;
    let processes = agents_of(pid)?.len();
    ensure!(processes == 1, "{processes} processes instead of one");
    let after = rss_anon_kib(pid)? as f64;
    Ok([(after - before) / (CHATS - 1) as f64, after])
}

fn prompt_first(driver: &mut Driver, watchers: &mut Watchers) -> Result<()> {
    let first = driver.chat.clone();
    prompt_all(driver, watchers, &[first])
}

fn prompt_others(driver: &mut Driver, watchers: &mut Watchers) -> Result<()> {
    let others = driver.chats[1..].to_vec();
    prompt_all(driver, watchers, &others)
}

/// A turn of one update in each of these, one after the other.
fn prompt_all(driver: &mut Driver, watchers: &mut Watchers, chats: &[String]) -> Result<()> {
    for chat in chats {
        let before = watchers.sample()?.frames;
        driver.send_message_in(chat, "stream 1 100 0")?;
        let deadline = Instant::now() + WAIT_MAX;
        while watchers.sample()?.frames == before {
            ensure!(Instant::now() < deadline, "the agent says nothing");
            std::thread::sleep(Duration::from_millis(2));
        }
        // The end of the turn follows its last word.
        driver.await_idle(chat)?;
    }
    Ok(())
}

/// KiB after one chat, and after all of them, each time with the process stopped and the chats gone from memory.
fn chats_at_rest(harness: &mut Harness) -> Result<[f64; 2]> {
    let data = harness.directory()?;
    let setup = HostSetup {
        idle_ms: Some(u64::try_from(IDLE.as_millis())?),
        acp: Some(AcpSetup { idle_s: Some(IDLE.as_secs()), ..AcpSetup::default() }),
        ..HostSetup::SHIPPED
    };
    let mut driver = Driver::with(harness.host(&data, setup)?, "acp", CHATS)?;
    let pid = driver.server.pid();
    let mut rest = |driver: &mut Driver,
                    prompt: fn(&mut Driver, &mut Watchers) -> Result<()>|
     -> Result<f64> {
        let mut watchers = Watchers::join(harness, driver, &apart())?;
        prompt(driver, &mut watchers)?;
        drop(watchers);
        let deadline = Instant::now() + WAIT_MAX;
        while !agents_of(pid)?.is_empty() {
            ensure!(Instant::now() < deadline, "the agent is not stopped");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Channels leave memory in their own time.
        std::thread::sleep(IDLE * 5 / 2);
        Ok(rss_anon_kib(pid)? as f64)
    };
    Ok([rest(&mut driver, prompt_first)?, rest(&mut driver, prompt_others)?])
}

/// KiB that were added at most; and what there was before.
fn streaming_chats(harness: &mut Harness) -> Result<[f64; 2]> {
    let server = start_host(harness, AcpSetup::default())?;
    let pid = server.pid();
    let mut driver = Driver::with(server, "acp", CHATS)?;
    let mut watchers = Watchers::join(harness, &driver, &apart())?;
    let before = rss_anon_kib(pid)? as f64;
    let peak = Peak::of(pid);
    let updates = u64::try_from(harness.seconds(6.0).as_millis())? / EVERY_MS;
    watchers.mark(updates)?;
    for chat in driver.chats.clone() {
        driver.send_message_in(&chat, &format!("stream {updates} 100 {EVERY_MS}"))?;
    }
    watchers.wait()?;
    Ok([peak.kib() as f64 - before, before])
}
