//! Bodies of agent events: the runner detaches and stores them before the kernel gets the event.

use agent_api::AgentEvent;
use serde_json::{Value, json};
use wire::Digest;

use super::{UnstoredBody, clip_content, detach_result, fill_names};

/// Lifts what is too large for state out of an event. What only shows a call that still runs is clipped.
pub fn detach_from_event(event: &mut AgentEvent, bytes_max: usize) -> Vec<UnstoredBody> {
    match event {
        AgentEvent::ToolContent { content, .. } => {
            clip_content(content, bytes_max);
            Vec::new()
        }
        AgentEvent::ToolCompleted { result, .. } | AgentEvent::ToolRefused { result, .. } => {
            detach_result(result.object_mut(), bytes_max)
        }
        _ => Vec::new(),
    }
}

/// Fills in the names of what was kept. What could not be is said in its pointer: the call is over all the same.
pub fn fill_event(
    event: &mut AgentEvent,
    pointers: Vec<String>,
    kept: Result<Vec<(String, Digest)>, String>,
) {
    // Nothing was detached from any other event.
    let (AgentEvent::ToolCompleted { result, .. } | AgentEvent::ToolRefused { result, .. }) = event
    else {
        return;
    };
    let object = result.object_mut();
    let mut value = Value::Object(std::mem::take(object));
    match kept {
        Ok(names) => fill_names(&mut value, names),
        Err(why) => {
            for pointer in pointers {
                if let Some(reference) = value.pointer_mut(&pointer) {
                    let text = format!("[{} bytes are lost: {why}]", reference["sizeHint"]);
                    *reference = json!({"type": "text", "text": text});
                }
            }
        }
    }
    if let Value::Object(filled) = value {
        *object = filled;
    }
}

#[cfg(test)]
mod tests {
    use agent_api::ToolResult;

    use super::*;

    fn completed() -> AgentEvent {
        let content =
            json!([{"type": "text", "text": "x".repeat(70_000)}]).as_array().cloned().unwrap();
        AgentEvent::ToolCompleted {
            call: 1,
            result: ToolResult::new(true, "").with_content(content),
            review: false,
        }
    }

    fn content_of(event: &AgentEvent) -> &Value {
        match event {
            AgentEvent::ToolCompleted { result, .. } => result.get("content").unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_that_could_not_be_kept_says_so_after_its_preview() {
        let mut event = completed();
        let pointers =
            detach_from_event(&mut event, 65_536).into_iter().map(|body| body.pointer).collect();
        fill_event(&mut event, pointers, Err("the disk is full".to_owned()));
        let content = content_of(&event);
        assert_eq!(content[0]["text"].as_str().unwrap().len(), 4_096);
        assert_eq!(content[1]["text"], "[70000 bytes are lost: the disk is full]");
    }

    #[test]
    fn a_result_that_was_kept_is_named() {
        let mut event = completed();
        let mut bodies = detach_from_event(&mut event, 65_536);
        let digest = Digest::new([1; 32]);
        let names = vec![(bodies.remove(0).pointer, digest)];
        fill_event(&mut event, Vec::new(), Ok(names));
        assert_eq!(content_of(&event)[1]["uri"], digest.uri());
    }
}
