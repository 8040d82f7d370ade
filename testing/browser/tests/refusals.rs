//! W-14: what other pages and programs try, and what the host lets them have: nothing.

#![allow(unreachable_pub, reason = "modules that several tests share")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use browser::{Browser, Host, Screen};
use common::{IS_LIVE, LOST_CONNECTION, pairing_link, sign_in};
use serde_json::{Value, json};

/// A page of another program on this machine, such as a server that an agent started.
fn serve_stranger() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let origin = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut head = [0; 4_096];
            // A browser that went away needs no answer.
            let _ = stream.read(&mut head);
            let body = "<!doctype html><title>stranger</title><p>A page on another port.";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    Ok(origin)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_on_another_port_gets_nothing_even_with_a_stolen_token() -> Result<()> {
    let Some(browser) = Browser::start().await? else { return Ok(()) };
    let host = Host::start(&[])?;
    let phone = sign_in(&browser, &host, Screen::PHONE).await?;
    let token = phone.evaluate("localStorage.getItem('greenroom.token')").await?;
    let token = token.as_str().context("a token")?;
    let page = browser.page(Screen::DESKTOP).await?;
    page.go_to(&serve_stranger()?).await?;
    let origin = &host.origin;
    let socket = origin.replacen("http", "ws", 1);
    for (what, attempt) in [
        (
            "its storage",
            "Promise.resolve(localStorage.getItem('greenroom.token') ? 'got it' : 'nothing')"
                .to_owned(),
        ),
        ("its cookies", "Promise.resolve(document.cookie || 'nothing')".to_owned()),
        (
            "the API",
            format!(
                "fetch('{origin}/api/devices', {{headers: {{Authorization: 'Bearer {token}'}}}}).then(it => it.text())"
            ),
        ),
        (
            "the API without asking first",
            format!(
                "fetch('{origin}/api/pair', {{method: 'POST', mode: 'no-cors', body: '{{}}'}}).then(it => it.status === 0 ? Promise.reject() : it.text())"
            ),
        ),
        ("a file of the page", format!("fetch('{origin}/').then(it => it.text())")),
        (
            "a script of the page",
            format!(
                "new Promise((yes, no) => {{ const it = document.createElement('script'); it.src = '{origin}/sw.js'; it.onload = () => yes('loaded'); it.onerror = no; document.head.append(it); }})"
            ),
        ),
        (
            "a socket",
            format!(
                "new Promise((yes, no) => {{ const it = new WebSocket('{socket}/ahp', ['ahp', 'tkn.{token}']); it.onopen = () => yes('open'); it.onerror = no; }})"
            ),
        ),
        (
            "a socket by query",
            format!(
                "new Promise((yes, no) => {{ const it = new WebSocket('{socket}/?tkn={token}'); it.onopen = () => yes('open'); it.onerror = no; }})"
            ),
        ),
        (
            "a frame",
            format!(
                "new Promise((yes) => {{ const it = document.createElement('iframe'); it.src = '{origin}/'; it.onload = () => {{ try {{ yes(it.contentWindow.location.href.startsWith('{origin}') ? 'framed' : 'nothing'); }} catch {{ yes('nothing'); }} }}; document.body.append(it); }})"
            ),
        ),
        (
            "its window",
            format!(
                "(() => {{ const it = window.open('{origin}/'); return new Promise(yes => setTimeout(() => {{ try {{ yes(it.closed ? 'nothing' : it.location.href); }} catch {{ yes('nothing'); }} }}, 500)); }})()"
            ),
        ),
    ] {
        let got = page.evaluate(&format!("{attempt}.then(it => it, () => 'nothing')")).await?;
        ensure!(got == "nothing" || got == "about:blank", "a stranger got {what}: {got}");
    }
    // The page itself is as it was.
    phone.wait_for(IS_LIVE).await?;
    phone.observed().check(&host.origin, &LOST_CONNECTION)
}

/// What comes back for a request, as far as it comes.
fn ask(host: &Host, request: &[u8]) -> Result<String> {
    let address = host.origin.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    // A host that has refused does not read the rest.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of requests")]
fn wrong_names_origins_tokens_and_methods_are_refused() -> Result<()> {
    let host = Host::start(&[])?;
    let address = host.origin.trim_start_matches("http://").to_owned();
    let bearer = format!("Authorization: Bearer {}\r\n", host.token);
    let json = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n".to_owned();
    for (line, name, headers, body, expected) in [
        ("GET /", "evil.example", "", "", 403),
        ("GET /api/me", "evil.example", &*bearer, "", 403),
        ("GET /", &*address, "Origin: http://127.0.0.1:1\r\n", "", 403),
        ("GET /api/me", &*address, &*format!("{bearer}Origin: null\r\n"), "", 403),
        (
            "POST /api/pair",
            &*address,
            &*format!("{json}Origin: https://evil.example\r\n"),
            "{}",
            403,
        ),
        ("GET /api/me", &*address, "", "", 401),
        ("GET /api/me", &*address, "Authorization: Bearer x\r\n", "", 401),
        ("GET /api/me", &*address, &*format!("{bearer}Authorization: Bearer x\r\n"), "", 401),
        ("GET /api/me", &*address, "Cookie: token=x\r\n", "", 401),
        ("GET /api/me", &*address, &*bearer, "", 200),
        ("POST /api/me", &*address, &*bearer, "", 405),
        ("PUT /", &*address, &*bearer, "", 405),
        (
            "POST /api/pair",
            &*address,
            "Content-Type: text/plain\r\nContent-Length: 2\r\n",
            "{}",
            415,
        ),
        ("POST /api/sign-in", &*address, json, "{}", 401),
        ("GET /api/sign-in", &*address, &*bearer, "", 405),
        ("PUT /api/sign-in/finish", &*address, &*bearer, "", 405),
        ("POST /api/sign-in", &*address, &*format!("{json}{bearer}"), "{}", 400),
        // A socket needs what everything else needs.
        ("GET /ahp", &*address, &*upgrade, "", 401),
        (
            "GET /ahp",
            &*address,
            &*format!("{upgrade}Sec-WebSocket-Protocol: ahp, tkn.x\r\n"),
            "",
            401,
        ),
        (
            "GET /ahp",
            &*address,
            &*format!("{upgrade}{bearer}Origin: https://evil.example\r\n"),
            "",
            403,
        ),
        ("GET /ahp?tkn=x", &*address, &*upgrade, "", 401),
        ("GET /content/x", &*address, "", "", 401),
        ("GET /../token", &*address, "", "", 401),
    ] {
        let answer = ask(
            &host,
            format!("{line} HTTP/1.1\r\nHost: {name}\r\n{headers}Connection: close\r\n\r\n{body}")
                .as_bytes(),
        )?;
        let status: u16 = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        let is_refused = expected != 200 && (400..500).contains(&status);
        ensure!(
            status == expected || (line.contains("content") || line.contains("..")) && is_refused,
            "{line} {name} {headers}: {answer}"
        );
        let head = answer.to_lowercase();
        ensure!(
            head.contains("content-security-policy:")
                && head.contains("x-content-type-options: nosniff"),
            "{line}: {answer}"
        );
        ensure!(
            !head.contains("set-cookie") && !head.contains("access-control-allow"),
            "{line}: {answer}"
        );
    }
    Ok(())
}

#[test]
fn endless_requests_are_cut() -> Result<()> {
    let host = Host::start(&[])?;
    let address = host.origin.trim_start_matches("http://").to_owned();
    let endless_head =
        format!("GET / HTTP/1.1\r\nHost: {address}\r\n{}", "X-Long: y\r\n".repeat(100_000));
    ensure!(ask(&host, endless_head.as_bytes())?.contains(" 431 "), "an endless head");
    let large = format!(
        "POST /api/pair HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n{{"
    );
    ensure!(ask(&host, large.as_bytes())?.contains(" 413 "), "an endless body");
    // One that never says how long it is.
    let chunked = format!(
        "POST /api/pair HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n"
    );
    let answer = ask(&host, chunked.as_bytes())?;
    ensure!(answer.contains(" 411 "), "a body without a length: {answer}");
    Ok(())
}

#[test]
fn slow_requests_are_cut() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("greenroom.toml");
    let limits = "[limits]\nhandshake_timeout_ms = 500\nmessage_in_timeout_ms = 500\n";
    std::fs::write(&config, limits)?;
    let host = Host::start(&["--config", config.to_str().context("a path")?])?;
    let address = host.origin.trim_start_matches("http://").to_owned();
    let cut = ask(&host, b"GET / HTTP/1.1\r\nHost: ")?;
    ensure!(cut.contains(" 408 "), "a head that does not end: {cut}");
    // Nobody is given longer for showing a token.
    let begun = format!(
        "PUT /api/content HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n012",
        host.token
    );
    let cut = ask(&host, begun.as_bytes())?;
    ensure!(cut.contains(" 408 "), "a body that does not end: {cut}");
    // Who says nothing at all is sent away, too.
    let cut = ask(&host, b"")?;
    ensure!(cut.is_empty() || cut.contains(" 408 "), "a connection without a request: {cut}");
    Ok(())
}

/// Status, head and body of the answer to a request with a body.
fn exchange(host: &Host, line: &str, headers: &str, body: &str) -> Result<(u16, String, String)> {
    let address = host.origin.trim_start_matches("http://");
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = ask(host, request.as_bytes())?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, head.to_lowercase(), body.to_owned()))
}

#[test]
fn prompts_are_for_devices_that_may_inspect() -> Result<()> {
    let host = Host::start(&[])?;
    let json_type = "Content-Type: application/json\r\n";
    for (scope, expected) in [(&[][..], 403), (&["--inspect"][..], 200)] {
        let (_, code) = pairing_link(&host, scope)?;
        let body = json!({"code": code, "name": "phone"}).to_string();
        let (status, _, paired) = exchange(&host, "POST /api/pair", json_type, &body)?;
        ensure!(status == 200 || status == 201, "{status} {paired}");
        let paired: Value = serde_json::from_str(&paired)?;
        let token = paired["token"].as_str().context("a token")?;
        let bearer = format!("Authorization: Bearer {token}\r\n");
        let (me, _, _) = exchange(&host, "GET /api/me", &bearer, "")?;
        ensure!(me == 200, "the device is signed in: {me}");
        let line = "GET /api/prompt?chat=ahp-chat:/none";
        let (status, _, answer) = exchange(&host, line, &bearer, "")?;
        ensure!((status == 403) == (expected == 403), "{scope:?}: {status} {answer}");
        ensure!(
            expected != 403 || answer.contains("pair --inspect"),
            "it says what to do: {answer}"
        );
    }
    Ok(())
}

#[test]
fn content_is_given_for_signatures_of_the_host_and_in_ranges() -> Result<()> {
    let host = Host::start(&[])?;
    let bearer = format!("Authorization: Bearer {}\r\n", host.token);
    let put = format!("{bearer}Content-Type: text/plain\r\n");
    let (status, _, stored) = exchange(&host, "PUT /api/content", &put, "0123456789")?;
    ensure!(status == 201, "{stored}");
    let stored: Value = serde_json::from_str(&stored)?;
    let items = json!({"items": [{"uri": stored["uri"], "contentType": "text/plain"}]}).to_string();
    let json_type = format!("{bearer}Content-Type: application/json\r\n");
    let (_, _, signed) = exchange(&host, "POST /api/content/addresses", &json_type, &items)?;
    let signed: Value = serde_json::from_str(&signed)?;
    let address = signed["items"][0].as_str().context("an address")?;
    for (range, expected, body) in [
        ("", 200, "0123456789"),
        ("Range: bytes=2-4\r\n", 206, "234"),
        ("Range: bytes=-3\r\n", 206, "789"),
        ("Range: bytes=7-\r\n", 206, "789"),
        ("Range: bytes=10-\r\n", 416, ""),
        ("Range: bytes=5-2\r\n", 200, "0123456789"),
        ("Range: lines=1-2\r\n", 200, "0123456789"),
    ] {
        let (status, head, got) = exchange(&host, &format!("GET {address}"), range, "")?;
        ensure!(status == expected && (status == 416 || got == body), "{range}: {status} {got}");
        ensure!(head.contains("content-security-policy: sandbox; default-src 'none'"), "{head}");
    }
    for wrong in [
        address.replace("text%2Fplain", "text%2Fhtml"),
        address.replace("exp=", "exp=9"),
        format!("{address}0"),
        address.split_once("sig=").context("a signature")?.0.to_owned(),
        address.split_once('?').context("a query")?.0.to_owned(),
    ] {
        let (status, head, body) = exchange(&host, &format!("GET {wrong}"), "", "")?;
        ensure!(status == 403 && !body.contains("0123456789"), "{wrong}: {status} {body}");
        ensure!(head.contains("content-security-policy: sandbox; default-src 'none'"), "{head}");
        // A token is no signature.
        let (status, _, _) = exchange(&host, &format!("GET {wrong}"), &bearer, "")?;
        ensure!(status == 403, "{wrong} with a token: {status}");
    }
    let (status, _, _) =
        exchange(&host, &format!("GET {address}"), "Origin: http://127.0.0.1:1\r\n", "")?;
    ensure!(status == 403, "another origin: {status}");
    Ok(())
}

#[test]
fn a_sign_in_comes_back_to_this_host_and_to_who_began_it() -> Result<()> {
    let host = Host::start(&[])?;
    let headers =
        format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", host.token);
    let begin = |back: &str| {
        let auth = json!({"resource": {"resource": "http://127.0.0.1:1/mcp"}});
        let body = json!({"auth": auth, "back": back}).to_string();
        exchange(&host, "POST /api/sign-in", &headers, &body)
    };
    for back in [
        "https://evil.example/",
        "javascript:alert(1)",
        "http://127.0.0.1.evil.example/",
        &format!("{}/somewhere", host.origin),
        &format!("{}/?x=1", host.origin),
        &format!("{}@evil.example/", host.origin),
    ] {
        let (status, _, answer) = begin(back)?;
        ensure!(status == 422, "{back}: {status} {answer}");
    }
    // A page sends the browser back to itself, not to another address of this host or to another machine.
    let of_page = format!("{headers}Origin: {}\r\n", host.origin);
    for back in ["http://192.0.2.1/", "http://127.0.0.1:1/", "http://localhost/"] {
        let auth = json!({"resource": {"resource": "http://127.0.0.1:1/mcp"}});
        let body = json!({"auth": auth, "back": back}).to_string();
        let (status, _, answer) = exchange(&host, "POST /api/sign-in", &of_page, &body)?;
        ensure!(status == 422, "{back}: {status} {answer}");
    }
    // Nobody is there to sign in at: that is said.
    let (status, _, answer) = begin(&format!("{}/", host.origin))?;
    ensure!(status == 502 && answer.contains("refused"), "{status} {answer}");
    let body = json!({"address": format!("{}/?code=c&state=s", host.origin)}).to_string();
    let (status, _, answer) = exchange(&host, "POST /api/sign-in/finish", &headers, &body)?;
    ensure!(status == 404, "{status} {answer}");
    Ok(())
}
