//! The choices about a tool call as keys and lines.
//!
//! Promises: every choice has a key of its own; a letter means one thing only. An edited input is shown before it is sent.
//! Must not know: terminals, connections, the protocol.

use client::chat::{ConfirmOption, Confirmation, Decision, Subject, ToolDecision};

use super::line::{Line, Style};
use super::tool::{body, input_lines};
use super::wrap::wrap;
use crate::terminal::escape_line;

/// What the user chose to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    Decided(ToolDecision),
    /// The input is to be edited first.
    Edit(String),
    /// A text is to be typed: what to do instead.
    Suggest,
}

/// A choice, its label, and the keys that make it.
struct MenuItem<'a> {
    keys: Vec<char>,
    /// Keys that make it, too, without being shown.
    hidden_keys: Vec<char>,
    label: String,
    does: Does<'a>,
}

#[derive(Clone, Copy)]
enum Does<'a> {
    Choose(&'a ConfirmOption),
    Edit(&'a str),
    Suggest,
}

impl<'a> MenuItem<'a> {
    fn new(key: Option<char>, label: String, does: Does<'a>) -> Self {
        Self {
            keys: key.into_iter().collect(),
            hidden_keys: Vec::new(),
            label,
            does,
        }
    }

    fn has_key(&self, key: char) -> bool {
        self.keys.contains(&key) || self.hidden_keys.contains(&key)
    }

    fn decides(&self, decision: Decision) -> bool {
        matches!(self.does, Does::Choose(option) if option.decision == decision)
    }

    fn choose(&self, confirmation: &Confirmation) -> Choice {
        match self.does {
            Does::Choose(option) => Choice::Decided(confirmation.choose(option)),
            Does::Edit(input) => Choice::Edit(input.to_owned()),
            Does::Suggest => Choice::Suggest,
        }
    }
}

/// Everything that can be chosen, with its keys.
fn menu(confirmation: &Confirmation) -> Vec<MenuItem<'_>> {
    let subject = confirmation.subject();
    let options = confirmation.options().iter().enumerate();
    let mut items: Vec<MenuItem<'_>> = options
        .map(|(index, option)| {
            let digit = char::from_digit(index as u32 + 1, 10);
            MenuItem::new(digit, label(option, subject), Does::Choose(option))
        })
        .collect();
    if let Some(input) = confirmation.editable_input() {
        let label = "edit the input first".to_owned();
        items.push(MenuItem::new(Some('e'), label, Does::Edit(input)));
    }
    if confirmation.takes_suggestion() {
        let label = "deny and say what to do instead".to_owned();
        items.push(MenuItem::new(Some('d'), label, Does::Suggest));
    }
    give_letters(&mut items);
    items
}

fn label(option: &ConfirmOption, subject: Subject) -> String {
    match (&option.label, subject, option.decision) {
        (Some(label), _, _) => escape_line(label),
        (None, Subject::SignIn, _) => "Cancel this call".to_owned(),
        (None, Subject::Result, Decision::Approve) => "Yes, let the agent see it".to_owned(),
        (None, Subject::Call, Decision::Approve) => "Yes".to_owned(),
        (None, Subject::Call | Subject::Result, Decision::Deny) => "No".to_owned(),
    }
}

/// `y` and `n` where they can mean only one thing, and the first letter of a label where it is free.
fn give_letters(items: &mut [MenuItem<'_>]) {
    let mut taken: Vec<char> = items.iter().flat_map(|item| item.keys.clone()).collect();
    for (letter, decision) in [('y', Decision::Approve), ('n', Decision::Deny)] {
        let mut able: Vec<&mut MenuItem<'_>> = items
            .iter_mut()
            .filter(|item| item.decides(decision))
            .collect();
        if let [only] = &mut able[..] {
            taken.push(letter);
            only.keys.push(letter);
        }
    }
    for item in items {
        let initial = item.label.chars().next();
        let initial = initial.and_then(|c| c.to_lowercase().next());
        if let Some(initial) = initial.filter(|c| c.is_alphanumeric() && !taken.contains(c)) {
            taken.push(initial);
            match item.keys.len() {
                1 => item.keys.push(initial),
                _ => item.hidden_keys.push(initial),
            }
        }
    }
}

/// What a key chooses; nothing if it is none of the choices'.
pub(crate) fn choose_by_key(confirmation: &Confirmation, key: char) -> Option<Choice> {
    let key = key.to_lowercase().next().unwrap_or(key);
    let items = menu(confirmation);
    let item = items.iter().find(|item| item.has_key(key))?;
    Some(item.choose(confirmation))
}

/// What a line chooses: a key, a label, or a key with text behind it; nothing if it is none of the choices.
pub(crate) fn choose_by_line(confirmation: &mut Confirmation, line: &str) -> Option<Choice> {
    let line = line.trim();
    let mut chars = line.chars();
    if let (Some(key), "") = (chars.next(), chars.as_str()) {
        return choose_by_key(confirmation, key);
    }
    let items = menu(confirmation);
    let is_named = |item: &&MenuItem<'_>| item.label.to_lowercase() == line.to_lowercase();
    if let Some(item) = items.iter().find(is_named) {
        return Some(item.choose(confirmation));
    }
    let Some((key, text)) = line.split_once(' ') else {
        return match line.to_lowercase().as_str() {
            "yes" => choose_by_key(confirmation, 'y'),
            "no" => choose_by_key(confirmation, 'n'),
            _ => None,
        };
    };
    match (key, text.trim()) {
        ("d", text) if confirmation.takes_suggestion() => {
            Some(Choice::Decided(confirmation.deny(text)))
        }
        ("e", text) if confirmation.editable_input().is_some() => {
            confirmation.edit_input(text.to_owned());
            Some(Choice::Decided(confirmation.approve()))
        }
        _ => None,
    }
}

/// What can be chosen.
pub(crate) fn lines(confirmation: &Confirmation, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(edited) = confirmation.edited_input() {
        lines.extend(body("with this input instead:", Style::Warn, width));
        lines.extend(input_lines(edited, Style::Plain, width));
    }
    let items = menu(confirmation);
    let items = items.iter().map(|item| {
        let keys: Vec<String> = item.keys.iter().map(char::to_string).collect();
        format!("[{}] {}", keys.join("/"), item.label)
    });
    let choices = items.collect::<Vec<_>>().join("   ");
    let wrapped = wrap(&choices, width).into_iter();
    lines.extend(wrapped.map(|text| Line::new(Style::Bold, text)));
    lines
}

#[cfg(test)]
mod tests {
    use client::chat::PendingInput;
    use expect_test::expect;
    use serde_json::{Value, json};
    use wire::reduce::reduce_chat;
    use wire::state::ChatState;
    use wire::{Action, ActionKind};

    use super::*;

    /// A call that waits, as a chat shows it.
    fn confirmation(more: Value) -> Confirmation {
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        let call = |fields: Value| {
            let mut call = json!({"turnId": "t", "toolCallId": "c"});
            for (key, value) in fields.as_object().unwrap() {
                call[key] = value.clone();
            }
            call
        };
        let started = json!({"turnId": "t", "startedAt": "2026-11-15T08:00:00Z", "message": {}});
        let start = call(json!({"toolName": "x", "displayName": "X"}));
        let mut ready = json!({"invocationMessage": "Run"});
        for (key, value) in more.as_object().unwrap() {
            ready[key] = value.clone();
        }
        for (name, fields) in [
            ("chat/turnStarted", started),
            ("chat/toolCallStart", start),
            ("chat/toolCallReady", call(ready)),
        ] {
            reduce_chat(
                &mut chat,
                &Action::host(ActionKind::from_name(name), fields),
            );
        }
        match PendingInput::first_of(&chat) {
            Some(PendingInput::Confirmation(confirmation)) => confirmation,
            other => panic!("{other:?}"),
        }
    }

    fn draw(confirmation: &Confirmation) -> String {
        let lines = lines(confirmation, 60);
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn yes_and_no() {
        let mut plain = confirmation(json!({}));
        expect![[r#"
            [1/y] Yes   [2/n] No   [d] deny and say what to do instead
        "#]]
        .assert_eq(&draw(&plain));
        let yes = Some(Choice::Decided(plain.approve()));
        for answer in ["y", "1", "yes", "Y"] {
            assert_eq!(choose_by_line(&mut plain, answer), yes, "{answer}");
        }
        let no = Some(Choice::Decided(plain.deny("")));
        assert_eq!(choose_by_key(&plain, '2'), no);
        for answer in ["", "x", "3", "e", "yes please", "e {}"] {
            assert_eq!(choose_by_line(&mut plain, answer), None, "{answer}");
        }
        assert_eq!(choose_by_key(&plain, 'd'), Some(Choice::Suggest));
        let denied = Some(Choice::Decided(plain.deny("use cp")));
        assert_eq!(choose_by_line(&mut plain, "d use cp"), denied);
    }

    #[test]
    fn letters_mean_one_thing_only() {
        let one = confirmation(json!({"options": [
            {"id": "a", "label": "Allow", "kind": "approve"},
            {"id": "d", "label": "Deny", "kind": "deny"},
        ]}));
        expect![[r#"
            [1/y] Allow   [2/n] Deny   [d] deny and say what to do
            instead
        "#]]
        .assert_eq(&draw(&one));
        assert_eq!(choose_by_key(&one, 'a'), choose_by_key(&one, 'y'));
        let two = confirmation(json!({"options": [
            {"id": "a", "label": "Always", "kind": "approve"},
            {"id": "o", "label": "Once", "kind": "approve"},
            {"id": "n", "label": "Yell", "kind": "deny"},
        ]}));
        assert_eq!(
            choose_by_key(&two, 'y'),
            Some(Choice::Decided(two.choose(&two.options()[2]))),
            "the initial of its label"
        );
    }

    #[test]
    fn options_are_chosen_by_number_initial_or_label() {
        let mut offered = confirmation(json!({"options": [
            {"id": "once", "label": "Allow once", "kind": "approve"},
            {"id": "always", "label": "Always allow", "kind": "approve"},
            {"id": "never", "label": "Deny", "kind": "deny"},
            {"id": "odd", "label": "Something new", "kind": "ponder"},
        ]}));
        expect![[r#"
            [1/a] Allow once   [2] Always allow   [3/n] Deny   [d] deny
            and say what to do instead
        "#]]
        .assert_eq(&draw(&offered));
        let nth = |offered: &Confirmation, index: usize| {
            Some(Choice::Decided(offered.choose(&offered.options()[index])))
        };
        let always = nth(&offered, 1);
        assert_eq!(choose_by_line(&mut offered, "always allow"), always);
        assert_eq!(choose_by_key(&offered, 'a'), nth(&offered, 0));
        let denied = Some(Choice::Decided(offered.deny("better not")));
        assert_eq!(choose_by_line(&mut offered, "d better not"), denied);
    }

    #[test]
    fn an_edited_input_is_shown_and_sent() {
        let mut editable = confirmation(json!({"editable": true, "toolInput": "{\"n\":1}"}));
        let edit = Some(Choice::Edit("{\"n\":1}".to_owned()));
        assert_eq!(choose_by_key(&editable, 'e'), edit);
        editable.edit_input("{\"n\":2}".to_owned());
        expect![[r#"
              with this input instead:
              n: 2
            [1/y] Yes   [2/n] No   [e] edit the input first   [d] deny
            and say what to do instead
        "#]]
        .assert_eq(&draw(&editable));
        let edited = |choice: Option<Choice>| match choice {
            Some(Choice::Decided(decision)) => decision.edited_input,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            edited(choose_by_key(&editable, 'y')).as_deref(),
            Some("{\"n\":2}")
        );
        assert_eq!(edited(choose_by_key(&editable, 'n')), None);
        let typed = choose_by_line(&mut editable, "e {\"n\":3}");
        assert_eq!(edited(typed).as_deref(), Some("{\"n\":3}"));
    }
}
