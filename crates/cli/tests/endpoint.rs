//! The real binary after its host was killed: whoever took the port gets no token, whoever removes the lock file lets no
//! second host in, and sockets that say nothing keep no client waiting.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::running::{Host, data_directory, greenroom, text};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn address(host: &Host) -> SocketAddr {
    let url = host.ready["url"].as_str().unwrap();
    let address = url.trim_start_matches("ws://").trim_end_matches('/');
    address.parse().unwrap()
}

fn token(host: &Host) -> String {
    host.ready["token"].as_str().unwrap().to_owned()
}

/// Listens where a host listened, answers every connection with the same bytes, and records what it is sent.
struct Stranger {
    address: SocketAddr,
    /// What came over each connection.
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Stranger {
    fn listen(address: SocketAddr, answer: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let sent: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let (all, answer) = (Arc::clone(&sent), answer.to_owned());
        // Ends with the test's process.
        thread::spawn(move || {
            for (index, socket) in listener.incoming().enumerate() {
                let socket = socket.unwrap();
                all.lock().unwrap().push(Vec::new());
                let (all, answer) = (Arc::clone(&all), answer.clone());
                thread::spawn(move || record(socket, &answer, index, &all));
            }
        });
        Self { address, sent }
    }

    fn sent(&self) -> Vec<String> {
        let sent = self.sent.lock().unwrap();
        sent.iter().map(|bytes| text(bytes)).collect()
    }
}

fn record(mut socket: TcpStream, answer: &str, index: usize, all: &Mutex<Vec<Vec<u8>>>) {
    let mut buffer = [0; 4_096];
    let mut answered = false;
    while let Ok(count @ 1..) = socket.read(&mut buffer) {
        all.lock().unwrap()[index].extend_from_slice(&buffer[..count]);
        if !answered && socket.write_all(answer.as_bytes()).is_err() {
            return;
        }
        answered = true;
        if answer.is_empty() {
            return;
        }
    }
}

/// Every verb that talks to a host, but for `chat`, which starts one.
fn client_verbs(session: &str) -> Vec<Vec<String>> {
    let verbs: &[&[&str]] = &[
        &["send", "hello"],
        &["send", "hello", "--session", session],
        &["sessions"],
        &["sessions", "--json"],
        &["watch", session],
        &["watch", "ahp-root://"],
        &["transform", "pack"],
        &["doctor"],
        &["doctor", "--json"],
    ];
    let owned = |verb: &&[&str]| verb.iter().map(|word| (*word).to_owned()).collect();
    verbs.iter().map(owned).collect()
}

fn run(home: &Path, verb: &[String]) -> Output {
    fs::create_dir_all(home.join("pack")).unwrap();
    fs::write(home.join("pack/tone.md"), "---\nsections: [tone]\nmode: append\n---\nBe brief.\n")
        .unwrap();
    greenroom(home).args(verb).output().unwrap()
}

/// A data directory whose host was killed, and a stranger on its port.
fn killed_host() -> (TempDir, Stranger, String) {
    let host = Host::start();
    let session = host.new_session("hello");
    let address = address(&host);
    let home = host.kill();
    assert!(data_directory(home.path()).join("endpoint.json").exists());
    (home, Stranger::listen(address, ""), session)
}

#[test]
fn after_a_kill_no_verb_says_a_word_to_whoever_took_the_port() {
    let (home, stranger, session) = killed_host();
    for verb in client_verbs(&session) {
        let output = run(home.path(), &verb);
        let words = text(&output.stderr) + &text(&output.stdout);
        match verb[0].as_str() {
            // A host that is not running is no failure to the doctor.
            "doctor" => {
                assert_eq!(output.status.code(), Some(0), "{words}");
                assert!(words.contains("left by a host that was killed"), "{words}");
                assert!(words.contains("free: no host serves"), "{words}");
                assert!(words.contains("start one with `greenroom serve`"));
            }
            // The list is read from the data directory where no host runs.
            "sessions" => {
                assert_eq!(output.status.code(), Some(0), "{words}");
                assert!(words.contains(&session), "{words}");
            }
            _ => {
                assert_eq!(output.status.code(), Some(4), "{verb:?}: {words}");
                assert!(words.contains("was killed"), "{verb:?}: {words}");
                assert!(words.contains("Start one with `greenroom serve`"));
            }
        }
    }
    // Named by its address, without a token: that of the file belongs to nobody now.
    let url = format!("ws://{}/", stranger.address);
    let named = run(home.path(), &["sessions", "--host", &url].map(str::to_owned));
    assert_eq!(named.status.code(), Some(4));
    let sent = stranger.sent();
    assert_eq!(sent.len(), 1, "only the connection that was asked for: {sent:?}");
    assert!(!sent[0].to_lowercase().contains("authorization"), "{sent:?}");
}

#[test]
fn a_chat_starts_a_host_beside_the_stranger() {
    let (home, stranger, _) = killed_host();
    let mut chat =
        greenroom(home.path()).args(["chat", "--plain"]).stdin(Stdio::piped()).spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = chat.wait_with_output().unwrap();
    let endpoint = fs::read(data_directory(home.path()).join("endpoint.json"));
    let endpoint: Value = serde_json::from_slice(&endpoint.unwrap()).unwrap();
    let pid = i32::try_from(endpoint["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("Hello!"));
    assert!(stranger.sent().is_empty());
}

#[test]
fn a_client_that_was_connected_finds_the_next_host_and_not_the_stranger() {
    let host = Host::start();
    let session = host.new_session("hello");
    let mut watch = host.greenroom().args(["watch", "--json", &session]).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let (address, token) = (address(&host), token(&host));
    let home = host.kill();
    let stranger = Stranger::listen(address, "");
    let host = Host::start_with(home, &[]);
    let sent = host.run(&["send", "hello", "--session", &session]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    assert!(lines.next().unwrap().is_ok(), "it is connected again");
    watch.kill().unwrap();
    watch.wait().unwrap();
    // Only who asked in the moment of the kill may have come this far, and was sent nothing either.
    for sent in stranger.sent() {
        assert!(sent.starts_with("GET /proof?nonce="), "{sent}");
        assert!(sent.lines().count() == 3 && !sent.contains(&token));
    }
}

/// Has the endpoint file of a running host say another address.
fn redirect(host: &Host, to: SocketAddr) {
    let file = data_directory(host.data.path()).join("endpoint.json");
    let mut endpoint: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    endpoint["url"] = json!(format!("ws://{to}/"));
    fs::write(&file, endpoint.to_string()).unwrap();
}

#[test]
fn whoever_cannot_prove_that_it_knows_the_token_does_not_get_it() {
    let host = Host::start();
    let session = host.new_session("hello");
    let token = token(&host);
    let wrong = "0".repeat(64);
    let answers = [
        format!("HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n{wrong}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
            .to_owned(),
        format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100_000)),
        "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
        String::new(),
    ];
    let verbs = client_verbs(&session);
    for (index, answer) in answers.iter().enumerate() {
        let stranger = Stranger::listen(SocketAddr::from(([127, 0, 0, 1], 0)), answer);
        redirect(&host, stranger.address);
        // All verbs with the first answer, one with each of the others.
        let asked = match index {
            0 => verbs.clone(),
            _ => vec![verbs[index % 3].clone()],
        };
        for verb in &asked {
            let output = run(host.data.path(), verb);
            let words = text(&output.stderr) + &text(&output.stdout);
            let code = if verb[0] == "doctor" { 1 } else { 4 };
            assert_eq!(output.status.code(), Some(code), "{verb:?}: {words}");
            assert!(words.contains("token was "), "{verb:?}: {words}");
            assert!(!words.contains(&token));
        }
        if index == 0 {
            let output = host.run_with(&["chat", "--plain"], "hello\n");
            assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        }
        // A token that the user gives goes to nobody unproven either.
        let given = ["sessions", "--token", "given"].map(str::to_owned);
        assert_eq!(run(host.data.path(), &given).status.code(), Some(4));
        let sent = stranger.sent();
        assert!(sent.len() > asked.len(), "each verb asked: {sent:?}");
        for sent in sent {
            assert!(sent.starts_with("GET /proof?nonce="), "{sent}");
            assert_eq!(sent.lines().count(), 3, "nothing came after it: {sent}");
            assert!(!sent.contains(&token) && !sent.contains("given"), "{sent}");
        }
    }
    redirect(&host, address(&host));
    let listed = host.run(&["sessions"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    let checked = text(&host.run(&["doctor"]).stdout);
    assert!(checked.contains("ok    proof"), "{checked}");
}

#[test]
fn removing_the_lock_file_lets_no_second_host_in() {
    let host = Host::start();
    let session = host.new_session("hello");
    let lock = data_directory(host.data.path()).join("lock");
    fs::remove_file(&lock).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--workspace", "."];
    for more in [&[][..], &["--stdio"]] {
        let verb = if more.is_empty() { &serve[..] } else { &["serve"] };
        let second = host.greenroom().args(verb).args(more).output().unwrap();
        let words = text(&second.stderr);
        assert_eq!(second.status.code(), Some(1), "{words}");
        assert!(words.contains("another greenroom"), "{words}");
        assert!(words.contains("stop it (`greenroom stop`) or choose another directory"));
    }
    // Clients still find the one that serves.
    let sent = host.run(&["send", "again", "--session", &session]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let checked = text(&host.run(&["doctor"]).stdout);
    assert!(checked.contains("No second host can start"), "{checked}");
    // And the next one starts when it is gone.
    let host = Host::start_with(host.kill(), &[]);
    assert!(lock.exists());
    assert!(host.run(&["sessions"]).status.success());
}

#[test]
fn a_host_on_standard_input_removes_the_endpoint_of_a_killed_one() {
    let (home, stranger, session) = killed_host();
    let mut serving = greenroom(home.path())
        .args(["serve", "--stdio", "--workspace", "."])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let ping =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"channel": "ahp-root://"}});
    let mut input = serving.stdin.take().unwrap();
    writeln!(input, "{ping}").unwrap();
    let mut answer = String::new();
    let mut output = BufReader::new(serving.stdout.take().unwrap());
    output.read_line(&mut answer).unwrap();
    let verb = client_verbs(&session).remove(0);
    let refused = run(home.path(), &verb);
    let words = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{words}");
    assert!(words.contains("does not say where it listens"), "{words}");
    let checked = text(&run(home.path(), &["doctor".to_owned()]).stdout);
    assert!(checked.contains("serves standard input"), "{checked}");
    drop(input);
    assert!(serving.wait().unwrap().success());
    assert!(stranger.sent().is_empty());
}

/// Sockets that connect and say nothing.
fn silent_sockets(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let connect = |_| TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    (0..count).map(connect).collect()
}

#[test]
fn silent_sockets_keep_no_client_waiting() {
    let home = tempfile::tempdir().unwrap();
    let settings = data_directory(home.path()).join("greenroom.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    // Whoever waits for the time-out of the silent ones waits longer than this test does.
    fs::write(&settings, "[limits]\nhandshake_timeout_ms = 600000\n").unwrap();
    let host = Host::start_with(home, &[]);
    let silent = silent_sockets(address(&host), 600);
    let sent = host.run(&["send", "hello"]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let more = silent_sockets(address(&host), 600);
    assert!(host.run(&["sessions"]).status.success());
    // The first ones were told why they had to go; the last ones still wait.
    let mut answer = String::new();
    (&silent[0]).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("503") && answer.contains("try again"), "{answer}");
    let last = more.last().unwrap();
    last.set_nonblocking(true).unwrap();
    let waits = last.peek(&mut [0]).unwrap_err();
    assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn silent_sockets_do_not_use_up_the_file_descriptors() {
    let home = tempfile::tempdir().unwrap();
    let serve = "ulimit -n 100 && exec \"$GREENROOM\" serve --listen 127.0.0.1:0 --ready-json --workspace .";
    let mut child = Command::new("sh")
        .args(["-c", serve])
        .env("GREENROOM", env!("CARGO_BIN_EXE_greenroom"))
        .env("XDG_DATA_HOME", home.path())
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let url = ready["url"].as_str().unwrap();
    let address = url.trim_start_matches("ws://").trim_end_matches('/');
    let silent = silent_sockets(address.parse().unwrap(), 150);
    let listed = greenroom(home.path()).arg("sessions").output().unwrap();
    drop(silent);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(listed.status.success(), "{}", text(&listed.stderr));
}

#[test]
fn a_host_of_an_earlier_version_is_to_be_restarted() {
    let home = tempfile::tempdir().unwrap();
    let data = data_directory(home.path());
    fs::create_dir_all(&data).unwrap();
    // It holds the file and not the directory, and would not answer `/proof`.
    let lock = fs::File::create(data.join("lock")).unwrap();
    lock.lock().unwrap();
    let stranger = Stranger::listen(SocketAddr::from(([127, 0, 0, 1], 0)), "");
    let url = format!("ws://{}/", stranger.address);
    let endpoint = json!({"url": url, "token": "secret", "pid": 77, "version": "0.1.0"});
    fs::write(data.join("endpoint.json"), endpoint.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let output = greenroom(home.path()).args(arguments).output().unwrap();
        let words = text(&output.stderr) + &text(&output.stdout);
        (output.status.code(), words)
    };
    let (code, words) = run(&["sessions"]);
    assert!(code == Some(4) && words.contains("`kill 77`"), "{words}");
    let (code, words) = run(&["doctor"]);
    assert!(code == Some(1) && words.contains("`kill 77`"), "{words}");
    let (code, words) = run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(1) && words.contains("another greenroom"));
    assert!(data.join("endpoint.json").exists(), "it is that host's");
    assert!(stranger.sent().is_empty());
}
