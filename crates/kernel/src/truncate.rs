//! Truncation: what comes after a turn is forgotten by everyone, the agent included (H-237, H-239, H-240, G-18).

use wire::reduce::Reduced;
use wire::{Action, ChannelUri};

use crate::follow_up::FollowUp;
use crate::io::PeerId;
use crate::journal_query::{Answer, Query, TurnPage};
use crate::message::find_turn;
use crate::pause::{HandlerAnswers, Load};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::state::{Kernel, Sender, Step};
use crate::steering::queue_leftover;
use crate::turn::end::stop_run;
use crate::turn_pages::send_before_cut;

/// The turn that stays last, and the page that ends with it if someone lacks it.
#[derive(Debug, Clone)]
pub(crate) struct RemainingTurn {
    pub n: u64,
    pub page: Option<TurnPage>,
}

/// The turn that a client's truncate keeps; none if it cuts everything off. A refusal if it names no completed turn.
pub(crate) fn gather_cut(
    kernel: &Kernel,
    uri: &ChannelUri,
    action: &Action,
    answers: &HandlerAnswers,
) -> Load<Result<Option<RemainingTurn>, Refusal>> {
    let unknown = || Refusal::because("`turnId` names no completed turn of this chat");
    let Some(turn_id) = action.present("turnId") else { return Ok(Ok(None)) };
    let turn_id = turn_id.as_str().unwrap_or("");
    let Some(n) = find_turn(kernel, uri, turn_id, answers)? else { return Ok(Err(unknown())) };
    let Some(query) = page_ending_at(kernel, uri, n) else {
        return Ok(Ok(Some(RemainingTurn { n, page: None })));
    };
    match answers.read(query)? {
        // A page from before another cut does not end where this one should.
        Answer::Turns(page) if page.turns.last().is_some_and(|last| last.n == n) => {
            let page = Some(page.clone());
            Ok(Ok(Some(RemainingTurn { n, page })))
        }
        _ => Ok(Err(unknown())),
    }
}

/// The question for the page that ends with turn `n`, if someone lacks it: memory, or a connection's window.
fn page_ending_at(kernel: &Kernel, uri: &ChannelUri, n: u64) -> Option<Query> {
    let lacking = kernel.chat(uri).first_n() > n || !watchers_above(kernel, uri, n).is_empty();
    lacking.then_some(Query::Turns {
        chat: kernel.id_of(uri),
        before_n: n + 1,
        turns_max: kernel.limits().page_turns,
        bytes_max: kernel.limits().page_bytes as u64,
    })
}

/// Connections whose window begins after turn `n`.
fn watchers_above(kernel: &Kernel, uri: &ChannelUri, n: u64) -> Vec<PeerId> {
    let peers = kernel.peers();
    let lacks = |peer: &PeerId| {
        let subscription = peers.subscription(*peer, uri);
        subscription.is_some_and(|sent| sent.oldest_n.is_some_and(|oldest| oldest > n))
    };
    peers.watchers(uri).iter().map(|watcher| watcher.peer).filter(lacks).collect()
}

/// Cuts everything off after the turn that is kept, or everything.
pub(crate) fn cut_back(
    step: &mut Step,
    uri: &ChannelUri,
    action: Action,
    sender: Option<&Sender>,
    kept: Option<RemainingTurn>,
) {
    let kept_n = kept.as_ref().map(|kept| kept.n);
    if let Some(RemainingTurn { n, page: Some(page) }) = kept {
        for peer in watchers_above(step, uri, n) {
            send_before_cut(step, peer, uri, &page);
        }
        if step.chat(uri).first_n() > n {
            step.chat_mut(uri).prepend_before_cut(n, page);
        }
    }
    let active = step.chat(uri).state().active_turn.as_ref().map(|turn| turn.as_if_cancelled());
    if step.act(uri, action, sender) == Reduced::Unchanged {
        return; // nothing came after that turn; the sender was answered
    }
    stop_run(step, uri);
    step.follow_up(FollowUp::FailWorkerCall {
        chat: uri.clone(),
        why: "the worker's turn was cut off",
    });
    let (at, id) = (step.seq(), step.id_of(uri));
    let cut = step.chat_mut(uri).truncate(at, kept_n, active);
    debug_assert_eq!(step.chat(uri).last_n(), kept_n, "the turn that is kept is the last one");
    if let Some((n, turn)) = cut.active {
        step.record(Record::Turn { chat: id, n, turn });
        queue_leftover(step, uri); // it was meant for the turn that is gone
    }
    if cut.hides {
        let from_n = kept_n.map_or(0, |n| n + 1);
        step.record(Record::HideTurns { chat: id, from_n, at });
    }
    if let Some(turn_id) = cut.checkpoint_turn {
        step.record(Record::Checkpoint { chat: id, turn_id, data: None });
    }
    let session = step.chat(uri).session().clone();
    step.touch_modified(&session);
}

#[cfg(test)]
#[path = "truncate_tests.rs"]
mod tests;
