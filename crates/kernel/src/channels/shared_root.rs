//! One root state for kernels whose roots are the same: it names all agents and the sections of their prompts, and a process may
//! have thousands of kernels at rest.

use std::sync::Arc;

use wire::state::RootState;

use super::Channels;

/// Roots that kernels are compared with.
const SHARED_ROOTS_MAX: usize = 16;

impl Channels {
    /// Has the root in common with others while it is the same. Nobody is kept from changing theirs.
    pub(crate) fn share_root(&mut self, known: &mut Vec<Arc<RootState>>) {
        // What nobody has any more but this list.
        known.retain(|root| Arc::strong_count(root) > 1);
        match known.iter().find(|known| **known == self.root) {
            Some(same) => self.root = Arc::clone(same),
            None if known.len() < SHARED_ROOTS_MAX => known.push(Arc::clone(&self.root)),
            None => {} // more kinds than are worth a comparison
        }
        debug_assert!(known.len() <= SHARED_ROOTS_MAX, "the list has a bound");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::{Action, ActionKind, ChannelUri, Timestamp};

    use super::*;
    use crate::channels::Enablement;
    use crate::limits::Limits;
    use crate::record::Seq;

    fn channels(agents: usize) -> Channels {
        let agents = vec![json!({"provider": "p"}); agents];
        let root = RootState::from_value(json!({"agents": agents})).unwrap();
        Channels::new(root, Enablement::default(), &Limits::default())
    }

    #[test]
    fn equal_roots_are_one_until_one_of_them_changes() {
        let mut known = Vec::new();
        let (mut one, mut same, mut other) = (channels(1), channels(1), channels(2));
        for channels in [&mut one, &mut same, &mut other] {
            channels.share_root(&mut known);
        }
        assert!(Arc::ptr_eq(&one.root, &same.root));
        assert!(!Arc::ptr_eq(&one.root, &other.root));
        let action = Action::host(ActionKind::RootAgentsChanged, json!({"agents": []}));
        one.reduce_root(&action);
        assert_eq!(one.root().agents.len(), 0);
        assert_eq!(same.root().agents.len(), 1, "it is nobody else's change");
        drop((one, same, other));
        channels(3).share_root(&mut known);
        assert_eq!(known.len(), 1, "what nobody has is forgotten");
    }

    /// Whoever looked at nothing else leaves it behind: it must be a reason to look for what nobody uses.
    #[test]
    fn a_snapshot_of_the_root_does_not_stay_in_memory() {
        let mut channels = channels(1);
        assert!(channels.is_only_root());
        let root = ChannelUri::parse("ahp-root://").unwrap();
        let shown = channels.snapshot(&root, None, 0, Seq(3), Timestamp(0));
        assert!(shown.is_some() && !channels.is_only_root());
        channels.unload_idle(Timestamp(0), 60_000, |_| true);
        assert!(channels.is_only_root());
    }
}
