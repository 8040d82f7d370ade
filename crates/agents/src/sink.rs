//! The way of a turn's events to who receives them, and of the replies back to who waits for them.
//!
//! Promises: who asks is registered before the question leaves, so no reply can come too early. Several may wait at
//! once. A wait that is dropped, or whose turn is over, leaves nothing behind.
//! Must not know: what events mean.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_api::{
    AgentEvent, AgentReply, Awaited, CallEnd, CallEstimate, CallId, CallKind, CallPermit, CallUse,
    ClientFileCall, ClientFileFailure, ClientFileReply, ClientToolOffer, EventSink, HostServices,
    Lowering, ModelCall, ModelOutput, PastTurn, Section, StoreError, TerminalOffer, TurnOver,
    UserMessage, WaitingSteering,
};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;
use wire::Object;
use wire::published::state::ContentRef;

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
    /// The wait for steering that goes on, whoever of those who wait is dropped: what is told by it is told once.
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

/// A reply came that no call waits for, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no call waits for this reply")]
pub struct NotAwaited;

/// The replies that an agent waits for. Clones share the same waits.
#[derive(Debug, Clone, Default)]
pub struct PendingReplies(Arc<Mutex<HashMap<Awaited, oneshot::Sender<AgentReply>>>>);

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

/// One registered wait; gone when it is dropped.
struct Wait<'a> {
    replies: &'a PendingReplies,
    awaited: Awaited,
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
        let (sender, reply) = oneshot::channel();
        let awaited = Awaited::SteeringMessage(steer);
        self.replies.lock().insert(awaited, sender);
        SteeringWait {
            steer,
            reply,
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
        let (sender, reply) = oneshot::channel();
        self.replies.lock().insert(awaited, sender);
        let _wait = Wait {
            replies: &self.replies,
            awaited,
        };
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
            AgentReply::SteeringWaits {
                message,
                message_id,
                pending_id,
                ..
            } => Ok(WaitingSteering {
                message,
                message_id,
                pending_id,
            }),
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

    async fn settle_call(&self, used: CallUse) {
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

impl PendingReplies {
    fn lock(&self) -> MutexGuard<'_, HashMap<Awaited, oneshot::Sender<AgentReply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a reply to who waits for it.
    pub fn deliver(&self, reply: AgentReply) -> Result<(), NotAwaited> {
        let waiting = self.lock().remove(&reply.answers()).ok_or(NotAwaited)?;
        waiting.send(reply).map_err(|_| NotAwaited)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.replies.lock().remove(&self.awaited);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A receiver that tests read from.

    use tokio::sync::mpsc;

    use super::*;

    /// Sends events on; a stored body becomes its own name.
    pub(crate) struct ChannelReceiver(mpsc::Sender<AgentEvent>);

    pub(crate) fn channel_sink(
        sender: mpsc::Sender<AgentEvent>,
        replies: PendingReplies,
    ) -> TurnSink<ChannelReceiver> {
        TurnSink::new(ChannelReceiver(sender), replies)
    }

    #[async_trait]
    impl HostServices for ChannelReceiver {
        async fn store_body(
            &self,
            body: Vec<u8>,
            content_type: &str,
        ) -> Result<ContentRef, StoreError> {
            Ok(ContentRef {
                uri: String::from_utf8_lossy(&body).into_owned(),
                size_hint: i64::try_from(body.len()).ok(),
                content_type: Some(content_type.to_owned()),
                nonce: None,
            })
        }

        async fn read_message(&self, _: String) -> Option<Arc<UserMessage>> {
            None
        }

        async fn read_history(&self) -> Result<Vec<PastTurn>, StoreError> {
            Ok(Vec::new())
        }

        async fn record_lowering(&self, _: Lowering) {}

        async fn record_output(&self, _: ModelOutput) {}

        async fn record_call(&self, _: ModelCall) -> Option<CallId> {
            None
        }

        fn record_call_end(&self, _: CallId, _: CallEnd) {}

        async fn begin_call(&self, _: CallEstimate, _: CallKind) -> Result<CallPermit, StoreError> {
            Ok(CallPermit::Granted { unpriced: false })
        }

        async fn release_call(&self) {}

        async fn settle_call(&self, _: CallUse) {}

        async fn extend_budget(&self) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[async_trait]
    impl EventReceiver for ChannelReceiver {
        async fn accept(&self, event: AgentEvent) -> Result<(), TurnOver> {
            self.0.send(event).await.map_err(|_| TurnOver)
        }

        async fn closed(&self) {
            self.0.closed().await;
        }

        fn pause_work(&self) {}

        fn resume_work(&self) {}
    }
}

#[cfg(test)]
mod tests {
    use agent_api::ToolResult;
    use tokio::sync::mpsc;

    use super::testing::{ChannelReceiver, channel_sink};
    use super::*;

    type Received = mpsc::Receiver<AgentEvent>;

    fn sink() -> (TurnSink<ChannelReceiver>, PendingReplies, Received) {
        let (events, received) = mpsc::channel(8);
        let replies = PendingReplies::default();
        (channel_sink(events, replies.clone()), replies, received)
    }

    fn steered(steer: u64) -> AgentReply {
        AgentReply::Steered {
            steer,
            message: None,
            message_id: None,
        }
    }

    #[tokio::test]
    async fn several_wait_at_once_and_each_gets_its_own() {
        let (sink, replies, mut received) = sink();
        let host = async {
            for _ in 0..2 {
                received.recv().await.unwrap();
            }
            let ended = AgentReply::ResultDecided {
                call: 1,
                approved: true,
            };
            // The same number for something else is another wait.
            for reply in [steered(1), ended, steered(1)] {
                let _ = replies.deliver(reply);
            }
        };
        let steer = sink.ask(AgentEvent::SteerPoint { steer: 1 });
        let call = sink.ask(AgentEvent::ToolCompleted {
            call: 1,
            result: ToolResult::new(true, "did"),
            review: true,
        });
        let (steer, call, ()) = tokio::join!(steer, call, host);
        assert_eq!(steer, Ok(steered(1)));
        assert!(matches!(
            call,
            Ok(AgentReply::ResultDecided { call: 1, .. })
        ));
        assert!(replies.lock().is_empty());
    }

    #[tokio::test]
    async fn a_wait_that_was_dropped_is_not_answered() {
        let (sink, replies, mut received) = sink();
        let wait = sink.ask(AgentEvent::SteerPoint { steer: 7 });
        tokio::select! {
            biased;
            _ = wait => unreachable!("there was no reply"),
            event = received.recv() => assert_eq!(event, Some(AgentEvent::SteerPoint { steer: 7 })),
        }
        assert_eq!(replies.deliver(steered(7)), Err(NotAwaited));
    }

    #[tokio::test]
    async fn a_wait_for_steering_may_be_dropped_and_loses_nothing() {
        let (sink, replies, mut received) = sink();
        let asked = tokio::select! {
            biased;
            _ = sink.steering() => unreachable!("there was no reply"),
            event = received.recv() => event,
        };
        let Some(AgentEvent::SteeringAwaited { steer }) = asked else {
            panic!("{asked:?}");
        };
        let told = AgentReply::SteeringWaits {
            steer,
            message: serde_json::json!({"text": "left"}),
            message_id: None,
            pending_id: "m".to_owned(),
        };
        replies.deliver(told).unwrap();
        let steering = sink.steering().await.unwrap();
        assert_eq!(steering.pending_id, "m");
        assert!(received.try_recv().is_err(), "it was asked for once");
        let (steering, event) = tokio::join!(
            async {
                tokio::select! {
                    steering = sink.steering() => Some(steering),
                    () = tokio::task::yield_now() => None,
                }
            },
            received.recv()
        );
        assert_eq!(steering, None, "what was returned is not returned again");
        assert!(matches!(event, Some(AgentEvent::SteeringAwaited { .. })));
        drop(received);
        assert_eq!(sink.steering().await, Err(TurnOver));
    }

    #[tokio::test]
    async fn notes_at_the_same_time_are_answered_one_after_the_other() {
        let (sink, replies, mut received) = sink();
        let host = async {
            for _ in 0..2 {
                let event = received.recv().await;
                assert!(matches!(event, Some(AgentEvent::ChatNotes(_))));
                replies.deliver(AgentReply::ChatNoted).unwrap();
            }
        };
        let note = |text: &'static str| sink.note_chat(Bytes::from_static(text.as_bytes()));
        let (first, second, ()) = tokio::join!(note("a"), note("b"), host);
        assert_eq!((first, second), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn asking_ends_when_the_host_is_gone() {
        let (sink, replies, received) = sink();
        let host = async move { drop(received) };
        let (reply, ()) = tokio::join!(sink.ask(AgentEvent::SteerPoint { steer: 7 }), host);
        assert_eq!(reply, Err(TurnOver));
        assert!(replies.lock().is_empty());
    }

    #[tokio::test]
    #[should_panic(expected = "there is no reply to")]
    async fn asking_with_an_event_that_has_no_reply_panics() {
        let (sink, ..) = sink();
        let _ = sink.ask(AgentEvent::Title("t".to_owned())).await;
    }
}
