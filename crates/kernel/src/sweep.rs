//! Housekeeping: empty sessions, old actions, clients that never came back, bodies that nothing refers to (G-20, G-28).

use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::clients::record_client;
use crate::io::{Effect, ReadFailed};
use crate::queries::Waiter;
use crate::record::{Answer, Query, Record, Seq};
use crate::state::{Kernel, Step};

/// At most this many seqs are forgotten in one step: trimming must not stall everyone.
const TRIM_STEP: u64 = 10_000;
/// At most this many empty sessions are looked at in one sweep.
const EMPTY_STEP: u32 = 512;

/// Sweeps once. Nothing is swept while nothing can be written.
pub(crate) fn sweep(step: &mut Step) {
    if step.unwritable().is_some() {
        return;
    }
    trim(step);
    let written = step.upkeep_mut().take_unswept();
    if let Some(buckets) = step.upkeep_mut().next_buckets(written) {
        let before = step.seconds_ago(step.limits().blob_grace_s);
        step.effect(Effect::Collect { buckets, before });
    }
    if written {
        let limits = step.limits();
        let record = Record::Sweep {
            disposed_before: step.seconds_ago(limits.retention_disposed_s),
            clients_before: step.seconds_ago(limits.client_ttl_s),
            clients_max: limits.clients_max,
        };
        step.peers_mut().forget_remembered();
        record_connected_clients(step);
        step.record(record);
    }
    let created_before = step.seconds_ago(step.limits().empty_session_ttl_s);
    let query = Query::EmptySessions {
        created_before,
        limit: EMPTY_STEP,
    };
    step.ask(query, Waiter::Sweep);
}

/// Whoever is connected is seen, often enough not to be forgotten.
fn record_connected_clients(step: &mut Step) {
    let quarter_ttl_ms = step.limits().client_ttl_s.saturating_mul(250);
    if step.now() < step.upkeep().clients_seen().plus_ms(quarter_ttl_ms) {
        return; // they were recorded not long ago
    }
    let now = step.now();
    step.upkeep_mut().set_clients_seen(now);
    let connected = step.peers().all_ready();
    for ready in connected.iter().filter(|ready| !ready.volatile) {
        record_client(step, ready);
    }
}

/// Whether enough actions are older than what is kept: trimming looks at every channel, so not for a few.
pub(crate) fn is_log_long(kernel: &Kernel) -> bool {
    let enough = TRIM_STEP.min(kernel.limits().retention_actions / 10).max(1);
    oldest_kept(kernel) >= kernel.log().floor().0.saturating_add(enough)
}

fn oldest_kept(kernel: &Kernel) -> u64 {
    kernel
        .seq()
        .0
        .saturating_sub(kernel.limits().retention_actions)
}

/// Old actions go. A turn that is running gets its head written first: what was streamed must not be lost.
fn trim(step: &mut Step) {
    if !is_log_long(step) {
        return; // not worth it yet
    }
    let through = oldest_kept(step).min(step.log().floor().0 + TRIM_STEP);
    let running: Vec<ChannelUri> = step.runs().chats().cloned().collect();
    for chat in running {
        step.mark_head(&chat);
    }
    step.trim_log(Seq(through));
}

/// The journal knows which sessions may be empty.
pub(crate) fn finish(step: &mut Step, answer: Option<&Result<Answer, ReadFailed>>) {
    // What could not be read is asked again by the next sweep.
    if let Some(Ok(Answer::EmptySessions(sessions))) = answer {
        for session in sessions {
            step.start_task(BackgroundTask::DisposeIfEmpty(session.clone()));
        }
    }
}
