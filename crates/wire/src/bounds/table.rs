//! The table of bounds: which bound each field of an action and of a request's params has. Data only.
//!
//! What is not listed has [`OTHERS`]: all such fields of an object share `field_bytes_max`. That is enough for flags, numbers
//! and short texts, so only what may be larger, what must be smaller and what is counted is listed here.

use super::{Bound, FieldBound};
use crate::action::ActionKind;
use crate::ext::system_message_transform as transform;
use crate::methods::Method;

const ID: FieldBound = FieldBound::Bytes(Bound::IdBytes);
const URI: FieldBound = FieldBound::Bytes(Bound::UriBytes);
const TITLE: FieldBound = FieldBound::Bytes(Bound::TitleBytes);
const FIELD: FieldBound = FieldBound::Bytes(Bound::FieldBytes);

const fn fields(fields: &'static [(&'static str, FieldBound)]) -> FieldBound {
    FieldBound::Fields { whole: None, rest: Bound::FieldBytes, fields }
}

const SECTIONS: FieldBound = FieldBound::Entries { most: Bound::TransformSections, each: &ID };
const OPT_IN: FieldBound = fields(&[("sections", SECTIONS)]);
const CARRIER_META: FieldBound = fields(&[(transform::X_METHOD, OPT_IN)]);

const TOOLS: FieldBound = FieldBound::Entries {
    most: Bound::ClientTools,
    each: &FieldBound::Bytes(Bound::ActiveClientBytes),
};
const ACTIVE_CLIENT: FieldBound = FieldBound::Fields {
    whole: Some(Bound::ActiveClientBytes),
    rest: Bound::ActiveClientBytes,
    fields: &[
        ("clientId", ID),
        ("displayName", ID),
        ("tools", TOOLS),
        (transform::FIELD, OPT_IN),
        ("_meta", CARRIER_META),
    ],
};

const ATTACHMENT: FieldBound = FieldBound::Fields {
    whole: None,
    rest: Bound::MessageBytes,
    fields: &[("data", FieldBound::Body), ("uri", URI)],
};
const MESSAGE: FieldBound = FieldBound::Fields {
    whole: Some(Bound::MessageBytes),
    rest: Bound::MessageBytes,
    fields: &[
        ("attachments", FieldBound::Entries { most: Bound::Attachments, each: &ATTACHMENT }),
        ("model", FIELD),
    ],
};

const ANSWERS: FieldBound =
    FieldBound::Entries { most: Bound::Answers, each: &FieldBound::Bytes(Bound::AnswersBytes) };
const DIRECTORIES: FieldBound = FieldBound::Entries { most: Bound::WorkingDirectories, each: &URI };
const SUBSCRIPTIONS: FieldBound = FieldBound::Entries { most: Bound::Subscriptions, each: &URI };

/// Of actions and params that bring nothing large.
const OTHERS: FieldBound = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("requestId", ID),
    ("questionId", ID),
    ("clientId", ID),
    ("id", ID),
]);

const TITLE_CHANGED: FieldBound = fields(&[("title", TITLE)]);
const CONFIG_CHANGED: FieldBound = fields(&[("config", FIELD)]);
const ACTIVE_CLIENT_SET: FieldBound = fields(&[("activeClient", ACTIVE_CLIENT)]);
const TURN_STARTED: FieldBound =
    fields(&[("turnId", ID), ("queuedMessageId", ID), ("message", MESSAGE)]);
const PENDING_MESSAGE_SET: FieldBound = fields(&[("id", ID), ("message", MESSAGE)]);
const DRAFT_CHANGED: FieldBound = fields(&[("draft", MESSAGE)]);
const TOOL_CALL_CONFIRMED: FieldBound = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("userSuggestion", MESSAGE),
    ("editedToolInput", FieldBound::Bytes(Bound::MessageBytes)),
]);
/// What a result says is bounded by its frame: it is moved out, and what stays is within `inline_result_bytes`.
const TOOL_CALL_COMPLETE: FieldBound = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("result", FieldBound::Bytes(Bound::ToolOutputBytes)),
]);
const TOOL_CALL_CONTENT: FieldBound = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("content", FieldBound::Bytes(Bound::ToolOutputBytes)),
]);
const ANSWER_CHANGED: FieldBound = fields(&[
    ("requestId", ID),
    ("questionId", ID),
    ("answer", FieldBound::Bytes(Bound::AnswersBytes)),
]);
const INPUT_COMPLETED: FieldBound = fields(&[("requestId", ID), ("answers", ANSWERS)]);

const ENTRY: FieldBound =
    fields(&[("id", ID), ("text", FieldBound::Bytes(Bound::AnnotationBytes))]);
const ANNOTATION: FieldBound = fields(&[
    ("id", ID),
    ("resource", URI),
    ("entries", FieldBound::Entries { most: Bound::AnnotationEntries, each: &ENTRY }),
]);
const ANNOTATION_SET: FieldBound = fields(&[("annotation", ANNOTATION)]);
const ANNOTATION_CHANGED: FieldBound =
    fields(&[("annotationId", ID), ("entryId", ID), ("resource", URI), ("entry", ENTRY)]);
const FILES_REVIEWED: FieldBound =
    fields(&[("files", FieldBound::Entries { most: Bound::ReviewedFiles, each: &URI })]);
const TERMINAL_INPUT: FieldBound = fields(&[("data", FieldBound::Bytes(Bound::MessageBytes))]);

pub(super) fn of_action(kind: ActionKind) -> &'static FieldBound {
    match kind {
        ActionKind::RootConfigChanged | ActionKind::SessionConfigChanged => &CONFIG_CHANGED,
        ActionKind::SessionTitleChanged | ActionKind::TerminalTitleChanged => &TITLE_CHANGED,
        ActionKind::SessionActiveClientSet => &ACTIVE_CLIENT_SET,
        ActionKind::SystemMessageTransformSet => &OPT_IN,
        ActionKind::ChatTurnStarted => &TURN_STARTED,
        ActionKind::ChatPendingMessageSet => &PENDING_MESSAGE_SET,
        ActionKind::ChatDraftChanged => &DRAFT_CHANGED,
        ActionKind::ChatToolCallConfirmed => &TOOL_CALL_CONFIRMED,
        ActionKind::ChatToolCallComplete => &TOOL_CALL_COMPLETE,
        ActionKind::ChatToolCallContentChanged => &TOOL_CALL_CONTENT,
        ActionKind::ChatInputAnswerChanged => &ANSWER_CHANGED,
        ActionKind::ChatInputCompleted => &INPUT_COMPLETED,
        ActionKind::AnnotationsSet => &ANNOTATION_SET,
        ActionKind::AnnotationsUpdated
        | ActionKind::AnnotationsRemoved
        | ActionKind::AnnotationsEntrySet
        | ActionKind::AnnotationsEntryRemoved => &ANNOTATION_CHANGED,
        ActionKind::ChangesetFilesReviewChanged => &FILES_REVIEWED,
        ActionKind::TerminalInput => &TERMINAL_INPUT,
        _ => &OTHERS,
    }
}

const INITIALIZE: FieldBound = fields(&[
    ("protocolVersions", FieldBound::Entries { most: Bound::ProtocolVersions, each: &ID }),
    ("clientId", ID),
    ("clientInfo", FIELD),
    ("initialSubscriptions", SUBSCRIPTIONS),
    ("locale", ID),
    ("capabilities", FIELD),
    ("_meta", CARRIER_META),
]);
const RECONNECT: FieldBound = fields(&[("clientId", ID), ("subscriptions", SUBSCRIPTIONS)]);
const CREATE_SESSION: FieldBound = fields(&[
    ("channel", URI),
    ("provider", ID),
    ("workingDirectories", DIRECTORIES),
    ("config", FIELD),
    ("activeClient", ACTIVE_CLIENT),
    ("progressToken", ID),
]);
const SOURCE: FieldBound = fields(&[("selection", FieldBound::Bytes(Bound::SelectionBytes))]);
const CREATE_CHAT: FieldBound = fields(&[
    ("channel", URI),
    ("chat", URI),
    ("initialMessage", MESSAGE),
    ("source", SOURCE),
    ("workingDirectories", DIRECTORIES),
]);
const SESSION_CONFIG: FieldBound = fields(&[
    ("channel", URI),
    ("provider", ID),
    ("property", ID),
    ("workingDirectory", URI),
    ("config", FIELD),
]);
const AUTHENTICATE: FieldBound = fields(&[("channel", URI), ("resource", URI)]);
const COMPLETIONS: FieldBound =
    fields(&[("channel", URI), ("session", URI), ("text", FieldBound::Bytes(Bound::MessageBytes))]);
const COMPOSE: FieldBound = fields(&[("channel", URI), ("message", MESSAGE), ("model", FIELD)]);
const ADD_MODEL: FieldBound = fields(&[("channel", URI), ("model", FIELD)]);
const IMPORTED_CHAT: FieldBound = fields(&[
    ("resource", URI),
    ("title", TITLE),
    ("workingDirectories", DIRECTORIES),
    ("origin", FieldBound::Bytes(Bound::SelectionBytes)),
]);
/// A session of another host, as far as it is taken over.
pub(super) const IMPORTED_SESSION: FieldBound = fields(&[
    ("resource", URI),
    ("provider", ID),
    ("title", TITLE),
    ("workingDirectories", DIRECTORIES),
    ("defaultChat", URI),
    ("chats", FieldBound::Entries { most: Bound::Chats, each: &IMPORTED_CHAT }),
]);
/// What was answered in a turn is not the client's, and is bounded with the turn.
pub(super) const IMPORTED_TURN: FieldBound = FieldBound::Fields {
    whole: Some(Bound::TurnBytes),
    rest: Bound::FieldBytes,
    fields: &[
        ("id", ID),
        ("message", MESSAGE),
        ("responseParts", FieldBound::Bytes(Bound::TurnBytes)),
    ],
};
/// What is imported comes as texts: they are bounded by their frame, and what is in them by the two above.
const IMPORT_SESSION: FieldBound =
    fields(&[("channel", URI), ("session", FieldBound::Body), ("turns", FieldBound::Body)]);
/// What is written is bounded by its frame, like all bodies.
const RESOURCE_WRITE: FieldBound =
    fields(&[("channel", URI), ("uri", URI), ("data", FieldBound::Body), ("ifMatch", ID)]);
const RESOURCE_PAIR: FieldBound =
    fields(&[("channel", URI), ("source", URI), ("destination", URI)]);
const ON_CHANNEL: FieldBound = fields(&[("channel", URI), ("uri", URI), ("cursor", ID)]);

pub(super) fn of_params(method: Method) -> &'static FieldBound {
    match method {
        Method::Initialize => &INITIALIZE,
        Method::Reconnect => &RECONNECT,
        Method::CreateSession => &CREATE_SESSION,
        Method::CreateChat => &CREATE_CHAT,
        Method::ResolveSessionConfig | Method::SessionConfigCompletions => &SESSION_CONFIG,
        Method::Completions => &COMPLETIONS,
        Method::Authenticate => &AUTHENTICATE,
        Method::AddModel => &ADD_MODEL,
        Method::Compose => &COMPOSE,
        Method::ImportSession => &IMPORT_SESSION,
        Method::ResourceWrite => &RESOURCE_WRITE,
        Method::ResourceCopy | Method::ResourceMove => &RESOURCE_PAIR,
        _ => &ON_CHANNEL,
    }
}
