//! A blocking client of one space, through any node, with one session.
//!
//! Must not know: which node serves the space.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::driver::{DELTA_BYTES, is_idle, send_stamps, session_of};
use crate::measure::now_ns;
use crate::protocol;
use crate::socket::Socket;

const PROVIDER: &str = "scripted";
/// A node that has to load the space first, or hears of another only now, sends clients away for a while.
const JOIN_MAX: Duration = Duration::from_secs(60);
const JOIN_AGAIN: Duration = Duration::from_millis(50);

pub(crate) struct SpaceClient {
    socket: Socket,
    /// The chat of the space's session.
    pub chat: String,
    client_seq: u64,
}

/// Comes into a space through a node.
pub(crate) fn join_space(address: &str, token: &str, client_id: &str) -> Result<Socket> {
    let until = Instant::now() + JOIN_MAX;
    loop {
        match Socket::join_with(address, Some(token), client_id) {
            Ok(socket) => return Ok(socket),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => std::thread::sleep(JOIN_AGAIN),
        }
    }
}

impl SpaceClient {
    /// Comes into a space and makes its session. Where nobody serves the space, this node does from now on.
    pub(crate) fn create(address: &str, token: &str) -> Result<Self> {
        let mut client = Self::open(address, token, "first")?;
        let params = json!({"channel": session_of(PROVIDER, 1), "provider": PROVIDER});
        client.socket.request(3, "createSession", &params)?;
        Ok(client)
    }

    /// Comes into a space whose session is there.
    pub(crate) fn open(address: &str, token: &str, client_id: &str) -> Result<Self> {
        Ok(Self {
            socket: join_space(address, token, client_id)?,
            chat: protocol::chat_of(&session_of(PROVIDER, 1)),
            client_seq: 0,
        })
    }

    /// Has the agent stream so many deltas.
    pub(crate) fn stream(&mut self, chunks: u64, every_ms: u64) -> Result<()> {
        self.client_seq += 1;
        let seq = self.client_seq;
        let turn_id = format!("01900000-0000-7000-9000-{seq:012}-{}", now_ns());
        let text = format!("stream {chunks} {DELTA_BYTES} {every_ms}");
        let message = protocol::turn_started(&self.chat, seq, &turn_id, &text);
        self.socket.send(&message)
    }

    /// Sends stamped drafts at a steady pace.
    pub(crate) fn stamp(&mut self, count: u32, every: Duration) -> Result<()> {
        send_stamps(&mut self.socket, &self.chat, &mut self.client_seq, count, every)
    }

    /// Whether no turn runs.
    pub(crate) fn is_idle(&mut self) -> Result<bool> {
        let is_idle = is_idle(&mut self.socket, &self.chat)?;
        self.socket.drain()?;
        Ok(is_idle)
    }
}
