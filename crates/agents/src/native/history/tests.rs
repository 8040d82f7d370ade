//! What a model is told of turns and their parts.

use super::*;

fn turn(text: &str, parts: Value) -> PastTurn {
    PastTurn {
        turn: json!({"message": {"text": text}, "responseParts": parts}),
        messages: Vec::new(),
        outputs: Vec::new(),
    }
}

fn recall_turns(turns: &[PastTurn], tokens_max: u64) -> RecalledHistory {
    let source = OutputSource {
        api: crate::provider::Api::Chat,
        model: "m".to_owned(),
        findings: Default::default(),
    };
    super::recall_turns(turns, 0, tokens_max, &source)
}

fn user_text(text: &str) -> HistoryEntry {
    HistoryEntry::Model(ModelMessage::Assistant {
        text: text.to_owned(),
        calls: Vec::new(),
        items: None,
    })
}

fn entries_of_parts(parts: &[Value]) -> Vec<HistoryEntry> {
    super::entries_of_parts(parts, 0, &mut std::iter::empty(), TurnOutputs::default())
}

#[test]
fn rounds_are_separated_and_every_call_has_a_result() {
    let parts = json!([
        {"kind": "reasoning", "content": "hm"},
        {"kind": "markdown", "content": "Let me "},
        {"kind": "markdown", "content": "look."},
        {"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": "a", "toolName": "read",
            "toolInput": "{\"path\":\"x\"}", "content": [{"type": "text", "text": "one"}, {"type": "resource"}]}},
        {"kind": "toolCall", "toolCall": {"status": "cancelled", "reason": "denied", "toolCallId": "b",
            "toolName": "bash", "toolInput": "{}", "userSuggestion": {"text": "no, use ls"}}},
        {"kind": "markdown", "content": "Done."},
        {"kind": "toolCall", "toolCall": {"status": "cancelled", "reason": "skipped", "toolCallId": "c",
            "toolName": "bash", "toolInput": "{}"}},
    ]);
    let messages = recall_turns(&[turn("hi", parts)], 1_000).entries;
    let calls = |id: &str, name: &str, input: &str| ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.to_owned(),
    };
    let result = |id: &str, text: &str| {
        HistoryEntry::Model(ModelMessage::ToolResult {
            id: id.to_owned(),
            text: text.to_owned(),
            blocks: Vec::new(),
        })
    };
    assert_eq!(
        messages,
        vec![
            HistoryEntry::user("hi"),
            HistoryEntry::Model(ModelMessage::Assistant {
                text: "Let me look.".to_owned(),
                calls: vec![calls("a", "read", "{\"path\":\"x\"}"), calls("b", "bash", "{}")],
                items: None,
            }),
            result("a", "one"),
            result("b", &super::super::consent::denied_text(Some("no, use ls"))),
            HistoryEntry::Model(ModelMessage::Assistant {
                text: "Done.".to_owned(),
                calls: vec![calls("c", "bash", "{}")],
                items: None,
            }),
            result("c", INTERRUPTED),
        ]
    );
}

#[test]
fn calls_without_text_between_them_are_separated_by_their_rounds() {
    let call = |id: &str, round: u64| {
        json!({"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": id, "toolName": "read",
            "toolInput": "{}", "content": [], "_meta": {super::super::answer::ROUND: round}}})
    };
    let parts = [call("a", 0), call("b", 0), call("c", 1)];
    let calls_of = |entry: &HistoryEntry| match entry {
        HistoryEntry::Model(ModelMessage::Assistant { calls, .. }) => Some(calls.len()),
        _ => None,
    };
    let calls: Vec<usize> = entries_of_parts(&parts).iter().filter_map(calls_of).collect();
    assert_eq!(calls, [2, 1]);
}

#[test]
fn bodies_of_results_come_with_them() {
    let digest = format!("ahp-content:/sha256/{}", "ab".repeat(32));
    let content = json!([
        {"type": "text", "text": "seen"},
        {"type": "embeddedResource", "data": "iVBO", "contentType": "image/png"},
        {"type": "resource", "uri": digest, "contentType": "application/pdf"},
        {"type": "resource", "uri": digest, "contentType": "text/plain"},
    ]);
    let media = media_of_result(&json!({"content": content}));
    let mimes: Vec<&Value> = media.iter().map(|part| &part.object()["mime"]).collect();
    assert_eq!(mimes, ["image/png", "application/pdf"]);
}

#[test]
fn steering_stands_where_it_was_taken() {
    let call = |id: &str, round: u64| {
        json!({"kind": "toolCall", "toolCall": {"status": "completed", "toolCallId": id, "toolName": "read",
            "toolInput": "{}", "content": [], "_meta": {super::super::answer::ROUND: round}}})
    };
    let steered = |text: &str| {
        json!({"kind": "systemNotification", "content": format!("You added: {text}"),
            "_meta": {wire::meta::STEERING: {"text": text, "origin": {"kind": "user"}}}})
    };
    let notice = json!({"kind": "systemNotification", "content": "tried again"});
    let parts = [call("a", 0), steered("left"), call("b", 1), notice, steered("right")];
    let users = |entry: &HistoryEntry| match entry {
        HistoryEntry::User(message) => {
            message.parts[0].object()["text"].as_str().unwrap().to_owned()
        }
        HistoryEntry::Model(ModelMessage::ToolResult { id, .. }) => id.clone(),
        _ => "-".to_owned(),
    };
    let order: Vec<String> = entries_of_parts(&parts).iter().map(users).collect();
    assert_eq!(order, ["-", "a", "left", "-", "b", "right"]);
}

#[test]
fn notices_stand_in_the_message_that_comes_next() {
    let notice = |text: &str| json!({"kind": "systemNotification", "content": text});
    let markdown = json!({"kind": "markdown", "content": "yes"});
    let turns = [
        turn("one", json!([notice("busy"), markdown, notice("cut off")])),
        turn("two", json!([{"kind": "systemNotification", "content": {"markdown": "*help*"}}])),
    ];
    let recalled = recall_turns(&turns, 1_000);
    assert_eq!(recalled.notices, ["*help*"]);
    let HistoryEntry::User(second) = &recalled.entries[2] else { panic!("{recalled:?}") };
    let texts: Vec<&str> =
        second.parts.iter().filter_map(|part| part.object()["text"].as_str()).collect();
    assert_eq!(texts[0], "two");
    assert!(texts[1].contains("busy\n\ncut off"), "{texts:?}");
    assert_eq!(recalled.entries[0], HistoryEntry::user("one"));
}

#[test]
fn the_oldest_turns_go_first_but_the_newest_stays() {
    let turns: Vec<PastTurn> = (0..4)
        .map(|n| {
            turn(
                &format!("question {n}"),
                json!([{"kind": "markdown", "content": "x".repeat(400)}]),
            )
        })
        .collect();
    let messages = recall_turns(&turns, 255).entries;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[0], HistoryEntry::user("question 2"));
    assert_eq!(messages[3], user_text(&"x".repeat(400)));
    assert_eq!(recall_turns(&turns, 0).entries.len(), 2);
}
