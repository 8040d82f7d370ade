//! What attachments cost: the way of 1 MiB from a message to the blob store, beside a plain write of the same bytes that
//! is synced; and the memory of a host while ten clients send it 20 MiB each.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use host::blobs::FileBlobs;
use host::compose::{KnownNames, compose_message};
use kernel::Compose;
use serde_json::{Value, json};
use wire::Timestamp;

use super::{median_of, values};
use crate::dial;
use crate::lab::{HostSetup, Lab};
use crate::measure::{Peak, median, rss_anon_kib, spread};
use crate::process::Server;
use crate::socket::Socket;
use crate::table::Figure;

/// One more than may stay in the message (C-033).
const BODY_BYTES: usize = 1_048_576 + 1;
const BODIES: u64 = 20;

const CLIENTS: usize = 10;
const SENT_BYTES: usize = 20 * 1_048_576;

/// How long a host may take to answer for all that was sent to it.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Attached,
    Written,
}

pub fn run(lab: &mut Lab) -> Result<Vec<Figure>> {
    let ways = lab.shuffled(&[Way::Attached, Way::Written], way)?;
    let us = |value: &f64| *value;
    let spreads = [Way::Attached, Way::Written].map(|way| spread(&values(&ways, way, us)));
    Ok(vec![
        Figure::at_most(
            "1 MiB attached, decoded, named and kept",
            "us",
            median_of(&ways, Way::Attached, us),
            median_of(&ways, Way::Written, us),
            2.0,
        )
        .note(format!(
            "rounds: attached {}, written and synced {}",
            spreads[0], spreads[1]
        )),
    ])
}

pub fn memory(lab: &mut Lab) -> Result<Vec<Figure>> {
    let sent = lab.shuffled(&[()], |lab, ()| sent(lab))?;
    let grown: Vec<f64> = sent.into_iter().map(|(_, mib)| mib).collect();
    let all_mib = (CLIENTS * SENT_BYTES) as f64 / 1_048_576.0;
    Ok(vec![
        Figure::told(
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

/// The median microseconds of a body.
fn way(lab: &mut Lab, way: Way) -> Result<f64> {
    let data = lab.directory()?;
    let store = FileBlobs::open(&data)?;
    let known = KnownNames::default();
    let mut each = Vec::new();
    for number in 0..BODIES {
        let body = body(number, BODY_BYTES);
        let us = match way {
            Way::Attached => {
                let message = json!({"text": "", "attachments": [attachment(&body)]});
                let Value::Object(message) = message else {
                    continue;
                };
                let compose = Compose {
                    message,
                    detached: Vec::new(),
                    working_directories: Vec::new(),
                    each_bytes: BODY_BYTES - 1,
                    left_bytes: 20 * BODY_BYTES,
                };
                let began = Instant::now();
                let understood = compose_message(&store, &known, compose, Timestamp(0));
                let us = began.elapsed().as_secs_f64() * 1e6;
                let understood = understood.map_err(|failed| anyhow!(failed.0))?;
                ensure!(understood.inline_bytes == 0, "a body stayed in its message");
                us
            }
            Way::Written => written(&data.join(format!("plain-{number}")), &body)?,
        };
        each.push(us);
    }
    Ok(median(&each))
}

fn written(path: &Path, body: &[u8]) -> Result<f64> {
    let began = Instant::now();
    let mut file = File::create(path)?;
    file.write_all(body)?;
    file.sync_all()?;
    Ok(began.elapsed().as_secs_f64() * 1e6)
}

/// MiB that were added at most to what the host had before.
fn sent(lab: &mut Lab) -> Result<f64> {
    let data = lab.directory()?;
    let server = lab.host(&data, HostSetup::SHIPPED)?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(Client::join(&server, number)?);
    }
    let before = rss_anon_kib(server.pid())?;
    let memory = Peak::of(server.pid());
    let sending: Vec<_> = clients
        .into_iter()
        .map(|client| std::thread::spawn(move || client.sends()))
        .collect();
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
        let chat = dial::chat_of(&session);
        let frame = dial::turn_started_with(&chat, 1, "turn-1", "see", json!([attachment(&body)]));
        Ok(Self {
            socket,
            onlooker,
            session,
            frame,
        })
    }

    /// Until the turn is there and over.
    fn sends(mut self) -> Result<()> {
        self.socket.send(&self.frame)?;
        let (began, chat) = (Instant::now(), dial::chat_of(&self.session));
        loop {
            let answer = self
                .onlooker
                .request(5, "subscribe", &json!({"channel": chat}))?;
            let turns = &answer["snapshot"]["state"]["turns"];
            if turns.as_array().is_some_and(|turns| turns.len() == 1) {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "the turn is not over in time");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
