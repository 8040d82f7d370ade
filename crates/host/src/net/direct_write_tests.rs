//! What is written by whoever pushes it: small things that nothing is before.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kernel::Frame;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::outbox::{CloseUrgency, Outbox, WrittenBy};
use super::reader::Liveness;
use super::socket::SharedStream;
use super::text_run::LinkItem;
use super::writer::SocketWriter;

const FRAGMENT_BYTES: usize = 1 << 20;

/// A socket that takes so many bytes with each call, and any number after those.
#[derive(Default)]
struct NarrowSocket {
    takes: Mutex<VecDeque<io::Result<usize>>>,
    written: Mutex<Vec<u8>>,
}

impl NarrowSocket {
    fn taking(takes: impl IntoIterator<Item = io::Result<usize>>) -> Arc<Self> {
        Arc::new(Self { takes: Mutex::new(takes.into_iter().collect()), written: Mutex::default() })
    }

    fn written(&self) -> Vec<u8> {
        self.written.lock().clone()
    }
}

impl SharedStream for NarrowSocket {
    fn poll_readable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn read_now(&self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        let takes = self.takes.lock().pop_front();
        let count = takes.unwrap_or(Ok(bytes.len()))?.min(bytes.len());
        self.written.lock().extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

impl AsyncRead for NarrowSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for NarrowSocket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

fn push(outbox: &Outbox, text: &str, window_ms: u32) {
    let text = Bytes::copy_from_slice(text.as_bytes());
    let item = LinkItem::Frame(Frame::Text(text));
    outbox.push([(item, window_ms)], WrittenBy::Pusher);
}

/// A text as one frame of a server.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, u8::try_from(text.len()).unwrap()];
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Has the writer look for work, which there is none of: from then on it sleeps.
fn let_writer_sleep(outbox: &Outbox) {
    let mut context = Context::from_waker(Waker::noop());
    let taken = outbox.poll_take(&mut context, &mut Vec::new(), &mut None);
    assert!(taken.is_pending());
}

/// The writer of a connection, which writes until the connection ends.
async fn write_to_the_end(outbox: &Outbox, socket: &NarrowSocket) {
    let writer =
        SocketWriter { socket, outbox, liveness: &Liveness::new(), fragment_bytes: FRAGMENT_BYTES };
    writer.run().await.unwrap();
}

fn close_frame(code: u16) -> Vec<u8> {
    let [high, low] = code.to_be_bytes();
    vec![0x88, 2, high, low]
}

#[tokio::test]
async fn a_small_frame_is_written_at_once_if_the_writer_sleeps() {
    let (outbox, socket) = (Outbox::new(100, 10_000), NarrowSocket::taking([]));
    let _attached = outbox.attach(socket.clone(), FRAGMENT_BYTES);
    push(&outbox, "the writer does not sleep yet", 0);
    assert_eq!(socket.written(), [0; 0]);
    let mut context = Context::from_waker(Waker::noop());
    let mut items = Vec::new();
    let taken = outbox.poll_take(&mut context, &mut items, &mut None);
    assert!(taken.is_ready() && items.len() == 1);
    let_writer_sleep(&outbox);
    push(&outbox, "a", 0);
    push(&outbox, "b", 0);
    assert_eq!(socket.written(), [frame("a"), frame("b")].concat());
    let_writer_sleep(&outbox);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_what_waits_nor_before_its_time() {
    let (outbox, socket) = (Outbox::new(100, 100_000), NarrowSocket::taking([]));
    let _attached = outbox.attach(socket.clone(), FRAGMENT_BYTES);
    let_writer_sleep(&outbox);
    push(&outbox, "held", 50);
    assert_eq!(socket.written(), [0; 0]);
    push(&outbox, "now", 0);
    let both = [frame("held"), frame("now")].concat();
    assert_eq!(socket.written(), [0; 0], "the writer was woken to set a timer");
    outbox.end(1000, "", CloseUrgency::AfterQueue);
    write_to_the_end(&outbox, &socket).await;
    assert_eq!(socket.written(), [both, close_frame(1000)].concat());
}

#[tokio::test]
async fn what_is_large_or_has_to_be_cut_is_left_to_the_writer() {
    for (bytes, fragment_bytes) in [(4_097, FRAGMENT_BYTES), (100, 50)] {
        let (outbox, socket) = (Outbox::new(100, 100_000), NarrowSocket::taking([]));
        let _attached = outbox.attach(socket.clone(), fragment_bytes);
        let_writer_sleep(&outbox);
        push(&outbox, &"x".repeat(bytes), 0);
        assert_eq!(socket.written(), [0; 0], "{bytes} bytes");
    }
}

#[tokio::test]
async fn after_it_is_detached_only_the_writer_writes() {
    let (outbox, socket) = (Outbox::new(100, 100_000), NarrowSocket::taking([]));
    let attached = outbox.attach(socket.clone(), FRAGMENT_BYTES);
    let_writer_sleep(&outbox);
    drop(attached);
    push(&outbox, "a", 0);
    assert_eq!(socket.written(), [0; 0]);
    assert_eq!(Arc::strong_count(&socket), 1);
}

#[tokio::test]
async fn the_writer_goes_on_where_the_socket_took_no_more() {
    let (first, second) = (frame("the first message"), frame("the second"));
    for taken in 1..first.len() {
        let takes = [Ok(taken), Ok(1), Err(io::ErrorKind::WouldBlock.into())];
        let (outbox, socket) = (Outbox::new(100, 10_000), NarrowSocket::taking(takes));
        let _attached = outbox.attach(socket.clone(), FRAGMENT_BYTES);
        let_writer_sleep(&outbox);
        push(&outbox, "the first message", 0);
        assert_eq!(socket.written(), first[..taken]);
        push(&outbox, "the second", 0);
        assert_eq!(socket.written(), first[..taken], "it would overtake");
        outbox.pong(Vec::new());
        outbox.end(1000, "", CloseUrgency::AfterQueue);
        write_to_the_end(&outbox, &socket).await;
        let pong = vec![0x8a, 0];
        let whole = [first.clone(), pong, second.clone(), close_frame(1000)];
        assert_eq!(socket.written(), whole.concat(), "after {taken} bytes");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_finishes_the_frame_that_has_begun() {
    let first = frame("the first message");
    for taken in 1..first.len() {
        let takes = [Ok(taken)];
        let (outbox, socket) = (Outbox::new(100, 10_000), NarrowSocket::taking(takes));
        let _attached = outbox.attach(socket.clone(), FRAGMENT_BYTES);
        let_writer_sleep(&outbox);
        push(&outbox, "the first message", 0);
        push(&outbox, "never sent", 0);
        outbox.end(1008, "", CloseUrgency::AtOnce);
        write_to_the_end(&outbox, &socket).await;
        let whole = [first.clone(), close_frame(1008)];
        assert_eq!(socket.written(), whole.concat(), "after {taken} bytes");
    }
}

#[tokio::test]
async fn a_socket_that_fails_is_found_out_by_the_writer() {
    let blocked = || Err(io::ErrorKind::WouldBlock.into());
    let broken = || Err(io::ErrorKind::BrokenPipe.into());
    let (outbox, socket) = (Outbox::new(100, 10_000), NarrowSocket::taking([blocked(), broken()]));
    let _attached = outbox.attach(socket.clone(), FRAGMENT_BYTES);
    let_writer_sleep(&outbox);
    push(&outbox, "a", 0);
    assert_eq!(socket.written(), [0; 0]);
    let writer = SocketWriter {
        socket: &*socket,
        outbox: &outbox,
        liveness: &Liveness::new(),
        fragment_bytes: FRAGMENT_BYTES,
    };
    let error = writer.run().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
