//! What goes to an agent: lines in the order they were sent.
//!
//! Promises: sending never waits, so that a cancel can be sent by who cannot wait; who can wait asks for room first, and that bounds
//! what an agent that does not read can make us hold.
//! Must not know: what is on the lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

use crate::task;

/// Who can wait does so while this much is on its way.
const QUEUED_BYTES_MAX: usize = 8 * 1_024 * 1_024;

#[derive(Debug, Clone)]
pub(super) struct Writer {
    /// No line: the end.
    lines: mpsc::UnboundedSender<Option<Vec<u8>>>,
    queue: Arc<WriteQueue>,
}

#[derive(Debug, Default)]
struct WriteQueue {
    bytes: AtomicUsize,
    has_room: Notify,
}

impl Writer {
    /// Starts writing; the task ends when it is closed or nobody reads any more.
    pub(super) fn start(output: impl AsyncWrite + Unpin + Send + 'static) -> Self {
        let (lines, received) = mpsc::unbounded_channel();
        let queue = Arc::new(WriteQueue::default());
        task::spawn(Box::pin(write_all(output, received, Arc::clone(&queue))));
        Self { lines, queue }
    }

    /// Sends a line. One to an agent that is gone is dropped: its end is told by who waits for it.
    pub(super) fn send(&self, line: Vec<u8>) {
        let bytes = line.len();
        self.queue.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.lines.send(Some(line)).is_err() {
            self.queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Ends the agent's input once all that was sent is written.
    pub(super) fn close(&self) {
        // Closed already otherwise.
        let _ = self.lines.send(None);
    }

    /// Waits until little enough is on its way, or nothing can be sent any more.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let room = self.queue.has_room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let is_full = self.queue.bytes.load(Ordering::Relaxed) > QUEUED_BYTES_MAX;
            if !is_full || self.lines.is_closed() {
                return;
            }
            room.await;
        }
    }
}

async fn write_all(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
    queue: Arc<WriteQueue>,
) {
    while let Some(Some(line)) = lines.recv().await {
        let written = output.write_all(&line).await;
        queue.bytes.fetch_sub(line.len(), Ordering::Relaxed);
        queue.has_room.notify_waiters();
        if written.is_err() {
            break; // It is gone, or does not listen: who waits for an answer is told.
        }
    }
    lines.close();
    queue.has_room.notify_waiters();
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn lines_are_written_in_order_and_the_end_follows() {
        let (output, mut read) = tokio::io::duplex(3);
        let writer = Writer::start(output);
        writer.send(b"one\n".to_vec());
        writer.send(b"two\n".to_vec());
        writer.close();
        writer.send(b"late\n".to_vec());
        let mut text = String::new();
        read.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one\ntwo\n");
    }

    #[tokio::test]
    async fn who_can_wait_waits_for_an_agent_that_does_not_read() {
        let (output, mut read) = tokio::io::duplex(64);
        let writer = Writer::start(output);
        writer.send(vec![b'x'; QUEUED_BYTES_MAX + 1]);
        let waiting = tokio::spawn({
            let writer = writer.clone();
            async move { writer.wait_for_room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        let mut taken = vec![0; QUEUED_BYTES_MAX + 1];
        read.read_exact(&mut taken).await.unwrap();
        waiting.await.unwrap();
        drop(read);
        writer.send(vec![b'x'; 2 * QUEUED_BYTES_MAX]);
        writer.wait_for_room().await;
    }
}
