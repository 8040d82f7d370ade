//! A tool call that waits for a decision: what can be chosen, and the action for each choice.
//!
//! Promises: nothing is approved but by a choice that says so. An edited input is sent only with an approval.
//! Must not know: connections, how choices are shown and made.

use serde_json::{Value, json};
use wire::Object;

use super::WantedToken;

/// The decision that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmation {
    turn_id: String,
    call_id: String,
    subject: DecisionSubject,
    options: Vec<ConfirmOption>,
    /// The input as it is, if it may be changed.
    input: Option<String>,
    /// What the decision is about, as it is shown.
    about: Vec<Value>,
    /// The token that it waits for.
    wanted_token: Option<WantedToken>,
    edited: Option<String>,
}

/// The fields of a call that say what is decided on.
const ABOUT: [&str; 7] = [
    "toolInput",
    "invocationMessage",
    "confirmationTitle",
    "edits",
    "pastTenseMessage",
    "content",
    "error",
];

/// What is to be decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionSubject {
    /// May it run?
    Call,
    /// May the agent see what came out?
    Result,
    /// It waits for a token: the user signs in, or cancels it.
    SignIn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Approve,
    Deny,
}

/// One of the choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmOption {
    pub decision: Decision,
    /// The agent's own label; none for a plain yes or no.
    pub label: Option<String>,
    id: Option<String>,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDecision {
    pub decision: Decision,
    /// The input the call is to run with instead of its own.
    pub edited_input: Option<String>,
    /// What to do instead of a call that was denied.
    pub suggestion: Option<String>,
    turn_id: String,
    call_id: String,
    subject: DecisionSubject,
    option_id: Option<String>,
}

impl Confirmation {
    /// The decision a call waits for, if it does.
    pub(super) fn of(turn_id: &str, call: &Object) -> Option<Self> {
        let subject = match call.get("status").and_then(Value::as_str) {
            Some("pending-confirmation") => DecisionSubject::Call,
            Some("pending-result-confirmation") => DecisionSubject::Result,
            Some("auth-required") => DecisionSubject::SignIn,
            _ => return None,
        };
        let is_editable =
            subject == DecisionSubject::Call && call.get("editable") == Some(&Value::Bool(true));
        let input = call
            .get("toolInput")
            .and_then(Value::as_str)
            .filter(|_| is_editable)
            .map(str::to_owned);
        let offered = call.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let options = match subject {
            DecisionSubject::Call if !offered.is_empty() => {
                offered.iter().filter_map(ConfirmOption::read).collect()
            }
            DecisionSubject::Call | DecisionSubject::Result => {
                vec![ConfirmOption::plain(Decision::Approve), ConfirmOption::plain(Decision::Deny)]
            }
            DecisionSubject::SignIn => vec![ConfirmOption::plain(Decision::Deny)],
        };
        Some(Self {
            turn_id: turn_id.to_owned(),
            call_id: call.get("toolCallId")?.as_str()?.to_owned(),
            subject,
            options,
            input,
            about: ABOUT.iter().filter_map(|field| call.get(*field).cloned()).collect(),
            wanted_token: match subject {
                DecisionSubject::SignIn => WantedToken::of_call(call),
                DecisionSubject::Call | DecisionSubject::Result => None,
            },
            edited: None,
        })
    }

    /// The same decision about the same thing, whatever was edited meanwhile?
    pub fn is_same(&self, other: &Self) -> bool {
        let unedited = |confirmation: &Self| Self { edited: None, ..confirmation.clone() };
        unedited(self) == unedited(other)
    }

    /// The call that waits.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    pub fn subject(&self) -> DecisionSubject {
        self.subject
    }

    /// The token that the call waits for, if it does and says enough to get one.
    pub fn wanted_token(&self) -> Option<&WantedToken> {
        self.wanted_token.as_ref()
    }

    pub fn options(&self) -> &[ConfirmOption] {
        &self.options
    }

    /// The input with what was edited; none if it may not be changed.
    pub fn editable_input(&self) -> Option<&str> {
        self.edited.as_deref().or(self.input.as_deref())
    }

    /// The input as it was edited, if that changed it.
    pub fn edited_input(&self) -> Option<&str> {
        self.edited.as_deref()
    }

    /// Changes the input that an approval is given for.
    pub fn edit_input(&mut self, input: String) {
        debug_assert!(self.input.is_some(), "only an editable input is edited");
        self.edited = Some(input).filter(|edited| Some(edited) != self.input.as_ref());
    }

    /// Whether a denial may say what to do instead.
    pub fn takes_suggestion(&self) -> bool {
        self.subject == DecisionSubject::Call
    }

    pub fn choose(&self, option: &ConfirmOption) -> ToolDecision {
        self.decide(option.decision, option.id.clone())
    }

    /// Approves, by the first option that does.
    pub fn approve(&self) -> ToolDecision {
        self.decide(Decision::Approve, self.first_option(Decision::Approve))
    }

    /// Denies, by the first option that does, and says what to do instead.
    pub fn deny(&self, suggestion: &str) -> ToolDecision {
        let suggestion = suggestion.trim();
        ToolDecision {
            suggestion: (!suggestion.is_empty()).then(|| suggestion.to_owned()),
            ..self.decide(Decision::Deny, self.first_option(Decision::Deny))
        }
    }

    fn first_option(&self, decision: Decision) -> Option<String> {
        let mut options = self.options.iter();
        let first = options.find(|option| option.decision == decision)?;
        first.id.clone()
    }

    fn decide(&self, decision: Decision, option_id: Option<String>) -> ToolDecision {
        let edited = match decision {
            Decision::Approve => self.edited.clone(),
            Decision::Deny => None,
        };
        ToolDecision {
            decision,
            edited_input: edited,
            suggestion: None,
            turn_id: self.turn_id.clone(),
            call_id: self.call_id.clone(),
            subject: self.subject,
            option_id,
        }
    }
}

impl ConfirmOption {
    fn read(option: &Value) -> Option<Self> {
        let decision = match option["kind"].as_str()? {
            "approve" => Decision::Approve,
            "deny" => Decision::Deny,
            // Whatever else it may mean, it cannot be chosen for what it says.
            _ => return None,
        };
        let label = &option["label"];
        let label = label
            .as_str()
            .or_else(|| label["markdown"].as_str())
            .or_else(|| label["text"].as_str());
        Some(Self {
            decision,
            label: Some(label.unwrap_or("").to_owned()),
            id: Some(option["id"].as_str()?.to_owned()),
        })
    }

    fn plain(decision: Decision) -> Self {
        Self { decision, label: None, id: None }
    }
}

impl ToolDecision {
    /// The action to dispatch.
    pub(super) fn action(&self) -> Value {
        let is_approved = self.decision == Decision::Approve;
        let mut action = json!({"turnId": self.turn_id, "toolCallId": self.call_id});
        match self.subject {
            DecisionSubject::Call => {
                action["type"] = json!("chat/toolCallConfirmed");
                action["approved"] = json!(is_approved);
                if is_approved {
                    action["confirmed"] = json!("user-action");
                } else {
                    action["reason"] = json!("denied");
                }
                if let Some(option) = &self.option_id {
                    action["selectedOptionId"] = json!(option);
                }
                if let Some(edited) = &self.edited_input {
                    action["editedToolInput"] = json!(edited);
                }
                if let Some(suggestion) = &self.suggestion {
                    action["userSuggestion"] =
                        json!({"text": suggestion, "origin": {"kind": "user"}});
                }
            }
            DecisionSubject::Result => {
                action["type"] = json!("chat/toolCallResultConfirmed");
                action["approved"] = json!(is_approved);
            }
            DecisionSubject::SignIn => {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmation(more: Value) -> Confirmation {
        let mut call = json!({"toolCallId": "c", "status": "pending-confirmation"});
        for (key, value) in more.as_object().unwrap() {
            call[key] = value.clone();
        }
        Confirmation::of("t", call.as_object().unwrap()).unwrap()
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
        let plain = confirmation(json!({}));
        assert_eq!(plain.approve().action(), decided(true));
        let [yes, no] = plain.options() else { panic!("two options") };
        assert_eq!(plain.choose(yes).action(), decided(true));
        assert_eq!(plain.choose(no).action(), decided(false));
        assert_eq!(plain.deny(" ").action(), decided(false));
        let mut denied = decided(false);
        denied["userSuggestion"] = json!({"text": "use cp", "origin": {"kind": "user"}});
        assert_eq!(plain.deny("use cp").action(), denied);
    }

    #[test]
    fn another_input_is_another_decision() {
        let asked = |input: &str| confirmation(json!({"toolInput": input}));
        assert!(asked("ls").is_same(&asked("ls")));
        assert!(!asked("ls").is_same(&asked("rm")));
        let result = |text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            confirmation(json!({"status": "pending-result-confirmation", "content": content}))
        };
        assert!(!result("a").is_same(&result("b")));
        let one = confirmation(json!({"toolInput": "{}", "editable": true}));
        let mut edited = one.clone();
        edited.edit_input("{\"n\":1}".to_owned());
        assert!(one.is_same(&edited), "it is still what was asked");
    }

    #[test]
    fn options_are_named_and_unknown_kinds_left_out() {
        let offered = confirmation(json!({"options": [
            {"id": "once", "label": "Allow once", "kind": "approve"},
            {"id": "always", "label": "Always allow", "kind": "approve"},
            {"id": "never", "label": "Deny", "kind": "deny"},
            {"id": "odd", "label": "Something new", "kind": "ponder"},
        ]}));
        let labels: Vec<&str> =
            offered.options().iter().filter_map(|option| option.label.as_deref()).collect();
        assert_eq!(labels, ["Allow once", "Always allow", "Deny"]);
        let always = offered.choose(&offered.options()[1]).action();
        assert_eq!(always["selectedOptionId"], "always");
        let denied = offered.deny("better not").action();
        assert_eq!(
            (&denied["selectedOptionId"], &denied["approved"]),
            (&json!("never"), &json!(false))
        );
    }

    #[test]
    fn an_edited_input_goes_with_the_approval_only() {
        let mut editable = confirmation(json!({"editable": true, "toolInput": "{\"n\":1}"}));
        assert_eq!(editable.editable_input(), Some("{\"n\":1}"));
        editable.edit_input("{\"n\":2}".to_owned());
        assert_eq!(editable.approve().action()["editedToolInput"], "{\"n\":2}");
        assert_eq!(editable.deny("").action().get("editedToolInput"), None);
        editable.edit_input("{\"n\":1}".to_owned());
        assert_eq!(editable.approve().action().get("editedToolInput"), None, "unchanged");
        let fixed = confirmation(json!({"editable": true, "toolInput": {"uri": "ahp-content:/x"}}));
        assert_eq!(fixed.editable_input(), None, "a reference cannot be edited here");
    }

    #[test]
    fn results_and_sign_ins_are_decided_too() {
        let result = confirmation(json!({"status": "pending-result-confirmation"}));
        let expected = json!({
            "type": "chat/toolCallResultConfirmed", "turnId": "t", "toolCallId": "c", "approved": true,
        });
        assert_eq!(result.approve().action(), expected);
        assert!(!result.takes_suggestion());
        let sign_in = confirmation(json!({"status": "auth-required"}));
        assert_eq!(sign_in.options().len(), 1);
        assert_eq!(sign_in.deny("").action()["type"], "chat/toolCallComplete");
        let running = json!({"toolCallId": "c", "status": "running"});
        assert_eq!(Confirmation::of("t", running.as_object().unwrap()), None);
    }
}
