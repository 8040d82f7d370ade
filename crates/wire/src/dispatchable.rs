//! Who may dispatch which action, on which kind of channel, since when: host-rules section A.
//!
//! Every match lists every action. Whether this client may do it to this state is the kernel's question, not one here.

use ahp_types::actions::ActionType;

use crate::Generation;
use crate::families::{
    annotations_actions, automation_run_actions, automations_actions, canvas_actions,
    changeset_actions, chat_actions, resource_watch_actions, root_actions, session_actions,
    terminal_actions,
};

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
pub enum Dispatcher {
    /// The host alone; from a client it is refused (H-069).
    HostOnly,
    /// A client too, as far as the state allows.
    Client,
}

/// The kind of channel an action belongs on; none for an action nobody here knows.
pub fn channel_of(kind: &ActionType) -> Option<ChannelKind> {
    match kind {
        root_actions!() => Some(ChannelKind::Root),
        session_actions!() => Some(ChannelKind::Session),
        chat_actions!() => Some(ChannelKind::Chat),
        terminal_actions!() => Some(ChannelKind::Terminal),
        changeset_actions!() => Some(ChannelKind::Changeset),
        annotations_actions!() => Some(ChannelKind::Annotations),
        resource_watch_actions!() => Some(ChannelKind::ResourceWatch),
        automations_actions!() => Some(ChannelKind::Automations),
        automation_run_actions!() => Some(ChannelKind::AutomationRun),
        canvas_actions!() => Some(ChannelKind::Canvas),
        ActionType::Unknown(_) => None,
    }
}

/// Who may dispatch an action of this type.
pub fn who_may(kind: &ActionType) -> Dispatcher {
    match kind {
        ActionType::RootConfigChanged
        | ActionType::SessionDefaultChatChanged // G-23, against the generated map
        | ActionType::SessionTitleChanged
        | ActionType::SessionIsReadChanged
        | ActionType::SessionIsArchivedChanged
        | ActionType::SessionActiveClientSet
        | ActionType::SessionActiveClientRemoved
        | ActionType::SessionWorkingDirectorySet
        | ActionType::SessionWorkingDirectoryRemoved
        | ActionType::SessionWorkingDirectoryReplaced
        | ActionType::SessionCustomizationToggled
        | ActionType::SessionMcpServerStartRequested
        | ActionType::SessionMcpServerStopRequested
        | ActionType::SessionMcpServerBackgroundRequested
        | ActionType::SessionConfigChanged
        | ActionType::ChatTurnStarted
        | ActionType::ChatToolCallConfirmed
        | ActionType::ChatToolCallComplete // the owner of a client tool, or a failure in auth-required
        | ActionType::ChatToolCallResultConfirmed
        | ActionType::ChatToolCallContentChanged // the owner of a client tool
        | ActionType::ChatTurnCancelled
        | ActionType::ChatTurnResume
        | ActionType::ChatWorkingDirectorySet
        | ActionType::ChatWorkingDirectoryRemoved
        | ActionType::ChatPendingMessageSet
        | ActionType::ChatPendingMessageRemoved
        | ActionType::ChatQueuedMessagesReordered
        | ActionType::ChatDraftChanged
        | ActionType::ChatIsReadChanged
        | ActionType::ChatIsArchivedChanged
        | ActionType::ChatInputAnswerChanged
        | ActionType::ChatInputCompleted
        | ActionType::ChatTruncated
        | ActionType::ChangesetFilesReviewChanged
        | ActionType::AnnotationsSet
        | ActionType::AnnotationsUpdated
        | ActionType::AnnotationsRemoved
        | ActionType::AnnotationsEntrySet
        | ActionType::AnnotationsEntryRemoved
        | ActionType::TerminalInput
        | ActionType::TerminalResized
        | ActionType::TerminalClaimed
        | ActionType::TerminalTitleChanged
        | ActionType::TerminalCleared
        | ActionType::AutomationCreateRequested
        | ActionType::AutomationUpdateRequested
        | ActionType::AutomationRemoved
        | ActionType::AutomationRunCancelRequested => Dispatcher::Client,

        ActionType::RootAgentsChanged
        | ActionType::RootActiveSessionsChanged
        | ActionType::RootTerminalsChanged
        | ActionType::SessionReady
        | ActionType::SessionCreationFailed
        | ActionType::SessionChatAdded
        | ActionType::SessionChatRemoved
        | ActionType::SessionChatUpdated
        | ActionType::SessionChatsReordered
        | ActionType::SessionActivityChanged
        | ActionType::SessionChangesetsChanged
        | ActionType::SessionServerToolsChanged
        | ActionType::SessionInputNeededSet
        | ActionType::SessionInputNeededRemoved
        | ActionType::SessionCustomizationsChanged
        | ActionType::SessionCustomizationUpdated
        | ActionType::SessionCustomizationRemoved
        | ActionType::SessionMcpServerStateChanged
        | ActionType::SessionMetaChanged
        | ActionType::ChatDelta
        | ActionType::ChatResponsePart
        | ActionType::ChatReasoning
        | ActionType::ChatUsage
        | ActionType::ChatToolCallStart
        | ActionType::ChatToolCallDelta
        | ActionType::ChatToolCallReady
        | ActionType::ChatToolCallAuthRequired
        | ActionType::ChatToolCallAuthResolved
        | ActionType::ChatTurnComplete
        | ActionType::ChatError
        | ActionType::ChatActivityChanged
        | ActionType::ChatBackgroundWorkSet
        | ActionType::ChatBackgroundWorkRemoved
        | ActionType::ChatMovableChanged
        | ActionType::ChatChangesetsChanged
        | ActionType::ChatCanvasesChanged
        | ActionType::ChatInputRequested
        | ActionType::ChatTurnsLoaded
        | ActionType::ChangesetStatusChanged
        | ActionType::ChangesetFileSet
        | ActionType::ChangesetFileRemoved
        | ActionType::ChangesetContentChanged
        | ActionType::ChangesetOperationsChanged
        | ActionType::ChangesetOperationStatusChanged
        | ActionType::ChangesetCleared
        | ActionType::TerminalData
        | ActionType::TerminalCwdChanged
        | ActionType::TerminalExited
        | ActionType::TerminalCommandDetectionAvailable
        | ActionType::TerminalCommandExecuted
        | ActionType::TerminalCommandFinished
        | ActionType::ResourceWatchChanged
        | ActionType::AutomationSet
        | ActionType::AutomationRunLifecycleChanged
        | ActionType::AutomationRunSessionSet
        | ActionType::AutomationRunSessionRemoved
        | ActionType::AutomationRunPrimarySessionChanged
        | ActionType::CanvasStateChanged => Dispatcher::HostOnly,

        // Refused unless whoever knows the extension took it first (H-070).
        ActionType::Unknown(_) => Dispatcher::HostOnly,
    }
}

/// The first generation whose published clients know an action (the rows marked † in section A are newer than 0.9.0).
pub fn since(kind: &ActionType) -> Generation {
    match kind {
        ActionType::SessionChatsReordered
        | ActionType::SessionMcpServerBackgroundRequested
        | ActionType::ChatBackgroundWorkSet
        | ActionType::ChatBackgroundWorkRemoved
        | ActionType::ChatMovableChanged
        | ActionType::ChatChangesetsChanged
        | ActionType::ChatCanvasesChanged
        | ActionType::ChatIsReadChanged
        | ActionType::ChatIsArchivedChanged
        | ActionType::CanvasStateChanged => Generation::V1_0,

        ActionType::SessionReady
        | ActionType::SessionCreationFailed
        | ActionType::SessionChatAdded
        | ActionType::SessionChatRemoved
        | ActionType::SessionChatUpdated
        | ActionType::SessionDefaultChatChanged
        | ActionType::SessionTitleChanged
        | ActionType::SessionIsReadChanged
        | ActionType::SessionIsArchivedChanged
        | ActionType::SessionActivityChanged
        | ActionType::SessionChangesetsChanged
        | ActionType::SessionServerToolsChanged
        | ActionType::SessionActiveClientSet
        | ActionType::SessionActiveClientRemoved
        | ActionType::SessionWorkingDirectorySet
        | ActionType::SessionWorkingDirectoryRemoved
        | ActionType::SessionWorkingDirectoryReplaced
        | ActionType::SessionInputNeededSet
        | ActionType::SessionInputNeededRemoved
        | ActionType::SessionCustomizationsChanged
        | ActionType::SessionCustomizationToggled
        | ActionType::SessionCustomizationUpdated
        | ActionType::SessionCustomizationRemoved
        | ActionType::SessionMcpServerStateChanged
        | ActionType::SessionMcpServerStartRequested
        | ActionType::SessionMcpServerStopRequested
        | ActionType::SessionConfigChanged
        | ActionType::SessionMetaChanged
        | ActionType::ChatTurnStarted
        | ActionType::ChatDelta
        | ActionType::ChatResponsePart
        | ActionType::ChatReasoning
        | ActionType::ChatUsage
        | ActionType::ChatToolCallStart
        | ActionType::ChatToolCallDelta
        | ActionType::ChatToolCallReady
        | ActionType::ChatToolCallConfirmed
        | ActionType::ChatToolCallComplete
        | ActionType::ChatToolCallResultConfirmed
        | ActionType::ChatToolCallContentChanged
        | ActionType::ChatToolCallAuthRequired
        | ActionType::ChatToolCallAuthResolved
        | ActionType::ChatTurnComplete
        | ActionType::ChatTurnCancelled
        | ActionType::ChatError
        | ActionType::ChatTurnResume
        | ActionType::ChatActivityChanged
        | ActionType::ChatWorkingDirectorySet
        | ActionType::ChatWorkingDirectoryRemoved
        | ActionType::ChatPendingMessageSet
        | ActionType::ChatPendingMessageRemoved
        | ActionType::ChatQueuedMessagesReordered
        | ActionType::ChatDraftChanged
        | ActionType::ChatInputRequested
        | ActionType::ChatInputAnswerChanged
        | ActionType::ChatInputCompleted
        | ActionType::ChatTruncated
        | ActionType::ChatTurnsLoaded => Generation::V0_9,

        root_actions!() => Generation::V0_9,
        terminal_actions!() | changeset_actions!() | annotations_actions!() => Generation::V0_9,
        resource_watch_actions!() => Generation::V0_9,
        automations_actions!() | automation_run_actions!() => Generation::V0_9,
        // An extension is between those who agreed on it: no generation withholds it.
        ActionType::Unknown(_) => Generation::V0_9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::kind_of;

    #[test]
    fn what_only_the_host_knows_only_the_host_says() {
        for name in [
            "chat/delta",
            "chat/turnComplete",
            "session/ready",
            "root/agentsChanged",
        ] {
            assert_eq!(who_may(&kind_of(name)), Dispatcher::HostOnly, "{name}");
        }
        for name in [
            "chat/turnStarted",
            "session/defaultChatChanged",
            "root/configChanged",
        ] {
            assert_eq!(who_may(&kind_of(name)), Dispatcher::Client, "{name}");
        }
        assert_eq!(
            who_may(&kind_of("x-session/anything")),
            Dispatcher::HostOnly
        );
    }

    #[test]
    fn an_action_belongs_to_the_channel_its_name_begins_with() {
        for (name, kind) in [
            ("root/configChanged", ChannelKind::Root),
            ("session/titleChanged", ChannelKind::Session),
            ("chat/canvasesChanged", ChannelKind::Chat),
            ("terminal/data", ChannelKind::Terminal),
            ("changeset/cleared", ChannelKind::Changeset),
            ("annotations/set", ChannelKind::Annotations),
            ("resourceWatch/changed", ChannelKind::ResourceWatch),
            ("automation/set", ChannelKind::Automations),
            ("automationRun/sessionSet", ChannelKind::AutomationRun),
            ("canvas/stateChanged", ChannelKind::Canvas),
        ] {
            assert_eq!(channel_of(&kind_of(name)), Some(kind), "{name}");
        }
        assert_eq!(channel_of(&kind_of("x-chat/anything")), None);
    }

    #[test]
    fn newer_actions_are_told_apart() {
        for name in [
            "chat/isReadChanged",
            "session/chatsReordered",
            "canvas/stateChanged",
        ] {
            assert_eq!(since(&kind_of(name)), Generation::V1_0, "{name}");
        }
        for name in ["chat/turnResume", "session/isReadChanged", "automation/set"] {
            assert_eq!(since(&kind_of(name)), Generation::V0_9, "{name}");
        }
    }
}
