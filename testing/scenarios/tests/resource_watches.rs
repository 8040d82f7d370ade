//! Watches of files as channels: who hears of what, and when they end (H-260 to H-262).

use kernel::{FileRefusal, FileRefusalReason, Input, SeenResources};
use serde_json::json;
use testkit::Scenario;
use testkit::ScenarioClient;
use wire::ChannelUri;

fn begins(ann: &ScenarioClient) -> String {
    let params = json!({
        "uri": "file:///home/space", "recursive": true, "excludes": {"items": ["target"]},
    });
    let answer = ann.asks("createResourceWatch", params).unwrap();
    answer["channel"].as_str().unwrap().to_owned()
}

fn changes(s: &mut Scenario, watch: &str, name: &str) {
    let watch = ChannelUri::parse(watch).unwrap();
    let changes = vec![json!({"uri": format!("file:///home/space/{name}"), "type": "added"})];
    let seen = SeenResources { changes, ..SeenResources::default() };
    s.world().input(Input::ResourcesChanged { watch, seen });
    s.settles();
}

fn heard(ann: &ScenarioClient) -> usize {
    let received = ann.received_actions();
    received.iter().filter(|name| *name == "resourceWatch/changed").count()
}

fn running(s: &Scenario) -> usize {
    s.look().files.watches.len()
}

#[test]
fn a_watch_tells_its_subscribers_and_ends_with_the_last() {
    let (mut s, ann) = Scenario::with_client();
    let bob = s.client("bob").arrives();
    let watch = begins(&ann);
    let snapshot = ann.watches(&watch);
    let state =
        json!({"root": "file:///home/space", "recursive": true, "excludes": {"items": ["target"]}});
    assert_eq!(snapshot["snapshot"]["state"], state);
    bob.watches(&watch);
    changes(&mut s, &watch, "a");
    assert_eq!((heard(&ann), heard(&bob)), (1, 1));
    ann.unwatches(&watch);
    s.settles();
    changes(&mut s, &watch, "b");
    assert_eq!((heard(&ann), heard(&bob), running(&s)), (0, 1, 1));
    bob.loses_connection();
    s.settles();
    assert_eq!(running(&s), 0);
    assert_eq!(ann.is_denied("subscribe", json!({"channel": watch})), -32008);
    // One that comes too late is told to nobody.
    changes(&mut s, &watch, "c");
    bob.reconnects();
    assert_eq!(bob.is_denied("subscribe", json!({"channel": watch})), -32008);
}

#[test]
fn a_watch_that_nobody_subscribes_to_ends() {
    let (mut s, ann) = Scenario::with_client();
    let (unused, used) = (begins(&ann), begins(&ann));
    assert_ne!(unused, used);
    ann.watches(&used);
    s.advances_ms(120_000);
    assert_eq!(running(&s), 1);
    assert_eq!(ann.is_denied("subscribe", json!({"channel": unused})), -32008);
    changes(&mut s, &used, "a");
    assert_eq!(heard(&ann), 1);
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    assert_eq!(ann.is_denied("subscribe", json!({"channel": used})), -32008);
}

#[test]
fn a_watch_whose_client_is_gone_before_it_began_ends() {
    let mut s = Scenario::new();
    s.reads_take_ms(1_000);
    let ann = s.client("ann").arrives();
    ann.requests("createResourceWatch", json!({"uri": "file:///home/space"}));
    ann.loses_connection();
    s.advances_in_steps(10_000, 500);
    s.advances_ms(120_000);
    assert_eq!(running(&s), 0);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let (mut s, ann) = Scenario::with_client();
    for (wrong, code) in [
        (json!({"uri": "virtual://x/y"}), -32008),
        (json!({"uri": "file:///a", "excludes": ["x"]}), -32602),
        (json!({"uri": "file:///a", "includes": {"items": [7]}}), -32602),
    ] {
        assert_eq!(ann.is_denied("createResourceWatch", wrong.clone()), code, "{wrong}");
    }
    s.world().files.refused = Some(FileRefusal {
        why: FileRefusalReason::Failed,
        message: "more than 8192 directories".to_owned(),
    });
    let error = ann.asks("createResourceWatch", json!({"uri": "file:///a"})).unwrap_err();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("8192"));
    s.faults().break_disk();
    let params = json!({"uri": "file:///a"});
    assert_eq!(ann.is_denied("createResourceWatch", params), -32603);
    // It could not be given a channel after all.
    s.advances_in_steps(120_000, 10_000);
    assert_eq!(running(&s), 0);
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
}

#[test]
fn a_watch_says_what_it_missed_and_why_it_ends() {
    let (mut s, ann) = Scenario::with_client();
    let watch = begins(&ann);
    ann.watches(&watch);
    let channel = ChannelUri::parse(&watch).unwrap();
    let seen = |end: Option<&str>| SeenResources {
        changes: vec![json!({"uri": "file:///home/space", "type": "updated"})],
        is_incomplete: true,
        end: end.map(str::to_owned),
    };
    for end in [None, Some("there is no /home/space")] {
        let watch = channel.clone();
        let seen = seen(end);
        s.world().input(Input::ResourcesChanged { watch, seen });
    }
    s.settles();
    let told = ann.received_action_bodies("resourceWatch/changed");
    assert_eq!(told[0]["_meta"], json!({"greenroom.incomplete": true}));
    assert_eq!(
        told[1]["_meta"],
        json!({"greenroom.incomplete": true, "greenroom.watchEnded": "there is no /home/space"})
    );
    assert_eq!(told.len(), 2);
    let params = json!({"channel": watch});
    assert_eq!(ann.is_denied("subscribe", params), -32008);
}
