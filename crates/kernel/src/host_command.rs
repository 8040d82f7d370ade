//! Commands that the host carries out itself, before or instead of an agent's work on the turn (C-040, C-053, C-054).
//!
//! They are done in the order they stand in. What is taken back is taken back before the turn of the command begins, so
//! that the turn stays as the record of it; everything else is done once the session takes turns. A command that fails
//! ends the turn in an error, and no agent hears of it.

use agent_api::AgentError;
use serde_json::json;
use wire::{Action, ActionKind, ChannelUri};

use crate::agent_action::notice;
use crate::background_task::BackgroundTask;
use crate::chats::{self, ForkSource, NewChat};
use crate::follow_up::FollowUp;
use crate::state::{Kernel, Step};
use crate::submission::{CommandStep, HostAction};
use crate::truncate;
use crate::turn::end::{end_turn, end_turn_in_error};

/// Turns that `/rewind` takes back if it says no number.
const REWIND_TURNS: usize = 1;

/// What is left for the agent when the host has done its part.
pub(crate) struct AgentTask {
    /// The agent is to remember less first; what was said with that.
    pub compact: Option<String>,
    /// Whether the message says something to the agent.
    pub reaches_model: bool,
}

/// Takes back what `/rewind` says, before the turn that says it begins.
pub(crate) fn rewind_first(
    step: &mut Step,
    uri: &ChannelUri,
    commands: Vec<CommandStep>,
) -> Vec<CommandStep> {
    let commands = commands.into_iter().map(|command| match command {
        CommandStep::Do(action) if action.name == "/rewind" => match rewind(step, uri, &action) {
            Ok(words) => CommandStep::Done(words),
            Err(why) => CommandStep::Failed(why),
        },
        command => command,
    });
    commands.collect()
}

fn rewind(step: &mut Step, uri: &ChannelUri, action: &HostAction) -> Result<String, String> {
    let wanted = match action.argv.first() {
        None => REWIND_TURNS,
        Some(word) => word
            .parse()
            .ok()
            .filter(|turns| *turns > 0)
            .ok_or("/rewind takes the number of turns to take back, at least 1")?,
    };
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
        truncate::KeptTurn {
            n,
            page: Some(page),
        }
    });
    truncate::cut_back(step, uri, action, None, kept);
    Ok(match turns {
        1 => "One turn was taken back.".to_owned(),
        turns => format!("{turns} turns were taken back."),
    })
}

/// Does what the host has to do before an agent works on the active turn. Returns what is left for the agent; `None` if that
/// was all, if a command failed, or if one goes on later.
pub(crate) fn carry_out(step: &mut Step, uri: &ChannelUri) -> Option<AgentTask> {
    let turn_id = step.active_turn_id(uri)?;
    if step.chat(uri).private().current_submission.is_none() {
        // A turn from before messages had rows.
        return Some(AgentTask {
            compact: None,
            reaches_model: true,
        });
    }
    let notices = with_submission(step, uri, |submitted| {
        std::mem::take(&mut submitted.notices)
    });
    if !notices.is_empty() {
        // As paragraphs: notices are Markdown, in which single newlines are none.
        notice(step, uri, &turn_id, &notices.join("\n\n"));
    }
    while let Some(command) = next_command(step, uri) {
        let done = match command {
            CommandStep::Done(words) => Ok(words),
            CommandStep::Failed(why) => Err(why),
            CommandStep::Do(action) => match action.name.as_str() {
                "/branch" => {
                    branch(step, uri, action.raw);
                    return None;
                }
                "/compact" => {
                    with_submission(step, uri, |submitted| submitted.compact = Some(action.raw));
                    continue;
                }
                "/archive" => Ok(archive(step, uri)),
                "/help" => help(step, uri),
                "/retry-attachments" => Ok(forget_refusals(step, uri)),
                name => Err(format!("this host does not know {name}")),
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
    let task = AgentTask {
        compact: submitted.compact.clone(),
        reaches_model: submitted.reaches_model,
    };
    if task.compact.is_none() && !task.reaches_model {
        end_turn(
            step,
            uri,
            ActionKind::ChatTurnComplete,
            json!({"turnId": turn_id}),
        );
        return None;
    }
    Some(task)
}

fn next_command(step: &mut Step, uri: &ChannelUri) -> Option<CommandStep> {
    with_submission(step, uri, |submitted| {
        let mut commands = std::mem::take(&mut submitted.commands).into_iter();
        let next = commands.next();
        submitted.commands = commands.collect();
        next
    })
}

/// Changes what is left to do of the active turn's message.
fn with_submission<T: Default>(
    step: &mut Step,
    uri: &ChannelUri,
    change: impl FnOnce(&mut crate::submission::Submitted) -> T,
) -> T {
    let private = step.chat_mut(uri).private_mut();
    private
        .current_submission
        .as_mut()
        .map(change)
        .unwrap_or_default()
}

/// The turn ends, no agent hears of it, and the queue is held (C-054, G-08).
fn fail_command(step: &mut Step, uri: &ChannelUri, message: String) {
    step.chat_mut(uri).private_mut().current_submission = None;
    let failure = AgentError {
        error_type: "commandFailed".to_owned(),
        message,
        resumable: false,
    };
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
    step.chat_mut(uri).private_mut().refusals = None;
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
            step.start_task(BackgroundTask::Branch {
                chat,
                from: from.clone(),
                turn_id,
                title,
            });
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
            let words = format!("This chat goes on in a branch, too: {chat}");
            notice(step, from, turn_id, &words);
            step.follow_up(FollowUp::StartAgent {
                chat: from.clone(),
                resume: None,
            });
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
        }),
        brief: None,
        depth: 0,
    })
}
