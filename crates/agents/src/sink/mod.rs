//! The way of a turn's events to who receives them, and of the replies back to who waits for them.
//!
//! Promises: who asks is registered before the question leaves, so no reply can come too early. Several may wait at
//! once. A wait that is dropped, or whose turn is over, leaves nothing behind.
//! Must not know: what events mean.

mod pending_replies;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_api::{
    AgentEvent, AgentReply, AwaitedReply, CallEnd, CallEstimate, CallId, CallKind, CallPermit,
    CallUsage, ClientFileCall, ClientFileFailure, ClientFileReply, ClientToolOffer, EventSink,
    HostServices, Lowering, ModelCall, ModelOutput, PastTurn, Section, StoreError, TerminalOffer,
    TurnOver, UserMessage, WaitingSteering,
};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;
use wire::published::state::ContentRef;
use wire::{NamedBody, Object};

pub use pending_replies::{PendingReplies, UnexpectedReply};

/// Who takes what an agent sends. An event is handed over in the agent's own task: each queue on its way would be one
/// more wake-up for every piece of text.
#[async_trait]
pub trait EventReceiver: HostServices {
    /// Takes events one after the other; waits while the queue is full.
    async fn accept(&self, event: AgentEvent) -> Result<(), TurnOver>;

    /// Waits until no more events are accepted.
    async fn closed(&self);

    /// From now on people, or other turns, are waited for: the agent does not work.
    fn pause_work(&self);

    /// Such a wait is over.
    fn resume_work(&self);

    /// These are the session's settings now.
    fn settings_read(&self, _settings: &Object) {}
}

/// The sink of one turn.
pub struct TurnSink<R> {
    receiver: R,
    replies: PendingReplies,
    /// Numbers of renders and of questions about settings, tools and steering.
    numbers: AtomicU64,
    /// The wait for steering that goes on, whoever of those who wait is dropped: each message is returned once.
    steering: tokio::sync::Mutex<Option<SteeringWait>>,
    /// Held while the agent notes something: one note is answered at a time.
    noting: tokio::sync::Mutex<()>,
}

/// A wait for a steering message.
struct SteeringWait {
    steer: u64,
    reply: oneshot::Receiver<AgentReply>,
    /// Whether the host has been asked.
    is_sent: bool,
}

/// The agent waits for people or other turns, until this is dropped.
struct WorkPause<'a, R: EventReceiver>(&'a R);

impl<'a, R: EventReceiver> WorkPause<'a, R> {
    fn begin(receiver: &'a R) -> Self {
        receiver.pause_work();
        Self(receiver)
    }
}

impl<R: EventReceiver> Drop for WorkPause<'_, R> {
    fn drop(&mut self) {
        self.0.resume_work();
    }
}

impl<R: EventReceiver> TurnSink<R> {
    pub fn new(receiver: R, replies: PendingReplies) -> Self {
        Self {
            receiver,
            replies,
            numbers: AtomicU64::default(),
            steering: tokio::sync::Mutex::default(),
            noting: tokio::sync::Mutex::default(),
        }
    }

    fn begin_steering_wait(&self) -> SteeringWait {
        let steer = self.next_number();
        SteeringWait {
            steer,
            reply: self.replies.register(AwaitedReply::SteeringMessage(steer)),
            is_sent: false,
        }
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

#[async_trait]
impl<R: EventReceiver> EventSink for TurnSink<R> {
    async fn send(&self, event: AgentEvent) -> Result<(), TurnOver> {
        self.receiver.accept(event).await
    }

    async fn ask(&self, event: AgentEvent) -> Result<AgentReply, TurnOver> {
        let awaited = event.awaits();
        assert!(awaited.is_some(), "there is no reply to {event:?}");
        let Some(awaited) = awaited else {
            return Err(TurnOver); // asserted above
        };
        let (reply, _wait) = self.replies.wait_for(awaited);
        let pauses = event.pauses_work();
        self.send(event).await?;
        let _pause = pauses.then(|| WorkPause::begin(&self.receiver));
        tokio::select! {
            reply = reply => reply.map_err(|_| TurnOver),
            () = self.receiver.closed() => Err(TurnOver),
        }
    }

    async fn note_chat(&self, notes: Bytes) -> Result<(), TurnOver> {
        let _noting = self.noting.lock().await;
        self.ask(AgentEvent::ChatNotes(notes)).await.map(|_| ())
    }

    async fn steering(&self) -> Result<WaitingSteering, TurnOver> {
        let mut current = self.steering.lock().await;
        let wait = current.get_or_insert_with(|| self.begin_steering_wait());
        if !wait.is_sent {
            let steer = wait.steer;
            self.send(AgentEvent::SteeringAwaited { steer }).await?;
            wait.is_sent = true;
        }
        let reply = tokio::select! {
            reply = &mut wait.reply => reply.map_err(|_| TurnOver)?,
            () = self.receiver.closed() => return Err(TurnOver),
        };
        *current = None;
        match reply {
            AgentReply::SteeringWaits { message, message_id, pending_id, .. } => {
                Ok(WaitingSteering { message, message_id, pending_id })
            }
            _ => Err(TurnOver), // replies are routed by what they answer
        }
    }

    async fn settings(&self) -> Result<Object, TurnOver> {
        let ask = self.next_number();
        match self.ask(AgentEvent::SettingsRequested { ask }).await? {
            AgentReply::Settings { values, .. } => {
                self.receiver.settings_read(&values);
                Ok(values)
            }
            _ => Err(TurnOver), // replies are routed by what they answer
        }
    }

    async fn client_tools(&self) -> Result<Vec<ClientToolOffer>, TurnOver> {
        let ask = self.next_number();
        match self.ask(AgentEvent::ClientToolsRequested { ask }).await? {
            AgentReply::ClientTools { tools, .. } => Ok(tools),
            _ => Err(TurnOver), // replies are routed by what they answer
        }
    }

    async fn render(&self, sections: Vec<Section>) -> Result<Vec<Section>, TurnOver> {
        let render = self.next_number();
        match self.ask(AgentEvent::Render { render, sections }).await? {
            AgentReply::Rendered { sections, .. } => Ok(sections),
            _ => Err(TurnOver), // replies are routed by what they answer
        }
    }
}

#[async_trait]
impl<R: EventReceiver> HostServices for TurnSink<R> {
    async fn store_body(
        &self,
        body: Vec<u8>,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        self.receiver.store_body(body, content_type).await
    }

    async fn store_named_body(
        &self,
        body: NamedBody,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        self.receiver.store_named_body(body, content_type).await
    }

    async fn read_message(&self, id: String) -> Option<Arc<UserMessage>> {
        self.receiver.read_message(id).await
    }

    async fn read_history(&self) -> Result<Vec<PastTurn>, StoreError> {
        self.receiver.read_history().await
    }

    async fn record_lowering(&self, lowering: Lowering) {
        self.receiver.record_lowering(lowering).await;
    }

    async fn record_output(&self, output: ModelOutput) {
        self.receiver.record_output(output).await;
    }

    async fn record_call(&self, call: ModelCall) -> Option<CallId> {
        self.receiver.record_call(call).await
    }

    fn record_call_end(&self, call: CallId, end: CallEnd) {
        self.receiver.record_call_end(call, end);
    }

    async fn begin_call(
        &self,
        estimate: CallEstimate,
        kind: CallKind,
    ) -> Result<CallPermit, StoreError> {
        self.receiver.begin_call(estimate, kind).await
    }

    async fn release_call(&self) {
        self.receiver.release_call().await;
    }

    async fn settle_call(&self, used: CallUsage) {
        self.receiver.settle_call(used).await;
    }

    async fn extend_budget(&self) -> Result<(), StoreError> {
        self.receiver.extend_budget().await
    }

    async fn show_terminal(&self, offer: TerminalOffer) -> Result<String, StoreError> {
        self.receiver.show_terminal(offer).await
    }

    async fn use_client_file(
        &self,
        call: ClientFileCall,
    ) -> Result<ClientFileReply, ClientFileFailure> {
        self.receiver.use_client_file(call).await
    }
}
