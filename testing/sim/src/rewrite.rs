//! Clients that rewrite sections of the system prompt: opt in by every carrier, answer well, badly, late or never.

use serde_json::{Value, json};

use crate::simulation::Simulation;

const IDS: [&str; 5] = ["tone", "environment_context", "safety", "unlisted", "unknown"];

impl Simulation {
    /// Ids of sections, some of which are restricted.
    fn pick_sections(&mut self) -> Value {
        let chosen = IDS.iter().filter(|_| self.rng.percent(50));
        chosen.collect::<Vec<_>>().into_iter().map(|id| json!(id)).collect()
    }

    /// An active client's entry may say what it wants, in either way or in both.
    pub(crate) fn add_transform(&mut self, entry: &mut Value) {
        if self.rng.percent(40) {
            entry["systemMessageTransform"] = json!({"sections": self.pick_sections()});
        }
        if self.rng.percent(20) {
            let opt_in = json!({"sections": self.pick_sections()});
            entry["_meta"] = json!({"x-systemMessageTransform": opt_in});
        }
    }

    /// The default of a connection.
    pub(crate) fn add_default_transform(&mut self, params: &mut Value) {
        if self.rng.percent(30) {
            let opt_in = json!({"sections": self.pick_sections()});
            params["_meta"] = json!({"x-systemMessageTransform": opt_in});
        }
    }

    pub(crate) fn opt_in(&mut self, client: usize, session: &str) {
        let sections = self.pick_sections();
        let action = json!({"type": "x-session/systemMessageTransformSet", "sections": sections});
        self.dispatch(client, session, action);
    }

    /// Answers what the host asked it; whether there was anything to answer.
    pub(crate) fn answer_transform(&mut self, client: usize) -> bool {
        let asked = &mut self.world.clients[client].asked;
        if asked.is_empty() {
            return false;
        }
        let request = asked.remove(0);
        let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
        let text = format!("new {}", self.rng.below(9));
        match self.rng.below(8) {
            0 => answer["error"] = json!({"code": -32601, "message": "no"}),
            1 => answer["result"] = json!({"sections": {"tone": {"content": 7}}}),
            2 => answer["result"] = json!(null),
            3 => return true,                               // never
            4 => answer["id"] = json!(self.rng.below(100)), // somebody else's, or nobody's
            _ if request["method"] == "resourceRead" => {
                answer["result"] = json!({"data": "aGk=", "encoding": "base64"});
            }
            _ => {
                answer["result"] =
                    json!({"sections": {"tone": {"content": text}, "safety": {"content": "none"}}})
            }
        }
        if answer.get("error").is_none() && answer.get("result").is_none() {
            answer["result"] = json!({"sections": {}});
        }
        self.world.send(client, answer.to_string());
        true
    }
}
