//! A client's message: may it be sent here, and what the host fills in before it is recorded (G-12, H-071, H-151, H-161).

use compositor::Part;
use compositor::chat_reference::{ChatReference, with_end_turn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::{ChannelUri, Object};

use crate::attached_annotations;
use crate::channels::Chat;
use crate::customization;
use crate::io::AgentFacts;
use crate::journal_query::{Answer, Query};
use crate::load::{need_all, need_channel};
use crate::pause::{HandlerAnswers, Load, NotLoaded};
use crate::refusal::Refusal;
use crate::state::Kernel;

/// Models that a refusal names.
const NAMED_MODELS_MAX: usize = 8;

pub(crate) fn not_a_user_message() -> Refusal {
    Refusal::because("a client may only send messages whose origin is the user") // H-071
}

/// What a message takes, as it is recorded.
pub(crate) fn size_of<T: Serialize + ?Sized>(message: &T) -> usize {
    wire::rpc::to_json(message).len()
}

/// Whether a message certainly takes more than this: its texts alone do. Costs nothing like encoding it.
pub(crate) fn is_longer_than(message: &Value, bytes_max: usize) -> bool {
    fn text_bytes(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(text_bytes).sum(),
            Value::Object(fields) => fields.values().map(text_bytes).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    text_bytes(message) > bytes_max
}

pub(crate) fn too_large(kernel: &Kernel) -> Refusal {
    let most = kernel.limits().waiting_bytes_max;
    Refusal(format!("messages that wait in a chat have at most {most} bytes in all"))
}

/// A chat that a message refers to, and the turn its transcript is to end at.
struct AttachedChat {
    chat: ChannelUri,
    end_turn: Option<String>,
}

/// Checks a message and writes into it what will really be used.
pub(crate) fn check(
    kernel: &Kernel,
    chat: &Chat,
    message: &mut Object,
    answers: &HandlerAnswers,
) -> Result<(), Refusal> {
    let interactivity = chat.state().extra.get("interactivity");
    if interactivity.is_some_and(|mode| mode != "full") {
        return Err(Refusal::because("this chat takes no messages from clients")); // H-151
    }
    let session = kernel.session(chat.session());
    if session.is_failed() {
        return Err(Refusal::because("this session could not be created and takes no turns"));
    }
    let origin = message.get("origin");
    if origin.is_none_or(|origin| origin["kind"] != "user") {
        return Err(not_a_user_message());
    }
    let agent = customization::named_agent(kernel, chat.session(), message)?;
    let pinned = agent.and_then(|agent| agent["model"].as_str());
    choose_model(kernel, &session.state().provider, pinned, message)?;
    let most = kernel.limits().attached_chats_max;
    if attached_chats(message).len() > most {
        return Err(Refusal(format!("a message refers to at most {most} chats")));
    }
    attached_annotations::check(kernel, message)?;
    pin_attached_chats(kernel, message, answers)
}

/// The model a message names, if there is one and its settings are possible; otherwise the one that its custom agent is
/// `pinned` to, if there is that (CU-8), or the default (G-12). Settings the model
/// does not have are not recorded: nothing is shown that was not used.
fn choose_model(
    kernel: &Kernel,
    provider: &str,
    pinned: Option<&str>,
    message: &mut Object,
) -> Result<(), Refusal> {
    let agent = kernel.find_agent(provider);
    let Some(model) = message.get_mut("model").filter(|model| !model.is_null()) else {
        let has_it = |model: &&str| agent.is_some_and(|agent| has_model(agent, model));
        let pinned = pinned.filter(has_it).map(str::to_owned);
        let default = || agent.and_then(|agent| agent.default_model.clone());
        if let Some(model) = pinned.or_else(default) {
            message.insert("model".to_owned(), json!({"id": model}));
        }
        return Ok(());
    };
    let mut models = agent.and_then(|agent| agent.info["models"].as_array()).into_iter().flatten();
    let Some(known) = models.find(|known| known["id"] == model["id"]) else {
        return Err(unknown_model(agent, provider));
    };
    if let Some(Value::Object(values)) = model.get_mut("config") {
        let checked = crate::config::known_values(&known["configSchema"], values);
        *values = checked.map_err(|bad| Refusal(format!("the model's {bad}")))?;
    }
    Ok(())
}

/// The refusal of a message that names a model the agent does not have.
fn unknown_model(agent: Option<&AgentFacts>, provider: &str) -> Refusal {
    let Some(agent) = agent.filter(|agent| !agent.hidden) else {
        return Refusal(format!("this host has no agent `{provider}` now"));
    };
    Refusal(match name_models(agent) {
        Some(models) => format!("this agent has no model with this id; it has: {models}"),
        None => "this agent has no model with this id, nor any other".to_owned(),
    })
}

fn has_model(agent: &AgentFacts, id: &str) -> bool {
    let mut models = agent.info["models"].as_array().into_iter().flatten();
    models.any(|model| model["id"] == id)
}

/// The models of an agent, the default first, for people; `None` if it has none.
fn name_models(agent: &AgentFacts) -> Option<String> {
    let models = agent.info["models"].as_array().into_iter().flatten();
    let ids: Vec<&str> = models.filter_map(|model| model["id"].as_str()).collect();
    let shown = ids.iter().take(NAMED_MODELS_MAX).copied().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(NAMED_MODELS_MAX) {
        0 => Some(shown).filter(|shown| !shown.is_empty()),
        more => Some(format!("{shown} and {more} more")),
    }
}

/// The model that a chat used last, if its agent does not have it any more. Whoever then sends a message without naming a
/// model has not chosen the one that it would go to.
pub(crate) fn missing_model(kernel: &Kernel, chat: &Chat) -> Option<String> {
    let agent = kernel.find_agent(&kernel.session(chat.session()).state().provider)?;
    let state = chat.state();
    let active = state.active_turn.as_ref().and_then(|turn| turn.message["model"]["id"].as_str());
    // A turn that asked no model names none: the chat still has that of an earlier one.
    let turns = state.turns.as_slice().iter().rev();
    let earlier = || turns.map(|turn| &turn.json).find_map(|json| model_of_turn(json));
    let used = active.map(str::to_owned).or_else(earlier)?;
    let mut models = agent.info["models"].as_array().into_iter().flatten();
    models.all(|model| model["id"] != used).then_some(used)
}

/// The model of a completed turn. The rest of it, which may be large, is passed over.
fn model_of_turn(json: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct TurnModel {
        message: MessageModel,
    }
    #[derive(Deserialize)]
    struct MessageModel {
        model: Option<ModelId>,
    }
    #[derive(Deserialize)]
    struct ModelId {
        id: String,
    }
    let turn: TurnModel = serde_json::from_slice(json).ok()?;
    turn.message.model.map(|model| model.id)
}

/// What everybody reads of a turn whose message was for a model that is gone, as far as its sender had chosen one.
pub(crate) fn explain_missing_model(
    kernel: &Kernel,
    provider: &str,
    missing: &str,
    message: &Value,
) -> String {
    let agent = kernel.find_agent(provider);
    let next = message["model"]["id"].as_str();
    match (next, agent.and_then(name_models)) {
        (Some(next), Some(models)) => format!(
            "the model `{missing}` that this chat used is not there any more, so nothing was sent. Resume the turn to go on \
             with `{next}`, or send the message again with a model of your choice: {models}"
        ),
        _ => format!(
            "the model `{missing}` that this chat used is not there any more, and there is no other. Add one and resume the turn"
        ),
    }
}

/// What must be known of the chats and annotations that a message refers to, before it can be checked (H-161, H-239).
pub(crate) fn need_attached_channels(
    kernel: &Kernel,
    message: Option<&Object>,
    answers: &HandlerAnswers,
) -> Load<()> {
    let attached = message.map(attached_chats).unwrap_or_default();
    let annotated = message.map(attached_annotations::channels_in).unwrap_or_default();
    if attached.len().max(annotated.len()) > kernel.limits().attached_chats_max {
        return Ok(()); // refused when it is checked
    }
    let annotations = annotated.iter();
    need_all(annotations.map(|uri| need_channel(kernel, uri, answers)))?;
    let loads = attached.iter().map(|attached| {
        need_channel(kernel, &attached.chat, answers)?;
        if let Some(end_turn) = &attached.end_turn {
            find_turn(kernel, &attached.chat, end_turn, answers)?;
        }
        Ok(())
    });
    need_all(loads).map(|_| ())
}

/// The number of a visible completed turn, from memory or from the journal's answer; `None` if there is no such turn.
pub(crate) fn find_turn(
    kernel: &Kernel,
    uri: &ChannelUri,
    turn_id: &str,
    answers: &HandlerAnswers,
) -> Load<Option<u64>> {
    let Some(chat) = kernel.find_chat(uri) else { return Ok(None) };
    if chat.state().turns.position(turn_id).is_some() {
        return Ok(chat.number_of(turn_id));
    }
    if !chat.has_older() {
        return Ok(None);
    }
    let answer =
        answers.read(Query::FindTurn { chat: kernel.id_of(uri), turn_id: turn_id.to_owned() })?;
    Ok(match answer {
        // It may have been cut off since: what is in memory begins after all that is on disk.
        Answer::FindTurn(Some(found)) if found.visible && found.n < chat.first_n() => Some(found.n),
        _ => None,
    })
}

/// A transcript ends at a completed turn: the one named, or the latest there is now (H-161).
fn pin_attached_chats(
    kernel: &Kernel,
    message: &mut Object,
    answers: &HandlerAnswers,
) -> Result<(), Refusal> {
    let Some(Value::Array(attachments)) = message.get_mut("attachments") else { return Ok(()) };
    for attachment in attachments {
        let Some(attached) = attached_chat(attachment) else { continue };
        let AttachedChat { chat, end_turn } = attached?;
        let Some(found) = kernel.find_chat(&chat) else {
            return Err(Refusal(format!("there is no chat {chat} to attach")));
        };
        match end_turn {
            Some(end_turn) => match find_turn(kernel, &chat, &end_turn, answers) {
                Ok(Some(_)) => {}
                Err(NotLoaded::Failed(failed)) => return Err(Refusal(failed.to_string())),
                Ok(None) | Err(NotLoaded::Read(_)) => {
                    return Err(Refusal(format!("`endTurn` names no completed turn of {chat}")));
                }
            },
            None => {
                if let Some(turn) = found.state().turns.last() {
                    attachment["endTurn"] = json!(turn.id);
                }
            }
        }
    }
    Ok(())
}

/// The same for the parts that were made of them, and what annotations say now.
pub(crate) fn pin_parts(kernel: &Kernel, parts: &mut [Part]) {
    attached_annotations::fill_parts(kernel, parts);
    for part in parts {
        let chat = ChatReference::of(part).and_then(|chat| ChannelUri::parse(chat.uri).ok());
        let chat = chat.and_then(|chat| kernel.find_chat(&chat));
        // One without turns has nothing to end with.
        if let Some(last) = chat.and_then(|chat| chat.state().turns.last()) {
            *part = with_end_turn(part.clone(), &last.id);
        }
    }
}

fn attached_chats(message: &Object) -> Vec<AttachedChat> {
    let attachments = message.get("attachments").and_then(Value::as_array);
    attachments
        .into_iter()
        .flatten()
        .filter_map(|attachment| attached_chat(attachment)?.ok())
        .collect()
}

fn attached_chat(attachment: &Value) -> Option<Result<AttachedChat, Refusal>> {
    if attachment["type"] != "chat" {
        return None;
    }
    let chat = attachment["resource"].as_str().unwrap_or("");
    Some(match ChannelUri::parse(chat) {
        Ok(chat) => {
            Ok(AttachedChat { chat, end_turn: attachment["endTurn"].as_str().map(str::to_owned) })
        }
        Err(error) => Err(Refusal(format!("an attached chat: {error}"))),
    })
}
