//! Prepare: what must happen before an action can be recorded. Bodies that are too large for state are stored by the host
//! first; then the action is checked again and recorded with references in their place (G-32).

use serde_json::Value;
use wire::action::ChatAction;
use wire::{Action, ChannelUri, Object};

use crate::bodies::{
    self, BodyData, InlineBudget, SentAction, UnstoredBody, clip_content, detach_message,
    detach_result,
};
use crate::client_file::{ClientFile, ClientFileError};
use crate::customization::switched_off;
use crate::io::{ComposeTask, MessageContext};
use crate::message;
use crate::pause::{ActionStop, HandlerAnswers, HostWork, Pause, StoredNames};
use crate::refusal::Refusal;
use crate::state::Kernel;
use crate::submission::Submission;
use crate::tool_call;
use crate::turn::agent::directories_of;

/// A client's action on a chat that was checked and is not prepared yet.
pub(crate) struct UnpreparedAction<'a> {
    pub verb: ChatAction,
    pub action: Action,
    /// The action as it came: what the host fills in is no part of what the user said.
    pub sent: &'a SentAction,
    pub client_id: &'a str,
}

/// An action that can be recorded, and what goes with it.
pub(crate) struct Prepared {
    pub action: Action,
    /// What its message means, if it brings one.
    pub submission: Option<Submission>,
    /// Bytes that stay embedded in the session's messages.
    pub embedded_bytes: usize,
}

/// Moves out of a client's action what is too large for state, and finds out what a message means.
pub(crate) fn prepare(
    kernel: &Kernel,
    chat: &ChannelUri,
    unprepared: UnpreparedAction<'_>,
    answers: &HandlerAnswers,
) -> Result<Prepared, ActionStop> {
    let UnpreparedAction { verb, action, sent, client_id } = unprepared;
    let acts_on_call = matches!(
        verb,
        ChatAction::ToolCallConfirmed
            | ChatAction::ToolCallResultConfirmed
            | ChatAction::ToolCallComplete
            | ChatAction::ToolCallContentChanged
    );
    let action = if acts_on_call {
        tool_call::check::keep_own_meta(kernel.chat(chat).state(), action)
    } else {
        action
    };
    match verb {
        ChatAction::TurnStarted | ChatAction::PendingMessageSet => {
            let principal = kernel.peers().principal_of(client_id);
            prepare_submission(kernel, chat, action, sent, principal, answers)
        }
        ChatAction::DraftChanged => {
            prepare_message(kernel, chat, action, "draft", sent, answers).map(|prepared| {
                // A draft is replaced whole, time and again; it is counted when it is sent.
                Prepared { embedded_bytes: 0, ..prepared }
            })
        }
        ChatAction::ToolCallConfirmed => {
            prepare_message(kernel, chat, action, "userSuggestion", sent, answers)
        }
        ChatAction::ToolCallComplete => prepare_result(kernel, action, answers),
        ChatAction::ToolCallContentChanged => Ok(prepare_content(kernel, action)),
        ChatAction::TurnCancelled
        | ChatAction::TurnResume
        | ChatAction::IsReadChanged
        | ChatAction::IsArchivedChanged
        | ChatAction::ToolCallResultConfirmed
        | ChatAction::InputAnswerChanged
        | ChatAction::InputCompleted
        | ChatAction::PendingMessageRemoved
        | ChatAction::QueuedMessagesReordered
        | ChatAction::Truncated
        | ChatAction::WorkingDirectorySet
        | ChatAction::WorkingDirectoryRemoved => Ok(leave_unchanged(action)),
    }
}

fn leave_unchanged(action: Action) -> Prepared {
    Prepared { action, submission: None, embedded_bytes: 0 }
}

fn prepare_submission(
    kernel: &Kernel,
    chat: &ChannelUri,
    mut action: Action,
    sent: &SentAction,
    principal: Option<String>,
    answers: &HandlerAnswers,
) -> Result<Prepared, ActionStop> {
    let detached = sent.detached();
    let Some(Value::Object(sent)) = sent.without_bodies().get("message") else {
        return Err(Refusal::because("`message` is missing").into());
    };
    if compositor::is_plain(sent) {
        return prepare_plain(kernel, chat, action, sent);
    }
    let directories = directories_of(kernel, chat);
    let session = kernel.chat(chat).session();
    let attachment = |index: usize| detached.find(&format!("/message/attachments/{index}"));
    let context = message_context(kernel, session, Some(chat), principal);
    let mut submission = compose(kernel, context, &directories, sent, attachment, answers)?;
    // In an idle chat it begins a turn of its own, and is what any other message is (G-08).
    let steers = kernel.chat(chat).active_turn_id().is_some();
    if steers
        && action.text("kind") == Some("steering")
        && let Some(command) = submission.actions.first()
    {
        return Err(Refusal(format!(
            "{} cannot steer a turn: send it when the turn is over",
            command.name
        ))
        .into());
    }
    if let Some(conflict) = submission.conflict() {
        return Err(Refusal::because(conflict).into());
    }
    if sent.get("model").is_none_or(Value::is_null) {
        submission.missing_model = message::missing_model(kernel, kernel.chat(chat));
    }
    message::check(kernel, kernel.chat(chat), &mut submission.message, answers)?;
    submission.drop_unused_model();
    message::pin_parts(kernel, &mut submission.parts);
    let message = submission.take_message();
    action.body.insert("message".to_owned(), message);
    Ok(Prepared { embedded_bytes: submission.inline_bytes, action, submission: Some(submission) })
}

/// A text that means itself: its action was checked with the message in it, and is recorded as it is.
fn prepare_plain(
    kernel: &Kernel,
    chat: &ChannelUri,
    mut action: Action,
    sent: &Object,
) -> Result<Prepared, ActionStop> {
    let mut submission = Submission::plain_as_sent(sent);
    if sent.get("model").is_none_or(Value::is_null) {
        submission.missing_model = message::missing_model(kernel, kernel.chat(chat));
    }
    let Some(Value::Object(message)) = action.body.get_mut("message") else {
        return Err(Refusal::because("`message` is missing").into());
    };
    submission.message = std::mem::take(message);
    *action.body.entry("message").or_insert(Value::Null) = submission.take_message();
    Ok(Prepared { embedded_bytes: 0, action, submission: Some(submission) })
}

/// Where a message is typed: in a chat, or as the first of one.
pub(crate) fn message_context(
    kernel: &Kernel,
    session: &ChannelUri,
    chat: Option<&ChannelUri>,
    principal: Option<String>,
) -> MessageContext {
    let found = kernel.find_session(session);
    MessageContext {
        provider: found.map_or_else(String::new, |found| found.state().provider.clone()),
        session: session.clone(),
        chat: chat.cloned(),
        principal,
        switched_off: switched_off(kernel, session),
    }
}

/// What a message means, once the host has found out. `sent` is the message without the bodies that were detached from it;
/// `detached` finds one by the index of its attachment.
pub(crate) fn compose<'a>(
    kernel: &Kernel,
    context: MessageContext,
    working_directories: &[String],
    sent: &Object,
    detached: impl Fn(usize) -> Option<&'a BodyData>,
    answers: &HandlerAnswers,
) -> Result<Submission, ActionStop> {
    if compositor::is_plain(sent) {
        return Ok(Submission::plain(sent.clone()));
    }
    let left_bytes = inline_bytes_left(kernel, &context.session);
    match answers.compose_result() {
        Some(Err(failed)) => return Err(Refusal(failed.to_string()).into()),
        Some(Ok(submission)) if submission.inline_bytes <= left_bytes => {
            return Ok((**submission).clone());
        }
        // Others may have used the room meanwhile: then more has to be stored.
        Some(Ok(_)) | None => {}
    }
    let client_files = client_files(kernel, sent, answers)?;
    let attachments = sent.get("attachments").and_then(Value::as_array);
    let bodies = (0..attachments.map_or(0, Vec::len))
        .filter_map(|index| Some((index, detached(index)?.clone())));
    Err(Pause::Work(HostWork::Compose(Box::new(ComposeTask {
        context,
        message: sent.clone(),
        detached: bodies.collect(),
        client_files,
        working_directories: working_directories.to_vec(),
        each_bytes: kernel.limits().inline_body_bytes,
        left_bytes,
    })))
    .into())
}

/// What the client read of the files that only it can read; a pause to ask it if it was not asked yet.
fn client_files(
    kernel: &Kernel,
    sent: &Object,
    answers: &HandlerAnswers,
) -> Result<Vec<ClientFile>, Pause> {
    let most = kernel.limits().client_files_max;
    let mut files = Vec::new();
    let mut unasked = Vec::new();
    for (index, uri) in compositor::ahp::client_resources(sent).into_iter().enumerate() {
        match answers.client_file(uri) {
            Some(file) => files.push(file.clone()),
            None if index < most => unasked.push(uri.to_owned()),
            None => files.push(ClientFile {
                uri: uri.to_owned(),
                read: Err(ClientFileError::TooMany(most)),
            }),
        }
    }
    if unasked.is_empty() { Ok(files) } else { Err(Pause::AskClient(unasked)) }
}

/// How much one more message may embed.
fn inline_bytes_left(kernel: &Kernel, session: &ChannelUri) -> usize {
    let embedded = kernel.session(session).embedded_bytes();
    let limits = kernel.limits();
    limits.inline_session_bytes.saturating_sub(embedded).min(limits.inline_message_bytes)
}

/// A message that is not composed: a draft, or what somebody suggests instead of a call.
fn prepare_message(
    kernel: &Kernel,
    chat: &ChannelUri,
    mut action: Action,
    field: &str,
    sent: &SentAction,
    answers: &HandlerAnswers,
) -> Result<Prepared, ActionStop> {
    let Some(Value::Object(message)) = action.body.get_mut(field) else {
        return Ok(leave_unchanged(action)); // none is a message, too
    };
    let room = InlineBudget {
        each: kernel.limits().inline_body_bytes,
        all: inline_bytes_left(kernel, kernel.chat(chat).session()),
    };
    let (bodies, embedded_bytes) =
        detach_message(message, &format!("/{field}"), room, sent.detached());
    let action = fill_stored_refs(action, bodies, answers)?;
    Ok(Prepared { action, submission: None, embedded_bytes })
}

fn prepare_result(
    kernel: &Kernel,
    mut action: Action,
    answers: &HandlerAnswers,
) -> Result<Prepared, ActionStop> {
    if answers.detached_result().is_some() {
        let names = match answers.store_result() {
            Some(Ok(names)) => names.clone(),
            Some(Err(failed)) => return Err(Refusal(failed.to_string()).into()),
            None => unreachable!("a message goes on when its bodies are stored"),
        };
        return Ok(leave_unchanged(fill_names_in(action, names)));
    }
    let Some(Value::Object(result)) = action.body.get_mut("result") else {
        return Ok(leave_unchanged(action)); // it says no more than that the call is over
    };
    let bodies = detach_result(result, kernel.limits().inline_result_bytes);
    if bodies.is_empty() {
        return Ok(leave_unchanged(action));
    }
    let result = std::mem::take(result);
    let bodies = bodies
        .into_iter()
        .map(|body| UnstoredBody { pointer: format!("/result{}", body.pointer), ..body })
        .collect();
    Err(Pause::Work(HostWork::StoreResult { bodies, result }).into())
}

fn prepare_content(kernel: &Kernel, mut action: Action) -> Prepared {
    if let Some(Value::Array(content)) = action.body.get_mut("content") {
        clip_content(content, kernel.limits().inline_result_bytes);
    }
    leave_unchanged(action)
}

/// Fills in the names of bodies if all of them were stored; otherwise they are to be stored first. More may have to go than
/// before: others may have used the room meanwhile.
fn fill_stored_refs(
    action: Action,
    bodies: Vec<UnstoredBody>,
    answers: &HandlerAnswers,
) -> Result<Action, ActionStop> {
    if bodies.is_empty() {
        return Ok(action);
    }
    let names = match answers.store_result() {
        None => return Err(Pause::Work(HostWork::StoreBodies(bodies)).into()),
        Some(Err(failed)) => return Err(Refusal(failed.to_string()).into()),
        Some(Ok(names)) => names,
    };
    let name_of = |body: &UnstoredBody| {
        let mut names = names.iter();
        names.find(|(pointer, _)| *pointer == body.pointer).cloned()
    };
    let Some(names) = bodies.iter().map(name_of).collect::<Option<Vec<_>>>() else {
        return Err(Pause::Work(HostWork::StoreBodies(bodies)).into());
    };
    Ok(fill_names_in(action, names))
}

/// Puts the names of bodies where they belong.
fn fill_names_in(mut action: Action, names: StoredNames) -> Action {
    let mut whole = Value::Object(std::mem::take(&mut action.body));
    bodies::fill_names(&mut whole, names);
    if let Value::Object(body) = whole {
        action.body = body;
    }
    action
}
