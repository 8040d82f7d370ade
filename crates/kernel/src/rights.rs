//! Which role each request and each action needs. No request and no kind of channel is decided by default: a new one has to be put in its place.

use wire::action::{
    ActionError, AnnotationsAction, ChangesetAction, ChatAction, ClientAction, RootAction,
    SessionAction, TerminalAction,
};
use wire::methods::{Call, ResourceCall};
use wire::rpc::code;
use wire::{ActionKind, ChannelUri, RpcError};

use crate::io::PeerId;
use crate::refusal::Refusal;
use crate::role::Role;
use crate::state::Kernel;
use crate::telemetry;

/// Whether the role of a connection is enough for a request.
pub(crate) fn check_call(kernel: &Kernel, peer: PeerId, call: &Call) -> Result<(), RpcError> {
    check(kernel.role(peer), needed_for_call(call)).map_err(denial)
}

/// The same for an action. A viewer's are refused whatever they are.
pub(crate) fn check_action(
    kernel: &Kernel,
    peer: PeerId,
    kind: &Result<ActionKind, ActionError>,
) -> Result<(), Refusal> {
    let verb = kind.as_ref().ok().and_then(|kind| kind.client_action());
    // What is no action of clients is refused later, for what it is.
    let needed = verb.map_or(Role::Member, needed_for_action);
    check(kernel.role(peer), needed).map_err(Refusal)
}

/// Whether the role of a connection is enough to watch a channel.
pub(crate) fn check_watch(kernel: &Kernel, peer: PeerId, uri: &ChannelUri) -> Result<(), RpcError> {
    check(kernel.role(peer), needed_for_channel(uri)).map_err(denial)
}

pub(crate) fn may_watch(role: Role, uri: &ChannelUri) -> bool {
    role >= needed_for_channel(uri)
}

/// A client id stands for what its client is: for its tools, its files, its terminals, its place in sessions. Only whoever has
/// it, connected or gone for a moment, comes under it again.
pub(crate) fn check_client_id(
    kernel: &Kernel,
    peer: PeerId,
    client_id: &str,
) -> Result<(), RpcError> {
    let Some(newer) = kernel.peers().holder(peer) else {
        return Ok(()); // it is gone, and so is whatever it asked for
    };
    let older = match kernel.peers().peer_of(client_id) {
        Some(older) => kernel.peers().holder(older),
        None => kernel.active_clients().holder_of(client_id),
    };
    if older.is_some_and(|older| !newer.may_take_over(older)) {
        return Err(denial(
            "this client id belongs to another device or account, or to one with another role; choose another".to_owned(),
        ));
    }
    let mut sessions = kernel.active_clients().sessions_of(client_id);
    if newer.role == Role::Viewer && sessions.next().is_some() {
        Err(denial(
            "this client id takes part in a session, and your token has the role viewer; choose another".to_owned(),
        ))
    } else {
        Ok(())
    }
}

fn check(role: Role, needed: Role) -> Result<(), String> {
    if role >= needed {
        return Ok(());
    }
    let (role, needed) = (role.name(), needed.name());
    Err(format!(
        "this takes the role {needed}, and your token has the role {role}; an owner of the space can give you another"
    ))
}

fn denial(message: String) -> RpcError {
    RpcError::new(code::PERMISSION_DENIED, message)
}

fn needed_for_call(call: &Call) -> Role {
    match call {
        Call::Initialize(_)
        | Call::Ping
        | Call::Reconnect(_)
        | Call::Subscribe(_)
        | Call::ListSessions(_)
        | Call::FetchTurns(..)
        | Call::ResolveSessionConfig(_) => Role::Viewer,
        Call::Resource(call) => needed_for_resource(call),
        // Asks agents, on behalf of a session that is to be made.
        Call::SessionConfigCompletions(_)
        // Searches files, for a message that is to be sent.
        | Call::Completions(_)
        // Keeps the host at work.
        | Call::CreateResourceWatch(_)
        // Stores the bodies of a message that is to be sent.
        | Call::Compose(_)
        | Call::CreateSession(..)
        | Call::DisposeSession(_)
        | Call::CreateChat(..)
        | Call::DisposeChat(_)
        | Call::CreateTerminal(_)
        | Call::DisposeTerminal(_)
        | Call::MoveChat(_)
        | Call::Authenticate(_)
        | Call::InvokeChangesetOperation(_)
        | Call::ImportSession(_) => Role::Member,
        // A model names a server, a key of the host and perhaps a command that prints it.
        Call::AddModel(_) | Call::ReloadModels => Role::Owner,
    }
}

/// Telemetry covers the host and all sessions, and log lines may hold more than anybody can foresee.
fn needed_for_channel(uri: &ChannelUri) -> Role {
    match telemetry::signal_of(uri) {
        Some(_) => Role::Owner,
        None => Role::Viewer,
    }
}

fn needed_for_resource(call: &ResourceCall) -> Role {
    match call {
        ResourceCall::Read(_) | ResourceCall::List(_) | ResourceCall::Resolve(_) => Role::Viewer,
        ResourceCall::Write(_)
        | ResourceCall::Copy(_)
        | ResourceCall::Move(_)
        | ResourceCall::Delete(_)
        | ResourceCall::MakeDirectory(_)
        // Widens what its client may use.
        | ResourceCall::Request(_) => Role::Member,
    }
}

fn needed_for_action(action: ClientAction) -> Role {
    match action {
        ClientAction::Root(RootAction::ConfigChanged) => Role::Owner,
        ClientAction::Session(action) => needed_in_session(action),
        ClientAction::Chat(action) => needed_in_chat(action),
        ClientAction::Changeset(ChangesetAction::FilesReviewChanged) => Role::Member,
        ClientAction::Annotations(action) => needed_for_annotations(action),
        ClientAction::Terminal(action) => needed_in_terminal(action),
        // No channel here takes it: it is refused for that.
        ClientAction::OtherChannel(_) => Role::Member,
        ClientAction::ResourceWatch(none) => match none {},
    }
}

// Everything that changes a session needs a member. Each action is named, so that a new one does not compile before somebody decides.

fn needed_in_session(action: SessionAction) -> Role {
    match action {
        SessionAction::TitleChanged
        | SessionAction::IsReadChanged
        | SessionAction::IsArchivedChanged
        | SessionAction::ConfigChanged
        | SessionAction::ActiveClientSet
        | SessionAction::ActiveClientRemoved
        | SessionAction::DefaultChatChanged
        | SessionAction::WorkingDirectorySet
        | SessionAction::WorkingDirectoryRemoved
        | SessionAction::WorkingDirectoryReplaced
        | SessionAction::CustomizationToggled
        | SessionAction::McpServerStartRequested
        | SessionAction::McpServerStopRequested
        | SessionAction::McpServerBackgroundRequested
        | SessionAction::SelectionSet
        | SessionAction::SystemMessageTransformSet => Role::Member,
    }
}

fn needed_in_chat(action: ChatAction) -> Role {
    match action {
        ChatAction::TurnStarted
        | ChatAction::TurnCancelled
        | ChatAction::TurnResume
        | ChatAction::DraftChanged
        | ChatAction::IsReadChanged
        | ChatAction::IsArchivedChanged
        | ChatAction::ToolCallConfirmed
        | ChatAction::ToolCallComplete
        | ChatAction::ToolCallResultConfirmed
        | ChatAction::ToolCallContentChanged
        | ChatAction::InputAnswerChanged
        | ChatAction::InputCompleted
        | ChatAction::PendingMessageSet
        | ChatAction::PendingMessageRemoved
        | ChatAction::QueuedMessagesReordered
        | ChatAction::Truncated
        | ChatAction::WorkingDirectorySet
        | ChatAction::WorkingDirectoryRemoved => Role::Member,
    }
}

fn needed_for_annotations(action: AnnotationsAction) -> Role {
    match action {
        AnnotationsAction::EntryRemoved
        | AnnotationsAction::EntrySet
        | AnnotationsAction::Removed
        | AnnotationsAction::Set
        | AnnotationsAction::Updated => Role::Member,
    }
}

fn needed_in_terminal(action: TerminalAction) -> Role {
    match action {
        TerminalAction::Claimed
        | TerminalAction::Cleared
        | TerminalAction::Input
        | TerminalAction::Resized
        | TerminalAction::TitleChanged => Role::Member,
    }
}
