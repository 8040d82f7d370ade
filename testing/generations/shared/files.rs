//! Files: those of the host, which a client uses, and those of a client, which the host's agent uses through it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::super::VERSION;
use super::commands::{judge_params, judge_result};
use super::mirror::ROOT;
use super::{Follower, ledger, outside, script};
use crate::host::Host;

pub async fn files_are_used() {
    let host = Host::start(&script());
    let ann = Follower::joins(&host.url, "ann").await;
    let uri = |name: &str| format!("{}/{name}", host.work_uri());
    let text = |name: &str| std::fs::read_to_string(host.work().join(name)).ok();
    ann.asks("ping", json!({"channel": ROOT})).await;
    let wish = json!({"channel": ROOT, "uri": host.work_uri(), "read": true, "write": true});
    ann.asks("resourceRequest", wish).await;
    let made = json!({"channel": ROOT, "uri": uri("made")});
    ann.asks("resourceMkdir", made).await;
    let write =
        json!({"channel": ROOT, "uri": uri("made/a.txt"), "data": "one", "encoding": "utf-8"});
    ann.asks("resourceWrite", write).await;
    assert_eq!(text("made/a.txt").as_deref(), Some("one"));
    let read = json!({"channel": ROOT, "uri": uri("made/a.txt")});
    let said = ann.asks("resourceRead", read.clone()).await;
    assert_eq!(said["data"], "one", "{said}");
    let facts = ann.asks("resourceResolve", read).await;
    assert_eq!((&facts["type"], &facts["size"]), (&json!("file"), &json!(3)));
    for (method, to) in [("resourceCopy", "b.txt"), ("resourceMove", "c.txt")] {
        let params = json!({"channel": ROOT, "source": uri("made/a.txt"), "destination": uri(&format!("made/{to}"))});
        ann.asks(method, params).await;
    }
    assert_eq!(text("made/a.txt"), None);
    let list = json!({"channel": ROOT, "uri": uri("made")});
    let list = ann.asks("resourceList", list).await;
    let mut names: Vec<&str> = list["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["b.txt", "c.txt"]);
    let delete = json!({"channel": ROOT, "uri": uri("made"), "recursive": true});
    ann.asks("resourceDelete", delete).await;
    assert!(!host.work().join("made").exists());
}

const ATTACHED: &str = "virtual://editor/w/a.txt";

/// What the client of this version has: texts by their addresses, none for a directory; and whether somebody asked for more than to
/// read.
static OWN: Mutex<(BTreeMap<String, Option<String>>, bool)> = Mutex::new((BTreeMap::new(), false));

/// Answers the host by the types of this version, both ways.
fn answer(method: &str, params: &Value) -> Result<Value, i32> {
    judge_params(method, params).map_err(|_| -32602)?;
    let result = own_files(method, params)?;
    assert_eq!(judge_result(method, &result), Ok(()), "{VERSION} {method}");
    ledger::open().answered.insert(method.to_owned());
    Ok(result)
}

fn own_files(method: &str, params: &Value) -> Result<Value, i32> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let (files, is_granted) = &mut *own;
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    let (uri, source, destination) = (text("uri"), text("source"), text("destination"));
    match method {
        "resourceRequest" => *is_granted = true,
        "resourceRead" => {
            let found = files.get(&uri).cloned().flatten().ok_or(-32008)?;
            return Ok(json!({"data": found, "encoding": "utf-8"}));
        }
        _ if !*is_granted => return Err(-32009),
        "resourceResolve" => {
            let found = files.get(&uri).cloned().flatten().ok_or(-32008)?;
            return Ok(json!({"uri": uri, "type": "file", "size": found.len()}));
        }
        "resourceList" => {
            let below = files.keys().filter(|name| name.starts_with(&uri) && **name != uri);
            let entry = |name: &String| json!({"name": name.rsplit('/').next(), "type": "file"});
            let entries: Vec<Value> = below.map(entry).collect();
            return Ok(json!({"entries": entries}));
        }
        "resourceWrite" => drop(files.insert(uri, Some(text("data")))),
        "resourceMkdir" => drop(files.insert(uri, None)),
        "resourceCopy" => {
            let found = files.get(&source).cloned().ok_or(-32008)?;
            files.insert(destination, found);
        }
        "resourceMove" => {
            let found = files.remove(&source).ok_or(-32008)?;
            files.insert(destination, found);
        }
        "resourceDelete" => drop(files.remove(&uri).ok_or(-32008)?),
        _ => return Err(-32601),
    }
    Ok(json!({}))
}

/// The host's agent uses what only this client has, by every method that there is for it.
pub async fn files_of_the_client_are_used() {
    if VERSION < "0.5.2" {
        return; // its published client answers no requests
    }
    let origin = outside::serve();
    let host = Host::start_with_settings(&script(), &outside::settings(&origin));
    let mut ann = Follower::joins(&host.url, "ann").await;
    {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        own.0.insert(ATTACHED.to_owned(), Some("one".to_owned()));
    }
    ann.answers(answer);
    let session = "native:/files";
    let made =
        json!({"channel": session, "provider": "native", "config": {"approvals": "full-access"}});
    ann.makes("createSession", made, session).await;
    let chat = ann.at(session)["chats"][0]["resource"].clone();
    let chat = chat.as_str().expect("a chat").to_owned();
    ann.follows(&chat).await;
    let at = |name: &str| format!("virtual://editor/w/{name}");
    let calls = json!([
        {"operation": "info", "uri": ATTACHED},
        {"operation": "mkdir", "uri": at("dir")},
        {"operation": "copy", "uri": ATTACHED, "destination": at("dir/b.txt")},
        {"operation": "move", "uri": at("dir/b.txt"), "destination": at("dir/c.txt")},
        {"operation": "list", "uri": at("dir")},
        {"operation": "write", "uri": at("dir/d.txt"), "content": "two"},
        {"operation": "delete", "uri": ATTACHED},
        {"operation": "read", "uri": at("dir/d.txt")},
    ]);
    let attached =
        json!({"type": "resource", "uri": ATTACHED, "label": "a.txt", "displayKind": "document"});
    let message = json!({"text": format!("files {calls}"), "origin": {"kind": "user"}, "attachments": [attached]});
    let started = json!({"type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T08:00:00.000Z", "message": message});
    ann.does(&chat, started).await;
    ann.until("the turn is over", |ann| ann.at(&chat)["turns"].as_array().map(Vec::len) == Some(1))
        .await;
    ann.agrees("the use of files").await;
    let turn = ann.at(&chat)["turns"][0].clone();
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let left: Vec<&str> = own.0.keys().map(String::as_str).collect();
    assert_eq!(left, [at("dir"), at("dir/c.txt"), at("dir/d.txt")], "{turn}");
}
