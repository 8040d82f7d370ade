//! The body of an answer that another node gives, as it comes.
//!
//! Promises: it ends with an error when its node is gone, or says nothing for `STALL`; a reader that is slow itself costs it
//! nothing; the connection it comes over ends with it.
//! Must not know: what it holds.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::space_directory::NodeGone;

/// A node that is asked for more and gives nothing for so long has stopped.
const STALL: Duration = Duration::from_secs(30);

pub(crate) struct ForwardedBody<B = Incoming> {
    body: B,
    gone: NodeGone,
    /// Runs while more is waited for.
    stall: Option<Pin<Box<Sleep>>>,
    /// What carries the connection: aborted when nobody wants the body any more.
    _carrying: JoinSet<()>,
}

impl<B> ForwardedBody<B> {
    pub(super) fn new(body: B, gone: NodeGone, carrying: JoinSet<()>) -> Self {
        Self { body, gone, stall: None, _carrying: carrying }
    }
}

fn stopped(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, words)
}

impl<B> Body for ForwardedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        // What is there is passed on first, however long nobody asked for it.
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.stall = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)));
        }
        if this.gone.as_mut().poll(context).is_ready() {
            let words = "the node that serves this space went away";
            return Poll::Ready(Some(Err(stopped(words))));
        }
        let stall = this.stall.get_or_insert_with(|| Box::pin(sleep(STALL)));
        if stall.as_mut().poll(context).is_ready() {
            let words = "the node that serves this space does not go on";
            return Poll::Ready(Some(Err(stopped(words))));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt, StreamBody};
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    type Sent = Result<Frame<Bytes>, Infallible>;

    fn body_of(
        mut frames: mpsc::Receiver<Sent>,
        gone: NodeGone,
    ) -> ForwardedBody<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let frames = futures_util::stream::poll_fn(move |context| frames.poll_recv(context));
        ForwardedBody::new(StreamBody::new(frames), gone, JoinSet::new())
    }

    async fn next(body: &mut (impl Body<Data = Bytes, Error = io::Error> + Unpin)) -> String {
        match body.frame().await {
            Some(Ok(frame)) => String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap(),
            Some(Err(error)) => format!("error: {error}"),
            None => "end".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_passes_while_it_goes_on_and_ends_when_it_stalls() {
        let (sender, frames) = mpsc::channel(4);
        let mut body = body_of(frames, Box::pin(std::future::pending()));
        let sending = async {
            for text in ["one", "two"] {
                sleep(STALL - Duration::from_secs(1)).await;
                let frame = Frame::data(Bytes::from_static(text.as_bytes()));
                sender.send(Ok(frame)).await.unwrap();
            }
        };
        let hearing = async { (next(&mut body).await, next(&mut body).await) };
        let ((), heard) = tokio::join!(sending, hearing);
        assert_eq!(heard, ("one".to_owned(), "two".to_owned()));
        let began = Instant::now();
        let ended = next(&mut body).await;
        assert!(ended.contains("does not go on"), "{ended}");
        assert!(began.elapsed() >= STALL && began.elapsed() < STALL * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_ends_as_soon_as_its_node_is_gone() {
        let (sender, frames) = mpsc::channel(4);
        let began = Instant::now();
        let mut body = body_of(frames, Box::pin(sleep(Duration::from_secs(3))));
        let ended = next(&mut body).await;
        assert!(ended.contains("went away"), "{ended}");
        assert!(began.elapsed() < STALL);
        drop(sender);
    }
}
