//! Terminals as the kernel sees them: who holds one, what is recorded of it, how it is listed, what becomes of it.

use agent_api::{TerminalChange, TerminalHolder};
use kernel::{HolderName, Input, RunId, ShownTerminalFacts, TerminalTask};
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};
use wire::ChannelUri;

const TERMINAL: &str = "ahp-terminal:/one";

fn created(client: &ScenarioClient, name: &str) {
    let params = json!({"channel": TERMINAL, "claim": {"kind": "client", "clientId": name}, "cwd": "file:///work"});
    assert_eq!(client.asks("createTerminal", params), Ok(Value::Null));
    client.watches(TERMINAL);
}

fn uri() -> ChannelUri {
    ChannelUri::parse(TERMINAL).unwrap()
}

fn happens(s: &mut Scenario, changes: Vec<TerminalChange>) {
    s.world().input(Input::Terminal { terminal: uri(), changes });
    s.settles();
}

fn prints(s: &mut Scenario, text: &str) {
    happens(s, vec![TerminalChange::Data(text.to_owned())]);
}

fn acts(s: &Scenario) -> Vec<TerminalTask> {
    let world = s.look();
    let acts = world.agents_heard.terminal_acts.iter();
    acts.map(|(_, act)| act.clone()).collect()
}

fn listed(client: &ScenarioClient) -> Vec<Value> {
    let list = client.sees(ROOT)["terminals"].clone();
    list.as_array().cloned().unwrap_or_default()
}

/// A command of an agent's call runs in a terminal.
fn shown(s: &mut Scenario, client: &ScenarioClient) {
    s.model()
        .announces(1, "bash")
        .readies(1, json!({"invocationMessage": "Run it", "confirmed": "not-needed"}))
        .hangs();
    client.starts("run it");
    s.settles();
    let facts = ShownTerminalFacts {
        terminal: uri(),
        call: 1,
        title: "make".to_owned(),
        directory: "/work".to_owned(),
        columns: 120,
        rows: 30,
    };
    let run = RunId(1);
    s.world().input(Input::TerminalShown { run, facts });
    s.settles();
    client.watches(TERMINAL);
}

#[test]
fn what_is_typed_reaches_the_process_and_nothing_else() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    created(&ann, "ann");
    bob.watches(TERMINAL);
    bob.received_actions();
    let typed = json!({"type": "terminal/input", "data": "secret\r"});
    ann.tries(TERMINAL, typed.clone()).unwrap();
    assert!(bob.received_actions().is_empty(), "nobody else hears of it");
    let acts = acts(&s);
    let [TerminalTask::Start(start), TerminalTask::Write(text)] = acts.as_slice() else {
        panic!("{acts:?}");
    };
    assert_eq!(start.directory.as_deref(), Some("file:///work"));
    assert_eq!(text.0, "secret\r");
    assert!(!format!("{acts:?}").contains("secret"));
    assert!(bob.tries(TERMINAL, typed).unwrap_err().contains("do not hold"));
    prints(&mut s, "hello");
    assert_eq!(bob.sees(TERMINAL)["content"][0]["value"], "hello");
    s.host_is_killed();
    s.host_restarts();
    let state = s.state(TERMINAL);
    let text = state["content"][0]["value"].as_str().unwrap();
    assert!(text.starts_with("hello") && text.contains("the host was restarted"), "{text}");
    assert!(!state.to_string().contains("secret"));
    assert_eq!(state["lifecycle"], json!({"status": "exited"}));
}

#[test]
fn a_session_s_terminal_is_taken_over_given_back_and_falls_back() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    shown(&mut s, &ann);
    bob.watches(TERMINAL);
    let claim = ann.sees(TERMINAL)["claim"].clone();
    assert_eq!(
        (claim["kind"].as_str(), claim["chat"].as_str()),
        (Some("session"), Some(ann.chat().as_str()))
    );
    assert!(claim["toolCallId"].is_string() && claim["turnId"].is_string(), "{claim}");
    assert_eq!(listed(&ann)[0]["title"], "make");
    let typed = json!({"type": "terminal/input", "data": "y\r"});
    assert!(bob.tries(TERMINAL, typed.clone()).is_err(), "the call holds it");

    let of = |name: &str| json!({"type": "terminal/claimed", "claim": {"kind": "client", "clientId": name}});
    assert!(bob.tries(TERMINAL, of("ann")).is_err(), "only for itself");
    bob.tries(TERMINAL, of("bob")).unwrap();
    assert_eq!(acts(&s).last(), Some(&TerminalTask::Hold(TerminalHolder::Client)));
    bob.tries(TERMINAL, typed).unwrap();
    assert!(ann.tries(TERMINAL, of("ann")).unwrap_err().contains("another client"));
    let nowhere = json!({"type": "terminal/claimed", "claim": {"kind": "session", "session": ann.session(), "chat": "ahp-chat:/none"}});
    assert!(bob.tries(TERMINAL, nowhere).is_err(), "no such chat");
    bob.tries(TERMINAL, json!({"type": "terminal/claimed", "claim": claim})).unwrap();
    assert_eq!(acts(&s).last(), Some(&TerminalTask::Hold(TerminalHolder::Call)));

    // Somebody lets the agent go on without its end.
    let released = json!({"kind": "session", "session": ann.session(), "chat": ann.chat()});
    ann.tries(TERMINAL, json!({"type": "terminal/claimed", "claim": released})).unwrap();
    assert_eq!(acts(&s).last(), Some(&TerminalTask::Hold(TerminalHolder::Chat)));

    // A holder that is gone loses it to the session.
    bob.tries(TERMINAL, of("bob")).unwrap();
    bob.loses_connection();
    s.settles();
    s.advances_ms(9_000);
    assert_eq!(ann.sees(TERMINAL)["claim"]["kind"], "client");
    s.advances_ms(2_000);
    assert_eq!(ann.sees(TERMINAL)["claim"]["kind"], "session");
    assert_eq!(acts(&s).last(), Some(&TerminalTask::Hold(TerminalHolder::Call)));

    happens(&mut s, vec![TerminalChange::Exited { exit_code: Some(0) }]);
    assert_eq!(listed(&ann), Vec::<Value>::new(), "its call tells of it");
    assert_eq!(ann.sees(TERMINAL)["lifecycle"], json!({"status": "exited", "exitCode": 0}));
}

#[test]
fn a_holder_that_comes_back_in_time_keeps_it() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    shown(&mut s, &ann);
    bob.watches(TERMINAL);
    bob.tries(
        TERMINAL,
        json!({"type": "terminal/claimed", "claim": {"kind": "client", "clientId": "bob"}}),
    )
    .unwrap();
    bob.loses_connection();
    s.settles();
    s.advances_ms(5_000);
    bob.reconnects();
    s.advances_ms(20_000);
    assert_eq!(ann.sees(TERMINAL)["claim"]["clientId"], "bob");
    // What still runs would have ended for a host that starts now.
    happens(&mut s, vec![TerminalChange::Exited { exit_code: None }]);
}

#[test]
fn a_terminal_ends_with_its_session_and_by_disposal() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    created(&ann, "ann");
    let dispose = json!({"channel": TERMINAL});
    let denied = bob.asks("disposeTerminal", dispose.clone()).unwrap_err();
    assert!(denied["message"].as_str().unwrap().contains("another client"), "{denied}");
    assert_eq!(ann.asks("disposeTerminal", dispose), Ok(Value::Null));
    assert_eq!(acts(&s).last(), Some(&TerminalTask::Kill));
    assert_eq!(listed(&bob), Vec::<Value>::new());
    assert_eq!(ann.is_denied("subscribe", json!({"channel": TERMINAL})), -32008);

    shown(&mut s, &ann);
    assert_eq!(ann.asks("disposeSession", json!({"channel": ann.session()})), Ok(Value::Null));
    assert_eq!(acts(&s).last(), Some(&TerminalTask::Kill));
    assert_eq!(listed(&bob), Vec::<Value>::new());
}

#[test]
fn anybody_disposes_of_a_terminal_that_has_ended() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    created(&ann, "ann");
    let dispose = json!({"channel": TERMINAL});
    assert_eq!(bob.is_denied("disposeTerminal", dispose.clone()), -32009);
    happens(&mut s, vec![TerminalChange::Exited { exit_code: Some(0) }]);
    assert_eq!(bob.asks("disposeTerminal", dispose), Ok(Value::Null));
    assert_eq!(listed(&ann), Vec::<Value>::new());
}

// Clients of older versions name no chat where a terminal is for a session.
#[test]
fn a_client_of_0_8_makes_a_terminal_for_a_session() {
    let (mut s, ann) = Scenario::with_chat();
    let old = s.client_of("old", "0.8.0").arrives();
    let claim = json!({"kind": "session", "session": ann.session()});
    let params = json!({"channel": TERMINAL, "claim": claim});
    let error = ann.asks("createTerminal", params.clone()).unwrap_err();
    assert_eq!(error["code"], -32602, "since 0.9 a claim has a chat");
    assert_eq!(old.asks("createTerminal", params), Ok(Value::Null));
    ann.watches(TERMINAL);
    let expected = json!({"kind": "session", "session": ann.session(), "chat": ann.chat()});
    assert_eq!(ann.sees(TERMINAL)["claim"], expected);
    assert_eq!(listed(&ann)[0]["claim"], expected);
    let nowhere = json!({"kind": "session", "session": "ahp-session:/nowhere"});
    let params = json!({"channel": "ahp-terminal:/two", "claim": nowhere});
    let error = old.asks("createTerminal", params).unwrap_err();
    assert_eq!(error["code"], -32001);
    s.ends_unchecked();
}

#[test]
fn what_is_wrong_with_a_new_terminal_is_said() {
    let (_, ann) = Scenario::with(|limits| limits.terminals_max = 1).and_chat();
    let own = json!({"kind": "client", "clientId": "ann"});
    let wrong = |params: Value| {
        let error = ann.asks("createTerminal", params).unwrap_err();
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(wrong(json!({"channel": TERMINAL})).0, -32602);
    for (params, said) in [
        (json!({"channel": "ahp-chat:/x", "claim": own}), "cannot name a terminal"),
        (json!({"channel": TERMINAL, "claim": {"kind": "client", "clientId": "bob"}}), "clientId"),
        (
            json!({"channel": TERMINAL, "claim": {"kind": "session", "session": ann.session(), "chat": "ahp-chat:/x"}}),
            "is not a chat",
        ),
        (json!({"channel": TERMINAL, "claim": own, "cwd": "https://example.com"}), "`file:` URI"),
    ] {
        let (code, message) = wrong(params);
        assert_eq!(code, -32602);
        assert!(message.contains(said), "{message}");
    }
    created(&ann, "ann");
    let (_, message) = wrong(json!({"channel": "ahp-terminal:/two", "claim": own}));
    assert!(message.contains("terminals_max"), "{message}");
}

#[test]
fn what_happens_while_nothing_can_be_written_is_told_later() {
    let (mut s, ann) = Scenario::with_chat();
    created(&ann, "ann");
    prints(&mut s, "before ");
    s.faults().break_disk();
    let title = json!({"type": "session/titleChanged", "title": "lost"});
    assert!(ann.tries(&ann.session(), title).is_err());
    prints(&mut s, "during ");
    happens(&mut s, vec![TerminalChange::Title("make".to_owned())]);
    let end = TerminalChange::Exited { exit_code: Some(1) };
    happens(&mut s, vec![TerminalChange::Data("at the end".to_owned()), end]);
    s.faults().mend_disk();
    s.advances_ms(3_000);
    let state = ann.sees(TERMINAL);
    assert_eq!(state["lifecycle"]["exitCode"], 1, "{state}");
    assert_eq!(state["title"], "make");
    assert_eq!(state["content"][0]["value"], "before during at the end");
    assert_eq!(listed(&ann)[0]["lifecycle"]["exitCode"], 1);
}

#[test]
fn an_end_whose_own_write_fails_is_written_later() {
    let (mut s, ann) = Scenario::with_chat();
    created(&ann, "ann");
    prints(&mut s, "before ");
    s.faults().break_disk();
    // Nobody knows yet that the disk is full: these are the first to be lost.
    let end = TerminalChange::Exited { exit_code: Some(7) };
    happens(&mut s, vec![TerminalChange::Data("last words".to_owned()), end]);
    assert_eq!(ann.sees(TERMINAL)["lifecycle"]["status"], "running");
    s.faults().mend_disk();
    s.advances_ms(3_000);
    let state = ann.sees(TERMINAL);
    assert_eq!(state["lifecycle"]["exitCode"], 7, "{state}");
    assert_eq!(state["content"][0]["value"], "before last words");
    s.host_is_killed();
    s.host_restarts();
    assert_eq!(s.state(TERMINAL)["lifecycle"]["exitCode"], 7);
}

#[test]
fn a_lot_that_cannot_be_written_is_shown_anew_instead() {
    let (mut s, ann) = Scenario::with_chat();
    created(&ann, "ann");
    prints(&mut s, "before ");
    s.faults().break_disk();
    let title = json!({"type": "session/titleChanged", "title": "lost"});
    assert!(ann.tries(&ann.session(), title).is_err());
    let redraws = |s: &Scenario| {
        let all = acts(s).into_iter();
        all.filter(|act| *act == TerminalTask::Redraw).count()
    };
    for _ in 0..30 {
        prints(&mut s, &"x".repeat(100_000));
    }
    assert_eq!(redraws(&s), 2, "once for each megabyte");
    let drawing = TerminalChange::Data("drawn".to_owned());
    happens(&mut s, vec![TerminalChange::Cleared, drawing]);
    prints(&mut s, " and more");
    s.faults().mend_disk();
    s.advances_ms(3_000);
    let state = ann.sees(TERMINAL);
    assert_eq!(state["content"][0]["value"], "drawn and more");
    happens(&mut s, vec![TerminalChange::Exited { exit_code: Some(0) }]);
}

/// Says which device is behind the connection of a client.
fn identify(s: &mut Scenario, client: &ScenarioClient, device: &str) {
    let peer = client.with(|client| client.link).unwrap();
    let holder = HolderName::Device(device.to_owned());
    s.world().input(Input::Identified { peer, holder });
    s.settles();
}

#[test]
fn h_035_another_device_does_not_become_the_holder_by_its_name() {
    let (mut s, ann) = Scenario::with_chat();
    created(&ann, "ann");
    let mallory = s.client("mallory").connects();
    identify(&mut s, &mallory, "phone");
    let as_ann = ann.with(|client| client.initialize_params(&[]));
    assert_eq!(mallory.is_denied("initialize", as_ann), -32009);
    let as_ann = ann.with(|client| client.reconnect_params());
    assert_eq!(mallory.is_denied("reconnect", as_ann), -32009);
    let typed = json!({"type": "terminal/input", "data": "x"});
    ann.tries(TERMINAL, typed).unwrap();
    // Under a name of its own it is welcome, and a device comes back to its own name.
    let own = mallory.with(|client| client.initialize_params(&[]));
    mallory.asks("initialize", own.clone()).unwrap();
    s.world().connect(mallory.index());
    identify(&mut s, &mallory, "phone");
    mallory.asks("initialize", own).unwrap();
    let carl = s.client("carl").connects();
    identify(&mut s, &carl, "tablet");
    let as_mallory = mallory.with(|client| client.initialize_params(&[]));
    assert_eq!(carl.is_denied("initialize", as_mallory), -32009);
    s.ends_unchecked();
}
