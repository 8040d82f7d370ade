//! From a client's message to the first word of an agent over ACP, against the same agent driven by hand through its pipes: with a
//! process that runs, and with one that has to be started. What is between the two is the host's share. The files of the project are older
//! than a few seconds, as people's are, and the host has not seen them before its first turn.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::acp::{counting, start_host};
use super::{median_of, values};
use crate::driver::{Driver, Watchers};
use crate::harness::{AcpSetup, Harness};
use crate::measure::{median, now_ns, spread};
use crate::table::Figure;

/// One update, at once.
const PROMPT: &str = "stream 1 100 0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Host,
    ByHand,
}

#[derive(Debug, Clone, Copy)]
struct FirstTokens {
    cold_ms: f64,
    warm_ms: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let turns = if harness.quick { 10 } else { 30 };
    let subjects = [Subject::Host, Subject::ByHand];
    let results = harness.shuffled(&subjects, |harness, subject| match subject {
        Subject::Host => through_host(harness, turns),
        Subject::ByHand => by_hand(harness.bench(), turns),
    })?;
    let figure = |what: &str, value: fn(&FirstTokens) -> f64, share_ms: f64, words: &str| {
        let hand = median_of(&results, Subject::ByHand, value);
        let host = median_of(&results, Subject::Host, value);
        Figure::within(what, "ms", host, hand, hand + share_ms, words).note(format!(
            "rounds: host {}, by hand {}",
            spread(&values(&results, Subject::Host, value)),
            spread(&values(&results, Subject::ByHand, value)),
        ))
    };
    Ok(vec![
        figure(
            "message to an agent's first word, its process runs",
            |times| times.warm_ms,
            20.0,
            "by hand + 20 ms",
        ),
        figure("the same, its process is started", |times| times.cold_ms, 60.0, "by hand + 60 ms"),
    ])
}

fn through_host(harness: &mut Harness, turns: usize) -> Result<FirstTokens> {
    let mut driver = Driver::with(start_host(harness, AcpSetup::default())?, "acp", 1)?;
    let mut watchers = Watchers::join(harness, &driver, &counting(1))?;
    // Where somebody works most files are older than that: those that are not are read with every look.
    std::thread::sleep(harness.until_settled()?);
    let mut times = Vec::new();
    for _ in 0..=turns {
        watchers.mark(1)?;
        let sent_ns = now_ns();
        driver.send_message(PROMPT)?;
        let seen_ns = watchers.wait()?.last_ns;
        times.push(seen_ns.saturating_sub(sent_ns) as f64 / 1e6);
        // The end of the turn follows its last word.
        driver.await_idle(&driver.chat.clone())?;
    }
    Ok(FirstTokens { cold_ms: times[0], warm_ms: median(&times[1..]) })
}

/// The agent without a host.
struct DrivenAgent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for DrivenAgent {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl DrivenAgent {
    fn start(bench: &Path) -> Result<Self> {
        let mut child = Command::new(bench)
            .arg("acp-agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            input: child.stdin.take().context("it has a pipe")?,
            output: BufReader::new(child.stdout.take().context("it has a pipe")?),
            child,
        })
    }

    /// Asks; the first line that comes back.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes())?;
        self.next()
    }

    fn next(&mut self) -> Result<Value> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the agent is gone");
        Ok(serde_json::from_str(&line)?)
    }
}

fn by_hand(bench: &Path, turns: usize) -> Result<FirstTokens> {
    let began = now_ns();
    let mut agent = DrivenAgent::start(bench)?;
    agent.ask("initialize", &json!({"protocolVersion": 1}))?;
    agent.ask("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
    let prompt = json!({"sessionId": "bench-1", "prompt": [{"type": "text", "text": PROMPT}]});
    let mut times = Vec::new();
    for turn in 0..=turns {
        let sent_ns = if turn == 0 { began } else { now_ns() };
        let said = agent.ask("session/prompt", &prompt)?;
        times.push((now_ns() - sent_ns) as f64 / 1e6);
        ensure!(said["method"] == "session/update", "a word comes first");
        agent.next()?; // the end of the turn
    }
    Ok(FirstTokens { cold_ms: times[0], warm_ms: median(&times[1..]) })
}
