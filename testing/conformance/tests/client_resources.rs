//! Files that only a client has (H-259): the native agent uses them through the client that sent the message, by every method that there is for
//! it, as that client allows and as the user consents; nobody else comes to them through the host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ahp::{Client, ClientError};
use ahp_types::actions::StateAction;
use ahp_types::messages::JsonRpcError;
use conformance::native::{NativeHarness, SESSION, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};

use crate::changesets::connect;

const ATTACHED: &str = "virtual://editor/w/a.txt";

/// What a client has, and how it was asked.
#[derive(Default)]
struct Files {
    /// `None` is a directory.
    files: BTreeMap<String, Option<String>>,
    asked: Vec<String>,
    /// Denied until it is asked for.
    needs_permission: bool,
}

fn refuse(code: i32) -> JsonRpcError {
    JsonRpcError { code, message: "no".to_owned(), data: None }
}

impl Files {
    fn etag(text: &str) -> String {
        format!("v{}", text.len())
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, JsonRpcError> {
        self.asked.push(method.to_owned());
        assert_eq!(params["channel"], "ahp-root://");
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let (uri, source, destination) = (text("uri"), text("source"), text("destination"));
        if method == "resourceRequest" {
            self.needs_permission = false;
            return Ok(json!({}));
        }
        // What is attached is read before anybody consented to more.
        if self.needs_permission && method != "resourceRead" {
            return Err(refuse(-32009));
        }
        match method {
            "resourceRead" => match self.files.get(&uri) {
                Some(Some(text)) => Ok(json!({"data": text, "encoding": "utf-8"})),
                _ => Err(refuse(-32008)),
            },
            "resourceResolve" => match self.files.get(&uri) {
                Some(Some(text)) => Ok(
                    json!({"uri": uri, "type": "file", "size": text.len(), "etag": Self::etag(text)}),
                ),
                Some(None) => Ok(json!({"uri": uri, "type": "directory"})),
                None => Err(refuse(-32008)),
            },
            "resourceList" => {
                let below = |name: &&String| name.starts_with(&uri) && **name != uri;
                let names = self.files.keys().filter(below);
                let entry =
                    |name: &String| json!({"name": name.rsplit('/').next(), "type": "file"});
                Ok(json!({"entries": names.map(entry).collect::<Vec<_>>()}))
            }
            "resourceWrite" => {
                let known = self.files.get(&uri).and_then(Option::as_ref);
                let is_same = known.map(|text| Self::etag(text));
                if params["ifMatch"].is_string() && params["ifMatch"].as_str() != is_same.as_deref()
                {
                    return Err(refuse(-32011));
                }
                self.files.insert(uri, Some(text("data")));
                Ok(json!({}))
            }
            "resourceCopy" | "resourceMove" => {
                let found = self.files.get(&source).cloned().ok_or(refuse(-32008))?;
                if method == "resourceMove" {
                    self.files.remove(&source);
                }
                self.files.insert(destination, found);
                Ok(json!({}))
            }
            "resourceDelete" => self.files.remove(&uri).map(|_| json!({})).ok_or(refuse(-32008)),
            "resourceMkdir" => {
                self.files.insert(uri, None);
                Ok(json!({}))
            }
            _ => Err(refuse(-32601)),
        }
    }
}

/// A client that answers for its files.
async fn with_files(harness: &NativeHarness, name: &str, files: &Arc<Mutex<Files>>) -> Client {
    let (client, _) = connect(harness, name).await;
    let files = Arc::clone(files);
    client.set_server_request_handler(move |method, params| {
        let answer = files.lock().unwrap().answer(&method, &params);
        async move { answer }
    });
    client
}

fn some_files() -> Arc<Mutex<Files>> {
    let files = [(ATTACHED.to_owned(), Some("one\n".to_owned()))];
    Arc::new(Mutex::new(Files { files: files.into(), ..Files::default() }))
}

/// Sends a message with the file attached; the turn is under way.
async fn sends(harness: &NativeHarness, client: &Client, turn: &str) {
    let attachment =
        json!({"type": "resource", "uri": ATTACHED, "label": "a.txt", "displayKind": "document"});
    let message = json!({"text": "go", "origin": {"kind": "user"}, "attachments": [attachment]});
    let started = json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00Z", "message": message});
    let started: StateAction = serde_json::from_value(started).unwrap();
    let chat = harness.ann.chat.to_string();
    client.dispatch(chat, started).await.unwrap();
}

async fn over(harness: &mut NativeHarness, turn: &'static str) -> Value {
    let is_over = move |chat: &Value| {
        let turns = chat["turns"].as_array().unwrap();
        turns.iter().any(|it| it["id"] == turn)
    };
    let chat = harness.ann.until("the end of the turn", is_over).await;
    let turns = chat["turns"].as_array().unwrap();
    turns.last().unwrap().clone()
}

fn call(id: &str, input: Value) -> Call {
    Call::new(id, "client_files", &input)
}

fn at(name: &str) -> String {
    format!("virtual://editor/w/{name}")
}

#[tokio::test]
async fn an_agent_uses_files_of_the_client_by_every_method() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let files = some_files();
    let bob = with_files(&harness, "bob", &files).await;
    let inputs = [
        json!({"operation": "info", "uri": ATTACHED}),
        json!({"operation": "read", "uri": ATTACHED}),
        json!({"operation": "write", "uri": ATTACHED, "content": "one\ntwo\n", "etag": "v4"}),
        json!({"operation": "write", "uri": ATTACHED, "content": "lost", "etag": "v4"}),
        json!({"operation": "mkdir", "uri": at("dir")}),
        json!({"operation": "copy", "uri": ATTACHED, "destination": at("dir/b.txt")}),
        json!({"operation": "move", "uri": at("dir/b.txt"), "destination": at("dir/c.txt")}),
        json!({"operation": "list", "uri": at("dir")}),
        json!({"operation": "delete", "uri": ATTACHED}),
        json!({"operation": "read", "uri": ATTACHED}),
        // Another host, another scheme: not the client's to answer.
        json!({"operation": "read", "uri": "virtual://elsewhere/w/a.txt"}),
        json!({"operation": "read", "uri": "file:///etc/passwd"}),
    ];
    let rounds = inputs
        .into_iter()
        .enumerate()
        .map(|(n, input)| Answer::calls([call(&format!("c{n}"), input)]));
    harness.model.answers(rounds.chain([ends()]));
    sends(&harness, &bob, "t").await;
    let turn = over(&mut harness, "t").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let results = harness.last_results();
    let expected = [
        "\"etag\":\"v4\"",
        "one\n",
        "Done.",
        "changed since",
        "Done.",
        "Done.",
        "Done.",
        "c.txt\n",
        "Done.",
        "nothing at that address",
        "no address of the user's program",
        "no address of the user's program",
    ];
    assert_eq!(results.len(), expected.len(), "{results:#?}");
    for (result, expected) in results.iter().zip(expected) {
        assert!(result.contains(expected), "{expected:?} in {result:?}");
    }
    let left = files.lock().unwrap();
    let names: Vec<&String> = left.files.keys().collect();
    assert_eq!(names, [&at("dir"), &at("dir/c.txt")]);
    assert_eq!(left.files[&at("dir/c.txt")].as_deref(), Some("one\ntwo\n"));
    let used = [
        "resourceRead", // of the message
        "resourceResolve",
        "resourceRead",
        "resourceWrite",
        "resourceWrite",
        "resourceMkdir",
        "resourceCopy",
        "resourceMove",
        "resourceList",
        "resourceDelete",
        "resourceRead",
    ];
    assert_eq!(left.asked, used);
}

#[tokio::test]
async fn a_change_is_asked_about_and_what_the_client_denies_is_asked_for() {
    let mut harness = NativeHarness::start().await;
    let files = some_files();
    let bob = with_files(&harness, "bob", &files).await;
    let write = json!({"operation": "write", "uri": ATTACHED, "content": "two\n"});
    let answers = || [Answer::calls([call("c", write.clone())]), ends()];
    harness.model.answers(answers());
    sends(&harness, &bob, "denied").await;
    let asked = harness.ann.asked().await;
    let said = asked["invocationMessage"].as_str().unwrap();
    assert_eq!(said, format!("Write {ATTACHED} in your program"));
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides_about(&asked, denied).await;
    over(&mut harness, "denied").await;
    assert_eq!(files.lock().unwrap().asked, ["resourceRead"], "of the message alone");

    files.lock().unwrap().needs_permission = true;
    harness.model.answers(answers());
    sends(&harness, &bob, "granted").await;
    let asked = harness.ann.asked().await;
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = over(&mut harness, "granted").await;
    let files = files.lock().unwrap();
    assert_eq!(files.files[ATTACHED].as_deref(), Some("two\n"), "{turn:#}");
    let last = ["resourceWrite", "resourceRequest", "resourceWrite"];
    assert!(files.asked.ends_with(&last.map(str::to_owned)), "{:?}", files.asked);
    assert_eq!(calls_of(&turn)[0]["success"], true, "{turn:#}");
}

#[tokio::test]
async fn a_change_that_was_approved_is_recorded_so_and_obeys_what_was_set_meanwhile() {
    let mut harness = NativeHarness::start().await;
    let files = some_files();
    let bob = with_files(&harness, "bob", &files).await;
    let write = |content: &str| json!({"operation": "write", "uri": ATTACHED, "content": content});
    let answers = || [Answer::calls([call("c", write("two\n"))]), ends()];
    harness.model.answers(answers());
    sends(&harness, &bob, "edited").await;
    let asked = harness.ann.asked().await;
    let edited = write("three\n").to_string();
    let decision = json!({"editedToolInput": edited});
    harness.ann.decides_about(&asked, decision).await;
    let turn = over(&mut harness, "edited").await;
    let made = &calls_of(&turn)[0];
    assert_eq!(made["success"], true, "{made:#}");
    assert_eq!(made["confirmed"], "user-action", "{made:#}");
    assert_eq!(made["toolInput"], edited, "{made:#}");
    let result = &harness.last_results()[0];
    assert!(result.contains("The user changed the input"), "{result}");
    let content = || files.lock().unwrap().files[ATTACHED].clone();
    assert_eq!(content().as_deref(), Some("three\n"));

    harness.model.answers(answers());
    sends(&harness, &bob, "planned").await;
    let asked = harness.ann.asked().await;
    let plan = json!({"type": "session/configChanged", "config": {"approvals": "plan"}});
    harness.ann.does_in(SESSION, plan).await;
    let plans = |state: &Value| state["config"]["values"]["approvals"] == "plan";
    harness.ann.until_session(SESSION, plans).await;
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = over(&mut harness, "planned").await;
    assert_eq!(calls_of(&turn)[0]["success"], false, "{turn:#}");
    let result = harness.last_results().pop().unwrap();
    assert!(result.contains("only reads"), "{result}");
    assert_eq!(content().as_deref(), Some("three\n"));
}

#[tokio::test]
async fn whoever_resumes_a_turn_lends_it_no_files() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let (files, others) = (some_files(), some_files());
    let bob = with_files(&harness, "bob", &files).await;
    let eve = with_files(&harness, "eve", &others).await;
    harness.model.answers([Answer::streams(["half"]).without_finish()]);
    sends(&harness, &bob, "t").await;
    let turn = over(&mut harness, "t").await;
    assert_eq!(turn["state"], "error", "{turn:#}");
    let read = json!({"operation": "read", "uri": ATTACHED});
    harness.model.answers([Answer::calls([call("c", read)]), ends()]);
    let resume = json!({"type": "chat/turnResume", "turnId": "t"});
    let resume: StateAction = serde_json::from_value(resume).unwrap();
    let chat = harness.ann.chat.to_string();
    eve.dispatch(chat, resume).await.unwrap();
    let is_over = |chat: &Value| chat["turns"][0]["state"] == "complete";
    harness.ann.until("the end of the turn", is_over).await;
    let result = &harness.last_results()[0];
    assert!(result.contains("it was resumed"), "{result}");
    assert!(others.lock().unwrap().asked.is_empty());
    assert_eq!(files.lock().unwrap().asked, ["resourceRead"], "of the message alone");
}

#[tokio::test]
async fn nobody_else_comes_to_a_clients_files_through_the_host() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let (files, others) = (some_files(), some_files());
    let bob = with_files(&harness, "bob", &files).await;
    let eve = with_files(&harness, "eve", &others).await;
    // A peer that asks the host for it.
    for (method, params) in [
        ("resourceRead", json!({"channel": "ahp-root://", "uri": ATTACHED})),
        ("resourceDelete", json!({"channel": "ahp-root://", "uri": ATTACHED})),
        ("createResourceWatch", json!({"channel": "ahp-root://", "uri": ATTACHED})),
    ] {
        let refused: Result<Value, ClientError> = eve.request(method, params).await;
        let refused = format!("{:?}", refused.unwrap_err());
        assert!(refused.contains("-32008"), "{method}: {refused}");
    }
    assert!(files.lock().unwrap().asked.is_empty());
    // A turn uses those of its own sender, and is told if that is gone.
    let read = json!({"operation": "info", "uri": ATTACHED});
    harness.model.answers([Answer::calls([call("c", read.clone())]), ends()]);
    sends(&harness, &eve, "hers").await;
    over(&mut harness, "hers").await;
    assert_eq!(others.lock().unwrap().asked, ["resourceRead", "resourceResolve"]);
    assert!(files.lock().unwrap().asked.is_empty());
    // Without an attachment of that kind there is no such tool.
    harness.talk("hello", [ends()]).await;
    let request = harness.model.requests().last().unwrap().json();
    let tools = request["tools"].to_string();
    assert!(tools.contains("\"bash\"") && !tools.contains("client_files"), "{tools}");
    drop(bob);
}
