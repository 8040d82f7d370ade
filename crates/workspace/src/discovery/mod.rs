//! What a project keeps for agents in its working directories: commands that users can type, and skills (G-41).
//!
//! Promises: every open is confined to the working directories; what is read is bounded in files, bytes and time; a file
//! that cannot be used is skipped with a [`Warning`] and affects nothing else.
//! Must not know: channels, turns, what is done with what was found.

mod cache;
mod command_file;
mod front_matter;
mod scan;
mod skill_file;
mod warning;

use compositor::Catalogue;

pub use cache::DiscoveryCache;
pub use skill_file::{InvokedBy, Skill, SkillBody, SkillError, is_skill_name};
pub use warning::{Warning, WarningKind};

use crate::{Confinement, Workspace};
use scan::Scan;

/// The commands and skills of a session's working directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// Commands, the built-in ones included.
    pub catalogue: Catalogue,
    /// One for each name: the first that was found.
    pub skills: Vec<Skill>,
    /// What was skipped and why. Holds paths: it is for the user, not for a log.
    pub warnings: Vec<Warning>,
}

/// Searches directories given as `file:` URIs, the default one first. Blocks.
pub fn discover(working_directories: &[String], confinement: &Confinement) -> Discovered {
    let (workspace, errors) = Workspace::open_available(working_directories, confinement);
    let mut scan = Scan::new(&workspace);
    for error in errors {
        scan.warn(Warning::new(WarningKind::Unreadable, error.to_string()));
    }
    let mut catalogue = Catalogue::built_in();
    command_file::add_all(&mut scan, &mut catalogue);
    let skills = skill_file::find_all(&mut scan);
    skill_file::add_triggers(&mut scan, &skills, &mut catalogue);
    Discovered {
        catalogue,
        skills,
        warnings: scan.into_warnings(),
    }
}

impl Workspace {
    /// The skills of the working directories. Blocks.
    pub fn skills(&self) -> Vec<Skill> {
        skill_file::find_all(&mut Scan::new(self))
    }
}

#[cfg(test)]
mod tests;
