//! Chats come and go: plain, forked, on the side, under names that are used again.

use serde_json::json;
use testkit::pending_messages::message;

use crate::simulation::Simulation;

impl Simulation {
    pub(crate) fn pick_chat_name(&mut self) -> String {
        format!("ahp-chat:/n{}", self.rng.below(4))
    }

    pub(crate) fn create_chat(&mut self, client: usize, session: &str, source: &str) {
        let mut params = json!({"channel": session, "chat": self.pick_chat_name()});
        if self.rng.percent(60) {
            let mirror = self.world.clients[client].mirrors.get(source);
            let state = mirror.and_then(|mirror| mirror.chat());
            let mut turns: Vec<String> = Vec::new();
            if let Some(state) = state {
                turns.extend(state.turns.as_slice().iter().map(|turn| turn.id.clone()));
                turns.extend(state.active_turn.as_ref().map(|turn| turn.id.clone()));
            }
            let turn = match self.rng.pick(&turns) {
                Some(turn) => turn.clone(),
                None => format!("t{}", self.rng.below(self.turns + 1)),
            };
            let kind = if self.rng.percent(70) { "fork" } else { "sideChat" };
            params["source"] = json!({"kind": kind, "chat": source, "turnId": turn});
            if kind == "sideChat" && self.rng.percent(30) {
                params["source"]["selection"] = json!({"text": "this"});
            }
        }
        if self.rng.percent(30) {
            let script = self.random_script();
            self.world.models.next.push_back(script);
            params["initialMessage"] = message("begin");
        }
        self.request(client, "createChat", params);
    }

    pub(crate) fn dispose_chat(&mut self, client: usize, chat: &str) {
        if self.rng.percent(60) {
            self.request(client, "disposeChat", json!({"channel": chat}));
        }
    }
}
