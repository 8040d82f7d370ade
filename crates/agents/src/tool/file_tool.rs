//! Tools that look at files below one path: what `read`, `view_image`, `list`, `glob` and `grep` have in common.
//!
//! Promises: the path is confined to the working directories before anything is planned or looked at; nothing is changed; the
//! work is done on a thread that may block, and cancelled when nobody waits for it.
//! Must not know: what is looked for.

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use workspace::{Cancellation, Workspace, WorkspacePath};

use super::input::{self, ToolInput, parse_and_run};
use super::{Plan, PlanSubject, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

/// What is said of a path in the schema of an input that must have one.
pub(super) const PATH_DESCRIPTION: &str =
    "Relative to the first working directory, or absolute inside any of them.";

/// The input of a tool that looks at files.
pub(super) trait FileInput: ToolInput {
    /// As the model named it; `.` if it named none.
    fn path(&self) -> &str;
}

/// A tool that looks at files.
pub(super) trait FileTool: Send + Sync {
    type Input: FileInput;

    const NAME: &'static str;
    const DISPLAY_NAME: &'static str;
    const DESCRIPTION: &'static str;
    const KIND: &'static str;

    /// What a call would do, in words; refuses what cannot be done.
    fn summarise(input: &Self::Input, display_path: &str) -> Result<String, ToolError>;

    /// Looks. The path is that of the input.
    fn look(
        input: &Self::Input,
        path: &WorkspacePath,
        workspace: &Workspace,
        cancellation: &Cancellation,
    ) -> Result<ToolOutcome, ToolError>;
}

#[async_trait]
impl<T: FileTool> Tool for T {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: T::NAME,
            display_name: T::DISPLAY_NAME,
            description: T::DESCRIPTION,
            effect: ToolEffect::Reads,
            kind: Some(T::KIND),
        }
    }

    fn parameters(&self) -> Value {
        T::Input::schema()
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: T::Input = input::parse(input)?;
        let path = workspace.resolve(input.path())?;
        Ok(Plan {
            summary: T::summarise(&input, &workspace.display_path(&path))?,
            subject: PlanSubject::File(input.path().to_owned()),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let look = |input: &T::Input, workspace: &Workspace, cancellation: &Cancellation| {
            let path = workspace.resolve(input.path())?;
            T::look(input, &path, workspace, cancellation)
        };
        parse_and_run(input, workspace, look).await
    }
}
