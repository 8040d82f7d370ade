//! Models are asked over real sockets: what is sent, what is received, and what becomes of every fault.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod answers;
mod faults;
mod keys;

use std::time::Duration;

use agents::provider::{
    self, ModelEndpoint, ModelEvent, ModelMessage, ModelRequest, ProviderError, ProviderErrorKind,
    Timeouts,
};
use testkit::ModelServer;
use tokio::sync::mpsc;

/// What came of a question.
struct Received {
    events: Vec<ModelEvent>,
    ended: Result<(), ProviderError>,
}

impl Received {
    fn error(&self) -> &ProviderError {
        self.ended.as_ref().expect_err("the answer came whole")
    }

    fn kind(&self) -> ProviderErrorKind {
        self.error().kind
    }

    fn text(&self) -> String {
        let texts = self.events.iter().map(|event| match event {
            ModelEvent::Text(text) => text.as_str(),
            _ => "",
        });
        texts.collect()
    }

    /// Notices sent while waiting.
    fn waits(&self) -> Vec<&str> {
        let waits = self.events.iter().filter_map(|event| match event {
            ModelEvent::Waiting(text) => Some(text.as_str()),
            _ => None,
        });
        waits.collect()
    }
}

/// The server as an endpoint that is tried again at once.
fn endpoint(server: &ModelServer) -> ModelEndpoint {
    eager(ModelEndpoint::new(&server.url()).unwrap())
}

fn eager(endpoint: ModelEndpoint) -> ModelEndpoint {
    endpoint.with_timeouts(Timeouts { back_off: Duration::from_millis(1), ..Timeouts::default() })
}

fn greeting() -> ModelRequest {
    ModelRequest {
        model: "scripted".to_owned(),
        messages: vec![ModelMessage::User("hello".into())],
        ..ModelRequest::default()
    }
}

async fn send_request(
    endpoint: &ModelEndpoint,
    request: &ModelRequest,
    sender: &mpsc::Sender<ModelEvent>,
) -> Result<(), ProviderError> {
    let encoded = provider::encode(endpoint, request);
    provider::send(endpoint, encoded, sender).await
}

async fn ask(endpoint: &ModelEndpoint) -> Received {
    let (sender, mut receiver) = mpsc::channel(4);
    let request = greeting();
    let asking = async {
        let ended = send_request(endpoint, &request, &sender).await;
        drop(sender);
        ended
    };
    let receiving = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    let (ended, events) = tokio::join!(asking, receiving);
    Received { events, ended }
}
