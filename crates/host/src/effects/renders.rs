//! Records renders of system prompts for the operator, and logs them by their hashes.
//!
//! Promises: what a section says is in neither the log nor any state.

use kernel::{Record, Rendered};
use sha2::{Digest as _, Sha256};
use tracing::Level;
use wire::ChannelUri;

use crate::journal::JournalHandle;

/// How much of a hash is logged: enough to see whether two texts are the same.
const HASH_BYTES: usize = 8;

/// Records a render for `inspect` (G-37) and logs it.
pub(super) fn record(journal: &JournalHandle, session: &ChannelUri, rendered: Box<Rendered>) {
    if tracing::enabled!(Level::DEBUG) {
        log(session, &rendered);
    }
    journal.note(Record::Render(rendered));
}

fn log(session: &ChannelUri, rendered: &Rendered) {
    let outcome = rendered.transform.outcome_name();
    let Some(asked) = rendered.transform.attempt() else {
        return tracing::debug!(%session, outcome, "a system prompt was rendered");
    };
    let sections: Vec<String> = asked.sections.iter().map(|id| hashes_of(rendered, id)).collect();
    tracing::debug!(
        %session,
        client = asked.client_id,
        method = asked.method,
        sections = sections.join(" "),
        outcome,
        ms = asked.ms,
        "a system prompt was rendered; a client was asked to rewrite sections"
    );
}

/// `tone:0123456789abcdef>fedcba9876543210`: a section before and after.
fn hashes_of(rendered: &Rendered, id: &str) -> String {
    let mut sections = rendered.before.iter();
    let before = sections.find(|section| section.id == id).map_or("", |section| &*section.content);
    let after = rendered.rewritten.get(id).map_or(before, String::as_str);
    format!("{id}:{}>{}", hash(before), hash(after))
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
