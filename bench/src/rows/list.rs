//! The first page of 50 of `listSessions`: 10,000 stored sessions against 100. Both subjects are the host; the figure
//! is its CPU, the time a client waits stands in a note.

use anyhow::{Result, bail};
use serde_json::json;

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::measure::{Cpu, median, now_ns, spread};
use crate::protocol;
use crate::socket::Socket;
use crate::table::Figure;

const FEW: u32 = 100;
const MANY: u32 = 10_000;
const PAGE: u32 = 50;

struct Listed {
    cpu_us: f64,
    wait_us: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[FEW, MANY], measure)?;
    let of = |sessions, value: fn(&Listed) -> f64| median_of(&results, sessions, value);
    let cpu = |listed: &Listed| listed.cpu_us;
    let what = "first page of `listSessions`, 10,000 stored against 100";
    let figure = Figure::at_most(what, "us", of(MANY, cpu), of(FEW, cpu), 1.2);
    Ok(vec![
        figure
            .note(format!(
                "a client waits {:.0} us, {:.0} us",
                of(MANY, |listed| listed.wait_us),
                of(FEW, |listed| listed.wait_us),
            ))
            .note(format!(
                "rounds: 10,000 {}, 100 {}",
                spread(&values(&results, MANY, cpu)),
                spread(&values(&results, FEW, cpu)),
            )),
    ])
}

fn measure(harness: &mut Harness, sessions: u32) -> Result<Listed> {
    let data = harness.sessions(sessions)?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    let mut socket = Socket::join(&server.address, "lister")?;
    let params = json!({"channel": protocol::root(), "limit": PAGE});
    let page = socket.request(3, "listSessions", &params)?;
    if page["items"].as_array().map(Vec::len) != Some(PAGE as usize) {
        bail!("the page does not hold {PAGE} sessions");
    }
    let request = protocol::request(protocol::ASK_ID, "listSessions", &params);
    let calls = if harness.quick { 100 } else { 300 };
    for _ in 0..20 {
        socket.ask_and_discard(&request)?;
    }
    let before = Cpu::of(server.pid())?;
    let mut waits = Vec::new();
    for _ in 0..calls {
        let began = now_ns();
        socket.ask_and_discard(&request)?;
        waits.push((now_ns() - began) as f64 / 1_000.0);
    }
    let used = Cpu::of(server.pid())?.since(before);
    server.stop()?;
    Ok(Listed {
        cpu_us: used.total_ns as f64 / 1_000.0 / f64::from(calls),
        wait_us: median(&waits),
    })
}
