//! What comes in and what goes out: inputs, effects, and what one step says.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, AgentReply, Section, SuggestedTitle};
use bytes::Bytes;
use serde_json::Value;
use wire::published::commands::ContentEncoding;
use wire::rpc::Malformed;
use wire::state::Turn;
use wire::{ChannelUri, Digest, Id, Origin, Timestamp};

pub use crate::agent_word::{
    BroughtToken, McpWish, SessionChange, SessionNews, SettingQuestion, TokenText,
};
use crate::bodies::{Body, Data, SentAction};
use crate::client_file::ClientFile;
use crate::frame::{Content, Outgoing};
pub use crate::host_facts::*;
pub use crate::ids::{PeerId, RunId, Ticket};
use crate::received::Received;
use crate::record::{Answer, Query, Record, Seq};
use crate::rendered::Rendered;
pub use crate::run::*;
use crate::submission::Submission;

/// What happened outside.
#[derive(Debug, Clone)]
pub enum Input {
    Connected {
        peer: PeerId,
    },
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
        completed: Result<Completed, WorkFailed>,
    },
    /// The answer to [`Effect::ChangeModels`].
    ModelsChanged {
        ticket: Ticket,
        changed: Result<Box<ModelsChanged>, WorkFailed>,
    },
    /// The answer to [`Effect::Fetch`].
    Fetched {
        ticket: Ticket,
        fetched: Result<Fetched, WorkFailed>,
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
    /// An agent is not what it said of itself before.
    AgentChanged(Box<AgentFacts>),
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
    /// An agent has a better title for a chat's session than the one it gave it.
    TitleSuggested {
        chat: ChannelUri,
        suggested: SuggestedTitle,
    },
    Agent {
        run: RunId,
        event: AgentEvent,
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

/// The host could not do what was asked of it; its peer hears the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorkFailed(pub String);

/// Completion request: text and cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    pub place: MessagePlace,
    pub working_directories: Vec<String>,
    pub text: String,
    /// In UTF-16 units.
    pub offset: u64,
    /// The contexts that clients send.
    pub contexts: Vec<String>,
}

/// Where a message is typed: its agent may know commands of its own there (AG-28), and customizations may be off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePlace {
    pub provider: String,
    pub session: ChannelUri,
    /// None before there is a chat.
    pub chat: Option<ChannelUri>,
    /// Ids of customizations that are switched off there.
    pub switched_off: BTreeSet<String>,
}

impl Default for MessagePlace {
    /// Nowhere: no agent knows anything there.
    fn default() -> Self {
        Self {
            provider: String::new(),
            session: ChannelUri::root(),
            chat: None,
            switched_off: BTreeSet::new(),
        }
    }
}

/// The answer to a completion request.
#[derive(Debug, Clone, PartialEq)]
pub enum Completed {
    /// `CompletionItem`s.
    Items(Vec<Value>),
    /// The offset is not in the text.
    OutsideText,
}

/// What is to be done to the models of an agent, until the host stops (G-71).
#[derive(Debug, Clone, PartialEq)]
pub enum ModelChange {
    /// Add this one, as the configuration would have it.
    Add(wire::Object),
    /// Read those of the configuration again.
    Reload,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct ModelsChanged {
    /// All agents as they are now.
    pub agents: Vec<AgentFacts>,
    /// What its peer is answered.
    pub answer: Value,
}

/// Content to be read for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetch {
    pub digest: Digest,
    pub encoding: Option<ContentEncoding>,
    /// The most that its encoded data may take.
    pub bytes_max: usize,
}

/// What lies under a digest.
#[derive(Debug, Clone, PartialEq)]
pub enum Fetched {
    Content(Content),
    Missing,
    TooLarge,
}

/// What wakes the kernel later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Channels that nobody uses are let go.
    Idle,
    /// Empty sessions, old actions, old clients.
    Sweep,
    /// A disconnected active client has had its grace (H-126).
    Grace {
        session: ChannelUri,
        client_id: String,
    },
    /// A client had its time to carry out a tool (G-07).
    ClientTool { run: RunId, tool_call_id: String },
    /// A client had its time to answer a request of the host's.
    Request { request: u64 },
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
    /// Say what may be meant; answered by [`Input::Completed`].
    Complete {
        ticket: Ticket,
        complete: Box<Complete>,
    },
    /// Change which models an agent has; answered by [`Input::ModelsChanged`].
    ChangeModels {
        ticket: Ticket,
        change: Box<ModelChange>,
    },
    /// Read content; answered by [`Input::Fetched`].
    Fetch {
        ticket: Ticket,
        fetch: Fetch,
    },
    /// Store bodies before what refers to them is recorded (G-32); answered by [`Input::BodiesStored`].
    StoreBodies {
        ticket: Ticket,
        bodies: Vec<Body>,
    },
    /// Find out what a message means, and keep its bodies, before it is recorded; answered by [`Input::Composed`].
    Compose {
        ticket: Ticket,
        compose: Box<Compose>,
    },
    /// Say what would become of a message; answered by [`Input::MessageChecked`]. Nothing is stored.
    CheckMessage {
        ticket: Ticket,
        check: Box<MessageCheck>,
    },
    /// Say which values a setting can have; answered by [`Input::SettingValues`].
    ListSettingValues {
        ticket: Ticket,
        question: SettingQuestion,
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
    RequestMcp(McpWish),
    /// A client brought a token for an agent.
    Authenticate(BroughtToken),
    StartSession {
        session: ChannelUri,
        provider: String,
        /// The session's configuration values.
        config: wire::Object,
        working_directories: Vec<String>,
    },
    /// Look what customizations there are for a session; answered by [`Input::Surveyed`], unless another answer follows soon.
    Survey(Box<SurveyedPlace>),
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
    WakeAt {
        timer: Timer,
        at: Timestamp,
    },
    Close {
        peer: PeerId,
        why: CloseReason,
    },
    /// Nothing more will be said to this peer: it is gone, and all that was read from it is answered.
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

/// Whose customizations are to be looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyedPlace {
    pub session: ChannelUri,
    pub provider: String,
    pub working_directories: Vec<String>,
}

/// A message whose meaning is to be found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Compose {
    pub place: MessagePlace,
    /// As it was sent, without the bodies that were detached from it.
    pub message: wire::Object,
    /// Those bodies, by the index of their attachment.
    pub detached: Vec<(usize, Data)>,
    /// What was read from the client that sent it, or why it was not.
    pub client_files: Vec<ClientFile>,
    pub working_directories: Vec<String>,
    /// How many bytes may stay in one attachment, and in all of them.
    pub each_bytes: usize,
    pub left_bytes: usize,
}

/// A message that is not sent yet, and where it would be sent (G-71).
#[derive(Debug, Clone, PartialEq)]
pub struct MessageCheck {
    pub compose: Compose,
    /// The agent, and the model that it would ask.
    pub provider: String,
    pub model: Option<String>,
    /// What the agent remembers of the model's refusals in this chat.
    pub refusals: Option<Bytes>,
    pub context_use: ContextUse,
}

/// What is known of how full a chat's context is.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextUse {
    /// No model was asked yet.
    Nothing,
    /// What was last reported, `UsageInfo`.
    Reported(Value),
    /// The last turn that is over says it, if anything does.
    Turn(Arc<Turn>),
    /// All that was said is a summary of so many bytes.
    Summary(usize),
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

/// What one step said.
#[derive(Debug, Default)]
pub struct Output {
    /// The highest seq used so far; belongs into the batch even when there are no records (G-18).
    pub seq: Seq,
    pub records: Vec<Record>,
    /// How many of the first records are of clients and only travel with this step: it does not rest on them.
    pub deferred: usize,
    /// Whether this step must be written before it is spoken; stays true when the records were taken out.
    pub wrote: bool,
    pub frames: Vec<Outgoing>,
    pub effects: Vec<Effect>,
    /// Who must hear of it if this cannot be written.
    pub failure_replies: Vec<FailureReply>,
}

/// A message that was handled, and how its sender is told that it was not recorded after all (G-15).
#[derive(Debug, Clone)]
pub enum FailureReply {
    Answer {
        peer: PeerId,
        id: Id,
    },
    Refusal {
        peer: PeerId,
        channel: ChannelUri,
        action: SentAction,
        origin: Origin,
    },
}
