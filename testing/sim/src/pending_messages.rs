//! Messages that wait, and histories that are cut.

use serde_json::json;
use testkit::pending_messages::message;

use crate::simulation::Simulation;

impl Simulation {
    /// Queue and steering: set, changed, taken back, put in another order.
    pub(crate) fn change_pending_messages(&mut self, client: usize, chat: &str) {
        let kind = if self.rng.percent(75) { "queued" } else { "steering" };
        let id = format!("m{}", self.rng.below(5));
        let action = match self.rng.below(10) {
            0..=6 => {
                let script = self.random_script();
                self.world.models.next.push_back(script); // steering may begin a turn, too (G-08)
                let mut message = message(&format!("waits {}", self.rng.below(100)));
                if self.rng.percent(20) {
                    message["attachments"] = self.attachments();
                }
                json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message})
            }
            7 | 8 => json!({"type": "chat/pendingMessageRemoved", "kind": kind, "id": id}),
            _ => {
                let order: Vec<String> =
                    (0..self.rng.below(5)).map(|_| format!("m{}", self.rng.below(6))).collect();
                json!({"type": "chat/queuedMessagesReordered", "order": order})
            }
        };
        self.dispatch(client, chat, action);
    }

    pub(crate) fn truncate(&mut self, client: usize, chat: &str) {
        let mirror = self.world.clients[client].mirrors.get(chat);
        let turns: Vec<String> = mirror
            .and_then(|mirror| mirror.chat())
            .map(|chat| chat.turns.as_slice())
            .unwrap_or(&[])
            .iter()
            .map(|turn| turn.id.clone())
            .collect();
        let mut action = json!({"type": "chat/truncated"});
        match self.rng.below(10) {
            0 => {}
            // Any turn there may be, seen or not.
            1..=3 => action["turnId"] = json!(format!("t{}", self.rng.below(self.turns + 1))),
            _ => match self.rng.pick(&turns) {
                Some(turn) => action["turnId"] = json!(turn),
                None => return,
            },
        }
        self.dispatch(client, chat, action);
    }
}
