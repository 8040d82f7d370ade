//! Clients that left a moment ago, with their floors, as the journal holds them: most who lose a connection come back at once,
//! and their reconnect need not be read.

use std::collections::VecDeque;

use crate::record::{ClientRecord, FloorRecord};

/// Clients remembered at most; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 256;

#[derive(Default)]
pub(super) struct RememberedClients {
    clients: VecDeque<(ClientRecord, Vec<FloorRecord>)>,
}

impl RememberedClients {
    pub(super) fn find(&self, client_id: &str) -> Option<(ClientRecord, Vec<FloorRecord>)> {
        let mut clients = self.clients.iter();
        clients.find(|(client, _)| client.client_id == client_id).cloned()
    }

    pub(super) fn add(&mut self, client: ClientRecord, floors: Vec<FloorRecord>) {
        self.forget(&client.client_id);
        // No room for more than there are: few come back to most kernels, and there may be thousands at rest.
        self.clients.reserve_exact(1);
        self.clients.push_back((client, floors));
        if self.clients.len() > REMEMBERED_MAX {
            self.clients.pop_front();
        }
        debug_assert!(self.clients.len() <= REMEMBERED_MAX, "few are remembered");
    }

    pub(super) fn forget(&mut self, client_id: &str) {
        self.clients.retain(|(client, _)| client.client_id != client_id);
    }

    pub(super) fn clear(&mut self) {
        self.clients = VecDeque::new(); // with its room: there may be thousands of kernels at rest
    }
}
