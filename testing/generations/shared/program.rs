//! A published client as a program, for versions whose crates cannot be in one lock file with the others: one line of JSON says what
//! to do, one line says what came of it. Whoever includes this names the version's crates, as for `mod.rs`.

// The program uses a part of it.
#![allow(dead_code)]

mod commands;
mod follower;
mod judge;
mod ledger;
mod mirror;
mod view;

use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use follower::Follower;

const SESSION: &str = "scripted:/generations";
/// How long nothing may come before whoever asks is told so.
const SILENCE: Duration = Duration::from_millis(500);

/// Does what its standard input says until that ends.
pub async fn serve() {
    let mut client: Option<Follower> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let request: Value = serde_json::from_str(&line).expect("JSON");
        let answer = match (&mut client, text(&request, "do")) {
            (None, "join") => {
                let (url, name) = (text(&request, "url"), text(&request, "name"));
                client = Some(Follower::joins(url, name).await);
                Value::Null
            }
            (Some(client), _) => obeys(client, &request).await,
            (None, other) => panic!("{other} before it joined"),
        };
        let view = client.as_ref().map(Follower::view).unwrap_or_default();
        let answer = json!({"answer": answer, "session": view.session, "chats": view.chats});
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").expect("somebody reads");
        out.flush().expect("somebody reads");
    }
}

fn text<'a>(request: &'a Value, field: &str) -> &'a str {
    request[field].as_str().unwrap_or_default()
}

async fn obeys(client: &mut Follower, request: &Value) -> Value {
    let channel = text(request, "channel");
    match text(request, "do") {
        "hear" => {
            // Nothing may come: who asks decides how long to wait for it.
            let _ = timeout(SILENCE, client.hears()).await;
        }
        "send" => {
            let (turn, text) = (text(request, "turn"), text(request, "text"));
            client.sends_message(turn, text).await;
        }
        "dispatch" => client.does(channel, request["action"].clone()).await,
        "ask" => {
            let params = request["params"].clone();
            return client.asks(text(request, "method"), params).await;
        }
        "follow" => client.follows(channel).await,
        "agree" => client.agrees(text(request, "after")).await,
        "go" => client.goes().await,
        "come back" => client.comes_back(text(request, "url")).await,
        "until told" => return client.until_told(text(request, "method"), |_| true).await,
        "was told" => return json!(client.was_told(text(request, "method"))),
        other => panic!("{other} is nothing to do"),
    }
    Value::Null
}
