//! What a project keeps for agents in its working directories: commands people can type, and skills (G-41).
//!
//! Promises: every open is confined to the working directories; what is looked at is bounded in files, bytes and time; a
//! file that is no good is passed over with a warning that names it, and costs nobody anything else.
//! Must not know: channels, turns, what is done with what was found.

mod command_file;
mod found;
mod front_matter;
mod skill_file;
mod survey;

use compositor::Catalogue;

pub use found::Catalogues;
pub use skill_file::{InvokedBy, Skill};
pub(crate) use skill_file::{body_of, is_skill_name};

use crate::tool::Workspace;
use survey::Survey;

/// What there is to type and to know in a session's working directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// What is built in included.
    pub catalogue: Catalogue,
    /// The one that counts of each name.
    pub skills: Vec<Skill>,
    /// What was passed over and why; for whoever keeps the files.
    pub warnings: Vec<String>,
}

/// Looks into directories given as `file:` URIs, the default one first. Blocks.
pub fn discover(working_directories: &[String]) -> Discovered {
    let (workspace, unopened) = Workspace::open_some(working_directories);
    let mut survey = Survey::new(&workspace);
    for error in unopened {
        survey.warn(error.to_string());
    }
    let mut catalogue = Catalogue::built_in();
    command_file::take_all(&mut survey, &mut catalogue);
    let skills = skill_file::find_all(&mut survey);
    skill_file::bind_triggers(&mut survey, &skills, &mut catalogue);
    Discovered {
        catalogue,
        skills,
        warnings: survey.warnings(),
    }
}

/// The skills of a session's own directories. Blocks.
pub(crate) fn skills_of(workspace: &Workspace) -> Vec<Skill> {
    skill_file::find_all(&mut Survey::new(workspace))
}

#[cfg(test)]
mod tests;
