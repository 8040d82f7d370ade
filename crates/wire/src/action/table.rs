//! The table of actions: everything that is true of an action whatever the host does with it. Data only.
//!
//! Promises: each published action has exactly one row, extensions have rows beside them, and no other file lists actions
//! by name (`tests/action_table.rs`). What is derived from a row is in `kind.rs` and `reduce/mod.rs`.
//! Must not know: the state of any channel, who is connected.
//!
//! The columns, left to right:
//! - the kind, named like the published `ActionType` variant;
//! - its name on the wire;
//! - who may send it: `host`, `client` or `both`, and for clients the variant of the channel's enum that the kernel
//!   matches on. `session/defaultChatChanged` is open to clients by G-23, against the generated map. That clients must own
//!   the tool call they complete is for the kernel to check, not for this table;
//! - the first published version whose clients know it. Ten actions are stamped 0.9 upstream, but no published 0.9 client
//!   reads them, so the table has 1.0 for them; automations came with the published 0.9;
//! - `head` if recording it writes the head of its channel anew; otherwise it is recorded by itself and applied over the
//!   head when the channel is loaded: `stream` if it is output of a running stream (a turn, a terminal), `row` if what is
//!   derived from its channel may change: the status of a chat or what it waits for, the counts of annotations;
//! - its reducer, for the channels that this crate reduces;
//! - `message`: the field that holds a message of the user, and with it attachments that may be large.

/// Hands the table to a macro that makes something of it.
macro_rules! with_action_table {
    ($callback:ident) => {
        $callback! {
    channel Root: RootAction, reduce_root(RootState) {
        RootAgentsChanged                   "root/agentsChanged"                   host                               V0_1    head   root::set_agents;
        RootActiveSessionsChanged           "root/activeSessionsChanged"           host                               V0_1    head   root::set_active_sessions;
        RootTerminalsChanged                "root/terminalsChanged"                host                               V0_1    head   root::set_terminals;
        RootConfigChanged                   "root/configChanged"                   both(ConfigChanged)                V0_1    head   root::change_config;
    } extensions {}
    channel Session: SessionAction, reduce_session(SessionState) {
        SessionReady                        "session/ready"                        host                               V0_1    head   session::mark_ready;
        SessionCreationFailed               "session/creationFailed"               host                               V0_1    head   session::fail_creation;
        SessionChatAdded                    "session/chatAdded"                    host                               V0_4    head   session::add_chat;
        SessionChatRemoved                  "session/chatRemoved"                  host                               V0_4    head   session::remove_chat;
        SessionChatUpdated                  "session/chatUpdated"                  host                               V0_4    head   session::update_chat;
        SessionChatsReordered               "session/chatsReordered"               host                               V1_0    head   session::reorder_chats;
        SessionDefaultChatChanged           "session/defaultChatChanged"           both(DefaultChatChanged)           V0_4    head   session::set_default_chat;
        SessionTitleChanged                 "session/titleChanged"                 both(TitleChanged)                 V0_1    head   session::set_title;
        SessionIsReadChanged                "session/isReadChanged"                both(IsReadChanged)                V0_1    head   session::set_is_read;
        SessionIsArchivedChanged            "session/isArchivedChanged"            both(IsArchivedChanged)            V0_1    head   session::set_is_archived;
        SessionActivityChanged              "session/activityChanged"              host                               V0_1    head   session::set_activity;
        SessionChangesetsChanged            "session/changesetsChanged"            host                               V0_2    head   session::set_changesets;
        SessionServerToolsChanged           "session/serverToolsChanged"           host                               V0_1    head   session::set_server_tools;
        SessionActiveClientSet              "session/activeClientSet"              both(ActiveClientSet)              V0_5    head   session::set_active_client;
        SessionActiveClientRemoved          "session/activeClientRemoved"          both(ActiveClientRemoved)          V0_5    head   session::remove_active_client;
        SessionWorkingDirectorySet          "session/workingDirectorySet"          both(WorkingDirectorySet)          V0_7    head   session::add_working_directory;
        SessionWorkingDirectoryRemoved      "session/workingDirectoryRemoved"      both(WorkingDirectoryRemoved)      V0_7    head   session::remove_working_directory;
        SessionWorkingDirectoryReplaced     "session/workingDirectoryReplaced"     both(WorkingDirectoryReplaced)     V0_8    head   session::replace_working_directory;
        SessionInputNeededSet               "session/inputNeededSet"               host                               V0_5_1  head   session::set_input_needed;
        SessionInputNeededRemoved           "session/inputNeededRemoved"           host                               V0_5_1  head   session::remove_input_needed;
        SessionCustomizationsChanged        "session/customizationsChanged"        host                               V0_1    head   customization::replace_all;
        SessionCustomizationToggled         "session/customizationToggled"         both(CustomizationToggled)         V0_1    head   customization::toggle;
        SessionCustomizationUpdated         "session/customizationUpdated"         host                               V0_1    head   customization::update;
        SessionCustomizationRemoved         "session/customizationRemoved"         host                               V0_2    head   customization::remove;
        SessionMcpServerStateChanged        "session/mcpServerStateChanged"        host                               V0_3    head   customization::change_mcp_state;
        SessionMcpServerStartRequested      "session/mcpServerStartRequested"      both(McpServerStartRequested)      V0_5_2  head   customization::start_mcp_server;
        SessionMcpServerStopRequested       "session/mcpServerStopRequested"       both(McpServerStopRequested)       V0_5_2  head   customization::stop_mcp_server;
        SessionMcpServerBackgroundRequested "session/mcpServerBackgroundRequested" both(McpServerBackgroundRequested) V1_0    head   customization::background_mcp_server;
        SessionConfigChanged                "session/configChanged"                both(ConfigChanged)                V0_1    head   session::change_config;
        SessionMetaChanged                  "session/metaChanged"                  host                               V0_1    head   session::set_meta;
    } extensions {
        SystemMessageTransformSet           "x-session/systemMessageTransformSet"  client(SystemMessageTransformSet)  V0_3    head   leave_unchanged;
        SessionSelectionSet                 "x-session/selectionSet"               client(SelectionSet)               V0_4    head   leave_unchanged;
    }
    channel Chat: ChatAction, reduce_chat(ChatState) {
        ChatTurnStarted                     "chat/turnStarted"                     both(TurnStarted)                  V0_4    head   turn::start, message "message";
        ChatDelta                           "chat/delta"                           host                               V0_4    stream chat::append_markdown;
        ChatResponsePart                    "chat/responsePart"                    host                               V0_4    stream chat::add_part;
        ChatReasoning                       "chat/reasoning"                       host                               V0_4    stream chat::append_reasoning;
        ChatUsage                           "chat/usage"                           host                               V0_4    stream chat::set_usage;
        ChatToolCallStart                   "chat/toolCallStart"                   host                               V0_4    stream tool_call::start;
        ChatToolCallDelta                   "chat/toolCallDelta"                   host                               V0_4    stream tool_call::append_input;
        ChatToolCallReady                   "chat/toolCallReady"                   host                               V0_4    row    tool_call::make_ready;
        ChatToolCallConfirmed               "chat/toolCallConfirmed"               both(ToolCallConfirmed)            V0_4    row    tool_call::confirm, message "userSuggestion";
        ChatToolCallComplete                "chat/toolCallComplete"                both(ToolCallComplete)             V0_4    row    tool_call::complete;
        ChatToolCallResultConfirmed         "chat/toolCallResultConfirmed"         both(ToolCallResultConfirmed)      V0_4    row    tool_call::confirm_result;
        ChatToolCallContentChanged          "chat/toolCallContentChanged"          both(ToolCallContentChanged)       V0_4    stream tool_call::set_content;
        ChatToolCallAuthRequired            "chat/toolCallAuthRequired"            host                               V0_6    row    tool_call::require_auth;
        ChatToolCallAuthResolved            "chat/toolCallAuthResolved"            host                               V0_6    row    tool_call::resolve_auth;
        ChatTurnComplete                    "chat/turnComplete"                    host                               V0_4    head   turn::complete;
        ChatTurnCancelled                   "chat/turnCancelled"                   both(TurnCancelled)                V0_4    head   turn::cancel;
        ChatError                           "chat/error"                           host                               V0_4    head   turn::fail;
        ChatTurnResume                      "chat/turnResume"                      both(TurnResume)                   V0_9    head   turn::resume;
        ChatActivityChanged                 "chat/activityChanged"                 host                               V0_5    head   chat::set_activity;
        ChatBackgroundWorkSet               "chat/backgroundWorkSet"               host                               V1_0    head   chat::set_background_work;
        ChatBackgroundWorkRemoved           "chat/backgroundWorkRemoved"           host                               V1_0    head   chat::remove_background_work;
        ChatMovableChanged                  "chat/movableChanged"                  host                               V1_0    head   chat::set_movable;
        ChatChangesetsChanged               "chat/changesetsChanged"               host                               V1_0    head   chat::set_changesets;
        ChatCanvasesChanged                 "chat/canvasesChanged"                 host                               V1_0    head   chat::set_canvases;
        ChatWorkingDirectorySet             "chat/workingDirectorySet"             both(WorkingDirectorySet)          V0_7    head   chat::add_working_directory;
        ChatWorkingDirectoryRemoved         "chat/workingDirectoryRemoved"         both(WorkingDirectoryRemoved)      V0_7    head   chat::remove_working_directory;
        ChatPendingMessageSet               "chat/pendingMessageSet"               both(PendingMessageSet)            V0_4    head   pending_message::set_message, message "message";
        ChatPendingMessageRemoved           "chat/pendingMessageRemoved"           both(PendingMessageRemoved)        V0_4    head   pending_message::remove;
        ChatQueuedMessagesReordered         "chat/queuedMessagesReordered"         both(QueuedMessagesReordered)      V0_4    head   pending_message::reorder;
        ChatDraftChanged                    "chat/draftChanged"                    both(DraftChanged)                 V0_5    head   chat::set_draft, message "draft";
        ChatIsReadChanged                   "chat/isReadChanged"                   both(IsReadChanged)                V1_0    head   chat::set_is_read;
        ChatIsArchivedChanged               "chat/isArchivedChanged"               both(IsArchivedChanged)            V1_0    head   chat::set_is_archived;
        ChatInputRequested                  "chat/inputRequested"                  host                               V0_4    row    input_request::request;
        ChatInputAnswerChanged              "chat/inputAnswerChanged"              both(InputAnswerChanged)           V0_4    row    input_request::change_answer;
        ChatInputCompleted                  "chat/inputCompleted"                  both(InputCompleted)               V0_4    row    input_request::complete;
        ChatTruncated                       "chat/truncated"                       both(Truncated)                    V0_4    head   turn::truncate;
        ChatTurnsLoaded                     "chat/turnsLoaded"                     host                               V0_5_1  head   turn::load_older;
    } extensions {}
    channel Changeset: ChangesetAction, reduce_changeset(ChangesetState) {
        ChangesetStatusChanged              "changeset/statusChanged"              host                               V0_2    row    changeset::change_status;
        ChangesetFileSet                    "changeset/fileSet"                    host                               V0_2    row    changeset::set_file;
        ChangesetFileRemoved                "changeset/fileRemoved"                host                               V0_2    row    changeset::remove_file;
        ChangesetFilesReviewChanged         "changeset/filesReviewChanged"         both(FilesReviewChanged)           V0_6    row    changeset::review_files;
        ChangesetContentChanged             "changeset/contentChanged"             host                               V0_4    head   changeset::replace_content;
        ChangesetOperationsChanged          "changeset/operationsChanged"          host                               V0_2    row    changeset::set_operations;
        ChangesetOperationStatusChanged     "changeset/operationStatusChanged"     host                               V0_3    row    changeset::change_operation_status;
        ChangesetCleared                    "changeset/cleared"                    host                               V0_2    head   changeset::clear;
    } extensions {}
    channel Annotations: AnnotationsAction, reduce_annotations(AnnotationsState) {
        AnnotationsSet                      "annotations/set"                      both(Set)                          V0_4    row    annotations::set_annotation;
        AnnotationsUpdated                  "annotations/updated"                  both(Updated)                      V0_4    row    annotations::update;
        AnnotationsRemoved                  "annotations/removed"                  both(Removed)                      V0_4    row    annotations::remove;
        AnnotationsEntrySet                 "annotations/entrySet"                 both(EntrySet)                     V0_4    row    annotations::set_entry;
        AnnotationsEntryRemoved             "annotations/entryRemoved"             both(EntryRemoved)                 V0_4    row    annotations::remove_entry;
    } extensions {}
    channel Terminal: TerminalAction, reduce_terminal(TerminalState) {
        TerminalData                        "terminal/data"                        host                               V0_1    stream terminal::append_data;
        TerminalInput                       "terminal/input"                       client(Input)                      V0_1    stream leave_unchanged;
        TerminalResized                     "terminal/resized"                     both(Resized)                      V0_1    row    terminal::resize;
        TerminalClaimed                     "terminal/claimed"                     both(Claimed)                      V0_1    row    terminal::claim;
        TerminalTitleChanged                "terminal/titleChanged"                both(TitleChanged)                 V0_1    row    terminal::set_title;
        TerminalCwdChanged                  "terminal/cwdChanged"                  host                               V0_1    row    terminal::set_cwd;
        TerminalExited                      "terminal/exited"                      host                               V0_1    head   terminal::exit;
        TerminalCleared                     "terminal/cleared"                     both(Cleared)                      V0_1    head   terminal::clear;
        TerminalCommandDetectionAvailable   "terminal/commandDetectionAvailable"   host                               V0_1    row    terminal::detect_commands;
        TerminalCommandExecuted             "terminal/commandExecuted"             host                               V0_1    stream terminal::start_command;
        TerminalCommandFinished             "terminal/commandFinished"             host                               V0_1    stream terminal::finish_command;
    } extensions {}
    channel ResourceWatch: ResourceWatchAction, reduce_resource_watch(ResourceWatchState) {
        ResourceWatchChanged                "resourceWatch/changed"                host                               V0_2    stream leave_unchanged;
    } extensions {}
    others {
        Automations {
            AutomationCreateRequested           "automation/createRequested"           client                             V0_9    head;
            AutomationUpdateRequested           "automation/updateRequested"           client                             V0_9    head;
            AutomationSet                       "automation/set"                       host                               V0_9    head;
            AutomationRemoved                   "automation/removed"                   both                               V0_9    head;
        }
        AutomationRun {
            AutomationRunLifecycleChanged       "automationRun/lifecycleChanged"       host                               V0_9    head;
            AutomationRunSessionSet             "automationRun/sessionSet"             host                               V0_9    head;
            AutomationRunSessionRemoved         "automationRun/sessionRemoved"         host                               V0_9    head;
            AutomationRunPrimarySessionChanged  "automationRun/primarySessionChanged"  host                               V0_9    head;
            AutomationRunCancelRequested        "automationRun/cancelRequested"        client                             V0_9    head;
        }
        Canvas {
            CanvasStateChanged                  "canvas/stateChanged"                  host                               V1_0    head;
        }
    }
        }
    };
}

pub(crate) use with_action_table;
