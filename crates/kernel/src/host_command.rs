//! Commands that the host carries out itself, before or instead of an agent's work on the turn (C-040, C-053, C-054).
//!
//! They are done in the order they stand in. What is taken back is taken back before the turn of the command begins, so
//! that the turn stays as the record of it; everything else is done once the session takes turns. Files are restored by a run
//! of the host's own, because people are asked about them; its command stays first in line until that is done, so that a turn
//! that was cut off there goes on with it. A command that fails ends the turn in an error, and no agent hears of it.

use std::sync::Arc;

use agent_api::AgentError;
use serde_json::json;
use wire::meta::{EDITS, may_hold};
use wire::state::Turn;
use wire::{Action, ActionKind, ChannelUri};

use crate::agent_action::notice;
use crate::background_task::BackgroundTask;
use crate::channels::Chat;
use crate::chats::{self, ForkSource, NewChat};
use crate::composed_message::ComposedMessage;
use crate::follow_up::FollowUp;
use crate::io::RestoreTask;
use crate::message::explain_missing_model;
use crate::state::{Kernel, Step};
use crate::submission::{CommandStep, HostAction, REWIND_ALONE, Submitted};
use crate::truncate;
use crate::turn::end::{end_turn, end_turn_in_error, stop_run};

/// What is left to do when the host has done its part: for the agent, or before that for who restores files.
#[derive(Debug, Default)]
pub(crate) struct TurnTask {
    /// The agent is to shorten its history first; the instructions for that.
    pub compact: Option<String>,
    /// Whether the message says something to the agent.
    pub reaches_model: bool,
    pub restore: Option<RestoreTask>,
}

/// Takes back what `/rewind` says, before the turn that says it begins.
pub(crate) fn rewind_first(
    step: &mut Step,
    uri: &ChannelUri,
    commands: Vec<CommandStep>,
) -> Vec<CommandStep> {
    let commands = commands.into_iter().flat_map(|command| match command {
        // Without a number the user is asked for one, in the turn.
        CommandStep::Do(action) if action.name == "/rewind" && !action.argv.is_empty() => {
            rewind(step, uri, &action).unwrap_or_else(|why| vec![CommandStep::Failed(why)])
        }
        command => vec![command],
    });
    commands.collect()
}

/// The user chose how many turns the active turn's command takes back; that turn goes with them. Returns the command as it is
/// then, and what is left to do of it; `None` if nothing was cut off.
pub(crate) fn rewind_chosen(
    step: &mut Step,
    uri: &ChannelUri,
    turns: usize,
) -> Option<(HostAction, Vec<CommandStep>)> {
    let asked = first_command(step, uri).and_then(|command| command.restore_task());
    if asked != Some(RestoreTask::ChooseTurns) {
        return None; // nobody was asked: it means nothing in this turn
    }
    let submitted = step.chat(uri).private().current_submission.as_ref();
    let has_more = submitted.is_some_and(|submitted| {
        submitted.commands.len() > 1 || submitted.reaches_model || submitted.compact.is_some()
    });
    if has_more {
        // Such a message is refused; this one began before that was so.
        stop_run(step, uri);
        fail_command(step, uri, REWIND_ALONE.to_owned());
        return None;
    }
    let argument = turns.to_string();
    let action =
        HostAction { name: "/rewind".to_owned(), raw: argument.clone(), argv: vec![argument] };
    match rewind(step, uri, &action) {
        Ok(left) => Some((action, left)),
        Err(why) => {
            stop_run(step, uri);
            fail_command(step, uri, why);
            None
        }
    }
}

/// Cuts turns off. Returns what is left to do: to say so, and to ask about their files if they may have changed any.
fn rewind(
    step: &mut Step,
    uri: &ChannelUri,
    action: &HostAction,
) -> Result<Vec<CommandStep>, String> {
    let wanted: usize = action
        .argv
        .first()
        .and_then(|word| word.parse().ok())
        .filter(|turns| *turns > 0)
        .ok_or("/rewind takes the number of turns to take back, at least 1")?;
    let chat = step.chat(uri);
    let there = chat.state().turns.len();
    if there == 0 {
        return Err("there is nothing to take back yet".to_owned());
    }
    if wanted >= there && chat.has_older() {
        let most = there - 1;
        return Err(format!("at most {most} turns can be taken back at once"));
    }
    let turns = wanted.min(there);
    let last = (there - turns).checked_sub(1);
    let kept = last.and_then(|index| {
        let turn = chat.state().turns.as_slice().get(index)?;
        Some((chat.number_at(index)?, turn.id.clone()))
    });
    let files = changed_files(chat, there - turns);
    let action = match &kept {
        Some((_, turn_id)) => Action::host(ActionKind::ChatTruncated, json!({"turnId": turn_id})),
        None => Action::host(ActionKind::ChatTruncated, json!({})),
    };
    let kept = kept.map(|(n, _)| {
        let mut page = chat.page_through(n);
        let page_turns = step.limits().page_turns as usize;
        let over = page.turns.len().saturating_sub(page_turns);
        page.older |= over > 0;
        page.turns.drain(..over);
        truncate::RemainingTurn { n, page: Some(page) }
    });
    truncate::cut_back(step, uri, action, None, kept);
    let words = match turns {
        1 => "One turn was taken back.".to_owned(),
        turns => format!("{turns} turns were taken back."),
    };
    let files = files.map(CommandStep::Restore);
    Ok([CommandStep::Done(words)].into_iter().chain(files).collect())
}

/// The files that the turns from an index on changed, if they may have changed any.
fn changed_files(chat: &Chat, first: usize) -> Option<RestoreTask> {
    let turns = chat.state().turns.as_slice().get(first..)?;
    let may_change =
        |turn: &&Arc<Turn>| may_hold(&turn.json, EDITS) || may_hold(&turn.json, "\"fileEdit\"");
    turns.iter().find(may_change)?;
    let through_n = chat.last_n()?;
    Some(RestoreTask::Rewind {
        turn_ids: turns.iter().map(|turn| turn.id.clone()).collect(),
        through_n,
        numbers: through_n.saturating_sub(chat.number_at(first)?) + 1,
    })
}

/// Does what the host has to do before an agent works on the active turn. Returns what is left for the agent; `None` if that
/// was all, if a command failed, or if one goes on later.
pub(crate) fn carry_out(step: &mut Step, uri: &ChannelUri) -> Option<TurnTask> {
    let turn_id = step.active_turn_id(uri)?;
    if step.chat(uri).private().current_submission.is_none() {
        // A turn from before messages had rows.
        return Some(TurnTask { reaches_model: true, ..TurnTask::default() });
    }
    let notices = with_submission(step, uri, |submitted| std::mem::take(&mut submitted.notices));
    if !notices.is_empty() {
        // As paragraphs: notices are Markdown, in which single newlines are none.
        notice(step, uri, &turn_id, &notices.join("\n\n"));
    }
    while let Some(command) = first_command(step, uri) {
        if let Some(restore) = command.restore_task() {
            return Some(TurnTask { restore: Some(restore), ..TurnTask::default() });
        }
        remove_first_command(step, uri);
        let done = match command {
            CommandStep::Done(words) => Ok(words),
            CommandStep::Failed(why) => Err(why),
            CommandStep::Restore(_) => unreachable!("files were looked for above"),
            CommandStep::Do(action) => match action.name.as_str() {
                "/branch" => {
                    branch(step, uri, action.raw);
                    return None;
                }
                "/compact" => {
                    with_submission(step, uri, |submitted| submitted.compact = Some(action.raw));
                    continue;
                }
                name => do_at_once(step, uri, name),
            },
        };
        match done {
            Ok(words) => notice(step, uri, &turn_id, &words),
            Err(why) => {
                fail_command(step, uri, why);
                return None;
            }
        }
    }
    // The submission stays until the turn is over: a turn that fails may be resumed.
    let submitted = step.chat(uri).private().current_submission.as_ref()?;
    let task = TurnTask {
        compact: submitted.compact.clone(),
        reaches_model: submitted.reaches_model,
        restore: None,
    };
    if task.compact.is_none() && !task.reaches_model {
        end_turn(step, uri, ActionKind::ChatTurnComplete, json!({"turnId": turn_id}));
        return None;
    }
    // Reported once: a client that resumes the turn has read it.
    match with_submission(step, uri, |submitted| submitted.missing_model.take()) {
        None => Some(task),
        Some(missing) => {
            stop_for_missing_model(step, uri, &missing);
            None
        }
    }
}

/// Does what can be done in this step; returns the report, or why it cannot be done.
fn do_at_once(step: &mut Step, uri: &ChannelUri, command: &str) -> Result<String, String> {
    match command {
        "/archive" => Ok(archive(step, uri)),
        "/help" => help(step, uri),
        "/retry-attachments" => Ok(forget_refusals(step, uri)),
        name => Err(describe_unknown(name)),
    }
}

/// The model of the chat is gone: nobody chose the one that would get the message in its place.
fn stop_for_missing_model(step: &mut Step, uri: &ChannelUri, missing: &str) {
    let provider = step.session_of(uri).state().provider.clone();
    let turn = step.chat(uri).state().active_turn.as_ref();
    let message = turn.map(|turn| turn.message.clone()).unwrap_or_default();
    let message = explain_missing_model(step, &provider, missing, &message);
    end_turn_in_error(
        step,
        uri,
        AgentError { error_type: "modelMissing".to_owned(), message, resumable: true },
    );
}

/// Why a command cannot be carried out.
fn describe_unknown(name: &str) -> String {
    match name {
        "/undo" | "/redo" => format!(
            "{name} takes nothing after it: it goes back or forth by one turn; send it again to go on"
        ),
        name => format!("this host does not know {name}"),
    }
}

fn first_command(kernel: &Kernel, uri: &ChannelUri) -> Option<CommandStep> {
    kernel.chat(uri).private().current_submission.as_ref()?.commands.first().cloned()
}

fn remove_first_command(step: &mut Step, uri: &ChannelUri) {
    with_submission(step, uri, |submitted| {
        let commands = std::mem::take(&mut submitted.commands).into_iter();
        submitted.commands = commands.skip(1).collect();
    });
}

/// The work on the active turn is complete: if it was to restore files, the turn goes on with what is left. Returns whether it
/// was. No agent works on a turn whose commands are not done, so whose work it was is known by the command.
pub(crate) fn end_restore(step: &mut Step, uri: &ChannelUri) -> bool {
    let restored = first_command(step, uri).and_then(|command| command.restore_task());
    if restored.is_none() {
        return false;
    }
    step.take_run(uri);
    remove_first_command(step, uri);
    step.follow_up(FollowUp::StartAgent { chat: uri.clone(), resume: None });
    true
}

/// Changes what is left to do of the active turn's message.
fn with_submission<T: Default>(
    step: &mut Step,
    uri: &ChannelUri,
    change: impl FnOnce(&mut Submitted) -> T,
) -> T {
    step.chat_mut(uri).submission_mut().map(change).unwrap_or_default()
}

/// What the active turn's message means, if it was just composed. Its agent gets it, and nobody else.
pub(crate) fn take_composed(step: &mut Step, uri: &ChannelUri) -> Option<Arc<ComposedMessage>> {
    with_submission(step, uri, |submitted| submitted.composed.take())
}

/// Ends the turn without an agent and holds the queue (C-054, G-08).
fn fail_command(step: &mut Step, uri: &ChannelUri, message: String) {
    step.chat_mut(uri).drop_submission();
    let failure = AgentError { error_type: "commandFailed".to_owned(), message, resumable: false };
    end_turn_in_error(step, uri, failure);
}

fn archive(step: &mut Step, uri: &ChannelUri) -> String {
    let session = step.chat(uri).session().clone();
    let fields = json!({"isArchived": true});
    step.act_as_host(&session, ActionKind::SessionIsArchivedChanged, fields);
    "This session is archived.".to_owned()
}

/// What a model refused is sent to it again (G-50).
fn forget_refusals(step: &mut Step, uri: &ChannelUri) -> String {
    if step.chat(uri).private().refusals.is_none() {
        return "The model has refused no attachment in this chat.".to_owned();
    }
    step.chat_mut(uri).set_refusals(None);
    "From the next message on the model gets the attachments themselves again.".to_owned()
}

fn help(step: &mut Step, uri: &ChannelUri) -> Result<String, String> {
    let help = with_submission(step, uri, |submitted| submitted.help.take());
    help.ok_or_else(|| "the list of commands is lost: ask again".to_owned())
}

/// Forks the chat where it stands. The new chat's URI must be free, also among chats that are not in memory (G-26).
fn branch(step: &mut Step, uri: &ChannelUri, title: String) {
    let name = format!("ahp-chat:/branch-{}", step.seq().0 + 1);
    try_branch(step, uri, title, &name);
}

/// Tries a URI for the branch of a chat.
pub(crate) fn try_branch(step: &mut Step, from: &ChannelUri, title: String, name: &str) {
    match ChannelUri::parse(name) {
        Ok(chat) => {
            let turn_id = step.active_turn_id(from).unwrap_or_default();
            step.start_task(BackgroundTask::Branch { chat, from: from.clone(), turn_id, title });
        }
        Err(error) => fail_command(step, from, error.to_string()),
    }
}

/// The URI is free, or nobody could say so.
pub(crate) fn finish_branch(
    step: &mut Step,
    from: &ChannelUri,
    turn_id: &str,
    found: Result<(ChannelUri, String), String>,
) {
    if step.active_turn_id(from).as_deref() != Some(turn_id) {
        return; // it was cancelled
    }
    let planned = found.and_then(|(chat, title)| {
        let mut new = plan_branch(step, from, &chat)?;
        let title = title.trim();
        if !title.is_empty() {
            let end = title.floor_char_boundary(step.limits().title_bytes_max);
            new.title = title[..end].to_owned();
        }
        Ok((chat, new))
    });
    match planned {
        Ok((chat, new)) => {
            let session = step.chat(from).session().clone();
            chats::create_chat(step, &session, new);
            step.touch_modified(&session);
            let words = format!("Created a branch of this chat: {chat}");
            notice(step, from, turn_id, &words);
            step.follow_up(FollowUp::StartAgent { chat: from.clone(), resume: None });
        }
        Err(why) => fail_command(step, from, why),
    }
}

fn plan_branch(kernel: &Kernel, from: &ChannelUri, uri: &ChannelUri) -> Result<NewChat, String> {
    let (chat, session) = (kernel.chat(from), kernel.session_of(from).state());
    let agent = kernel.find_agent(&session.provider);
    let forks =
        agent.is_some_and(|agent| agent.info["capabilities"]["multipleChats"]["fork"] == true);
    if !forks {
        return Err("this agent cannot branch a chat".to_owned());
    }
    let most = kernel.limits().chats_max;
    if session.chats.len() >= most {
        return Err(format!("a session has at most {most} chats"));
    }
    let (Some(n), Some(turn)) = (chat.last_n(), chat.state().turns.last()) else {
        return Err("there is nothing to branch from yet: no turn is complete".to_owned());
    };
    let origin = json!({"kind": "fork", "chat": from.as_str(), "turnId": turn.id});
    Ok(NewChat {
        uri: uri.clone(),
        title: chat.state().title.clone(),
        origin,
        interactivity: None,
        working_directories: chat.state().working_directories.clone(),
        source: Some(ForkSource {
            through: Some((kernel.id_of(from), n)),
            page: chat.page_through(n),
            visible: true,
            partial: None,
            host_like_turn_ids: chat.private().host_like_turn_ids.clone(),
            checkpoint: None,
            compacted: chat.private().compacted.clone(),
            refusals: chat.private().refusals.clone(),
            agent_notes: chat.private().agent_notes.clone(),
        }),
        brief: None,
        depth: 0,
        meta: None,
    })
}
