//! Two nodes with real sockets and real keys, one of which owns the space; and strangers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use kernel::{Frame, Input};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::heartbeat::boot_now;
use super::living_nodes::LivingNodes;
use super::peer_dial::{DialError, dial};
use super::peer_listener::PeerService;
use super::relay::{ClientRoute, RelayRefusal, Relays};
use super::relay_stream::{RelayCut, pass_on};
use super::space_directory::{NodeGone, RelayedClient, SpaceDirectory};
use super::{
    NodeFingerprint, NodeId, PeerIdentity, PeerNode, SpaceId, SpaceLocation, SpaceUnavailable,
};
use crate::ServerLimits;
use crate::kernel_queue::QueuedInput;
use crate::net::ws::frame::{FrameDecoder, WsEvent, close};
use crate::net::{Admission, Link, SpaceHandle};

/// A table of spaces and nodes.
#[derive(Default)]
struct TestDirectory {
    places: Mutex<BTreeMap<String, SpaceLocation>>,
    living: Mutex<Vec<NodeFingerprint>>,
    heard: Arc<LivingNodes>,
    lookups: AtomicUsize,
}

#[async_trait]
impl SpaceDirectory for TestDirectory {
    async fn locate(&self, space: &str) -> Result<SpaceLocation, SpaceUnavailable> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        self.places.lock().get(space).cloned().ok_or(SpaceUnavailable::Missing)
    }

    async fn take(&self, space: SpaceId) -> bool {
        let places = self.places.lock();
        let place = places.get(&space.to_string());
        matches!(place, Some(SpaceLocation::Here(_)))
    }

    async fn living_nodes(&self) -> Result<Vec<NodeFingerprint>, SpaceUnavailable> {
        Ok(self.living.lock().clone())
    }

    fn wait_until_gone(&self, node: NodeId) -> NodeGone {
        let heard = Arc::clone(&self.heard);
        Box::pin(async move { heard.wait_until_gone(node).await })
    }
}

struct TestNode {
    identity: Arc<PeerIdentity>,
    directory: Arc<TestDirectory>,
    relays: Relays,
    place: PeerNode,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl TestNode {
    async fn start() -> Self {
        let identity = Arc::new(PeerIdentity::make().unwrap());
        let directory = Arc::new(TestDirectory::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = PeerNode {
            id: 1,
            name: "node".to_owned(),
            address: listener.local_addr().unwrap().to_string(),
            fingerprint: identity.fingerprint().as_bytes().to_vec(),
        };
        let shared: Arc<dyn SpaceDirectory> = directory.clone();
        let handle = PeerService::new(Arc::clone(&identity), Arc::clone(&shared), || {
            "some_total 1\n".to_owned()
        });
        let stop = CancellationToken::new();
        let serving = tokio::spawn(Arc::new(handle).serve(listener, stop.clone()));
        Self {
            relays: Relays::new(Arc::clone(&identity), shared),
            identity,
            directory,
            place,
            stop,
            serving,
        }
    }

    fn put(&self, space: &str, place: SpaceLocation) {
        self.directory.places.lock().insert(space.to_owned(), place);
    }

    /// A space whose kernel is played by the test.
    fn put_here(&self, space: &str, limits: ServerLimits) -> TestSpace {
        let admission = Arc::new(Admission::new(limits, None, Vec::new(), Vec::new()));
        admission.set_ready(true);
        let (queue, inbox) = mpsc::channel(64);
        let handle = SpaceHandle::new(space, Arc::clone(&admission), queue);
        self.put(space, SpaceLocation::Here(handle));
        TestSpace { inbox, admission }
    }

    fn trust(&self, nodes: &[&Self]) {
        let fingerprints = nodes.iter().map(|node| node.identity.fingerprint());
        *self.directory.living.lock() = fingerprints.collect();
    }
}

struct TestSpace {
    inbox: mpsc::Receiver<QueuedInput>,
    admission: Arc<Admission>,
}

impl TestSpace {
    /// Who joins, and then is named.
    async fn joined(&mut self) -> Arc<Link> {
        let Some(QueuedInput::Connected { link, .. }) = self.inbox.recv().await else {
            panic!("expected a peer")
        };
        let named = self.inbox.recv().await.and_then(QueuedInput::into_input);
        assert!(matches!(named, Some(Input::Identified { .. })));
        link
    }

    async fn received_ping(&mut self) {
        let received = self.inbox.recv().await.and_then(QueuedInput::into_input);
        assert!(matches!(received, Some(Input::Received { .. })));
    }
}

fn client() -> RelayedClient {
    RelayedClient {
        space: "red".to_owned(),
        token: "3f9c".to_owned(),
        principal: "ann".to_owned(),
        role: "owner".to_owned(),
        address: "192.0.2.7:5000".parse().unwrap(),
    }
}

/// Node A, which relays, and node B, which owns `red`.
async fn two_nodes(limits: ServerLimits) -> (TestNode, TestNode, TestSpace) {
    let (a, b) = (TestNode::start().await, TestNode::start().await);
    let red = b.put_here("red", limits);
    a.put("red", SpaceLocation::At(b.place.clone()));
    a.trust(&[&a, &b]);
    b.trust(&[&a, &b]);
    (a, b, red)
}

/// The client's end of a connection that A passes on.
struct RelayedEnd {
    socket: DuplexStream,
    decoder: FrameDecoder,
    unread: Vec<u8>,
    cut: Arc<RelayCut>,
    passing: JoinHandle<()>,
}

impl RelayedEnd {
    async fn open(node: &TestNode, early: &[u8]) -> Self {
        let reached = node.relays.reach(&client()).await.unwrap();
        let ClientRoute::There(owner) = reached else {
            panic!("the space is elsewhere");
        };
        let (socket, far) = duplex(1_024);
        let (early, cut) = (early.to_vec(), Arc::new(RelayCut::new(&node.stop)));
        let cutting = Arc::clone(&cut);
        let passing = tokio::spawn(async move {
            pass_on(far, early, *owner, &cutting).await;
        });
        Self {
            socket,
            // What a server sends is not masked: heads are turned into masked ones before they are decoded.
            decoder: FrameDecoder::new(1 << 24),
            unread: Vec::new(),
            cut,
            passing,
        }
    }

    async fn fill(&mut self, count: usize) -> bool {
        while self.unread.len() < count {
            let mut bytes = [0; 4_096];
            match self.socket.read(&mut bytes).await {
                Ok(0) | Err(_) => return false,
                Ok(read) => self.unread.extend_from_slice(&bytes[..read]),
            }
        }
        true
    }

    /// The next message or word of control, of however many frames; `None`: the connection ended.
    async fn next(&mut self) -> Option<WsEvent> {
        loop {
            let frame = self.next_frame().await?;
            let mut input = frame.as_slice();
            while !input.is_empty() {
                match self.decoder.next(&mut input).unwrap() {
                    Some(WsEvent::Large { .. }) | None => {} // the rest of it is still to come
                    Some(event) => return Some(event),
                }
            }
        }
    }

    /// The bytes of a frame, as if a client had sent it.
    async fn next_frame(&mut self) -> Option<Vec<u8>> {
        if !self.fill(2).await {
            return None;
        }
        let extended = match self.unread[1] {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        assert!(self.fill(2 + extended).await);
        let length = match extended {
            0 => usize::from(self.unread[1]),
            _ => self.unread[2..2 + extended]
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte)),
        };
        let head = 2 + extended;
        assert!(self.fill(head + length).await, "a frame was cut");
        let mut frame: Vec<u8> = self.unread.drain(..head + length).collect();
        frame[1] |= 0x80;
        frame.splice(head..head, [0; 4]);
        Some(frame)
    }

    async fn close_code(&mut self) -> u16 {
        loop {
            match self.next().await {
                Some(WsEvent::Close(code)) => return code.unwrap(),
                Some(_) => {}
                None => panic!("the connection ended without a close frame"),
            }
        }
    }
}

#[tokio::test]
async fn a_client_hears_to_connect_again_when_its_owner_vanishes_or_its_node_stops() {
    let (a, b, mut red) = two_nodes(ServerLimits::default()).await;
    let mut end = RelayedEnd::open(&a, &[]).await;
    let _link = red.joined().await;
    // As if the process were killed: no word, only the end of the sockets.
    b.serving.abort();
    assert!(b.serving.await.unwrap_err().is_cancelled());
    assert_eq!(end.close_code().await, 1012);

    let (a, _b, mut red) = two_nodes(ServerLimits::default()).await;
    let mut end = RelayedEnd::open(&a, &[]).await;
    let link = red.joined().await;
    link.push(Frame::Text(Bytes::from("x".repeat(200_000))), 0);
    assert!(end.fill(10).await, "in the middle of a frame");
    a.stop.cancel();
    let whole = end.next().await;
    assert!(whole == Some(WsEvent::Message("x".repeat(200_000))), "the frame ends first");
    assert_eq!(end.close_code().await, 1012);
}

/// A process that was stopped says nothing, and its sockets stay open.
#[tokio::test]
async fn a_client_hears_to_connect_again_when_its_owner_is_judged() {
    let (a, b, mut red) = two_nodes(ServerLimits::default()).await;
    let mut end = RelayedEnd::open(&a, &[]).await;
    let link = red.joined().await;
    let heard = &a.directory.heard;
    heard.note(boot_now().plus(1_000), &[b.place.id]);
    link.push(Frame::Text(Bytes::from_static(b"still here")), 0);
    let told = end.next().await;
    assert!(told == Some(WsEvent::Message("still here".to_owned())));
    heard.note(boot_now().plus(2_000), &[]);
    assert_eq!(end.close_code().await, 1012);
    drop(end.socket);
    end.passing.await.unwrap();
    assert!(!b.serving.is_finished(), "it never ended its sockets");
}

#[tokio::test]
async fn a_request_is_not_waited_for_when_its_owner_is_judged() {
    let (a, b) = (TestNode::start().await, TestNode::start().await);
    // It shows its key, takes the request and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stopped = b.place.clone();
    stopped.address = listener.local_addr().unwrap().to_string();
    let acceptor = TlsAcceptor::from(b.identity.server());
    let heard = Arc::clone(&a.directory.heard);
    let owner = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(socket).await.unwrap();
        let mut taken = [0; 4_096];
        let count = stream.read(&mut taken).await.unwrap();
        assert!(taken[..count].starts_with(b"GET /forward/status "));
        heard.note(boot_now().plus(1_000), &[]);
        // Until the other side ends it.
        while stream.read(&mut taken).await.is_ok_and(|count| count > 0) {}
    });
    let (mut near, far) = duplex(1_024);
    let (relays, node) = (&a.relays, &stopped);
    let answer = service_fn(|request: hyper::Request<hyper::body::Incoming>| async move {
        let (parts, body) = request.into_parts();
        let answered = relays.forward(node, &parts, body, client().address);
        let refused = answered.await.err();
        Ok::<_, Infallible>(Response::new(format!("{refused:?}")))
    });
    let http = hyper::server::conn::http1::Builder::new();
    let serving = http.serve_connection(TokioIo::new(far), answer);
    let asking = async {
        let request = b"GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        near.write_all(request).await.unwrap();
        let mut answer = String::new();
        near.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (served, answer) = tokio::join!(serving, asking);
    served.unwrap();
    assert!(answer.ends_with("Some(TryAgain)"), "{answer}");
    owner.await.unwrap();
}

/// A text as a client sends it, with a mask that changes nothing.
fn text_frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap();
    assert!(length < 126, "a short text");
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

#[tokio::test]
async fn frames_pass_both_ways_and_count_on_the_owner() {
    let (a, _b, mut red) = two_nodes(ServerLimits::default()).await;
    let ping = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{}}}}"#);
    // The first comes right behind the request that opens the connection.
    let mut end = RelayedEnd::open(&a, &text_frame(&ping(1))).await;
    let link = red.joined().await;
    assert_eq!(red.admission.connections(), 1, "it counts on the owner");
    assert_eq!(a.relays.counts(), (1, 0));
    red.received_ping().await;
    // In two pieces.
    let second = text_frame(&ping(2));
    end.socket.write_all(&second[..7]).await.unwrap();
    end.socket.write_all(&second[7..]).await.unwrap();
    red.received_ping().await;
    let texts = ["one".to_owned(), "x".repeat(70_000), "y".repeat(200_000)];
    for text in &texts {
        link.push(Frame::Text(Bytes::from(text.clone())), 0);
    }
    for text in texts {
        assert!(end.next().await == Some(WsEvent::Message(text)));
    }
    drop(end.socket);
    let left = red.inbox.recv().await.and_then(QueuedInput::into_input);
    assert!(matches!(left, Some(Input::Disconnected { .. })));
    end.passing.await.unwrap();
    let mut again = tokio::time::interval(std::time::Duration::from_millis(10));
    while red.admission.connections() > 0 {
        again.tick().await;
    }
}

#[tokio::test]
async fn a_client_that_is_cut_is_heard_no_more_though_it_reads_nothing() {
    let (a, _b, mut red) = two_nodes(ServerLimits::default()).await;
    let mut end = RelayedEnd::open(&a, &[]).await;
    let link = red.joined().await;
    // More than fits between the node and the client, so that whatever is told to it waits.
    link.push(Frame::Text(Bytes::from("x".repeat(200_000))), 0);
    assert!(end.fill(10).await, "it is on its way");
    end.cut.cut(close::POLICY, "the token was revoked");
    let late = text_frame(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#);
    // It may find its connection closed already.
    let _closed = end.socket.write_all(&late).await;
    let next = red.inbox.recv().await.and_then(QueuedInput::into_input);
    assert!(matches!(next, Some(Input::Disconnected { .. })), "nothing but the end is heard of it");
    end.passing.await.unwrap();
}

#[tokio::test]
async fn the_owner_hears_when_a_relayed_client_is_gone() {
    let (a, _b, mut red) = two_nodes(ServerLimits::default()).await;
    let end = RelayedEnd::open(&a, &[]).await;
    let _link = red.joined().await;
    drop(end.socket);
    let left = red.inbox.recv().await.and_then(QueuedInput::into_input);
    assert!(matches!(left, Some(Input::Disconnected { .. })));
    end.passing.await.unwrap();
}

#[tokio::test]
async fn a_stranger_is_sent_away_before_it_is_heard() {
    let (_a, b, mut red) = two_nodes(ServerLimits::default()).await;
    let stranger = PeerIdentity::make().unwrap();
    let refused = dial(&stranger, &b.place, &client(), Box::pin(pending())).await;
    assert!(matches!(refused, Err(DialError::Unreachable(_))), "nobody published its certificate");
    assert!(red.inbox.try_recv().is_err());
    // A node that lives, but is not the one that the row names, is told nothing.
    let (a, other, _red) = two_nodes(ServerLimits::default()).await;
    let disguised =
        PeerNode { fingerprint: stranger.fingerprint().as_bytes().to_vec(), ..other.place.clone() };
    let refused = dial(&a.identity, &disguised, &client(), Box::pin(pending())).await;
    assert!(matches!(refused, Err(DialError::Unreachable(_))));
    assert_eq!(other.directory.lookups.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_node_that_was_published_after_the_last_look_is_let_in() {
    let (_a, b, mut red) = two_nodes(ServerLimits::default()).await;
    let late = TestNode::start().await;
    late.put("red", SpaceLocation::At(b.place.clone()));
    assert_eq!(late.relays.reach(&client()).await.err(), Some(RelayRefusal::TryAgain));
    b.trust(&[&late]);
    let mut again = tokio::time::interval(std::time::Duration::from_millis(50));
    loop {
        again.tick().await;
        if late.relays.reach(&client()).await.is_ok() {
            break;
        }
    }
    red.joined().await;
}

#[tokio::test]
async fn one_hop_and_no_more_then_the_client_may_try_again() {
    let (a, b, _red) = two_nodes(ServerLimits::default()).await;
    // Both believe that it is the other's.
    b.put("red", SpaceLocation::At(a.place.clone()));
    let reached = a.relays.reach(&client()).await;
    assert_eq!(reached.err(), Some(RelayRefusal::TryAgain));
    let lookups = |node: &TestNode| node.directory.lookups.load(Ordering::SeqCst);
    assert_eq!((lookups(&a), lookups(&b)), (4, 4), "three times again");
    assert_eq!(a.relays.counts(), (0, 1));
    let unknown = RelayedClient { space: "blue".to_owned(), ..client() };
    let reached = a.relays.reach(&unknown).await;
    assert_eq!(reached.err(), Some(RelayRefusal::NoSpace));
}

#[tokio::test]
async fn an_owner_that_is_full_refuses_and_a_role_that_is_none_too() {
    let limits = ServerLimits { connections_max: 1, ..ServerLimits::default() };
    let (a, _b, mut red) = two_nodes(limits).await;
    let _end = RelayedEnd::open(&a, &[]).await;
    let _link = red.joined().await;
    let reached = a.relays.reach(&client()).await;
    let full = RelayRefusal::Refused(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reached.err(), Some(full));
    let king = RelayedClient { role: "king".to_owned(), ..client() };
    let reached = a.relays.reach(&king).await;
    let bad = RelayRefusal::Refused(StatusCode::BAD_REQUEST);
    assert_eq!(reached.err(), Some(bad));
}
