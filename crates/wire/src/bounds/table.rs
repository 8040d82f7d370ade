//! The table of bounds: which bound each field of an action and of a request's params has. Data only.
//!
//! What is not listed has [`OTHERS`]: all such fields of an object share `field_bytes_max`. That is enough for flags, numbers
//! and short texts, so only what may be larger, what must be smaller and what is counted is listed here.

use super::{Bound, Shape};
use crate::action::ActionKind;
use crate::ext::system_message_transform as transform;
use crate::methods::Method;

const ID: Shape = Shape::Bytes(Bound::IdBytes);
const URI: Shape = Shape::Bytes(Bound::UriBytes);
const FIELD: Shape = Shape::Bytes(Bound::FieldBytes);

const fn fields(fields: &'static [(&'static str, Shape)]) -> Shape {
    Shape::Fields {
        whole: None,
        rest: Bound::FieldBytes,
        fields,
    }
}

const SECTIONS: Shape = Shape::Entries {
    most: Bound::TransformSections,
    each: &ID,
};
const OPT_IN: Shape = fields(&[("sections", SECTIONS)]);
const CARRIER_META: Shape = fields(&[(transform::X_METHOD, OPT_IN)]);

const TOOLS: Shape = Shape::Entries {
    most: Bound::ClientTools,
    each: &Shape::Bytes(Bound::ActiveClientBytes),
};
const ACTIVE_CLIENT: Shape = Shape::Fields {
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

const ATTACHMENT: Shape = Shape::Fields {
    whole: None,
    rest: Bound::MessageBytes,
    fields: &[("data", Shape::Body), ("uri", URI)],
};
const MESSAGE: Shape = Shape::Fields {
    whole: Some(Bound::MessageBytes),
    rest: Bound::MessageBytes,
    fields: &[
        (
            "attachments",
            Shape::Entries {
                most: Bound::Attachments,
                each: &ATTACHMENT,
            },
        ),
        ("model", FIELD),
    ],
};

const ANSWERS: Shape = Shape::Entries {
    most: Bound::Answers,
    each: &Shape::Bytes(Bound::AnswersBytes),
};
const DIRECTORIES: Shape = Shape::Entries {
    most: Bound::WorkingDirectories,
    each: &URI,
};
const SUBSCRIPTIONS: Shape = Shape::Entries {
    most: Bound::Subscriptions,
    each: &URI,
};

/// Of actions and params that bring nothing large.
const OTHERS: Shape = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("requestId", ID),
    ("questionId", ID),
    ("clientId", ID),
    ("id", ID),
]);

const TITLE_CHANGED: Shape = fields(&[("title", Shape::Bytes(Bound::TitleBytes))]);
const CONFIG_CHANGED: Shape = fields(&[("config", FIELD)]);
const ACTIVE_CLIENT_SET: Shape = fields(&[("activeClient", ACTIVE_CLIENT)]);
const TURN_STARTED: Shape = fields(&[
    ("turnId", ID),
    ("queuedMessageId", ID),
    ("message", MESSAGE),
]);
const PENDING_MESSAGE_SET: Shape = fields(&[("id", ID), ("message", MESSAGE)]);
const DRAFT_CHANGED: Shape = fields(&[("draft", MESSAGE)]);
const TOOL_CALL_CONFIRMED: Shape = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("userSuggestion", MESSAGE),
    ("editedToolInput", Shape::Bytes(Bound::MessageBytes)),
]);
/// What a result says is bounded by its frame: it is moved out, and what stays is within `inline_result_bytes`.
const TOOL_CALL_COMPLETE: Shape = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("result", Shape::Bytes(Bound::ToolOutputBytes)),
]);
const TOOL_CALL_CONTENT: Shape = fields(&[
    ("turnId", ID),
    ("toolCallId", ID),
    ("content", Shape::Bytes(Bound::ToolOutputBytes)),
]);
const ANSWER_CHANGED: Shape = fields(&[
    ("requestId", ID),
    ("questionId", ID),
    ("answer", Shape::Bytes(Bound::AnswersBytes)),
]);
const INPUT_COMPLETED: Shape = fields(&[("requestId", ID), ("answers", ANSWERS)]);

pub(super) fn of_action(kind: ActionKind) -> &'static Shape {
    match kind {
        ActionKind::RootConfigChanged | ActionKind::SessionConfigChanged => &CONFIG_CHANGED,
        ActionKind::SessionTitleChanged => &TITLE_CHANGED,
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
        _ => &OTHERS,
    }
}

const INITIALIZE: Shape = fields(&[
    (
        "protocolVersions",
        Shape::Entries {
            most: Bound::ProtocolVersions,
            each: &ID,
        },
    ),
    ("clientId", ID),
    ("clientInfo", FIELD),
    ("initialSubscriptions", SUBSCRIPTIONS),
    ("locale", ID),
    ("capabilities", FIELD),
    ("_meta", CARRIER_META),
]);
const RECONNECT: Shape = fields(&[("clientId", ID), ("subscriptions", SUBSCRIPTIONS)]);
const CREATE_SESSION: Shape = fields(&[
    ("channel", URI),
    ("provider", ID),
    ("workingDirectories", DIRECTORIES),
    ("config", FIELD),
    ("activeClient", ACTIVE_CLIENT),
    ("progressToken", ID),
]);
const SOURCE: Shape = fields(&[("selection", Shape::Bytes(Bound::SelectionBytes))]);
const CREATE_CHAT: Shape = fields(&[
    ("channel", URI),
    ("chat", URI),
    ("initialMessage", MESSAGE),
    ("source", SOURCE),
    ("workingDirectories", DIRECTORIES),
]);
const SESSION_CONFIG: Shape = fields(&[
    ("provider", ID),
    ("workingDirectory", URI),
    ("config", FIELD),
]);
const COMPLETIONS: Shape = fields(&[
    ("channel", URI),
    ("session", URI),
    ("text", Shape::Bytes(Bound::MessageBytes)),
]);
const ON_CHANNEL: Shape = fields(&[("channel", URI), ("uri", URI), ("cursor", ID)]);

pub(super) fn of_params(method: Method) -> &'static Shape {
    match method {
        Method::Initialize => &INITIALIZE,
        Method::Reconnect => &RECONNECT,
        Method::CreateSession => &CREATE_SESSION,
        Method::CreateChat => &CREATE_CHAT,
        Method::ResolveSessionConfig | Method::SessionConfigCompletions => &SESSION_CONFIG,
        Method::Completions => &COMPLETIONS,
        _ => &ON_CHANNEL,
    }
}
