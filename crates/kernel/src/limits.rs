//! Every bound in the house, named, with its reason. The names are the keys of the TOML file (G-29).

use serde::{Deserialize, Serialize};

/// Bounds and periods. Sizes in bytes, times in milliseconds or seconds as the name says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest message taken from a client: attachments travel inline up to this.
    pub frame_in_bytes: usize,
    /// Deepest JSON nesting taken: recursion is bounded before anything is built.
    pub json_depth_max: usize,
    /// Channels one connection may watch.
    pub subscriptions_max: usize,
    /// Connections at once.
    pub connections_max: usize,
    /// Requests of one connection that wait for something.
    pub requests_in_flight_max: usize,
    /// Bytes of one connection's messages that wait for a channel to be loaded; reading stops above it.
    pub parked_bytes_max: usize,
    /// How long the host waits for a client to answer a request of its own.
    pub reverse_request_timeout_ms: u64,
    /// How long a render waits for the client that rewrites its sections (G-36).
    pub transform_deadline_ms: u64,
    /// Sections in one request of a render: the prompt must not be flooded.
    pub transform_sections_max: usize,
    /// Largest reply to it.
    pub transform_reply_bytes_max: usize,
    /// Largest message sent: all snapshots of one response share it, a larger replay becomes snapshots.
    pub message_out_bytes: usize,
    /// Messages above this leave in WebSocket fragments.
    pub fragment_bytes: usize,
    /// Frames that may wait for one slow reader before it is cut.
    pub outbox_frames_max: usize,
    /// Largest body that stays embedded in a message; larger ones are kept outside of state (G-32, C-033).
    pub inline_body_bytes: usize,
    /// What the messages of one session may embed in all.
    pub inline_session_bytes: usize,
    /// Largest result of a tool that stays in state, in all.
    pub inline_result_bytes: usize,
    /// Bytes that may wait for one slow reader before it is cut.
    pub outbox_bytes_max: usize,
    /// Inputs that may wait for the kernel; sources wait when it is full.
    pub inputs_max: usize,
    /// Inputs taken into one journal transaction.
    pub batch_inputs_max: usize,
    /// Envelopes kept in memory for reconnects, in bytes.
    pub tail_bytes: usize,
    /// Turns loaded when a chat is opened without a larger view.
    pub open_turns: u32,
    /// A page of older turns (G-18).
    pub page_turns: u32,
    pub page_bytes: usize,
    /// Session list page without a limit (G-23), and the most a client may ask for.
    pub list_page_max: u32,
    /// A channel nobody uses leaves memory after this.
    pub channel_idle_ms: u64,
    /// How long a disconnected active client keeps its place (G-07).
    pub active_client_grace_ms: u64,
    /// How often empty sessions, old actions and old clients are swept (G-28: at least every 30 s).
    pub sweep_ms: u64,
    /// A session that never had a turn is disposed of after this (G-28).
    pub empty_session_ttl_s: u64,
    /// How long disposed sessions that had turns are kept on disk (G-28).
    pub retention_disposed_s: u64,
    /// How long a body that nothing refers to is kept: it may be on its way into a message.
    pub blob_grace_s: u64,
    /// How many of the newest seqs keep their actions for replay.
    pub retention_actions: u64,
    /// Clients remembered for reconnect (G-20).
    pub clients_max: u32,
    pub client_ttl_s: u64,
    /// Largest agent checkpoint (G-04).
    pub checkpoint_bytes_max: usize,
    /// Messages that may wait in the queue of one chat.
    pub queued_messages_max: usize,
    /// Bytes of a chat's queue and steering message together, and of its draft: they travel in every snapshot.
    pub waiting_bytes_max: usize,
    /// Chats one message may refer to: each is looked up before it is accepted.
    pub attached_chats_max: usize,
    /// Chats of one session: each travels in every summary of it.
    pub chats_max: usize,
    /// Text a side chat may be about: it travels in the catalogue.
    pub selection_bytes_max: usize,
    /// How deep workers may spawn workers, and how many of a session may work at once (H-153).
    pub worker_depth_max: usize,
    pub workers_max: usize,
    /// How often a journal that cannot be written is tried again (G-15).
    pub journal_retry_ms: u64,
    /// How long a connection may take to send its HTTP request.
    pub handshake_timeout_ms: u64,
    /// Keep-alive: a silent connection is pinged after this, and cut after twice this without a sign of life.
    pub keep_alive_ms: u64,
    /// How long `SIGTERM` waits for turns and readers (5 s in all by contract).
    pub shutdown_ms: u64,
}

impl Limits {
    /// Names the first limit with which a host could not work.
    pub fn check(&self) -> Result<(), String> {
        let least: [(&str, u64, u64); 22] = [
            ("frame_in_bytes", self.frame_in_bytes as u64, 1_024),
            ("json_depth_max", self.json_depth_max as u64, 16),
            ("subscriptions_max", self.subscriptions_max as u64, 1),
            ("connections_max", self.connections_max as u64, 1),
            (
                "requests_in_flight_max",
                self.requests_in_flight_max as u64,
                2,
            ),
            ("parked_bytes_max", self.parked_bytes_max as u64, 1),
            ("message_out_bytes", self.message_out_bytes as u64, 65_536),
            ("fragment_bytes", self.fragment_bytes as u64, 1_024),
            ("outbox_frames_max", self.outbox_frames_max as u64, 16),
            ("outbox_bytes_max", self.outbox_bytes_max as u64, 65_536),
            (
                "inline_result_bytes",
                self.inline_result_bytes as u64,
                32_768,
            ),
            ("inputs_max", self.inputs_max as u64, 1),
            ("batch_inputs_max", self.batch_inputs_max as u64, 1),
            ("open_turns", self.open_turns.into(), 1),
            ("page_turns", self.page_turns.into(), 1),
            ("list_page_max", self.list_page_max.into(), 1),
            ("channel_idle_ms", self.channel_idle_ms, 10),
            ("sweep_ms", self.sweep_ms, 100),
            ("blob_grace_s", self.blob_grace_s, 60),
            ("journal_retry_ms", self.journal_retry_ms, 10),
            ("handshake_timeout_ms", self.handshake_timeout_ms, 10),
            ("shutdown_ms", self.shutdown_ms, 10),
        ];
        for (name, value, least) in least {
            if value < least {
                return Err(format!("limits.{name} must be at least {least}"));
            }
        }
        let most = [
            ("sweep_ms", self.sweep_ms, 30_000),
            ("shutdown_ms", self.shutdown_ms, 4_000),
        ];
        for (name, value, most) in most {
            if value > most {
                return Err(format!("limits.{name} must be at most {most}"));
            }
        }
        if self.json_depth_max > 1_024 {
            return Err("limits.json_depth_max must be at most 1024".to_owned());
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        const KIB: usize = 1_024;
        const MIB: usize = 1_024 * KIB;
        Self {
            frame_in_bytes: 32 * MIB,
            json_depth_max: 128,
            subscriptions_max: 4_096,
            connections_max: 4_096,
            requests_in_flight_max: 256,
            parked_bytes_max: 64 * MIB,
            reverse_request_timeout_ms: 30_000,
            transform_deadline_ms: 5_000,
            transform_sections_max: 64,
            transform_reply_bytes_max: 256 * KIB,
            message_out_bytes: 48 * MIB,
            fragment_bytes: MIB,
            outbox_frames_max: 8_192,
            inline_body_bytes: MIB,
            inline_session_bytes: 20 * MIB,
            inline_result_bytes: 64 * KIB,
            outbox_bytes_max: 64 * MIB,
            inputs_max: 4_096,
            batch_inputs_max: 512,
            tail_bytes: 512 * KIB,
            open_turns: 20,
            page_turns: 50,
            page_bytes: MIB,
            list_page_max: 500,
            channel_idle_ms: 60_000,
            active_client_grace_ms: 10_000,
            sweep_ms: 30_000,
            empty_session_ttl_s: 3_600,
            retention_disposed_s: 7 * 24 * 3_600,
            blob_grace_s: 3_600,
            retention_actions: 500_000,
            clients_max: 10_000,
            client_ttl_s: 7 * 24 * 3_600,
            checkpoint_bytes_max: 64 * KIB,
            queued_messages_max: 256,
            waiting_bytes_max: 8 * MIB,
            attached_chats_max: 32,
            chats_max: 1_000,
            selection_bytes_max: 64 * KIB,
            worker_depth_max: 4,
            workers_max: 16,
            journal_retry_ms: 1_000,
            handshake_timeout_ms: 10_000,
            keep_alive_ms: 30_000,
            shutdown_ms: 4_000,
        }
    }
}
