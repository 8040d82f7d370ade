//! Devices with the real binary: paired by a link, known after a kill, signed out at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::running::{Host, data_directory, greenroom, text};
use crate::terminal::{ScreenSize, Terminal};

/// Longer than anything takes that works.
const DEADLINE: Duration = Duration::from_secs(30);

fn address(host: &Host) -> String {
    let url = host.ready["url"].as_str().unwrap();
    url.trim_start_matches("ws://").trim_end_matches('/').to_owned()
}

/// One request; status, head and body of the answer.
fn ask(
    host: &Host,
    head: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> (u16, String, String) {
    let address = address(host);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let token = token.map_or_else(String::new, |it| format!("Authorization: Bearer {it}\r\n"));
    let body = body.map(Value::to_string);
    let described = body.as_ref().map_or_else(String::new, |body| {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    });
    let body = body.unwrap_or_default();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: {address}\r\n{token}{described}Connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

fn ask_json(host: &Host, head: &str, token: &str) -> Value {
    let (status, _, body) = ask(host, head, Some(token), None);
    assert_eq!(status, 200, "{head}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// The link that a verb printed, and the code in it.
fn link(host: &Host, arguments: &[&str]) -> (String, String) {
    let ran = host.run(arguments);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let link = text(&ran.stdout).trim().to_owned();
    let (_, code) = link.split_once("/#pair=").expect("a link that pairs");
    let code = code.to_owned();
    (link, code)
}

fn pair(host: &Host, name: &str) -> String {
    let (_, code) = link(host, &["pair", "--name", name]);
    let (status, _, body) = ask(host, "POST /api/pair", None, Some(&json!({"code": code})));
    assert_eq!(status, 200, "{body}");
    let paired: Value = serde_json::from_str(&body).unwrap();
    paired["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_link_pairs_one_device_which_is_known_after_a_kill() {
    let host = Host::start();
    let (link, code) = link(&host, &["pair", "--name", "phone"]);
    assert_eq!(link, format!("http://{}/#pair={code}", address(&host)));
    let body = json!({"code": code, "name": "what it calls itself"});
    let (status, head, answer) = ask(&host, "POST /api/pair", None, Some(&body));
    assert_eq!(status, 200, "{answer}");
    assert!(head.contains("cache-control: no-store") && !head.contains("set-cookie"), "{head}");
    let paired: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(paired["device"]["name"], "phone", "the operator's name goes first");
    assert_eq!(paired["device"]["scopes"], json!(["use"]));
    let token = paired["token"].as_str().unwrap().to_owned();

    let (status, _, again) = ask(&host, "POST /api/pair", None, Some(&body));
    assert_eq!(status, 403, "{again}");
    assert!(again.contains("was used before") && !again.contains(&code), "{again}");

    let id = paired["device"]["id"].clone();
    let host = Host::start_with(host.kill(), &[]);
    let me = ask_json(&host, "GET /api/me", &token);
    assert_eq!((&me["device"]["id"], &me["scopes"]), (&id, &json!(["use"])));
    let listed = ask_json(&host, "GET /api/devices", &token);
    assert_eq!(listed["devices"][0]["current"], true);
    assert_eq!(listed["devices"][0]["address"], "127.0.0.1");
    // The host's own token is no device.
    let owner = host.ready["token"].as_str().unwrap();
    let me = ask_json(&host, "GET /api/me", owner);
    assert_eq!((&me["device"], &me["scopes"]), (&Value::Null, &json!(["use", "inspect"])));

    let stored = std::fs::read_to_string(data_directory(host.data.path()).join("devices.json"));
    assert!(!stored.unwrap().contains(&token));
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_closes_an_open_socket_and_refuses_the_next() {
    let host = Host::start();
    let (phone, tablet) = (pair(&host, "phone"), pair(&host, "tablet"));
    let request = |token: &str| {
        let url = format!("ws://{}/ahp", address(&host));
        let mut request = url.into_client_request().unwrap();
        let protocols = format!("ahp, tkn.{token}").parse().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", protocols);
        request
    };
    let (mut lost, answer) = tokio_tungstenite::connect_async(request(&phone)).await.unwrap();
    assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], "ahp");
    let (mut kept, _) = tokio_tungstenite::connect_async(request(&tablet)).await.unwrap();
    let listed: Value = serde_json::from_slice(&host.run(&["devices", "--json"]).stdout).unwrap();
    let connections = |at: usize| listed[at]["connections"].as_u64().unwrap();
    assert_eq!((connections(0), connections(1)), (1, 1));

    let revoked = host.run(&["devices", "revoke", "PHONE"]);
    assert_eq!(text(&revoked.stdout), "phone is signed out.\n", "{revoked:?}");
    let closed = tokio::time::timeout(DEADLINE, lost.next()).await.unwrap();
    let Some(Ok(Message::Close(Some(frame)))) = closed else {
        panic!("the connection is closed with words: {closed:?}");
    };
    assert_eq!(
        (u16::from(frame.code), frame.reason.as_str()),
        (1008, "this device was signed out")
    );
    let refused = tokio_tungstenite::connect_async(request(&phone)).await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    assert_eq!(ask(&host, "GET /api/me", Some(&phone), None).0, 401);

    // The other device is still there, and may sign itself out.
    let me = ask_json(&host, "GET /api/me", &tablet);
    let own = format!("DELETE /api/devices/{}", me["device"]["id"].as_str().unwrap());
    assert_eq!(ask(&host, &own, Some(&tablet), None).0, 204);
    let closed = tokio::time::timeout(DEADLINE, kept.next()).await.unwrap();
    assert!(matches!(closed, Some(Ok(Message::Close(Some(_))))), "{closed:?}");
    assert_eq!(ask(&host, &own, Some(&tablet), None).0, 401);
}

#[test]
fn what_asks_for_devices_must_show_who_it_is_and_what_it_wants() {
    let host = Host::start();
    let owner = host.ready["token"].as_str().unwrap().to_owned();
    let device = pair(&host, "phone");
    let code = json!({"purpose": "pair", "scopes": ["use"]});
    for (head, token, body, expected) in [
        ("GET /api/devices", None, None, 401),
        ("GET /api/me", Some("wrong"), None, 401),
        ("POST /api/devices", Some(&*owner), None, 405),
        ("GET /api/pair", None, None, 405),
        ("GET /api/devices/x", Some(&*owner), None, 405),
        ("DELETE /api/devices/x", Some(&*owner), None, 404),
        ("POST /api/pair", None, None, 415),
        ("POST /api/pair", None, Some(json!({"code": 7})), 400),
        ("POST /api/pair", None, Some(json!({"code": "x".repeat(5_000)})), 413),
        ("POST /api/pair/code", Some(&*device), Some(code.clone()), 403),
        ("POST /api/pair/code", None, Some(code.clone()), 401),
        (
            "POST /api/pair/code",
            Some(&*owner),
            Some(json!({"purpose": "x", "scopes": ["use"]})),
            400,
        ),
        ("POST /api/pair/code", Some(&*owner), Some(json!({"purpose": "pair", "scopes": []})), 400),
        (
            "POST /api/pair/code",
            Some(&*owner),
            Some(json!({"purpose": "pair", "scopes": ["use", "root"]})),
            400,
        ),
    ] {
        let (status, answer_head, text) = ask(&host, head, token, body.as_ref());
        assert_eq!(status, expected, "{head} {body:?}: {text}");
        assert!(answer_head.contains("cache-control: no-store"), "{head}: {answer_head}");
        assert!(!text.trim().is_empty(), "{head}: a refusal has words");
    }
    // An address shows in logs and histories: no route of the API takes a token from there.
    let in_address = format!("GET /api/me?tkn={device}");
    assert_eq!(ask(&host, &in_address, None, None).0, 401);
}

#[test]
fn ten_codes_are_tried_a_minute_and_no_more() {
    let host = Host::start();
    let (_, code) = link(&host, &["pair"]);
    let attempt = |code: &str| ask(&host, "POST /api/pair", None, Some(&json!({"code": code})));
    for _ in 0..10 {
        assert_eq!(attempt("wrong").0, 403);
    }
    let (status, head, words) = attempt(&code);
    assert_eq!(status, 429, "{words}");
    assert!(head.contains("retry-after: ") && words.contains("wait"), "{head} {words}");
}

#[test]
fn an_address_must_be_one_that_the_host_answers_to_and_encrypted() {
    let host = Host::start();
    let refused = |arguments: &[&str]| {
        let ran = host.run(arguments);
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {ran:?}");
        assert_eq!(text(&ran.stdout), "");
        text(&ran.stderr)
    };
    let words = refused(&["pair", "--at", "https://laptop.example"]);
    assert!(words.contains("allowed_hosts = [\"laptop.example\"]"), "{words}");
    assert!(words.contains("greenroom restart"), "{words}");
    let words = refused(&["pair", "--at", "http://192.168.1.7:4790"]);
    assert!(words.contains("--plain-http"), "{words}");
    let words = refused(&["pair", "--at", "laptop"]);
    assert!(words.contains("one looks like https://"), "{words}");
    let words = refused(&["pair", "--name", "a\u{1b}[2Jb"]);
    assert!(words.contains("U+001B") && !words.contains('\u{1b}'), "{words}");
    let (plain, _) = link(&host, &["pair", "--at", "http://192.168.1.7:4790", "--plain-http"]);
    assert!(plain.starts_with("http://192.168.1.7:4790/#pair="), "{plain}");

    let data = host.kill();
    let settings = data_directory(data.path()).join("greenroom.toml");
    std::fs::write(settings, "allowed_hosts = [\"laptop.example\"]\n").unwrap();
    let host = Host::start_with(data, &[]);
    let (named, code) = link(&host, &["pair", "--at", "https://Laptop.example:8443/", "--inspect"]);
    assert_eq!(named, format!("https://laptop.example:8443/#pair={code}"));
    let (_, _, body) = ask(&host, "POST /api/pair", None, Some(&json!({"code": code})));
    let paired: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(paired["device"]["scopes"], json!(["use", "inspect"]));
}

#[test]
fn open_hands_the_link_to_the_browser_or_prints_it() {
    let host = Host::start();
    let directory = tempfile::tempdir().unwrap();
    let (browser, opened) = (directory.path().join("browser"), directory.path().join("opened"));
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", opened.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = host.greenroom().arg("open").env("BROWSER", &browser).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let given = std::fs::read_to_string(&opened).unwrap();
    let (page, code) = given.split_once("#pair=").unwrap();
    assert_eq!(page, format!("http://{}/", address(&host)));
    let said = text(&ran.stdout) + &text(&ran.stderr);
    assert!(said.contains(page) && !said.contains(code), "{said}");
    let body = json!({"code": code, "name": "Firefox on Linux"});
    let (_, _, body) = ask(&host, "POST /api/pair", None, Some(&body));
    let paired: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(paired["device"]["name"], "Firefox on Linux");
    assert_eq!(paired["device"]["scopes"], json!(["use", "inspect"]));

    let none = host
        .greenroom()
        .arg("open")
        .env("BROWSER", directory.path().join("none"))
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env("PATH", directory.path())
        .output()
        .unwrap();
    assert!(text(&none.stdout).contains("/#pair="), "{none:?}");
    assert!(text(&none.stderr).contains("No browser could be opened"), "{none:?}");
    let (printed, _) = link(&host, &["open", "--print"]);
    assert!(printed.starts_with(page), "{printed}");
}

#[test]
fn without_a_host_devices_are_listed_and_signed_out_on_the_disk() {
    let host = Host::start();
    pair(&host, "phone");
    pair(&host, "phone");
    let data = host.kill();
    let run = |arguments: &[&str]| greenroom(data.path()).args(arguments).output().unwrap();
    let table = text(&run(&["devices"]).stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("NAME"), "{table}");
    assert!(lines[1].starts_with("phone  ") && lines[2].starts_with("phone 2  "), "{table}");
    assert!(lines[1].contains("just now") && lines[1].contains("127.0.0.1"), "{table}");
    let unknown = run(&["devices", "revoke", "tablet"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("there are: `phone`, `phone 2`"), "{unknown:?}");
    assert!(run(&["devices", "revoke", "phone"]).status.success());
    let host = Host::start_with(data, &[]);
    let listed: Value = serde_json::from_slice(&host.run(&["devices", "--json"]).stdout).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &json!("phone 2")));
    assert!(host.run(&["devices", "revoke", "--all"]).status.success());
    let none = host.run(&["devices", "revoke", "--all"]);
    assert_eq!(text(&none.stdout), "No device is paired.\n");
    assert!(text(&host.run(&["devices"]).stdout).starts_with("No device is paired."));
}

#[test]
fn a_terminal_shows_a_code_to_scan_if_it_is_wide_enough() {
    let host = Host::start();
    let mut command = host.greenroom();
    command.arg("pair");
    let mut wide = Terminal::start_sized("wide", command, ScreenSize::new(80, 40));
    wide.prints("works on this machine only");
    assert_eq!(wide.ends(), Some(0));
    let printed = wide.printed();
    assert!(printed.contains('▀') && printed.contains("/#pair="), "{printed}");
    let mut command = host.greenroom();
    command.arg("pair");
    let mut narrow = Terminal::start_sized("narrow", command, ScreenSize::new(30, 24));
    narrow.prints("too narrow");
    narrow.prints("Open the link on the device.");
    assert_eq!(narrow.ends(), Some(0));
}
