//! A tool call that waits for a decision: what can be chosen, and what each choice says to the host.
//!
//! Promises: nothing is approved but by a choice that says so. An edited input is shown and sent only with an approval.
//! Must not know: terminals, connections.

use serde_json::{Value, json};
use wire::Object;

use super::styled::{Line, Style};
use super::tool::{body, input_text, text_of};
use super::wrap::wrap;
use crate::terminal::clean_line;

/// The decision that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Confirm {
    turn_id: String,
    call_id: String,
    about: About,
    choices: Vec<Choice>,
    /// The input as it is, if it may be changed.
    input: Option<String>,
    edited: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// May it run?
    Call,
    /// May the agent see what came out?
    Result,
    /// It waits for a sign-in that this client cannot do.
    SignIn,
}

#[derive(Debug, Clone, PartialEq)]
struct Choice {
    keys: Vec<char>,
    /// Keys that do it, too, without being shown.
    also: Vec<char>,
    label: String,
    does: Does,
}

#[derive(Debug, Clone, PartialEq)]
enum Does {
    Decide {
        decision: Decision,
        option: Option<String>,
    },
    Edit,
    Suggest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Approve,
    Deny,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Chosen {
    /// The action that says it to the host.
    Act(Value),
    /// The input is to be edited first.
    Edit(String),
    /// A text is to be typed: what to do instead.
    Suggest,
    /// Not one of the choices.
    Nothing,
}

impl Confirm {
    /// The decision a call waits for, if it does.
    pub(crate) fn of(turn_id: &str, call: &Object) -> Option<Self> {
        let about = match call.get("status").and_then(Value::as_str) {
            Some("pending-confirmation") => About::Call,
            Some("pending-result-confirmation") => About::Result,
            Some("auth-required") => About::SignIn,
            _ => return None,
        };
        let editable = about == About::Call && call.get("editable") == Some(&Value::Bool(true));
        let input = call.get("toolInput").and_then(Value::as_str);
        let input = input.filter(|_| editable).map(str::to_owned);
        let options = call.get("options").and_then(Value::as_array);
        let options = options.map_or(&[][..], Vec::as_slice);
        let mut choices = match about {
            About::Call if !options.is_empty() => options.iter().filter_map(offered).collect(),
            About::Call => vec![plain("Yes", Decision::Approve), plain("No", Decision::Deny)],
            About::Result => vec![
                plain("Yes, let the agent see it", Decision::Approve),
                plain("No", Decision::Deny),
            ],
            About::SignIn => vec![plain("Give this call up", Decision::Deny)],
        };
        for (index, choice) in choices.iter_mut().enumerate() {
            choice.keys.extend(char::from_digit(index as u32 + 1, 10));
        }
        if input.is_some() {
            choices.push(special('e', "edit the input first", Does::Edit));
        }
        if about == About::Call {
            choices.push(special(
                'd',
                "deny and say what to do instead",
                Does::Suggest,
            ));
        }
        let mut confirm = Self {
            turn_id: turn_id.to_owned(),
            call_id: call.get("toolCallId")?.as_str()?.to_owned(),
            about,
            choices,
            input,
            edited: None,
        };
        confirm.give_letters();
        Some(confirm)
    }

    /// `y` and `n` where they can mean only one thing, and the first letter of a label where it is free.
    fn give_letters(&mut self) {
        let taken = self.choices.iter().flat_map(|choice| choice.keys.clone());
        let mut taken: Vec<char> = taken.collect();
        for (letter, wanted) in [('y', Decision::Approve), ('n', Decision::Deny)] {
            let decides = |choice: &&mut Choice| matches!(choice.does, Does::Decide { decision, .. } if decision == wanted);
            let mut able: Vec<&mut Choice> = self.choices.iter_mut().filter(decides).collect();
            if let [only] = &mut able[..] {
                taken.push(letter);
                only.keys.push(letter);
            }
        }
        for choice in &mut self.choices {
            let initial = choice.label.chars().next();
            let initial = initial.and_then(|c| c.to_lowercase().next());
            if let Some(initial) = initial.filter(|c| c.is_alphanumeric() && !taken.contains(c)) {
                taken.push(initial);
                match choice.keys.len() {
                    1 => choice.keys.push(initial),
                    _ => choice.also.push(initial),
                }
            }
        }
    }

    /// The same question, whatever was edited meanwhile?
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (
            &self.turn_id,
            &self.call_id,
            self.about,
            &self.choices,
            &self.input,
        ) == (
            &other.turn_id,
            &other.call_id,
            other.about,
            &other.choices,
            &other.input,
        )
    }

    pub(crate) fn set_edited(&mut self, input: String) {
        self.edited = Some(input).filter(|edited| Some(edited) != self.input.as_ref());
    }

    /// A key was pressed.
    pub(crate) fn key(&self, key: char) -> Chosen {
        let key = key.to_lowercase().next().unwrap_or(key);
        let does = |choice: &&Choice| choice.keys.contains(&key) || choice.also.contains(&key);
        let choice = self.choices.iter().find(does);
        choice.map_or(Chosen::Nothing, |choice| self.choose(choice))
    }

    /// A line was typed: a key, a label, or a key with text behind it.
    pub(crate) fn line(&mut self, line: &str) -> Chosen {
        let line = line.trim();
        let mut chars = line.chars();
        if let (Some(key), "") = (chars.next(), chars.as_str()) {
            return self.key(key);
        }
        let same = |choice: &&Choice| choice.label.to_lowercase() == line.to_lowercase();
        if let Some(choice) = self.choices.iter().find(same) {
            return self.choose(choice);
        }
        let Some((key, text)) = line.split_once(' ') else {
            return match line.to_lowercase().as_str() {
                "yes" => self.key('y'),
                "no" => self.key('n'),
                _ => Chosen::Nothing,
            };
        };
        match (key, text.trim()) {
            ("d", text) if self.offers(&Does::Suggest) => Chosen::Act(self.deny(text)),
            ("e", text) if self.input.is_some() => {
                self.set_edited(text.to_owned());
                Chosen::Act(self.decide(Decision::Approve, self.first(Decision::Approve)))
            }
            _ => Chosen::Nothing,
        }
    }

    /// Denies, and says what to do instead.
    pub(crate) fn deny(&self, suggestion: &str) -> Value {
        let mut action = self.decide(Decision::Deny, self.first(Decision::Deny));
        let suggestion = suggestion.trim();
        if !suggestion.is_empty() {
            action["userSuggestion"] = json!({"text": suggestion, "origin": {"kind": "user"}});
        }
        action
    }

    fn offers(&self, does: &Does) -> bool {
        self.choices.iter().any(|choice| choice.does == *does)
    }

    fn choose(&self, choice: &Choice) -> Chosen {
        match &choice.does {
            Does::Decide { decision, option } => {
                Chosen::Act(self.decide(*decision, option.as_deref()))
            }
            Does::Edit => {
                let input = self.edited.as_ref().or(self.input.as_ref());
                Chosen::Edit(input.cloned().unwrap_or_default())
            }
            Does::Suggest => Chosen::Suggest,
        }
    }

    /// The first option of a kind, for a decision that was made without naming one.
    fn first(&self, wanted: Decision) -> Option<&str> {
        self.choices.iter().find_map(|choice| match &choice.does {
            Does::Decide { decision, option } if *decision == wanted => option.as_deref(),
            _ => None,
        })
    }

    fn decide(&self, decision: Decision, option: Option<&str>) -> Value {
        let approved = decision == Decision::Approve;
        let mut action = json!({"turnId": self.turn_id, "toolCallId": self.call_id});
        match self.about {
            About::Call => {
                action["type"] = json!("chat/toolCallConfirmed");
                action["approved"] = json!(approved);
                if approved {
                    action["confirmed"] = json!("user-action");
                } else {
                    action["reason"] = json!("denied");
                }
                if let Some(option) = option {
                    action["selectedOptionId"] = json!(option);
                }
                if let (Decision::Approve, Some(edited)) = (decision, &self.edited) {
                    action["editedToolInput"] = json!(edited);
                }
            }
            About::Result => {
                action["type"] = json!("chat/toolCallResultConfirmed");
                action["approved"] = json!(approved);
            }
            About::SignIn => {
                action["type"] = json!("chat/toolCallComplete");
                action["result"] = json!({
                    "success": false,
                    "pastTenseMessage": "The user did not sign in",
                    "error": {"message": "the user did not sign in"},
                });
            }
        }
        action
    }

    /// What can be chosen.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(edited) = &self.edited {
            lines.extend(body("with this input instead:", Style::Warn, width));
            let edited = input_text(Some(&json!(edited)));
            lines.extend(body(&edited, Style::Plain, width));
        }
        let choices = self.choices.iter().map(|choice| {
            let keys: Vec<String> = choice.keys.iter().map(char::to_string).collect();
            format!("[{}] {}", keys.join("/"), choice.label)
        });
        let choices = choices.collect::<Vec<_>>().join("   ");
        let wrapped = wrap(&choices, width).into_iter();
        lines.extend(wrapped.map(|text| Line::new(Style::Bold, text)));
        lines
    }
}

fn offered(option: &Value) -> Option<Choice> {
    let decision = match option["kind"].as_str()? {
        "approve" => Decision::Approve,
        "deny" => Decision::Deny,
        // Whatever else it may mean, it cannot be chosen for what it says.
        _ => return None,
    };
    Some(Choice {
        keys: Vec::new(),
        also: Vec::new(),
        label: clean_line(&text_of(option.get("label"))),
        does: Does::Decide {
            decision,
            option: Some(option["id"].as_str()?.to_owned()),
        },
    })
}

fn plain(label: &str, decision: Decision) -> Choice {
    Choice {
        keys: Vec::new(),
        also: Vec::new(),
        label: label.to_owned(),
        does: Does::Decide {
            decision,
            option: None,
        },
    }
}

fn special(key: char, label: &str, does: Does) -> Choice {
    Choice {
        keys: vec![key],
        also: Vec::new(),
        label: label.to_owned(),
        does,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn confirm(more: Value) -> Confirm {
        let mut call = json!({"toolCallId": "c", "status": "pending-confirmation"});
        for (key, value) in more.as_object().unwrap() {
            call[key] = value.clone();
        }
        Confirm::of("t", call.as_object().unwrap()).unwrap()
    }

    fn shown(confirm: &Confirm) -> String {
        let lines = confirm.lines(60);
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    fn act(chosen: Chosen) -> Value {
        match chosen {
            Chosen::Act(action) => action,
            other => panic!("{other:?}"),
        }
    }

    fn decided(approved: bool) -> Value {
        let mut action = json!({
            "type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "c", "approved": approved,
        });
        if approved {
            action["confirmed"] = json!("user-action");
        } else {
            action["reason"] = json!("denied");
        }
        action
    }

    #[test]
    fn yes_and_no() {
        let mut plain = confirm(json!({}));
        expect![[r#"
            [1/y] Yes   [2/n] No   [d] deny and say what to do instead
        "#]]
        .assert_eq(&shown(&plain));
        for answer in ["y", "1", "yes", "Y"] {
            assert_eq!(act(plain.line(answer)), decided(true), "{answer}");
        }
        assert_eq!(act(plain.key('2')), decided(false));
        for answer in ["", "x", "3", "e", "yes please", "e {}"] {
            assert_eq!(plain.line(answer), Chosen::Nothing, "{answer}");
        }
        assert_eq!(plain.key('d'), Chosen::Suggest);
        let mut denied = decided(false);
        denied["userSuggestion"] = json!({"text": "use cp", "origin": {"kind": "user"}});
        assert_eq!(act(plain.line("d use cp")), denied);
        assert_eq!(plain.deny("use cp"), denied);
    }

    #[test]
    fn letters_mean_one_thing_only() {
        let one = confirm(json!({"options": [
            {"id": "a", "label": "Allow", "kind": "approve"},
            {"id": "d", "label": "Deny", "kind": "deny"},
        ]}));
        expect![[r#"
            [1/y] Allow   [2/n] Deny   [d] deny and say what to do
            instead
        "#]]
        .assert_eq(&shown(&one));
        assert_eq!(one.key('a'), one.key('y'));
        let two = confirm(json!({"options": [
            {"id": "a", "label": "Always", "kind": "approve"},
            {"id": "o", "label": "Once", "kind": "approve"},
            {"id": "n", "label": "Yell", "kind": "deny"},
        ]}));
        assert_eq!(
            act(two.key('y'))["approved"],
            false,
            "the initial of its label"
        );
    }

    #[test]
    fn options_are_chosen_by_number_initial_or_label() {
        let mut offered = confirm(json!({"options": [
            {"id": "once", "label": "Allow once", "kind": "approve"},
            {"id": "always", "label": "Always allow", "kind": "approve"},
            {"id": "never", "label": "Deny", "kind": "deny"},
            {"id": "odd", "label": "Something new", "kind": "ponder"},
        ]}));
        expect![[r#"
            [1/a] Allow once   [2] Always allow   [3/n] Deny   [d] deny
            and say what to do instead
        "#]]
        .assert_eq(&shown(&offered));
        assert_eq!(
            act(offered.line("always allow"))["selectedOptionId"],
            "always"
        );
        assert_eq!(act(offered.key('a'))["selectedOptionId"], "once");
        let denied = act(offered.line("d better not"));
        assert_eq!(
            (&denied["selectedOptionId"], &denied["approved"]),
            (&json!("never"), &json!(false))
        );
    }

    #[test]
    fn an_edited_input_goes_with_the_approval_only() {
        let mut editable = confirm(json!({"editable": true, "toolInput": "{\"n\":1}"}));
        assert_eq!(editable.key('e'), Chosen::Edit("{\"n\":1}".to_owned()));
        editable.set_edited("{\"n\":2}".to_owned());
        expect![[r#"
              with this input instead:
              n: 2
            [1/y] Yes   [2/n] No   [e] edit the input first   [d] deny
            and say what to do instead
        "#]]
        .assert_eq(&shown(&editable));
        assert_eq!(act(editable.key('y'))["editedToolInput"], "{\"n\":2}");
        assert_eq!(act(editable.key('n')).get("editedToolInput"), None);
        editable.set_edited("{\"n\":1}".to_owned());
        assert_eq!(
            act(editable.key('y')).get("editedToolInput"),
            None,
            "unchanged"
        );
        assert_eq!(
            act(editable.line("e {\"n\":3}"))["editedToolInput"],
            "{\"n\":3}"
        );
        let fixed = confirm(json!({"editable": true, "toolInput": {"uri": "ahp-content:/x"}}));
        assert_eq!(
            fixed.key('e'),
            Chosen::Nothing,
            "a reference cannot be edited here"
        );
    }

    #[test]
    fn results_and_sign_ins_are_decided_too() {
        let result = confirm(json!({"status": "pending-result-confirmation"}));
        let expected = json!({
            "type": "chat/toolCallResultConfirmed", "turnId": "t", "toolCallId": "c", "approved": true,
        });
        assert_eq!(act(result.key('y')), expected);
        assert_eq!(result.key('d'), Chosen::Nothing);
        let sign_in = confirm(json!({"status": "auth-required"}));
        assert_eq!(act(sign_in.key('1'))["type"], "chat/toolCallComplete");
        let running = json!({"toolCallId": "c", "status": "running"});
        assert_eq!(Confirm::of("t", running.as_object().unwrap()), None);
    }
}
