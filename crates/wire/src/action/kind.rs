//! The kinds of actions, and what the table says of each.
//!
//! Promises: a name is looked up once, when an action is decoded; everything after that is an index into the table.
//! Must not know: whether this client may do it to this state: that is the kernel's question.

use super::table::with_action_table;
use crate::Version;

/// What a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    Root,
    Session,
    Chat,
    Terminal,
    Changeset,
    Annotations,
    ResourceWatch,
    Automations,
    AutomationRun,
    Canvas,
}

/// Who may send an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllowedSender {
    Host,
    Client,
    Both,
}

/// The actions that clients send, by the channel they act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientAction {
    Root(RootAction),
    Session(SessionAction),
    Chat(ChatAction),
    Changeset(ChangesetAction),
    Annotations(AnnotationsAction),
    Terminal(TerminalAction),
    /// Clients send none: the type has no value.
    ResourceWatch(ResourceWatchAction),
    /// On a channel of a kind that this host does not serve.
    OtherChannel(ChannelKind),
}

/// A row of the table.
struct Row {
    kind: ActionKind,
    name: &'static str,
    channel: ChannelKind,
    sender: AllowedSender,
    client: Option<ClientAction>,
    since: Version,
    recording: Recording,
    message_field: Option<&'static str>,
}

/// What recording an action does beside adding its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recording {
    Head,
    Row,
    Stream,
}

const V0_1: Version = Version::new(0, 1, 0);
const V0_2: Version = Version::new(0, 2, 0);
const V0_3: Version = Version::new(0, 3, 0);
const V0_4: Version = Version::new(0, 4, 0);
const V0_5: Version = Version::new(0, 5, 0);
const V0_5_1: Version = Version::new(0, 5, 1);
const V0_5_2: Version = Version::new(0, 5, 2);
const V0_6: Version = Version::new(0, 6, 0);
const V0_7: Version = Version::new(0, 7, 0);
const V0_8: Version = Version::new(0, 8, 0);
const V0_9: Version = Version::new(0, 9, 0);
const V1_0: Version = Version::new(1, 0, 0);

macro_rules! sender {
    (host) => {
        AllowedSender::Host
    };
    (client) => {
        AllowedSender::Client
    };
    (both) => {
        AllowedSender::Both
    };
}

/// What a client does with an action: one of the typed ones where the channel has an enum of its own.
macro_rules! client_action {
    ($channel:ident host) => {
        None
    };
    ($channel:ident $sender:ident) => {
        Some(ClientAction::OtherChannel(ChannelKind::$channel))
    };
    ($channel:ident $actions:ident host) => {
        None
    };
    ($channel:ident $actions:ident $sender:ident $action:ident) => {
        Some(ClientAction::$channel($actions::$action))
    };
}

macro_rules! recording {
    (head) => {
        Recording::Head
    };
    (row) => {
        Recording::Row
    };
    (stream) => {
        Recording::Stream
    };
}

macro_rules! message_field {
    () => {
        None
    };
    ($field:literal) => {
        Some($field)
    };
}

macro_rules! define_kinds {
    (
        $(channel $channel:ident: $actions:ident, $reduce:ident($state:ident) {
            $($kind:ident $name:literal $sender:ident $(($action:ident))? $since:ident $record:ident
                $reducer:path $(, message $field:literal)?;)*
        } extensions {
            $($x_kind:ident $x_name:literal $x_sender:ident($x_action:ident) $x_since:ident $x_record:ident
                $x_reducer:path;)*
        })*
        others {
            $($o_channel:ident {
                $($o_kind:ident $o_name:literal $o_sender:ident $o_since:ident $o_record:ident;)*
            })*
        }
    ) => {
        /// The kind of an action: what its `type` says.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ActionKind {
            $($($kind,)* $($x_kind,)*)*
            $($($o_kind,)*)*
            /// A `type` that the table does not list.
            Unknown,
        }

        $(
            /// The actions that clients send to a channel of this kind.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub enum $actions {
                $($($action,)?)*
                $($x_action,)*
            }
        )*

        /// The rows, in the order of the variants of [`ActionKind`].
        static ROWS: &[Row] = &[
            $(
                $(Row {
                    kind: ActionKind::$kind,
                    name: $name,
                    channel: ChannelKind::$channel,
                    sender: sender!($sender),
                    client: client_action!($channel $actions $sender $($action)?),
                    since: $since,
                    recording: recording!($record),
                    message_field: message_field!($($field)?),
                },)*
                $(Row {
                    kind: ActionKind::$x_kind,
                    name: $x_name,
                    channel: ChannelKind::$channel,
                    sender: sender!($x_sender),
                    client: client_action!($channel $actions $x_sender $x_action),
                    since: $x_since,
                    recording: recording!($x_record),
                    message_field: None,
                },)*
            )*
            $($(Row {
                kind: ActionKind::$o_kind,
                name: $o_name,
                channel: ChannelKind::$o_channel,
                sender: sender!($o_sender),
                client: client_action!($o_channel $o_sender),
                since: $o_since,
                recording: recording!($o_record),
                message_field: None,
            },)*)*
        ];

        impl ActionKind {
            /// The kind that a name on the wire means. A match on literals, like that of the published type, which took
            /// a third of the time of a search in a sorted list.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($($name => Self::$kind,)* $($x_name => Self::$x_kind,)*)*
                    $($($o_name => Self::$o_kind,)*)*
                    _ => Self::Unknown,
                }
            }

            /// Whether the published types read this action. Those of extensions and unknown ones they do not.
            pub fn is_published(self) -> bool {
                !matches!(self, $($(Self::$x_kind |)*)* Self::Unknown)
            }

            /// The kind of a published type. The match has no wildcard: it compiles only while the table has each
            /// published action, and none besides.
            #[cfg(test)]
            fn of_published(published: &ahp_types::actions::ActionType) -> Self {
                use ahp_types::actions::ActionType;
                match published {
                    $($(ActionType::$kind => Self::$kind,)*)*
                    $($(ActionType::$o_kind => Self::$o_kind,)*)*
                    ActionType::Unknown(_) => Self::Unknown,
                }
            }
        }
    };
}

with_action_table!(define_kinds);

impl ActionKind {
    /// Every kind of the table, published and of extensions.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.kind)
    }

    fn row(self) -> Option<&'static Row> {
        let row = ROWS.get(self as usize);
        debug_assert!(row.is_none_or(|row| row.kind == self));
        row
    }

    /// Its name on the wire; empty for an unknown kind, whose name only the action itself has.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// The kind of channel it belongs on; none for an unknown action.
    pub fn channel(self) -> Option<ChannelKind> {
        self.row().map(|row| row.channel)
    }

    /// Who may send it. Unknown kinds are refused to clients (H-070).
    pub fn sender(self) -> AllowedSender {
        self.row().map_or(AllowedSender::Host, |row| row.sender)
    }

    /// What it is when a client sends it; none if clients may not (H-069).
    pub fn client_action(self) -> Option<ClientAction> {
        self.row().and_then(|row| row.client)
    }

    /// The first published version whose clients know it. An unknown action is sent to everyone: only an extension
    /// can bring one, between those who agreed on it.
    pub fn since(self) -> Version {
        self.row().map_or(V0_1, |row| row.since)
    }

    /// Whether it is recorded by itself, and applied over the head of its channel when that is loaded.
    pub fn is_applied_over_head(self) -> bool {
        self.row().is_some_and(|row| row.recording != Recording::Head)
    }

    /// Whether it is output of a running stream: nothing that is derived from its channel changes.
    pub fn streams(self) -> bool {
        self.row().is_some_and(|row| row.recording == Recording::Stream)
    }

    /// The field that holds a user's message, with its attachments.
    pub fn message_field(self) -> Option<&'static str> {
        self.row().and_then(|row| row.message_field)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ahp_types::actions::ActionType;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_exactly_the_published_actions() {
        // That none is missing and none is invented, `of_published` proves by compiling; here: under the same names.
        let mut published = 0;
        for kind in ActionKind::all() {
            let read: ActionType = serde_json::from_value(json!(kind.name())).unwrap();
            if kind.is_published() {
                assert_eq!(ActionKind::of_published(&read), kind, "{}", kind.name());
                published += 1;
            } else {
                assert_eq!(read, ActionType::Unknown(kind.name().to_owned()));
                assert!(kind.name().starts_with("x-"), "{}", kind.name());
            }
        }
        assert_eq!((published, ActionKind::all().count()), (106, 108));
    }

    #[test]
    fn a_name_and_its_kind_lead_to_each_other() {
        let names: BTreeSet<&str> = ActionKind::all().map(ActionKind::name).collect();
        assert_eq!(names.len(), ROWS.len());
        for (index, row) in ROWS.iter().enumerate() {
            assert_eq!(ActionKind::from_name(row.name), row.kind, "{}", row.name);
            assert_eq!(row.kind as usize, index, "{}", row.name);
        }
        for unknown in ["", "chat/", "chat/deltas", "x-session/anything", "CHAT/DELTA"] {
            assert_eq!(ActionKind::from_name(unknown), ActionKind::Unknown);
        }
        assert_eq!(ActionKind::Unknown as usize, ROWS.len());
    }

    #[test]
    fn the_columns_agree_with_each_other() {
        for row in ROWS {
            let name = row.name;
            let prefix = name.trim_start_matches("x-").split('/').next().unwrap();
            let channel = match row.channel {
                ChannelKind::Root => "root",
                ChannelKind::Session => "session",
                ChannelKind::Chat => "chat",
                ChannelKind::Terminal => "terminal",
                ChannelKind::Changeset => "changeset",
                ChannelKind::Annotations => "annotations",
                ChannelKind::ResourceWatch => "resourceWatch",
                ChannelKind::Automations => "automation",
                ChannelKind::AutomationRun => "automationRun",
                ChannelKind::Canvas => "canvas",
            };
            assert_eq!(prefix, channel, "{name}");
            assert_eq!(row.sender == AllowedSender::Host, row.client.is_none(), "{name}");
            let client_channel = row.client.map(|action| match action {
                ClientAction::Root(_) => ChannelKind::Root,
                ClientAction::Session(_) => ChannelKind::Session,
                ClientAction::Chat(_) => ChannelKind::Chat,
                ClientAction::Changeset(_) => ChannelKind::Changeset,
                ClientAction::Annotations(_) => ChannelKind::Annotations,
                ClientAction::Terminal(_) => ChannelKind::Terminal,
                ClientAction::ResourceWatch(none) => match none {},
                ClientAction::OtherChannel(channel) => channel,
            });
            assert!(client_channel.is_none_or(|channel| channel == row.channel));
            assert!(row.message_field.is_none() || row.sender != AllowedSender::Host);
            assert!(row.since <= V1_0, "{name}");
            // The enum of the channel calls it what the kind is called, so that one search finds both.
            let in_enum = match row.client {
                Some(ClientAction::Root(action)) => format!("{action:?}"),
                Some(ClientAction::Session(action)) => format!("{action:?}"),
                Some(ClientAction::Chat(action)) => format!("{action:?}"),
                Some(ClientAction::Changeset(action)) => format!("{action:?}"),
                Some(ClientAction::Annotations(action)) => format!("{action:?}"),
                Some(ClientAction::Terminal(action)) => format!("{action:?}"),
                Some(ClientAction::ResourceWatch(none)) => match none {},
                Some(ClientAction::OtherChannel(_)) | None => continue,
            };
            assert!(format!("{:?}", row.kind).ends_with(&in_enum), "{name}");
        }
    }

    #[test]
    fn unknown_actions_are_for_the_host_only_and_do_not_stream() {
        let unknown = ActionKind::Unknown;
        assert_eq!((unknown.name(), unknown.channel()), ("", None));
        assert_eq!((unknown.sender(), unknown.client_action()), (AllowedSender::Host, None));
        assert!(!unknown.streams() && !unknown.is_published());
    }

    #[test]
    fn each_version_has_the_actions_it_came_with() {
        let came_with = |version: Version| {
            let kinds = ActionKind::all().filter(|kind| kind.since() == version);
            kinds.map(ActionKind::name).collect::<Vec<_>>()
        };
        assert_eq!(
            came_with(V0_5_1),
            ["session/inputNeededSet", "session/inputNeededRemoved", "chat/turnsLoaded",]
        );
        assert_eq!(
            came_with(V0_5_2),
            ["session/mcpServerStartRequested", "session/mcpServerStopRequested",]
        );
        assert_eq!(
            came_with(V0_6),
            [
                "chat/toolCallAuthRequired",
                "chat/toolCallAuthResolved",
                "changeset/filesReviewChanged",
            ]
        );
        assert_eq!(came_with(V0_8), ["session/workingDirectoryReplaced"]);
        assert_eq!(
            (came_with(V0_7).len(), came_with(V0_9).len(), came_with(V1_0).len()),
            (4, 10, 10)
        );
    }
}
