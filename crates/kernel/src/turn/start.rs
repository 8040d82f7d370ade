//! The start of a turn: by a client's action, from the queue, or resumed. An agent gets to work on it when the session is
//! ready (G-09).

use wire::reduce::Reduced;
use wire::{Action, ChannelUri};

use crate::author::Author;
use crate::follow_up::FollowUp;
use crate::host_command;
use crate::question;
use crate::record::Record;
use crate::record_message::record_message;
use crate::state::{Kernel, Sender, Step};
use crate::submission::{Submission, Submitted};

/// A client starts a turn that it may start.
pub(crate) fn start_turn(
    step: &mut Step,
    uri: &ChannelUri,
    action: Action,
    submission: Submission,
    sender: &Sender,
) {
    let commands = host_command::rewind_first(step, uri, submission.command_steps());
    if step.act(uri, action, Some(sender)) == Reduced::Unchanged {
        return; // the sender was answered
    }
    let seq = step.seq();
    step.chat_mut(uri).note_host_like_id(seq.0);
    let turn_id = step.active_turn_id(uri);
    let mut submitted = record_message(step, uri, submission, turn_id);
    submitted.commands = commands;
    let author = Some(author_of(step, sender));
    begin_turn(step, uri, author, submitted);
}

/// What follows when a turn became active, whatever started it.
pub(crate) fn begin_turn(
    step: &mut Step,
    uri: &ChannelUri,
    author: Option<Author>,
    submitted: Submitted,
) {
    debug_assert!(step.active_turn_id(uri).is_some(), "whoever begins a turn made it active");
    let now = step.now();
    step.chat_mut(uri).begin_turn(now, author, submitted);
    let session = step.chat(uri).session().clone();
    step.session_mut(&session).set_had_turn();
    step.mark_unread(&session);
    step.touch_modified(&session);
    step.follow_up(FollowUp::StartAgent { chat: uri.clone(), resume: None });
}

/// Who sent an action.
pub(crate) fn author_of(kernel: &Kernel, sender: &Sender) -> Author {
    Author {
        client_id: sender.origin.client_id.clone(),
        principal: kernel.peers().principal(sender.peer),
    }
}

/// A client resumes the latest turn.
pub(crate) fn resume_turn(step: &mut Step, uri: &ChannelUri, action: Action, sender: &Sender) {
    let turn_id = action.text("turnId").unwrap_or("").to_owned();
    if step.act(uri, action, Some(sender)) == Reduced::Unchanged {
        return; // the sender was answered
    }
    let (seq, id) = (step.seq(), step.id_of(uri));
    let checkpoint = step.chat(uri).checkpoint_of(&turn_id).cloned();
    let author = author_of(step, sender);
    let hidden = step.chat_mut(uri).resume_turn(seq, author);
    if let Some(from_n) = hidden {
        step.record(Record::HideTurns { chat: id, from_n, at: seq });
    }
    question::close_open_questions(step, uri);
    let session = step.chat(uri).session().clone();
    step.mark_unread(&session);
    step.touch_modified(&session);
    step.follow_up(FollowUp::StartAgent { chat: uri.clone(), resume: Some(checkpoint) });
}
