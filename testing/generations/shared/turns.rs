//! Turns, queues, cuts, forks and what comes back of them: what a published client does in a chat and sees there.

use serde_json::json;

use super::super::VERSION;
use super::{Follower, SESSION, about, plugin, script};
use crate::driver::Driver;
use crate::host::Host;

pub async fn every_step_of_a_turn_is_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    let client =
        json!({"clientId": "ann", "tools": [{"name": "open"}], "customizations": [plugin()]});
    ann.becomes_active(client).await;
    if VERSION == "0.4.0" {
        let tools = json!([{"name": "open"}, {"name": "close"}]);
        let action = json!({"type": "session/activeClientToolsChanged", "tools": tools});
        ann.does(SESSION, action).await;
        ann.until("it has two tools", |ann| {
            let tools = ann.session()["activeClient"]["tools"].clone();
            tools.as_array().map(Vec::len) == Some(2)
        })
        .await;
    }
    ann.sends_message("t1", "tools").await;
    calls_are_confirmed(&mut ann, &chat).await;
    a_question_is_answered(&mut ann, &chat).await;
    its_own_tool_is_run(&mut ann, &chat).await;
    ann.until("it is done", |ann| ann.turns().len() == 1 && ann.chat().get("activeTurn").is_none())
        .await;
    ann.agrees("the end").await;
    assert_eq!(ann.chats().len(), 2, "the worker's chat is there");
    let leaves = match VERSION {
        "0.4.0" => json!({"type": "session/activeClientChanged"}),
        _ => json!({"type": "session/activeClientRemoved", "clientId": "ann"}),
    };
    ann.does(SESSION, leaves).await;
    ann.until("nobody is active", |ann| {
        let session = ann.session();
        let several = session["activeClients"].as_array();
        session.get("activeClient").is_none() && several.is_none_or(Vec::is_empty)
    })
    .await;
    ann.agrees("the end of being active").await;
}

/// A call that asks twice, and one whose result is looked at.
async fn calls_are_confirmed(ann: &mut Follower, chat: &str) {
    let call = ann.until_waiting("pending-confirmation").await;
    ann.agrees("the question").await;
    let edited = json!({"approved": true, "confirmed": "user-action", "editedToolInput": "edited"});
    ann.does(chat, about("chat/toolCallConfirmed", &call, edited)).await;
    let again = |ann: &Follower| {
        let call = ann.waiting("pending-confirmation");
        call.is_some_and(|call| call["toolCall"]["invocationMessage"] == "really?")
    };
    ann.until("it asks again", again).await;
    ann.agrees("the second question").await;
    let yes = json!({"approved": true, "confirmed": "user-action"});
    ann.does(chat, about("chat/toolCallConfirmed", &call, yes)).await;
    let call = ann.until_waiting("pending-result-confirmation").await;
    ann.agrees("the result").await;
    let no = json!({"approved": false});
    ann.does(chat, about("chat/toolCallResultConfirmed", &call, no)).await;
}

/// A question whose answer is drafted first, while the turn is steered.
async fn a_question_is_answered(ann: &mut Follower, chat: &str) {
    let request = ann.until_asked().await;
    ann.agrees("the input request").await;
    let steering = json!({"type": "chat/pendingMessageSet", "kind": "steering", "id": "s",
        "message": {"text": "left", "origin": {"kind": "user"}}});
    ann.does(chat, steering).await;
    let answer = json!({"state": "submitted", "value": {"kind": "text", "value": "ann"}});
    let drafted = json!({"state": "draft", "value": {"kind": "text", "value": "an"}});
    let changed = json!({"type": "chat/inputAnswerChanged", "requestId": request["id"], "questionId": "name", "answer": drafted});
    ann.does(chat, changed).await;
    ann.until("it is drafted", |ann| {
        let asked = ann.view().asked().unwrap_or_default();
        asked["answers"]["name"]["value"]["value"] == "an"
    })
    .await;
    ann.agrees("the draft of an answer").await;
    let complete = json!({"type": "chat/inputCompleted", "requestId": request["id"], "response": "accept", "answers": {"name": answer}});
    ann.does(chat, complete).await;
}

/// A call of a tool that the client itself offers.
async fn its_own_tool_is_run(ann: &mut Follower, chat: &str) {
    let call = ann.until_waiting("running").await;
    ann.agrees("the client's tool").await;
    let content = json!([{"type": "text", "text": "half"}]);
    let half = about("chat/toolCallContentChanged", &call, json!({"content": content}));
    ann.does(chat, half).await;
    ann.until("half of it is shown", |ann| {
        let call = ann.waiting("running").unwrap_or_default();
        call["toolCall"]["content"] == content
    })
    .await;
    ann.agrees("half of it").await;
    let result = json!({"success": true, "pastTenseMessage": "opened", "content": content});
    ann.does(chat, about("chat/toolCallComplete", &call, json!({"result": result}))).await;
}

pub async fn queues_cuts_and_forks_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    for turn in ["t1", "t2", "t3"] {
        ann.sends_message(turn, "hello").await;
        ann.until("it is done", |ann| ann.last_turn()["id"] == turn).await;
    }
    ann.sends_message("t4", "hang").await;
    for id in ["z", "y", "b", "a"] {
        let set = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id,
            "message": {"text": id, "origin": {"kind": "user"}}});
        ann.does(&chat, set).await;
    }
    let removed = json!({"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "b"});
    ann.does(&chat, removed).await;
    ann.does(&chat, json!({"type": "chat/queuedMessagesReordered", "order": ["a"]})).await;
    let queue = |ann: &Follower| -> Vec<String> {
        let waiting = ann.chat()["queuedMessages"].as_array().cloned().unwrap_or_default();
        waiting.iter().map(|waiting| waiting["id"].as_str().unwrap_or("").to_owned()).collect()
    };
    ann.until("the queue is in order", |ann| queue(ann) == ["a", "z", "y"]).await;
    ann.agrees("the queue").await;
    ann.does(&chat, json!({"type": "chat/truncated", "turnId": "t2"})).await;
    ann.until("it is cut", |ann| ann.turns().len() == 2 && ann.chat().get("activeTurn").is_none())
        .await;
    ann.agrees("the cut").await;
    a_fork_comes_and_goes(&mut ann, &chat).await;
}

/// A chat with a part of another's turns, which is the default for a while.
async fn a_fork_comes_and_goes(ann: &mut Follower, chat: &str) {
    // Before 0.7 a source had no kind.
    let mut source = json!({"chat": chat, "turnId": "t1"});
    if !VERSION.starts_with("0.4") && !VERSION.starts_with("0.5") && !VERSION.starts_with("0.6") {
        source["kind"] = json!("fork");
    }
    let params = json!({"channel": SESSION, "chat": "ahp-chat:/fork", "source": source});
    ann.asks("createChat", params).await;
    ann.until("it is listed", |ann| ann.chats().len() == 2).await;
    ann.agrees("the fork").await;
    assert_eq!(ann.at("ahp-chat:/fork")["turns"].as_array().map(Vec::len), Some(1));
    for default in ["ahp-chat:/fork", chat] {
        let action = json!({"type": "session/defaultChatChanged", "defaultChat": default});
        ann.does(SESSION, action).await;
        ann.until("it is the default", |ann| ann.session()["defaultChat"] == default).await;
        ann.agrees("another default").await;
    }
    ann.asks("disposeChat", json!({"channel": "ahp-chat:/fork"})).await;
    ann.leaves("ahp-chat:/fork");
    ann.until("it is gone", |ann| ann.chats().len() == 1).await;
    ann.agrees("its end").await;
}

/// A failed turn is resumed, by somebody else where the client has no word for it, and another is cancelled.
pub async fn errors_resumes_and_cancels_of_others_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    ann.sends_message("t0", "hello").await;
    ann.until("it is done", |ann| ann.turns().len() == 1).await;
    ann.sends_message("t1", "fail").await;
    ann.until("it failed", |ann| ann.last_turn()["state"] == "error").await;
    ann.agrees("the error").await;
    let resume = json!({"type": "chat/turnResume", "turnId": "t1"});
    if VERSION >= "0.9" {
        ann.does(&chat, resume).await;
    } else {
        let mut bea = Driver::joins(&host, "bea").await;
        bea.does(&chat, resume).await;
    }
    ann.until("it is done after all", |ann| ann.last_turn()["state"] == "complete").await;
    ann.agrees("the resumed turn").await;
    let said = ann.last_turn()["responseParts"].to_string();
    assert!(said.contains("begun") && said.contains("and done"), "{said}");
    ann.sends_message("t2", "ask").await;
    ann.until_asked().await;
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t2", "duration": 5});
    ann.does(&chat, cancel).await;
    ann.until("it is cancelled", |ann| ann.last_turn()["state"] == "cancelled").await;
    ann.agrees("the cancel").await;
}

/// A client that comes back is told what it missed, also by a host that was killed meanwhile.
pub async fn a_client_that_comes_back_sees_what_it_missed() {
    let mut host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    ann.sends_message("t1", "hello").await;
    ann.until("it is done", |ann| ann.turns().len() == 1).await;
    ann.goes().await;
    let mut bea = Driver::joins(&host, "bea").await;
    for (turn, text) in [("t2", "hello"), ("t3", "fail")] {
        bea.does(&chat, json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}}}))
            .await;
        bea.until_turn_ends(&chat, turn).await;
    }
    ann.comes_back(&host.url).await;
    ann.until("it has missed nothing", |ann| ann.turns().len() == 3).await;
    ann.agrees("the return").await;
    ann.goes().await;
    host.is_killed_and_starts_again();
    ann.comes_back(&host.url).await;
    ann.agrees("the kill").await;
    ann.sends_message("t4", "hello").await;
    ann.until("it goes on", |ann| ann.turns().len() == 4).await;
    ann.agrees("going on").await;
}

/// What is not on a channel: the list of sessions, pages of turns, and the words of versions before 0.9.
pub async fn lists_pages_and_older_words_are_answered() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    for turn in ["t1", "t2", "t3"] {
        ann.sends_message(turn, "hello").await;
        ann.until("it is done", |ann| ann.last_turn()["id"] == turn).await;
    }
    let list = ann.lists_sessions().await;
    assert_eq!(list[0]["resource"], SESSION);
    assert_eq!(list[0]["modifiedAt"].is_i64(), VERSION == "0.4.0");
    assert_eq!(list[0].get("chats").is_some(), VERSION == "1.0.0");
    if matches!(VERSION, "0.4.0" | "0.5.0") {
        // What a filter means nobody ever said.
        let params = json!({"channel": "ahp-root://", "filter": {"provider": "nobody"}});
        let filtered = ann.asks("listSessions", params).await;
        assert_eq!(filtered["items"].as_array().map(Vec::len), Some(1));
        let page =
            ann.asks("fetchTurns", json!({"channel": chat, "before": "t3", "limit": 1})).await;
        assert_eq!((&page["turns"][0]["id"], &page["hasMore"]), (&json!("t2"), &json!(true)));
        assert_eq!(page["turns"].as_array().map(Vec::len), Some(1));
    } else {
        let page = ann.asks("fetchTurns", json!({"channel": chat, "cursor": "before:t3"})).await;
        assert_eq!(page, json!({}));
        // One that has the newest turn alone gets the others page by page.
        ann.follows_view(json!({"channel": chat, "view": {"turns": 1}})).await;
        let cursor = ann.chat()["turnsNextCursor"].clone();
        assert_eq!((ann.turns().len(), cursor.is_string()), (1, true));
        let params = json!({"channel": chat, "cursor": cursor});
        ann.asks("fetchTurns", params).await;
        ann.until("it has all of them", |ann| ann.turns().len() == 3).await;
        ann.agrees("the page").await;
    }
    if VERSION < "0.9" {
        older_words_are_answered(&host, &mut ann, &chat).await;
    }
}

/// A session that is forked when it is made, up to 0.8; a model and an agent that are chosen for a session, in 0.4.
async fn older_words_are_answered(host: &Host, ann: &mut Follower, chat: &str) {
    let fork = json!({"channel": "scripted:/forked", "fork": {"session": SESSION, "turnId": "t2"}});
    ann.asks("createSession", fork).await;
    let copy = ann.snapshot_of("scripted:/forked").await;
    let of_copy = copy["defaultChat"].as_str().unwrap_or("").to_owned();
    let turns = ann.snapshot_of(&of_copy).await["turns"].clone();
    let ids: Vec<&str> =
        turns.as_array().into_iter().flatten().filter_map(|turn| turn["id"].as_str()).collect();
    assert_eq!(ids, ["t1", "t2"]);
    if VERSION == "0.4.0" {
        ann.does(SESSION, json!({"type": "session/modelChanged", "model": {"id": "scripted-1"}}))
            .await;
        ann.until("the model is chosen", |ann| {
            ann.session()["summary"]["model"]["id"] == "scripted-1"
        })
        .await;
        ann.agrees("the chosen model").await;
        ann.sends_message("t5", "hello").await;
        ann.until("it is done", |ann| ann.last_turn()["id"] == "t5").await;
        let bea = Driver::joins(host, "bea").await.snapshot_of(chat).await;
        let last =
            bea["turns"].as_array().and_then(|turns| turns.last()).cloned().unwrap_or_default();
        assert_eq!(last["message"]["model"]["id"], "scripted-1");
        let agent = json!({"uri": "file:///agent.md"});
        let chosen = json!({"type": "session/agentChanged", "agent": agent});
        ann.does(SESSION, chosen).await;
        ann.until("the agent is chosen", |ann| ann.session()["summary"]["agent"] == agent).await;
        ann.agrees("the chosen agent").await;
    }
}
