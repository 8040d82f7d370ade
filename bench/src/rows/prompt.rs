//! The system prompt: what rendering its sections costs beside joining their bytes, and how much longer a render takes
//! that goes through a client.
//!
//! A render is seen from outside as the time between two `show_prompt` steps of one turn; what the client adds is the
//! difference to the same turn without a client that opted in. Its floor is a request and its answer on the same socket. The
//! journal is in memory, so that no commit hides either.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{median_of, values};
use crate::harness::{Harness, HostSetup, JournalKind};
use crate::host_api::prompt::{Section, example};
use crate::measure::{now_ns, percentile, spread};
use crate::protocol;
use crate::socket::Socket;
use crate::table::Figure;

const SESSION: &str = "scripted:/01900000-0000-7000-8000-000000000003";
const CLIENT: &str = "rewriter";
/// Renders of one turn.
const RENDERS: usize = 400;
/// The first ones warm up.
const WARM: usize = 20;

/// What the agent plays.
pub(crate) fn script() -> String {
    let steps = vec![json!({"show_prompt": true}); RENDERS];
    json!({"scenes": [{"steps": steps}]}).to_string()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Rendered,
    Joined,
}

pub(crate) fn render(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Work::Joined, Work::Rendered], |harness, work| {
        let times = if harness.quick { 20_000 } else { 100_000 };
        Ok(worked(work, times))
    })?;
    let cost = |ns: &f64| *ns;
    let figure = Figure::at_most(
        "rendering eleven sections, against joining their bytes",
        "ns",
        median_of(&results, Work::Rendered, cost),
        median_of(&results, Work::Joined, cost),
        10.0,
    );
    Ok(vec![figure.note(format!(
        "rounds: rendered {}, joined {}",
        spread(&values(&results, Work::Rendered, cost)),
        spread(&values(&results, Work::Joined, cost)),
    ))])
}

fn worked(work: Work, times: u32) -> f64 {
    let prompt = example();
    let sections = prompt.render();
    let began = Instant::now();
    for _ in 0..times {
        match work {
            Work::Rendered => drop(black_box(black_box(&prompt).render())),
            Work::Joined => drop(black_box(joined(black_box(&sections)))),
        }
    }
    began.elapsed().as_nanos() as f64 / f64::from(times)
}

fn joined(sections: &[Section]) -> String {
    sections.iter().map(|section| &*section.content).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    NoClient,
    Client,
}

/// Microseconds: between renders, and for a bare request.
struct Timed {
    renders: Vec<f64>,
    pings: Vec<f64>,
}

pub(crate) fn transform(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Asked::NoClient, Asked::Client], measure)?;
    let at = |asked, percent| {
        median_of(&results, asked, |time_drafts: &Timed| percentile(&time_drafts.renders, percent))
    };
    let pings = |percent| {
        let both = [Asked::NoClient, Asked::Client];
        let pings = both.map(|asked| {
            median_of(&results, asked, |time_drafts: &Timed| {
                percentile(&time_drafts.pings, percent)
            })
        });
        (pings[0] + pings[1]) / 2.0
    };
    let figure = |what: &str, percent: f64| {
        let added = at(Asked::Client, percent) - at(Asked::NoClient, percent);
        Figure::at_most(what, "us", added, pings(percent), 2.0).note(format!(
            "a render takes {:.0} us through a client, {:.0} us without",
            at(Asked::Client, percent),
            at(Asked::NoClient, percent),
        ))
    };
    Ok(vec![
        figure("a client adds to a render, p50, against a bare request", 50.0),
        figure("the same, p99", 99.0),
    ])
}

fn measure(harness: &mut Harness, asked: Asked) -> Result<Timed> {
    let data = harness.directory()?;
    let setup =
        HostSetup { journal: JournalKind::Memory, script: "prompts.json", ..HostSetup::SHIPPED };
    let server = harness.host(&data, setup)?;
    let mut socket = Socket::join(&server.address, CLIENT)?;
    let mut entry = json!({"clientId": CLIENT, "tools": []});
    if asked == Asked::Client {
        entry["systemMessageTransform"] = json!({"sections": ["tone", "environment_context"]});
    }
    let params = json!({"channel": SESSION, "activeClient": entry});
    socket.request(3, "createSession", &params)?;
    let chat = protocol::chat_of(SESSION);
    socket.request(4, "subscribe", &json!({"channel": chat}))?;
    let pings = pinged(&mut socket)?;
    socket.send(&protocol::turn_started(&chat, 1, "renders", "go"))?;
    let mut moments: Vec<u64> = Vec::with_capacity(RENDERS);
    let (mut transforms, mut over) = (0, false);
    while !over {
        for message in socket.messages()? {
            match kind_of(&message) {
                Kind::Delta => moments.push(now_ns()),
                Kind::Request => {
                    transforms += 1;
                    socket.send(&answer(&message)?)?;
                }
                Kind::Over => over = true,
                Kind::Other => {}
            }
        }
    }
    anyhow::ensure!(moments.len() == RENDERS, "{} renders were seen", moments.len());
    let expected = if asked == Asked::Client { RENDERS } else { 0 };
    anyhow::ensure!(transforms == expected, "{transforms} transforms were asked for");
    server.stop()?;
    let gaps = moments.windows(2).skip(WARM);
    Ok(Timed { renders: gaps.map(|pair| (pair[1] - pair[0]) as f64 / 1_000.0).collect(), pings })
}

fn pinged(socket: &mut Socket) -> Result<Vec<f64>> {
    let ping = protocol::request(protocol::ASK_ID, "ping", &json!({"channel": protocol::root()}));
    let mut times = Vec::with_capacity(RENDERS);
    for _ in 0..RENDERS {
        let began = now_ns();
        socket.ask_and_discard(&ping)?;
        times.push((now_ns() - began) as f64 / 1_000.0);
    }
    Ok(times.split_off(WARM))
}

enum Kind {
    Delta,
    Request,
    Over,
    Other,
}

/// Known by how a message begins: none is parsed that need not be.
fn kind_of(message: &[u8]) -> Kind {
    let has = |text: &[u8]| {
        let head = &message[..message.len().min(400)];
        head.windows(text.len()).any(|window| window == text)
    };
    if has(br#""method":"systemMessageTransform""#) {
        Kind::Request
    } else if has(br#""type":"chat/delta""#) {
        Kind::Delta
    } else if has(br#""type":"chat/turnComplete""#) || has(br#""type":"chat/error""#) {
        Kind::Over
    } else {
        Kind::Other
    }
}

/// The sections as they came, as a client that only looks would answer.
fn answer(message: &[u8]) -> Result<String> {
    let mut request: Value = serde_json::from_slice(message).context("a request is JSON")?;
    let sections = request["params"]["sections"].take();
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"sections": sections}});
    Ok(answer.to_string())
}
