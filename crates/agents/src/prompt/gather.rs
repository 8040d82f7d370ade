//! The facts that a prompt needs, gathered before it is rendered.
//!
//! Promises: those of [`ProjectReader`]: nothing outside the host's roots is read, every file is bounded, nothing is run.

use workspace::{Confinement, InstructionFile, ProjectReader};

use super::EnvironmentContext;
use crate::task;

/// What was gathered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProjectFacts {
    pub environment: EnvironmentContext,
    pub instructions: Vec<InstructionFile>,
}

/// Gathers the facts of a session's working directories.
#[derive(Debug, Clone, Default)]
pub struct ProjectFactsReader(ProjectReader);

impl ProjectFactsReader {
    /// One that reads no directory that may not be worked in, and no further up than the roots.
    pub fn with_confinement(confinement: Confinement) -> Self {
        Self(ProjectReader::with_confinement(confinement))
    }

    /// Gathers on a thread that may wait for the disk.
    pub async fn gather(&self, working_directories: &[String]) -> ProjectFacts {
        let (reader, directories) = (self.0.clone(), working_directories.to_vec());
        let project = task::run_blocking(move || reader.read(&directories)).await;
        ProjectFacts {
            environment: EnvironmentContext {
                directories: project.directories,
                os: std::env::consts::OS.to_owned(),
                date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
                git: project.git,
            },
            instructions: project.instructions,
        }
    }
}
