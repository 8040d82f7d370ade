//! What the native agent knows of its models: settings that messages give them, what they cost, what a chat loses by going on
//! with another.

use crate::spoken::{Said, Wire};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformance::native::{NativeHarness, texts_in};
use serde_json::{Value, json};
use testkit::Answer;

/// A model over each wire format that something is known of, and how its request says that it thinks much.
const KNOWN: [(Wire, &str); 4] = [
    (Wire::Chat, "gpt-5.5"),
    (Wire::Anthropic, "claude-opus-4-8"),
    (Wire::Responses, "gpt-5.5"),
    (Wire::Gemini, "gemini-3.5-flash"),
];

async fn start(wire: Wire, known_as: &str) -> NativeHarness {
    NativeHarness::start_with_model(json!({}), |model| {
        model.api = wire.api();
        model.known_as = Some(known_as.to_owned());
    })
    .await
}

async fn talk_to(harness: &mut NativeHarness, wire: Wire, text: &str, model: Value) -> Value {
    harness.model.answers([Answer::raw(wire.stream(&Said::text("Hi.")))]);
    harness.ann.sends_to_model(text, model).await;
    harness.ann.turn_over().await
}

#[tokio::test]
async fn a_message_says_how_much_its_model_thinks_over_every_wire_format() {
    for (wire, known_as) in KNOWN {
        let mut harness = start(wire, known_as).await;
        let config = json!({"reasoningEffort": "high", "maxOutputTokens": 5000, "unknown": 1});
        let turn = talk_to(&mut harness, wire, "hi", json!({"id": "echo", "config": config})).await;
        assert_eq!(turn["state"], "complete", "{wire:?} {turn:#}");
        let recorded = &turn["message"]["model"]["config"];
        assert_eq!(
            *recorded,
            json!({"reasoningEffort": "high", "maxOutputTokens": 5000}),
            "{wire:?}"
        );
        let body = harness.model.requests()[0].json();
        match wire {
            Wire::Chat => {
                assert_eq!(
                    (&body["reasoning_effort"], &body["max_tokens"]),
                    (&json!("high"), &json!(5000))
                );
            }
            Wire::Anthropic => {
                assert_eq!(
                    (&body["output_config"], &body["max_tokens"]),
                    (&json!({"effort": "high"}), &json!(5000))
                );
                assert_eq!(body["thinking"]["type"], "adaptive");
            }
            Wire::Responses => {
                assert_eq!(
                    (&body["reasoning"], &body["max_output_tokens"]),
                    (&json!({"effort": "high", "summary": "auto"}), &json!(5000))
                );
            }
            Wire::Gemini => assert_eq!(
                body["generationConfig"],
                json!({
                    "maxOutputTokens": 5000,
                    "thinkingConfig": {"thinkingLevel": "high", "includeThoughts": true},
                })
            ),
        }
        // What the model cannot do is refused before anything is sent.
        let wrong = json!({"id": "echo", "config": {"reasoningEffort": "endless"}});
        harness.ann.sends_to_model("hi", wrong).await;
        let refused = harness.ann.refused().await;
        assert!(refused.contains("reasoningEffort"), "{wire:?}: {refused}");
        assert_eq!(harness.model.requests().len(), 1);
    }
}

/// What a model thinks is asked for. A server that shows it to some accounts alone is asked once more without, and never again.
#[tokio::test]
async fn thoughts_that_are_not_shown_end_no_chat() {
    const REFUSAL: &str = r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries. Please go to: https://a.example and click on Verify Organization.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#;
    let mut harness = start(Wire::Responses, "gpt-5.5").await;
    let stream = Wire::Responses.stream(&Said::text("Hi."));
    harness.model.behaves(move |request| {
        if request.json()["reasoning"]["summary"].is_string() {
            Answer::status(400, REFUSAL)
        } else {
            Answer::raw(stream.clone())
        }
    });
    harness.ann.sends_message("hi").await;
    let turn = harness.ann.completed_turn().await;
    assert!(notices(&turn).contains("does not show what the model thinks"), "{turn:#}");
    let effort = json!({"id": "echo", "config": {"reasoningEffort": "high"}});
    harness.ann.sends_to_model("and now?", effort).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(notices(&turn), "", "it was said");
    let asked: Vec<Value> =
        harness.model.requests().iter().map(|it| it.json()["reasoning"].clone()).collect();
    assert_eq!(asked, [json!({"summary": "auto"}), Value::Null, json!({"effort": "high"})]);
}

#[tokio::test]
async fn a_known_model_has_its_window_and_costs_what_its_vendor_asks() {
    let mut harness = start(Wire::Anthropic, "claude-haiku-4-5").await;
    let turn = talk_to(&mut harness, Wire::Anthropic, "hi", Value::Null).await;
    let meta = &turn["usage"]["_meta"];
    assert_eq!(meta["contextSize"], 200_000, "{turn:#}");
    // 25 fresh, 80 cached, 15 written to the cache; 1, 0.1 and 1.25 dollars a million.
    let usage = &turn["usage"];
    let output = usage["outputTokens"].as_f64().unwrap();
    let expected = (25.0 + 80.0 * 0.1 + 15.0 * 1.25 + output * 5.0) / 1e6;
    let cost = meta["cost"]["amount"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9, "{cost} is not {expected}: {usage:#}");
    let body = harness.model.requests()[0].json();
    assert_eq!(body["max_tokens"], 64_000);
}

fn attached(name: &str, kind: &str, bytes: &[u8]) -> Value {
    json!({"type": "embeddedResource", "label": name, "contentType": kind, "data": STANDARD.encode(bytes)})
}

/// Text of all notices of a turn.
fn notices(turn: &Value) -> String {
    texts_in(turn, "systemNotification").join("\n")
}

#[tokio::test]
async fn what_a_chat_loses_by_another_model_is_said_once() {
    let change = |models: &mut Vec<host::Model>| {
        let mut small = models[0].clone();
        small.id = "small".to_owned();
        small.model = Some("small".to_owned());
        small.vision = Some(false);
        small.context_tokens = Some(100);
        small.tools = Some(false);
        models[0].api = host::Api::Anthropic;
        models.push(small);
        let mut other = models[0].clone();
        other.id = "other".to_owned();
        other.api = host::Api::Anthropic;
        models.push(other);
    };
    // It would be summarised for the small one.
    let settings = |host: &mut host::Config| host.auto_compact = false;
    let start = NativeHarness::start_with_models_and_settings(json!({}), change, settings);
    let mut harness = start.await;
    harness.model.answers([Answer::raw(Wire::Anthropic.stream(&Said::text("Seen.")))]);
    let files = json!([attached("plan.pdf", "application/pdf", b"%PDF-1.4 of a plan")]);
    harness.ann.sends_with_attachments("look", files).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(notices(&turn), "", "{turn:#}");
    let turn = talk_to(&mut harness, Wire::Chat, "and now?", json!({"id": "small"})).await;
    let said = notices(&turn);
    assert!(said.starts_with("This chat goes on with small instead of echo."), "{said}");
    assert!(said.contains("plan.pdf"), "{said}");
    assert!(said.contains("It reads 100 tokens, and the chat uses"), "{said}");
    assert!(said.contains("It calls no tools"), "{said}");
    assert!(said.contains("What echo thought is not passed on."), "{said}");
    let turn = talk_to(&mut harness, Wire::Chat, "go on", json!({"id": "small"})).await;
    assert_eq!(notices(&turn), "", "it was said");
    // By one that takes it all nothing more is lost.
    let turn = talk_to(&mut harness, Wire::Anthropic, "back", json!({"id": "other"})).await;
    assert_eq!(notices(&turn), "", "{turn:#}");
}

/// Azure, Bedrock and Vertex are asked by configuration alone: the path before the API, the key in its header, the query.
#[tokio::test]
async fn clouds_are_asked_by_configuration() {
    let key_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key_file.path(), "sk-of-a-cloud-0123456789").unwrap();
    let azure = |model: &mut host::Model| {
        model.base_url = model.base_url.replace("/v1", "/openai/deployments/gpt");
        model.key_file = Some(key_file.path().to_owned());
        model.key_header = Some("api-key".to_owned());
        model.query.insert("api-version".to_owned(), "2026-01-01".to_owned());
        model.known_as = Some("gpt-5.5".to_owned());
    };
    let mut harness = NativeHarness::start_with_model(json!({}), azure).await;
    let turn = talk_to(&mut harness, Wire::Chat, "hi", Value::Null).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let request = harness.model.requests().remove(0);
    assert_eq!(request.path, "/openai/deployments/gpt/chat/completions?api-version=2026-01-01");
    assert_eq!(request.header("api-key"), Some("sk-of-a-cloud-0123456789"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.json()["model"], "echo");
    assert_eq!(turn["usage"]["_meta"]["contextSize"], 1_050_000, "{turn:#}");

    let bedrock = |model: &mut host::Model| {
        model.base_url = model.base_url.replace("/v1", "/openai/v1");
        model.key_file = Some(key_file.path().to_owned());
        model.model = Some("eu.anthropic.claude-sonnet-4-5-20250929-v1:0".to_owned());
    };
    let mut harness = NativeHarness::start_with_model(json!({}), bedrock).await;
    talk_to(&mut harness, Wire::Chat, "hi", Value::Null).await;
    let request = harness.model.requests().remove(0);
    assert_eq!(request.path, "/openai/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer sk-of-a-cloud-0123456789"));
    assert_eq!(request.json()["model"], "eu.anthropic.claude-sonnet-4-5-20250929-v1:0");

    let vertex = |model: &mut host::Model| {
        let path = "/v1/projects/mine/locations/global/publishers/google";
        model.base_url = model.base_url.replace("/v1", path);
        model.api = host::Api::Gemini;
        model.model = Some("gemini-2.5-pro".to_owned());
        model.key_command =
            Some(["echo", "token-of-a-cloud-0123456789"].map(str::to_owned).to_vec());
        model.key_header = Some("authorization".to_owned());
    };
    let mut harness = NativeHarness::start_with_model(json!({}), vertex).await;
    talk_to(&mut harness, Wire::Gemini, "hi", Value::Null).await;
    let request = harness.model.requests().remove(0);
    assert_eq!(
        request.path,
        "/v1/projects/mine/locations/global/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(request.header("authorization"), Some("Bearer token-of-a-cloud-0123456789"));
    assert_eq!(request.header("x-goog-api-key"), None);
}
