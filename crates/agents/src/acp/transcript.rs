//! A conversation so far, for an agent that does not have it (AG-44).
//!
//! Promises: bounded: the newest turns are whole, what is left out is said. Holds what was said and which calls were made, not their output.
//! Must not know: why the agent does not have it.

use agent_api::PastTurn;
use serde_json::{Value, json};

use super::label::label;

const TRANSCRIPT_BYTES_MAX: usize = 128 * 1_024;

/// Quoted of what an interrupted turn had said.
const QUOTE_BYTES_MAX: usize = 2 * 1_024;

pub(super) const URI: &str = "greenroom:transcript";

/// The transcript of these turns, oldest first; none if there is nothing to tell.
pub(super) fn of_turns(turns: &[PastTurn], window_tokens: Option<u64>) -> Option<String> {
    // A third of the window, at four bytes a token.
    let window = window_tokens.map(|tokens| usize::try_from(tokens / 3 * 4).unwrap_or(usize::MAX));
    let bytes_max = window.unwrap_or(usize::MAX).clamp(4 * 1_024, TRANSCRIPT_BYTES_MAX);
    let mut told = Vec::new();
    let mut bytes = 0;
    for past in turns.iter().rev() {
        let text = of_turn(&past.turn);
        if text.is_empty() {
            continue;
        }
        if bytes + text.len() > bytes_max {
            if told.is_empty() {
                told.push(end_of(&text, bytes_max).to_owned());
            }
            break;
        }
        bytes += text.len();
        told.push(text);
    }
    if told.is_empty() {
        return None;
    }
    let left_out = turns.len() - told.len().min(turns.len());
    let mut text =
        "This is the conversation so far, from another session. Go on from its end.\n\n".to_owned();
    if left_out > 0 {
        text.push_str(&format!("[{left_out} earlier turns are left out]\n\n"));
    }
    told.reverse();
    text.push_str(&told.join("\n"));
    Some(text)
}

/// How many tokens the agent's model takes, as the newest turn says that tells it.
pub(super) fn window_of(turns: &[PastTurn]) -> Option<u64> {
    turns.iter().rev().find_map(|past| {
        let size = past.turn["usage"]["_meta"]["contextSize"].as_u64();
        size.filter(|size| *size > 0)
    })
}

/// The block of a prompt that holds a transcript.
pub(super) fn to_block(text: &str, takes_resources: bool) -> Value {
    if takes_resources {
        json!({"type": "resource", "resource": {"uri": URI, "mimeType": "text/plain", "text": text}})
    } else {
        json!({"type": "text", "text": text})
    }
}

/// The prompt that goes on with a turn that was interrupted.
pub(super) fn resume_prompt(response_parts: &[Value]) -> String {
    let mut prompt = "Continue the work on the last message; it was interrupted.".to_owned();
    let said = of_parts(response_parts);
    let said = end_of(said.trim(), QUOTE_BYTES_MAX);
    if !said.is_empty() {
        prompt.push_str("\n\nThe last that you had said and done:\n\n");
        prompt.push_str(said);
    }
    prompt
}

fn of_turn(turn: &Value) -> String {
    let mut text = String::new();
    let message = turn["message"]["text"].as_str().unwrap_or_default();
    if !message.trim().is_empty() {
        text.push_str(&format!("User:\n{}\n\n", message.trim()));
    }
    let parts = turn["responseParts"].as_array();
    let said = of_parts(parts.map_or(&[], Vec::as_slice));
    if !said.trim().is_empty() {
        text.push_str(&format!("Assistant:\n{}\n", said.trim()));
    }
    text
}

fn of_parts(parts: &[Value]) -> String {
    let mut text = String::new();
    for part in parts {
        match part["kind"].as_str() {
            Some("markdown") => text.push_str(part["content"].as_str().unwrap_or_default()),
            Some("toolCall") => {
                let line = of_call(&part["toolCall"]);
                text.push_str(&format!("\n[{line}]\n"));
            }
            Some("systemNotification") => {
                let steering = part["_meta"][wire::meta::STEERING]["text"].as_str();
                if let Some(steering) = steering {
                    text.push_str(&format!("\n[The user added: {steering}]\n"));
                }
            }
            _ => {} // thoughts, and what is for clients alone
        }
    }
    text
}

fn of_call(call: &Value) -> String {
    let title = |field: &str| match &call[field] {
        Value::String(text) => Some(text.clone()),
        Value::Object(markdown) => markdown.get("markdown")?.as_str().map(ToOwned::to_owned),
        _ => None,
    };
    let title = title("pastTenseMessage")
        .or_else(|| title("invocationMessage"))
        .or_else(|| call["displayName"].as_str().map(ToOwned::to_owned));
    let title = label(&title.unwrap_or_else(|| "a tool call".to_owned()), 300);
    let outcome = match (call["status"].as_str(), &call["success"]) {
        (Some("completed"), Value::Bool(true)) => "done",
        (Some("completed"), _) => "failed",
        (Some("cancelled"), _) => "not done",
        _ => "interrupted",
    };
    format!("{title}: {outcome}")
}

fn end_of(text: &str, bytes_max: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes_max));
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(message: &str, parts: Value) -> PastTurn {
        PastTurn {
            turn: json!({"message": {"text": message}, "responseParts": parts}),
            ..PastTurn::default()
        }
    }

    #[test]
    fn who_said_what_and_what_was_done() {
        let parts = json!([
            {"kind": "reasoning", "content": "secret thoughts"},
            {"kind": "markdown", "content": "I look."},
            {"kind": "toolCall", "toolCall": {"status": "completed", "success": true, "pastTenseMessage": "Read a.txt", "content": [{"type": "text", "text": "body"}]}},
            {"kind": "toolCall", "toolCall": {"status": "cancelled", "invocationMessage": {"markdown": "rm"}}},
            {"kind": "markdown", "content": "Done."},
        ]);
        let text = of_turns(&[past("hello", parts)], None).unwrap();
        assert!(
            text.ends_with(
                "User:\nhello\n\nAssistant:\nI look.\n[Read a.txt: done]\n\n[rm: not done]\nDone.\n"
            ),
            "{text}"
        );
        assert!(!text.contains("secret") && !text.contains("body"));
        assert_eq!(of_turns(&[], None), None);
    }

    #[test]
    fn the_newest_turns_are_whole_and_the_cut_is_named() {
        let turns: Vec<PastTurn> =
            (0..100).map(|n| past(&format!("{n}:{}", "x".repeat(10_000)), json!([]))).collect();
        let text = of_turns(&turns, None).unwrap();
        assert!(text.len() < TRANSCRIPT_BYTES_MAX + 1_000);
        assert!(
            text.contains("99:x") && text.contains("[87 earlier turns are left out]"),
            "{}",
            &text[..200]
        );
        let small = of_turns(&turns, Some(10_000)).unwrap();
        assert!(small.len() < 14_500 && small.contains("99:x"), "{}", small.len());
    }

    #[test]
    fn ag_44_a_transcript_takes_a_third_of_the_window_that_was_told_last() {
        let told = |size: u64| PastTurn {
            turn: json!({"message": {"text": "x"}, "usage": {"_meta": {"contextSize": size}}}),
            ..PastTurn::default()
        };
        assert_eq!(window_of(&[past("a", json!([]))]), None);
        let turns = [told(200_000), told(8_000), told(0), past("a", json!([]))];
        assert_eq!(window_of(&turns), Some(8_000));
    }

    #[test]
    fn an_interrupted_turn_is_quoted() {
        let said = json!([{"kind": "markdown", "content": "ä".repeat(5_000)}, {"kind": "markdown", "content": "the end"}]);
        let prompt = resume_prompt(said.as_array().unwrap());
        assert!(prompt.starts_with("Continue the work on the last message; it was interrupted."));
        assert!(prompt.ends_with("the end") && prompt.len() < 2_300);
        assert_eq!(
            resume_prompt(&[]),
            "Continue the work on the last message; it was interrupted."
        );
    }
}
