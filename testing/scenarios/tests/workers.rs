//! Workers: chats that a tool call starts, which clients watch and cannot send to.

use agent_api::{AgentEvent, Worker};
use bytes::Bytes;
use serde_json::json;
use testkit::script::Question;
use testkit::{Kill, Scenario, ScenarioClient, Script};

/// The worker's URI, from the latest call of the chat.
fn worker_of(client: &ScenarioClient) -> String {
    let call = client.calls().last().cloned().unwrap();
    let content = call["content"].as_array().cloned().unwrap_or_default();
    let link = content
        .iter()
        .find(|content| content["type"] == "subagent")
        .unwrap_or_else(|| panic!("no worker in {call}"));
    link["resource"].as_str().unwrap().to_owned()
}

/// A worker that can be talked to when it is done.
fn full_worker() -> Worker {
    Worker {
        title: "W".to_owned(),
        task: "work".to_owned(),
        interactivity: Some("full".to_owned()),
        ..Worker::default()
    }
}

// H-152: both ends of the link, while it works and after
#[test]
fn a_worker_and_the_call_that_spawned_it_name_each_other() {
    let (mut s, ann) = Scenario::with_chat();
    let worker = Worker {
        title: "Reader".to_owned(),
        agent_name: Some("reader-1".to_owned()),
        task: "read all".to_owned(),
        ..Worker::default()
    };
    let script = Script::new().streams(["read"]).waits_ms(100).streams([" it"]);
    s.model().plays(|own| own.spawns_worker(worker, script)).streams(["done"]);
    ann.starts("delegate");
    s.world().advance_ms(0);
    for _ in 0..10 {
        let peer = ann.with(|client| client.link).unwrap();
        s.world().carry_to_host(peer);
        s.world().take_due();
        s.world().batch(64);
        while s.world().carry_to_client(peer) {}
    }
    let call = ann.call_that_is("running");
    let uri = worker_of(&ann);
    assert_eq!(call["content"][0]["title"], "Reader");
    assert_eq!(call["content"][0]["agentName"], "reader-1");
    let listed = ann.listed(&uri);
    assert_eq!(
        listed["origin"],
        json!({"kind": "tool", "chat": ann.chat(), "toolCallId": call["toolCallId"]})
    );
    assert_eq!(
        (&listed["title"], &listed["interactivity"]),
        (&json!("Reader"), &json!("read-only"))
    );
    assert_eq!(listed["status"].as_u64().unwrap() & 31, 8);
    s.settles();
    ann.watches(&uri);
    let there = ann.in_chat(&uri);
    assert_eq!(
        (there.sent_messages(), there.reads()),
        (vec!["read all".to_owned()], "read it".to_owned())
    );
    let origin = &there.latest_turn()["message"]["origin"]["kind"];
    assert!(origin == "tool" || origin == "agent", "{origin}");
    let call = ann.call_that_is("completed");
    assert_eq!((&call["success"], worker_of(&ann)), (&json!(true), uri.clone()));
    assert_eq!(s.tool_results()[0]["success"], true);
    assert_eq!(ann.reads(), "done");
    s.host_restarts_for([&ann]);
    assert_eq!(ann.listed(&uri)["interactivity"], "read-only");
}

// H-151
#[test]
fn messages_to_a_worker_are_refused() {
    for interactivity in [None, Some("read-only"), Some("hidden")] {
        let (mut s, ann) = Scenario::with_chat();
        let worker = Worker {
            title: "W".to_owned(),
            task: "work".to_owned(),
            interactivity: interactivity.map(str::to_owned),
            ..Worker::default()
        };
        s.model().plays(|own| own.spawns_worker(worker, Script::new().streams(["x"])));
        ann.sends_message("delegate");
        let uri = worker_of(&ann);
        ann.watches(&uri);
        let there = ann.in_chat(&uri);
        let expected = interactivity.unwrap_or("read-only");
        assert_eq!(there.sees(&uri)["interactivity"], expected);
        assert!(there.tries(&uri, there.turn_started("mine", "hello?")).is_err());
        assert!(there.queues("q", "hello?").is_err());
        assert!(there.steers("s", "left!").is_err());
        assert_eq!(there.sent_messages(), ["work"]);
        assert_eq!(s.asked().len(), 2);
        s.all_agree();
    }
}

// H-151: full means what it says
#[test]
fn a_worker_that_is_full_can_be_talked_to_when_it_is_done() {
    let (mut s, ann) = Scenario::with_chat();
    let worker = full_worker();
    s.model().plays(|own| own.spawns_worker(worker, Script::new().streams(["x"])));
    ann.sends_message("delegate");
    let uri = worker_of(&ann);
    ann.watches(&uri);
    let there = ann.in_chat(&uri);
    there.sends_message("and now?");
    assert_eq!(there.sent_messages(), ["work", "and now?"]);
    assert_eq!(s.tool_results().len(), 1, "no tool call waits for its later turns");
}

// H-220: a worker's blocks are its session's
#[test]
fn a_worker_asks_through_its_session() {
    let (mut s, ann) = Scenario::with_chat();
    let script = Script::new().asks_tool("shell", "ls").streams(["ok"]);
    s.model().spawns("W", script).streams(["done"]);
    ann.sends_message("delegate");
    let entry = ann.needs()[0].clone();
    assert_eq!(entry["kind"], "toolConfirmation");
    let uri = entry["chat"].as_str().unwrap().to_owned();
    assert_ne!(uri, ann.chat());
    ann.watches(&uri);
    ann.in_chat(&uri).confirms().unwrap();
    assert_eq!(s.executed(), ["ls"]);
    assert_eq!(ann.reads(), "done");
}

// Its caller gets the outcome
#[test]
fn a_worker_that_fails_fails_its_call_and_no_more() {
    for resumable in [false, true] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().spawns("W", Script::new().streams(["x"]).fails(resumable)).streams(["goes on"]);
        ann.sends_message("delegate");
        assert_eq!(s.tool_results()[0]["success"], false);
        let call = ann.call_that_is("completed");
        assert_eq!(call["success"], false);
        assert_eq!(ann.reads(), "goes on");
        assert_eq!(ann.latest_turn()["state"], "complete");
        s.all_agree();
    }
}

// A client cancels the worker
#[test]
fn a_worker_that_is_stopped_fails_its_call() {
    for way in ["cancel", "dispose"] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().spawns("W", Script::new().streams(["x"]).hangs()).streams(["goes on"]);
        ann.sends_message("delegate");
        let uri = worker_of(&ann);
        ann.watches(&uri);
        let there = ann.in_chat(&uri);
        let turn = there.latest_turn()["id"].as_str().unwrap().to_owned();
        let done = match way {
            "cancel" => there.cancels(&turn).is_ok(),
            _ => ann.disposes_of(&uri).is_ok(),
        };
        assert!(done, "{way}");
        assert_eq!(s.tool_results().len(), 1, "{way}");
        assert_eq!(s.tool_results()[0]["success"], false, "{way}");
        assert_eq!(ann.reads(), "goes on", "{way}");
        s.all_agree();
    }
}

// A client cancels the caller: nothing works on for a turn that is over
#[test]
fn a_worker_does_not_outlive_the_turn_it_works_for() {
    for way in ["cancel", "truncate", "dispose", "fail", "complete", "nested"] {
        let (mut s, ann) = Scenario::with_chat();
        ann.creates_chat("ahp-chat:/other");
        let busy = Script::new().streams(["x"]).hangs();
        let busy = match way {
            "nested" => Script::new().spawns("inner", busy),
            _ => busy,
        };
        let worker = Worker { title: "W".to_owned(), task: "work".to_owned(), ..Worker::default() };
        match way {
            // An agent that does not wait for its worker.
            "fail" | "complete" => s.model().plays(|own| {
                let own = own.spawns_worker(worker, busy).unattended().waits_ms(100);
                if way == "fail" { own.fails(true) } else { own.completes() }
            }),
            _ => s.model().plays(|own| own.spawns_worker(worker, busy)),
        };
        let turn = ann.sends_message("delegate");
        match way {
            "cancel" | "nested" => ann.cancels(&turn).unwrap(),
            "truncate" => ann.truncates_all().unwrap(),
            "dispose" => ann.disposes_of(&ann.chat()).unwrap(),
            _ => {}
        }
        s.settles();
        assert!(s.look().kernel().running().is_empty(), "{way}");
        for chat in ann.chats() {
            let status = ann.listed(&chat)["status"].as_u64().unwrap();
            assert_eq!(status & 8, 0, "{way}: {chat}");
        }
        assert!(s.tool_results().is_empty(), "{way}: its caller is gone");
        s.all_agree();
    }
}

// H-090: caller and worker die together
#[test]
fn a_restart_ends_worker_and_caller() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().spawns("W", Script::new().streams(["x"]).hangs());
    let turn = ann.sends_message("delegate");
    let old = worker_of(&ann);
    s.host_restarts_for([&ann]);
    assert!(s.look().kernel().running().is_empty());
    assert_eq!(ann.latest_turn()["state"], "error");
    assert_eq!(ann.listed(&old)["status"].as_u64().unwrap() & 8, 0);
    s.model().spawns("W", Script::new().streams(["y"])).streams(["done"]);
    ann.resumes(&turn).unwrap();
    assert_eq!(ann.reads(), "done");
    assert_ne!(worker_of(&ann), old);
}

// ADR 0008: two at once, and each end resolves its own call
#[test]
fn workers_side_by_side_end_their_own_calls() {
    for read_ms in [0, 30] {
        let (mut s, ann) = Scenario::with_chat();
        s.reads_take_ms(read_ms);
        let worker = |title: &str| Worker {
            title: title.to_owned(),
            task: title.to_owned(),
            ..Worker::default()
        };
        s.model().plays(|own| {
            own.spawns_worker(worker("one"), Script::new().waits_ms(200).streams(["1"]))
                .unattended()
                .spawns_worker(worker("two"), Script::new().waits_ms(100).fails(false))
                .awaits(Question::End(1))
        });
        ann.sends_message("delegate");
        let calls = ann.calls();
        assert_eq!((&calls[0]["success"], &calls[1]["success"]), (&json!(true), &json!(false)));
        assert_ne!(calls[0]["content"][0]["resource"], calls[1]["content"][0]["resource"]);
        assert_eq!(ann.chats().len(), 3);
        s.all_agree();
    }
}

// H-153: something stops a worker that spawns workers that spawn workers
#[test]
fn workers_do_not_nest_without_end() {
    let (mut s, ann) = Scenario::with_chat();
    let mut script = Script::new().streams(["bottom"]);
    for _ in 0..60 {
        script = Script::new().spawns("deeper", script).repeats();
    }
    s.model().plays(|own| own.spawns("deeper", script)).streams(["up again"]);
    ann.sends_message("dig");
    assert!(ann.chats().len() < 40, "{} chats", ann.chats().len());
    assert_eq!(ann.reads(), "up again");
    assert_eq!(ann.latest_turn()["state"], "complete");
}

// H-153: nor side by side
#[test]
fn workers_do_not_multiply_without_end() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().plays(|own| {
        let mut own = own;
        for _ in 0..300 {
            own = own.spawns("W", Script::new().hangs()).unattended();
        }
        own.hangs()
    });
    let turn = ann.sends_message("all at once");
    assert!(ann.chats().len() < 250, "{} chats", ann.chats().len());
    ann.cancels(&turn).unwrap();
    assert!(s.look().kernel().running().is_empty());
}

// G-26: names that the host makes avoid those that clients took
#[test]
fn a_worker_never_takes_a_name_that_is_taken() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().spawns("W", Script::new().streams(["x"]));
    ann.sends_message("delegate");
    let made = worker_of(&ann);
    let digits: String = made.chars().rev().take_while(char::is_ascii_digit).collect();
    let digits: String = digits.chars().rev().collect();
    assert!(!digits.is_empty(), "from the seq: {made}");
    let next = s.look().kernel().seq().0;
    for seq in next..next + 150 {
        let guess = made.replace(&digits, &seq.to_string());
        ann.requests("createChat", json!({"channel": ann.session(), "chat": guess}));
    }
    s.settles();
    let before = ann.chats().len();
    s.model().spawns("W", Script::new().streams(["x"])).streams(["done"]);
    ann.sends_message("delegate");
    assert_eq!(ann.chats().len(), before + 1);
    assert_eq!(ann.reads(), "done");
}

// The bound of what a worker carries
#[test]
fn a_brief_that_is_too_large_starts_no_worker() {
    let (mut s, ann) = Scenario::with(|limits| limits.checkpoint_bytes_max = 3).and_chat();
    s.model().spawns("W", Script::new().streams(["x"])).streams(["end"]);
    ann.sends_message("delegate");
    assert_eq!(ann.chats().len(), 1);
    assert!(ann.sees(&ann.chat()).get("activeTurn").is_none());
}

// Prepare, write, send, act
#[test]
fn a_host_that_dies_while_it_spawns_leaves_no_worker_that_spins() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().waits_ms(500).spawns("W", Script::new().streams(["x"]));
        ann.starts("delegate");
        s.world().advance_ms(0);
        ann.reaches_host();
        s.host_dies_at(point);
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        assert!(s.look().kernel().running().is_empty());
        s.all_agree();
    }
}

// H-078: `ChatInteractivity` is closed
#[test]
fn an_unknown_interactivity_is_not_sent() {
    let (mut s, ann) = Scenario::with_chat();
    let worker = Worker {
        title: "W".to_owned(),
        interactivity: Some("sometimes".to_owned()),
        ..Worker::default()
    };
    s.model().plays(|own| own.spawns_worker(worker, Script::new().streams(["x"]))).streams(["end"]);
    ann.sends_message("delegate");
    assert_eq!(ann.reads(), "end");
    for chat in ann.chats() {
        let listed = ann.listed(&chat)["interactivity"].clone();
        assert!(
            ["full", "read-only", "hidden"].iter().any(|known| listed == *known)
                || listed.is_null()
        );
    }
}

// A user's own turn in a worker that is done does not belong to the call any more
#[test]
fn the_end_of_a_caller_leaves_a_users_turn_in_its_old_worker_alone() {
    let (mut s, ann) = Scenario::with_chat();
    let worker = full_worker();
    s.model().plays(|own| own.spawns_worker(worker, Script::new().streams(["x"]))).hangs();
    let turn = ann.sends_message("delegate");
    let uri = worker_of(&ann);
    ann.watches(&uri);
    let there = ann.in_chat(&uri);
    s.model().streams(["mine"]).hangs();
    there.sends_message("my own question");
    ann.cancels(&turn).unwrap();
    assert!(there.sees(&uri).get("activeTurn").is_some(), "it is not the caller's");
}

// A brief is opaque bytes, also after a restart
#[test]
fn a_brief_survives_to_the_byte() {
    let (mut s, ann) = Scenario::with_chat();
    let brief = Bytes::from_static(b"\xff\x00\xc3");
    let worker = Worker { brief: brief.clone(), ..full_worker() };
    s.model().emits(AgentEvent::Spawned { call: 3, worker: Box::new(worker) }).hangs();
    ann.sends_message("delegate");
    let uri = worker_of(&ann);
    assert_eq!(s.look().models.asked.last().unwrap().brief, Some(brief.clone()));
    s.host_restarts_for([&ann]);
    ann.watches(&uri);
    ann.in_chat(&uri).sends_message("again");
    assert_eq!(s.look().models.asked.last().unwrap().brief, Some(brief));
}

// A worker's turn that a truncate drops is over, and so is the call that waits for it
#[test]
fn a_worker_that_is_truncated_fails_its_call() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().spawns("W", Script::new().streams(["x"]).hangs()).streams(["goes on"]);
    ann.sends_message("delegate");
    let uri = worker_of(&ann);
    ann.watches(&uri);
    ann.in_chat(&uri).truncates_all().unwrap();
    assert_eq!(ann.reads(), "goes on");
}
