//! The tools of the native agent: one file each. They touch files and processes of the session's working directories.
//!
//! Promises: every open is confined to the working directories, at the moment of the open; what a tool prints is bounded;
//! dropping a tool's future kills what it started.
//! Must not know: models, turns, channels.

mod bash;
mod change;
mod edit;
mod file_edit;
mod format;
mod grep;
mod input;
mod list;
mod read;
mod skill;
mod stop;
pub(crate) mod workspace;
mod write;

use async_trait::async_trait;
use serde_json::Value;

pub(crate) use skill::NAME as SKILL;
pub(crate) use workspace::Unopened;
pub use workspace::{Workspace, WorkspaceError};

/// What one call tells the model at most. A result of this size stays in state as it is (G-32), so that the model sees
/// the same again in later turns.
const TEXT_BYTES_MAX: usize = 48 * 1_024;

/// What a tool does to the world: decides whether it needs consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    Reads,
    Edits,
    Runs,
}

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync {
    fn name(&self) -> &'static str;

    /// What people see, e.g. `Edit`.
    fn display_name(&self) -> &'static str;

    /// For the model.
    fn description(&self) -> &'static str;

    /// JSON Schema of the input.
    fn parameters(&self) -> Value;

    fn nature(&self) -> Nature;

    /// Looks at an input without changing anything: is it possible, and what would it do? A change that is run
    /// afterwards with the same input is held to what was there now.
    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError>;

    /// Does it. `output` takes what should be seen while it runs: the whole output so far, already bounded.
    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        output: &tokio::sync::mpsc::Sender<String>,
    ) -> Result<Outcome, ToolError>;
}

/// What a call would do, for people to decide on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// `Read src/main.rs`, `Run cargo test`: the invocation message.
    pub summary: String,
    /// `FileEdit` items of a preview.
    pub edits: Vec<Value>,
    /// What `edits` refer to by `ahp-content:` URIs: to be stored before the edits are shown.
    pub bodies: Vec<Vec<u8>>,
    /// What "approve in this session" remembers: calls with the same key need no consent again.
    pub consent_key: String,
}

/// What a call did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The text for the model; bounded.
    pub text: String,
    /// `Read 120 lines of src/main.rs`: the past-tense message.
    pub summary: String,
    /// Further content blocks for people: `fileEdit` and the like.
    pub content: Vec<Value>,
    /// What `content` refers to by `ahp-content:` URIs: to be stored before the content is shown.
    pub bodies: Vec<Vec<u8>>,
    /// The whole output where `text` holds only part of it: is stored as a body.
    pub whole: Option<Vec<u8>>,
    pub success: bool,
}

/// Why a call could not be done; the model reads it, and may do better.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// All tools, in the order they are offered to a model.
pub fn all() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(read::Read),
        Box::new(list::List),
        Box::new(grep::Grep),
        Box::new(write::Write),
        Box::new(edit::Edit),
        Box::new(bash::Bash),
        Box::new(skill::Skill),
    ]
}
