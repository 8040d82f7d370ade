//! A file of the page over one connection that is kept: the host's CPU for a request, against hyper alone with a body of the
//! same length.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::measure::{Cpu, spread};
use crate::process::Server;
use crate::table::Figure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Host,
    Hyper,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    use Subject::{Host, Hyper};
    let results = harness.shuffled(&[Host, Hyper], measure)?;
    let cost = |cost: &f64| *cost;
    let of = |subject| median_of(&results, subject, cost);
    let what = "CPU for a file of the page, against hyper alone";
    let figure = Figure::at_most(what, "us", of(Host), of(Hyper), 1.3);
    let rounds = |subject| spread(&values(&results, subject, cost));
    Ok(vec![figure.note(format!("rounds: host {}, hyper {}", rounds(Host), rounds(Hyper)))])
}

/// The page itself, packed: the largest of what is asked for with every visit.
fn measure(harness: &mut Harness, subject: Subject) -> Result<f64> {
    let body = web::find("/").context("there is no page")?.choose("br").bytes;
    let server = match subject {
        Subject::Host => {
            let data = harness.directory()?;
            harness.host(&data, HostSetup::SHIPPED)?
        }
        Subject::Hyper => harness.bare_page(body.len())?,
    };
    let used = ask_again_and_again(&server, body.len(), harness.quick);
    server.stop()?;
    used
}

fn ask_again_and_again(server: &Server, body_bytes: usize, quick: bool) -> Result<f64> {
    let calls: u32 = if quick { 500 } else { 3_000 };
    let mut socket = TcpStream::connect(&server.address)?;
    socket.set_nodelay(true)?;
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: br\r\n\r\n", server.address);
    let mut buffer = vec![0; 64 * 1_024];
    let mut ask = || -> Result<()> {
        socket.write_all(head.as_bytes())?;
        let mut read = 0;
        let whole = loop {
            let count = socket.read(&mut buffer[read..])?;
            ensure!(count > 0, "the server closed the connection");
            read += count;
            let answer = &buffer[..read];
            if let Some(end) = answer.windows(4).position(|it| it == b"\r\n\r\n") {
                ensure!(answer.starts_with(b"HTTP/1.1 200"), "the server refused");
                break end + 4 + body_bytes;
            }
        };
        socket.read_exact(&mut buffer[read..whole])?;
        Ok(())
    };
    for _ in 0..100 {
        ask()?;
    }
    let before = Cpu::of(server.pid())?;
    for _ in 0..calls {
        ask()?;
    }
    let used = Cpu::of(server.pid())?.since(before);
    Ok(used.total_ns as f64 / 1_000.0 / f64::from(calls))
}
