//! Who may dispatch which action, on which kind of channel, since when: host-rules section A.
//!
//! Every match lists every action. Whether this client may do it to this state is the kernel's question, not one here.

use ahp_types::actions::ActionType;

use crate::Generation;
use crate::ext::system_message_transform;
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
    HostOnly,
    /// Clients too; which of their actions it is.
    Client(ClientAction),
}

/// The actions that clients dispatch, by the channel they act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientAction {
    Root(RootAction),
    Session(SessionAction),
    Chat(ChatAction),
    /// On a channel of this kind, which the host may not keep.
    Elsewhere(ChannelKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RootAction {
    ConfigChanged,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionAction {
    DefaultChatChanged,
    TitleChanged,
    IsReadChanged,
    IsArchivedChanged,
    ActiveClientSet,
    ActiveClientRemoved,
    WorkingDirectorySet,
    WorkingDirectoryRemoved,
    WorkingDirectoryReplaced,
    CustomizationToggled,
    McpServerStartRequested,
    McpServerStopRequested,
    McpServerBackgroundRequested,
    ConfigChanged,
    /// An extension's: opts in to rewriting sections of the system prompt (G-34).
    SystemMessageTransformSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChatAction {
    TurnStarted,
    ToolCallConfirmed,
    ToolCallComplete,
    ToolCallResultConfirmed,
    ToolCallContentChanged,
    TurnCancelled,
    TurnResume,
    WorkingDirectorySet,
    WorkingDirectoryRemoved,
    PendingMessageSet,
    PendingMessageRemoved,
    QueuedMessagesReordered,
    DraftChanged,
    IsReadChanged,
    IsArchivedChanged,
    InputAnswerChanged,
    InputCompleted,
    Truncated,
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
        ActionType::Unknown(name) if name == system_message_transform::ACTION => {
            Some(ChannelKind::Session)
        }
        ActionType::Unknown(_) => None,
    }
}

/// Who may dispatch an action of this type.
pub fn who_may(kind: &ActionType) -> Dispatcher {
    let client = Dispatcher::Client;
    match kind {
        ActionType::RootConfigChanged => client(ClientAction::Root(RootAction::ConfigChanged)),
        ActionType::SessionDefaultChatChanged => {
            client(ClientAction::Session(SessionAction::DefaultChatChanged))
        } // G-23, against the generated map
        ActionType::SessionTitleChanged => {
            client(ClientAction::Session(SessionAction::TitleChanged))
        }
        ActionType::SessionIsReadChanged => {
            client(ClientAction::Session(SessionAction::IsReadChanged))
        }
        ActionType::SessionIsArchivedChanged => {
            client(ClientAction::Session(SessionAction::IsArchivedChanged))
        }
        ActionType::SessionActiveClientSet => {
            client(ClientAction::Session(SessionAction::ActiveClientSet))
        }
        ActionType::SessionActiveClientRemoved => {
            client(ClientAction::Session(SessionAction::ActiveClientRemoved))
        }
        ActionType::SessionWorkingDirectorySet => {
            client(ClientAction::Session(SessionAction::WorkingDirectorySet))
        }
        ActionType::SessionWorkingDirectoryRemoved => client(ClientAction::Session(
            SessionAction::WorkingDirectoryRemoved,
        )),
        ActionType::SessionWorkingDirectoryReplaced => client(ClientAction::Session(
            SessionAction::WorkingDirectoryReplaced,
        )),
        ActionType::SessionCustomizationToggled => {
            client(ClientAction::Session(SessionAction::CustomizationToggled))
        }
        ActionType::SessionMcpServerStartRequested => client(ClientAction::Session(
            SessionAction::McpServerStartRequested,
        )),
        ActionType::SessionMcpServerStopRequested => {
            client(ClientAction::Session(SessionAction::McpServerStopRequested))
        }
        ActionType::SessionMcpServerBackgroundRequested => client(ClientAction::Session(
            SessionAction::McpServerBackgroundRequested,
        )),
        ActionType::SessionConfigChanged => {
            client(ClientAction::Session(SessionAction::ConfigChanged))
        }
        ActionType::ChatTurnStarted => client(ClientAction::Chat(ChatAction::TurnStarted)),
        ActionType::ChatToolCallConfirmed => {
            client(ClientAction::Chat(ChatAction::ToolCallConfirmed))
        }
        ActionType::ChatToolCallComplete => {
            client(ClientAction::Chat(ChatAction::ToolCallComplete))
        } // the owner of a client tool, or a failure in auth-required
        ActionType::ChatToolCallResultConfirmed => {
            client(ClientAction::Chat(ChatAction::ToolCallResultConfirmed))
        }
        ActionType::ChatToolCallContentChanged => {
            client(ClientAction::Chat(ChatAction::ToolCallContentChanged))
        } // the owner of a client tool
        ActionType::ChatTurnCancelled => client(ClientAction::Chat(ChatAction::TurnCancelled)),
        ActionType::ChatTurnResume => client(ClientAction::Chat(ChatAction::TurnResume)),
        ActionType::ChatWorkingDirectorySet => {
            client(ClientAction::Chat(ChatAction::WorkingDirectorySet))
        }
        ActionType::ChatWorkingDirectoryRemoved => {
            client(ClientAction::Chat(ChatAction::WorkingDirectoryRemoved))
        }
        ActionType::ChatPendingMessageSet => {
            client(ClientAction::Chat(ChatAction::PendingMessageSet))
        }
        ActionType::ChatPendingMessageRemoved => {
            client(ClientAction::Chat(ChatAction::PendingMessageRemoved))
        }
        ActionType::ChatQueuedMessagesReordered => {
            client(ClientAction::Chat(ChatAction::QueuedMessagesReordered))
        }
        ActionType::ChatDraftChanged => client(ClientAction::Chat(ChatAction::DraftChanged)),
        ActionType::ChatIsReadChanged => client(ClientAction::Chat(ChatAction::IsReadChanged)),
        ActionType::ChatIsArchivedChanged => {
            client(ClientAction::Chat(ChatAction::IsArchivedChanged))
        }
        ActionType::ChatInputAnswerChanged => {
            client(ClientAction::Chat(ChatAction::InputAnswerChanged))
        }
        ActionType::ChatInputCompleted => client(ClientAction::Chat(ChatAction::InputCompleted)),
        ActionType::ChatTruncated => client(ClientAction::Chat(ChatAction::Truncated)),
        ActionType::ChangesetFilesReviewChanged => {
            client(ClientAction::Elsewhere(ChannelKind::Changeset))
        }
        ActionType::AnnotationsSet
        | ActionType::AnnotationsUpdated
        | ActionType::AnnotationsRemoved
        | ActionType::AnnotationsEntrySet
        | ActionType::AnnotationsEntryRemoved => {
            client(ClientAction::Elsewhere(ChannelKind::Annotations))
        }
        ActionType::TerminalInput
        | ActionType::TerminalResized
        | ActionType::TerminalClaimed
        | ActionType::TerminalTitleChanged
        | ActionType::TerminalCleared => client(ClientAction::Elsewhere(ChannelKind::Terminal)),
        ActionType::AutomationCreateRequested
        | ActionType::AutomationUpdateRequested
        | ActionType::AutomationRemoved => {
            client(ClientAction::Elsewhere(ChannelKind::Automations))
        }
        ActionType::AutomationRunCancelRequested => {
            client(ClientAction::Elsewhere(ChannelKind::AutomationRun))
        }

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

        ActionType::Unknown(name) if name == system_message_transform::ACTION => client(
            ClientAction::Session(SessionAction::SystemMessageTransformSet),
        ),
        // Refused: no extension of this host has it (H-070).
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
            assert!(
                matches!(who_may(&kind_of(name)), Dispatcher::Client(_)),
                "{name}"
            );
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
