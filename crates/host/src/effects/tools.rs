//! What effects work with beside the kernel, the journal and bodies: terminals, files, watches, completions, changes, and what the
//! task of a turn is given. Made when something is first to be done: most spaces that a node has loaded are at rest (ADR 0149).
//!
//! Must not know: where settings come from.

use std::path::PathBuf;

use workspace::ResourceFiles;

use super::complete::Completions;
use super::watches::Watches;
use super::{Bodies, ClientFileAccess, TurnServices};
use crate::changes::Computing;
use crate::client_plugins::ClientAsker;
use crate::complete::Completer;
use crate::journal::JournalHandle;
use crate::kernel_queue::KernelQueue;
use crate::terminals::Terminals;

/// All of it.
pub(crate) struct EffectTools {
    pub(super) completions: Completions,
    pub services: TurnServices,
    /// What clients may do with files.
    pub files: ClientFileAccess,
    pub(super) watches: Watches,
    /// Who asks clients about their files.
    pub(super) asker: ClientAsker,
    pub(super) computing: Computing,
    /// Where worktrees lie, if not in their repositories.
    pub worktree_dir: Option<PathBuf>,
}

/// Makes the tools of one space, once.
pub(crate) type MakeTools =
    Box<dyn Fn(&KernelQueue, &JournalHandle, &Bodies) -> EffectTools + Send + Sync>;

impl EffectTools {
    /// As they are without settings.
    pub(crate) fn new(arrivals: &KernelQueue, journal: &JournalHandle, bodies: &Bodies) -> Self {
        let completions = Completions::new(Completer::new(bodies.discovery()));
        let terminals = Terminals::new(arrivals.clone());
        let asker = ClientAsker::new(arrivals.clone());
        let services = TurnServices::new(journal.clone(), bodies.clone(), terminals, asker.clone());
        let files = ResourceFiles::new(bodies.confinement().clone());
        Self {
            completions,
            files: ClientFileAccess::new(files, None),
            watches: Watches::default(),
            asker,
            computing: Computing::new(services.looks.clone()),
            services,
            worktree_dir: None,
        }
    }
}
