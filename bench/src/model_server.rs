//! `bench model-server`: answers at a pace, in the wire format that the path of a request names. One thread, one process; it says its port and ends with its
//! standard input.
//!
//! The last message says how: `answer N SIZE EVERY_MS` is N pieces of SIZE bytes of text, one every EVERY_MS, each a
//! chunk of HTTP in a write of its own; what falls behind is caught up with. With 0 ms it does not pause. `stamped N SIZE EVERY_MS` begins each with a
//! [`Stamp`], numbered over all answers of this process. Answers do not beat in time: each starts at another point of
//! the interval.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, interval_at};

use crate::measure::now_ns;
use crate::protocol::{self, STAMP_BYTES, Stamp};
use crate::watcher::commands;
use crate::wire_format::WireFormat;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\
    Transfer-Encoding: chunked\r\n\r\n";

/// Text as long as a few words.
const WORDS: &str = "the quick brown fox jumps over it; ";

#[derive(Default)]
struct Shared {
    answers: Cell<u32>,
    stamps: Cell<u32>,
}

pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, serve())
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", json!({"port": listener.local_addr()?.port()}));
    let shared = Rc::new(Shared::default());
    let mut commands = commands();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let shared = shared.clone();
                tokio::task::spawn_local(async move {
                    if let Err(error) = answer_all(stream, &shared).await {
                        eprintln!("model server: {error:#}");
                    }
                });
            }
            command = commands.recv() => if command.is_none() {
                return Ok(());
            },
        }
    }
}

async fn answer_all(mut stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    while let Some((path, body)) = next_request(&mut stream, &mut unread).await? {
        let wire = WireFormat::of_path(&path)?;
        let body: Value = serde_json::from_slice(&body)?;
        let text = wire.text_of(&body).unwrap_or("");
        let answer = Answer::parse(text).context("the message selects no answer")?;
        answer.send(wire, &mut stream, shared).await?;
    }
    Ok(())
}

/// The path and the body of the next request; `None` if there is none.
async fn next_request(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
) -> Result<Option<(String, Vec<u8>)>> {
    loop {
        if let Some(start) = protocol::head_end(unread) {
            let head = String::from_utf8_lossy(&unread[..start]).into_owned();
            let path = head.split(' ').nth(1).context("a request without a path")?.to_owned();
            let length = head
                .to_ascii_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .and_then(|length| length.trim().parse::<usize>().ok())
                .context("a request without a length")?;
            if unread.len() >= start + length {
                let rest = unread.split_off(start + length);
                let body = std::mem::replace(unread, rest).split_off(start);
                return Ok(Some((path, body)));
            }
        }
        if stream.read_buf(unread).await? == 0 {
            if unread.is_empty() {
                return Ok(None);
            }
            bail!("a request broke off");
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    pieces: u32,
    size: usize,
    every: Duration,
    stamped: bool,
}

impl Answer {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let stamped = match words.next()? {
            "answer" => false,
            "stamped" => true,
            _ => return None,
        };
        let mut number = || words.next()?.parse::<u32>().ok();
        Some(Self {
            pieces: number()?,
            size: usize::try_from(number()?).ok()?,
            every: Duration::from_millis(number()?.into()),
            stamped,
        })
    }

    async fn send(&self, wire: WireFormat, stream: &mut TcpStream, shared: &Shared) -> Result<()> {
        let number = shared.answers.get();
        shared.answers.set(number + 1);
        // The fraction of the golden ratio spreads any number of answers evenly.
        let phase = (f64::from(number) * 0.618_033_988_75).fract();
        stream.write_all(HEAD).await?;
        let begin: Vec<u8> = wire.begin().iter().flat_map(|event| chunk(wire, event)).collect();
        stream.write_all(&begin).await?;
        let plain = WORDS.chars().cycle().take(self.size).collect::<String>();
        let begin = Instant::now() + self.every + self.every.mul_f64(phase);
        let mut ticks = (!self.every.is_zero()).then(|| interval_at(begin, self.every));
        for _ in 0..self.pieces {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            let piece = if self.stamped { stamped(&plain, shared) } else { plain.clone() };
            stream.write_all(&chunk(wire, &wire.piece(&piece))).await?;
        }
        let mut end: Vec<u8> =
            wire.end(self.pieces).iter().flat_map(|event| chunk(wire, event)).collect();
        end.extend(chunk_of(wire.end_mark()));
        end.extend_from_slice(b"0\r\n\r\n");
        Ok(stream.write_all(&end).await?)
    }
}

fn stamped(plain: &str, shared: &Shared) -> String {
    let index = shared.stamps.get();
    shared.stamps.set(index + 1);
    let stamp = Stamp { index, sent_ns: now_ns() };
    let rest = plain.get(STAMP_BYTES..).unwrap_or("");
    format!("{}{rest}", stamp.text())
}

fn chunk(wire: WireFormat, event: &Value) -> Vec<u8> {
    chunk_of(&wire.data(event))
}

/// A chunk of HTTP; nothing is none, for an empty one would end the answer.
fn chunk_of(data: &str) -> Vec<u8> {
    if data.is_empty() {
        Vec::new()
    } else {
        format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_message_selects_its_answer() {
        let answer =
            Answer { pieces: 10, size: 16, every: Duration::from_millis(5), stamped: true };
        assert_eq!(Answer::parse("stamped 10 16 5"), Some(answer));
        assert_eq!(Answer::parse("stream 10 16 5"), None);
        assert_eq!(Answer::parse("answer 10 16"), None);
    }

    #[test]
    fn a_stamped_piece_is_found_in_its_chunk() {
        let shared = Shared::default();
        stamped("", &shared);
        let piece = stamped(&"x".repeat(40), &shared);
        assert_eq!(piece.len(), 40);
        for wire in WireFormat::ALL {
            let chunk = chunk(wire, &wire.piece(&piece));
            let at = Stamp::position(&chunk).unwrap();
            assert_eq!(Stamp::at(&chunk, at).unwrap().index, 1);
        }
    }
}
