//! Input requests: an agent asks, clients answer together, one of them completes (host-rules section 11).

use agent_api::{AgentReply, InputRequest};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;
use wire::reduce::Reduced;
use wire::state::ChatState;
use wire::{Action, ChannelUri, Object};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::io::Effect;
use crate::speak::Sender;

/// The open request an action names, in the turn that runs: one that is over cannot be answered (G-10, H-217).
fn open_request<'a>(state: &'a ChatState, action: &Action) -> Result<&'a Value, Refusal> {
    let wanted = action.text("requestId").unwrap_or("");
    let turn = state.active_turn.as_ref();
    let mut parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
    let part = parts.find(|part| {
        part.kind() == "inputRequest"
            && part.0.get("response").is_none_or(Value::is_null)
            && part
                .0
                .get("request")
                .is_some_and(|request| request["id"] == wanted)
    });
    part.and_then(|part| part.0.get("request"))
        .ok_or_else(|| Refusal::because("no input request with this id is open"))
}

fn question<'a>(request: &'a Value, id: &str) -> Option<&'a Value> {
    let questions = request["questions"].as_array()?;
    questions.iter().find(|question| question["id"] == id)
}

pub(crate) fn validate_answer(state: &ChatState, action: Action) -> Result<Permit, Refusal> {
    let request = open_request(state, &action)?;
    let id = action.text("questionId").unwrap_or("");
    let Some(question) = question(request, id) else {
        return Err(Refusal::because(
            "this request has no question with this id",
        ));
    };
    if let Some(answer) = action.present("answer") {
        check_answer(question, answer)?;
    }
    Ok(Permit(action))
}

pub(crate) fn validate_completed(state: &ChatState, action: Action) -> Result<Permit, Refusal> {
    let request = open_request(state, &action)?;
    if !matches!(
        action.text("response"),
        Some("accept" | "decline" | "cancel")
    ) {
        return Err(Refusal::because(
            "`response` must be `accept`, `decline` or `cancel`",
        ));
    }
    let last = action.present("answers").and_then(Value::as_object);
    for (id, answer) in last.into_iter().flatten() {
        let Some(question) = question(request, id) else {
            return Err(Refusal(format!("this request has no question `{id}`")));
        };
        check_answer(question, answer)?;
    }
    if action.text("response") == Some("accept") {
        for question in request["questions"].as_array().into_iter().flatten() {
            let id = question["id"].as_str().unwrap_or("");
            let answer = last
                .and_then(|last| last.get(id))
                .or_else(|| request["answers"].get(id));
            let submitted = answer.filter(|answer| answer["state"] == "submitted");
            match submitted {
                Some(answer) => check_bounds(question, &answer["value"])?,
                None if question["required"] == true => {
                    return Err(Refusal(format!("`{id}` needs a submitted answer")));
                }
                None => {}
            }
        }
    }
    Ok(Permit(action))
}

/// An answer has a value of the kind its question asks for, unless it is skipped (H-217).
fn check_answer(question: &Value, answer: &Value) -> Result<(), Refusal> {
    if answer["state"] == "skipped" {
        return Ok(());
    }
    let asked = question["kind"].as_str().unwrap_or("");
    let given = answer["value"]["kind"].as_str().unwrap_or("");
    let fits = match asked {
        "text" => given == "text",
        "number" | "integer" => given == "number",
        "boolean" => given == "boolean",
        "single-select" => given == "selected",
        "multi-select" => given == "selected-many",
        _ => true, // a kind that came after this host: its asker knows what fits
    };
    if !fits {
        return Err(Refusal(format!(
            "an answer of kind `{given}` does not fit a question of kind `{asked}`"
        )));
    }
    Ok(())
}

/// What is submitted keeps to what the question allows.
fn check_bounds(question: &Value, answer: &Value) -> Result<(), Refusal> {
    let id = question["id"].as_str().unwrap_or("");
    let outside = |what: &str| Err(Refusal(format!("the answer to `{id}` {what}")));
    let value = &answer["value"];
    let within = |size: f64| {
        let least = question["min"].as_f64().is_none_or(|min| size >= min);
        least && question["max"].as_f64().is_none_or(|max| size <= max)
    };
    match question["kind"].as_str().unwrap_or("") {
        "text" => {
            let length = value.as_str().map_or(0, |text| text.chars().count());
            if !within(length as f64) {
                return outside("is too short or too long");
            }
        }
        kind @ ("number" | "integer") => {
            let number = value.as_f64().unwrap_or(f64::NAN);
            if kind == "integer" && number.fract() != 0.0 {
                return outside("must be a whole number");
            }
            if !within(number) {
                return outside("is out of range");
            }
        }
        "single-select" => {
            let chosen = value.as_str().unwrap_or("");
            let freeform = answer["freeformValues"]
                .as_array()
                .is_some_and(|values| !values.is_empty());
            if !is_option(question, chosen)
                && !(allows_freeform(question) && (freeform || !chosen.is_empty()))
            {
                return outside("is none of the options");
            }
        }
        "multi-select" => {
            let chosen: Vec<&str> = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let written = answer["freeformValues"].as_array().map_or(0, Vec::len);
            let known = chosen.iter().all(|chosen| is_option(question, chosen));
            if !(known && written == 0 || allows_freeform(question)) {
                return outside("names what is none of the options");
            }
            if !within((chosen.len() + written) as f64) {
                return outside("names too few or too many options");
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_option(question: &Value, id: &str) -> bool {
    let options = question["options"].as_array();
    let mut options = options.into_iter().flatten();
    options.any(|option| option["id"] == id)
}

fn allows_freeform(question: &Value) -> bool {
    question["allowFreeformInput"] == true
}

impl Kernel {
    /// An agent asks. Its turn goes on running (H-216); who had read the session has not any more (G-24).
    pub(crate) fn ask_user(&mut self, uri: &ChannelUri, ask: u64, request: InputRequest) {
        let id = format!("q{}", self.seq.0 + 1); // from the seq that creates it (G-26)
        let mut request = request.into_object();
        request.insert("id".to_owned(), json!(id));
        if !self.agent_acts(uri, "chat/inputRequested", json!({"request": request})) {
            return;
        }
        let Some(chat) = self.chat_mut(uri) else {
            return;
        };
        if let Some(run) = chat.run.as_mut() {
            run.asks.insert(ask, id);
        }
        let session = chat.session.clone();
        self.catalogue_followed(uri);
        self.needs_followed(uri);
        self.mark_unread(&session);
        self.publish(&session);
    }

    pub(crate) fn answer_question(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        let id = action.text("requestId").unwrap_or("").to_owned();
        let response = match action.text("response") {
            Some("accept") => ChatInputResponseKind::Accept,
            Some("decline") => ChatInputResponseKind::Decline,
            _ => ChatInputResponseKind::Cancel,
        };
        if self.act(uri, action, Some(sender)) == Reduced::Unchanged {
            return;
        }
        self.chat_followed(uri);
        // Drafts that others synced are part of what was accepted (H-218).
        let answers = if response == ChatInputResponseKind::Accept {
            self.answers_of(uri, &id)
        } else {
            Object::new()
        };
        let Some(run) = self.chat(uri).and_then(|chat| chat.run.as_ref()) else {
            return;
        };
        let ask = run.asks.iter().find(|(_, asked)| **asked == id);
        if let Some((ask, _)) = ask {
            let reply = AgentReply::Answered {
                ask: *ask,
                response,
                answers,
            };
            let effect = Effect::Reply { run: run.id, reply };
            self.out.effects.push(effect);
        }
    }

    /// Questions that a turn left open when it died: nobody waits for an answer any more (H-219).
    pub(crate) fn close_questions(&mut self, uri: &ChannelUri) {
        let turn = self
            .chat_state(uri)
            .and_then(|state| state.active_turn.as_ref());
        let parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
        let open = parts.filter_map(|part| {
            let unanswered = part.0.get("response").is_none_or(Value::is_null);
            let id = part.0.get("request")?["id"].as_str()?;
            (part.kind() == "inputRequest" && unanswered).then(|| id.to_owned())
        });
        let open: Vec<String> = open.collect();
        for id in open {
            let fields = json!({"requestId": id, "response": "cancel"});
            self.act(uri, Action::host("chat/inputCompleted", fields), None);
        }
    }

    fn answers_of(&self, uri: &ChannelUri, id: &str) -> Object {
        let turn = self
            .chat_state(uri)
            .and_then(|state| state.active_turn.as_ref());
        let mut parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
        let request = parts.find_map(|part| {
            let request = part.0.get("request")?;
            (request["id"] == id).then_some(request)
        });
        request
            .and_then(|request| request["answers"].as_object().cloned())
            .unwrap_or_default()
    }
}
