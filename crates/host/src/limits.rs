//! Bounds of sockets and of the loop around the kernel, and the `[limits]` table of the settings file, which holds these
//! and the kernel's.
//!
//! Promises: a file written by any earlier release loads; an unknown key is refused by name.
//! Must not know: what the kernel's bounds mean.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

const MIB: usize = 1_024 * 1_024;

/// Keys that earlier releases wrote and nothing reads any more. They are accepted, so that files with them still load.
const RETIRED_KEYS: &[&str] = &["reverse_request_timeout_ms"];

kernel::limits_table! {
    /// Bounds and periods that the kernel never reads.
    pub struct ServerLimits {
        /// Largest message taken from a client: attachments travel inline up to this.
        frame_in_bytes: usize = 32 * MIB, 1_024..;
        /// Largest file taken from a page: it goes straight to where bodies are stored.
        content_in_bytes: usize = 64 * MIB, 1_024..=67_108_864;
        /// Deepest JSON nesting taken: recursion is bounded before anything is built.
        json_depth_max: usize = 128, 16..=1_024;
        /// JSON values in one message, an array or object counting as five: each takes many times its bytes in memory.
        json_values_max: usize = 65_536, 1_024..;
        /// Bytes of messages of all connections that are read, decoded, waiting or composed at once; above it connections are
        /// not read until there is room.
        inbound_bytes_max: usize = 128 * MIB, 1_048_576..;
        /// Connections at once.
        connections_max: usize = 4_096, 1..;
        /// Sockets without a token yet; when there are more, the oldest is closed.
        handshakes_max: usize = 512, 1..;
        /// Messages above this leave in WebSocket fragments.
        fragment_bytes: usize = MIB, 1_024..;
        /// Frames that may wait for one slow reader before it is cut.
        outbox_frames_max: usize = 8_192, 16..;
        /// Bytes that may wait for one slow reader before it is cut.
        outbox_bytes_max: usize = 64 * MIB, 65_536..;
        /// Inputs that may wait for the kernel; sources wait when it is full.
        inputs_max: usize = 4_096, 1..;
        /// Inputs taken into one journal transaction.
        batch_inputs_max: usize = 512, 1..;
        /// Pieces of one stream that come within this time of its last commit go together; 0 turns that off (G-47).
        stream_coalesce_ms: u64 = 8, ..=1_000;
        /// How long a connection may take to send the head of an HTTP request, and the first one with a token.
        handshake_timeout_ms: u64 = 10_000, 10..;
        /// How long a client may take to send a message over 64 KiB, from the moment there is room for it: it holds that room.
        message_in_timeout_ms: u64 = 300_000, 100..=86_400_000;
        /// How long an answer over HTTP may wait for its reader to take anything of it.
        http_stall_ms: u64 = 30_000, 100..=86_400_000;
        /// Keep-alive: a silent connection is pinged after this, and cut after twice this without a sign of life.
        keep_alive_ms: u64 = 30_000, ..;
        /// Requests to models of each chat that `greenroom inspect --call` can show; 0 records none (G-37).
        inspect_calls_max: u64 = 50, ..=10_000;
        /// Bytes that they may take for each chat; the oldest go first, the newest stays. Bodies of attachments do not count.
        inspect_bytes_max: u64 = 64 * MIB as u64, ..;
        /// Longest line taken from an external agent: one that sends a longer one is stopped (AG-17).
        agent_line_bytes: usize = 32 * MIB, 65_536..;
        /// How long a database that is away is waited for before nothing can be recorded.
        journal_patience_ms: u64 = 2_000, 100..=60_000;
        /// How long a space of the database that nobody uses stays in memory, in seconds.
        space_idle_s: u64 = 300, 1..=86_400;
        /// Clients that a space of the database may have at once; 0 for any number. `greenroom space limits` sets another for one space.
        space_connections_max: u64 = 256, ..;
        /// Turns that may run in a space of the database at once; 0 for any number.
        space_turns_max: u64 = 16, ..;
        /// Messages a second of all clients of a space of the database; faster ones wait. 0 for any number.
        space_inputs_per_s: u64 = 2_000, ..;
        /// Bytes that a space of the database may store; 0 for any number.
        space_stored_bytes_max: u64 = 0, ..;
        /// Bytes a second that a space of the database may record, twice that at once; what is more waits. 0 for any number.
        space_record_bytes_per_s: u64 = 2 << 20, ..;
        /// For how many days a space of the database keeps actions for clients that come back, beside `retention_actions`; 0 for any.
        space_log_days: u64 = 0, ..=36_500;
        /// While the channels of a space of the database take more bytes in memory, they leave it soon; 0 for any number.
        space_loaded_bytes_max: u64 = 64 * MIB as u64, ..;
        /// While the database takes longer to record something of a space, no turn begins in it; 0 for any time.
        append_slow_ms: u64 = 1_000, ..=60_000;
        /// How long a node of a cluster that is told to stop waits for turns to end before it interrupts them, in seconds.
        drain_turns_s: u64 = 30, ..=3_600;
        /// How long `SIGTERM` waits for turns and readers (5 s in all by contract).
        shutdown_ms: u64 = 4_000, 10..=4_000;
    }
}

/// The whole `[limits]` table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LimitsTable {
    #[serde(flatten)]
    pub server: ServerLimits,
    #[serde(flatten)]
    pub kernel: kernel::Limits,
}

impl LimitsTable {
    /// Every key of the table that has an effect.
    pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
        ServerLimits::KEYS.iter().chain(kernel::Limits::KEYS).copied()
    }

    /// Names the first limit with which a host could not work.
    pub fn check(&self) -> Result<(), String> {
        self.server.check()?;
        self.kernel.check()
    }
}

/// Written by hand because serde cannot flatten two structs that both refuse unknown keys.
impl<'de> Deserialize<'de> for LimitsTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = toml::Table::deserialize(deserializer)?;
        let (mut server, mut kernel) = (toml::Table::new(), toml::Table::new());
        for (key, value) in table {
            if RETIRED_KEYS.contains(&key.as_str()) {
                tracing::warn!(key, "this setting has no effect any more and is ignored");
            } else if ServerLimits::KEYS.contains(&key.as_str()) {
                server.insert(key, value);
            } else {
                // The kernel's table refuses by name what belongs to neither.
                kernel.insert(key, value);
            }
        }
        Ok(Self {
            server: server.try_into().map_err(D::Error::custom)?,
            kernel: kernel.try_into().map_err(D::Error::custom)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_belongs_to_two_tables() {
        let mut keys = [ServerLimits::KEYS, kernel::Limits::KEYS, RETIRED_KEYS].concat();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn one_table_of_the_file_sets_bounds_of_both() {
        let text = "connections_max = 3\nclients_max = 4\nreverse_request_timeout_ms = 5\n";
        let limits: LimitsTable = toml::from_str(text).unwrap();
        assert_eq!(limits.server.connections_max, 3);
        assert_eq!(limits.kernel.clients_max, 4);
        let again: LimitsTable = toml::from_str(&toml::to_string(&limits).unwrap()).unwrap();
        assert_eq!(again, limits);
    }

    #[test]
    fn a_value_of_the_wrong_type_and_one_out_of_range_are_named() {
        let wrong = toml::from_str::<LimitsTable>("inputs_max = \"many\"\n").unwrap_err();
        assert!(wrong.to_string().contains("inputs_max"), "{wrong}");
        let limits: LimitsTable = toml::from_str("shutdown_ms = 9000\n").unwrap();
        assert_eq!(limits.check().unwrap_err(), "limits.shutdown_ms must be at most 4000");
    }
}
