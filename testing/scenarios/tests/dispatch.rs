//! Dispatch: who may do what, what everyone receives of it, and what only the sender does.

use agent_api::{AgentEvent, ToolExecutor, ToolStart};
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient, Script};

// H-063, H-064
#[test]
fn an_accepted_action_reaches_everyone_with_its_origin() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let action = json!({"type": "session/titleChanged", "title": "ours", "x-more": {"a": [1]}});
    let sent = ann.dispatches(&ann.session(), action.clone());
    s.settles();
    for client in [&ann, &bob] {
        let envelopes = client.with(|client| client.envelopes.clone());
        let echo = envelopes.iter().find(|envelope| envelope["action"]["title"] == "ours").unwrap();
        assert_eq!(echo["origin"], json!({"clientId": "ann", "clientSeq": sent.0}));
        assert_eq!(echo["action"], action, "H-077: unknown fields survive");
        assert!(echo.get("rejectionReason").is_none());
    }
}

// H-066, H-067, G-17
#[test]
fn a_refused_action_goes_back_to_its_sender_alone_and_uses_no_seq() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    let seq = s.look().kernel().seq();
    let before = bob.with(|client| client.frames.len());
    let action = json!({"type": "session/ready"});
    assert!(ann.tries(&ann.session(), action.clone()).is_err());
    let refusal = ann.with(|client| client.refusals.last().cloned()).unwrap();
    assert_eq!(refusal["action"], action);
    assert_eq!(refusal["serverSeq"], seq.0);
    assert_eq!(s.look().kernel().seq(), seq);
    assert_eq!(bob.with(|client| client.frames.len()), before);
}

// G-17
#[test]
fn an_action_that_changes_nothing_is_answered_to_its_sender_alone() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    let seq = s.look().kernel().seq();
    let before = bob.with(|client| client.frames.len());
    ann.received_actions();
    let title = ann.sees(&ann.session())["title"].clone();
    ann.tries(&ann.session(), json!({"type": "session/titleChanged", "title": title})).unwrap();
    let echo = ann.with(|client| client.envelopes.clone());
    assert_eq!(echo.len(), 1);
    assert_eq!(
        (&echo[0]["serverSeq"], &echo[0]["origin"]["clientId"]),
        (&json!(seq.0), &json!("ann"))
    );
    assert_eq!(s.look().kernel().seq(), seq);
    assert_eq!(bob.with(|client| client.frames.len()), before);
}

// H-068, G-23a
#[test]
fn an_action_for_a_channel_that_is_not_there_is_refused_to_its_sender_alone() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let (session, chat) = (ann.session(), ann.chat());
    ann.asks("disposeSession", json!({"channel": session})).unwrap();
    s.settles();
    let seq = s.look().kernel().seq();
    let before = bob.with(|client| client.frames.len());
    let rename = json!({"type": "session/titleChanged", "title": "x"});
    for (channel, action) in [
        ("ahp-session:/none", rename.clone()),
        ("ahp-chat:/none", ann.turn_started("t", "anyone?")),
        ("ahp-chat:/none", json!({"type": "chat/turnStarted"})),
        (session.as_str(), rename.clone()),
        (chat.as_str(), ann.turn_started("t", "anyone?")),
        ("x-nobody-knows:/this", rename),
        ("ahp-terminal:/1", json!({"type": "terminal/input", "data": "x"})),
        ("ahp-changeset:/1", json!({"type": "x-mine/thing"})),
    ] {
        let reason = ann.tries(channel, action.clone()).unwrap_err();
        assert!(reason.contains("there is no channel"), "{action}: {reason}");
        assert!(reason.contains(channel), "{action}: {reason}");
    }
    assert_eq!(s.look().kernel().seq(), seq);
    assert_eq!(bob.with(|client| client.frames.len()), before);
}

// H-069, H-070, H-078
#[test]
fn actions_that_clients_may_not_dispatch_are_refused() {
    let (_s, ann) = Scenario::with_chat();
    let (session, chat) = (ann.session(), ann.chat());
    for (channel, action) in [
        (&chat, json!({"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"})),
        (&chat, json!({"type": "chat/turnComplete", "turnId": "t", "duration": 1})),
        (&chat, json!({"type": "chat/turnsLoaded", "turns": []})),
        (&session, json!({"type": "session/chatRemoved", "chat": chat})),
        (&session, json!({"type": "x-mine/thing"})),
        (&session, json!({"type": "chat/turnStarted", "turnId": "t"})),
        (&session, ann.turn_started("t1", "wrong channel")),
        (&chat, json!({"type": "session/isReadChanged", "isRead": true})),
        (&chat, json!({"type": "root/configChanged", "config": {}})),
        (&session, json!({"type": "session/titleChanged", "title": 7})),
        (&session, json!({"title": "no type"})),
        (&session, json!({"type": "session/titleChanged", "title": "x".repeat(5_000)})),
    ] {
        let outcome = ann.tries(channel, action.clone());
        assert!(outcome.is_err(), "{action}");
    }
}

// H-071
#[test]
fn only_messages_of_the_user_are_taken() {
    let (_s, ann) = Scenario::with_chat();
    let mut action = ann.turn_started("t1", "I am the agent");
    action["message"]["origin"]["kind"] = json!("agent");
    assert!(ann.tries(&ann.chat(), action).is_err());
    let draft =
        json!({"type": "chat/draftChanged", "draft": {"text": "x", "origin": {"kind": "agent"}}});
    assert!(ann.tries(&ann.chat(), draft).is_err());
}

// H-072
#[test]
fn one_need_not_watch_a_chat_to_act_in_it() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    bob.tries(&ann.chat(), bob.turn_started("t1", "from afar")).unwrap();
    assert_eq!(ann.reads(), "ok");
}

// H-065, H-073
#[test]
fn actions_of_one_client_are_taken_in_order_and_the_first_decides() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    for n in 0..5 {
        ann.dispatches(
            &ann.session(),
            json!({"type": "session/titleChanged", "title": format!("{n}")}),
        );
    }
    s.settles();
    assert_eq!(bob.sees(&ann.session())["title"], "4");
    s.model().hangs();
    let turn = ann.sends_message("go");
    let first = bob.cancels(&turn);
    let second = ann.cancels(&turn);
    assert!(first.is_ok() && second.is_err());
}

// G-13
#[test]
fn a_rename_sent_to_a_chat_acts_on_its_session() {
    let (mut s, ann) = Scenario::with_chat();
    ann.tries(&ann.chat(), json!({"type": "session/titleChanged", "title": "renamed"})).unwrap();
    let session = ann.sees(&ann.session());
    assert_eq!(session["title"], "renamed");
    assert_eq!(session["chats"][0]["title"], "renamed");
    let echoes = ann.with(|client| client.envelopes.clone());
    let echo = echoes.iter().find(|e| e["action"]["title"] == "renamed").unwrap();
    assert_eq!(echo["channel"], ann.session().as_str());
    assert_eq!(s.state(&ann.chat())["title"], "renamed");
}

// G-22, H-097
#[test]
fn host_settings_lose_unknown_keys_and_refuse_bad_values() {
    let (mut s, ann) = Scenario::with_client();
    let action =
        json!({"type": "root/configChanged", "config": {"logLevel": "debug", "isolation": 1}});
    ann.tries(ROOT, action).unwrap();
    let echo = ann.with(|client| client.envelopes.last().cloned()).unwrap();
    assert_eq!(echo["action"]["config"], json!({"logLevel": "debug"}));
    assert!(
        ann.tries(ROOT, json!({"type": "root/configChanged", "config": {"logLevel": "loud"}}))
            .is_err()
    );
    assert!(
        ann.tries(ROOT, json!({"type": "root/activeSessionsChanged", "activeSessions": 9}))
            .is_err()
    );
    s.host_restarts();
    assert_eq!(s.state(ROOT)["config"]["values"]["logLevel"], "debug");
}

// H-117, H-131, H-125
#[test]
fn a_session_accepts_what_its_schema_and_catalogue_allow() {
    let (_s, ann) = Scenario::with_chat();
    let session = ann.session();
    let config =
        |values: serde_json::Value| json!({"type": "session/configChanged", "config": values});
    ann.tries(&session, config(json!({"pace": "typing"}))).unwrap();
    for bad in [json!({"pace": "never"}), json!({"fixed": "g"}), json!({"nobody": 1})] {
        assert!(ann.tries(&session, config(bad.clone())).is_err(), "{bad}");
    }
    let mut replace = config(json!({"pace": "instant"}));
    replace["replace"] = json!(true);
    ann.tries(&session, replace).unwrap();
    assert_eq!(ann.sees(&session)["config"]["values"]["fixed"], "f");
    let default = |chat: &str| json!({"type": "session/defaultChatChanged", "defaultChat": chat});
    assert!(ann.tries(&session, default("ahp-chat:/none")).is_err());
    ann.tries(&session, default(&ann.chat())).unwrap();
    let forged = json!({"type": "session/activeClientSet", "activeClient": {"clientId": "bob", "tools": []}});
    assert!(ann.tries(&session, forged).is_err());
    assert!(
        ann.tries(&session, json!({"type": "session/activeClientRemoved", "clientId": "bob"}))
            .is_err()
    );
}

// H-009: nothing can be answered to a malformed notification
#[test]
fn a_malformed_dispatch_is_ignored() {
    let (mut s, ann) = Scenario::with_chat();
    let before = ann.with(|client| client.frames.len());
    for params in [json!([]), json!({}), json!({"channel": "no uri", "clientSeq": 1, "action": {}})]
    {
        ann.sends_raw(
            &json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}).to_string(),
        );
    }
    s.settles();
    assert_eq!(ann.with(|client| client.frames.len()), before);
}

/// A call with a note of the host's own: files are restored by it.
fn starts_noted(script: Script, executor: ToolExecutor) -> Script {
    let meta = json!({"greenroom.edits": ["own"], "toolKind": "read"});
    let start = Box::new(ToolStart {
        name: "open".to_owned(),
        display_name: "Open".to_owned(),
        executor,
        meta: meta.as_object().cloned(),
        ..ToolStart::default()
    });
    script.emits(AgentEvent::ToolStarted { call: 7, start })
}

/// An action on the call that tries to replace its notes.
fn forges(client: &ScenarioClient, status: &str, kind: &str, mut fields: Value) {
    fields["_meta"] = json!({"greenroom.edits": ["forged"], "greenroom.restore": {}, "theirs": 1});
    let call = client.call_that_is(status);
    let action = client.about(&call, kind, fields);
    client.tries(&client.chat(), action).unwrap();
    let call = client.calls().last().cloned().unwrap();
    let expected = json!({"theirs": 1, "greenroom.edits": ["own"]});
    assert_eq!(call["_meta"], expected, "{kind}");
}

// What a client says of a call does not change what the host notes about it
#[test]
fn a_client_cannot_write_the_hosts_own_notes_about_a_call() {
    let ready = json!({"invocationMessage": "open", "toolInput": "{}"});
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .plays(|script| starts_noted(script, ToolExecutor::Agent))
        .readies(7, ready.clone())
        .asks_for_text("go on?");
    ann.sends_message("go");
    let approved = json!({"approved": true, "confirmed": "user-action"});
    forges(&ann, "pending-confirmation", "chat/toolCallConfirmed", approved);
    ann.answers_text("yes").unwrap();
    s.all_agree();

    let (mut s, ann) = Scenario::with_chat();
    let mut confirmed = ready.clone();
    confirmed["confirmed"] = json!("not-needed");
    let result = json!({"success": true, "pastTenseMessage": "opened"});
    let fields = result.as_object().cloned().unwrap();
    s.model()
        .plays(|script| starts_noted(script, ToolExecutor::Agent))
        .readies(7, confirmed.clone())
        .emits(AgentEvent::ToolCompleted {
            call: 7,
            result: agent_api::ToolResult::from_object(fields).unwrap(),
            review: true,
        })
        .asks_for_text("go on?");
    ann.sends_message("go");
    let reviewed = json!({"approved": true});
    let waits = "pending-result-confirmation";
    forges(&ann, waits, "chat/toolCallResultConfirmed", reviewed);
    ann.answers_text("yes").unwrap();
    s.all_agree();

    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model()
        .plays(|script| starts_noted(script, ToolExecutor::Client))
        .readies(7, confirmed)
        .asks_for_text("go on?");
    ann.sends_message("go");
    let content = json!({"content": [{"type": "text", "text": "half"}]});
    forges(&ann, "running", "chat/toolCallContentChanged", content);
    forges(&ann, "running", "chat/toolCallComplete", json!({"result": result}));
    ann.answers_text("yes").unwrap();
}
