//! The scripted agent through the real binary: what waits is answered over a socket, what died is resumed.

use std::time::Duration;

use crate::running::Host;
use client::{Connection, Envelope, Events, Mirror};
use serde_json::{Value, json};
use tokio::time::timeout;
use wire::ChannelUri;

const SESSION: &str = "scripted:/scenes";

/// A client that watches one chat and answers what it is asked there.
struct Ann {
    connection: Connection,
    events: Events,
    mirror: Mirror,
    chat: ChannelUri,
    turns: u32,
}

impl Ann {
    async fn connect(host: &Host, client_id: &str) -> (Connection, Events) {
        let (connection, events) = Connection::connect(&host.target()).await.unwrap();
        connection.initialize(client_id, &[]).await.unwrap();
        (connection, events)
    }

    async fn begins(host: &Host) -> Self {
        let (connection, events) = Self::connect(host, "ann").await;
        let channel = json!({"channel": SESSION});
        connection.request("createSession", channel).await.unwrap();
        let session = ChannelUri::parse(SESSION).unwrap();
        let snapshot = connection.subscribe(&session).await.unwrap().unwrap();
        let chat = snapshot.state["defaultChat"].as_str().unwrap();
        Self::at(connection, events, chat).await
    }

    async fn opens(host: &Host, client_id: &str, chat: &str) -> Self {
        let (connection, events) = Self::connect(host, client_id).await;
        Self::at(connection, events, chat).await
    }

    async fn at(connection: Connection, events: Events, chat: &str) -> Self {
        let chat = ChannelUri::parse(chat).unwrap();
        let snapshot = connection.subscribe(&chat).await.unwrap().unwrap();
        let mut mirror = Mirror::default();
        mirror.take_snapshot(snapshot).unwrap();
        Self { connection, events, mirror, chat, turns: 0 }
    }

    async fn sends_message(&mut self, text: &str) -> String {
        self.turns += 1;
        let turn = format!("turn-{}", self.turns);
        let message = json!({"text": text, "origin": {"kind": "user"}});
        let start = json!({"type": "chat/turnStarted", "turnId": turn, "message": message,
            "startedAt": "2026-11-15T08:00:00Z"});
        self.connection.dispatch(&self.chat, start).await.unwrap();
        turn
    }

    /// The next action on the chat.
    async fn sees(&mut self) -> Value {
        loop {
            let next = timeout(Duration::from_secs(60), self.events.next());
            let event = next.await.expect("the turn moves").unwrap();
            if event.method != "action" || event.params["channel"] != self.chat.as_str() {
                continue;
            }
            let envelope = Envelope::from_value(event.params).unwrap();
            assert_eq!(envelope.rejection, None);
            self.mirror.apply(&envelope);
            return Value::Object(envelope.action.body);
        }
    }

    async fn sees_first(&mut self, kind: &str) -> Value {
        loop {
            let action = self.sees().await;
            if action["type"] == kind {
                return action;
            }
        }
    }

    /// Goes on to the end of the turn and gives one answer to whatever asks; the turn as it was left.
    async fn answers(&mut self, answer: Value) -> Value {
        loop {
            let asked = self.sees().await;
            let mut reply = answer.clone();
            match asked["type"].as_str().unwrap() {
                "chat/toolCallReady" if asked["confirmed"].is_null() => {
                    reply["type"] = json!("chat/toolCallConfirmed");
                    reply["turnId"] = asked["turnId"].clone();
                    reply["toolCallId"] = asked["toolCallId"].clone();
                }
                "chat/inputRequested" => {
                    reply["type"] = json!("chat/inputCompleted");
                    reply["requestId"] = asked["request"]["id"].clone();
                }
                "chat/turnComplete" | "chat/error" => return self.last_turn(),
                _ => continue,
            }
            self.connection.dispatch(&self.chat, reply).await.unwrap();
        }
    }

    fn last_turn(&self) -> Value {
        let chat = self.mirror.chat(self.chat.as_str()).unwrap().value();
        chat["turns"].as_array().unwrap().last().unwrap().clone()
    }
}

/// The one call of a turn.
fn call(turn: &Value) -> &Value {
    let parts = turn["responseParts"].as_array().unwrap();
    let call = parts.iter().find(|part| part["kind"] == "toolCall");
    &call.unwrap()["toolCall"]
}

/// What the script made of `{{last}}`.
fn last(turn: &Value) -> Value {
    let parts = turn["responseParts"].as_array().unwrap();
    let content = parts.last().unwrap()["content"].as_str().unwrap();
    let (_, json) = content.split_once("```json\n").unwrap();
    serde_json::from_str(json.trim_end_matches("\n```\n")).unwrap()
}

#[tokio::test]
async fn the_built_in_scenes_wait_for_their_user() {
    let host = Host::start();
    let mut ann = Ann::begins(&host).await;
    let yes = json!({"approved": true, "confirmed": "user-action"});
    let no = json!({"approved": false, "reason": "denied",
        "userSuggestion": {"text": "later", "origin": {"kind": "user"}}});

    ann.sends_message("tool").await;
    let turn = ann.answers(yes.clone()).await;
    assert_eq!(call(&turn)["status"], "completed");
    assert_eq!(call(&turn)["toolInput"], "{\"directory\": \".\"}");
    assert_eq!(last(&turn)["success"], true);

    ann.sends_message("tool").await;
    let turn = ann.answers(no).await;
    assert_eq!(call(&turn)["status"], "cancelled");
    assert_eq!(turn["state"], "complete");
    let answer = last(&turn);
    assert_eq!(
        (&answer["approved"], &answer["suggestion"]["text"]),
        (&json!(false), &json!("later"))
    );

    ann.sends_message("options").await;
    let mut choice = yes.clone();
    choice["selectedOptionId"] = json!("session");
    let turn = ann.answers(choice).await;
    assert_eq!(last(&turn)["selectedOption"]["label"], "Allow in this session");

    ann.sends_message("edit").await;
    let mut edited = yes.clone();
    edited["editedToolInput"] = json!("{\"path\":\"ode.txt\"}");
    let turn = ann.answers(edited).await;
    assert_eq!(call(&turn)["content"][0]["text"], "{\"path\":\"ode.txt\"}");
    assert_eq!(last(&turn)["input"], "{\"path\":\"ode.txt\"}");

    ann.sends_message("ask").await;
    let name = json!({"state": "submitted", "value": {"kind": "text", "value": "Ann"}});
    let turn = ann.answers(json!({"response": "accept", "answers": {"name": name}})).await;
    let answer = last(&turn);
    assert_eq!((&answer["response"], &answer["answers"]["name"]), (&json!("accept"), &name));
}

#[tokio::test]
async fn a_worker_works_in_a_chat_of_its_own() {
    let host = Host::start();
    let mut ann = Ann::begins(&host).await;
    ann.sends_message("subagent").await;
    let turn = ann.answers(json!({})).await;
    let call = call(&turn);
    assert_eq!((&call["status"], &call["success"]), (&json!("completed"), &json!(true)));
    let worker = call["content"][0]["resource"].as_str().unwrap();
    let bob = Ann::opens(&host, "bob", worker).await;
    let chat = bob.mirror.chat(worker).unwrap().value();
    assert_eq!(chat["origin"]["toolCallId"], call["toolCallId"]);
    let parts = bob.last_turn()["responseParts"].clone();
    let kinds: Vec<&str> =
        parts.as_array().unwrap().iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "markdown", "toolCall", "markdown"]);
}

#[tokio::test]
async fn a_turn_interrupted_while_waiting_is_resumed_at_the_next_step() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"when": "^(\\w+)", "steps": [
        {"spawn": {"title": "W", "steps": [{"tool": {"name": "inner"}}, {"ask": {"message": "?"}}, {"say": ["$1 {{last}}"]}]}},
        {"say": ["back: {{last}}"]},
    ]}]});
    std::fs::write(data.path().join("script.json"), script.to_string()).unwrap();
    let arguments = ["--script", "script.json"];
    let host = Host::start_with(data, &arguments);
    let mut ann = Ann::begins(&host).await;
    let turn = ann.sends_message("go").await;
    let started = ann.sees_first("chat/toolCallContentChanged").await;
    let worker = started["content"][0]["resource"].as_str().unwrap().to_owned();
    let mut bob = Ann::opens(&host, "bob", &worker).await;
    let asks = |bob: &Ann| {
        let chat = bob.mirror.chat(&worker).unwrap().value();
        chat["activeTurn"]["responseParts"][1]["kind"] == "inputRequest"
    };
    while !asks(&bob) {
        bob.sees().await;
    }
    let host = Host::start_with(host.kill(), &arguments);

    let mut bob = Ann::opens(&host, "bob2", &worker).await;
    let died = bob.last_turn();
    assert_eq!(died["state"], "error");
    let resume = json!({"type": "chat/turnResume", "turnId": died["id"]});
    bob.connection.dispatch(&bob.chat, resume).await.unwrap();
    let turn_of_worker = bob.answers(json!({})).await;
    let content = turn_of_worker["responseParts"].as_array().unwrap().last().unwrap();
    let content = content["content"].as_str().unwrap();
    assert!(content.starts_with("go {\"approved\":true,"), "{content}");

    let mut ann = Ann::opens(&host, "ann2", ann.chat.as_str()).await;
    assert_eq!(ann.last_turn()["state"], "error");
    let resume = json!({"type": "chat/turnResume", "turnId": turn});
    ann.connection.dispatch(&ann.chat, resume).await.unwrap();
    let parts = ann.answers(json!({})).await["responseParts"].clone();
    assert_eq!(parts.as_array().unwrap().last().unwrap()["content"], "back: {}");
}

#[tokio::test]
async fn pictures_are_fetched_by_reference() {
    let host = Host::start();
    let mut ann = Ann::begins(&host).await;
    ann.sends_message("image").await;
    let turn = ann.answers(json!({})).await;
    let parts = turn["responseParts"].as_array().unwrap();
    let picture = parts.iter().find(|part| part["kind"] == "contentRef").unwrap();
    assert_eq!(picture["contentType"], "image/svg+xml");
    let read = json!({"channel": SESSION, "uri": picture["uri"], "encoding": "utf-8"});
    let read = ann.connection.request("resourceRead", read).await.unwrap();
    let drawn = read["data"].as_str().unwrap();
    assert!(drawn.starts_with("<svg"), "{read}");
    assert_eq!(picture["sizeHint"], drawn.len());
}

#[tokio::test]
async fn the_file_of_an_edit_can_be_looked_at_before_it_is_allowed() {
    let host = Host::start();
    let mut ann = Ann::begins(&host).await;
    ann.sends_message("edit").await;
    let asked = ann.sees_first("chat/toolCallReady").await;
    let file = &asked["edits"]["items"][0]["after"]["content"]["uri"];
    let read = json!({"channel": SESSION, "uri": file, "encoding": "utf-8"});
    let read = ann.connection.request("resourceRead", read).await.unwrap();
    assert!(read["data"].as_str().unwrap().contains("kettle"), "{read}");
}
