//! What an action says about one turn, as someone who watches it needs to know it.
//!
//! Must not know: terminals, connections.

use serde_json::Value;
use wire::{Action, ActionKind};

/// What there is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    PartBegan(Text),
    Text(Text),
    Notice(String),
    Ended(Ending),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text {
    Markdown(String),
    Reasoning(String),
}

/// How the turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Cancelled,
    Failed {
        error_type: String,
        message: String,
        resumable: bool,
    },
}

/// Looks at an action of the chat for what it says about the turn.
pub(crate) fn see(turn_id: &str, action: &Action) -> Seen {
    if action.text("turnId") != Some(turn_id) {
        return Seen::Nothing;
    }
    let content = || action.text("content").unwrap_or("").to_owned();
    match action.name() {
        "chat/delta" => Seen::Text(Text::Markdown(content())),
        "chat/reasoning" => Seen::Text(Text::Reasoning(content())),
        "chat/responsePart" => action.get("part").map_or(Seen::Nothing, see_part),
        "chat/turnComplete" => Seen::Ended(Ending::Complete),
        "chat/turnCancelled" => Seen::Ended(Ending::Cancelled),
        "chat/error" => {
            let part = action.get("part").unwrap_or(&Value::Null);
            let text = |field: &str| {
                part["error"][field]
                    .as_str()
                    .unwrap_or("unknown")
                    .to_owned()
            };
            Seen::Ended(Ending::Failed {
                error_type: text("errorType"),
                message: text("message"),
                resumable: part["resumable"] == true,
            })
        }
        _ => Seen::Nothing,
    }
}

fn see_part(part: &Value) -> Seen {
    let content = &part["content"];
    // A notification is a string or `{"markdown": ...}`.
    let text = content
        .as_str()
        .or_else(|| content["markdown"].as_str())
        .unwrap_or("")
        .to_owned();
    match part["kind"].as_str() {
        Some("markdown") => Seen::PartBegan(Text::Markdown(text)),
        Some("reasoning") => Seen::PartBegan(Text::Reasoning(text)),
        Some("systemNotification") => Seen::Notice(text),
        _ => Seen::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_seen_through_its_actions() {
        let see = |name: &str, mut fields: Value| {
            fields["turnId"] = json!("t");
            see("t", &Action::host(ActionKind::from_name(name), fields))
        };
        let markdown = |text: &str| Text::Markdown(text.to_owned());
        let part = |part: Value| json!({"part": part});
        assert_eq!(
            see("chat/delta", json!({"content": "x"})),
            Seen::Text(markdown("x"))
        );
        assert_eq!(
            see("chat/reasoning", json!({"content": "x"})),
            Seen::Text(Text::Reasoning("x".to_owned()))
        );
        assert_eq!(
            see(
                "chat/responsePart",
                part(json!({"kind": "markdown", "id": "p", "content": "a"}))
            ),
            Seen::PartBegan(markdown("a"))
        );
        for content in [json!("note"), json!({"markdown": "note"})] {
            let part = part(json!({"kind": "systemNotification", "content": content}));
            assert_eq!(
                see("chat/responsePart", part),
                Seen::Notice("note".to_owned())
            );
        }
        assert_eq!(
            see("chat/turnComplete", json!({})),
            Seen::Ended(Ending::Complete)
        );
        assert_eq!(
            see("chat/turnCancelled", json!({})),
            Seen::Ended(Ending::Cancelled)
        );
        let error = json!({"error": {"errorType": "e", "message": "m"}, "resumable": true});
        let failed = Ending::Failed {
            error_type: "e".to_owned(),
            message: "m".to_owned(),
            resumable: true,
        };
        assert_eq!(see("chat/error", part(error)), Seen::Ended(failed));
    }

    #[test]
    fn other_turns_are_not_seen() {
        let action = Action::host(
            ActionKind::ChatDelta,
            json!({"turnId": "other", "content": "x"}),
        );
        assert_eq!(see("t", &action), Seen::Nothing);
    }
}
