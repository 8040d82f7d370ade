//! Which connections are believed to reach the server.
//!
//! The way to a server, a tunnel for instance, can end without a word: what was sent into its connections is never answered, while
//! new ones work.
//!
//! Promises: once a connection gave no answer, none that is as old is used again; once a heartbeat gave none and one in a new
//! connection did, nobody waits any longer for an answer in those that were made before.
//! Must not know: what is asked, how long an answer may take.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

/// What is known of the connections of a node: each belongs to the generation in which it was made.
#[derive(Debug, Default)]
pub(super) struct ConnectionTrust {
    generation: AtomicU64,
    /// The last heartbeat was not answered.
    is_silent: AtomicBool,
    /// No answer is waited for in connections of earlier generations than this one.
    given_up: watch::Sender<u64>,
}

impl ConnectionTrust {
    /// That of a connection that is made now.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether a connection may be used again.
    pub(super) fn is_trusted(&self, generation: u64) -> bool {
        self.generation() == generation
    }

    /// A connection of this generation gave no answer in time.
    pub(super) fn note_silence(&self, generation: u64) {
        let next = generation + 1;
        // An error: somebody else has said so already.
        let _is_known =
            self.generation.compare_exchange(generation, next, Ordering::AcqRel, Ordering::Acquire);
    }

    /// A heartbeat was not answered in time.
    pub(super) fn note_silent_beat(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.is_silent.store(true, Ordering::Release);
    }

    /// A heartbeat was answered. If the one before was not, the server is there and the connections of before are not.
    pub(super) fn note_answered_beat(&self) {
        if self.is_silent.swap(false, Ordering::AcqRel) {
            tracing::warn!(
                "connections to the database gave no answer and a new one did: all are made anew"
            );
            self.given_up.send_replace(self.generation());
        }
    }

    /// Waits until no answer is to be expected in connections of a generation.
    pub(super) async fn wait_until_given_up(&self, generation: u64) {
        let mut given_up = self.given_up.subscribe();
        // The sender is this very value: it is there while anybody waits.
        let _open = given_up.wait_for(|below| generation < *below).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_what_was_made_before_the_silence_is_given_up() {
        let trust = ConnectionTrust::default();
        let old = trust.generation();
        trust.note_answered_beat();
        assert!(trust.is_trusted(old), "nothing was silent");
        trust.note_silence(old);
        let (newer, is_given_up) = (trust.generation(), |generation| {
            trust.wait_until_given_up(generation).now_or_never().is_some()
        });
        assert!(!trust.is_trusted(old) && trust.is_trusted(newer));
        trust.note_silence(old);
        assert!(trust.is_trusted(newer), "of those before it was known");
        trust.note_answered_beat();
        assert!(!is_given_up(old), "an answer may still come");
        trust.note_silent_beat();
        assert!(!is_given_up(newer), "the server may be slow");
        let newest = trust.generation();
        trust.note_answered_beat();
        assert!(is_given_up(old) && is_given_up(newer));
        assert!(trust.is_trusted(newest) && !is_given_up(newest));
    }
}
