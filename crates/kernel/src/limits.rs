//! Every bound the kernel keeps, with its reason. The names are keys of the `[limits]` table of the settings file (G-29).
//!
//! Promises: name, type, default and permitted range of a bound are one row of one table.
//! Must not know: sockets and the loop around the kernel; their bounds are rows of the host's own table.

use std::ops::{Bound, RangeBounds};

use wire::bounds;

const KIB: usize = 1_024;
const MIB: usize = 1_024 * KIB;

/// Defines a struct of bounds from a table of `name: type = default, permitted range;`.
#[macro_export]
macro_rules! limits_table {
    (
        $(#[$struct_attribute:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr, $range:expr; )*
        }
    ) => {
        $(#[$struct_attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $doc])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $name {
            /// The keys of this table in the settings file.
            pub const KEYS: &'static [&'static str] = &[$( stringify!($field), )*];

            /// The same keys with their descriptions, in lines.
            pub const HELP: &'static [(&'static str, &'static [&'static str])] =
                &[$( (stringify!($field), &[$( $doc, )*]), )*];

            /// Names the first limit with which a host could not work.
            pub fn check(&self) -> Result<(), String> {
                $( $crate::check_limit(stringify!($field), self.$field as u64, $range)?; )*
                Ok(())
            }
        }
    };
}

/// Refuses a value outside of its range, in words for the operator.
pub fn check_limit(name: &str, value: u64, range: impl RangeBounds<u64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(match (range.start_bound(), range.end_bound()) {
        (Bound::Included(least), _) if value < *least => {
            format!("limits.{name} must be at least {least}")
        }
        (_, Bound::Included(most)) => format!("limits.{name} must be at most {most}"),
        _ => format!("limits.{name} is out of its range"),
    })
}

limits_table! {
    /// Bounds and periods of the kernel. Sizes in bytes, times in milliseconds or seconds as the name says.
    pub struct Limits {
        /// Channels one connection may watch.
        subscriptions_max: usize = 4_096, 1..;
        /// Requests of one connection that wait for something.
        requests_in_flight_max: usize = 256, 2..;
        /// Bytes of one connection's messages that wait for a channel to be loaded; reading stops above it.
        parked_bytes_max: usize = 4 * MIB, 1..;
        /// All fields of an action or a request that have no bound of their own, and each whose bound this is: `_meta`, settings,
        /// capabilities, what nobody knows.
        field_bytes_max: usize = 64 * KIB, 1_024..;
        /// Ids, and names that are as short: a locale, a cursor, a display name.
        id_bytes_max: usize = KIB, 64..;
        /// URIs in params and messages. Those of channels have at most 2,048 bytes whatever this says.
        uri_bytes_max: usize = 8 * KIB, 64..;
        /// Titles of sessions, given by users, clients or agents.
        title_bytes_max: usize = 4 * KIB, 16..;
        /// A message without the bodies embedded in it: its text, and what its attachments say beside their data.
        message_bytes_max: usize = MIB, 1_024..;
        /// Attachments of one message.
        attachments_max: usize = 256, ..;
        /// How often one action may name stored content: each is looked up and counted.
        content_refs_max: usize = 1_024, ..;
        /// What a client's tool says while it runs, and what stays of its result when its bodies are moved out.
        tool_output_bytes_max: usize = 8 * MIB, 65_536..;
        /// One entry among a session's active clients: it travels in every snapshot. Editors send a few kilobytes.
        active_client_bytes_max: usize = 256 * KIB, 1_024..;
        /// Tools in one such entry.
        client_tools_max: usize = 512, ..;
        /// Active clients of one session.
        active_clients_max: usize = 64, 1..;
        /// Their entries together.
        active_clients_bytes_max: usize = 2 * MIB, 1_024..;
        /// Answers in one `chat/inputCompleted`.
        answers_max: usize = 256, ..;
        /// One of them.
        answers_bytes_max: usize = 64 * KIB, 1_024..;
        /// Working directories in one request.
        working_directories_max: usize = 64, 1..;
        /// Versions a client may offer.
        protocol_versions_max: usize = 64, 1..;
        /// How long a render waits for the client that rewrites its sections (G-36).
        transform_deadline_ms: u64 = 5_000, ..;
        /// Sections in one request of a render: the prompt must not be flooded.
        transform_sections_max: usize = 64, ..;
        /// Largest reply to such a request.
        transform_reply_bytes_max: usize = 256 * KIB, ..;
        /// How long a client may take to answer another request of the host's (G-29).
        reverse_request_ms: u64 = 30_000, ..;
        /// Files of one message that are read from the client that sent it.
        client_files_max: usize = 8, ..;
        /// Largest answer with such a file, as it is sent: each is in memory until the message is recorded.
        client_file_bytes_max: usize = 4 * MIB, ..;
        /// Largest message sent: all snapshots of one response share it, a larger replay becomes snapshots.
        message_out_bytes: usize = 48 * MIB, 65_536..;
        /// Largest turn, as JSON: it travels whole, in snapshots and pages. At this size it ends in an error.
        turn_bytes_max: usize = 16 * MIB, 65_536..;
        /// Turns of a session that is imported: they are written in one transaction.
        import_turns_max: usize = 65_536, 1..;
        /// JSON values of such a session, and of each of its turns, an array or object counting as five.
        import_values_max: usize = 262_144, 1_024..;
        /// Largest body that stays embedded in a message; larger ones are stored outside of state (G-32, C-033).
        inline_body_bytes: usize = MIB, ..;
        /// What one message may embed in all: what stays in it is copied into its rows, its chat and its echo.
        inline_message_bytes: usize = 4 * MIB, ..;
        /// What the messages of one session may embed in all.
        inline_session_bytes: usize = 20 * MIB, ..;
        /// Largest result of a tool that stays in state, in all.
        inline_result_bytes: usize = 64 * KIB, 32_768..;
        /// Envelopes kept in memory for reconnects, in bytes.
        tail_bytes: usize = 512 * KIB, ..;
        /// Turns loaded when a chat is opened without a larger view.
        open_turns: u32 = 20, 1..;
        /// A page of older turns (G-18).
        page_turns: u32 = 50, 1..;
        /// The same page, in bytes.
        page_bytes: usize = MIB, ..;
        /// Session list page without a limit (G-23), and the most a client may ask for.
        list_page_max: u32 = 500, 1..;
        /// A channel nobody uses leaves memory after this.
        channel_idle_ms: u64 = 60_000, 10..;
        /// While all channels in memory take more bytes than this, one leaves it when nobody used it for a few seconds; 0 for any.
        loaded_bytes_max: u64 = 0, ..;
        /// How long a disconnected active client keeps its place (G-07).
        active_client_grace_ms: u64 = 10_000, ..;
        /// How often empty sessions, old actions and old clients are swept (G-28: at least every 30 s).
        sweep_ms: u64 = 30_000, 100..=30_000;
        /// A session that never had a turn is disposed of after this (G-28).
        empty_session_ttl_s: u64 = 3_600, ..;
        /// How long disposed sessions that had turns are kept on disk (G-28).
        retention_disposed_s: u64 = 7 * 24 * 3_600, ..;
        /// How long a body that nothing refers to is kept: it may be on its way into a message.
        blob_grace_s: u64 = 3_600, 60..;
        /// How many of the newest seqs keep their actions for replay.
        retention_actions: u64 = 500_000, ..;
        /// Clients remembered for reconnect (G-20).
        clients_max: u32 = 10_000, ..;
        /// How long a client that does not come back is remembered.
        client_ttl_s: u64 = 7 * 24 * 3_600, ..;
        /// Largest agent checkpoint (G-04).
        checkpoint_bytes_max: usize = 64 * KIB, ..;
        /// Messages that may wait in the queue of one chat.
        queued_messages_max: usize = 256, ..;
        /// Bytes of a chat's queue and steering message together, and of its draft: they travel in every snapshot.
        waiting_bytes_max: usize = 8 * MIB, ..;
        /// Chats one message may refer to: each is looked up before it is accepted.
        attached_chats_max: usize = 32, ..;
        /// Chats of one session: each travels in every summary of it.
        chats_max: usize = 1_000, ..;
        /// Text a side chat may be about: it travels in the catalogue.
        selection_bytes_max: usize = 64 * KIB, ..;
        /// Annotations of one session: all travel in every snapshot of their channel.
        annotations_max: usize = 1_024, 1..;
        /// Their text and `_meta` together.
        annotations_bytes_max: usize = 4 * MIB, 1_024..;
        /// Entries of one annotation that are set at once.
        annotation_entries_max: usize = 256, 1..;
        /// The text of one entry.
        annotation_bytes_max: usize = 64 * KIB, 1_024..;
        /// Files in one `changeset/filesReviewChanged`.
        reviewed_files_max: usize = 4_096, 1..;
        /// Characters of a terminal's output in its state; the oldest go first (G-56).
        terminal_chars_max: usize = 4 * MIB, 65_536..;
        /// Terminals in the list of the root: each has a process and a screen, or had them and was not disposed of.
        terminals_max: usize = 32, 1..=256;
        /// Lines of it that stay whatever their length, as far as the bound before allows.
        terminal_lines_min: usize = 200, 1..;
        /// How deep workers may spawn workers (H-153).
        worker_depth_max: usize = 4, ..;
        /// How many workers of one session may run at once (H-153).
        workers_max: usize = 16, ..;
        /// How often a journal that cannot be written is tried again (G-15).
        journal_retry_ms: u64 = 1_000, 10..;
    }
}

/// How much of a message may stay embedded in it; what is over it is certainly moved out of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbedLimits {
    /// In one attachment.
    pub each_bytes: usize,
    /// In all attachments of the message.
    pub message_bytes: usize,
}

impl From<&Limits> for EmbedLimits {
    fn from(limits: &Limits) -> Self {
        Self { each_bytes: limits.inline_body_bytes, message_bytes: limits.inline_message_bytes }
    }
}

impl Limits {
    /// The number behind a bound of the wire's table.
    pub fn of(&self, bound: bounds::Bound) -> usize {
        use bounds::Bound as B;
        match bound {
            B::FieldBytes => self.field_bytes_max,
            B::IdBytes => self.id_bytes_max,
            B::UriBytes => self.uri_bytes_max,
            B::TitleBytes => self.title_bytes_max,
            B::MessageBytes => self.message_bytes_max,
            B::Attachments => self.attachments_max,
            B::ContentRefs => self.content_refs_max,
            B::ToolOutputBytes => self.tool_output_bytes_max,
            B::ActiveClientBytes => self.active_client_bytes_max,
            B::ClientTools => self.client_tools_max,
            B::TransformSections => self.transform_sections_max,
            B::Answers => self.answers_max,
            B::AnswersBytes => self.answers_bytes_max,
            B::Subscriptions => self.subscriptions_max,
            B::WorkingDirectories => self.working_directories_max,
            B::ProtocolVersions => self.protocol_versions_max,
            B::SelectionBytes => self.selection_bytes_max,
            B::Chats => self.chats_max,
            B::TurnBytes => self.turn_bytes_max,
            B::AnnotationEntries => self.annotation_entries_max,
            B::AnnotationBytes => self.annotation_bytes_max,
            B::ReviewedFiles => self.reviewed_files_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_of_the_wire_is_a_setting() {
        for bound in bounds::Bound::ALL {
            assert!(Limits::KEYS.contains(&bound.name()), "{}", bound.name());
        }
    }

    #[test]
    fn the_defaults_are_permitted_and_a_value_out_of_range_is_named() {
        assert_eq!(Limits::default().check(), Ok(()));
        let refused = |limits: Limits| limits.check().unwrap_err();
        let too_small = refused(Limits { open_turns: 0, ..Limits::default() });
        assert_eq!(too_small, "limits.open_turns must be at least 1");
        let too_large = refused(Limits { sweep_ms: 30_001, ..Limits::default() });
        assert_eq!(too_large, "limits.sweep_ms must be at most 30000");
    }
}
