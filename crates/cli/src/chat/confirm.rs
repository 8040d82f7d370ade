//! What can be chosen about a tool call, the same words and digits for every call (G-64).
//!
//! Promises: 1 approves, or signs in where a call waits for that, 2 denies, 3 denies and says why, 4 edits the input; further options follow from 5 on as the agent labelled
//! them. What cannot be done about a call is not offered, and its digit means nothing else. An edited input is shown
//! before it is sent.
//! Must not know: terminals, connections, the protocol.

use client::chat::{ConfirmOption, Confirmation, Decision, DecisionSubject};
use wire::Object;

use super::line::{Line, Style};
use super::prompt::{PromptAction, PromptField, PromptItem};
use super::tool::{Detail, body, input_lines_of, title_lines};
use crate::terminal::escape_line;

pub(crate) const APPROVE: &str = "Approve";
pub(crate) const DENY: &str = "Deny";
/// The digit of the first further option.
const OPTIONS_FROM: u32 = 5;

/// Everything that can be chosen.
pub(crate) fn items(confirmation: &Confirmation) -> Vec<PromptItem> {
    let mut items = Vec::new();
    let first = |decision: Decision| {
        let mut options = confirmation.options().iter();
        options.position(|option| option.decision == decision)
    };
    let (approve, deny) = (first(Decision::Approve), first(Decision::Deny));
    let option = |index: Option<usize>| index.and_then(|index| confirmation.options().get(index));
    if let Some(option) = option(approve) {
        let action = PromptAction::Decide(confirmation.choose(option));
        items.push(named('1', APPROVE, Some(option), action));
    }
    if let Some(wanted) = confirmation.wanted_token() {
        let action = PromptAction::SignIn(Box::new(wanted.clone()));
        items.push(PromptItem::new('1', "Sign in", action));
    }
    let denial = PromptAction::Decide(confirmation.deny(""));
    items.push(named('2', DENY, option(deny), denial));
    if confirmation.takes_suggestion() {
        let action = PromptAction::OpenField(PromptField::Reason);
        items.push(PromptItem::new('3', "Deny and say why", action));
    }
    if let Some(input) = confirmation.editable_input() {
        let action = PromptAction::Edit(input.to_owned());
        items.push(PromptItem::new('4', "Edit", action));
    }
    let further = confirmation
        .options()
        .iter()
        .enumerate()
        .filter(|(index, _)| ![approve, deny].contains(&Some(*index)));
    for (digit, (_, option)) in (OPTIONS_FROM..).zip(further) {
        items.push(PromptItem {
            digit: char::from_digit(digit, 10),
            word: escape_line(option.label.as_deref().unwrap_or("")),
            detail: String::new(),
            mark: None,
            action: PromptAction::Decide(confirmation.choose(option)),
        });
    }
    items
}

/// A fixed word, and behind it what the agent calls it: that says what exactly is granted.
fn named(
    digit: char,
    word: &str,
    option: Option<&ConfirmOption>,
    action: PromptAction,
) -> PromptItem {
    let label = option.and_then(|option| option.label.as_deref());
    let label = label.filter(|label| *label != word).unwrap_or("");
    PromptItem { detail: escape_line(label), ..PromptItem::new(digit, word, action) }
}

/// What is to be decided about the call that stands above.
pub(crate) fn lines(confirmation: &Confirmation, width: usize) -> Vec<Line> {
    match confirmation.subject() {
        DecisionSubject::Result => body("May the agent see this result?", Style::Bold, width),
        DecisionSubject::Call | DecisionSubject::SignIn => Vec::new(),
    }
}

/// The call with the input that somebody wrote for it, if somebody did: what it would have run with does not matter any more.
pub(crate) fn edited_lines(
    confirmation: &Confirmation,
    part: &Object,
    width: usize,
    detail: Detail,
) -> Option<Vec<Line>> {
    let edited = confirmation.edited_input()?;
    let call = part.get("toolCall")?.as_object()?;
    let mut lines = title_lines(call, width);
    lines.extend(body("with this input instead:", Style::Warn, width));
    lines.extend(input_lines_of(call, edited, width, detail));
    Some(lines)
}

#[cfg(test)]
mod tests {
    use client::chat::{PendingInput, ToolDecision};
    use expect_test::expect;
    use serde_json::{Value, json};
    use wire::reduce::reduce_chat;
    use wire::state::ChatState;
    use wire::{Action, ActionKind};

    use super::*;
    use crate::chat::prompt::PromptState;

    /// A call that waits, as a chat shows it.
    fn confirmation(more: Value) -> Confirmation {
        match PendingInput::first_of(&ready_call(more)) {
            Some(PendingInput::Confirmation(confirmation)) => confirmation,
            other => panic!("{other:?}"),
        }
    }

    fn ready_call(more: Value) -> ChatState {
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        let call = |fields: Value| {
            let mut call = json!({"turnId": "t", "toolCallId": "c"});
            for (key, value) in fields.as_object().unwrap() {
                call[key] = value.clone();
            }
            call
        };
        let started = json!({"turnId": "t", "startedAt": "2026-11-15T08:00:00Z", "message": {}});
        let server = json!({"kind": "mcp", "customizationId": "m"});
        let start = call(json!({"toolName": "x", "displayName": "X", "contributor": server}));
        let mut ready = json!({"invocationMessage": "Run"});
        for (key, value) in more.as_object().unwrap() {
            ready[key] = value.clone();
        }
        for (name, fields) in [
            ("chat/turnStarted", started),
            ("chat/toolCallStart", start),
            ("chat/toolCallReady", call(ready)),
        ] {
            reduce_chat(&mut chat, &Action::host(ActionKind::from_name(name), fields));
        }
        chat
    }

    fn draw(confirmation: &Confirmation) -> String {
        let mut drawn = lines(confirmation, 60);
        drawn.extend(PromptState::default().lines(&items(confirmation), 60, 99));
        drawn.pop(); // the hint
        drawn.iter().map(|line| format!("|{}\n", line.text())).collect()
    }

    fn decision(confirmation: &Confirmation, digit: char) -> Option<ToolDecision> {
        let items = items(confirmation);
        let item = items.into_iter().find(|item| item.digit == Some(digit))?;
        match item.action {
            PromptAction::Decide(decision) => Some(decision),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_words_and_digits_are_fixed() {
        let plain = confirmation(json!({}));
        expect![[r#"
            |  1 Approve
            |  2 Deny
            |  3 Deny and say why
        "#]]
        .assert_eq(&draw(&plain));
        assert_eq!(decision(&plain, '1'), Some(plain.approve()));
        assert_eq!(decision(&plain, '2'), Some(plain.deny("")));
        let native = confirmation(json!({"options": [
            {"id": "a", "label": "Approve", "kind": "approve"},
            {"id": "d", "label": "Deny", "kind": "deny"},
        ]}));
        assert_eq!(draw(&native), draw(&plain), "the label is the word");
    }

    #[test]
    fn further_options_follow_from_5_on_as_they_are_labelled() {
        let offered = confirmation(json!({"options": [
            {"id": "never", "label": "Never", "kind": "deny"},
            {"id": "once", "label": "Allow once", "kind": "approve"},
            {"id": "always", "label": "Always allow", "kind": "approve"},
            {"id": "not-now", "label": "Not now\u{1b}[2J", "kind": "deny"},
            {"id": "odd", "label": "Something new", "kind": "ponder"},
        ]}));
        expect![[r#"
            |  1 Approve: Allow once
            |  2 Deny: Never
            |  3 Deny and say why
            |  5 Always allow
            |  6 Not now\x1b[2J
        "#]]
        .assert_eq(&draw(&offered));
        let nth = |index: usize| Some(offered.choose(&offered.options()[index]));
        assert_eq!(decision(&offered, '1'), nth(1));
        assert_eq!(decision(&offered, '2'), nth(0));
        assert_eq!(decision(&offered, '5'), nth(2));
        let refusing = confirmation(json!({"options": [
            {"id": "never", "label": "Never", "kind": "deny"},
        ]}));
        assert_eq!(decision(&refusing, '1'), None, "nothing there approves");
    }

    #[test]
    fn what_cannot_be_done_about_a_call_is_not_offered() {
        let of = |name: &str, fields: Value| {
            let mut chat = ready_call(json!({}));
            for (name, fields) in [
                ("chat/toolCallConfirmed", json!({"approved": true, "confirmed": "user-action"})),
                (name, fields),
            ] {
                let mut action = json!({"turnId": "t", "toolCallId": "c"});
                for (key, value) in fields.as_object().unwrap() {
                    action[key] = value.clone();
                }
                let action = Action::host(ActionKind::from_name(name), action);
                reduce_chat(&mut chat, &action);
            }
            match PendingInput::first_of(&chat) {
                Some(PendingInput::Confirmation(confirmation)) => draw(&confirmation),
                other => panic!("{other:?}"),
            }
        };
        let result = json!({"result": {"success": true}, "requiresResultConfirmation": true});
        expect![[r#"
            |  May the agent see this result?
            |  1 Approve
            |  2 Deny
        "#]]
        .assert_eq(&of("chat/toolCallComplete", result));
        let auth = json!({"auth": {"resource": "https://example.org"}});
        expect![[r#"
            |  2 Deny
        "#]]
        .assert_eq(&of("chat/toolCallAuthRequired", auth));
        let auth = json!({"auth": {"resource": {"resource": "https://example.org"}}});
        expect![[r#"
            |  1 Sign in
            |  2 Deny
        "#]]
        .assert_eq(&of("chat/toolCallAuthRequired", auth));
    }

    #[test]
    fn many_options_are_reached_by_arrows() {
        let options: Vec<Value> = (0..8)
            .map(|n| json!({"id": n.to_string(), "label": format!("Way {n}"), "kind": "approve"}))
            .collect();
        let items = items(&confirmation(json!({"options": options})));
        let digits: String = items.iter().map(|item| item.digit.unwrap_or('·')).collect();
        assert_eq!(digits, "12356789··");
    }

    #[test]
    fn an_edited_input_is_shown_and_sent_with_the_approval_only() {
        let mut editable = confirmation(json!({"editable": true, "toolInput": "{\"n\":1}"}));
        let part = json!({"kind": "toolCall", "toolCall": {"displayName": "X"}});
        let drawn = |editable: &Confirmation, detail| {
            let lines = edited_lines(editable, part.as_object().unwrap(), 60, detail);
            lines.map(|lines| lines.iter().map(Line::text).collect::<Vec<String>>())
        };
        assert_eq!(drawn(&editable, Detail::Brief), None);
        let long = json!({"n": "x\n".repeat(40) + "end"}).to_string();
        editable.edit_input(long);
        let brief = drawn(&editable, Detail::Brief).unwrap();
        assert_eq!(brief.last().unwrap(), "  … 30 more lines (Ctrl-O)");
        let whole = drawn(&editable, Detail::Whole).unwrap();
        assert_eq!(whole.last().unwrap(), "    end");
        editable.edit_input("{\"n\":2}".to_owned());
        let brief = drawn(&editable, Detail::Brief).unwrap();
        assert_eq!(brief, ["? X", "  with this input instead:", "  n: 2"]);
        expect![[r#"
            |  1 Approve
            |  2 Deny
            |  3 Deny and say why
            |  4 Edit
        "#]]
        .assert_eq(&draw(&editable));
        let edited = |digit| decision(&editable, digit).and_then(|decided| decided.edited_input);
        assert_eq!(edited('1').as_deref(), Some("{\"n\":2}"));
        assert_eq!(edited('2'), None);
    }
}
