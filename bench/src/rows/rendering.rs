//! What the host makes of a text for the page, over HTTP, against the parser alone: an open end of 0.5 KB, a document of 12 KB,
//! a file of 12 KB with colours. Every text is another, so that nothing comes from memory.
//!
//! Both sides are CPU time, and texts are made before the clock starts. The requests go over one connection that is kept, eight items
//! each, as the page sends what it draws together; the row once opened a connection for each of them, and what connecting costs
//! was counted as rendering. The host's side has all the rest: reading and writing HTTP and JSON, and what it remembers.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::host_api::rendering::{colour_alone, parse_alone};
use crate::measure::{Cpu, spread, thread_cpu_ns};
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
    let results = harness.shuffled(subjects.as_flattened(), |harness, (text, is_host)| {
        measure(harness, text, is_host)
    })?;
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
fn measure(harness: &mut Harness, text: Text, is_host: bool) -> Result<f64> {
    let requests = if harness.quick { 10 } else { 50 };
    let texts = requests * PER_REQUEST;
    let used_ns =
        if is_host { measure_host(harness, text, requests)? } else { measure_alone(text, texts)? };
    Ok(used_ns as f64 / 1_000.0 / texts as f64)
}

fn measure_alone(text: Text, texts: usize) -> Result<u64> {
    let contents: Vec<String> = (0..texts).map(|number| text_of(text, number)).collect();
    let read = |content: &str| match text {
        Text::File => colour_alone(content),
        Text::OpenEnd | Text::Document => parse_alone(content),
    };
    read(&text_of(text, usize::MAX))?; // the grammar is loaded
    let before = thread_cpu_ns();
    for content in &contents {
        read(content)?;
    }
    Ok(thread_cpu_ns() - before)
}

fn measure_host(harness: &mut Harness, text: Text, requests: usize) -> Result<u64> {
    let data = harness.directory()?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    let mut client = Client::connect(&server.address)?;
    client.post(&[item_of(text, usize::MAX)])?; // the grammar is loaded
    let before = Cpu::of(server.pid())?;
    for request in 0..requests {
        let numbers = (0..PER_REQUEST).map(|n| request * PER_REQUEST + n);
        let items: Vec<Value> = numbers.map(|number| item_of(text, number)).collect();
        client.post(&items)?;
    }
    let used = Cpu::of(server.pid())?.since(before);
    server.stop()?;
    Ok(used.total_ns)
}

/// A connection that is kept, as a browser keeps its own.
struct Client {
    socket: TcpStream,
    address: String,
    answer: Vec<u8>,
}

impl Client {
    fn connect(address: &str) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, address: address.to_owned(), answer: Vec::new() })
    }

    fn post(&mut self, items: &[Value]) -> Result<()> {
        let body = json!({"items": items}).to_string();
        let request = format!(
            "POST /api/markup HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.socket.write_all(request.as_bytes())?;
        self.answer.clear();
        let head_end = loop {
            if let Some(end) = self.answer.windows(4).position(|it| it == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_some()?;
        };
        let head = std::str::from_utf8(self.answer.get(..head_end).unwrap_or_default())?;
        ensure!(head.starts_with("HTTP/1.1 200"), "the host refused: {head}");
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let (_, length) = lengths.next().context("an answer without its length")?;
        let whole = head_end + length.trim().parse::<usize>()?;
        while self.answer.len() < whole {
            self.read_some()?;
        }
        Ok(())
    }

    fn read_some(&mut self) -> Result<()> {
        let mut buffer = [0; 64 * 1_024];
        let count = self.socket.read(&mut buffer).context("no answer")?;
        ensure!(count > 0, "the host closed the connection");
        self.answer.extend_from_slice(buffer.get(..count).unwrap_or_default());
        Ok(())
    }
}
