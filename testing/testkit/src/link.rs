//! Links: two queues between a client and the host, that can stall, be cut, and lose what was on the way.

use std::collections::VecDeque;

use bytes::Bytes;
use kernel::{CloseReason, Input, PeerId};
use wire::rpc;

use crate::world::World;

/// A connection: two queues and what is wrong with them.
#[derive(Debug)]
pub struct Link {
    pub client: usize,
    pub to_host: VecDeque<String>,
    pub to_client: VecDeque<(Bytes, u32)>,
    /// The host reads no more for now.
    pub paused: bool,
    /// Nothing moves in either direction.
    pub stalled: bool,
    /// The host closes it once everything sent is delivered.
    pub closing: Option<CloseReason>,
}

impl World {
    /// A new connection for a client; an older one of the same client stays what it is for the host.
    pub fn connect(&mut self, client: usize) -> PeerId {
        self.next_peer += 1;
        let peer = PeerId(self.next_peer);
        self.log(|| format!("{} connects as {peer:?}", self.clients[client].id));
        let link = Link {
            client,
            to_host: VecDeque::new(),
            to_client: VecDeque::new(),
            paused: false,
            stalled: false,
            closing: None,
        };
        self.links.insert(peer, link);
        self.clients[client].connected(peer);
        let role = self.clients[client].role;
        self.windows.remove(&client);
        self.queue.push_back(Input::Connected { peer, role });
        peer
    }

    /// The client is gone from this link; what it had sent and `read` messages of it still reach the host.
    pub fn cut(&mut self, peer: PeerId, read: usize) {
        for _ in 0..read {
            self.carry_to_host(peer);
        }
        let Some(link) = self.links.remove(&peer) else { return };
        self.log(|| format!("{} is cut off from {peer:?}", self.clients[link.client].id));
        let client = &mut self.clients[link.client];
        if client.link == Some(peer) {
            client.lost();
        }
        self.queue.push_back(Input::Disconnected { peer });
    }

    pub fn send(&mut self, client: usize, text: String) {
        self.log(|| format!("{} -> {text}", self.clients[client].id));
        if let Some(link) = self.clients[client].link.and_then(|peer| self.links.get_mut(&peer)) {
            link.to_host.push_back(text);
        }
    }

    /// Moves one message of a client to the host. Whether there was one.
    pub fn carry_to_host(&mut self, peer: PeerId) -> bool {
        let depth = host::ServerLimits::default().json_depth_max;
        let Some(link) = self.links.get_mut(&peer).filter(|link| !link.paused && !link.stalled)
        else {
            return false;
        };
        if link.closing.is_some() {
            return false;
        }
        let Some(text) = link.to_host.pop_front() else { return false };
        self.queue.push_back(match rpc::decode(&text, depth) {
            Ok(message) => {
                let inline = (&self.limits).into();
                let received = kernel::Received::new(message, text.len(), inline);
                Input::Received { peer, received }
            }
            Err(malformed) => Input::Malformed { peer, malformed },
        });
        true
    }

    /// Moves one frame of the host to a client. Whether there was one.
    pub fn carry_to_client(&mut self, peer: PeerId) -> bool {
        let Some(link) = self.links.get_mut(&peer).filter(|link| !link.stalled) else {
            return false;
        };
        let client = link.client;
        let Some((frame, window)) = link.to_client.pop_front() else {
            if let Some(why) = link.closing {
                self.closed.push((client, why));
                self.cut(peer, 0);
                return true;
            }
            return false;
        };
        let text = std::str::from_utf8(&frame).expect("frames are UTF-8");
        if self.clients[client].link == Some(peer) {
            self.log(|| format!("{} <- {text}", self.clients[client].id));
            let value = serde_json::from_str(text).expect("frames are JSON");
            self.windows.entry(client).or_default().push(window);
            self.clients[client].receive(value);
        }
        true
    }
}
