//! The tools of the native agent: one file each, from a model's arguments to a call of `workspace`, or to a process.
//!
//! Promises: what a tool returns is bounded; dropping a tool's future cancels its work and kills what it started. Files
//! are only touched through `workspace`, which confines them to the working directories.
//! Must not know: models, turns, channels.

mod ask_user;
mod bash;
mod blocking;
mod change;
mod chat_tools;
mod client_files;
mod edit;
mod error;
mod file_edit;
mod file_tool;
mod format;
mod glob;
mod grep;
mod input;
mod list;
mod read;
mod settings;
mod skill;
mod task;
mod todo;
mod view_image;
mod web_fetch;
mod write;

use std::sync::Arc;

use agent_api::{ClientFileCall, InputRequest, RecordedEdit, Worker};
use async_trait::async_trait;
use serde_json::Value;
use wire::NamedBody;
use workspace::Workspace;

pub(crate) use ask_user::describe_answers;
pub(crate) use bash::{
    CallScope, Mark, ShowRequest, TerminalCommand, command_environment, end_marked, end_processes,
    ended_block, in_scope, is_allowed_variable, kill_session, new_mark, run_for_user,
    terminal_block,
};
pub use bash::{ProcessRecord, terminal_change};
pub(crate) use blocking::run_blocking;
pub use chat_tools::ChatTools;
pub(crate) use client_files::{NAME as CLIENT_FILES, describe_failure, describe_reply, is_named};
pub use error::ToolError;
pub(crate) use file_edit::{preview_item, recorded_edit, result_content};
pub use settings::ToolSettings;
pub(crate) use skill::NAME as SKILL;
pub(crate) use task::{NAME as TASK, WorkerBrief};
pub(crate) use todo::{NAME as TODO, TodoList};
pub(crate) use web_fetch::is_public_address;

/// The largest text of one call. A result of this size stays in state as it is (G-32), so that the model sees
/// the same again in later turns.
pub(crate) const TEXT_BYTES_MAX: usize = 48 * 1_024;

/// What a tool does to the world: decides whether it needs consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// Looks at files, or at nothing; also what only talks to the user.
    Reads,
    /// Changes files.
    Edits,
    /// Starts programs.
    Runs,
    /// Asks another machine: changes nothing here, but tells it something.
    Fetches,
}

impl ToolEffect {
    /// Whether something on this machine may be different afterwards.
    pub fn changes(self) -> bool {
        match self {
            Self::Reads | Self::Fetches => false,
            Self::Edits | Self::Runs => true,
        }
    }
}

/// The fixed facts of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolFacts {
    pub name: &'static str,
    /// The name that people see, e.g. `EditTool`.
    pub display_name: &'static str,
    /// The description that the model reads.
    pub description: &'static str,
    pub effect: ToolEffect,
    /// How clients may draw its calls ([`wire::meta::TOOL_KIND`]).
    pub kind: Option<&'static str>,
}

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync {
    fn facts(&self) -> ToolFacts;

    fn name(&self) -> &'static str {
        self.facts().name
    }

    fn display_name(&self) -> &'static str {
        self.facts().display_name
    }

    fn effect(&self) -> ToolEffect {
        self.facts().effect
    }

    /// JSON Schema of the input.
    fn parameters(&self) -> Value;

    /// Checks an input without changing anything: is it possible, and what would it do? A change that is run afterwards with the
    /// same workspace, which is for this call alone ([`Workspace::for_call`]), only applies to what is there now.
    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError>;

    /// What a call is about to do to files, looked at right before it runs, so that it can be undone. Running it does exactly
    /// this, or fails.
    async fn edits(&self, _input: &Value, _workspace: &Workspace) -> Result<Edits, ToolError> {
        Ok(Edits::default())
    }

    /// What the host does in place of [`Tool::run`], for a tool that needs the user or another chat.
    fn host_request(&self, _input: &Value) -> Option<Result<HostTask, ToolError>> {
        None
    }

    /// Runs it. `output` takes what should be seen while it runs: the whole output so far, already bounded.
    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        output: &tokio::sync::mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError>;
}

/// What the host does for a call.
#[derive(Debug, Clone, PartialEq)]
pub enum HostTask {
    /// Asks the user.
    Question(InputRequest),
    /// Lets another chat work.
    Worker(Box<Worker>),
    /// Has the client that sent the message use its own files.
    ClientFile(Box<ClientFileCall>),
}

/// What a call would do, for people to decide on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// `ReadTool src/main.rs`, `Run cargo test`: the invocation message.
    pub summary: String,
    /// `FileEdit` items of a preview.
    pub edits: Vec<Value>,
    /// What `edits` refer to by `ahp-content:` URIs: to be in the blob store before the edits are sent.
    pub bodies: Vec<NamedBody>,
    /// What it is about, for the user's rules.
    pub subject: PlanSubject,
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PlanSubject {
    /// Nothing but its input.
    #[default]
    Input,
    Command(String),
    /// A file that it shows or changes, as the model named it.
    File(String),
    /// The URL of a page.
    Page(String),
}

/// The files that a call changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edits {
    pub edits: Vec<RecordedEdit>,
    /// What they refer to: to be in the blob store before they are sent.
    pub bodies: Vec<NamedBody>,
}

/// What a call did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutcome {
    /// What the model reads; bounded.
    pub text: String,
    /// `ReadTool 120 lines of src/main.rs`: the past-tense message.
    pub summary: String,
    /// Further content blocks for people: `fileEdit` and the like.
    pub content: Vec<Value>,
    /// What `content` refers to by `ahp-content:` URIs: to be in the blob store before the content is sent.
    pub bodies: Vec<NamedBody>,
    /// The whole output where `text` holds only part of it: is stored as a body.
    pub whole: Option<Vec<u8>>,
    /// The same for programs.
    pub structured: Option<wire::Object>,
    pub success: bool,
}

/// The tools of a chat, in the order a model sees them.
pub fn all(settings: &Arc<ToolSettings>, chat: &Arc<ChatTools>) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(read::ReadTool),
        Box::new(view_image::ViewImageTool),
        Box::new(list::ListTool),
        Box::new(glob::GlobTool),
        Box::new(grep::GrepTool),
        Box::new(write::WriteTool::new()),
        Box::new(edit::EditTool::new()),
        Box::new(bash::BashTool { settings: Arc::clone(settings), chat: Arc::clone(chat) }),
        Box::new(bash::BashOutputTool { chat: Arc::clone(chat) }),
        Box::new(bash::BashKillTool { chat: Arc::clone(chat) }),
        Box::new(web_fetch::WebFetchTool { settings: Arc::clone(settings) }),
        Box::new(todo::TodoTool),
        Box::new(ask_user::AskUserTool),
        Box::new(task::TaskTool),
        Box::new(skill::SkillTool),
        Box::new(client_files::ClientFilesTool),
    ]
}
