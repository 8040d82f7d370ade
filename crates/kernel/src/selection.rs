//! The model and custom agent that clients of 0.4 choose for a session or a chat, where newer ones say them in each message.
//!
//! The choice is held in `_meta`, so that clients of every version may see it, and is put into the messages of clients that
//! cannot say it themselves. Must not know: which models there are.

use serde_json::{Value, json};
use wire::compat::{SELECTION_META, check_selection, selection_of};
use wire::rpc::code;
use wire::{Action, ActionKind, ChannelUri, Object, RpcError};

use crate::channels::Chat;
use crate::refusal::Refusal;
use crate::state::{Kernel, Sender, Step};

/// Whether an action chooses something, and what is wrong if it does not.
pub(crate) fn check(action: &Action) -> Result<(), Refusal> {
    let is_chosen = |field| action.get(field).is_some_and(Value::is_object);
    let is_taken_back = action.get("agent").is_some_and(Value::is_null);
    match check_selection(&action.body) {
        Err(wrong) => Err(Refusal::because(wrong)),
        Ok(()) if is_chosen("model") || is_chosen("agent") || is_taken_back => Ok(()),
        Ok(()) => Err(Refusal::because("`model` must be an object with an `id`")),
    }
}

/// Records a client's choice for a session as it was sent, where everyone may see it.
pub(crate) fn select(step: &mut Step, uri: &ChannelUri, action: &Action, sender: &Sender) {
    debug_assert!(check(action).is_ok(), "what is recorded was checked");
    let extra = &step.session(uri).state().extra;
    let mut chosen = selection_of(extra).cloned().unwrap_or_default();
    for field in ["model", "agent"] {
        match action.get(field) {
            Some(Value::Null) => {
                chosen.shift_remove(field);
            }
            Some(value) => {
                chosen.insert(field.to_owned(), value.clone());
            }
            None => {}
        }
    }
    let mut meta =
        extra.get("_meta").filter(|meta| meta.is_object()).cloned().unwrap_or_else(|| json!({}));
    let before = meta.clone();
    meta[SELECTION_META] = Value::Object(chosen);
    if meta == before {
        return step.answer_unchanged(uri, action, Some(sender));
    }
    step.record_extension_action(uri, action, sender);
    step.act_as_host(uri, ActionKind::SessionMetaChanged, json!({"_meta": meta}));
}

/// The `_meta` of a session or chat that is created with a choice.
pub(crate) fn meta_of(params: &Value) -> Result<Option<Value>, RpcError> {
    let Some(Value::Object(chosen)) = params.get(SELECTION_META) else {
        return Ok(None); // nothing was chosen
    };
    match check_selection(chosen) {
        Ok(()) => Ok(Some(json!({SELECTION_META: chosen}))),
        Err(wrong) => Err(RpcError::new(code::INVALID_PARAMS, wrong)),
    }
}

/// Puts what was chosen for a chat, or else for its session, into a message of a client that cannot say it itself.
pub(crate) fn put_into(kernel: &Kernel, chat: &Chat, message: &mut Object) {
    let session = kernel.session(chat.session()).state();
    for field in ["model", "agent"] {
        let of_chat = selection_of(&chat.state().extra).and_then(|chosen| chosen.get(field));
        let of_session = || selection_of(&session.extra).and_then(|chosen| chosen.get(field));
        if let Some(chosen) = of_chat.or_else(of_session) {
            message.entry(field).or_insert_with(|| chosen.clone());
        }
    }
}
