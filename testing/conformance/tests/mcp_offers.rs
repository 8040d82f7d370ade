//! Prompts of MCP servers as commands, and their resources as things that messages refer to, over real processes.

use agents::mcp::McpEntry;
use conformance::native::{NativeHarness, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};

const SERVER: &str = env!("CARGO_BIN_EXE_mcp-test-server");

async fn start() -> NativeHarness {
    let entry = McpEntry {
        name: "test".to_owned(),
        command: Some(SERVER.to_owned()),
        ..McpEntry::default()
    };
    let settings = move |host: &mut host::Config| host.mcp = vec![entry.clone()];
    let config = json!({"approvals": "full-access"});
    NativeHarness::start_with_settings(config, |_| {}, settings).await
}

/// What the model got of the user's last message.
fn last_words(harness: &NativeHarness) -> String {
    let messages = harness.last_messages();
    let mut users = messages.iter().rev();
    let last = users.find(|message| message["role"] == "user").unwrap();
    last["content"].to_string()
}

async fn completions(harness: &mut NativeHarness, text: &str) -> Vec<Value> {
    let params = json!({
        "channel": harness.ann.chat.as_str(), "kind": "userMessage", "text": text,
        "offset": text.encode_utf16().count(),
    });
    let answer = harness.ann.connection.request("completions", params).await;
    answer.unwrap()["items"].as_array().cloned().unwrap()
}

fn inserted(items: &[Value]) -> Vec<&str> {
    let texts = items.iter().map(|item| item["insertText"].as_str().unwrap());
    texts.collect()
}

// MC-12, G-74
#[tokio::test]
async fn a_prompt_is_a_command_from_the_first_message_on() {
    let mut harness = start().await;
    harness.talk("/mcp:test:review a.rs the long part", [ends()]).await;
    let words = last_words(&harness);
    assert!(words.contains("Review a.rs with the long part"), "{words}");
    assert!(words.contains("Be kind."), "{words}");
    assert!(words.contains("> I will."), "{words}");
    assert!(!words.contains("/mcp:"), "{words}");

    let items = completions(&mut harness, "/mcp").await;
    assert_eq!(inserted(&items), ["/mcp:test:review "]);
    let about = &items[0]["_meta"]["compositor/about"];
    assert_eq!(about["description"], "Reviews a file");
    assert_eq!(about["argumentHint"], "file [focus]");

    // It is sent again as it was, without asking the server.
    harness.talk("and now?", [ends()]).await;
    let body = harness.model.requests().last().unwrap().json();
    assert!(body.to_string().contains("Review a.rs with the long part"));
}

#[tokio::test]
async fn a_prompt_without_what_it_needs_refuses_the_message() {
    let mut harness = start().await;
    harness.ann.sends_message("/mcp:test:review").await;
    let refused = harness.ann.refused().await;
    assert_eq!(refused, "/mcp:test:review: it needs `file`");
    // What nobody knows is passed on as it is.
    harness.talk("/mcp:other:thing x", [ends()]).await;
    assert!(last_words(&harness).contains("/mcp:other:thing x"));
}

#[tokio::test]
async fn arguments_are_completed_by_the_server() {
    let mut harness = start().await;
    harness.talk("hello", [ends()]).await;
    let items = completions(&mut harness, "/mcp:test:review m").await;
    assert_eq!(inserted(&items), ["main.rs ", "\"my notes.md\" "]);
    assert_eq!(items[0]["rangeStart"], 17);
    assert_eq!(items[0]["rangeEnd"], 18);
    let items = completions(&mut harness, "/mcp:test:review main.rs sty").await;
    assert_eq!(inserted(&items), ["\"style of main.rs\" "]);
    let items = completions(&mut harness, "/mcp:test:review a b c").await;
    assert_eq!(inserted(&items), Vec::<&str>::new());
}

// MC-13
#[tokio::test]
async fn a_resource_is_mentioned_read_once_and_stays_what_it_was() {
    let mut harness = start().await;
    harness.talk("see @mcp:test:test://guide", [ends()]).await;
    let words = last_words(&harness);
    assert!(words.contains("Be kind."), "{words}");
    assert!(!words.contains("@mcp:"), "{words}");

    let items = completions(&mut harness, "@mcp:test:").await;
    assert_eq!(inserted(&items), ["@mcp:test:test://guide ",]);
    assert_eq!(items[0]["attachment"]["uri"], "mcp-resource://test/test%3A%2F%2Fguide");
    let items = completions(&mut harness, "@mcp:test:test://page/o").await;
    assert_eq!(inserted(&items), ["@mcp:test:test://page/one "]);

    // An attachment is the same; a picture comes as one.
    let attach = |uri: &str| {
        let uri = wire::mcp_uri::uri_of("test", uri);
        json!([{"type": "resource", "label": "it", "uri": uri, "displayKind": "document"}])
    };
    harness.model.answers([ends()]);
    harness.ann.sends_with_attachments("look", attach("test://page/one")).await;
    harness.ann.turn_over().await;
    assert!(last_words(&harness).contains("The first page."));
    harness.model.answers([ends()]);
    harness.ann.sends_with_attachments("look", attach("test://nowhere")).await;
    harness.ann.turn_over().await;
    let words = last_words(&harness);
    assert!(words.contains("not_found") || words.contains("not found"), "{words}");
}

#[tokio::test]
async fn a_list_of_resources_that_changed_is_asked_for_again() {
    let mut harness = start().await;
    let storm = Call::new("call_mcp", "mcp__test__storm", &json!({"count": 3}));
    harness.talk("go", [Answer::calls([storm]), ends()]).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut again = tokio::time::interval(std::time::Duration::from_millis(50));
    loop {
        again.tick().await;
        let items = completions(&mut harness, "@mcp:test:test://e").await;
        if inserted(&items) == ["@mcp:test:test://extra "] {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{items:?}");
    }
}
