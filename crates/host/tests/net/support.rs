//! A host without a kernel, and a client that sends exactly the given bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use host::ServerLimits;
use host::blobs::Blobs;
use host::kernel_queue::QueuedInput;
use host::net::ws::frame::{Fin, Opcode, put_head};
use host::net::{Admission, Link, TlsIdentity, serve};
use host::page::PageServices;
use kernel::{Frame, Input, PeerId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const TOKEN: &str = "s3cret";
pub const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: \
    dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: \
    permessage-deflate\r\n";

pub struct Host {
    pub addr: SocketAddr,
    pub admission: Arc<Admission>,
    pub inbox: mpsc::Receiver<QueuedInput>,
    pub stop: CancellationToken,
    pub task: JoinHandle<()>,
}

impl Host {
    pub async fn start(limits: ServerLimits) -> Self {
        Self::start_with_inbox(limits, 64).await
    }

    pub async fn start_with_inbox(limits: ServerLimits, inputs_max: usize) -> Self {
        Self::start_admitting(limits, inputs_max, |admission| admission).await
    }

    /// With what a page is served, over this store.
    pub async fn start_page(limits: ServerLimits, blobs: Arc<dyn Blobs>) -> Self {
        let page = PageServices::new(blobs, Some(TOKEN)).unwrap();
        Self::start_admitting(limits, 64, |admission| admission.with_page(page)).await
    }

    pub async fn start_tls(limits: ServerLimits, tls: TlsIdentity) -> Self {
        Self::start_admitting(limits, 64, |admission| admission.with_tls(tls)).await
    }

    async fn start_admitting(
        limits: ServerLimits,
        inputs_max: usize,
        change: impl FnOnce(Admission) -> Admission,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (queue, inbox) = mpsc::channel(inputs_max);
        let stop = CancellationToken::new();
        let token = Some(TOKEN.to_owned());
        let admission = Admission::new(limits, token, Vec::new(), Vec::new());
        let admission = Arc::new(change(admission));
        admission.set_ready(true);
        let task = tokio::spawn(serve(listener, admission.clone(), queue, stop.clone()));
        Self { addr, admission, inbox, stop, task }
    }

    pub fn url(&self) -> String {
        format!("ws://{}/?tkn={TOKEN}", self.addr)
    }

    pub async fn joined(&mut self) -> (PeerId, Arc<Link>) {
        match self.inbox.recv().await {
            Some(QueuedInput::Connected { peer, link, .. }) => (peer, link),
            Some(QueuedInput::Input(input)) => panic!("expected a peer to join, not {input:?}"),
            Some(QueuedInput::Agent { event, .. }) => panic!("expected a peer, not {event:?}"),
            None => panic!("no peer can connect any more"),
        }
    }

    pub async fn input(&mut self) -> Input {
        match self.inbox.recv().await {
            Some(QueuedInput::Input(input)) => *input,
            Some(QueuedInput::Connected { .. }) => panic!("expected an input, not a peer"),
            Some(QueuedInput::Agent { event, .. }) => panic!("expected an input, not {event:?}"),
            None => panic!("nothing can come any more"),
        }
    }

    /// The method of the next message.
    pub async fn receive(&mut self) -> String {
        match self.input().await {
            Input::Received { received, .. } => match received.message {
                wire::Incoming::Notification { method, .. } => method,
                other => panic!("expected a notification, not {other:?}"),
            },
            other => panic!("expected a notification, not {other:?}"),
        }
    }

    pub async fn receive_gone(&mut self, who: PeerId) {
        match self.input().await {
            Input::Disconnected { peer } => assert_eq!(peer, who),
            other => panic!("expected a farewell, not {other:?}"),
        }
    }

    pub async fn client(&mut self) -> (Client, PeerId, Arc<Link>) {
        let client = Client::connect(self.addr).await;
        let (peer, link) = self.joined().await;
        (client, peer, link)
    }
}

pub fn text(text: impl AsRef<[u8]>) -> Frame {
    Frame::Text(Bytes::copy_from_slice(text.as_ref()))
}

pub fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// Says a request's head and reads the whole answer.
pub async fn ask(addr: SocketAddr, head: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

/// An answer, taken apart.
pub struct Answered {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answered {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// One request on a connection that closes after it.
pub async fn request(
    addr: SocketAddr,
    method: &str,
    target: &str,
    lines: &str,
    body: &[u8],
) -> Answered {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let length = match body.len() {
        0 => String::new(),
        length => format!("Content-Length: {length}\r\n"),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{length}{lines}\r\n"
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    socket.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer).unwrap();
    Answered { status: head[9..12].parse().unwrap(), head, body }
}

pub struct Client {
    pub socket: TcpStream,
}

impl Client {
    pub async fn connect(addr: SocketAddr) -> Self {
        let head = format!("GET /?tkn={TOKEN} HTTP/1.1\r\nHost: {addr}\r\n{UPGRADE}\r\n");
        let mut socket = TcpStream::connect(addr).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(socket.read_u8().await.unwrap());
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(answer.contains("\r\nSec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        assert!(!answer.contains("Extensions"), "deflate is declined");
        Self { socket }
    }

    pub async fn bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// A masked frame; `first` is FIN and opcode.
    pub async fn frame(&mut self, first: u8, payload: impl AsRef<[u8]>) {
        self.bytes(&masked(first, payload.as_ref())).await;
    }

    pub async fn notify(&mut self, method: &str) {
        self.frame(0x81, notification(method)).await;
    }

    /// FIN and opcode, and the payload, of the host's next frame.
    pub async fn read(&mut self) -> (u8, Vec<u8>) {
        let first = self.socket.read_u8().await.unwrap();
        let len = match self.socket.read_u8().await.unwrap() {
            126 => usize::from(self.socket.read_u16().await.unwrap()),
            127 => usize::try_from(self.socket.read_u64().await.unwrap()).unwrap(),
            short => usize::from(short),
        };
        let mut payload = vec![0; len];
        self.socket.read_exact(&mut payload).await.unwrap();
        (first, payload)
    }

    pub async fn read_text(&mut self) -> String {
        let (first, payload) = self.read().await;
        assert_eq!(first, 0x81);
        String::from_utf8(payload).unwrap()
    }

    /// Reads a close frame and then the end of the stream.
    pub async fn read_close(&mut self) -> (u16, String) {
        let (first, payload) = self.read().await;
        assert_eq!(first, 0x88, "{:?}", String::from_utf8_lossy(&payload));
        assert_eq!(self.socket.read(&mut [0]).await.unwrap(), 0);
        let code = u16::from_be_bytes([payload[0], payload[1]]);
        (code, String::from_utf8(payload[2..].to_vec()).unwrap())
    }
}

pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_head(&mut out, Opcode::Text, Fin::Last, payload.len());
    out[0] = first;
    out[1] |= 0x80;
    let mask = [0x11, 0x22, 0x83, 0xF4];
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    out
}
