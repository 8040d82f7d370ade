//! Which actions belong to which channel, as patterns.
//!
//! A reducer names its own actions one by one and the rest by these patterns, so that no match needs a wildcard: an
//! action the protocol gains compiles nowhere until it has been put into a family and its own reducer handles it.

macro_rules! root_actions {
    () => {
        ahp_types::actions::ActionType::RootAgentsChanged
            | ahp_types::actions::ActionType::RootActiveSessionsChanged
            | ahp_types::actions::ActionType::RootTerminalsChanged
            | ahp_types::actions::ActionType::RootConfigChanged
    };
}

macro_rules! session_actions {
    () => {
        ahp_types::actions::ActionType::SessionReady
            | ahp_types::actions::ActionType::SessionCreationFailed
            | ahp_types::actions::ActionType::SessionChatAdded
            | ahp_types::actions::ActionType::SessionChatRemoved
            | ahp_types::actions::ActionType::SessionChatUpdated
            | ahp_types::actions::ActionType::SessionChatsReordered
            | ahp_types::actions::ActionType::SessionDefaultChatChanged
            | ahp_types::actions::ActionType::SessionTitleChanged
            | ahp_types::actions::ActionType::SessionIsReadChanged
            | ahp_types::actions::ActionType::SessionIsArchivedChanged
            | ahp_types::actions::ActionType::SessionActivityChanged
            | ahp_types::actions::ActionType::SessionChangesetsChanged
            | ahp_types::actions::ActionType::SessionServerToolsChanged
            | ahp_types::actions::ActionType::SessionActiveClientSet
            | ahp_types::actions::ActionType::SessionActiveClientRemoved
            | ahp_types::actions::ActionType::SessionWorkingDirectorySet
            | ahp_types::actions::ActionType::SessionWorkingDirectoryRemoved
            | ahp_types::actions::ActionType::SessionWorkingDirectoryReplaced
            | ahp_types::actions::ActionType::SessionInputNeededSet
            | ahp_types::actions::ActionType::SessionInputNeededRemoved
            | ahp_types::actions::ActionType::SessionCustomizationsChanged
            | ahp_types::actions::ActionType::SessionCustomizationToggled
            | ahp_types::actions::ActionType::SessionCustomizationUpdated
            | ahp_types::actions::ActionType::SessionCustomizationRemoved
            | ahp_types::actions::ActionType::SessionMcpServerStateChanged
            | ahp_types::actions::ActionType::SessionMcpServerStartRequested
            | ahp_types::actions::ActionType::SessionMcpServerStopRequested
            | ahp_types::actions::ActionType::SessionMcpServerBackgroundRequested
            | ahp_types::actions::ActionType::SessionConfigChanged
            | ahp_types::actions::ActionType::SessionMetaChanged
    };
}

macro_rules! chat_actions {
    () => {
        ahp_types::actions::ActionType::ChatTurnStarted
            | ahp_types::actions::ActionType::ChatDelta
            | ahp_types::actions::ActionType::ChatResponsePart
            | ahp_types::actions::ActionType::ChatReasoning
            | ahp_types::actions::ActionType::ChatUsage
            | ahp_types::actions::ActionType::ChatToolCallStart
            | ahp_types::actions::ActionType::ChatToolCallDelta
            | ahp_types::actions::ActionType::ChatToolCallReady
            | ahp_types::actions::ActionType::ChatToolCallConfirmed
            | ahp_types::actions::ActionType::ChatToolCallComplete
            | ahp_types::actions::ActionType::ChatToolCallResultConfirmed
            | ahp_types::actions::ActionType::ChatToolCallContentChanged
            | ahp_types::actions::ActionType::ChatToolCallAuthRequired
            | ahp_types::actions::ActionType::ChatToolCallAuthResolved
            | ahp_types::actions::ActionType::ChatTurnComplete
            | ahp_types::actions::ActionType::ChatTurnCancelled
            | ahp_types::actions::ActionType::ChatError
            | ahp_types::actions::ActionType::ChatTurnResume
            | ahp_types::actions::ActionType::ChatActivityChanged
            | ahp_types::actions::ActionType::ChatBackgroundWorkSet
            | ahp_types::actions::ActionType::ChatBackgroundWorkRemoved
            | ahp_types::actions::ActionType::ChatMovableChanged
            | ahp_types::actions::ActionType::ChatChangesetsChanged
            | ahp_types::actions::ActionType::ChatCanvasesChanged
            | ahp_types::actions::ActionType::ChatWorkingDirectorySet
            | ahp_types::actions::ActionType::ChatWorkingDirectoryRemoved
            | ahp_types::actions::ActionType::ChatPendingMessageSet
            | ahp_types::actions::ActionType::ChatPendingMessageRemoved
            | ahp_types::actions::ActionType::ChatQueuedMessagesReordered
            | ahp_types::actions::ActionType::ChatDraftChanged
            | ahp_types::actions::ActionType::ChatIsReadChanged
            | ahp_types::actions::ActionType::ChatIsArchivedChanged
            | ahp_types::actions::ActionType::ChatInputRequested
            | ahp_types::actions::ActionType::ChatInputAnswerChanged
            | ahp_types::actions::ActionType::ChatInputCompleted
            | ahp_types::actions::ActionType::ChatTruncated
            | ahp_types::actions::ActionType::ChatTurnsLoaded
    };
}

macro_rules! changeset_actions {
    () => {
        ahp_types::actions::ActionType::ChangesetStatusChanged
            | ahp_types::actions::ActionType::ChangesetFileSet
            | ahp_types::actions::ActionType::ChangesetFileRemoved
            | ahp_types::actions::ActionType::ChangesetFilesReviewChanged
            | ahp_types::actions::ActionType::ChangesetContentChanged
            | ahp_types::actions::ActionType::ChangesetOperationsChanged
            | ahp_types::actions::ActionType::ChangesetOperationStatusChanged
            | ahp_types::actions::ActionType::ChangesetCleared
    };
}

macro_rules! annotations_actions {
    () => {
        ahp_types::actions::ActionType::AnnotationsSet
            | ahp_types::actions::ActionType::AnnotationsUpdated
            | ahp_types::actions::ActionType::AnnotationsRemoved
            | ahp_types::actions::ActionType::AnnotationsEntrySet
            | ahp_types::actions::ActionType::AnnotationsEntryRemoved
    };
}

macro_rules! terminal_actions {
    () => {
        ahp_types::actions::ActionType::TerminalData
            | ahp_types::actions::ActionType::TerminalInput
            | ahp_types::actions::ActionType::TerminalResized
            | ahp_types::actions::ActionType::TerminalClaimed
            | ahp_types::actions::ActionType::TerminalTitleChanged
            | ahp_types::actions::ActionType::TerminalCwdChanged
            | ahp_types::actions::ActionType::TerminalExited
            | ahp_types::actions::ActionType::TerminalCleared
            | ahp_types::actions::ActionType::TerminalCommandDetectionAvailable
            | ahp_types::actions::ActionType::TerminalCommandExecuted
            | ahp_types::actions::ActionType::TerminalCommandFinished
    };
}

macro_rules! resource_watch_actions {
    () => {
        ahp_types::actions::ActionType::ResourceWatchChanged
    };
}

macro_rules! automations_actions {
    () => {
        ahp_types::actions::ActionType::AutomationCreateRequested
            | ahp_types::actions::ActionType::AutomationUpdateRequested
            | ahp_types::actions::ActionType::AutomationSet
            | ahp_types::actions::ActionType::AutomationRemoved
    };
}

macro_rules! automation_run_actions {
    () => {
        ahp_types::actions::ActionType::AutomationRunLifecycleChanged
            | ahp_types::actions::ActionType::AutomationRunSessionSet
            | ahp_types::actions::ActionType::AutomationRunSessionRemoved
            | ahp_types::actions::ActionType::AutomationRunPrimarySessionChanged
            | ahp_types::actions::ActionType::AutomationRunCancelRequested
    };
}

macro_rules! canvas_actions {
    () => {
        ahp_types::actions::ActionType::CanvasStateChanged
    };
}

/// Everything that is neither of the root, a session nor a chat.
macro_rules! side_channel_actions {
    () => {
        $crate::families::changeset_actions!()
            | $crate::families::annotations_actions!()
            | $crate::families::terminal_actions!()
            | $crate::families::resource_watch_actions!()
            | $crate::families::automations_actions!()
            | $crate::families::automation_run_actions!()
            | $crate::families::canvas_actions!()
    };
}

pub(crate) use {
    annotations_actions, automation_run_actions, automations_actions, canvas_actions,
    changeset_actions, chat_actions, resource_watch_actions, root_actions, session_actions,
    side_channel_actions, terminal_actions,
};
