//! Input requests: an agent asks, clients answer together, one of them completes (H-215 to H-221).

use agent_api::{AgentReply, InputRequest};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;
use wire::reduce::Reduced;
use wire::state::ChatState;
use wire::{Action, ActionKind, ChannelUri, Object, dialect};

use crate::agent_action::record_agent_action;
use crate::io::Effect;
use crate::refusal::Refusal;
use crate::state::{Kernel, Sender, Step};

/// The open request an action names, in the turn that runs: one that is over cannot be answered (G-10, H-217).
fn open_request<'a>(state: &'a ChatState, action: &Action) -> Result<&'a Value, Refusal> {
    let wanted = action.text("requestId").unwrap_or("");
    let turn = state.active_turn.as_ref();
    let mut parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
    let part = parts.find(|part| {
        part.kind() == "inputRequest"
            && part.0.get("response").is_none_or(Value::is_null)
            && part.0.get("request").is_some_and(|request| request["id"] == wanted)
    });
    part.and_then(|part| part.0.get("request"))
        .ok_or_else(|| Refusal::because("no input request with this id is open"))
}

fn question<'a>(request: &'a Value, id: &str) -> Option<&'a Value> {
    request["questions"].as_array()?.iter().find(|question| question["id"] == id)
}

pub(crate) fn check_answer_changed(state: &ChatState, action: &mut Action) -> Result<(), Refusal> {
    let request = open_request(state, action)?;
    let id = action.text("questionId").unwrap_or("");
    let Some(question) = question(request, id) else {
        return Err(Refusal::because("this request has no question with this id"));
    };
    match action.body.get_mut("answer") {
        Some(answer) if !answer.is_null() => check_answer(question, answer),
        Some(_) | None => Ok(()), // the answer is taken back
    }
}

pub(crate) fn check_completed(state: &ChatState, action: &mut Action) -> Result<(), Refusal> {
    let request = open_request(state, action)?;
    if !matches!(action.text("response"), Some("accept" | "decline" | "cancel")) {
        return Err(Refusal::because("`response` must be `accept`, `decline` or `cancel`"));
    }
    let last = action.body.get_mut("answers");
    for (id, answer) in last.and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(question) = question(request, id) else {
            return Err(Refusal(format!("this request has no question `{id}`")));
        };
        check_answer(question, answer)?;
    }
    let last = action.get("answers").and_then(Value::as_object);
    if action.text("response") == Some("accept") {
        for question in request["questions"].as_array().into_iter().flatten() {
            let id = question["id"].as_str().unwrap_or("");
            let answer = last.and_then(|last| last.get(id)).or_else(|| request["answers"].get(id));
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
    Ok(())
}

/// An answer has a value of the kind its question asks for, unless it is skipped (H-217). What a client with text fields only
/// wrote for a number or a yes or no becomes that (G-44).
fn check_answer(question: &Value, answer: &mut Value) -> Result<(), Refusal> {
    if answer["state"] == "skipped" {
        return Ok(());
    }
    let asked = question["kind"].as_str().unwrap_or("");
    if let Some(text) = text_of(answer)
        && let Some(read) = dialect::answer_from_text(asked, text)
    {
        let id = question["id"].as_str().unwrap_or("");
        answer["value"] = read.map_err(|wanted| {
            Refusal(format!("the answer to `{id}` is a text that is not {wanted}"))
        })?;
    }
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
        let id = question["id"].as_str().unwrap_or("");
        return Err(Refusal(format!(
            "an answer of kind `{given}` does not fit `{id}`, a question of kind `{asked}`"
        )));
    }
    Ok(())
}

fn text_of(answer: &Value) -> Option<&str> {
    let value = answer.get("value")?;
    if value["kind"] == "text" { value["value"].as_str() } else { None }
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
            let freeform =
                answer["freeformValues"].as_array().is_some_and(|values| !values.is_empty());
            if !is_option(question, chosen)
                && !(allows_freeform(question) && (freeform || !chosen.is_empty()))
            {
                return outside("is not one of the options");
            }
        }
        "multi-select" => {
            let chosen: Vec<&str> =
                value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let written = answer["freeformValues"].as_array().map_or(0, Vec::len);
            let known = chosen.iter().all(|chosen| is_option(question, chosen));
            if !(known && written == 0 || allows_freeform(question)) {
                return outside("names an unknown option");
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
    let mut options = question["options"].as_array().into_iter().flatten();
    options.any(|option| option["id"] == id)
}

fn allows_freeform(question: &Value) -> bool {
    question["allowFreeformInput"] == true
}

/// An agent asks. Its turn goes on running (H-216); who had read the session has not any more (G-24).
pub(crate) fn ask_user(step: &mut Step, uri: &ChannelUri, ask: u64, request: InputRequest) {
    let mut request = request.into_object();
    let id = format!("q{}", step.seq().0 + 1); // from the seq that creates it (G-26)
    request.insert("id".to_owned(), json!(id));
    let fields = json!({"request": request});
    if record_agent_action(step, uri, ActionKind::ChatInputRequested, fields) {
        debug_assert_eq!(id, format!("q{}", step.seq().0), "no other has this id");
        if let Some(run) = step.run_mut(uri) {
            run.add_question(ask, id);
        }
        let session = step.chat(uri).session().clone();
        step.mark_unread(&session);
    }
}

/// A client answers a question: the answer goes to the agent that waits for it.
pub(crate) fn answer(step: &mut Step, uri: &ChannelUri, action: Action, sender: &Sender) {
    let id = action.text("requestId").unwrap_or("").to_owned();
    let response = match action.text("response") {
        Some("accept") => ChatInputResponseKind::Accept,
        Some("decline") => ChatInputResponseKind::Decline,
        _ => ChatInputResponseKind::Cancel,
    };
    if step.act(uri, action, Some(sender)) == Reduced::Unchanged {
        return; // the sender was answered
    }
    // Drafts that others synced are part of what was accepted (H-218).
    let answers = match response {
        ChatInputResponseKind::Accept => answers_of(step, uri, &id),
        _ => Object::new(),
    };
    let run = step.chat(uri).run();
    let asked = run.and_then(|run| Some((run.id(), run.find_question(&id)?)));
    // The run that asked is gone, so nothing waits for the answer.
    if let Some((run, ask)) = asked {
        let reply = AgentReply::Answered {
            ask,
            response,
            answers,
            answered_by: Some(sender.origin.client_id.clone()),
        };
        step.effect(Effect::Reply { run, reply });
    }
}

/// An agent does not wait for the answer to a question any more; one that was answered stays so.
pub(crate) fn withdraw(step: &mut Step, uri: &ChannelUri, ask: u64) {
    let run = step.run_mut(uri);
    let Some(id) = run.and_then(|run| run.remove_question(ask)) else {
        return; // a number that the agent never asked under means nothing
    };
    close(step, uri, &id);
}

/// Ends an open request in nobody's name. The reducer leaves one that is over as it is.
fn close(step: &mut Step, uri: &ChannelUri, id: &str) {
    let fields = json!({"requestId": id, "response": "cancel"});
    step.act_as_host(uri, ActionKind::ChatInputCompleted, fields);
}

/// Questions that a turn left open when it died: nobody waits for an answer any more (H-219).
pub(crate) fn close_open_questions(step: &mut Step, uri: &ChannelUri) {
    let turn = step.chat(uri).state().active_turn.as_ref();
    let parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
    let open: Vec<String> = parts
        .filter_map(|part| {
            let unanswered = part.0.get("response").is_none_or(Value::is_null);
            let id = part.0.get("request")?["id"].as_str()?;
            (part.kind() == "inputRequest" && unanswered).then(|| id.to_owned())
        })
        .collect();
    for id in open {
        close(step, uri, &id);
    }
}

fn answers_of(kernel: &Kernel, uri: &ChannelUri, id: &str) -> Object {
    let turn = kernel.chat(uri).state().active_turn.as_ref();
    let mut parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
    let request = parts.find_map(|part| {
        let request = part.0.get("request")?;
        (request["id"] == id).then_some(request)
    });
    request.and_then(|request| request["answers"].as_object().cloned()).unwrap_or_default()
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
