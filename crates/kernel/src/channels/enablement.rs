//! What users switched on and off for all sessions, or for all in one directory (CU-5). Decisions for one session lie with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Decisions that are remembered: more than anybody makes by hand.
pub(crate) const DECISIONS_MAX: usize = 4_096;

/// Decisions by the ids of customizations, which are the same in every session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Enablement {
    global: BTreeMap<String, bool>,
    /// By the `file:` URI of a session's first working directory.
    workspace: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Enablement {
    pub(crate) fn global(&self, id: &str) -> Option<bool> {
        self.global.get(id).copied()
    }

    pub(crate) fn workspace(&self, directory: &str, id: &str) -> Option<bool> {
        self.workspace.get(directory)?.get(id).copied()
    }

    /// Everything that was decided for all sessions.
    pub(crate) fn global_decisions(&self) -> impl Iterator<Item = (&str, bool)> {
        pairs(&self.global)
    }

    /// Everything that was decided for the sessions of a directory.
    pub(crate) fn workspace_decisions(
        &self,
        directory: &str,
    ) -> impl Iterator<Item = (&str, bool)> {
        self.workspace.get(directory).into_iter().flat_map(pairs)
    }

    /// Whether it can be remembered: what takes no more room than what it replaces always can.
    pub(crate) fn has_room_for(
        &self,
        id: &str,
        global: Option<bool>,
        workspace: Option<(&str, Option<bool>)>,
    ) -> bool {
        let before = usize::from(self.global(id).is_some())
            + workspace
                .map_or(0, |(directory, _)| usize::from(self.workspace(directory, id).is_some()));
        let after = usize::from(global.is_some())
            + workspace.map_or(0, |(_, decision)| usize::from(decision.is_some()));
        let workspaces = self.workspace.values().map(BTreeMap::len);
        let all = self.global.len() + workspaces.sum::<usize>();
        after <= before || all - before + after <= DECISIONS_MAX
    }

    /// Replaces what was decided of one thing.
    pub(crate) fn decide(
        &mut self,
        id: &str,
        global: Option<bool>,
        workspace: Option<(&str, Option<bool>)>,
    ) {
        debug_assert!(
            self.has_room_for(id, global, workspace),
            "whoever decides has made sure that there is room"
        );
        set(&mut self.global, id, global);
        if let Some((directory, decision)) = workspace {
            let decisions = self.workspace.entry(directory.to_owned()).or_default();
            set(decisions, id, decision);
            self.workspace.retain(|_, decisions| !decisions.is_empty());
        }
    }
}

/// Decisions by id.
pub(super) fn pairs(decisions: &BTreeMap<String, bool>) -> impl Iterator<Item = (&str, bool)> {
    decisions.iter().map(|(id, is_enabled)| (id.as_str(), *is_enabled))
}

/// Replaces or removes one decision.
pub(super) fn set(decisions: &mut BTreeMap<String, bool>, id: &str, decision: Option<bool>) {
    match decision {
        Some(decision) => decisions.insert(id.to_owned(), decision),
        None => decisions.remove(id),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_full_still_takes_what_does_not_make_it_larger() {
        let mut full = Enablement::default();
        full.decide("both", Some(true), Some(("file:///w", Some(true))));
        for number in 2..DECISIONS_MAX {
            full.decide(&format!("id{number}"), Some(false), None);
        }
        let room = |id: &str, global, workspace| {
            full.has_room_for(id, global, Some(("file:///w", workspace)))
        };
        assert!(room("id2", None, None) && room("id2", Some(true), None));
        assert!(room("id2", None, Some(true)), "one for one");
        assert!(room("both", Some(false), Some(false)));
        assert!(room("new", None, None), "it concerns a session alone");
        assert!(!room("new", Some(true), None) && !room("new", None, Some(true)));
        assert!(!room("id2", Some(false), Some(false)));
        let mut smaller = full.clone();
        smaller.decide("id2", None, None);
        assert!(smaller.has_room_for("new", Some(true), None));
        assert!(!smaller.has_room_for("new", Some(true), Some(("file:///w", Some(true)))));
    }
}
