//! The sockets that WebSocket connections run on: readiness and bytes, without a buffer between.
//!
//! Promises: nothing here waits; what is not ready says so.
//! Must not know: what is sent.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::ws::batch::FrameBatch;

/// Slices in one system call; the kernel takes up to 1,024, and this many cost little stack.
const SLICES_MAX: usize = 128;

/// A stream that both halves of a connection use at once.
pub(crate) trait SharedStream:
    AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static
{
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
}

macro_rules! bare_socket {
    ($($stream:ty),*) => {$(
        impl SharedStream for $stream {
            fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_read_ready(context)
            }

            fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.try_read(buffer)
            }

            fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_write_ready(context)
            }

            fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                self.try_write_vectored(slices)
            }
        }
    )*};
}

// The second carries what was decrypted.
bare_socket!(TcpStream, UnixStream);

/// Writes as much of a batch as the socket takes in one call.
pub(crate) fn write_some<S: SharedStream + ?Sized>(
    socket: &S,
    batch: &FrameBatch,
) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = batch.slices(&mut slices);
    socket.write_now(&slices[..count])
}
