//! What the host makes of a text for the page, over HTTP, against the parser alone: an open end of 0.5 KB, a document of 12 KB,
//! a file of 12 KB with colours. Every text is another, so that nothing comes from memory.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::host_api::rendering::{colour_alone, parse_alone};
use crate::measure::{Cpu, now_ns, spread};
use crate::table::Figure;

const PER_REQUEST: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    OpenEnd,
    Document,
    File,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    use Text::{Document, File, OpenEnd};
    let subjects = [OpenEnd, Document, File].map(|text| [(text, true), (text, false)]);
    let results = harness.shuffled(subjects.as_flattened(), measure)?;
    let cost = |cost: &f64| *cost;
    let figure = |(text, what): (Text, &str)| {
        let (host, alone) = ((text, true), (text, false));
        let of = |subject| median_of(&results, subject, cost);
        let what = format!("CPU for {what}, against the parser alone");
        let rounds = |subject| spread(&values(&results, subject, cost));
        let note = format!("rounds: host {}, alone {}", rounds(host), rounds(alone));
        Figure::at_most(&what, "us", of(host), of(alone), 1.5).note(note)
    };
    let named = [
        (OpenEnd, "an open end of 0.5 KB rendered"),
        (Document, "a document of 12 KB rendered"),
        (File, "a file of 12 KB coloured"),
    ];
    Ok(named.map(figure).into())
}

/// The text of a number; no two are the same.
fn text_of(text: Text, number: usize) -> String {
    let sentence = format!(
        "Number {number} has *emphasis*, `code` and a [link](https://example.com/{number}).\n\n"
    );
    let function =
        format!("fn number_{number}(a: u32) -> u32 {{ let b = a + {number}; b * 2 }} // end\n");
    match text {
        Text::OpenEnd => format!("{}and **an open", sentence.repeat(512 / sentence.len())),
        Text::Document => sentence.repeat(12 * 1_024 / sentence.len()),
        Text::File => function.repeat(12 * 1_024 / function.len()),
    }
}

fn item_of(text: Text, number: usize) -> Value {
    let content = text_of(text, number);
    match text {
        Text::OpenEnd => json!({"markdown": content, "open": true}),
        Text::Document => json!({"markdown": content}),
        Text::File => json!({"code": content, "lang": "rust"}),
    }
}

/// Microseconds for one text.
fn measure(harness: &mut Harness, (text, is_host): (Text, bool)) -> Result<f64> {
    let requests = if harness.quick { 10 } else { 50 };
    let texts = requests * PER_REQUEST;
    if !is_host {
        let began = now_ns();
        for number in 0..texts {
            let content = text_of(text, number);
            match text {
                Text::File => colour_alone(&content)?,
                Text::OpenEnd | Text::Document => parse_alone(&content)?,
            }
        }
        return Ok((now_ns() - began) as f64 / 1_000.0 / texts as f64);
    }
    let data = harness.directory()?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    post(&server.address, &[item_of(text, usize::MAX)])?; // the grammar is loaded
    let before = Cpu::of(server.pid())?;
    for request in 0..requests {
        let numbers = (0..PER_REQUEST).map(|n| request * PER_REQUEST + n);
        let items: Vec<Value> = numbers.map(|number| item_of(text, number)).collect();
        post(&server.address, &items)?;
    }
    let used = Cpu::of(server.pid())?.since(before);
    server.stop()?;
    Ok(used.total_ns as f64 / 1_000.0 / texts as f64)
}

fn post(address: &str, items: &[Value]) -> Result<()> {
    let body = json!({"items": items}).to_string();
    let mut socket = TcpStream::connect(address)?;
    let head = format!(
        "POST /api/markup HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes())?;
    socket.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).context("no answer")?;
    ensure!(answer.starts_with(b"HTTP/1.1 200"), "the host refused");
    Ok(())
}
