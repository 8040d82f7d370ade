//! The types and traits between the host and its agents.
//!
//! A turn goes in ([`TurnInput`]), events come out ([`AgentEvent`]), some of them are answered ([`AgentReply`]). Events and
//! replies pass through the kernel; what the host does for an agent without the
//! kernel is in [`HostServices`]. What an agent says between turns goes to [`HostNews`].
//!
//! Promises: an agent is driven through [`Agent`] and [`AgentSession`] alone; dropping a turn's future stops it.
//! Must not know: the kernel, I/O, providers.

pub mod agent;
pub mod budget;
pub mod client_file;
pub mod event;
pub mod host;
pub mod message;
pub mod model_call;
pub mod news;
pub mod recorded_edit;
pub mod reply;
pub mod section;
pub mod sink;
pub mod terminal;
pub mod tool;
pub mod turn;

pub use agent::{
    Agent, AgentCommand, AgentError, AgentInfo, AgentResource, AgentSession, ClientPlugin,
    McpRequest, ModelInfo, ModelTerms, RenamedSetting, SessionFacts, SettingValue, SuggestedTitle,
};
pub use budget::{
    BudgetScope, BudgetUnit, CallEstimate, CallKind, CallPermit, CallUsage, ReachedLimit,
    SESSION_BUDGET,
};
pub use client_file::{ClientFileCall, ClientFileFacts, ClientFileFailure, ClientFileReply};
pub use event::{AgentEvent, CHAT_NOTES_BYTES_MAX, InputRequest, TextKind, Worker};
pub use host::{HostServices, Lowering, ModelOutput, StoreError};
pub use message::{SharedSources, UserMessage};
pub use model_call::{
    CallEnd, CallId, CallPurpose, ModelCall, ModelCallOutcome, PartDecision, PartTreatment,
};
pub use news::HostNews;
pub use recorded_edit::{FileContent, RecordedEdit, edits_of_call};
pub use reply::{AgentReply, AwaitedReply};
pub use section::Section;
pub use sink::{EventSink, TurnOver, WaitingSteering};
pub use terminal::{ShownTerminal, TerminalChange, TerminalHolder, TerminalOffer};
pub use tool::{ClientToolOffer, MalformedField, ToolExecutor, ToolReady, ToolResult, ToolStart};
pub use turn::{COMMAND_PREFIX, PastTurn, TurnInput};
