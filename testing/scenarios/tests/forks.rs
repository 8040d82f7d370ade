//! Forks and side chats: histories that begin in another chat and go their own way.

use serde_json::{Value, json};
use testkit::facts::FORKLESS;
use testkit::pending_messages::message;
use testkit::{Kill, Scenario};

const F: &str = "ahp-chat:/fork";
const G: &str = "ahp-chat:/fork2";

fn fork_of(chat: &str, turn: &str) -> Value {
    json!({"source": {"kind": "fork", "chat": chat, "turnId": turn}})
}

fn aside_of(chat: &str, turn: &str) -> Value {
    json!({"source": {"kind": "sideChat", "chat": chat, "turnId": turn}})
}

// H-143, G-13
#[test]
fn a_fork_has_the_history_through_its_turn_and_is_separate_after_it() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let turns = ann.sends_messages(4);
    let fork = ann.forks(F, &turns[1]);
    assert_eq!(fork.turns(), turns[..2], "turn ids stay the same");
    let origin = json!({"kind": "fork", "chat": ann.chat(), "turnId": turns[1]});
    assert_eq!(fork.sees(F)["origin"], origin);
    assert_eq!(bob.listed(F)["origin"], origin);
    fork.sends_message("another way");
    ann.sends_message("straight on");
    assert_eq!(fork.sent_messages(), ["m0", "m1", "another way"]);
    assert_eq!(bob.sent_messages(), ["m0", "m1", "m2", "m3", "straight on"]);
    s.host_restarts_for([&ann, &bob]);
    bob.watches(F);
    assert_eq!(bob.in_chat(F).sent_messages(), ["m0", "m1", "another way"]);
}

// H-142, G-13: completed turns only
#[test]
fn a_fork_of_a_busy_chat_has_its_completed_turns() {
    let (mut s, ann) = Scenario::with_chat();
    let turns = ann.sends_messages(2);
    s.model().streams(["half"]).hangs();
    let active = ann.sends_message("busy");
    assert_eq!(ann.is_denied_chat(F, fork_of(&ann.chat(), &active)), -32602);
    let fork = ann.forks(F, &turns[1]);
    assert_eq!(fork.sent_messages(), ["m0", "m1"]);
    assert!(fork.sees(F).get("activeTurn").is_none());
    fork.sends_message("free");
}

// H-142
#[test]
fn a_source_must_be_a_completed_turn_of_another_chat_of_the_session() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    let turns = ann.sends_messages(3);
    let other = bob.sends_message("elsewhere");
    ann.truncates(&turns[1]).unwrap();
    let mine = ann.chat();
    for kind in ["fork", "sideChat"] {
        let source = |chat: &str, turn: &str| json!({"kind": kind, "chat": chat, "turnId": turn});
        for wrong in [
            source(&bob.chat(), &other),
            source("ahp-chat:/none", &turns[0]),
            source(&ann.session(), &turns[0]),
            source(&mine, "none"),
            source(&mine, &turns[2]), // cut off
            source(F, &turns[0]),     // itself
            json!({"kind": kind, "chat": mine}),
            json!({"kind": kind, "turnId": turns[0]}),
        ] {
            let code = ann.is_denied_chat(F, json!({"source": wrong}));
            assert!(matches!(code, -32602 | -32008), "{wrong} {code}");
        }
    }
    for wrong in [
        json!({"kind": "clone", "chat": mine, "turnId": turns[0]}),
        json!({"chat": mine, "turnId": turns[0]}),
        json!("fork"),
    ] {
        assert_eq!(ann.is_denied_chat(F, json!({"source": wrong})), -32602, "{wrong}");
    }
    assert_eq!(ann.chats().len(), 1);
}

// H-142: only if the agent can
#[test]
fn an_agent_without_forks_makes_none() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat_with(FORKLESS);
    let turns = ann.sends_messages(1);
    assert_eq!(ann.is_denied_chat(F, fork_of(&ann.chat(), &turns[0])), -32602);
    assert_eq!(ann.is_denied_chat(F, aside_of(&ann.chat(), &turns[0])), -32602);
    ann.creates_chat(G).sends_message("plain chats it has");
}

// ADR 0003: truncating or disposing of the source never changes a fork, nor the other way round
#[test]
fn neither_side_of_a_fork_changes_the_other() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let turns = ann.sends_messages(4);
    let fork = ann.forks(F, &turns[2]);
    ann.truncates(&turns[0]).unwrap();
    assert_eq!(fork.turns(), turns[..3]);
    s.all_agree();
    fork.truncates(&turns[1]).unwrap();
    assert_eq!((ann.turns().len(), fork.turns().len()), (1, 2));
    s.all_agree();
    fork.sends_message("goes on");
    ann.sends_message("goes on too");
    let second = fork.forks(G, &turns[1]);
    ann.disposes_of(F).unwrap();
    assert_eq!(second.sent_messages(), ["m0", "m1"]);
    s.host_restarts_for([&ann]);
    assert_eq!(ann.sent_messages(), ["m0", "goes on too"]);
    assert_eq!(second.sent_messages(), ["m0", "m1"]);
    second.sends_message("the last of its line");
    ann.disposes_of(&ann.chat()).unwrap();
    // Long after the others were swept from the disk.
    s.advances_in_steps(9 * 24 * 3_600_000, 12 * 3_600_000);
    s.host_restarts();
    ann.with(|client| client.known = false);
    let bob = s.client("bob").arrives();
    bob.watches(G);
    assert_eq!(bob.in_chat(G).sent_messages(), ["m0", "m1", "the last of its line"]);
}

// H-176 in a fork: its last turn is its own to resume, and the source keeps what it has
#[test]
fn resuming_in_a_fork_leaves_the_source_as_it_is() {
    let (mut s, ann) = Scenario::with_chat();
    ann.sends_message("first");
    s.model().streams(["x"]).stores_checkpoint("mark").fails_resumably();
    let failed = ann.sends_message("second");
    let fork = ann.forks(F, &failed);
    s.model().streams(["forked"]);
    if fork.resumes(&failed).is_ok() {
        assert_eq!(fork.reads(), "xforked");
    }
    assert_eq!(ann.reads(), "x");
    assert_eq!(ann.latest_turn()["state"], "error");
    s.all_agree();
    s.host_restarts_for([&ann]);
    s.model().streams(["own"]);
    ann.resumes(&failed).unwrap();
    assert_eq!(ann.reads(), "xown");
}

// H-143: what waits is not history
#[test]
fn a_fork_begins_without_drafts_and_queues() {
    let (mut s, ann) = Scenario::with_chat();
    let turns = ann.sends_messages(1);
    s.model().hangs();
    ann.sends_message("busy");
    ann.queues("q", "later").unwrap();
    ann.steers("s", "left").unwrap();
    let draft = json!({"type": "chat/draftChanged", "draft": message("dra")});
    ann.tries(&ann.chat(), draft).unwrap();
    let fork = ann.forks(F, &turns[0]);
    let state = fork.sees(F);
    for field in ["queuedMessages", "steeringMessage", "draft", "activeTurn", "activity"] {
        assert!(state.get(field).is_none(), "{field}");
    }
    assert_eq!(state["status"].as_u64().unwrap() & 31, 1);
}

// H-143: the source's directories, whatever was asked for
#[test]
fn a_fork_works_where_its_source_does() {
    let (_s, ann) = Scenario::with_chat();
    let turns = ann.sends_messages(1);
    let mut params = fork_of(&ann.chat(), &turns[0]);
    params["workingDirectories"] = json!([]);
    let fork = ann.creates_chat_with(F, params);
    let inherited = ann.sees(&ann.chat())["workingDirectories"].clone();
    assert_eq!(fork.sees(F)["workingDirectories"], inherited);
}

// H-147 with a source
#[test]
fn a_fork_can_begin_with_a_message() {
    let (_s, ann) = Scenario::with_chat();
    let turns = ann.sends_messages(2);
    let mut params = fork_of(&ann.chat(), &turns[0]);
    params["initialMessage"] = message("instead");
    let fork = ann.creates_chat_with(F, params);
    assert_eq!(fork.sent_messages(), ["m0", "instead"]);
}

// H-170: ids of the shared history are taken in the fork; those of the source's future are not its
#[test]
fn a_fork_knows_which_ids_were_used_in_it() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let turns = ann.sends_messages(4);
    let fork = ann.forks(F, &turns[1]);
    s.host_restarts_for([&ann]);
    for used in &turns[..2] {
        let again = ann.turn_started(used, "again");
        assert!(ann.tries(F, again).is_err(), "{used}");
    }
    fork.sends_message("new");
}

// H-239, G-18: windows and pages reach through the fork point
#[test]
fn pages_of_a_fork_reach_through_to_the_beginning() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.open_turns = 2;
        limits.page_turns = 3;
    })
    .and_chat();
    let turns = ann.sends_messages(9);
    s.host_restarts_for([&ann]);
    let fork = ann.forks(F, &turns[6]);
    for n in 0..3 {
        fork.sends_message(&format!("f{n}"));
    }
    ann.truncates(&turns[1]).unwrap();
    let bob = s.client("bob").arrives_watching(&[&ann.session()]);
    bob.watches_turns(F, 2);
    let there = bob.in_chat(F);
    s.all_agree();
    for _ in 0..4 {
        if bob.sees(F).get("turnsNextCursor").is_some() {
            there.fetches_turns();
        }
    }
    assert_eq!(there.turns().len(), 10);
    assert_eq!(there.turns()[..7], turns[..7]);
    s.all_agree();
    // And a cut far back in the fork finds its turn.
    bob.watches_turns(F, 1);
    fork.truncates(&turns[3]).unwrap();
    assert_eq!(there.turns().last(), Some(&turns[3]));
}

// H-144: nothing to see, but something to know
#[test]
fn a_side_chat_begins_empty_and_knows_where_it_comes_from() {
    let (mut s, ann) = Scenario::with_chat();
    let turns = ann.sends_messages(2);
    let aside = ann.steps_aside(F, &turns[0]);
    assert!(aside.sent_messages().is_empty());
    let origin = json!({"kind": "sideChat", "chat": ann.chat(), "turnId": turns[0]});
    assert_eq!(aside.sees(F)["origin"], origin);
    aside.sends_message("by the way");
    assert_eq!(ann.sent_messages().len(), 2);
    s.host_restarts_for([&ann]);
    assert_eq!(aside.sent_messages(), ["by the way"]);
}

// H-144: of a turn that runs
#[test]
fn a_side_chat_can_be_opened_to_a_running_turn() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["half"]).waits_ms(1_000).streams([" and half"]);
    let active = ann.starts("busy");
    s.world().advance_ms(0);
    let mut params = aside_of(&ann.chat(), &active);
    params["channel"] = json!(ann.session());
    params["chat"] = json!(F);
    let sent = ann.requests("createChat", params);
    s.settles();
    assert_eq!(ann.answer(sent), Some(Ok(Value::Null)));
    ann.watches(F);
    assert_eq!(ann.sees(F)["origin"]["turnId"], active.as_str());
    assert!(ann.in_chat(F).sent_messages().is_empty());
}

// H-145
#[test]
fn a_model_selection_is_stored_unchanged() {
    let (mut s, ann) = Scenario::with_chat();
    let turns = ann.sends_messages(1);
    let with = |selection: Value| {
        let mut params = aside_of(&ann.chat(), &turns[0]);
        params["source"]["selection"] = selection;
        params
    };
    for wrong in [json!({"text": ""}), json!({}), json!({"text": 7})] {
        assert_eq!(ann.is_denied_chat(F, with(wrong.clone())), -32602, "{wrong}");
    }
    let selection = json!({"text": "  o\u{301}k\n\t", "responsePartId": "never was"});
    let aside = ann.creates_chat_with(F, with(selection.clone()));
    assert_eq!(aside.sees(F)["origin"]["selection"], selection);
    s.host_restarts_for([&ann]);
    assert_eq!(ann.listed(F)["origin"]["selection"], selection);
    ann.watches(F);
    assert_eq!(ann.sees(F)["origin"]["selection"], selection);
}

// Prepare, write, send, act
#[test]
fn a_host_that_dies_while_it_forks_has_done_it_or_not() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
        let turns = ann.sends_messages(3);
        s.host_dies_at(point);
        let mut params = fork_of(&ann.chat(), &turns[1]);
        params["channel"] = json!(ann.session());
        params["chat"] = json!(F);
        ann.requests("createChat", params);
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        assert_eq!(ann.chats().len(), 1 + usize::from(point != Kill::BeforeWrite));
        s.all_agree();
    }
}

// ADR 0004: the source is not loaded, and changes while it is read
#[test]
fn a_fork_of_an_unloaded_chat_is_the_chat_at_that_moment() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.open_turns = 1;
        limits.channel_idle_ms = 1_000;
    })
    .and_chat();
    let turns = ann.sends_messages(5);
    ann.unwatches(&ann.chat());
    s.advances_in_steps(10_000, 500);
    s.reads_take_ms(50);
    let mut params = fork_of(&ann.chat(), &turns[3]);
    params["channel"] = json!(ann.session());
    params["chat"] = json!(F);
    let bob = s.client("bob").joins(&ann);
    let fork = ann.requests("createChat", params);
    let cut = json!({"type": "chat/truncated", "turnId": turns[0]});
    bob.dispatches(&ann.chat(), cut);
    s.settles();
    // Either came first; both at once must not make a third thing.
    match ann.answer(fork).unwrap() {
        Ok(_) => {
            ann.watches(F);
            assert_eq!(ann.in_chat(F).turns(), turns[..4]);
        }
        Err(error) => assert!(matches!(error["code"].as_i64(), Some(-32602 | -32008))),
    }
}

// H-146, H-143: only forks inherit; a side chat works where it was asked to
#[test]
fn a_side_chat_works_in_the_directories_it_was_given() {
    let (_, ann) = Scenario::with_chat();
    let turn = ann.sends_message("x");
    let source = json!({"kind": "sideChat", "chat": ann.chat(), "turnId": turn});
    let wrong = json!({"source": source, "workingDirectories": ["file:///etc"]});
    assert!(ann.asks_for_chat("ahp-chat:/d", wrong).is_err(), "not of the session");
    let params = json!({"source": source, "workingDirectories": []});
    let aside = ann.creates_chat_with("ahp-chat:/c", params);
    assert_eq!(aside.sees("ahp-chat:/c")["workingDirectories"], json!([]));
}

// H-145: a selection of the wrong shape
#[test]
fn a_selection_that_is_none_is_refused() {
    let (_, ann) = Scenario::with_chat();
    let turn = ann.sends_message("x");
    let source =
        json!({"kind": "sideChat", "chat": ann.chat(), "turnId": turn, "selection": "text"});
    assert_eq!(ann.is_denied_chat("ahp-chat:/c", json!({"source": source})), -32602);
}
