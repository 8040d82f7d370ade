//! What an idle watcher costs. Alone in its process, so that only its own memory is counted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use host::ServerLimits;
use host::kernel_queue::QueuedInput;
use host::net::{Admission, serve};
use kernel::Frame;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Both ends are in this process, and 1,024 descriptors are a common limit.
const WATCHERS: usize = 400;
/// The whole host has 16 KiB for a connection; the network side takes a small part of it, even in a debug build.
const WATCHER_BYTES_MAX: usize = 6 * 1_024;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

fn connect(addr: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(addr).unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {addr}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    socket
}

#[test]
fn an_idle_watcher_holds_a_few_kilobytes() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let addr = listener.local_addr().unwrap();
    let (queue, mut inbox) = mpsc::channel(64);
    let admission = Arc::new(Admission::new(ServerLimits::default(), None, Vec::new(), Vec::new()));
    admission.set_ready(true);
    runtime.spawn(serve(listener, admission, queue, CancellationToken::new()));

    // Everyone has received and sent one message, so that what a busy moment leaves behind is counted too.
    let mut watchers = Vec::new();
    let mut visit = || {
        let mut socket = connect(addr);
        let Some(QueuedInput::Connected { link, .. }) = inbox.blocking_recv() else { panic!() };
        for _ in 0..100 {
            link.push(Frame::Text(Bytes::from_static(&[b'x'; 300])), 0);
        }
        let mut frames = vec![0; 100 * 304];
        socket.read_exact(&mut frames).unwrap();
        socket.write_all(&[0x81, 0x82, 0, 0, 0, 0, b'{', b'}']).unwrap();
        assert!(matches!(inbox.blocking_recv(), Some(QueuedInput::Input(_))));
        watchers.push((socket, link));
    };
    (0..20).for_each(|_| visit());
    let before = resident_bytes();
    (0..WATCHERS).for_each(|_| visit());
    let each = resident_bytes().saturating_sub(before) / WATCHERS;
    println!("{each} bytes for each idle connection");
    assert!(each < WATCHER_BYTES_MAX, "{each} bytes for each idle connection");
    runtime.shutdown_background();
}
