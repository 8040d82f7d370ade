//! What an external agent changes in files: found by comparing the tree, told as the changeset of its turn, counted in the session's
//! summary, and taken back (G-53, G-72).

use ahp::{Client, ClientEventStream, SubscriptionEvent};
use conformance::acp::{AcpHarness, AcpSetup, SESSION, scene};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

use crate::changesets::{Followed, commit_all, invoke};
use crate::published_client::ready;

fn write(path: &str, text: &str) -> Value {
    json!({"path": format!("{{{{cwd}}}}/{path}"), "text": text})
}

/// A call that writes a file and says nothing of it.
fn silent_call(path: &str, text: &str) -> Value {
    json!({"tool": {"title": "work", "write": write(path, text)}})
}

async fn start(steps: Value, in_git: bool) -> AcpHarness {
    let setup = AcpSetup::new(json!({"scenes": [scene("", steps)]}))
        .file("a.txt", "one\ntwo\n")
        .file("mine.txt", "mine\n");
    let harness = setup.start().await;
    if in_git {
        commit_all(&harness.work());
    }
    harness
}

/// What a list of sessions shows of one.
async fn changes_listed(client: &Client) -> Value {
    let list = json!({"channel": "ahp-root://"});
    let list: Value = client.request("listSessions", list).await.unwrap();
    let items = list["items"].as_array().unwrap();
    let session = items.iter().find(|item| item["resource"] == SESSION);
    session.expect("it is listed")["changes"].clone()
}

/// Waits until the root tells of other totals.
async fn totals_told(events: &mut ClientEventStream, totals: &Value) {
    let told = async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            if let SubscriptionEvent::SessionSummaryChanged(changed) = &event.event
                && json!(changed)["changes"]["changes"] == *totals
            {
                return;
            }
        }
    };
    let waited = timeout(Duration::from_secs(60), told).await;
    waited.unwrap_or_else(|_| panic!("{totals} is not told"));
}

#[tokio::test]
async fn what_an_agent_of_others_changes_is_its_turns_and_is_taken_back() {
    for in_git in [true, false] {
        let steps = json!([
            silent_call("a.txt", "one\n2\n3\n"),
            silent_call("new.txt", "new\n"),
            {"say": ["done"]},
        ]);
        let mut harness = start(steps, in_git).await;
        let client = ready(harness.host(), "bob").await;
        client.subscribe("ahp-root://".to_owned()).await.unwrap();
        let mut events = client.events();
        std::fs::write(harness.work().join("mine.txt"), "changed by me\n").unwrap();
        let turn = harness.talk("go").await;
        assert_eq!(turn["state"], "complete", "{turn:#}");
        let totals = json!({"files": 2, "additions": 3, "deletions": 1});
        totals_told(&mut events, &totals).await;
        assert_eq!(changes_listed(&client).await, totals, "git: {in_git}");

        let name = format!("turn/{}", turn["id"].as_str().unwrap());
        let changes = Followed::subscribe_in(&client, SESSION, &name).await;
        assert_eq!(changes.names(), ["a.txt", "new.txt"], "git: {in_git}");
        invoke(&client, &changes.uri, "restore", json!({})).await.unwrap();
        assert_eq!(harness.read("a.txt"), "one\ntwo\n");
        assert!(!harness.work().join("new.txt").exists());
        assert_eq!(harness.read("mine.txt"), "changed by me\n");
        let nothing = json!({"files": 0, "additions": 0, "deletions": 0});
        totals_told(&mut events, &nothing).await;
        // A host that starts again knows it as well.
        drop((client, events));
        harness.restart().await;
        let client = ready(harness.host(), "eve").await;
        assert_eq!(changes_listed(&client).await, nothing);
        let changes = Followed::subscribe_in(&client, SESSION, &name).await;
        assert_eq!(changes.names(), ["a.txt", "new.txt"], "it is what the turn did");
    }
}

/// The names of the bodies that are there for good.
fn stored(harness: &AcpHarness) -> BTreeSet<String> {
    let names = |directory: PathBuf| {
        let entries = std::fs::read_dir(directory).expect("it is a directory");
        entries.map(|entry| entry.expect("it can be listed").path())
    };
    let buckets = names(harness.data().join("blobs/sha256"));
    let bodies = buckets.flat_map(names);
    bodies.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

/// A look at files reads all of them, and the first word of an agent waits for it. So what it read is not made durable, file by file,
/// before it is known that anything changed.
#[tokio::test]
async fn of_all_that_a_look_reads_only_what_a_turn_changed_is_stored_for_good() {
    let scenes = json!({"scenes": [
        scene("talk", json!([{"say": ["hello"]}])),
        scene("work", json!([silent_call("a.txt", "changed\n"), {"say": ["done"]}])),
    ]});
    let mut setup = AcpSetup::new(scenes).file("a.txt", "one\ntwo\n");
    for number in 0..50 {
        setup = setup.file(&format!("{number}.txt"), &format!("number {number}\n"));
    }
    let mut harness = setup.start().await;
    let turn = harness.talk("talk").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(stored(&harness), BTreeSet::new(), "nothing changed");
    let turn = harness.talk("work").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let changed =
        ["one\ntwo\n", "changed\n"].map(|text| host::blobs::digest_of(text.as_bytes()).to_hex());
    assert_eq!(stored(&harness), BTreeSet::from(changed));
}

#[tokio::test]
async fn what_the_user_changes_while_no_call_runs_is_the_users() {
    let steps = json!([
        silent_call("a.txt", "its\n"),
        {"touch": "between"},
        {"await": "goes-on"},
        silent_call("new.txt", "its\n"),
        {"say": ["done"]},
    ]);
    let mut harness = start(steps, true).await;
    harness.ann.sends_message("go").await;
    let between = harness.state().join("between");
    harness.until("the end of the first call", |_| between.exists()).await;
    let is_over = |chat: &Value| {
        let mut parts = chat["activeTurn"]["responseParts"].as_array().into_iter().flatten();
        parts.any(|part| part["toolCall"]["status"] == "completed")
    };
    harness.ann.until("the end of the call", is_over).await;
    let mut tick = tokio::time::interval(Duration::from_millis(60));
    tick.tick().await;
    tick.tick().await; // the clock of files goes by ticks
    std::fs::write(harness.work().join("mine.txt"), "changed by me\n").unwrap();
    tick.tick().await;
    harness.touch("goes-on");
    let turn = harness.ann.turn_over().await;
    let client = ready(harness.host(), "bob").await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe_in(&client, SESSION, &name).await;
    assert_eq!(changes.names(), ["a.txt", "new.txt"]);
}

/// The clock of files goes by ticks.
async fn tick_passes() {
    let mut tick = tokio::time::interval(Duration::from_millis(60));
    tick.tick().await;
    tick.tick().await;
}

/// Waits until the agent came to where it touches this file, and a tick longer.
async fn reaches(harness: &AcpHarness, name: &str) {
    let mark = harness.state().join(name);
    harness.until(name, |_| mark.exists()).await;
    tick_passes().await;
}

#[tokio::test]
async fn what_a_call_changed_that_is_told_of_when_it_is_over_is_its_turns() {
    let late = json!({"title": "work", "announced": "at-the-end", "steps": [
        {"write": write("new.txt", "its\n")}, {"touch": "written"}, {"await": "goes-on"},
    ]});
    let steps = json!([
        {"touch": "thinks"}, {"await": "speaks"},
        {"say": ["Now."]}, {"touch": "spoke"}, {"await": "works"},
        {"tool": late}, {"say": ["done"]},
    ]);
    let mut harness = start(steps, true).await;
    harness.ann.sends_message("go").await;
    // What the user changes before the agent's last word is the user's: no call ran then.
    reaches(&harness, "thinks").await;
    std::fs::write(harness.work().join("mine.txt"), "changed by me\n").unwrap();
    tick_passes().await;
    harness.touch("speaks");
    reaches(&harness, "spoke").await;
    let has_spoken = |chat: &Value| chat["activeTurn"].to_string().contains("Now.");
    harness.ann.until("its last word", has_spoken).await;
    harness.touch("works");
    reaches(&harness, "written").await;
    harness.touch("goes-on");
    let turn = harness.ann.completed_turn().await;
    let client = ready(harness.host(), "bob").await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe_in(&client, SESSION, &name).await;
    assert_eq!(changes.names(), ["new.txt"]);
    invoke(&client, &changes.uri, "restore", json!({})).await.unwrap();
    assert!(!harness.work().join("new.txt").exists());
    assert_eq!(harness.read("mine.txt"), "changed by me\n");
}
