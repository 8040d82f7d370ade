//! Clients answer what agents wait for: rightly, wrongly, too late, in another's name.

use serde_json::{Value, json};
use testkit::consent::text_answer;
use testkit::mirror::Mirror;

use crate::simulation::Simulation;

/// Something that waits for a client: its chat, its turn, and the call or the request.
struct Block {
    chat: String,
    turn: Value,
    part: Value,
}

impl Simulation {
    /// What this client sees waiting, in chats and in what sessions say of chats it does not watch.
    fn blocks(&self, client: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (uri, mirror) in &self.world.clients[client].mirrors {
            match mirror {
                Mirror::Chat(state) => {
                    let Some(turn) = &state.active_turn else { continue };
                    for part in turn.parts.iter() {
                        let part = Value::Object(part.0.clone());
                        if part["kind"] == "toolCall" || part["kind"] == "inputRequest" {
                            let (chat, turn) = (uri.clone(), json!(turn.id));
                            blocks.push(Block { chat, turn, part });
                        }
                    }
                }
                Mirror::Session(state) => {
                    for entry in &state.input_needed {
                        let chat = entry["chat"].as_str().unwrap_or("").to_owned();
                        let turn = entry["turnId"].clone();
                        let part = entry.clone();
                        blocks.push(Block { chat, turn, part });
                    }
                }
                Mirror::Root(_) | Mirror::Plain(_) => {}
            }
        }
        blocks
    }

    pub(crate) fn answer_block(&mut self, client: usize, chat: &str) {
        let blocks = self.blocks(client);
        let waiting: Vec<&Block> = blocks.iter().filter(|block| waits(&block.part)).collect();
        let block = if waiting.is_empty() || self.rng.percent(10) {
            self.rng.pick(&blocks)
        } else {
            self.rng.pick(&waiting).copied()
        };
        let Some(block) = block else {
            let action = json!({"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": "c1", "approved": true, "confirmed": "user-action"});
            return self.dispatch(client, chat, action);
        };
        let action = if block.part.get("request").is_some() {
            self.answer(&block.part["request"])
        } else {
            let own = self.world.clients[client].id.clone();
            self.decision(&block.turn, &block.part["toolCall"], &own)
        };
        let chat = block.chat.clone();
        self.sent_decisions.push((chat.clone(), action.clone()));
        if self.sent_decisions.len() > 20 {
            self.sent_decisions.remove(0);
        }
        self.dispatch(client, &chat, action);
    }

    /// A decision of earlier, once more: by now another was decided, or it is too late.
    pub(crate) fn repeat_decision(&mut self, client: usize) {
        if let Some((chat, action)) = self.rng.pick(&self.sent_decisions).cloned() {
            self.dispatch(client, &chat, action);
        }
    }

    fn decision(&mut self, turn: &Value, call: &Value, own: &str) -> Value {
        let named = |kind: &str, fields: Value| {
            let mut action =
                json!({"type": kind, "turnId": turn, "toolCallId": call["toolCallId"]});
            for (field, value) in fields.as_object().into_iter().flatten() {
                action[field] = value.clone();
            }
            action
        };
        match call["status"].as_str().unwrap_or("") {
            "pending-result-confirmation" => {
                let approved = self.rng.percent(70);
                named("chat/toolCallResultConfirmed", json!({"approved": approved}))
            }
            "running" if call["contributor"]["clientId"] == own || self.rng.percent(30) => {
                if self.rng.percent(20) {
                    let content = json!([{"type": "text", "text": "so far"}]);
                    return named("chat/toolCallContentChanged", json!({"content": content}));
                }
                let success = self.rng.percent(80);
                let result = json!({"success": success, "pastTenseMessage": "did"});
                let mut fields = json!({"result": result});
                if self.rng.percent(15) {
                    fields["requiresResultConfirmation"] = json!(true);
                }
                named("chat/toolCallComplete", fields)
            }
            _ => {
                let approved = self.rng.percent(70);
                let mut fields = json!({"approved": approved});
                fields[if approved { "confirmed" } else { "reason" }] =
                    json!(if approved { "user-action" } else { "denied" });
                if approved && self.rng.percent(30) {
                    fields["editedToolInput"] = json!("edited");
                }
                if self.rng.percent(20) {
                    let options = ["yes", "always", "no", "never"];
                    fields["selectedOptionId"] = json!(self.rng.pick(&options));
                }
                named("chat/toolCallConfirmed", fields)
            }
        }
    }

    fn answer(&mut self, request: &Value) -> Value {
        let id = &request["id"];
        // A text for whatever is asked: for a number it is read as one, or refused (G-44).
        let text = *self.rng.pick(&["so", "3", "this", "-7"]).unwrap_or(&"so");
        match self.rng.below(6) {
            0 | 1 => {
                let state = if self.rng.percent(50) { "draft" } else { "submitted" };
                let mut action =
                    json!({"type": "chat/inputAnswerChanged", "requestId": id, "questionId": "q"});
                if self.rng.percent(80) {
                    action["answer"] = text_answer(state, text);
                }
                action
            }
            2 => json!({"type": "chat/inputCompleted", "requestId": id, "response": "decline"}),
            3 => json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept"}),
            _ => {
                let answers = json!({"q": text_answer("submitted", text)});
                json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept", "answers": answers})
            }
        }
    }
}

/// Whether a part or an entry still waits for a client.
fn waits(part: &Value) -> bool {
    if part.get("request").is_some() {
        return part.get("response").is_none();
    }
    let call = &part["toolCall"];
    let status = call["status"].as_str().unwrap_or("");
    status.starts_with("pending-") || status == "running" && call["contributor"]["kind"] == "client"
}
