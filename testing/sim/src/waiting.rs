//! Messages that wait, and histories that are cut.

use serde_json::json;
use testkit::waiting::message;

use crate::story::Story;

impl Story {
    /// Queue and steering: set, changed, taken back, put in another order.
    pub(crate) fn lets_wait(&mut self, client: usize, chat: &str) {
        let kind = if self.chance.percent(75) {
            "queued"
        } else {
            "steering"
        };
        let id = format!("m{}", self.chance.below(5));
        let action = match self.chance.below(10) {
            0..=6 => {
                let mood = self.mood();
                if kind == "queued" {
                    self.world.models.next.push_back(mood);
                }
                let mut message = message(&format!("waits {}", self.chance.below(100)));
                if self.chance.percent(20) {
                    message["attachments"] = self.attachments();
                }
                json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message})
            }
            7 | 8 => json!({"type": "chat/pendingMessageRemoved", "kind": kind, "id": id}),
            _ => {
                let order: Vec<String> = (0..self.chance.below(5))
                    .map(|_| format!("m{}", self.chance.below(6)))
                    .collect();
                json!({"type": "chat/queuedMessagesReordered", "order": order})
            }
        };
        self.dispatches(client, chat, action);
    }

    pub(crate) fn truncates(&mut self, client: usize, chat: &str) {
        let mirror = self.world.clients[client].mirrors.get(chat);
        let turns = mirror
            .and_then(|mirror| mirror.chat())
            .map(|chat| chat.turns.as_slice());
        let turns: Vec<String> = turns
            .unwrap_or(&[])
            .iter()
            .map(|turn| turn.id.clone())
            .collect();
        let mut action = json!({"type": "chat/truncated"});
        match self.chance.below(10) {
            0 => {}
            // Any turn there may be, seen or not.
            1..=3 => action["turnId"] = json!(format!("t{}", self.chance.below(self.turns + 1))),
            _ => match self.chance.pick(&turns) {
                Some(turn) => action["turnId"] = json!(turn),
                None => return,
            },
        }
        self.dispatches(client, chat, action);
    }
}
