//! The built-in script, played through with a user who says yes, and one who says no.

use agent_api::ToolResult;
use wire::published::state::{ChatInputResponseKind, ToolInput};

use super::*;
use crate::scripted::builtin;

/// What a host would answer.
fn reply_to(event: &AgentEvent, approved: bool) -> Option<AgentReply> {
    Some(match event {
        AgentEvent::ToolReady { call, ready } if ready.confirmed.is_none() => {
            let input = match &ready.tool_input {
                Some(ToolInput::Inline(input)) => Some(input.clone()),
                Some(ToolInput::ContentRef(_)) | None => None,
            };
            AgentReply::ToolDecided {
                call: *call,
                approved,
                input,
                selected_option: None,
                suggestion: None,
                reason: None,
            }
        }
        AgentEvent::InputRequested { ask, .. } => AgentReply::Answered {
            ask: *ask,
            response: if approved {
                ChatInputResponseKind::Accept
            } else {
                ChatInputResponseKind::Cancel
            },
            answers: Object::new(),
            answered_by: None,
        },
        AgentEvent::Spawned { call, .. } => {
            AgentReply::ToolEnded { call: *call, result: ToolResult::new(approved, "Done") }
        }
        AgentEvent::Render { render, sections } => {
            AgentReply::Rendered { render: *render, sections: sections.clone() }
        }
        _ => return None,
    })
}

/// What a scene does, in the first words of its events.
async fn outline(text: &str, approved: bool) -> String {
    let mut session =
        ScriptedSession::new(builtin::script(), Locale::English, SessionContext::default());
    let (sender, mut receiver) = mpsc::channel(8);
    let replies = PendingReplies::default();
    let events = channel_sink(sender, replies.clone());
    let host = async {
        let mut words: Vec<String> = Vec::new();
        while let Some(event) = receiver.recv().await {
            let line = line(&event);
            let word = line.split(' ').next().unwrap().to_owned();
            if word != "checkpoint" && words.last() != Some(&word) {
                words.push(word);
            }
            if let Some(reply) = reply_to(&event, approved) {
                replies.deliver(reply).unwrap();
            }
            assert!(words.len() < 100, "it ends");
        }
        words.join(" ")
    };
    let turn = async {
        let events = events;
        session.turn(input(text), &events).await
    };
    let (words, result) = tokio::join!(host, turn);
    let end = match result {
        Ok(()) => "complete",
        Err(_) => "failed",
    };
    format!("{text}: {words} {end}\n")
}

#[tokio::test(start_paused = true)]
async fn every_scene_but_the_one_that_hangs_comes_to_its_end() {
    let mut outlines = String::new();
    for text in [
        "help", "hello", "stream 3", "stream", "think", "tool", "options", "edit", "ask",
        "subagent", "image", "prompt", "fail", "anything",
    ] {
        outlines.push_str(&outline(text, true).await);
    }
    for text in ["tool", "options", "edit", "ask", "subagent"] {
        outlines.push_str(&outline(text, false).await);
    }
    expect![[r#"
        help: open text complete
        hello: open text complete
        stream 3: open text complete
        stream: open text open text complete
        think: Activity(Some("Thinking")) open text Activity(None) open text Usage(UsageInfo complete
        tool: open text start input ready update completed open text complete
        options: open text start ready completed open text complete
        edit: open text content open text start ready completed open text complete
        ask: ask open text complete
        subagent: open text spawn open text complete
        image: open text content open text start ready completed complete
        prompt: render open text complete
        fail: open text failed
        anything: open text complete
        tool: open text start input ready open text complete
        options: open text start ready open text complete
        edit: open text content open text start ready open text complete
        ask: ask open text complete
        subagent: open text spawn open text complete
    "#]]
    .assert_eq(&outlines);
}
