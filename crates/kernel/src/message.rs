//! A client's message: may it be sent here, and what the host fills in before it is recorded (G-12, H-071, H-151, H-161).

use serde_json::{Value, json};
use wire::{Action, ChannelUri, Object};

use crate::Kernel;
use crate::authority::Refusal;
use crate::channel::ChatChannel;
use crate::load::{Flow, Load, Memo};
use crate::record::{Answer, Query};

pub(crate) fn not_a_user_message() -> Refusal {
    Refusal::because("a client may only send messages whose origin is the user") // H-071
}

/// What a message takes, as it is recorded.
pub(crate) fn size_of(message: &Value) -> usize {
    wire::rpc::to_json(message).len()
}

pub(crate) fn too_large(kernel: &Kernel) -> Refusal {
    Refusal(format!(
        "what waits in a chat has at most {} bytes",
        kernel.limits.waiting_bytes_max
    ))
}

/// A chat that a message refers to, and the turn its transcript is to end at.
struct Attached {
    chat: ChannelUri,
    end_turn: Option<String>,
}

impl Kernel {
    /// Checks a message and writes into it what will really be used.
    pub(crate) fn check_message(
        &self,
        chat: &ChatChannel,
        message: &mut Object,
        memo: &Memo,
    ) -> Result<(), Refusal> {
        let interactivity = chat.state.extra.get("interactivity");
        if interactivity.is_some_and(|mode| mode != "full") {
            return Err(Refusal::because("this chat takes no messages from clients")); // H-151
        }
        let session = self.session_state(&chat.session);
        let Some(session) = session.filter(|session| session.lifecycle != "failed") else {
            return Err(Refusal::because(
                "this session could not be created and takes no turns",
            ));
        };
        if message
            .get("origin")
            .is_none_or(|origin| origin["kind"] != "user")
        {
            return Err(not_a_user_message());
        }
        self.choose_model(&session.provider, message)?;
        if attached_chats(message).len() > self.limits.attached_chats_max {
            return Err(Refusal(format!(
                "a message refers to at most {} chats",
                self.limits.attached_chats_max
            )));
        }
        self.pin_attached_chats(message, memo)
    }

    /// The model a message names, if there is one and its settings are possible; otherwise the default (G-12). Settings
    /// the model does not have are not recorded: nothing is told that was not used.
    fn choose_model(&self, provider: &str, message: &mut Object) -> Result<(), Refusal> {
        let agent = self
            .facts
            .agents
            .iter()
            .find(|agent| agent.provider == provider);
        let Some(model) = message.get_mut("model").filter(|model| !model.is_null()) else {
            if let Some(model) = agent.and_then(|agent| agent.default_model.clone()) {
                message.insert("model".to_owned(), json!({"id": model}));
            }
            return Ok(());
        };
        let models = agent.and_then(|agent| agent.info["models"].as_array());
        let known = models
            .into_iter()
            .flatten()
            .find(|known| known["id"] == model["id"]);
        let Some(known) = known else {
            return Err(Refusal::because("this agent has no model with this id"));
        };
        if let Some(Value::Object(values)) = model.get_mut("config") {
            let checked = crate::config::known_values(&known["configSchema"], values);
            *values = checked.map_err(|bad| Refusal(format!("the model's {bad}")))?;
        }
        Ok(())
    }

    /// What must be known of the chats that an action's message refers to, before it can be checked (H-161, H-239).
    pub(crate) fn need_attached_chats(&self, action: &Action, memo: &Memo) -> Load<()> {
        let message = action.get("message").and_then(Value::as_object);
        self.need_chats_of(message, memo)
    }

    pub(crate) fn need_chats_of(&self, message: Option<&Object>, memo: &Memo) -> Load<()> {
        let mut queries = Vec::new();
        let attached = message.map(attached_chats).unwrap_or_default();
        if attached.len() > self.limits.attached_chats_max {
            return Flow::Ready(()); // refused when it is checked
        }
        for attached in attached {
            match self.need_channel(&attached.chat, memo) {
                Flow::Ready(_) => {}
                Flow::Ask(more) => queries.extend(more),
                Flow::Failed(failed) => return Flow::Failed(failed),
            }
            let Some(end_turn) = attached.end_turn else {
                continue;
            };
            match self.find_turn(&attached.chat, &end_turn, memo) {
                Flow::Ready(_) => {}
                Flow::Ask(more) => queries.extend(more),
                Flow::Failed(failed) => return Flow::Failed(failed),
            }
        }
        if queries.is_empty() {
            Flow::Ready(())
        } else {
            Flow::Ask(queries)
        }
    }

    /// The number of a visible completed turn, from memory or from the journal's answer.
    pub(crate) fn find_turn(
        &self,
        uri: &ChannelUri,
        turn_id: &str,
        memo: &Memo,
    ) -> Load<Option<u64>> {
        let (Some(chat), Some(channel)) = (self.chat(uri), self.channels.get(uri)) else {
            return Flow::Ready(None);
        };
        if let Some(place) = chat.state.turns.position(turn_id) {
            return Flow::Ready(chat.ns.get(place).copied());
        }
        if !chat.older {
            return Flow::Ready(None);
        }
        let query = Query::FindTurn {
            chat: channel.id,
            turn_id: turn_id.to_owned(),
        };
        match memo.find(|asked| *asked == query) {
            None => Flow::Ask(vec![query]),
            Some((_, Err(failed))) => Flow::Failed(failed.clone()),
            Some((_, Ok(Answer::FindTurn(found)))) => {
                // It may have been cut off since: what is in memory begins after all that is on disk.
                let found = found.filter(|found| found.visible && found.n < chat.first_n());
                Flow::Ready(found.map(|found| found.n))
            }
            Some((_, Ok(_))) => Flow::Ready(None),
        }
    }

    /// A transcript ends at a completed turn: the one named, or the latest there is now (H-161).
    fn pin_attached_chats(&self, message: &mut Object, memo: &Memo) -> Result<(), Refusal> {
        let Some(Value::Array(attachments)) = message.get_mut("attachments") else {
            return Ok(());
        };
        for attachment in attachments {
            let Some(attached) = attached_chat(attachment) else {
                continue;
            };
            let Attached { chat, end_turn } = attached?;
            let Some(state) = self.chat_state(&chat) else {
                return Err(Refusal(format!("there is no chat {chat} to attach")));
            };
            match end_turn {
                Some(end_turn) => match self.find_turn(&chat, &end_turn, memo) {
                    Flow::Ready(Some(_)) => {}
                    Flow::Failed(failed) => return Err(Refusal(failed.to_string())),
                    Flow::Ready(None) | Flow::Ask(_) => {
                        return Err(Refusal(format!(
                            "`endTurn` names no completed turn of {chat}"
                        )));
                    }
                },
                None => {
                    if let Some(turn) = state.turns.last() {
                        attachment["endTurn"] = json!(turn.id);
                    }
                }
            }
        }
        Ok(())
    }
}

fn attached_chats(message: &Object) -> Vec<Attached> {
    let attachments = message.get("attachments").and_then(Value::as_array);
    attachments
        .into_iter()
        .flatten()
        .filter_map(|attachment| attached_chat(attachment)?.ok())
        .collect()
}

fn attached_chat(attachment: &Value) -> Option<Result<Attached, Refusal>> {
    if attachment["type"] != "chat" {
        return None;
    }
    let chat = attachment["resource"].as_str().unwrap_or("");
    Some(match ChannelUri::parse(chat) {
        Ok(chat) => Ok(Attached {
            chat,
            end_turn: attachment["endTurn"].as_str().map(str::to_owned),
        }),
        Err(error) => Err(Refusal(format!("an attached chat: {error}"))),
    })
}
