//! What follows from a change, in the same step: noted where the change is made, done when that is finished. So a turn's end
//! need not know how queues start, and no handler is interrupted by another.

use bytes::Bytes;
use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::io::{PeerId, ReadFailed};
use crate::journal_query::{Answer, Query};
use crate::received::Received;

/// Something to be done before the step ends, in the order it was noted.
#[derive(Debug)]
pub(crate) enum FollowUp {
    /// An agent is to work on the active turn, once its session is ready. `resume` has the checkpoint of a resumed one.
    StartAgent { chat: ChannelUri, resume: Option<Option<Bytes>> },
    /// The active turn may have become too large.
    BoundTurn(ChannelUri),
    /// What waits is due: leftover steering, then the queue (G-08).
    StartQueue(ChannelUri),
    /// The turn that these workers work for is over.
    CancelWorkers(Vec<ChannelUri>),
    /// A worker's turn is over: so is the call that waits for it.
    ReportWorker(ChannelUri),
    /// A worker has no turn any more that could end.
    FailWorkerCall { chat: ChannelUri, why: &'static str },
    /// Background work, with what it was answered.
    Task { task: Box<BackgroundTask>, answer: Option<(Query, Result<Answer, ReadFailed>)> },
    /// The host is going down: the next run is to be stopped.
    StopRuns,
    /// A peer's current message may go on.
    ResumePeer(PeerId),
    /// A peer's next message is due.
    NextMessage { peer: PeerId, received: Box<Received> },
}
