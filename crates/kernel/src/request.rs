//! The host's own requests to clients: a frame goes out to one peer, and its answer, its deadline or the peer's end comes
//! back, exactly once. Who was asked is not changed while the question is out.

use serde::Serialize;
use serde_json::Value;
use wire::{Id, RpcError, Timestamp, rpc};

use crate::Kernel;
use crate::frame::Frame;
use crate::io::{PeerId, Timer};
use crate::render::Rendering;

/// A request that is out.
pub(crate) struct Request {
    pub peer: PeerId,
    pub sent: Timestamp,
    pub purpose: Purpose,
}

/// What its answer is for.
pub(crate) enum Purpose {
    Render(Box<Rendering>),
}

/// How a request ended.
pub(crate) enum Reply {
    /// With this result; `bytes` is what the message took on the wire.
    Result {
        value: Value,
        bytes: usize,
    },
    Error(RpcError),
    Timeout,
    PeerGone,
}

impl Kernel {
    /// Asks a client something; gives the purpose back if too much is asked of it already.
    pub(crate) fn ask_client<T: Serialize>(
        &mut self,
        peer: PeerId,
        method: &str,
        params: &T,
        deadline_ms: u64,
        purpose: Purpose,
    ) -> Result<(), Purpose> {
        let out = self.requests.values();
        if out.filter(|request| request.peer == peer).count() >= self.limits.requests_in_flight_max
        {
            return Err(purpose);
        }
        self.next_request += 1;
        let request = self.next_request;
        let frame = Frame::Text(rpc::request(request, method, params));
        self.say(peer, frame);
        self.wake_in(Timer::Request { request }, deadline_ms);
        let sent = self.now;
        self.requests.insert(
            request,
            Request {
                peer,
                sent,
                purpose,
            },
        );
        Ok(())
    }

    /// A client answered. What nobody asked it, or not any more, is ignored.
    pub(crate) fn answered(
        &mut self,
        peer: PeerId,
        id: &Id,
        result: Result<Value, RpcError>,
        bytes: usize,
    ) {
        let Id::Number(number) = id else { return };
        let Some(request) = number.as_u64() else {
            return;
        };
        let asked = self.requests.get(&request);
        if asked.is_none_or(|asked| asked.peer != peer) {
            return;
        }
        let reply = match result {
            Ok(value) => Reply::Result { value, bytes },
            Err(error) => Reply::Error(error),
        };
        self.conclude(request, reply);
    }

    pub(crate) fn request_timed_out(&mut self, request: u64) {
        self.conclude(request, Reply::Timeout);
    }

    /// A connection is gone: nothing it was asked will be answered.
    pub(crate) fn end_requests(&mut self, peer: PeerId) {
        let out = self.requests.iter();
        let out = out.filter(|(_, request)| request.peer == peer);
        let ended: Vec<u64> = out.map(|(request, _)| *request).collect();
        for request in ended {
            self.conclude(request, Reply::PeerGone);
        }
    }

    fn conclude(&mut self, request: u64, reply: Reply) {
        let Some(Request { sent, purpose, .. }) = self.requests.remove(&request) else {
            return;
        };
        let ms = u64::try_from(self.now.ms_since(sent)).unwrap_or(0);
        match purpose {
            Purpose::Render(rendering) => self.transform_ended(*rendering, reply, ms),
        }
    }
}
