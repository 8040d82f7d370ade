//! When one step can never be written, whatever the state of the disk: it alone fails, and what rests on it (ADR 0030).
//!
//! Promises: the other steps of the batch stand, and so do the turns of other sessions; every message of a step that fails is
//! answered; a task that fails by itself is not repeated for ever.
//! Must not know: why a record cannot be written.

use std::collections::BTreeSet;

use wire::ChannelUri;

use super::rollback::stands_unrecorded;
use super::{Kernel, Step};
use crate::background_task::BackgroundTask;
use crate::channels::Run;
use crate::io::{Effect, FailureReply, Output, PeerId, Timer};
use crate::record::{Record, Seq};
use crate::recovery::{RESTS_ON_UNRECORDED, unrecordable_reason};

/// What one step may leave to another.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Dependency {
    /// The root, or a session with its chats.
    Channel(ChannelUri),
    Subscription(PeerId, ChannelUri),
    Connection(PeerId),
}

impl Kernel {
    /// Takes back the steps that cannot be written because a record of one of them cannot: the step at `index` among all since
    /// the last commit, and those after it that rest on it. Their outputs are replaced by what is sent and done instead; the
    /// others are to be written again without them. Returns a step to be finished, which goes with the first that failed.
    pub(crate) fn take_back(
        &mut self,
        outputs: &mut [Output],
        index: usize,
        why: &str,
    ) -> Step<'_> {
        debug_assert!(
            self.unwritable().is_none(),
            "while nothing can be recorded nothing is tried to be"
        );
        debug_assert_eq!(outputs.len(), self.uncommitted, "all steps since the last commit");
        let failed = self.find_failed(outputs, index);
        self.remove_from_log(outputs, &failed);
        let evicted = self.channels.undo_steps(&failed);
        let dismissed = self.peers.undo_steps(&failed);
        let peers = &self.peers;
        self.active_clients.undo_steps(&failed, |client_id| peers.is_connected(client_id));
        for (_, run) in &evicted {
            if let Some(run) = run {
                self.runs.end(run.id());
            }
        }
        let (peers, runs) = (&self.peers, &self.runs);
        self.requests
            .end_orphaned(|peer| peers.ready(peer).is_some(), |run| runs.chat_of(run).is_some());
        self.queries.outdate();
        self.replays.clear();
        for output in &mut *outputs {
            forget_recipients(output, &dismissed);
        }
        let done = self.recovery.take_done(&failed);
        self.number_step(index);
        for step in failed.iter().filter(|step| **step != index) {
            if let Some(output) = outputs.get_mut(*step) {
                *output = self.answer_instead(std::mem::take(output), RESTS_ON_UNRECORDED);
            }
        }
        let reason = unrecordable_reason(why);
        let own = outputs.get_mut(index).map(std::mem::take);
        let own = self.answer_instead(own.unwrap_or_default(), &reason);
        let mut step = Step::new(self);
        step.out = own;
        step.go_on_without(evicted, done, index, &reason);
        step
    }

    /// A client's record that travelled with a step cannot be written: the step goes on without it.
    pub(crate) fn drop_deferred(&mut self, output: &mut Output, record: usize) {
        output.deferred -= 1;
        if let Record::Client(crate::record::ClientRecord { client_id, .. })
        | Record::ClientGone { client_id } = output.records.remove(record)
        {
            self.peers.mark_stale_record(&client_id);
        }
    }

    /// The step that cannot be written, and every later one that shows or changes what it changed.
    fn find_failed(&self, outputs: &[Output], index: usize) -> BTreeSet<usize> {
        let mut written: Vec<BTreeSet<Dependency>> =
            outputs.iter().map(|_| BTreeSet::new()).collect();
        let mut used: Vec<BTreeSet<Dependency>> = outputs.iter().map(|_| BTreeSet::new()).collect();
        let add = |steps: &mut Vec<BTreeSet<Dependency>>, step: usize, shared: Dependency| {
            if let Some(of_step) = steps.get_mut(step) {
                of_step.insert(shared);
            }
        };
        for (group, step) in self.channels.changes() {
            add(&mut written, step, Dependency::Channel(group));
        }
        for (peer, uri, step) in self.peers.changed_subscriptions() {
            let group = self.channels.group_of(uri);
            add(&mut used, step, Dependency::Channel(group));
            add(&mut written, step, Dependency::Subscription(peer, uri.clone()));
        }
        let admitted = self.peers.newly_admitted();
        for (step, peer) in admitted {
            add(&mut written, *step, Dependency::Connection(*peer));
        }
        for (step, output) in outputs.iter().enumerate() {
            for reply in &output.failure_replies {
                let peer = match reply {
                    FailureReply::Answer { peer, .. } => peer,
                    FailureReply::Refusal { peer, channel, .. } => {
                        let group = self.channels.group_of(channel);
                        add(&mut used, step, Dependency::Channel(group));
                        peer
                    }
                };
                add(&mut used, step, Dependency::Connection(*peer));
            }
        }
        let mut failed = BTreeSet::from([index]);
        let mut lost: BTreeSet<Dependency> = BTreeSet::new();
        for (step, (written, used)) in written.into_iter().zip(used).enumerate().skip(index) {
            let rests_on_lost = written.iter().chain(&used).any(|key| lost.contains(key));
            if step == index || rests_on_lost {
                failed.insert(step);
                lost.extend(written);
            }
        }
        failed
    }

    fn remove_from_log(&mut self, outputs: &[Output], failed: &BTreeSet<usize>) {
        let ends = outputs.iter().map(|output| output.seq);
        let starts = std::iter::once(self.log.committed()).chain(ends.clone());
        let ranges: Vec<(Seq, Seq)> = starts
            .zip(ends)
            .enumerate()
            .filter(|(step, _)| failed.contains(step))
            .map(|(_, range)| range)
            .collect();
        self.log.remove(|seq| {
            let within = |(start, end): &(Seq, Seq)| *start < seq && seq <= *end;
            ranges.iter().any(within)
        });
        let trims = |step: &usize| {
            let mut records =
                outputs.get(*step).map(|output| output.records.iter()).into_iter().flatten();
            records.any(|record| matches!(record, Record::Trim { .. }))
        };
        if failed.iter().any(trims) {
            self.log.undo_trim();
        }
    }

    /// What is said and done instead of a step that was taken back. It still has its place, and the seq it ended at. Should the
    /// rest of the batch fail too, its messages are answered with the seq of then.
    fn answer_instead(&mut self, output: Output, reason: &str) -> Output {
        let mut step = Step::new(self);
        for reply in &output.failure_replies {
            step.reply_unrecorded(reply.clone(), reason);
        }
        step.out.failure_replies = output.failure_replies;
        let effects = output.effects.into_iter();
        step.out.effects.extend(effects.filter(stands_unrecorded));
        let mut out = step.out;
        out.seq = output.seq;
        out
    }
}

impl Step<'_> {
    /// Stops the agents whose chats left memory, ends their turns, and repeats tasks that failed because of another step.
    fn go_on_without(
        &mut self,
        evicted: Vec<(ChannelUri, Option<Run>)>,
        done: Vec<(usize, BackgroundTask)>,
        index: usize,
        why: &str,
    ) {
        let (mut gave_up, mut closing) = (BTreeSet::new(), BTreeSet::new());
        for (step, task) in done {
            if step != index {
                self.start_task(task);
                continue;
            }
            // Whether it was this one's fault is seen when it is done alone.
            let channel = task.channel().clone();
            let closes = matches!(task, BackgroundTask::CloseInterruptedTurn(_));
            if self.recovery_mut().try_again(task) {
                closing.extend(closes.then_some(channel));
                self.wake_in(Timer::Postponed, 0);
            } else {
                gave_up.insert(channel);
            }
        }
        for (chat, run) in evicted {
            if let Some(run) = &run {
                self.effect(Effect::StopTurn { run: run.id() });
            }
            // Its turn may be open in the journal; of a session this means nothing and does no harm.
            if !gave_up.contains(&chat) && !closing.contains(&chat) {
                if run.is_some() {
                    self.recovery_mut().add_unrecorded(chat.clone(), why.to_owned());
                }
                self.start_task(BackgroundTask::CloseInterruptedTurn(chat));
            }
        }
    }
}

/// Removes recipients that are not admitted any more.
fn forget_recipients(output: &mut Output, dismissed: &[PeerId]) {
    if dismissed.is_empty() {
        return; // as always, but for the step that could not be written and admitted somebody
    }
    let frames = std::mem::take(&mut output.frames).into_iter();
    let left = frames.filter_map(|mut outgoing| {
        outgoing.recipients = outgoing.recipients.without(dismissed)?;
        Some(outgoing)
    });
    output.frames = left.collect();
}
