//! The writing half of a WebSocket connection: what is due leaves in one vectored write.
//!
//! Promises: payloads are shared, not copied; a peer that does not read blocks only itself and, once its connection
//! is to end, only until the ending's deadline; an idle connection holds no buffer.
//! Must not know: what the frames mean, who else gets them.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use kernel::Frame;
use tokio::time::{Sleep, sleep_until};

use super::outbox::{CloseUrgency, ConnectionEnding, Outbox};
use super::reader::Liveness;
use super::socket::{SharedStream, write_some};
use super::text_run::LinkItem;
use super::ws::batch::FrameBatch;

/// A message above this is encoded on a thread of its own, and after so much was written others come first.
const LARGE_BYTES: usize = 256 * 1_024;

/// The bytes of a message. Encoding a large one takes milliseconds that others on this worker must not wait for.
async fn encode(frame: Frame) -> io::Result<Vec<Bytes>> {
    if frame.size_hint() <= LARGE_BYTES {
        return Ok(frame.pieces());
    }
    let encoded = tokio::task::spawn_blocking(move || frame.pieces());
    encoded.await.map_err(io::Error::other)
}

enum WriteWake {
    Writable,
    Ending(ConnectionEnding),
    TooLate,
}

pub(crate) struct SocketWriter<'a, S> {
    pub socket: &'a S,
    pub outbox: &'a Outbox,
    pub liveness: &'a Liveness,
    pub fragment_bytes: usize,
}

impl<S: SharedStream> SocketWriter<'_, S> {
    /// Writes until the close frame is out, or fails.
    pub(super) async fn run(self) -> io::Result<()> {
        let mut timer = None;
        loop {
            let mut items: Vec<LinkItem> = Vec::new();
            let taken =
                poll_fn(|context| self.outbox.poll_take(context, &mut items, &mut timer)).await;
            let mut batch = taken.begun;
            if matches!(&taken.ending, Some(ending) if ending.urgency == CloseUrgency::AtOnce) {
                batch.drop_unstarted_frames();
            }
            if let Some(payload) = taken.pong {
                batch.put_pong(&payload);
            }
            if taken.ping {
                batch.put_ping();
            }
            for item in items {
                match item {
                    LinkItem::Run(run) => batch.put_framed(run.framed()),
                    LinkItem::Frame(Frame::Text(text)) if text.len() <= self.fragment_bytes => {
                        batch.put_text(text);
                    }
                    LinkItem::Frame(frame) => {
                        let pieces = encode(frame).await?;
                        batch.put_message(pieces, self.fragment_bytes);
                    }
                }
            }
            let ended = match &taken.ending {
                Some(ending) => {
                    batch.put_close(ending.code, &ending.reason);
                    true
                }
                None => false,
            };
            if self.flush(&mut batch, taken.ending).await? == Flushed::Cut || ended {
                return Ok(());
            }
        }
    }

    /// `Cut`: the connection was cut meanwhile and its close frame is out too.
    async fn flush(
        &self,
        batch: &mut FrameBatch,
        mut ending: Option<ConnectionEnding>,
    ) -> io::Result<Flushed> {
        let mut too_late: Option<Pin<Box<Sleep>>> = None;
        let mut flushed = Flushed::All;
        while !batch.is_empty() {
            match write_some(self.socket, batch) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    batch.advance(count);
                    if !batch.is_empty() {
                        self.outbox.record_progress(batch.left());
                    }
                    if count > LARGE_BYTES {
                        // A reader that takes megabytes as fast as they come must not keep others from this worker.
                        tokio::task::yield_now().await;
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if let Some(ending) = &ending {
                too_late.get_or_insert_with(|| Box::pin(sleep_until(ending.deadline)));
            }
            let woke = poll_fn(|context| {
                match self.socket.poll_writable(context) {
                    Poll::Ready(Ok(())) => return Poll::Ready(Ok(WriteWake::Writable)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
                match &mut too_late {
                    Some(too_late) => {
                        too_late.as_mut().poll(context).map(|()| Ok(WriteWake::TooLate))
                    }
                    None => {
                        self.outbox.poll_ending(context).map(|ending| Ok(WriteWake::Ending(ending)))
                    }
                }
            });
            match woke.await? {
                // The send buffer has space again, so the other side took bytes: it is there, however slow.
                WriteWake::Writable => self.liveness.record_activity(),
                WriteWake::TooLate => return Err(io::ErrorKind::TimedOut.into()),
                WriteWake::Ending(close) => {
                    if close.urgency == CloseUrgency::AtOnce {
                        batch.drop_unstarted_frames();
                        batch.put_close(close.code, &close.reason);
                        flushed = Flushed::Cut;
                    }
                    ending = Some(close);
                }
            }
        }
        Ok(flushed)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Flushed {
    All,
    Cut,
}
