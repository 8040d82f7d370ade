//! Passes the frames of a client and of its owner on, as bytes.
//!
//! Promises: 16 KiB each way and no queue, so whoever is slow slows the other side down; only heads of frames are looked at; a
//! client whose owner vanishes between two frames, or stops and is judged, hears a close frame, as it does when this node stops;
//! from the moment it is cut nothing of it is passed on, whether it reads or not.
//! Must not know: what frames hold, which space it is.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::frame_edges::FrameEdges;
use super::peer_dial::OwnerSocket;
use crate::net::ws::frame::{close, put_close};
use crate::net::{StallGuard, drain_until_closed};

const RELAY_BYTES: usize = 16 * 1_024;
/// A client that takes nothing for so long is given up. Longer than any limit of the owner's own, which comes first.
const CLIENT_STALL: Duration = Duration::from_secs(300);
/// How long one side may still send after the other's last byte, and how long a frame may take to end when this
/// node stops.
const LAST_WORD_WAIT: Duration = Duration::from_secs(2);
/// The same for a client that is sent away for a reason: it is told no more than what was on its way.
const CUT_WAIT: Duration = Duration::from_millis(500);

const OWNER_GONE: &str = "the node that serves this space went away; connect again";

/// Ends a relayed connection from this node.
pub(crate) struct RelayCut {
    token: CancellationToken,
    why: OnceLock<(u16, &'static str)>,
}

impl RelayCut {
    /// It is cut when the node stops, at the latest.
    pub(crate) fn new(stop: &CancellationToken) -> Self {
        Self { token: stop.child_token(), why: OnceLock::new() }
    }

    /// Ends it with a close frame.
    pub(crate) fn cut(&self, code: u16, reason: &'static str) {
        // The first reason stays.
        let _was_cut = self.why.set((code, reason));
        self.token.cancel();
    }

    /// How long something may still be sent to the client.
    fn wait(&self) -> Duration {
        match self.why.get() {
            Some(_) => CUT_WAIT,
            // The node stops: the frame that is open may end, and the close frame come behind it.
            None => LAST_WORD_WAIT * 2,
        }
    }

    fn why(&self) -> (u16, &'static str) {
        let stopped = (close::SERVICE_RESTART, "this node is going down; connect again");
        self.why.get().copied().unwrap_or(stopped)
    }
}

/// Passes on until one side has ended, or this node stops. `early` is what the client sent behind its request.
pub(crate) async fn pass_on<C>(client: C, early: Vec<u8>, owner: OwnerSocket, cut: &RelayCut)
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let client = StallGuard::new(client, CLIENT_STALL);
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (from_owner, mut to_owner) = tokio::io::split(owner.stream);
    let mut gone = owner.gone;
    {
        let inward = carry_inward(early, &mut from_client, &mut to_owner);
        let outward = carry_outward(owner.early, from_owner, &mut to_client, cut);
        tokio::pin!(inward, outward);
        tokio::select! {
            // The cut first: what came at the same moment is not passed on.
            biased;
            () = cut.token.cancelled() => {
                // Nothing more goes inward: that is not looked at again.
                let _late: Result<(), _> = timeout(cut.wait(), outward).await;
            }
            () = &mut outward => {}
            () = &mut gone => {
                cut.cut(close::SERVICE_RESTART, OWNER_GONE);
                let _late: Result<(), _> = timeout(cut.wait(), outward).await;
            }
            () = &mut inward => {
                // The client is gone, or the owner takes nothing more: what it still says is passed on for a moment.
                let _late: Result<(), _> = timeout(LAST_WORD_WAIT, outward).await;
            }
        }
    }
    // The owner is told in any case; there is nobody to report a failure to.
    let _ = timeout(LAST_WORD_WAIT, to_owner.shutdown()).await;
    drain_until_closed(&mut from_client.unsplit(to_client).into_inner()).await;
}

/// From the client to its owner, until either ends.
async fn carry_inward(
    early: Vec<u8>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) {
    let carried = async {
        let mut from = early.as_slice().chain(from);
        let mut buffer = vec![0; RELAY_BYTES];
        loop {
            let count = from.read(&mut buffer).await?;
            if count == 0 {
                return to.shutdown().await;
            }
            to.write_all(buffer.get(..count).unwrap_or_default()).await?;
            to.flush().await?;
        }
    };
    let ended: io::Result<()> = carried.await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a relayed client ended");
    }
}

/// From the owner to its client, until the owner ends or this node stops; then the client hears why, if a frame may come there.
async fn carry_outward(
    early: Bytes,
    from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    cut: &RelayCut,
) {
    let mut edges = FrameEdges::default();
    let passed = pass_frames(early, from, to, &mut edges, &cut.token).await;
    let (code, reason) = match passed {
        Ok(FramesEnd::Owner) => (close::SERVICE_RESTART, OWNER_GONE),
        Ok(FramesEnd::Cut) => cut.why(),
        Err(error) => return tracing::debug!(%error, "a relayed client takes nothing more"),
    };
    if !edges.is_between() || edges.has_closed() {
        return; // nothing may be said here, or all was said
    }
    let mut last = Vec::new();
    put_close(&mut last, code, reason);
    let said = timeout(LAST_WORD_WAIT, to.write_all(&last)).await;
    if !matches!(said, Ok(Ok(()))) {
        tracing::debug!("a relayed client did not take its close frame");
    }
}

enum FramesEnd {
    Owner,
    Cut,
}

/// An error is the client's.
async fn pass_frames(
    early: Bytes,
    from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    edges: &mut FrameEdges,
    stop: &CancellationToken,
) -> io::Result<FramesEnd> {
    let mut from = early.as_ref().chain(from);
    let mut buffer = vec![0; RELAY_BYTES];
    loop {
        let stopped = async {
            stop.cancelled().await;
            if !edges.is_between() {
                // The frame that is open may end first.
                tokio::time::sleep(LAST_WORD_WAIT).await;
            }
        };
        let count = tokio::select! {
            biased;
            () = stopped => return Ok(FramesEnd::Cut),
            read = from.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return Ok(FramesEnd::Owner),
                Ok(count) => count,
            },
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        let bytes = if stop.is_cancelled() {
            bytes.get(..edges.pass_to_edge(bytes)).unwrap_or_default()
        } else {
            edges.pass(bytes);
            bytes
        };
        to.write_all(bytes).await?;
    }
}
