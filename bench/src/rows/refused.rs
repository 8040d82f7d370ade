//! What others notice of an action of 16 MiB that is refused: the longest a stamped draft of another chat takes to the
//! last of 10 watchers meanwhile.
//!
//! The bare server takes the same frames through the same decoder and forgets them: what reading and decoding 16 MiB
//! costs others at least.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::latency::EVERY;
use super::median_of;
use crate::driver::{Driver, Subject, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::{percentile, spread};
use crate::protocol;
use crate::socket::Socket;
use crate::table::Figure;

const SESSION: &str = "scripted:/01900000-0000-7000-8000-000000000004";
const WATCHERS: usize = 10;
const REFUSED_BYTES: usize = 16 * 1_024 * 1_024;
/// The longest a delta of another chat may wait meanwhile.
const LONGEST_MS: f64 = 50.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusedFor {
    /// Only the host sends deltas.
    Kind,
    /// A draft has a bound.
    Size,
    /// A turn runs already, and the message has a body to be stored.
    RunningTurn,
}

const ALL: [RefusedFor; 3] = [RefusedFor::Kind, RefusedFor::Size, RefusedFor::RunningTurn];

impl RefusedFor {
    fn what(self) -> &'static str {
        match self {
            Self::Kind => "longest wait of another chat while 16 MiB are refused, by kind",
            Self::Size => "the same, by size",
            Self::RunningTurn => "the same, while a turn runs",
        }
    }

    fn action(self) -> Value {
        let body = "A".repeat(REFUSED_BYTES);
        match self {
            Self::Kind => {
                json!({"type": "chat/delta", "turnId": "t", "partId": "p", "content": body})
            }
            Self::Size => {
                let draft = json!({"text": body, "origin": {"kind": "user"}});
                json!({"type": "chat/draftChanged", "draft": draft})
            }
            Self::RunningTurn => {
                let attachment = json!({
                    "type": "embeddedResource", "label": "body.bin",
                    "contentType": "application/octet-stream", "data": body,
                });
                protocol::turn_started_action("refused", "see", json!([attachment]))
            }
        }
    }
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Subject::HOST, Subject::Bare], measure)?;
    let figure = |index: usize| {
        let of = |subject| median_of(&results, subject, |longest: &[f64; 3]| longest[index]);
        let rounds = |subject| {
            let values: Vec<f64> = results
                .iter()
                .filter(|(who, _)| *who == subject)
                .map(|(_, longest)| longest[index])
                .collect();
            spread(&values)
        };
        let what = ALL[index].what();
        let (host, bare) = (of(Subject::HOST), of(Subject::Bare));
        Figure::within(what, "ms", host, bare, LONGEST_MS, "50 ms").note(format!(
            "rounds: host {}, bare {}",
            rounds(Subject::HOST),
            rounds(Subject::Bare),
        ))
    };
    Ok((0..ALL.len()).map(figure).collect())
}

/// The longest wait in milliseconds, for each way to be refused.
fn measure(harness: &mut Harness, subject: Subject) -> Result<[f64; 3]> {
    let mut driver = Driver::on(subject.start(harness)?)?;
    let options = WatcherOptions::stamped(WATCHERS);
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    let mut sender = Sender::join(&driver.server.address)?;
    let count = u32::try_from(harness.seconds(1.5).as_millis() / EVERY.as_millis())?;
    let mut longest = [0.0; 3];
    for (refused, longest) in ALL.into_iter().zip(&mut longest) {
        let frame = sender.frame(refused);
        if subject != Subject::Bare {
            sender.check_is_refused(&frame)?;
        }
        watchers.mark(100)?;
        driver.stamp(100, EVERY)?;
        watchers.wait()?;
        watchers.mark(count.into())?;
        let sending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            sender.send_and_wait(&frame).map(|()| sender)
        });
        driver.stamp(count, EVERY)?;
        let sent = sending.join().map_err(|_| anyhow!("the sender died"))?;
        sender = sent.context("the sender was cut")?;
        watchers.wait()?;
        *longest = percentile(&watchers.latencies_us()?, 100.0) / 1_000.0;
    }
    Ok(longest)
}

/// Sends what is refused, from a chat in which a turn runs.
struct Sender {
    socket: Socket,
    chat: String,
    client_seq: u64,
}

impl Sender {
    fn join(address: &str) -> Result<Self> {
        let mut socket = Socket::join(address, "sender")?;
        socket.request(3, "createSession", &json!({"channel": SESSION}))?;
        let chat = protocol::chat_of(SESSION);
        // One delta a minute: the turn outlasts the measurement, and does nothing meanwhile.
        let turn = protocol::turn_started(&chat, 1, "turn-1", "stream 10 1 60000");
        socket.send(&turn)?;
        Ok(Self { socket, chat, client_seq: 1 })
    }

    fn frame(&mut self, reason: RefusedFor) -> String {
        self.client_seq += 1;
        protocol::dispatch(&self.chat, self.client_seq, &reason.action())
    }

    /// Nothing is measured where the host takes what it was to refuse.
    fn check_is_refused(&mut self, frame: &str) -> Result<()> {
        self.socket.send(frame)?;
        let own = format!(r#""clientSeq":{}"#, self.client_seq);
        loop {
            for message in self.socket.messages()? {
                // A refusal comes back without its large parts.
                let text = String::from_utf8_lossy(&message);
                if text.contains(&own) {
                    let refused = text.contains(r#""rejectionReason""#);
                    ensure!(refused, "the host did not refuse");
                    return Ok(());
                }
            }
        }
    }

    /// Sends it, and asks something of which the answer comes when it was read.
    fn send_and_wait(&mut self, frame: &str) -> Result<()> {
        self.socket.send(frame)?;
        let channel = json!({"channel": protocol::root()});
        let ping = protocol::request(protocol::ASK_ID, "ping", &channel);
        self.socket.ask_and_discard(&ping).map(drop)
    }
}
