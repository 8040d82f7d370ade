//! What comes in and what goes out: inputs, effects, and what one step says.

use std::ops::RangeInclusive;

use agent_api::{AgentError, AgentEvent, AgentReply, Section, SuggestedTitle, TerminalChange};
use serde_json::Value;
use wire::rpc::Malformed;
use wire::{ChannelUri, Digest, Id, Origin, Timestamp};

pub use crate::agent_word::{
    ClientToken, McpServerRequest, SessionChange, SessionNews, SettingQuestion, TokenText,
};
use crate::bodies::{SentAction, UnstoredBody};
use crate::changeset_work::{ChangesInput, ChangesetOperation, ChangesetTarget, OperationOutcome};
use crate::client_file::{ClientAnswer, ClientFileError, ClientQuestion};
pub use crate::file_task::{
    FileAnswer, FileRefusal, FileRefusalReason, FileTask, ResourceOperand, WantedAccess,
};
use crate::frame::OutgoingFrame;
pub use crate::host_facts::*;
use crate::host_guard::HostGuard;
pub use crate::host_work::*;
pub use crate::ids::{PeerId, RunId, Ticket};
use crate::journal_query::{Answer, Query};
use crate::received::Received;
use crate::record::{Record, Seq};
use crate::rendered::Rendered;
use crate::role::{HolderName, Role};
pub use crate::run::*;
use crate::submission::Submission;
use crate::telemetry_batch::TelemetryBatch;
pub use crate::terminal_task::{ShownTerminalFacts, TerminalStart, TerminalTask, TypedText};
pub use crate::watch_task::{SeenResources, WatchTask};

/// What happened outside.
#[derive(Debug, Clone)]
pub enum Input {
    /// With what the one behind it may do.
    Connected {
        peer: PeerId,
        role: Role,
    },
    /// Comes right after the connection: the device or principal behind it. Without this it is the holder of the host's own token.
    Identified {
        peer: PeerId,
        holder: HolderName,
    },
    /// What happened lately, for the clients that subscribed to telemetry.
    Telemetry(Box<TelemetryBatch>),
    /// One message.
    Received {
        peer: PeerId,
        received: Received,
    },
    /// Something that was no message, to be answered in its turn.
    Malformed {
        peer: PeerId,
        malformed: Malformed,
    },
    /// Comes after everything that was read from the peer.
    Disconnected {
        peer: PeerId,
    },
    Read {
        ticket: Ticket,
        answer: Result<Answer, ReadFailed>,
    },
    /// The answer to [`Effect::Complete`].
    Completed {
        ticket: Ticket,
        completed: Result<CompletionAnswer, WorkFailed>,
    },
    /// The answer to [`Effect::ChangeModels`].
    ModelsChanged {
        ticket: Ticket,
        changed: Result<Box<ModelsChanged>, WorkFailed>,
    },
    /// The answer to [`Effect::Fetch`].
    Fetched {
        ticket: Ticket,
        fetched: Result<FetchedContent, WorkFailed>,
    },
    /// The answer to [`Effect::StoreBodies`]: where each body's name belongs.
    BodiesStored {
        ticket: Ticket,
        stored: Result<Vec<(String, Digest)>, WorkFailed>,
    },
    /// The answer to [`Effect::Compose`].
    Composed {
        ticket: Ticket,
        composed: Result<Box<Submission>, WorkFailed>,
    },
    /// The answer to [`Effect::CheckMessage`]: what its peer is answered.
    MessageChecked {
        ticket: Ticket,
        checked: Result<Value, WorkFailed>,
    },
    /// The answer to [`Effect::ListSettingValues`]: `SessionConfigValueItem`s.
    SettingValues {
        ticket: Ticket,
        values: Result<Vec<Value>, WorkFailed>,
    },
    /// The answer to [`Effect::UseFiles`].
    FilesUsed {
        ticket: Ticket,
        used: Result<FileAnswer, FileRefusal>,
    },
    /// The answer to [`Effect::BeginWatch`]: the channel on which changes are reported.
    WatchBegun {
        ticket: Ticket,
        begun: Result<ChannelUri, FileRefusal>,
    },
    /// The answer to [`Effect::CheckWorktree`]: why it may not be removed, for people.
    WorktreeChecked {
        ticket: Ticket,
        kept_because: Option<String>,
    },
    /// Something that is watched changed.
    ResourcesChanged {
        watch: ChannelUri,
        seen: SeenResources,
    },
    /// An agent's description changed.
    AgentChanged(Box<AgentFacts>),
    /// A token that a client brought for an agent ran out.
    TokenEnded {
        provider: String,
        /// Whose it was.
        principal: Option<String>,
        resource: String,
    },
    /// What a principal may do here was taken away: what they brought along is forgotten.
    PrincipalRevoked {
        principal: String,
    },
    /// What an agent says of a session between turns.
    News(SessionNews),
    /// The agent is ready for the session, or never will be.
    SessionStarted {
        session: ChannelUri,
        result: Result<(), AgentError>,
    },
    /// An agent's system prompt when a session begins (G-02); [`Effect::RecordRender`] follows.
    OpeningPrompt {
        session: ChannelUri,
        sections: Vec<Section>,
    },
    /// The answer to [`Effect::Survey`]: the containers of customizations, without anybody's decisions.
    Surveyed {
        session: ChannelUri,
        found: Vec<Value>,
    },
    /// Plugins of a session's clients were read, or could not be: it is looked again what there is.
    PluginsRead {
        session: ChannelUri,
    },
    /// The host wants to know something of a client's files; answered by [`Effect::ClientAnswered`].
    AskClient {
        ask: u64,
        client_id: String,
        question: ClientQuestion,
    },
    /// What is known of the files that sessions change.
    Changes(ChangesInput),
    /// The answer to [`Effect::OperateChangeset`].
    ChangesetOperated {
        ticket: Ticket,
        outcome: OperationOutcome,
    },
    /// An agent has a better title for a chat's session than the one it gave it.
    TitleSuggested {
        chat: ChannelUri,
        suggested: SuggestedTitle,
    },
    Agent {
        run: RunId,
        event: AgentEvent,
    },
    /// What happened in a terminal.
    Terminal {
        terminal: ChannelUri,
        changes: Vec<TerminalChange>,
    },
    /// A run has a terminal that people may see.
    TerminalShown {
        run: RunId,
        facts: ShownTerminalFacts,
    },
    Woke(Timer),
    /// The answer to [`Effect::Probe`]: can the journal be written again?
    Probed {
        writable: bool,
    },
    /// The host is going down: running turns end as resumable errors.
    Stopping,
}

/// The journal could not answer; the text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal could not be read: {0}")]
pub struct ReadFailed(pub String);

/// The host could not do the requested work; the text goes to the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorkFailed(pub String);

/// What wakes the kernel later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Channels that nobody uses are let go.
    Idle,
    /// Empty sessions, old actions, old clients.
    Sweep,
    /// A disconnected active client has had its grace (H-126).
    Grace { session: ChannelUri, client_id: String },
    /// A disconnected client that holds a terminal has had its grace (G-56).
    TerminalGrace { terminal: ChannelUri, client_id: String },
    /// A client had its time to carry out a tool (G-07).
    ClientTool { run: RunId, tool_call_id: String },
    /// A client had its time to answer a request of the host's.
    Request { request: u64 },
    /// Did anybody subscribe to a watch?
    UnusedWatch { watch: ChannelUri },
    /// Is the journal writable again?
    Probe,
    /// A task that waits is done, in a step of its own.
    Postponed,
}

/// What is to be done once the batch is written and spoken.
#[derive(Debug, Clone)]
pub enum Effect {
    Read {
        ticket: Ticket,
        query: Query,
    },
    /// Compute completions; answered by [`Input::Completed`].
    Complete {
        ticket: Ticket,
        complete: Box<CompletionTask>,
    },
    /// Change which models an agent has; answered by [`Input::ModelsChanged`].
    ChangeModels {
        ticket: Ticket,
        change: Box<ModelChange>,
    },
    /// Read content; answered by [`Input::Fetched`].
    Fetch {
        ticket: Ticket,
        fetch: FetchTask,
    },
    /// Store bodies before what refers to them is recorded (G-32); answered by [`Input::BodiesStored`].
    StoreBodies {
        ticket: Ticket,
        bodies: Vec<UnstoredBody>,
    },
    /// Find out what a message means, and keep its bodies, before it is recorded; answered by [`Input::Composed`].
    Compose {
        ticket: Ticket,
        compose: Box<ComposeTask>,
    },
    /// Say what would become of a message; answered by [`Input::MessageChecked`]. Nothing is stored.
    CheckMessage {
        ticket: Ticket,
        check: Box<MessageCheck>,
    },
    /// Compute a changeset; answered by [`ChangesInput::Computed`]. Asked again while it is at work, it is computed once more.
    ComputeChangeset(Box<ChangesetTarget>),
    /// A session is gone that had this worktree: `_meta.git.worktree`.
    RemoveWorktree(Value),
    /// Look whether something in the worktree of a session would be lost; answered by [`Input::WorktreeChecked`].
    CheckWorktree {
        ticket: Ticket,
        facts: Value,
    },
    /// Carry out an operation on a changeset; answered by [`Input::ChangesetOperated`].
    OperateChangeset {
        ticket: Ticket,
        operation: Box<ChangesetOperation>,
    },
    /// Say which values a setting can have; answered by [`Input::SettingValues`].
    ListSettingValues {
        ticket: Ticket,
        question: SettingQuestion,
    },
    /// Read or change files for a client; answered by [`Input::FilesUsed`].
    UseFiles {
        ticket: Ticket,
        task: Box<FileTask>,
    },
    /// The id by which clients know a call of a run, for telemetry.
    CallNamed {
        run: RunId,
        call: u64,
        id: String,
    },
    /// Watch files for a client; answered by [`Input::WatchBegun`], and [`Input::ResourcesChanged`] follow.
    BeginWatch {
        ticket: Ticket,
        task: Box<WatchTask>,
    },
    /// Nobody listens any more.
    EndWatch {
        watch: ChannelUri,
    },
    /// A client changed settings of a session; all of them as they are now.
    SettingsChanged {
        session: ChannelUri,
        provider: String,
        values: wire::Object,
    },
    /// A client named a session; the chat that its title is of.
    TitleChanged {
        chat: ChannelUri,
        provider: String,
        title: String,
    },
    /// A client wants something of an MCP server.
    RequestMcp(McpServerRequest),
    /// A client brought a token for an agent.
    Authenticate(ClientToken),
    /// Every token that a principal brought is forgotten.
    ForgetTokens {
        principal: String,
    },
    StartSession {
        session: ChannelUri,
        provider: String,
        /// The session's configuration values.
        config: wire::Object,
        working_directories: Vec<String>,
    },
    /// Look what customizations there are for a session; answered by [`Input::Surveyed`], unless another answer follows soon.
    Survey(Box<SurveyRequest>),
    /// The answer to [`Input::AskClient`], or why there is none.
    ClientAnswered {
        ask: u64,
        answer: Result<ClientAnswer, ClientFileError>,
        hold: HostGuard,
    },
    /// A system prompt was rendered: for the operator. A run that waits for it is answered by [`Effect::Reply`].
    RecordRender {
        session: ChannelUri,
        rendered: Box<Rendered>,
    },
    RunTurn(Box<TurnRun>),
    /// Stop the run; whatever it says from now on is dropped.
    StopTurn {
        run: RunId,
    },
    /// A chat is gone for good: what its agent left running ends.
    EndChat {
        chat: ChannelUri,
    },
    /// A chat left memory: nobody has used it for a while.
    UnloadChat {
        chat: ChannelUri,
    },
    /// What a run waits for.
    Reply {
        run: RunId,
        reply: AgentReply,
    },
    /// Do this to a terminal, if it is still there.
    Terminal {
        terminal: ChannelUri,
        act: TerminalTask,
    },
    WakeAt {
        timer: Timer,
        at: Timestamp,
    },
    Close {
        peer: PeerId,
        why: CloseReason,
    },
    /// Nothing more is sent to this peer: it is gone, and everything read from it is answered.
    Forget {
        peer: PeerId,
    },
    /// Read no more from the peer until it is resumed: too much of it waits.
    Pause {
        peer: PeerId,
    },
    Resume {
        peer: PeerId,
    },
    /// Try to write to the journal; answered by [`Input::Probed`].
    Probe,
    /// Remove bodies whose digest begins with one of these bytes, that nothing refers to and nobody put since `before`.
    Collect {
        buckets: RangeInclusive<u8>,
        before: Timestamp,
    },
    /// A host setting changed (root/configChanged); the whole values object.
    Configure {
        values: wire::Object,
    },
}

/// Why a peer is closed; decides the WebSocket close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// Another connection with the same client id (G-20): 1008.
    Superseded,
    /// No acceptable version (H-023), after the error was sent.
    UnsupportedVersion,
    /// A limit was exceeded: 1008.
    Policy,
}

/// The output of one step.
#[derive(Debug, Default)]
pub struct Output {
    /// The highest seq used so far; belongs into the batch even when there are no records (G-18).
    pub seq: Seq,
    pub records: Vec<Record>,
    /// How many of the first records are of clients and only travel with this step: it does not rest on them.
    pub deferred: usize,
    /// Whether this step must be written before it is spoken; stays true when the records were taken out.
    pub wrote: bool,
    pub frames: Vec<OutgoingFrame>,
    pub effects: Vec<Effect>,
    /// Replies to send if this cannot be written.
    pub failure_replies: Vec<FailureReply>,
}

/// The reply to a handled message whose records could not be written (G-15).
#[derive(Debug, Clone)]
pub enum FailureReply {
    Answer { peer: PeerId, id: Id },
    Refusal { peer: PeerId, channel: ChannelUri, action: SentAction, origin: Origin },
}
