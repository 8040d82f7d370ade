//! What may be sent again (G-30): which actions may be sent again after a connection was lost, and which only their author
//! can decide about.

use wire::Action;
use wire::action::{ChatAction, ClientAction, TerminalAction};

/// Why an action was not sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Something happened on the chat meanwhile: to cut it, to cancel, to resume or to confirm was meant for what was
    /// there before.
    MovedOn,
    /// The state came as a snapshot, which does not show whether the action is in it.
    StateReplaced,
    /// The channel is not there any more.
    ChannelGone,
    /// The channel is not watched, so the replay does not show whether the host took the action.
    NotWatched,
    /// Connection after connection ended before the host answered it.
    SentTooOften,
}

/// What a replay must say about its chat before an action is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resend {
    /// It means the same later as now, or the host checks that it does.
    Freely,
    /// It means what was on the screen: only if nothing happened.
    IfNothingHappened,
}

pub(super) fn resend(action: &Action) -> Resend {
    match action.kind.client_action() {
        Some(ClientAction::Chat(chat)) => match chat {
            ChatAction::Truncated
            | ChatAction::TurnCancelled
            | ChatAction::TurnResume
            | ChatAction::ToolCallConfirmed
            | ChatAction::ToolCallResultConfirmed => Resend::IfNothingHappened,
            ChatAction::TurnStarted
            | ChatAction::ToolCallComplete
            | ChatAction::ToolCallContentChanged
            | ChatAction::WorkingDirectorySet
            | ChatAction::WorkingDirectoryRemoved
            | ChatAction::PendingMessageSet
            | ChatAction::PendingMessageRemoved
            | ChatAction::QueuedMessagesReordered
            | ChatAction::DraftChanged
            | ChatAction::IsReadChanged
            | ChatAction::IsArchivedChanged
            // Input requests have ids that are never reused (G-10): an answer cannot meet another question.
            | ChatAction::InputAnswerChanged
            | ChatAction::InputCompleted => Resend::Freely,
        },
        // What was typed was meant for what was on the screen.
        Some(ClientAction::Terminal(TerminalAction::Input)) => Resend::IfNothingHappened,
        Some(
            ClientAction::Root(_)
            | ClientAction::Session(_)
            | ClientAction::Changeset(_)
            | ClientAction::Annotations(_)
            | ClientAction::Terminal(
                TerminalAction::Resized
                | TerminalAction::Claimed
                | TerminalAction::TitleChanged
                | TerminalAction::Cleared,
            )
            | ClientAction::OtherChannel(_),
        )
        | None => Resend::Freely,
        Some(ClientAction::ResourceWatch(none)) => match none {},
    }
}
