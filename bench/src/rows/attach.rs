//! What attachments cost: the way of 1 MiB from a message to the blob store, beside what cannot be left out: the same
//! bytes decoded, hashed once, written and synced, one after the other; and the memory of a host while ten clients send
//! it 20 MiB each.

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::host_api::messages::MessageStore;
use crate::measure::{Peak, median, rss_anon_kib, spread};
use crate::process::Server;
use crate::protocol;
use crate::socket::Socket;
use crate::table::Figure;

/// One more than may stay in the message (C-033).
const BODY_BYTES: usize = 1_048_576 + 1;
const BODIES: u64 = 20;

const CLIENTS: usize = 10;
const SENT_BYTES: usize = 20 * 1_048_576;

/// How long a host may take to answer for all that was sent to it.
const TURN_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Attached,
    Plain,
}

/// The median microseconds of a body.
#[derive(Debug, Clone, Copy)]
struct Timed {
    whole: f64,
    /// Of the plain way: decoding, hashing, writing and syncing.
    steps: [f64; 3],
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Way::Attached, Way::Plain], measure)?;
    let whole = |timed: &Timed| timed.whole;
    let rounds = |way| spread(&values(&results, way, whole));
    let step = |index: usize| median_of(&results, Way::Plain, |timed: &Timed| timed.steps[index]);
    Ok(vec![
        Figure::at_most(
            "1 MiB attached, against decoding, hashing, writing and syncing",
            "us",
            median_of(&results, Way::Attached, whole),
            median_of(&results, Way::Plain, whole),
            1.4,
        )
        .note(format!(
            "decoding {:.0} us, hashing {:.0} us, writing and syncing {:.0} us",
            step(0),
            step(1),
            step(2),
        ))
        .note(format!(
            "rounds: attached {}, plain {}",
            rounds(Way::Attached),
            rounds(Way::Plain)
        )),
    ])
}

pub(super) fn memory(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[()], |harness, ()| measure_memory(harness))?;
    let grown: Vec<f64> = results.into_iter().map(|(_, mib)| mib).collect();
    let all_mib = (CLIENTS * SENT_BYTES) as f64 / 1_048_576.0;
    Ok(vec![
        Figure::reported(
            "memory added while ten clients send 20 MiB each",
            "MiB",
            median(&grown),
            all_mib,
        )
        .note("the floor is what they send, decoded")
        .note(format!("rounds: {}", spread(&grown))),
    ])
}

/// A body that no other is like: what is there already would not be written again.
fn body(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut body = Vec::with_capacity(bytes + 8);
    while body.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body.extend_from_slice(&state.to_le_bytes());
    }
    body.truncate(bytes);
    body
}

fn attachment(body: &[u8]) -> Value {
    json!({
        "type": "embeddedResource", "label": "body.bin", "contentType": "application/octet-stream",
        "data": STANDARD.encode(body),
    })
}

fn measure(harness: &mut Harness, way: Way) -> Result<Timed> {
    let data = harness.directory()?;
    let store = MessageStore::open(&data)?;
    let (mut whole, mut steps) = (Vec::new(), [const { Vec::new() }; 3]);
    for number in 0..BODIES {
        let attachment = attachment(&body(number, BODY_BYTES));
        match way {
            Way::Attached => {
                let message = json!({"text": "", "attachments": [attachment]})
                    .as_object()
                    .cloned()
                    .unwrap_or_default();
                let began = Instant::now();
                store.compose(message, BODY_BYTES - 1)?;
                whole.push(began.elapsed().as_secs_f64() * 1e6);
            }
            Way::Plain => {
                let text = attachment["data"].as_str().context("no data")?;
                let times = store_plainly(&data.join(format!("plain-{number}")), text)?;
                whole.push(times.iter().sum());
                for (step, us) in steps.iter_mut().zip(times) {
                    step.push(us);
                }
            }
        }
    }
    Ok(Timed { whole: median(&whole), steps: steps.map(|step| median(&step)) })
}

/// The microseconds of decoding, of hashing, and of writing and syncing.
fn store_plainly(path: &Path, text: &str) -> Result<[f64; 3]> {
    let mut began = Instant::now();
    let mut lap = || {
        let us = began.elapsed().as_secs_f64() * 1e6;
        began = Instant::now();
        us
    };
    let body = STANDARD.decode(text)?;
    let decoded = lap();
    black_box(Sha256::digest(&body));
    let hashed = lap();
    let mut file = File::create(path)?;
    file.write_all(&body)?;
    file.sync_all()?;
    Ok([decoded, hashed, lap()])
}

/// MiB that were added at most to what the host had before.
fn measure_memory(harness: &mut Harness) -> Result<f64> {
    let data = harness.directory()?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(Client::join(&server, number)?);
    }
    let before = rss_anon_kib(server.pid())?;
    let memory = Peak::of(server.pid());
    let sending: Vec<_> =
        clients.into_iter().map(|client| std::thread::spawn(move || client.send())).collect();
    for client in sending {
        let sent = client.join().map_err(|_| anyhow!("a client died"))?;
        sent.context("a client could not send all of it")?;
    }
    let grown = memory.kib().saturating_sub(before) as f64 / 1_024.0;
    server.stop()?;
    Ok(grown)
}

struct Client {
    socket: Socket,
    /// Asks meanwhile: what the sender asks waits until its message is understood.
    onlooker: Socket,
    session: String,
    /// Made beforehand: only the host is to be seen.
    frame: String,
}

impl Client {
    fn join(server: &Server, number: usize) -> Result<Self> {
        let session = format!("scripted:/attach-{number}");
        let mut socket = Socket::join(&server.address, &format!("client-{number}"))?;
        socket.request(3, "createSession", &json!({"channel": session}))?;
        let onlooker = Socket::join(&server.address, &format!("onlooker-{number}"))?;
        let body = body(number as u64, SENT_BYTES);
        let chat = protocol::chat_of(&session);
        let frame =
            protocol::turn_started_with(&chat, 1, "turn-1", "see", json!([attachment(&body)]));
        Ok(Self { socket, onlooker, session, frame })
    }

    /// Until the turn is there and over.
    fn send(mut self) -> Result<()> {
        self.socket.send(&self.frame)?;
        let (began, chat) = (Instant::now(), protocol::chat_of(&self.session));
        loop {
            let answer = self.onlooker.request(5, "subscribe", &json!({"channel": chat}))?;
            let turns = &answer["snapshot"]["state"]["turns"];
            if turns.as_array().is_some_and(|turns| turns.len() == 1) {
                return Ok(());
            }
            ensure!(began.elapsed() < TURN_TIMEOUT, "the turn is not over in time");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
