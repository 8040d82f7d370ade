//! The end: faults are removed, clients reconnect, and the checkers look at everything.

use testkit::checker;

use crate::simulation::Simulation;

impl Simulation {
    /// Removes every fault; what is wrong then is really wrong.
    pub(crate) fn recover_and_check(&mut self) -> Vec<String> {
        self.world.mend();
        self.world.kill_at = None;
        if !self.world.is_up() {
            self.world.start();
        }
        for link in self.world.links.values_mut() {
            link.stalled = false;
        }
        let stays_away = self.rng.percent(30).then(|| self.rng.index(self.world.clients.len()));
        // Also links that it left behind without the host's noticing.
        let left: Vec<_> = self
            .world
            .links
            .iter()
            .filter(|(_, link)| stays_away == Some(link.client))
            .map(|(peer, _)| *peer)
            .collect();
        for peer in left {
            self.world.cut(peer, 0);
        }
        let mut wrong = self.reconnect_all_and_check(stays_away);
        if let Some(client) = stays_away {
            wrong.extend(self.find_absent_client_still_active(client));
        }
        wrong
    }

    /// One that stays away is not active anywhere once its grace is over (H-126).
    fn find_absent_client_still_active(&mut self, client: usize) -> Option<String> {
        for _ in 0..10 {
            self.world.advance_ms(1_000);
            self.world.settle();
        }
        let id = self.world.clients[client].id.clone();
        let states = checker::host_states(&mut self.world);
        let is_active = |state: &serde_json::Value| {
            let active = state["activeClients"].as_array().into_iter().flatten();
            active.into_iter().any(|entry| entry["clientId"] == id.as_str())
        };
        states
            .iter()
            .find(|(_, state)| is_active(state))
            .map(|(channel, _)| format!("{id} is still active in {channel}"))
    }

    pub(crate) fn restart_and_check(&mut self) -> Vec<String> {
        self.world.kill();
        self.world.advance_ms(50);
        self.world.start();
        self.reconnect_all_and_check(None)
    }

    /// All clients come back to a host that was just started; then every mirror is what a new subscriber gets.
    pub(crate) fn compare_after_crash(&mut self) {
        self.world.mend();
        for link in self.world.links.values_mut() {
            link.stalled = false;
        }
        if let Some(away) = self.reconnect_all(None) {
            self.wrong.push(away);
            return;
        }
        self.compared += 1;
        let different = checker::mirror_differences(&mut self.world);
        let after = |why| format!("after a crash: {why}");
        self.wrong.extend(different.into_iter().map(after));
    }

    fn reconnect_all_and_check(&mut self, but: Option<usize>) -> Vec<String> {
        match self.reconnect_all(but) {
            Some(away) => vec![away],
            None => checker::violations(&mut self.world),
        }
    }

    /// Lets all clients reconnect that may. Says who could not.
    fn reconnect_all(&mut self, but: Option<usize>) -> Option<String> {
        // Probes succeed, what waited goes on: a read that failed is tried again after ten seconds.
        for _ in 0..20 {
            self.world.settle();
            self.world.advance_ms(600);
        }
        self.world.settle();
        for _ in 0..6 {
            for client in 0..self.world.clients.len() {
                if !self.world.clients[client].ready && but != Some(client) {
                    self.act_as_client(client);
                }
            }
            self.world.settle();
            self.world.advance_ms(600);
            self.world.settle();
        }
        for (index, client) in self.world.clients.iter().enumerate() {
            if !client.ready && but != Some(index) {
                return Some(format!("{} cannot come back", client.id));
            }
        }
        None
    }
}
