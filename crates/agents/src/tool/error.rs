//! Why a call could not be done, in a sentence a model can act on.

use workspace::FileError;
use workspace::discovery::SkillError;

/// Why a call could not be done; the model reads it and may do better.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// Names in the answer to a model that asked for a skill that does not exist.
const SKILL_NAMES_MAX: usize = 50;

impl From<FileError> for ToolError {
    fn from(error: FileError) -> Self {
        Self(format!("{error}{}", advice(&error)))
    }
}

/// What a model can do about an error of the workspace, which knows nothing of tools.
fn advice(error: &FileError) -> &'static str {
    match error {
        FileError::BrokenLink { reason, .. } => advice(reason),
        FileError::OutsideRoots { .. } => "; only files in them can be used",
        FileError::NotFound { .. } => "; `list` shows what is there",
        FileError::IsDirectory { .. } => "; `list` shows what is in it",
        FileError::Binary { .. } => "; its content cannot be shown or edited",
        FileError::NotRead { .. } => "; `read` it before it is replaced, or use `edit`",
        FileError::ChangedSinceRead { .. } => ". `read` it again first",
        FileError::ChangedSinceProposal { .. } => ". `read` it and propose it again",
        FileError::InvalidPattern { .. } => {
            "\nIt is matched against one line at a time; for plain text set `literal`"
        }
        _ => "",
    }
}

impl From<SkillError> for ToolError {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::File(error) => error.into(),
            SkillError::Unknown { mut known } => {
                known.truncate(SKILL_NAMES_MAX);
                let names = if known.is_empty() {
                    "there are none".to_owned()
                } else {
                    format!("there are: {}", known.join(", "))
                };
                Self(format!("there is no such skill; {names}"))
            }
            SkillError::Gone { .. } | SkillError::Invalid { .. } => Self(error.to_string()),
        }
    }
}
