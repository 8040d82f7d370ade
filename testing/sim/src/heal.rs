//! The end: everything is mended, everyone comes back, and the checkers have their say.

use testkit::checker;

use crate::story::Story;

impl Story {
    /// Mends the world; what is wrong then is really wrong.
    pub(crate) fn heals(&mut self) -> Vec<String> {
        self.world.mend();
        self.world.kill_at = None;
        if !self.world.is_up() {
            self.world.start();
        }
        for link in self.world.links.values_mut() {
            link.stalled = false;
        }
        self.everyone_returns()
    }

    pub(crate) fn survives_one_more_restart(&mut self) -> Vec<String> {
        self.world.kill();
        self.world.advance_ms(50);
        self.world.start();
        self.everyone_returns()
    }

    fn everyone_returns(&mut self) -> Vec<String> {
        // Probes succeed, what waited goes on.
        for _ in 0..6 {
            self.world.settle();
            self.world.advance_ms(600);
        }
        self.world.settle();
        for _ in 0..6 {
            for client in 0..self.world.clients.len() {
                if !self.world.clients[client].ready {
                    self.client_does_something(client);
                }
            }
            self.world.settle();
            self.world.advance_ms(600);
            self.world.settle();
        }
        for client in &self.world.clients {
            if !client.ready {
                return vec![format!("{} cannot come back", client.id)];
            }
        }
        checker::violations(&mut self.world)
    }
}
