//! Customizations of a session: published as the host finds them, switched on and off where users say (CU-1 to CU-9).

use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};

fn found() -> Vec<Value> {
    let child = |kind: &str, id: &str| json!({"type": kind, "id": id, "name": id, "uri": format!("file:///w/{id}.md")});
    vec![
        json!({
            "type": "directory", "id": "d", "uri": "file:///w", "name": "agents", "enabled": true,
            "contents": "agent", "writable": false, "load": {"kind": "loaded"},
            "children": [child("agent", "reviewer"), child("agent", "scout")],
        }),
        json!({
            "type": "plugin", "id": "p", "uri": "file:///p", "name": "kit", "load": {"kind": "loaded"},
            "children": [child("agent", "planner"), child("skill", "maps")],
        }),
    ]
}

fn scenario() -> Scenario {
    let s = Scenario::new();
    s.world().customizations = found();
    s
}

fn toggle(id: &str, enablement: Value) -> Value {
    json!({"type": "session/customizationToggled", "id": id, "enablement": enablement})
}

fn entry(state: &Value, id: &str) -> Value {
    let entries = state["customizations"].as_array().unwrap().clone();
    let children = entries.iter().flat_map(|entry| entry["children"].as_array().unwrap().clone());
    let mut all = entries.clone().into_iter().chain(children);
    all.find(|entry| entry["id"] == id).unwrap_or_else(|| panic!("{id}: {state:#}"))
}

fn message_for(ann: &ScenarioClient, turn: &str, agent: &str) -> Result<(), String> {
    let mut start = ann.turn_started(turn, "hi");
    start["message"]["agent"] = json!({"uri": format!("file:///w/{agent}.md")});
    ann.tries(&ann.chat(), start)
}

// H-300, H-304, CU-2
#[test]
fn what_the_host_finds_is_published_and_followed() {
    let (s, ann, bob) = scenario().and_shared_chat();
    assert_eq!(ann.sees(&ann.session())["customizations"], json!(found()));

    let mut next = found();
    next[0]["children"].as_array_mut().unwrap().pop();
    next.remove(1);
    s.world().customizations = next.clone();
    ann.sends_message("look again");
    assert_eq!(bob.sees(&ann.session())["customizations"], json!(next));
    bob.received_actions();
    ann.sends_message("nothing changed");
    let since = bob.received_actions();
    assert!(!since.is_empty());
    assert!(!since.iter().any(|action| action.contains("customization")), "{since:?}");
}

#[test]
fn a_session_without_any_has_none() {
    let (mut s, ann) = Scenario::with_chat();
    ann.sends_message("hi");
    assert!(s.state(&ann.session()).get("customizations").is_none());
}

// H-301, H-302, CU-5
#[test]
fn a_decision_holds_where_it_was_made_and_after_a_restart() {
    let (mut s, ann) = scenario().and_chat();
    let bob = s.client("bob").arrives().creates("ahp-session:/two");
    bob.watches("ahp-session:/two");
    let decisions = json!([
        {"kind": "global", "enabled": false},
        {"kind": "session", "enabled": true},
    ]);
    ann.tries(&ann.session(), toggle("p", decisions)).unwrap();
    ann.tries(&ann.session(), toggle("scout", json!([{"kind": "session", "enabled": false}])))
        .unwrap();
    let expect = |s: &mut Scenario, ann: &ScenarioClient| {
        let own = s.state(&ann.session());
        let sorted =
            json!([{"kind": "session", "enabled": true}, {"kind": "global", "enabled": false}]);
        assert_eq!(entry(&own, "p")["enablement"], sorted);
        assert_eq!(entry(&own, "scout")["enabled"], false);
        let other = s.state("ahp-session:/two");
        assert_eq!(entry(&other, "p")["enablement"], json!([{"kind": "global", "enabled": false}]));
        assert!(entry(&other, "scout").get("enabled").is_none());
    };
    expect(&mut s, &ann);
    assert_eq!(entry(&bob.sees("ahp-session:/two"), "p")["enablement"][0]["kind"], "global");
    s.host_restarts_for([&ann]);
    expect(&mut s, &ann);

    // A session that begins later hears of what was decided for all.
    let cat = s.client("cat").arrives().creates("ahp-session:/three");
    s.settles();
    let third = s.state("ahp-session:/three");
    assert_eq!(entry(&third, "p")["enablement"], json!([{"kind": "global", "enabled": false}]));
    drop(cat);
    // Everything is replaced, so nothing is left of it.
    ann.tries(&ann.session(), toggle("p", json!([]))).unwrap();
    assert!(entry(&s.state(&ann.session()), "p").get("enablement").is_none());
    assert!(entry(&s.state("ahp-session:/three"), "p").get("enablement").is_none());
}

// CU-5: what is published anew keeps what was decided of it
#[test]
fn a_container_that_changes_keeps_decisions() {
    let (mut s, ann) = scenario().and_chat();
    ann.tries(&ann.session(), toggle("maps", json!([{"kind": "global", "enabled": false}])))
        .unwrap();
    let mut next = found();
    next[1]["name"] = json!("renamed");
    s.world().customizations = next;
    ann.sends_message("look again");
    let state = s.state(&ann.session());
    assert_eq!(entry(&state, "p")["name"], "renamed");
    assert_eq!(entry(&state, "maps")["enabled"], false);
}

#[test]
fn a_decision_that_makes_no_sense_is_refused_with_the_reason() {
    let (_s, ann) = scenario().and_chat();
    for (id, enablement, reason) in [
        ("nothing", json!([]), "no customization has this id"),
        ("p", json!("all"), "does not have the fields"),
        ("p", json!([{"kind": "galaxy", "enabled": true}]), "`kind`"),
        ("p", json!([{"kind": "global", "enabled": "yes"}]), "true or false"),
        (
            "p",
            json!([{"kind": "workspace", "uri": "file:///elsewhere", "enabled": true}]),
            "first working directory",
        ),
        (
            "p",
            json!([{"kind": "global", "enabled": true}, {"kind": "global", "enabled": false}]),
            "one decision of a kind",
        ),
    ] {
        let refused = ann.tries(&ann.session(), toggle(id, enablement)).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    assert_eq!(ann.sees(&ann.session())["customizations"], json!(found()));
}

// CU-10
#[test]
fn a_hook_cannot_be_switched_on() {
    let mut s = scenario();
    let hook = json!({"type": "hook", "id": "h", "name": "Stop", "uri": "file:///w/h.json", "enabled": false});
    let mut children = s.world().customizations[1]["children"].as_array().cloned().unwrap();
    children.push(hook);
    s.world().customizations[1]["children"] = json!(children);
    let ann = s.client("ann").opens_chat();
    for kind in ["session", "global"] {
        let decision = toggle("h", json!([{"kind": kind, "enabled": true}]));
        let refused = ann.tries(&ann.session(), decision).unwrap_err();
        assert!(refused.contains("never run"), "{refused}");
    }
    assert_eq!(entry(&s.state(&ann.session()), "h")["enabled"], false);
}

// G-15
#[test]
fn a_decision_that_cannot_be_written_was_not_made() {
    let (mut s, ann) = scenario().and_chat();
    s.faults().break_disk();
    let decision = toggle("p", json!([{"kind": "global", "enabled": false}]));
    ann.tries(&ann.session(), decision).unwrap_err();
    s.faults().mend_disk();
    s.advances_ms(1_000);
    assert!(entry(&s.state(&ann.session()), "p").get("enablement").is_none());
    s.host_restarts();
    assert!(entry(&s.state(&ann.session()), "p").get("enablement").is_none());
}

// CU-9
#[test]
fn a_message_names_a_custom_agent_that_is_there_and_switched_on() {
    let (mut s, ann) = scenario().and_chat();
    message_for(&ann, "t1", "reviewer").unwrap();
    s.settles();
    assert_eq!(ann.latest_turn()["message"]["agent"]["uri"], "file:///w/reviewer.md");
    message_for(&ann, "t2", "maps").unwrap_err();
    message_for(&ann, "t3", "unknown").unwrap_err();
    message_for(&ann, "t4", "planner").unwrap();
    s.settles();
    ann.tries(&ann.session(), toggle("p", json!([{"kind": "session", "enabled": false}]))).unwrap();
    let refused = message_for(&ann, "t5", "planner").unwrap_err();
    assert!(refused.contains("switched off"), "{refused}");
    ann.tries(&ann.session(), toggle("reviewer", json!([{"kind": "session", "enabled": false}])))
        .unwrap();
    message_for(&ann, "t6", "reviewer").unwrap_err();
}

// CU-8: its model, if the message names none
#[test]
fn a_custom_agent_brings_its_model() {
    let mut s = scenario();
    let models = s.state("ahp-root://")["agents"][0]["models"].as_array().unwrap().clone();
    let last = models.last().unwrap()["id"].clone();
    s.world().customizations[0]["children"][0]["model"] = last.clone();
    s.world().customizations[0]["children"][1]["model"] = json!("unheard of");
    let ann = s.client("ann").opens_chat();
    message_for(&ann, "t1", "reviewer").unwrap();
    s.settles();
    assert_eq!(ann.latest_turn()["message"]["model"]["id"], last);
    message_for(&ann, "t2", "scout").unwrap();
    s.settles();
    let default = ann.latest_turn()["message"]["model"]["id"].clone();
    assert!(models.iter().any(|model| model["id"] == default), "{default}");
}

/// What the last turn was told is switched off.
fn off_in_last_turn(s: &Scenario) -> Vec<String> {
    let world = s.look();
    let last = world.models.asked.last().unwrap();
    last.switched_off.iter().cloned().collect()
}

// CU-5, CU-6
#[test]
fn a_decision_counts_before_anything_is_published() {
    let (mut s, ann) = scenario().and_chat();
    for (id, kind, enabled) in
        [("maps", "global", false), ("scout", "global", false), ("reviewer", "session", false)]
    {
        let decision = json!([{"kind": kind, "enabled": enabled}]);
        ann.tries(&ann.session(), toggle(id, decision)).unwrap();
    }
    ann.tries(
        &ann.session(),
        toggle(
            "scout",
            json!([{"kind": "session", "enabled": true}, {"kind": "global", "enabled": false}]),
        ),
    )
    .unwrap();
    ann.sends_message("hi");
    assert_eq!(off_in_last_turn(&s), ["maps", "reviewer"]);

    // The host looks only after the first turn began.
    s.world().customizations = Vec::new();
    let bob = s.client("bob").opens_chat();
    bob.sends_message("hi");
    let published = bob.sees(&bob.session()).get("customizations").cloned();
    assert_eq!(published, None);
    assert_eq!(off_in_last_turn(&s), ["maps", "scout"]);
}

// CU-5: also that of a session which was not in memory when it was made
#[test]
fn a_client_that_knows_one_flag_leaves_wider_decisions_alone() {
    let (mut s, ann) = scenario().and_chat();
    let global = json!({"kind": "global", "enabled": false});
    ann.tries(&ann.session(), toggle("planner", json!([global]))).unwrap();
    let old = s.client_of("old", "0.7.0").arrives();
    let flag = json!({"type": "session/customizationToggled", "id": "planner", "enabled": true});
    old.tries(&ann.session(), flag).unwrap();
    // On in this session, and still off in every other one.
    assert_eq!(entry(&ann.sees(&ann.session()), "planner")["enabled"], true);
    let bob = s.client("bob").opens_chat();
    assert_eq!(entry(&bob.sees(&bob.session()), "planner")["enabled"], false);
}

#[test]
fn a_decision_counts_in_sessions_that_did_not_hear_of_it() {
    let (mut s, ann) = scenario().and_chat();
    let bob = s.client("bob").opens_chat();
    bob.sends_message("hi");
    s.host_restarts_for([&ann]);
    let off = json!([{"kind": "global", "enabled": false}]);
    for id in ["planner", "reviewer"] {
        ann.tries(&ann.session(), toggle(id, off.clone())).unwrap();
    }
    bob.reconnects();
    assert!(entry(&bob.sees(&bob.session()), "planner").get("enabled").is_none());
    message_for(&bob, "t2", "planner").unwrap_err();
    bob.sends_message("again");
    assert_eq!(off_in_last_turn(&s), ["planner", "reviewer"]);
}
