//! Chats come and go: plain, forked, on the side, under names that are used again.

use serde_json::json;
use testkit::waiting::message;

use crate::story::Story;

impl Story {
    pub(crate) fn named_chat(&mut self) -> String {
        format!("ahp-chat:/n{}", self.chance.below(4))
    }

    pub(crate) fn opens_a_chat(&mut self, client: usize, session: &str, source: &str) {
        let mut params = json!({"channel": session, "chat": self.named_chat()});
        if self.chance.percent(60) {
            let mirror = self.world.clients[client].mirrors.get(source);
            let state = mirror.and_then(|mirror| mirror.chat());
            let mut turns: Vec<String> = Vec::new();
            if let Some(state) = state {
                turns.extend(state.turns.as_slice().iter().map(|turn| turn.id.clone()));
                turns.extend(state.active_turn.as_ref().map(|turn| turn.id.clone()));
            }
            let turn = match self.chance.pick(&turns) {
                Some(turn) => turn.clone(),
                None => format!("t{}", self.chance.below(self.turns + 1)),
            };
            let kind = if self.chance.percent(70) {
                "fork"
            } else {
                "sideChat"
            };
            params["source"] = json!({"kind": kind, "chat": source, "turnId": turn});
            if kind == "sideChat" && self.chance.percent(30) {
                params["source"]["selection"] = json!({"text": "this"});
            }
        }
        if self.chance.percent(30) {
            let mood = self.mood();
            self.world.models.next.push_back(mood);
            params["initialMessage"] = message("begin");
        }
        self.asks(client, "createChat", params);
    }

    pub(crate) fn closes_a_chat(&mut self, client: usize, chat: &str) {
        if self.chance.percent(60) {
            self.asks(client, "disposeChat", json!({"channel": chat}));
        }
    }
}
