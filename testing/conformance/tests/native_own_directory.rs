//! The host's own directory inside a root: tools, mentions and attachments of the native agent find nothing in it but the
//! session's own copies of attachments (G-55).

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformance::TestHost;
use conformance::native::{ChatClient, messages};
use serde_json::json;
use testkit::{Answer, Call, ModelServer};

const SECRET: &str = "the host's own secret";

/// A host whose data directory lies in the one root it has.
struct Place {
    host: TestHost,
    model: ModelServer,
    root: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let model = ModelServer::start().await;
        let table = host::Model::parse(&format!("{}#echo", model.url())).unwrap();
        let script = json!({"scenes": []});
        let host = TestHost::start_with(&root, &script, |config| {
            config.models = vec![table];
        })
        .await;
        std::fs::write(root.join("data/secret.txt"), SECRET).unwrap();
        std::fs::write(root.join("open.txt"), "for everybody").unwrap();
        Self { host, model, root, _directory: directory }
    }

    async fn client(&self, name: &str) -> ChatClient {
        let mut client = ChatClient::arrives(&self.host, name).await;
        let config = json!({"permissions": "full-access", "approvals": "full-access"});
        let session = format!("native:/{name}");
        client.creates_session(&session, &self.root, config).await;
        client
    }

    /// What the model gets as results of its calls.
    async fn results(&self, client: &mut ChatClient, calls: Vec<Call>) -> Vec<String> {
        let answers = [Answer::calls(calls), Answer::streams(["Done."])];
        self.model.answers(answers);
        client.sends_message("go").await;
        client.turn_over().await;
        let body = self.model.requests().last().unwrap().json();
        let all = messages(&body);
        let results = all
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].as_str().unwrap().to_owned());
        results.collect()
    }

    /// Where the model is told that a copy of an attachment lies.
    async fn attaches(&self, client: &mut ChatClient) -> String {
        let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let attached = json!([{"type": "embeddedResource", "label": "long.log",
            "contentType": "text/plain", "data": STANDARD.encode(&long)}]);
        self.model.answers([Answer::streams(["Where?"])]);
        client.sends_with_attachments("look", attached).await;
        client.turn_over().await;
        let body = self.model.requests().last().unwrap().json().to_string();
        let (_, after) = body.split_once("path=\\\"").expect("a path");
        after.split('\\').next().unwrap().to_owned()
    }
}

fn read(path: &str) -> Call {
    Call::new(path, "read", &json!({"path": path, "limit": 1}))
}

#[tokio::test]
async fn tools_find_nothing_in_the_hosts_own_directory() {
    let place = Place::start().await;
    let mut ann = place.client("ann").await;
    let absolute = place.root.join("data/secret.txt").display().to_string();
    let write = json!({"path": "data/new.txt", "content": "x"});
    let results = place
        .results(
            &mut ann,
            vec![
                read("open.txt"),
                read("data/secret.txt"),
                read(&absolute),
                Call::new("c4", "grep", &json!({"pattern": "secret"})),
                Call::new("c5", "list", &json!({"path": "data"})),
                Call::new("c6", "write", &write),
            ],
        )
        .await;
    assert_eq!(results.len(), 6, "{results:#?}");
    assert!(results[0].contains("for everybody"), "{results:#?}");
    for result in &results[1..] {
        assert!(!result.contains(SECRET), "{result}");
    }
    assert!(results[5].contains("permission denied"), "{results:#?}");
    assert!(!place.root.join("data/new.txt").exists());
    place.host.stop().await;
}

#[tokio::test]
async fn mentions_and_attached_files_find_nothing_there_either() {
    let place = Place::start().await;
    let mut ann = place.client("ann").await;
    let uri = format!("file://{}", place.root.join("data/secret.txt").display());
    let attached = json!([{"type": "resource", "uri": uri, "label": "secret.txt"}]);
    place.model.answers([Answer::streams(["Well."])]);
    let text = "see @file:data/secret.txt and @file:open.txt";
    ann.sends_with_attachments(text, attached).await;
    ann.turn_over().await;
    let asked = place.model.requests().last().unwrap().json().to_string();
    assert!(asked.contains("for everybody"), "{asked}");
    assert!(!asked.contains(SECRET), "{asked}");
    place.host.stop().await;
}

#[tokio::test]
async fn copies_of_attachments_are_for_their_own_session() {
    let place = Place::start().await;
    let (mut ann, mut bob) = (place.client("ann").await, place.client("bob").await);
    let copy = place.attaches(&mut ann).await;
    assert!(Path::new(&copy).starts_with(place.root.join("data/staged")), "{copy}");
    let own = place.results(&mut ann, vec![read(&copy)]).await;
    assert!(own[0].contains("line 0"), "{own:#?}");
    let other = place.results(&mut bob, vec![read(&copy)]).await;
    assert!(!other[0].contains("line 0"), "{other:#?}");
    assert!(other[0].contains("permission denied"), "{other:#?}");
    place.host.stop().await;
}
