//! A client that opted in rewrites sections of the system prompt; whatever goes wrong, they stay as they were (G-33 to
//! G-36).

use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient, Script};

const SECTIONS: [(&str, &str); 4] =
    [("tone", "T"), ("environment_context", "E"), ("safety", "S"), ("unlisted", "U")];

const UNTOUCHED: &str = "[tone=T environment_context=E safety=S unlisted=U]";

fn renders(s: &mut Scenario) {
    s.model().renders(SECTIONS);
}

/// What the model got, and why.
fn rendered_as(words: &str, why: &str) -> String {
    format!("{words} {why}")
}

fn only_request(client: &ScenarioClient) -> Value {
    let asked = client.is_asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked[0].clone()
}

#[test]
fn returned_sections_replace_the_sent_ones_and_others_pass_unchanged() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone", "environment_context", "nobody-knows"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    let request = only_request(&ann);
    assert_eq!(request["method"], "systemMessageTransform");
    assert_eq!(
        request["params"],
        json!({
            "channel": ann.session(),
            "sections": {"environment_context": {"content": "E"}, "tone": {"content": "T"}},
        })
    );
    ann.rewrites([("tone", "polite"), ("never-asked", "x"), ("safety", "none")]);
    assert_eq!(
        ann.reads(),
        rendered_as("[tone=polite environment_context=E safety=S unlisted=U]", "rewritten")
    );
}

#[test]
fn an_empty_text_is_a_text() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    ann.rewrites([("tone", "")]);
    assert_eq!(
        ann.reads(),
        rendered_as("[tone= environment_context=E safety=S unlisted=U]", "rewritten")
    );
}

#[test]
fn every_render_asks_once() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone", "environment_context"]).unwrap();
    s.model().renders(SECTIONS).renders(SECTIONS);
    ann.sends_message("go");
    ann.rewrites([("tone", "one")]);
    ann.rewrites([("tone", "two")]);
    assert!(ann.is_asked().is_empty());
    assert!(ann.reads().contains("tone=one") && ann.reads().contains("tone=two"));
}

#[test]
fn clients_that_did_not_opt_in_are_not_asked() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.becomes_active().unwrap();
    bob.opts_in(&[]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "nobodyOptedIn"));
}

#[test]
fn restricted_and_unlisted_sections_are_never_sent() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["safety", "unlisted"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    assert!(ann.is_asked().is_empty());
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "nothingToRewrite"));
    ann.opts_in(&["safety", "unlisted", "tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    assert_eq!(only_request(&ann)["params"]["sections"], json!({"tone": {"content": "T"}}));
    ann.rewrites([("safety", "hacked"), ("unlisted", "hacked")]);
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "rewritten"));
}

#[test]
fn the_client_that_started_the_turn_owns_it_and_otherwise_the_first() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let cat = s.client("cat").joins(&ann);
    ann.opts_in(&["tone"]).unwrap();
    bob.opts_in(&["environment_context"]).unwrap();
    renders(&mut s);
    bob.sends_message("mine");
    assert!(ann.is_asked().is_empty());
    bob.rewrites([("environment_context", "bob's")]);
    renders(&mut s);
    cat.sends_message("whose?");
    assert!(bob.is_asked().is_empty());
    ann.rewrites([("tone", "ann's")]);
    assert!(cat.reads().contains("tone=ann's environment_context=E"), "{}", cat.reads());
}

#[test]
fn an_owner_that_wants_nothing_of_this_render_is_the_owner_all_the_same() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    bob.opts_in(&["not-rendered"]).unwrap();
    renders(&mut s);
    bob.sends_message("go");
    assert!(ann.is_asked().is_empty() && bob.is_asked().is_empty());
    assert_eq!(bob.reads(), rendered_as(UNTOUCHED, "nothingToRewrite"));
}

// G-35, G-08: also if it was to steer the turn before
#[test]
fn a_turn_from_a_message_that_waited_belongs_to_whoever_set_it() {
    for kind in ["queued", "steering"] {
        a_waiting_message_belongs_to_its_author(kind);
    }
}

fn a_waiting_message_belongs_to_its_author(kind: &str) {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    bob.opts_in(&["tone"]).unwrap();
    s.model().waits_ms(100);
    renders(&mut s);
    ann.starts("first");
    let message = json!({"text": "next", "origin": {"kind": "user"}});
    let waits =
        json!({"type": "chat/pendingMessageSet", "kind": kind, "id": "q", "message": message});
    bob.tries(&bob.chat(), waits).unwrap();
    assert!(ann.is_asked().is_empty());
    bob.rewrites([("tone", "bob's")]);
    assert!(ann.reads().contains("tone=bob's"), "{}", ann.reads());
}

#[test]
fn in_a_worker_chat_the_owner_is_that_of_the_parent_turn() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    bob.opts_in(&["tone"]).unwrap();
    s.model().spawns("work", Script::new().renders(SECTIONS));
    bob.sends_message("send one");
    assert!(ann.is_asked().is_empty());
    assert_eq!(only_request(&bob)["params"]["channel"], bob.session());
    bob.rewrites([("tone", "x")]);
}

#[test]
fn one_that_is_not_connected_is_passed_over_and_asked_again_when_it_is_back() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    bob.opts_in(&["tone"]).unwrap();
    ann.loses_connection();
    s.settles();
    renders(&mut s);
    bob.sends_message("go");
    bob.rewrites([("tone", "bob's")]);
    bob.tries(&bob.session(), json!({"type": "session/activeClientRemoved", "clientId": "bob"}))
        .unwrap();
    renders(&mut s);
    bob.sends_message("again");
    assert_eq!(bob.reads(), rendered_as(UNTOUCHED, "nobodyOptedIn"));
    ann.reconnects();
    renders(&mut s);
    bob.sends_message("once more");
    ann.rewrites([("tone", "ann's")]);
    assert!(bob.reads().contains("tone=ann's"), "{}", bob.reads());
}

#[test]
fn a_disconnect_during_a_render_passes_sections_unchanged_and_asks_no_other_client() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    bob.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    only_request(&ann);
    ann.loses_connection();
    s.settles();
    assert!(bob.is_asked().is_empty());
    assert_eq!(bob.reads(), rendered_as(UNTOUCHED, "peerGone"));
}

#[test]
fn a_reconnect_during_a_render_ends_the_old_question_and_brings_no_new_one() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    let old = only_request(&ann);
    // The new connection replaces the old one, which is still up.
    let response = ann.reconnects();
    assert_eq!(response["type"], "replay");
    assert!(ann.is_asked().is_empty());
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "peerGone"));
    let late = json!({"jsonrpc": "2.0", "id": old["id"], "result": {"sections": {"tone": {"content": "late"}}}});
    ann.sends_raw(&late.to_string());
    s.settles();
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "peerGone"));
}

#[test]
fn another_owner_in_mid_flight_changes_the_next_render_only() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    s.model().renders(SECTIONS).renders(SECTIONS);
    ann.sends_message("go");
    only_request(&ann);
    bob.opts_in(&["environment_context"]).unwrap();
    ann.tries(&ann.session(), json!({"type": "session/activeClientRemoved", "clientId": "ann"}))
        .unwrap();
    assert!(bob.is_asked().is_empty());
    ann.rewrites([("tone", "ann's last")]);
    assert!(ann.reads().contains("tone=ann's last"), "{}", ann.reads());
    bob.rewrites([("environment_context", "bob's")]);
    assert!(ann.reads().contains("environment_context=bob's"), "{}", ann.reads());
}

#[test]
fn after_the_deadline_everything_passes_through_and_a_late_reply_changes_nothing() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    s.advances_ms(4_999);
    assert_eq!(ann.reads(), "");
    s.advances_ms(1);
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "timeout"));
    ann.rewrites([("tone", "late")]);
    assert_eq!(ann.reads(), rendered_as(UNTOUCHED, "timeout"));
    renders(&mut s);
    ann.sends_message("again");
    ann.rewrites([("tone", "in time")]);
    assert!(ann.reads().contains("tone=in time"));
}

#[test]
fn an_invalid_result_passes_all_sections_unchanged() {
    for (member, answer, why) in [
        ("error", json!({"code": -32601, "message": "no such method"}), "error"),
        ("error", json!("nonsense"), "error"),
        ("result", json!(null), "malformed"),
        ("result", json!({}), "malformed"),
        ("result", json!({"sections": []}), "malformed"),
        ("result", json!({"sections": {"tone": {"content": 7}}}), "malformed"),
        (
            "result",
            json!({"sections": {"tone": {"content": "x"}, "z": {"content": null}}}),
            "malformed",
        ),
        ("result", json!({"sections": {"tone": "x"}}), "malformed"),
        ("result", json!({"sections": {"tone": {"content": "x".repeat(256 * 1_024)}}}), "tooLarge"),
    ] {
        let (mut s, ann) = Scenario::with_chat();
        ann.opts_in(&["tone", "environment_context"]).unwrap();
        renders(&mut s);
        ann.sends_message("go");
        ann.replies(member, answer);
        assert_eq!(ann.reads(), rendered_as(UNTOUCHED, why));
        assert_eq!(s.look().kernel().renders().get(why), Some(&1), "{why} is counted");
        s.all_agree();
    }
}

#[test]
fn another_client_cannot_answer_for_the_owner() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    let request = only_request(&ann);
    let forged = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"sections": {"tone": {"content": "bob"}}}});
    bob.sends_raw(&forged.to_string());
    s.settles();
    ann.rewrites([("tone", "ann")]);
    assert!(ann.reads().contains("tone=ann"), "{}", ann.reads());
}

#[test]
fn an_answer_passes_while_its_sender_waits_for_something_else() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives().creates("ahp-session:/other");
    let other = bob.chat();
    s.advances_in_steps(200_000, 30_000);
    ann.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    ann.sends_message("go");
    only_request(&ann);
    s.reads_take_ms(3_000);
    // Parks her: the channel must be read first.
    ann.requests("subscribe", json!({"channel": other}));
    let asked = ann.with(|client| client.asked.remove(0));
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"sections": {"tone": {"content": "now"}}}});
    ann.sends_raw(&answer.to_string());
    let before = s.look().now;
    s.settles();
    assert!(ann.reads().contains("tone=now"), "{}", ann.reads());
    let rendered = s.look().models.rendered.clone();
    let rendered = rendered.last().expect("the agent got a reply");
    let asked = rendered.transform.attempt().expect("a client was asked");
    assert_eq!((asked.client_id.as_str(), asked.ms), ("ann", 0));
    assert!(s.look().now > before, "the read took its time all the same");
}

#[test]
fn a_turn_cancelled_during_a_render_gets_no_reply() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    renders(&mut s);
    let turn = ann.sends_message("go");
    ann.cancels(&turn).unwrap();
    ann.rewrites([("tone", "x")]);
    s.advances_ms(10_000);
    assert_eq!(ann.reads(), "");
}

mod carriers {
    use super::*;

    fn active(ann: &ScenarioClient, more: Value) -> Result<(), String> {
        let mut entry = json!({"clientId": "ann", "tools": []});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        ann.tries(&ann.session(), json!({"type": "session/activeClientSet", "activeClient": entry}))
    }

    /// The method she is asked by, if she is.
    fn asked_by(s: &mut Scenario, ann: &ScenarioClient) -> Option<String> {
        renders(s);
        ann.sends_message("go");
        let asked = ann.is_asked();
        let method = asked.first().map(|request| request["method"].as_str().unwrap().to_owned());
        if method.is_some() {
            ann.rewrites([]);
        }
        method
    }

    const FIELD: Option<&str> = Some("systemMessageTransform");
    const OTHER: Option<&str> = Some("x-systemMessageTransform");

    #[test]
    fn the_field_at_creation() {
        let (mut s, ann) = Scenario::with_client();
        let entry = json!({"clientId": "ann", "tools": [], "systemMessageTransform": {"sections": ["tone"]}});
        let params = json!({"channel": "ahp-session:/x", "activeClient": entry});
        ann.asks("createSession", params).unwrap();
        ann.watches("ahp-session:/x");
        let chat = testkit::default_chat("ahp-session:/x");
        ann.watches(&chat);
        let there = ann.in_chat(&chat);
        assert_eq!(ann.sees("ahp-session:/x")["activeClients"], json!([entry]));
        assert_eq!(asked_by(&mut s, &there).as_deref(), FIELD);
        s.all_agree();
    }

    #[test]
    fn the_field_or_the_meta_of_an_entry_and_both_are_echoed() {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        let opt_in = json!({"sections": ["tone", "what"]});
        active(&ann, json!({"_meta": {"x-systemMessageTransform": opt_in}})).unwrap();
        assert_eq!(
            bob.sees(&ann.session())["activeClients"][0]["_meta"]["x-systemMessageTransform"],
            opt_in
        );
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        active(&ann, json!({"systemMessageTransform": opt_in})).unwrap();
        assert_eq!(bob.sees(&ann.session())["activeClients"][0]["systemMessageTransform"], opt_in);
        assert_eq!(asked_by(&mut s, &ann).as_deref(), FIELD);
        active(&ann, json!({})).unwrap();
        assert_eq!(asked_by(&mut s, &ann), None);
        s.all_agree();
    }

    #[test]
    fn the_default_of_a_connection_is_never_in_state_and_survives_reconnect_and_restart() {
        let mut s = Scenario::new();
        let ann = s.client("ann").connects();
        let mut params = ann.with(|client| client.initialize_params(&[ROOT.to_owned()]));
        params["_meta"] = json!({"x-systemMessageTransform": {"sections": ["tone"]}});
        let result = ann.asks("initialize", params).unwrap();
        assert_eq!(result["_meta"]["x-systemMessageTransform"], json!({"version": 1}));
        let ann = ann.creates("ahp-session:/x");
        ann.watches(&ann.session());
        ann.watches(&ann.chat());
        assert_eq!(asked_by(&mut s, &ann), None, "she is not active");
        ann.becomes_active().unwrap();
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        assert_eq!(
            ann.sees(&ann.session())["activeClients"],
            json!([{"clientId": "ann", "tools": []}])
        );
        // An entry of her own counts for more, even if it names nothing.
        active(&ann, json!({"systemMessageTransform": {"sections": []}})).unwrap();
        assert_eq!(asked_by(&mut s, &ann), None);
        ann.becomes_active().unwrap();
        ann.loses_connection();
        s.settles();
        ann.reconnects();
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        s.host_restarts_for([&ann]);
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        s.all_agree();
    }

    fn set(sections: Value) -> Value {
        json!({"type": "x-session/systemMessageTransformSet", "sections": sections})
    }

    #[test]
    fn the_action_is_echoed_and_followed_by_the_entry() {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        active(
            &ann,
            json!({"systemMessageTransform": {"sections": ["tone"]}, "displayName": "Ann"}),
        )
        .unwrap();
        bob.received_actions();
        ann.tries(&ann.session(), set(json!(["environment_context"]))).unwrap();
        assert_eq!(
            bob.received_actions(),
            ["x-session/systemMessageTransformSet", "session/activeClientSet"]
        );
        let entry = json!({"clientId": "ann", "tools": [], "displayName": "Ann",
            "_meta": {"x-systemMessageTransform": {"sections": ["environment_context"]}}});
        assert_eq!(bob.sees(&ann.session())["activeClients"], json!([entry]));
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        // Sent again it changes nothing, and only she is answered (G-17).
        let seq = s.look().kernel().seq();
        bob.received_actions();
        ann.tries(&ann.session(), set(json!(["environment_context"]))).unwrap();
        assert_eq!(s.look().kernel().seq(), seq);
        assert!(bob.received_actions().is_empty());
        ann.tries(&ann.session(), set(json!([]))).unwrap();
        assert_eq!(asked_by(&mut s, &ann), None);
        s.all_agree();
    }

    #[test]
    fn a_later_entry_withdraws_the_opt_in_of_the_action() {
        let (mut s, ann) = Scenario::with_chat();
        ann.becomes_active().unwrap();
        ann.tries(&ann.session(), set(json!(["tone"]))).unwrap();
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        ann.becomes_active().unwrap();
        assert_eq!(asked_by(&mut s, &ann), None);
        s.all_agree();
    }

    #[test]
    fn the_action_is_refused_from_one_that_is_not_active_and_without_a_list() {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        ann.becomes_active().unwrap();
        assert!(bob.tries(&bob.session(), set(json!(["tone"]))).is_err());
        for bad in [json!(null), json!("tone"), json!([1]), json!({})] {
            assert!(ann.tries(&ann.session(), set(bad)).is_err());
        }
        assert!(ann.tries(&ann.chat(), set(json!(["tone"]))).is_err());
        assert!(ann.tries(ROOT, set(json!(["tone"]))).is_err());
        assert!(ann.tries(&ann.session(), json!({"type": "x-session/other"})).is_err());
        assert_eq!(asked_by(&mut s, &ann), None);
        s.all_agree();
    }

    #[test]
    fn an_older_client_takes_part_by_every_carrier() {
        let mut s = Scenario::new();
        let ann = s.client_of("ann", "0.9.0").opens_chat();
        active(&ann, json!({"systemMessageTransform": {"sections": ["tone"]}})).unwrap();
        assert_eq!(asked_by(&mut s, &ann).as_deref(), FIELD);
        ann.tries(&ann.session(), set(json!(["tone"]))).unwrap();
        assert_eq!(asked_by(&mut s, &ann).as_deref(), OTHER);
        s.all_agree();
    }
}

#[test]
fn the_catalogue_lists_sections_and_which_are_restricted() {
    let (mut s, ann) = Scenario::with_client();
    let root = ann.sees(ROOT);
    let listed = &root["agents"][0]["systemMessageSections"];
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids, testkit::facts::SECTIONS);
    assert_eq!(listed[0], json!({"id": "tone", "label": "TONE"}));
    assert_eq!(listed[2]["restricted"], true);
    let again = &root["_meta"]["x-systemMessageSections"];
    for agent in root["agents"].as_array().unwrap() {
        assert_eq!(&again[agent["provider"].as_str().unwrap()], &agent["systemMessageSections"]);
    }
    s.host_restarts();
    assert_eq!(s.state(ROOT)["_meta"], root["_meta"]);
}

#[test]
fn an_opt_in_survives_a_restart_with_its_entry() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    s.host_restarts_for([&ann]);
    renders(&mut s);
    ann.sends_message("go");
    ann.rewrites([("tone", "x")]);
    assert!(ann.reads().contains("tone=x"));
}

#[test]
fn no_section_is_in_any_state_or_record() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    s.model().plays(|script| {
        script
            .emits(agent_api::AgentEvent::Render {
                render: 77,
                sections: vec![agent_api::Section::new("tone", "top secret")],
            })
            .awaits(testkit::script::Question::Render(77))
    });
    ann.sends_message("go");
    ann.rewrites([("tone", "still secret")]);
    let heard = ann.with(|client| json!(client.frames).to_string());
    assert_eq!(heard.matches("secret").count(), 1, "the request alone");
    for channel in [ROOT.to_owned(), ann.session(), ann.chat()] {
        assert!(!s.state(&channel).to_string().contains("secret"));
    }
}
