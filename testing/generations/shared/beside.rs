//! The channels beside sessions and chats: the root, terminals, changesets, annotations, watches. A published client uses each in
//! the words of its version, sees what a client of 1.0 does there, and its reducers come to what a newcomer is told.

use serde_json::{Value, json};

use super::super::VERSION;
use super::customizations::makes_until_heard;
use super::mirror::ROOT;
use super::{Follower, SESSION, script};
use crate::driver::Driver;
use crate::host::Host;

const TERMINAL: &str = "ahp-terminal:/one";
const OF_SESSION: &str = "ahp-terminal:/of-the-session";

fn part_of_session(name: &str) -> String {
    format!("{SESSION}/{name}")
}

/// An annotation as a client of this version says it: it named a turn up to 0.8.
fn annotation(id: &str) -> Value {
    let entry = json!({"id": "e1", "text": "why?"});
    let mut annotation =
        json!({"id": id, "resource": "file:///a.rs", "resolved": false, "entries": [entry]});
    if VERSION < "0.9" { annotation["turnId"] = json!("t1") } else { annotation["origin"] = json!({"session": SESSION, "turnId": "t1"}) }
    annotation
}

pub async fn annotations_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    let channel = part_of_session("annotations");
    ann.follows(&channel).await;
    let count = |ann: &Follower| {
        let all = ann.at(&part_of_session("annotations"));
        all["annotations"].as_array().map_or(0, Vec::len)
    };
    for id in ["a1", "a2"] {
        let set = json!({"type": "annotations/set", "annotation": annotation(id)});
        ann.does(&channel, set).await;
    }
    let entry = json!({"id": "e2", "text": {"markdown": "*because*"}});
    let set = json!({"type": "annotations/entrySet", "annotationId": "a1", "entry": entry});
    ann.does(&channel, set).await;
    let moved = if VERSION < "0.9" { json!({"turnId": "t2"}) } else { json!({"origin": {"session": SESSION, "turnId": "t2"}}) };
    let mut update = json!({"type": "annotations/updated", "annotationId": "a1", "resolved": true});
    for (field, value) in moved.as_object().into_iter().flatten() {
        update[field] = value.clone();
    }
    ann.does(&channel, update).await;
    // One of 1.0 that is about the whole session, and names no turn.
    let entry = json!({"id": "e", "text": "all of it"});
    let whole = json!({"id": "b", "origin": {"session": SESSION}, "resource": "file:///b.rs", "resolved": false, "entries": [entry]});
    bea.does(&channel, json!({"type": "annotations/set", "annotation": whole})).await;
    ann.until("all are there", |ann| count(ann) == 3).await;
    ann.agrees("the annotations").await;
    let told = bea.snapshot_of(&channel).await;
    // The order in which the host heard of the two clients' annotations is not given.
    let first = told["annotations"].as_array().into_iter().flatten().find(|it| it["id"] == "a1");
    let first = first.expect("the first annotation is there");
    assert_eq!(
        (&first["origin"]["session"], &first["origin"]["turnId"]),
        (&json!(SESSION), &json!("t2")),
        "{told}"
    );
    assert_eq!(first["resolved"], true);
    let gone = json!({"type": "annotations/entryRemoved", "annotationId": "a1", "entryId": "e1"});
    ann.does(&channel, gone).await;
    ann.does(&channel, json!({"type": "annotations/removed", "annotationId": "a2"})).await;
    ann.until("one is gone", |ann| count(ann) == 2).await;
    ann.agrees("the removal").await;
    // Whoever leaves a channel is told nothing more of it.
    ann.unfollows(&channel).await;
    ann.asks("ping", json!({"channel": ROOT})).await;
    let heard = ann.count_heard(&channel);
    let gone = json!({"type": "annotations/removed", "annotationId": "a1"});
    bea.does(&channel, gone).await;
    ann.asks("ping", json!({"channel": ROOT})).await;
    assert_eq!(ann.count_heard(&channel), heard);
}

/// A claim for a session as a client of this version says it: without a chat up to 0.8.
fn claim_of_session(chat: &str) -> Value {
    let mut claim = json!({"kind": "session", "session": SESSION});
    if VERSION >= "0.9" {
        claim["chat"] = json!(chat);
    }
    claim
}

fn exit_code(terminal: &Value) -> Option<i64> {
    if VERSION < "0.9" { terminal["exitCode"].as_i64() } else { terminal["lifecycle"]["exitCode"].as_i64() }
}

pub async fn terminals_are_followed() {
    let host = Host::start(&script());
    std::fs::create_dir(host.work().join("below")).expect("a directory");
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    let chat = ann.first();
    let own = json!({"kind": "client", "clientId": "ann"});
    let made =
        json!({"channel": TERMINAL, "claim": own, "cwd": host.work_uri(), "cols": 60, "rows": 12});
    ann.makes("createTerminal", made, TERMINAL).await;
    ann.does(TERMINAL, json!({"type": "terminal/resized", "cols": 70, "rows": 20})).await;
    ann.does(TERMINAL, json!({"type": "terminal/titleChanged", "title": "mine"})).await;
    a_shell_is_used(&host, &mut ann).await;
    let give = json!({"type": "terminal/claimed", "claim": claim_of_session(&chat)});
    ann.does(TERMINAL, give).await;
    ann.until("the session has it", |ann| ann.at(TERMINAL)["claim"]["kind"] == "session").await;
    assert_eq!(bea.snapshot_of(TERMINAL).await["claim"]["chat"], json!(chat));
    let take = json!({"type": "terminal/claimed", "claim": {"kind": "client", "clientId": "bea"}});
    bea.does(TERMINAL, take).await;
    bea.does(TERMINAL, json!({"type": "terminal/input", "data": "exit 3\r"})).await;
    ann.until("it has ended", |ann| exit_code(&ann.at(TERMINAL)) == Some(3)).await;
    ann.until("the list says so", |ann| exit_code(&ann.root()["terminals"][0]) == Some(3)).await;
    ann.agrees("the exit").await;
    a_terminal_of_a_session_comes_and_goes(&mut ann, &mut bea, &chat).await;
}

async fn a_shell_is_used(host: &Host, ann: &mut Follower) {
    // A shell throws away what is typed before it asks.
    ann.until("it asks", |ann| {
        let shown = ann.at(TERMINAL)["content"].clone();
        shown.as_array().is_some_and(|shown| !shown.is_empty())
    })
    .await;
    ann.does(TERMINAL, json!({"type": "terminal/input", "data": "echo $((40 + 2))x\r"})).await;
    ann.until("it says so", |ann| ann.at(TERMINAL)["content"].to_string().contains("42x")).await;
    ann.agrees("typing").await;
    ann.does(TERMINAL, json!({"type": "terminal/input", "data": "cd below\r"})).await;
    let below = format!("{}/below", host.work_uri());
    ann.until("it is elsewhere", |ann| ann.at(TERMINAL)["cwd"] == below.as_str()).await;
    ann.does(TERMINAL, json!({"type": "terminal/cleared"})).await;
    ann.until("it is cleared", |ann| !ann.at(TERMINAL)["content"].to_string().contains("42x"))
        .await;
    ann.agrees("the cleared screen").await;
}

async fn a_terminal_of_a_session_comes_and_goes(ann: &mut Follower, bea: &mut Driver, chat: &str) {
    let made = json!({"channel": OF_SESSION, "claim": claim_of_session(chat)});
    ann.asks("createTerminal", made).await;
    ann.follows(OF_SESSION).await;
    let told = bea.snapshot_of(OF_SESSION).await;
    assert_eq!(told["claim"]["chat"], json!(chat), "{told}");
    ann.agrees("one of the session").await;
    ann.asks("disposeTerminal", json!({"channel": OF_SESSION})).await;
    ann.leaves(OF_SESSION);
    ann.until("it is gone", |ann| ann.root()["terminals"].as_array().map(Vec::len) == Some(1))
        .await;
    ann.agrees("its end").await;
}

pub async fn changesets_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    ann.sends_message("t1", "!printf one > a.txt; printf two > b.txt").await;
    ann.until("it is done", |ann| ann.turns().len() == 1).await;
    let (all, of_turn) =
        (part_of_session("changeset/session"), part_of_session("changeset/turn/t1"));
    ann.follows(&of_turn).await;
    ann.follows(&all).await;
    let files = |ann: &Follower, channel: &str| -> Vec<Value> {
        let state = ann.at(channel);
        state["files"].as_array().cloned().unwrap_or_default()
    };
    let is_ready = |ann: &Follower, count: usize| {
        ann.at(&all)["status"] == "ready" && files(ann, &all).len() == count
    };
    ann.until("both files are there", |ann| is_ready(ann, 2)).await;
    ann.until("the turn has them", |ann| files(ann, &of_turn).len() == 2).await;
    ann.agrees("the change").await;
    let file = files(&ann, &all)[0]["id"].clone();
    let reviewed = |reviewed: bool| json!({"type": "changeset/filesReviewChanged", "files": [file.clone()], "reviewed": reviewed});
    bea.does(&all, reviewed(true)).await;
    if VERSION >= "0.5.2" {
        ann.until("it is reviewed", |ann| files(ann, &all)[0]["reviewed"] == true).await;
    }
    ann.agrees("the review").await;
    if VERSION >= "0.6" {
        ann.does(&all, reviewed(false)).await;
        ann.until("it is not", |ann| files(ann, &all)[0]["reviewed"] != true).await;
        ann.agrees("the review taken back").await;
    }
    // A turn whose changes are followed from before there are any.
    let go = host.beside("go");
    let waits =
        format!("!until [ -e '{}' ]; do sleep 0.1; done; printf three > c.txt", go.display());
    ann.sends_message("t2", &waits).await;
    ann.until("it runs", |ann| ann.chat()["activeTurn"]["id"] == "t2").await;
    let of_second = part_of_session("changeset/turn/t2");
    ann.follows(&of_second).await;
    std::fs::write(&go, "").expect("a file");
    ann.until("its change is told", |ann| {
        files(ann, &of_second).len() == 1 && ann.at(&of_second)["operations"].is_array()
    })
    .await;
    ann.until("all are there", |ann| is_ready(ann, 3)).await;
    ann.agrees("the second change").await;
    let discard = json!({"channel": of_turn, "operationId": "discard", "target": {"kind": "resource", "resource": file}});
    ann.asks("invokeChangesetOperation", discard).await;
    ann.until("one is discarded", |ann| is_ready(ann, 2)).await;
    ann.agrees("the discard").await;
    ann.asks("disposeSession", json!({"channel": SESSION})).await;
    ann.until("nothing is left", |ann| files(ann, &all).is_empty()).await;
    ann.counts_as_followed(&all); // of a session that is gone nobody is told
}

pub async fn what_a_session_has_beside_its_chats_is_followed() {
    let host = Host::start_with_agent(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    for action in [
        json!({"type": "session/titleChanged", "title": "Named"}),
        json!({"type": "session/isReadChanged", "isRead": true}),
        json!({"type": "session/isArchivedChanged", "isArchived": true}),
        json!({"type": "session/configChanged", "config": {"pace": "typing"}}),
    ] {
        ann.does(SESSION, action).await;
    }
    ann.until("it has its settings", |ann| ann.session()["config"]["values"]["pace"] == "typing")
        .await;
    let (session, flat) = (ann.session(), VERSION >= "0.5");
    let title = if flat { &session["title"] } else { &session["summary"]["title"] };
    assert_eq!(title, "Named");
    if flat {
        let draft = json!({"type": "chat/draftChanged", "draft": {"text": "so far", "origin": {"kind": "user"}}});
        ann.does(&ann.first(), draft).await;
        ann.until("it is drafted", |ann| ann.chat()["draft"]["text"] == "so far").await;
    }
    ann.agrees("the settings").await;
    // Sessions whose making takes steps. One that cannot be made says so in the word of its version.
    let config = json!({"isolation": "worktree"});
    let params = json!({"provider": "other", "config": config});
    let begins = ["session/ready", "session/metaChanged", "session/changesetsChanged"];
    makes_until_heard(&mut ann, "other:/made", params, "ready", &begins).await;
    let config = json!({"isolation": "worktree", "branch": "no-such-branch"});
    let params = json!({"provider": "other", "config": config});
    let failed = if VERSION < "0.9" { "creationFailed" } else { "failed" };
    let ends = ["session/creationFailed"];
    makes_until_heard(&mut ann, "other:/failed", params, failed, &ends).await;
}

pub async fn the_root_and_watches_are_followed_and_results_are_read() {
    let host = Host::start_with_agent(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    let chat = ann.first();
    let params = json!({"channel": ROOT, "uri": host.work_uri(), "recursive": true});
    let watch = ann.asks("createResourceWatch", params).await;
    let watch = watch["channel"].as_str().expect("a channel").to_owned();
    ann.follows(&watch).await;
    std::fs::write(host.work().join("seen.txt"), "seen").expect("a file");
    ann.until_told("action", |told| {
        told["channel"] == watch.as_str() && told["action"]["type"] == "resourceWatch/changed"
    })
    .await;
    let level = json!({"type": "root/configChanged", "config": {"logLevel": "warn"}});
    bea.does(ROOT, level).await;
    ann.until("the level is another", |ann| ann.root()["config"]["values"]["logLevel"] == "warn")
        .await;
    let level = json!({"type": "root/configChanged", "config": {"logLevel": "error"}});
    ann.does(ROOT, level).await;
    ann.until("it is what she wants", |ann| ann.root()["config"]["values"]["logLevel"] == "error")
        .await;
    let model = json!({"id": "another", "base_url": "http://127.0.0.1:9/v1"});
    bea.asks("x-addModel", json!({"channel": ROOT, "model": model})).await;
    ann.until("there is another model", |ann| ann.root()["agents"].to_string().contains("another"))
        .await;
    ann.agrees("the changes").await;
    let token = json!({"channel": ROOT, "resource": "https://api.example", "token": "x"});
    ann.asks("authenticate", token).await;
    let text = json!({"channel": chat, "kind": "userMessage", "text": "/", "offset": 1});
    let completed = ann.asks("completions", text).await;
    assert!(completed["items"].as_array().is_some_and(|all| !all.is_empty()), "{completed}");
    let config = json!({"channel": ROOT, "provider": "other", "config": {}});
    ann.asks("resolveSessionConfig", config).await;
    let branch = json!({"channel": ROOT, "provider": "other", "config": {}, "property": "branch", "query": "",
        "workingDirectory": host.work_uri()});
    let branches = ann.asks("sessionConfigCompletions", branch).await;
    assert_eq!(branches["items"][0]["value"], "main", "{branches}");
}
