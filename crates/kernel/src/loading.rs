//! The journal's answers: what was read comes into memory, then everyone goes on who waited for it.

use crate::background_task::BackgroundTask;
use crate::changesets;
use crate::follow_up::FollowUp;
use crate::io::{Effect, ReadFailed, Ticket};
use crate::journal_query::{Answer, Query, StoredChannel};
use crate::plain;
use crate::queries::{AnswerMatch, Waiter};
use crate::state::Step;
use crate::sweep;

/// The journal answered a question, or could not.
pub(crate) fn finish_read(step: &mut Step, ticket: Ticket, answer: Result<Answer, ReadFailed>) {
    let (query, waiters) = match step.take_answered(ticket) {
        AnswerMatch::Unknown => return, // answered before
        AnswerMatch::Stale(query) => return step.effect(Effect::Read { ticket, query }),
        AnswerMatch::For(query, waiters) => (query, waiters),
    };
    let answer = take_in(step, &query, answer);
    for waiter in waiters {
        match waiter {
            Waiter::Peer(peer) => {
                step.peers_mut().answer_read(peer, ticket, &query, answer.as_ref());
                step.follow_up(FollowUp::ResumePeer(peer));
            }
            Waiter::Task(task) => {
                let answer = answer.clone().map(|answer| (query.clone(), answer));
                step.follow_up(FollowUp::Task { task, answer });
            }
            Waiter::Sweep => sweep::finish(step, answer.as_ref()),
        }
    }
}

/// Puts what was read into memory. What is found there from now on needs no answer: then nothing is returned.
fn take_in(
    step: &mut Step,
    query: &Query,
    answer: Result<Answer, ReadFailed>,
) -> Option<Result<Answer, ReadFailed>> {
    match (query, answer) {
        (Query::Channel { .. }, Ok(Answer::Channel(Some(stored)))) => {
            if is_disposed(step, &stored) {
                return Some(Ok(Answer::Channel(None)));
            }
            match step.install(*stored) {
                Ok(installed) => {
                    close_interrupted_turns(step, installed);
                    step.make_room();
                    None
                }
                Err(damaged) => Some(Err(ReadFailed(damaged.to_string()))),
            }
        }
        (Query::Channel { uri, .. }, Ok(Answer::Channel(None))) => {
            let created = match plain::create_annotations(step, uri) {
                Ok(false) => changesets::create_on_demand(step, uri),
                other => other,
            };
            match created {
                Ok(true) => None,
                Ok(false) => Some(Ok(Answer::Channel(None))),
                Err(failed) => Some(Err(failed)),
            }
        }
        (Query::Turns { chat, before_n, .. }, Ok(Answer::Turns(page))) => {
            step.prepend_turns(*chat, *before_n, page.clone());
            Some(Ok(Answer::Turns(page)))
        }
        (_, answer) => Some(answer),
    }
}

/// Whether a channel, or its session, was disposed of since it was read.
fn is_disposed(step: &Step, stored: &StoredChannel) -> bool {
    let channels = step.channels();
    let parent = stored.parent.as_ref();
    parent.is_some_and(|session| channels.is_disposed(session.id))
        || channels.is_disposed(stored.id)
}

/// A chat that comes into memory with an active turn has no agent: the turn is closed before anybody sees the chat (H-090).
fn close_interrupted_turns(step: &mut Step, installed: Vec<wire::ChannelUri>) {
    for uri in installed {
        let chat = step.find_chat(&uri);
        debug_assert!(
            chat.is_none_or(|chat| chat.run().is_none()),
            "no agent works on a chat that was not in memory"
        );
        if chat.is_some_and(|chat| chat.state().active_turn.is_some()) {
            step.recovery_mut().add_interrupted(uri.clone());
            step.start_task(BackgroundTask::CloseInterruptedTurn(uri));
        }
    }
}
