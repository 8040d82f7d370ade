//! One open chat, as an application uses it: what it looks like, what can be done to it, what is new in it.
//!
//! ```no_run
//! # use client::chat::{ChatEvent, ChatSelector, OpenChat, OpenOptions, TurnEvent, TurnFollower};
//! # use client::{HostLocator, Live, Options};
//! # async fn demo() -> Result<(), client::chat::ChatError> {
//! let host = HostLocator::in_data_directory("data".into());
//! let (live, updates) = Live::connect(host, "my-client-id", Options::default()).await?;
//! let selector = ChatSelector::NewSession { agent: None };
//! let mut chat = OpenChat::open(live, updates, &selector, &OpenOptions::default()).await?;
//! let mut follower = TurnFollower::default();
//! chat.send("hello")?;
//! loop {
//!     if let ChatEvent::Refused { reason, .. } = chat.next().await? {
//!         println!("no: {reason}");
//!     }
//!     for event in chat.confirmed().map(|state| follower.follow(&state, 0)).unwrap_or_default() {
//!         match event {
//!             TurnEvent::Text { text, .. } => print!("{text}"),
//!             TurnEvent::Ended { .. } => return Ok(()),
//!             _ => {}
//!         }
//!     }
//! }
//! # }
//! ```
//!
//! Promises: everything is driven by the updates of the connection, nothing is polled. A message reaches the agent, waits
//! in the queue, or is reported as refused. Texts of the host are passed on as they came.
//! Must not know: kernel, agents, host, terminals.

mod agent;
mod annotations;
mod answer;
mod approvals;
mod asked;
mod branch;
mod change_operations;
mod changes;
mod changesets;
mod check;
mod commands;
mod completion;
mod confirmation;
mod creation;
mod draft;
mod earlier;
mod error;
mod event;
mod feed;
mod follower;
mod messages;
mod model;
mod model_setting;
mod open;
mod open_chat;
mod other_sessions;
mod pending_input;
mod questions;
mod session_budget;
mod session_setting;
mod sign_in;
mod usage;
mod waiting_message;
mod watched_changeset;
mod workers;

use std::time::{SystemTime, UNIX_EPOCH};

use wire::Timestamp;

pub use self::annotations::{AnnotationChange, AnnotationComment, AnnotationThread};
pub use self::answer::{
    AnswerError, BoundUnit, Question, QuestionAnswer, QuestionKind, QuestionOption,
};
pub use self::approvals::OfferedMode;
pub use self::asked::AskedInput;
pub use self::branch::Branch;
pub use self::commands::CommandCheck;
pub use self::completion::{AcceptedCompletions, Completion, MessageAttachment, is_completable};
pub use self::confirmation::{
    ConfirmOption, Confirmation, Decision, DecisionSubject, ToolDecision,
};
pub use self::creation::CreationProgress;
pub use self::error::ChatError;
pub use self::event::{ChatEvent, Undelivered};
pub use self::follower::{AnswerTextKind, TextPosition, TurnEvent, TurnFollower};
pub use self::messages::Sent;
pub use self::model::{CurrentModel, ModelOffer, ModelSelection};
pub use self::model_setting::{ModelSetting, ModelSettingValue, SettingError, SettingKind};
pub use self::open::{ChatSelector, OpenOptions, WorktreeBase, default_chat_of};
pub use self::open_chat::OpenChat;
pub use self::pending_input::PendingInput;
pub use self::questions::{InputResponse, Progress, QuestionForm};
pub use self::session_budget::SessionBudget;
pub use self::sign_in::WantedToken;
pub use self::usage::{ChatUsage, Cost, TokenCounts, TurnTotals, UsageReader};
pub use self::waiting_message::{WaitReason, WaitingMessage};
pub use self::workers::WorkerSummary;
pub use agent::AgentOffer;
pub use change_operations::{OfferedOperation, OperationRequest, OperationResult, OperationStatus};
pub use changes::{ChangesError, ChangesList, FileChangeEntry, FileChangeKind};
pub use changesets::{ChangesetOffer, ListedTurn};

/// The moment the system's clock shows.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 gives 1970: times are for people to read, nothing is ordered by them.
    Timestamp(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}
