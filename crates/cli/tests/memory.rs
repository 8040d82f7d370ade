//! The real binary, while ten clients send every field at its largest and just over it: each is answered as it should be, memory
//! stays within twice the bytes in flight and a little, and afterwards it is as it was (G-43).
//!
//! `MEMORY_FULL=1` sends messages as large as a frame may be; without it they are a tenth of that.

#![cfg(target_os = "linux")]

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::running::Host;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::stream::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{Message, WebSocket, connect};

const MIB: usize = 1_024 * 1_024;
const CLIENTS: usize = 10;
/// What memory may be above twice the bytes in flight, and above idle afterwards.
const SLACK: usize = 64 * MIB;
/// What may be left once nobody is there: the C library keeps freed memory in the heaps of its threads, in 40 to 65 MiB here; with one
/// heap for all of them (`MALLOC_ARENA_MAX=1`) 29 are left. Ten clients that left one case behind would be seen.
const LEFT_MAX: usize = 128 * MIB;
/// Far above what anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The largest message that is sent.
fn largest() -> usize {
    match std::env::var_os("MEMORY_FULL") {
        Some(_) => 31 * MIB,
        None => 3 * MIB,
    }
}

/// What must come of a message.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Accepted,
    /// An action that goes back, or a request that fails, for a reason that names the setting.
    Refused(&'static str),
    /// Not decoded at all.
    Malformed(&'static str),
}

use Expected::{Accepted, Malformed, Refused};

/// One message of one client. `$N` in it is the client's number, `$ID` that of the message.
struct Case {
    name: &'static str,
    text: String,
    expected: Expected,
    /// A turn is to end before the next message.
    starts_turn: bool,
}

fn action(name: &'static str, channel: &str, action: String, expected: Expected) -> Case {
    let params = format!(r#"{{"channel":"{channel}","clientSeq":$ID,"action":{action}}}"#);
    Case {
        name,
        text: format!(r#"{{"jsonrpc":"2.0","method":"dispatchAction","params":{params}}}"#),
        expected,
        starts_turn: action.contains("turnStarted") && matches!(expected, Accepted),
    }
}

fn request(name: &'static str, method: &str, params: String, expected: Expected) -> Case {
    Case {
        name,
        text: format!(r#"{{"jsonrpc":"2.0","id":$ID,"method":"{method}","params":{params}}}"#),
        expected,
        starts_turn: false,
    }
}

const SESSION: &str = "scripted:/$N";
const CHAT: &str = "ahp-chat:/$N";

fn turn(name: &'static str, text: &str, attachments: &str, expected: Expected) -> Case {
    let message =
        format!(r#"{{"text":"{text}","origin":{{"kind":"user"}},"attachments":[{attachments}]}}"#);
    let start = format!(
        r#"{{"type":"chat/turnStarted","turnId":"t$ID","startedAt":"2026-01-01T00:00:00Z","message":{message}}}"#
    );
    action(name, CHAT, start, expected)
}

fn embedded(bytes: usize) -> String {
    let data = "QUJD".repeat(bytes / 3);
    format!(
        r#"{{"type":"embeddedResource","label":"a","contentType":"text/plain","data":"{data}"}}"#
    )
}

fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn list(item: &str, count: usize) -> String {
    let mut list = item.to_owned();
    for _ in 1..count {
        list.push(',');
        list.push_str(item);
    }
    list
}

fn active_client(name: &'static str, bytes: usize, expected: Expected) -> Case {
    let tool = format!(r#"{{"name":"t","description":"{}"}}"#, long(bytes));
    let entry = format!(r#"{{"clientId":"c$N","tools":[{tool}]}}"#);
    let set = format!(r#"{{"type":"session/activeClientSet","activeClient":{entry}}}"#);
    action(name, SESSION, set, expected)
}

/// Every field that a client can make large, at its largest and over it.
#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let most = largest();
    let simple = r#"{"type":"simple","label":"l"}"#;
    // What one message may embed, or as much of it as a debug build takes in a moment.
    let embedded_count = if most > 8 * MIB { 8 } else { 2 };
    let titled = |bytes: usize, more: &str| {
        format!(r#"{{"type":"session/titleChanged","title":"{}"{more}}}"#, long(bytes))
    };
    let unknown = format!(r#","x":"{}""#, long(most));
    let some_unknown = format!(r#","x":"{}""#, long(60_000));
    let config = format!(r#"{{"type":"session/configChanged","config":{{"x":"{}"}}}}"#, long(most));
    let answers = format!(
        r#"{{"type":"chat/inputCompleted","requestId":"r","response":"accept","answers":{{"q":"{}"}}}}"#,
        long(most)
    );
    let result = format!(
        r#"{{"type":"chat/toolCallComplete","turnId":"t","toolCallId":"c","result":{{"success":true,"pastTenseMessage":"","content":[{{"type":"text","text":"{}"}}]}}}}"#,
        long(most.min(7 * MIB))
    );
    let draft = |text: &str| {
        format!(
            r#"{{"type":"chat/draftChanged","draft":{{"text":"{text}","origin":{{"kind":"user"}}}}}}"#
        )
    };
    let digest = format!("ahp-content:/sha256/{} ", "0".repeat(64));
    let opt_in = list(r#""s""#, 64);
    let sections =
        format!(r#"{{"type":"x-session/systemMessageTransformSet","sections":[{opt_in}]}}"#);
    vec![
        action("title", SESSION, titled(4_096, ""), Accepted),
        action("title over", SESSION, titled(most, ""), Refused("title_bytes_max")),
        action("unknown field", SESSION, titled(1, &some_unknown), Accepted),
        action("unknown field over", SESSION, titled(2, &unknown), Refused("field_bytes_max")),
        action("config over", SESSION, config, Refused("field_bytes_max")),
        active_client("active client", 255 * 1_024, Accepted),
        active_client("active client over", most, Refused("active_client_bytes_max")),
        action("sections", SESSION, sections, Accepted),
        action("answers over", CHAT, answers, Refused("answers_bytes_max")),
        action("result of no call", CHAT, result, Refused("")),
        action("draft", CHAT, draft(&long(1_000_000)), Accepted),
        action("draft over", CHAT, draft(&long(most)), Refused("message_bytes_max")),
        action("no draft", CHAT, r#"{"type":"chat/draftChanged"}"#.to_owned(), Accepted),
        request(
            "config of a request over",
            "createSession",
            format!(r#"{{"channel":"scripted:/other$N","config":{{"x":"{}"}}}}"#, long(most)),
            Refused("field_bytes_max"),
        ),
        request(
            "subscriptions over",
            "subscribe",
            format!(r#"{{"channel":"{CHAT}","_meta":{{"x":"{}"}}}}"#, long(most)),
            Refused("field_bytes_max"),
        ),
        request(
            "completions over",
            "completions",
            format!(
                r#"{{"channel":"{CHAT}","kind":"userMessage","offset":0,"text":"{}"}}"#,
                long(most)
            ),
            Refused("message_bytes_max"),
        ),
        turn("text", &long(1_000_000), "", Accepted),
        turn("text over", &long(most), "", Refused("message_bytes_max")),
        turn("references", &digest.repeat(1_000), "", Accepted),
        turn("references over", &digest.repeat(2_000), "", Refused("content_refs_max")),
        turn("attachments", "many", &list(simple, 256), Accepted),
        turn("attachments over", "many", &list(simple, 1_000), Refused("attachments_max")),
        turn(
            "attachments far over",
            "many",
            &list(simple, most / 64),
            Malformed("json_values_max"),
        ),
        turn("values over", "dense", &list("[0]", most / 8), Malformed("json_values_max")),
        turn("values", "dense", &list("[0]", 9_000), Refused("attachments_max")),
        turn(
            "bodies of half a megabyte",
            "look",
            &list(&embedded(MIB / 2), embedded_count),
            Accepted,
        ),
        turn("a body", "look", &embedded(most / 4 * 3 - 1_024), Accepted),
        turn("two bodies", "look", &list(&embedded(most / 8 * 3 - 1_024), 2), Accepted),
    ]
}

struct Client {
    number: usize,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    sent: u64,
}

impl Client {
    fn connect(url: &str, number: usize) -> Self {
        let (socket, _) = connect(url).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        Self { number, socket, sent: 0 }
    }

    /// The text as this client sends it.
    fn text_of(&mut self, text: &str) -> String {
        self.sent += 1;
        text.replace("$ID", &self.sent.to_string()).replace("$N", &self.number.to_string())
    }

    fn send(&mut self, text: String) {
        self.socket.send(Message::text(text)).unwrap();
    }

    fn read(&mut self) -> Value {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(why) => panic!("closed: {why:?}"),
                _ => {}
            }
        }
    }

    /// What became of the last message: nothing, or why it was refused.
    fn outcome(&mut self) -> Result<(), String> {
        loop {
            let frame = self.read();
            let params = &frame["params"];
            let is_mine = params["origin"]["clientSeq"] == self.sent
                && params["origin"]["clientId"] == format!("c{}", self.number);
            if frame["method"] == "action" && is_mine {
                return match params["rejectionReason"].as_str() {
                    Some(reason) => {
                        assert!(frame.to_string().len() < MIB, "a refusal is small");
                        Err(reason.to_owned())
                    }
                    None => Ok(()),
                };
            }
            if frame["error"].is_object() {
                return Err(frame["error"]["message"].as_str().unwrap().to_owned());
            }
            if frame["id"] == self.sent {
                return Ok(());
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<(), String> {
        let text = json!({"jsonrpc": "2.0", "id": "$", "method": method, "params": params});
        let text = self.text_of(&text.to_string().replace("\"$\"", "$ID"));
        self.send(text);
        self.outcome()
    }

    /// Introduces itself, the second time within bounds, and opens a chat of its own.
    fn begin(&mut self) {
        let mut hello = json!({"clientId": format!("c{}", self.number), "protocolVersions": ["1.0.0"],
            "locale": long(largest())});
        let reason = self.ask("initialize", hello.clone()).unwrap_err();
        assert!(reason.contains("`locale`"), "{reason}");
        hello["locale"] = json!("en");
        self.ask("initialize", hello).unwrap();
        let session = SESSION.replace("$N", &self.number.to_string());
        let chat = CHAT.replace("$N", &self.number.to_string());
        self.ask("createSession", json!({"channel": session})).unwrap();
        self.ask("createChat", json!({"channel": session, "chat": chat})).unwrap();
        self.ask("subscribe", json!({"channel": session})).unwrap();
        self.ask("subscribe", json!({"channel": chat})).unwrap();
    }

    fn play(&mut self, case: &Case, text: String) {
        self.send(text);
        let outcome = self.outcome();
        match (case.expected, &outcome) {
            (Accepted, Ok(())) => {}
            (Refused(named) | Malformed(named), Err(reason)) if reason.contains(named) => {}
            (expected, outcome) => panic!("{}: {expected:?}, but {outcome:?}", case.name),
        }
        while case.starts_turn && self.read()["params"]["action"]["type"] != "chat/turnComplete" {}
    }
}

/// The memory of a process that is its own, in bytes.
fn memory_of(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<usize>().unwrap() * 1_024
}

fn mib(bytes: usize) -> usize {
    bytes / MIB
}

/// A client in a thread of its own, which plays one case after the other when told to.
struct Player {
    next: Sender<()>,
    /// The bytes of the case that begins.
    begins: Receiver<usize>,
    ended: Receiver<()>,
}

impl Player {
    fn start(url: &str, number: usize, cases: &Arc<Vec<Case>>) -> Self {
        let (next, told) = channel();
        let (begin, begins) = channel();
        let (end, ended) = channel();
        let (url, cases) = (url.to_owned(), cases.clone());
        thread::spawn(move || {
            let mut client = Client::connect(&url, number);
            // Whoever tells it may be gone, when another client found a fault.
            let Ok(()) = told.recv() else { return };
            begin.send(largest()).unwrap();
            client.begin();
            end.send(()).unwrap();
            for case in cases.iter() {
                let text = client.text_of(&case.text);
                let Ok(()) = told.recv() else { return };
                begin.send(text.len()).unwrap();
                client.play(case, text);
                end.send(()).unwrap();
            }
        });
        Self { next, begins, ended }
    }

    fn begin_next(&self) -> usize {
        self.next.send(()).unwrap();
        self.begins.recv().expect("the client is well")
    }

    fn end_next(&self) {
        self.ended.recv().expect("the client is well");
    }
}

/// Watches the memory of a process.
struct Watcher {
    over: Sender<()>,
    thread: JoinHandle<usize>,
}

impl Watcher {
    fn start(pid: u32) -> Self {
        let (over, is_over) = channel();
        let thread = thread::spawn(move || {
            let mut peak = memory_of(pid);
            while is_over.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(memory_of(pid));
            }
            peak
        });
        Self { over, thread }
    }

    fn peak(self) -> usize {
        self.over.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// Waits until memory is within `most`, or for as long as it may take. What it is then.
fn settle(pid: u32, most: usize, patience: Duration) -> usize {
    let (_never, tick) = channel::<()>();
    let begun = Instant::now();
    loop {
        let memory = memory_of(pid);
        if memory <= most || begun.elapsed() > patience {
            return memory;
        }
        let _: Result<(), RecvTimeoutError> = tick.recv_timeout(Duration::from_millis(20));
    }
}

#[test]
fn ten_clients_that_send_every_field_at_its_largest_cost_little_and_leave_nothing() {
    let data = tempfile::tempdir().unwrap();
    let script = r#"{"scenes":[{"steps":[{"say":["ok"]}]}]}"#;
    std::fs::write(data.path().join("script.json"), script).unwrap();
    std::fs::write(
        data.path().join("settings.toml"),
        "[limits]\nchannel_idle_ms = 500\nkeep_alive_ms = 0\n",
    )
    .unwrap();
    let options = ["--no-token", "--script", "script.json", "--config", "settings.toml"];
    let host = Host::start_with(data, &options);
    let pid = host.pid();
    let url = host.ready["url"].as_str().unwrap().to_owned();
    let idle = memory_of(pid);

    let cases = Arc::new(cases());
    let clients: Vec<Player> =
        (0..CLIENTS).map(|number| Player::start(&url, number, &cases)).collect();
    let mut too_much = Vec::new();
    let names = std::iter::once("locale over").chain(cases.iter().map(|case| case.name));
    for name in names {
        // What the case before took is given back; if it is not, this one shows it.
        settle(pid, idle + SLACK / 2, Duration::from_secs(2));
        let watcher = Watcher::start(pid);
        let begun = Instant::now();
        let sent: usize = clients.iter().map(Player::begin_next).sum();
        clients.iter().for_each(Player::end_next);
        let took = begun.elapsed();
        let peak = watcher.peak().saturating_sub(idle);
        eprintln!("{name}: {} MiB sent, {} MiB above idle, {took:?}", mib(sent), mib(peak));
        if peak > 2 * sent + SLACK {
            too_much.push(format!("{name}: {} MiB for {}", mib(peak), mib(sent)));
        }
        assert!(took < PATIENCE, "{name} took {took:?}");
    }
    drop(clients);
    assert!(too_much.is_empty(), "memory above twice the bytes in flight: {too_much:?}");

    // Nobody is there any more: chats leave memory, and what they took is given back.
    let after = settle(pid, idle + LEFT_MAX, PATIENCE).saturating_sub(idle);
    eprintln!("afterwards: {} MiB above idle", mib(after));
    assert!(after <= LEFT_MAX, "{} MiB above idle", mib(after));
}
