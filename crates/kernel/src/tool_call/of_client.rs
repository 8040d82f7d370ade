//! Tool calls, as clients may act on them: consent to them, review their results, carry out their own (host-rules
//! section 10). The first to confirm wins; whoever comes later, or after the turn, is refused (G-10, H-190).

use agent_api::{AgentReply, ToolResult};
use serde_json::{Value, json};
use wire::reduce::Reduced;
use wire::state::ChatState;
use wire::{Action, ChannelUri, Object};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::channel::chat::Executor;
use crate::io::Effect;
use crate::message::not_a_user_message;
use crate::speak::Sender;

/// The call an action names, in the turn that runs.
fn call<'a>(state: &'a ChatState, action: &Action) -> Result<&'a Object, Refusal> {
    let turn = state.active_turn.as_ref();
    let turn = turn.filter(|turn| Some(turn.id.as_str()) == action.text("turnId"));
    let Some(turn) = turn else {
        return Err(Refusal::because("no turn with this id is running"));
    };
    let wanted = action.text("toolCallId").unwrap_or("");
    find_call(&turn.parts, wanted)
        .ok_or_else(|| Refusal::because("this turn has no tool call with this id"))
}

fn find_call<'a>(parts: &'a wire::state::PartList, id: &str) -> Option<&'a Object> {
    let part = parts.get(id).filter(|part| part.kind() == "toolCall")?;
    part.0.get("toolCall")?.as_object()
}

fn status_of(call: &Object) -> &str {
    call.get("status").and_then(Value::as_str).unwrap_or("")
}

pub(crate) fn validate_confirmed(state: &ChatState, action: Action) -> Result<Permit, Refusal> {
    let call = call(state, &action)?;
    if status_of(call) != "pending-confirmation" {
        return Err(Refusal::because("this tool call waits for no confirmation")); // H-190
    }
    let approved = action.flag("approved") == Some(true);
    if let Some(chosen) = action.text("selectedOptionId") {
        let options = call.get("options").and_then(Value::as_array).into_iter();
        let option = options
            .flat_map(|options| options.iter())
            .find(|option| option["id"] == chosen);
        let Some(option) = option else {
            return Err(Refusal::because("no option has this id")); // H-194
        };
        let kind = if approved { "approve" } else { "deny" };
        if option["kind"] != kind {
            return Err(Refusal::because(
                "this option does not mean what `approved` says",
            ));
        }
    }
    if action.present("editedToolInput").is_some() {
        let editable = call.get("editable") == Some(&Value::Bool(true));
        let inline = call.get("toolInput").is_some_and(Value::is_string);
        if !approved || !editable || !inline {
            return Err(Refusal::because(
                "the input of this tool call cannot be edited",
            )); // H-195
        }
    }
    if let Some(suggestion) = action.present("userSuggestion")
        && suggestion["origin"]["kind"] != "user"
    {
        return Err(not_a_user_message());
    }
    Ok(Permit(action))
}

pub(crate) fn validate_result_confirmed(
    state: &ChatState,
    action: Action,
) -> Result<Permit, Refusal> {
    let call = call(state, &action)?;
    if status_of(call) != "pending-result-confirmation" {
        return Err(Refusal::because(
            "no result of this tool call waits to be confirmed",
        ));
    }
    Ok(Permit(action))
}

/// Only the client that offers a tool may say how it went (H-197), except that anybody may give up a call that waits
/// for authentication (H-203).
pub(crate) fn validate_complete(
    state: &ChatState,
    action: Action,
    client_id: &str,
) -> Result<Permit, Refusal> {
    let call = call(state, &action)?;
    let failed = action.get("result").map(|result| &result["success"]) == Some(&json!(false));
    match status_of(call) {
        "auth-required" if failed => Ok(Permit(action)),
        "auth-required" => Err(Refusal::because(
            "a call that waits for authentication can only be given up",
        )),
        "running" | "pending-confirmation" => {
            owned(call, client_id)?;
            Ok(Permit(action))
        }
        _ => Err(Refusal::because("this tool call is not running")),
    }
}

pub(crate) fn validate_content(
    state: &ChatState,
    action: Action,
    client_id: &str,
) -> Result<Permit, Refusal> {
    let call = call(state, &action)?;
    owned(call, client_id)?;
    if status_of(call) != "running" {
        return Err(Refusal::because("this tool call is not running")); // H-206
    }
    Ok(Permit(action))
}

fn owned(call: &Object, client_id: &str) -> Result<(), Refusal> {
    let contributor = call.get("contributor");
    let owner = contributor.filter(|contributor| contributor["kind"] == "client");
    match owner.and_then(|owner| owner["clientId"].as_str()) {
        Some(owner) if owner == client_id => Ok(()),
        Some(_) => Err(Refusal::because(
            "another client carries out this tool call",
        )),
        None => Err(Refusal::because("the host carries out this tool call")),
    }
}

impl Kernel {
    pub(crate) fn confirm_tool(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        let id = action.text("toolCallId").unwrap_or("").to_owned();
        let approved = action.flag("approved") == Some(true);
        let (suggestion, reason) = (
            action.present("userSuggestion").cloned(),
            action.present("reasonMessage").cloned(),
        );
        if self.act(uri, action, Some(sender)) == Reduced::Unchanged {
            return;
        }
        self.chat_followed(uri);
        let Some(call) = self.call_of(uri, &id) else {
            return;
        };
        let input = call.get("toolInput").and_then(Value::as_str);
        let input = input.map(str::to_owned);
        let selected_option = call.get("selectedOption").cloned();
        self.reply_to_call(uri, &id, |number, by| match by {
            Executor::Client | Executor::Worker(_) if !approved => Some(AgentReply::ToolEnded {
                call: number,
                result: denied(),
            }),
            Executor::Client | Executor::Worker(_) => None,
            Executor::Agent => Some(AgentReply::ToolDecided {
                call: number,
                approved,
                input,
                selected_option,
                suggestion,
                reason,
            }),
        });
    }

    pub(crate) fn confirm_result(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        let id = action.text("toolCallId").unwrap_or("").to_owned();
        let approved = action.flag("approved") == Some(true);
        if self.act(uri, action, Some(sender)) == Reduced::Unchanged {
            return;
        }
        self.chat_followed(uri);
        let result = if approved {
            self.result_of(uri, &id).unwrap_or_else(denied)
        } else {
            denied()
        };
        self.reply_to_call(uri, &id, |call, by| match by {
            Executor::Client | Executor::Worker(_) => Some(AgentReply::ToolEnded { call, result }),
            Executor::Agent => Some(AgentReply::ResultDecided { call, approved }),
        });
    }

    /// A client carried out its tool, or somebody gave up a call that waited for authentication.
    pub(crate) fn client_completed(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        let id = action.text("toolCallId").unwrap_or("").to_owned();
        if self.act(uri, action, Some(sender)) == Reduced::Changed {
            self.chat_followed(uri);
            self.tell_if_over(uri, &id);
        }
    }

    /// Tells the agent how a call ended that somebody else carried out, unless its result is still to be reviewed.
    pub(crate) fn tell_if_over(&mut self, uri: &ChannelUri, id: &str) {
        if let Some(result) = self.result_of(uri, id) {
            self.reply_to_call(uri, id, |call, _| {
                Some(AgentReply::ToolEnded { call, result })
            });
            // Whoever carried it out has nothing to do with this turn any more.
            if let Some(run) = self.chat_mut(uri).and_then(|chat| chat.run.as_mut()) {
                run.calls.retain(|_, call| call.id != id);
            }
        }
    }

    pub(crate) fn call_of(&self, uri: &ChannelUri, id: &str) -> Option<&Object> {
        let turn = self.chat_state(uri)?.active_turn.as_ref()?;
        find_call(&turn.parts, id)
    }

    /// The `ToolCallResult` of a completed call.
    fn result_of(&self, uri: &ChannelUri, id: &str) -> Option<ToolResult> {
        let call = self.call_of(uri, id)?;
        if status_of(call) != "completed" {
            return None;
        }
        let fields = [
            "success",
            "pastTenseMessage",
            "content",
            "structuredContent",
            "error",
        ];
        let result = fields
            .into_iter()
            .filter_map(|field| Some((field.to_owned(), call.get(field)?.clone())));
        // What is recorded was readable, so this cannot fail.
        ToolResult::from_object(result.collect()).ok()
    }

    /// Says something to the run that waits for a call of this chat.
    fn reply_to_call(
        &mut self,
        uri: &ChannelUri,
        id: &str,
        reply: impl FnOnce(u64, &Executor) -> Option<AgentReply>,
    ) {
        let Some(run) = self.chat(uri).and_then(|chat| chat.run.as_ref()) else {
            return;
        };
        let found = run.calls.iter().find(|(_, call)| call.id == id);
        if let Some((number, call)) = found
            && let Some(reply) = reply(*number, &call.by)
        {
            let effect = Effect::Reply { run: run.id, reply };
            self.out.effects.push(effect);
        }
    }
}

fn denied() -> ToolResult {
    ToolResult::failed("Denied by the user", "denied by the user")
}
