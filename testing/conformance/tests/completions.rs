//! `completions` of the published 1.0.0 client against a real host over a real directory.

use std::path::Path;
use std::time::{Duration, Instant};

use ahp::{Client, ClientConfig, ClientError};
use ahp_types::commands::{CompletionItem, CompletionItemKind, CompletionsParams};
use ahp_types::state::MessageAttachment;
use ahp_ws::WebSocketTransport;
use conformance::TestHost;
use serde_json::{Value, json};

const SESSION: &str = "ahp-session:/completions";
const ROOT: &str = "ahp-root://";

struct Fixture {
    _host: TestHost,
    directory: tempfile::TempDir,
    client: Client,
    chat: String,
}

impl Fixture {
    /// A session in a directory with a file, a command and a skill.
    async fn set() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        write(work, "src/main.rs", "fn main() {}\n");
        write(work, ".gitignore", "target\n");
        write(work, "target/main.rs", "");
        let command = "---\ndescription: Reviews a file\nargument-hint: FILE\n---\nReview $1.";
        write(work, ".greenroom/commands/review.md", command);
        write(work, ".agents/skills/tables/SKILL.md", "# Makes tables\n");
        let script = json!({"scenes": [{"steps": [{"say": ["ok"]}]}]});
        let host = TestHost::start(work, &script).await;
        let transport = WebSocketTransport::connect(&host.url).await.unwrap();
        let client = Client::connect(transport, ClientConfig::default()).await.unwrap();
        let versions = vec!["1.0.0".to_owned()];
        let ready = client.initialize("c".to_owned(), versions, vec![]).await.unwrap();
        let triggers = ready.completion_trigger_characters.unwrap();
        assert_eq!(triggers, ["@", "#", "/"]);
        let uri = format!("file://{}", work.display());
        let params = json!({"channel": SESSION, "workingDirectories": [uri]});
        let _: Value = client.request("createSession", params).await.unwrap();
        let params = json!({"channel": SESSION});
        let answer: Value = client.request("subscribe", params).await.unwrap();
        let chat = answer["snapshot"]["state"]["defaultChat"].as_str().unwrap();
        Self { chat: chat.to_owned(), _host: host, directory, client }
    }

    async fn ask(&self, text: &str) -> Result<Vec<CompletionItem>, ClientError> {
        let params = CompletionsParams {
            channel: self.chat.clone(),
            meta: None,
            kind: CompletionItemKind::UserMessage,
            text: text.to_owned(),
            offset: text.encode_utf16().count() as i64,
        };
        self.client.completions(params).await.map(|result| result.items)
    }

    async fn inserted(&self, text: &str) -> Vec<String> {
        let items = self.ask(text).await.unwrap();
        items.into_iter().map(|item| item.insert_text).collect()
    }

    /// Asks until the expected items are there: files and commands are looked for beside the answers.
    async fn until(&self, text: &str, condition: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let inserted = self.inserted(text).await;
            if condition(&inserted) {
                return;
            }
            assert!(Instant::now() < deadline, "{inserted:?}");
        }
    }

    /// The code of the error that params are answered with.
    async fn refused(&self, params: Value) -> i64 {
        let answer: Result<Value, ClientError> = self.client.request("completions", params).await;
        match answer {
            Err(ClientError::Rpc(error)) => error.code.into(),
            other => panic!("{other:?}"),
        }
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g_040_h_241_the_published_client_completes_commands_files_and_skills() {
    let fixture = Fixture::set().await;
    let commands = fixture.inserted("/").await;
    for command in [
        "/archive ",
        "/branch ",
        "/compact ",
        "/help ",
        "/redo ",
        "/retry-attachments ",
        "/rewind ",
        "/undo ",
        "/review ",
    ] {
        assert!(commands.contains(&command.to_owned()), "{commands:?}");
    }
    let items = fixture.ask("/rev").await.unwrap();
    let MessageAttachment::Simple(attachment) = &items[0].attachment else {
        panic!("{items:?}");
    };
    assert_eq!((items[0].range_start, items[0].range_end), (Some(0), Some(4)));
    assert_eq!(attachment.label, "/review");
    assert_eq!(
        json!(attachment.meta),
        json!({
            "compositor/part": {"type": "command", "id": "/review"},
            "command": "review",
            "description": "Reviews a file",
            "argumentHint": "FILE",
        })
    );
    fixture.until("👍 @main", |inserted| inserted == ["@file:src/main.rs "]).await;
    let items = fixture.ask("👍 @main").await.unwrap();
    assert_eq!((items[0].range_start, items[0].range_end), (Some(3), Some(8)));
    assert_eq!(fixture.inserted("@skill:").await, ["@skill:tables "]);
    assert_eq!(fixture.inserted("see /rev").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_command_is_there_soon() {
    let fixture = Fixture::set().await;
    assert_eq!(fixture.inserted("/deplo").await, Vec::<String>::new());
    write(fixture.directory.path(), ".claude/commands/deploy.md", "Deploy.");
    fixture.until("/deplo", |inserted| inserted == ["/deploy "]).await;
    // While the host runs, a removed directory is not reported.
    std::fs::remove_dir_all(fixture.directory.path().join(".claude")).unwrap();
    fixture.until("/deplo", <[String]>::is_empty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h_241_invalid_requests_are_refused_and_unknown_kinds_have_no_items() {
    let fixture = Fixture::set().await;
    let asked = |channel: &str, kind: &str, text: &str, offset: Value| json!({"channel": channel, "kind": kind, "text": text, "offset": offset});
    let chat = fixture.chat.as_str();
    for offset in [json!(2), json!(-1), json!(1.5), json!("1"), json!(null), json!(u64::MAX)] {
        assert_eq!(fixture.refused(asked(chat, "userMessage", "/", offset)).await, -32602);
    }
    assert_eq!(fixture.refused(asked(ROOT, "userMessage", "/", json!(1))).await, -32602);
    assert_eq!(
        fixture.refused(asked("ahp-session:/none", "userMessage", "/", json!(1))).await,
        -32001
    );
    assert_eq!(
        fixture.refused(asked("ahp-chat:/none", "userMessage", "/", json!(1))).await,
        -32008
    );
    let request = async |params: Value| -> Value {
        fixture.client.request("completions", params).await.unwrap()
    };
    let unknown = request(asked(chat, "somethingNew", "/", json!(1))).await;
    assert_eq!(unknown, json!({"items": []}));
    let by_session =
        json!({"session": SESSION, "kind": "userMessage", "text": "/rev", "offset": 4});
    assert_eq!(request(by_session).await["items"][0]["insertText"], "/review ");
    let inside_a_pair = request(asked(chat, "userMessage", "👍", json!(1))).await;
    assert_eq!(inside_a_pair, json!({"items": []}));
    let huge = "x ".repeat(500_000) + "/rev";
    let items = request(asked(chat, "userMessage", &huge, json!(huge.len()))).await;
    assert_eq!(items, json!({"items": []}));
    // G-43
    let larger = huge.repeat(2);
    let params = asked(chat, "userMessage", &larger, json!(larger.len()));
    assert_eq!(fixture.refused(params).await, -32602);
}
