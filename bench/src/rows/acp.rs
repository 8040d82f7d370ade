//! What the host costs between an agent over ACP and those who watch: CPU for each update, from the pipe to the watchers'
//! sockets, against a bare relay of the same lines; and how soon an agent is gone when its host is killed.
//!
//! An update has 100 bytes of text, about 250 on the pipe. The host may send several in one frame and one commit; what is
//! counted are the updates that reached the watchers, not the frames. The relay commits nothing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::{median_of, values};
use crate::acp_agent::WORD;
use crate::driver::{Driver, Load, LoadResult, Subject, WatcherOptions, Watchers};
use crate::harness::{AcpSetup, Harness, HostSetup};
use crate::measure::{now_ns, spread};
use crate::table::Figure;

const UPDATE_BYTES: u64 = 100;

/// Until the last process of an agent is gone.
const GONE_S: f64 = 5.0;

/// Longer than anything takes that works: a row ends in words, not never.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
struct Case {
    what: &'static str,
    watchers: usize,
    every_ms: u64,
    factor: f64,
}

const CASES: [Case; 2] = [
    Case {
        what: "CPU per update of an agent over ACP, 200/s, 1 watcher",
        watchers: 1,
        every_ms: 5,
        factor: 2.0,
    },
    Case { what: "the same, 1,000/s, 10 watchers", watchers: 10, every_ms: 1, factor: 1.5 },
];

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for case in CASES {
        let subjects = [Subject::HOST, Subject::Bare];
        let results = harness.shuffled(&subjects, |harness, subject| case.run(harness, subject))?;
        let cost = |loaded: &LoadResult| loaded.us_per_frame;
        let figure = Figure::at_most(
            case.what,
            "us",
            median_of(&results, Subject::HOST, cost),
            median_of(&results, Subject::Bare, cost),
            case.factor,
        );
        figures.push(figure.note(format!(
            "rounds: host {}, relay {}; {:.1} updates a commit",
            spread(&values(&results, Subject::HOST, cost)),
            spread(&values(&results, Subject::Bare, cost)),
            median_of(&results, Subject::HOST, |loaded| loaded.batch),
        )));
    }
    Ok(figures)
}

impl Case {
    fn run(self, harness: &mut Harness, subject: Subject) -> Result<LoadResult> {
        let load = Load { every_ms: self.every_ms, window_ms: None, seconds: harness.seconds(2.0) };
        let mut driver = Driver::with(start(harness, subject)?, "acp", 1)?;
        let mut watchers = Watchers::join(harness, &driver, &counting(self.watchers))?;
        let (count, every_ms) = (load.deltas()?, self.every_ms);
        driver.send_message(&format!("stream {count} {UPDATE_BYTES} {every_ms}"))?;
        await_first_update(&mut watchers, 0)?;
        load.measure(&driver, &mut watchers)
    }
}

/// The host with an agent over ACP, or the relay.
pub(super) fn start(harness: &mut Harness, subject: Subject) -> Result<crate::process::Server> {
    match subject {
        Subject::Host(journal) => {
            let data = harness.directory()?;
            let setup = HostSetup { journal, acp: Some(AcpSetup::default()), ..HostSetup::SHIPPED };
            harness.host(&data, setup)
        }
        Subject::Bare => harness.bare(&["--relay-agent".to_owned()]),
    }
}

pub(super) fn killed(harness: &mut Harness) -> Result<Vec<Figure>> {
    let rounds = harness.rounds();
    let mut times = Vec::new();
    for _ in 0..rounds {
        let server = start(harness, Subject::HOST)?;
        let host = server.pid();
        let mut driver = Driver::with(server, "acp", 1)?;
        let mut watchers = Watchers::join(harness, &driver, &counting(1))?;
        driver.send_message(&format!("stream 100000 {UPDATE_BYTES} 5"))?;
        await_first_update(&mut watchers, 0)?;
        let agents = agents_of(host)?;
        ensure!(!agents.is_empty(), "the agent is a process");
        let pid = Pid::from_raw(i32::try_from(host)?).context("a process has a number")?;
        kill_process(pid, Signal::KILL)?;
        let began = now_ns();
        let deadline = Instant::now() + WAIT_MAX;
        while agents.iter().any(|agent| is_there(*agent)) {
            ensure!(Instant::now() < deadline, "the agent outlives its host");
            std::thread::sleep(Duration::from_millis(1));
        }
        times.push((now_ns() - began) as f64 / 1e9);
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let what = "`kill -9` of the host until the last process of its agent is gone, the longest";
    Ok(vec![
        Figure::within(what, "s", worst, worst, GONE_S, "an agent must not outlive its host")
            .note(format!("rounds: {}", spread(&times))),
    ])
}

/// The host with an agent over ACP that is set up like this.
pub(super) fn start_host(harness: &mut Harness, acp: AcpSetup) -> Result<crate::process::Server> {
    let data = harness.directory()?;
    let setup = HostSetup { acp: Some(acp), ..HostSetup::SHIPPED };
    harness.host(&data, setup)
}

/// Watchers that count the agent's updates.
pub(super) fn counting(count: usize) -> WatcherOptions {
    WatcherOptions { count, word: Some(WORD), ..WatcherOptions::default() }
}

/// Waits until watchers have more than so many updates: the host's agent is a process that starts first.
pub(super) fn await_first_update(watchers: &mut Watchers, before: u64) -> Result<()> {
    let deadline = Instant::now() + WAIT_MAX;
    while watchers.sample()?.frames <= before {
        ensure!(Instant::now() < deadline, "the agent says nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Those of a host's processes that are agents: it may run others beside them, such as `git`.
pub(super) fn agents_of(host: u32) -> Result<Vec<u32>> {
    let is_agent = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"acp-agent")
    };
    let children = children_of(host)?;
    Ok(children.into_iter().filter(is_agent).collect())
}

/// The processes that a process started.
fn children_of(pid: u32) -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let file: PathBuf = task?.path().join("children");
        let text = std::fs::read_to_string(file)?;
        children.extend(text.split_whitespace().filter_map(|it| it.parse::<u32>().ok()));
    }
    Ok(children)
}

pub(super) fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
