//! The address that other nodes connect to: who is let in there, and what is answered.
//!
//! Promises: nothing of a peer is read before it has shown the key of a node that lives; a client that is relayed here is served
//! here or not at all, and so is a request that is passed on; both count among `connections_max` like any other.
//! Must not know: where a space is if not here, what clients say.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::server::conn::http1::{Builder, Parts};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::forward::{FORWARD_PREFIX, FORWARDED_HEADER};
use super::peer_dial::{CLIENT_HEADER, RELAY_PATH, RELAY_PROTOCOL};
use super::peer_trust::PeerTrust;
use super::space_directory::{RelayedClient, SpaceDirectory};
use super::successor::TAKE_PREFIX;
use super::{NodeFingerprint, PeerIdentity, SpaceId, SpaceLocation};
use crate::net::{
    Access, AnswerBody, ConnectionSlot, Handshakes, SpaceHandle, SpaceHandles, answer_forwarded,
    run_connection, spawn_decrypting_relay,
};

/// Peers that have not shown their key yet; when there are more, the oldest is closed.
const HANDSHAKES_MAX: usize = 256;
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 16 * 1_024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections that miss their own deadlines when the node stops are ended after this.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// What answers peers.
pub(crate) struct PeerService {
    identity: Arc<PeerIdentity>,
    directory: Arc<dyn SpaceDirectory>,
    trust: PeerTrust,
    /// What an operator's collector reads.
    describe_metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// What answers requests of clients that other nodes pass on, once clients are served.
    handles: OnceLock<Arc<SpaceHandles>>,
}

impl PeerService {
    pub(crate) fn new(
        identity: Arc<PeerIdentity>,
        directory: Arc<dyn SpaceDirectory>,
        describe_metrics: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            identity,
            trust: PeerTrust::new(Arc::clone(&directory)),
            directory,
            describe_metrics: Box::new(describe_metrics),
            handles: OnceLock::new(),
        }
    }

    /// Requests of clients that other nodes pass on are answered from now on.
    pub(crate) fn serve_clients(&self, handles: Arc<SpaceHandles>) {
        // The first stays: there is one listener.
        let _was_set = self.handles.set(handles);
    }

    /// Serves until `stop`; then no peer is let in, and those that are there have ended when this returns.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let handshakes = Handshakes::new(HANDSHAKES_MAX);
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = tasks.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, _)) => {
                    let (service, stop) = (Arc::clone(&self), stop.clone());
                    let handshake = handshakes.begin().await;
                    let served = async move {
                        let eviction = handshake.eviction();
                        let opening = timeout(HANDSHAKE_WAIT, service.admit(socket));
                        let opened = tokio::select! {
                            opened = opening => opened.ok().flatten(),
                            () = eviction.cancelled() => None,
                            () = stop.cancelled() => None,
                        };
                        drop(handshake);
                        if let Some(stream) = opened {
                            service.answer(stream, &stop).await;
                        }
                    };
                    tasks.spawn(served.boxed());
                }
                Err(error) => {
                    // What is short is most likely file descriptors, and the oldest silent socket has one to give.
                    handshakes.evict_oldest();
                    tracing::debug!(%error, "cannot accept a peer; trying again after a pause");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        let all_ended = async { while tasks.join_next().await.is_some() {} };
        if timeout(STOP_WAIT, all_ended).await.is_err() {
            tasks.shutdown().await;
        }
    }

    /// The encrypted connection, if it is with a node that lives.
    async fn admit(&self, socket: TcpStream) -> Option<TlsStream<TcpStream>> {
        // Frames are passed on as they come. Without the option it is only slower.
        let _ = socket.set_nodelay(true);
        let accepted = TlsAcceptor::from(self.identity.server()).accept(socket);
        let stream = match accepted.await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection between nodes failed");
                return None;
            }
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let fingerprint = NodeFingerprint::of(certificates.first()?);
        if self.trust.is_living(fingerprint).await {
            return Some(stream);
        }
        tracing::warn!(%fingerprint, "a connection to the address for nodes was refused: it does not come from a node");
        None
    }

    /// Answers requests until one makes a client's connection of it, and serves that.
    async fn answer(self: Arc<Self>, stream: TlsStream<TcpStream>, stop: &CancellationToken) {
        let answers = PeerAnswers { service: Arc::clone(&self), accepted: Arc::default() };
        let accepted = Arc::clone(&answers.accepted);
        let mut http = Builder::new()
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .timer(TokioTimer::new())
            .header_read_timeout(HANDSHAKE_WAIT)
            .serve_connection(TokioIo::new(stream), answers);
        let ended = tokio::select! {
            ended = poll_fn(|context| Pin::new(&mut http).poll(context)) => ended,
            () = stop.cancelled() => return,
        };
        if let Err(error) = ended {
            return tracing::debug!(%error, "a connection between nodes ended");
        }
        let Parts { io, read_buf, .. } = http.into_parts();
        let accepted = accepted.lock().take();
        let Some(accepted) = accepted else {
            return; // it asked for something else, and has its answer
        };
        if let Err(error) = accepted.serve(io.into_inner(), &read_buf, stop).await {
            tracing::debug!(%error, "a relayed client could not be served");
        }
    }

    async fn answer_request(
        &self,
        request: Request<Incoming>,
    ) -> (Response<AnswerBody>, Option<AcceptedRelay>) {
        match request.uri().path() {
            RELAY_PATH => match self.accept_client(request.headers()).await {
                Ok(accepted) => (switch_protocols(), Some(accepted)),
                Err((status, words)) => (respond(status, words.to_owned()), None),
            },
            "/metrics" => (respond(StatusCode::OK, (self.describe_metrics)()), None),
            path if path.starts_with(TAKE_PREFIX) => (self.take_space(path).await, None),
            path if path.starts_with(FORWARD_PREFIX) => (self.answer_client(request).await, None),
            _ => {
                let words = "nodes ask for nothing here\n".to_owned();
                (respond(StatusCode::NOT_FOUND, words), None)
            }
        }
    }

    /// Answers a request of a client that came to another node, as if it had come here; its token is checked here.
    async fn answer_client(&self, mut request: Request<Incoming>) -> Response<AnswerBody> {
        let client = request.headers().get(FORWARDED_HEADER);
        let client = client.and_then(|client| client.to_str().ok()?.parse().ok());
        let target = request.uri().path_and_query().map(|it| it.as_str());
        let target = target.and_then(|target| target.strip_prefix(FORWARD_PREFIX));
        let target = target.and_then(|target| target.parse::<Uri>().ok());
        let (Some(client), Some(target)) = (client, target) else {
            let words = "the request does not say what is asked, and by whom\n";
            return respond(StatusCode::BAD_REQUEST, words.to_owned());
        };
        let Some(handles) = self.handles.get() else {
            let words = "this node serves no clients yet\n";
            return respond(StatusCode::SERVICE_UNAVAILABLE, words.to_owned());
        };
        *request.uri_mut() = target;
        answer_forwarded(request, Arc::clone(handles), client).await
    }

    /// Loads a space that another node has given back, so that its clients find it served.
    async fn take_space(&self, path: &str) -> Response<AnswerBody> {
        let space = path.strip_prefix(TAKE_PREFIX);
        let Some(space) = space.and_then(|space| space.parse::<SpaceId>().ok()) else {
            let words = "a space is asked for by its number\n";
            return respond(StatusCode::BAD_REQUEST, words.to_owned());
        };
        if self.directory.take(space).await {
            respond(StatusCode::OK, String::new())
        } else {
            let words = "this node does not serve the space\n";
            respond(StatusCode::MISDIRECTED_REQUEST, words.to_owned())
        }
    }

    async fn accept_client(
        &self,
        headers: &HeaderMap,
    ) -> Result<AcceptedRelay, (StatusCode, &'static str)> {
        let bad = (StatusCode::BAD_REQUEST, "the request does not say who the client is\n");
        let wants_relay = headers.get(UPGRADE).is_some_and(|protocol| protocol == RELAY_PROTOCOL);
        let about = headers.get(CLIENT_HEADER).filter(|_| wants_relay);
        let about = about.and_then(|about| URL_SAFE_NO_PAD.decode(about.as_bytes()).ok());
        let client = about
            .and_then(|about| serde_json::from_slice::<RelayedClient>(&about).ok())
            .ok_or(bad)?;
        let access = client.access().ok_or(bad)?;
        let handle = match self.directory.locate(&client.space).await {
            Ok(SpaceLocation::Here(handle)) => handle,
            Ok(SpaceLocation::At(_)) | Err(_) => {
                let words = "this node does not own the space\n";
                return Err((StatusCode::MISDIRECTED_REQUEST, words));
            }
        };
        let full = (StatusCode::SERVICE_UNAVAILABLE, "the node has too many connections\n");
        let place = handle.admission.place_in_space().await;
        let crowded = "the space has as many connections as it may\n";
        let place = place.map_err(|_| (StatusCode::TOO_MANY_REQUESTS, crowded))?;
        let slot = handle.admission.try_admit().ok_or(full)?.in_space(place);
        Ok(AcceptedRelay { handle, access, slot })
    }
}

/// A client of another node that is served here.
struct AcceptedRelay {
    handle: SpaceHandle,
    access: Access,
    slot: ConnectionSlot,
}

impl AcceptedRelay {
    async fn serve(
        self,
        stream: TlsStream<TcpStream>,
        early: &[u8],
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let socket = spawn_decrypting_relay(stream)?;
        // The handle is held to the end: a space stays loaded while somebody has a way in.
        let (admission, queue) = (&self.handle.admission, self.handle.queue.clone());
        let early = early.to_vec();
        run_connection(socket, early, admission, &self.access, queue, stop).await;
        drop(self.slot);
        Ok(())
    }
}

fn respond(status: StatusCode, words: String) -> Response<AnswerBody> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(words))));
    *response.status_mut() = status;
    response
}

fn switch_protocols() -> Response<AnswerBody> {
    let mut response = respond(StatusCode::SWITCHING_PROTOCOLS, String::new());
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(RELAY_PROTOCOL));
    response
}

/// What hyper calls for each request of a peer.
struct PeerAnswers {
    service: Arc<PeerService>,
    accepted: Arc<Mutex<Option<AcceptedRelay>>>,
}

impl Service<Request<Incoming>> for PeerAnswers {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (service, place) = (Arc::clone(&self.service), Arc::clone(&self.accepted));
        Box::pin(async move {
            let (response, accepted) = service.answer_request(request).await;
            *place.lock() = accepted;
            Ok(response)
        })
    }
}
