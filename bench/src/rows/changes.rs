//! What it costs to find what a turn changed, and to look at it: a look at a git repository with 100,000 files, against plain
//! `git status` of the same files; and how long a client waits for the changeset of a turn that is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use workspace::{Cancellation, Confinement, Workspace};

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::measure::{median, now_ns, spread};
use crate::protocol;
use crate::socket::Socket;
use crate::table::Figure;

const FILES: usize = 100_000;
const FILES_QUICK: usize = 10_000;
const PER_DIRECTORY: usize = 100;

/// What a client may wait for the changeset of a known turn, in microseconds.
const SUBSCRIBED_US_MAX: f64 = 2_000.0;

const SESSION: &str = "scripted:/01900000-0000-7000-8000-000000000003";
const TURN: &str = "turn-1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Look,
    GitStatus,
}

/// What the agent plays: a call that says what it changed.
pub(crate) fn script() -> String {
    let edit = |number: usize| {
        let digest = format!("{number:064x}");
        let content = json!({"uri": format!("ahp-content:/sha256/{digest}")});
        let side = json!({"uri": format!("file:///code/{number}.txt"), "content": content});
        json!({"type": "fileEdit", "after": side, "diff": {"added": 1, "removed": 0}})
    };
    let content: Vec<Value> = (0..20).map(edit).collect();
    let call = json!({"tool": {"name": "write", "result": {"content": content}}});
    json!({"scenes": [{"when": "^change$", "steps": [call]}]}).to_string()
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let files = if harness.quick { FILES_QUICK } else { FILES };
    let repository = make_repository(&harness.directory()?.join("repository"), files)?;
    let results = harness.shuffled(&[Subject::Look, Subject::GitStatus], |_, subject| {
        measure(&repository, subject)
    })?;
    let ms = |ms: &f64| *ms;
    let of = |subject| median_of(&results, subject, ms);
    let rounds = |subject| spread(&values(&results, subject, ms));
    let what = format!("a look at a repository with {files} files, against `git status`");
    let look = Figure::at_most(&what, "ms", of(Subject::Look), of(Subject::GitStatus), 1.5);
    let look = look.note(format!(
        "rounds: look {}, git {}",
        rounds(Subject::Look),
        rounds(Subject::GitStatus)
    ));
    let waits = subscribe(harness)?;
    let what = "subscribing to the changes of a known turn, against 2 ms";
    let subscribed = Figure::at_most(what, "us", median(&waits), SUBSCRIBED_US_MAX, 1.0);
    Ok(vec![look, subscribed.note(format!("waits: {}", spread(&waits)))])
}

/// A repository with so many files committed, and a few that differ.
fn make_repository(path: &Path, files: usize) -> Result<PathBuf> {
    for number in 0..files {
        let directory = path.join(format!("d{}", number / PER_DIRECTORY));
        if number % PER_DIRECTORY == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("f{number}.txt")), format!("{number}\n"))?;
    }
    for args in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["-c", "user.name=b", "-c", "user.email=b@example.com", "commit", "--quiet", "-m", "all"],
    ] {
        git(path, args)?;
    }
    for number in 0..20 {
        fs::write(path.join(format!("d0/f{number}.txt")), "changed\n")?;
    }
    fs::write(path.join("new.txt"), "new\n")?;
    Ok(path.to_owned())
}

fn git(directory: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("git").current_dir(directory).args(args).output()?;
    ensure!(output.status.success(), "git {args:?} failed");
    Ok(output.stdout)
}

/// Milliseconds, the second time: the first warms the caches of both.
fn measure(repository: &Path, subject: Subject) -> Result<f64> {
    let mut took = Duration::ZERO;
    for _ in 0..2 {
        let began = Instant::now();
        match subject {
            Subject::Look => look(repository)?,
            Subject::GitStatus => {
                let printed = git(repository, &["status", "--porcelain", "--untracked-files=all"])?;
                ensure!(printed.split(|byte| *byte == b'\n').count() == 22, "21 files differ");
            }
        }
        took = began.elapsed();
    }
    Ok(took.as_secs_f64() * 1_000.0)
}

fn look(repository: &Path) -> Result<()> {
    let confinement = Confinement::none();
    let uri = format!("file://{}", repository.display());
    let workspace = Workspace::open(&[uri], &confinement)?;
    let mut kept = 0;
    let mut keep = |_: &wire::Digest, _: &[u8]| {
        kept += 1;
        Ok(())
    };
    let look = workspace.look_at_tree(&confinement, &mut keep, None, &Cancellation::default());
    ensure!(look.problems.is_empty(), "{:?}", look.problems);
    ensure!(look.failures().next().is_none(), "git said nothing");
    ensure!(kept == 21, "21 files differ, {kept} were kept");
    Ok(())
}

/// How long subscriptions to the changes of a turn took, in microseconds.
fn subscribe(harness: &mut Harness) -> Result<Vec<f64>> {
    let data = harness.directory()?;
    let setup = HostSetup { script: "changes.json", ..HostSetup::SHIPPED };
    let server = harness.host(&data, setup)?;
    let mut socket = Socket::join(&server.address, "watcher")?;
    socket.request(3, "createSession", &json!({"channel": SESSION}))?;
    let chat = protocol::chat_of(SESSION);
    socket.send(&protocol::turn_started(&chat, 1, TURN, "change"))?;
    let changeset = format!("{SESSION}/changeset/turn/{TURN}");
    let params = json!({"channel": changeset});
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut id = 4;
    loop {
        id += 1;
        let answer = socket.request(id, "subscribe", &params);
        let files = answer.ok().and_then(|answer| {
            let files = answer["snapshot"]["state"]["files"].as_array().map(Vec::len);
            files.filter(|files| *files == 20)
        });
        if files.is_some() {
            break;
        }
        ensure!(Instant::now() < deadline, "the turn changed nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    let calls = if harness.quick { 100 } else { 500 };
    let request = protocol::request(protocol::ASK_ID, "subscribe", &params);
    let mut waits = Vec::new();
    for _ in 0..calls {
        let began = now_ns();
        socket.ask_and_discard(&request).context("the host refused")?;
        waits.push((now_ns() - began) as f64 / 1_000.0);
    }
    server.stop()?;
    Ok(waits)
}
