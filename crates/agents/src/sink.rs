//! Where a turn's events go, and where the replies to some of them come from.
//!
//! Promises: who asks is registered before the question leaves, so no reply can come too early. Several may wait at
//! once. A wait that is dropped, or whose turn is over, leaves nothing behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};
use wire::Object;

use crate::event::{AgentEvent, AgentReply, Awaited};
use crate::prompt::Section;

/// Where a turn's events go. Bounded: a slow host slows the agent down.
#[derive(Debug, Clone)]
pub struct EventSink {
    events: mpsc::Sender<AgentEvent>,
    replies: Replies,
    /// Numbers of bodies to be kept, of renders and of questions about settings.
    numbers: Arc<AtomicU64>,
    room: Room,
}

/// Bytes that events may hold while they wait; more than this only if one event does.
const ROOM_BYTES: usize = 1_024 * 1_024;
/// Room is given out in pieces of this.
const PIECE_BYTES: usize = 1_024;

/// Room for the bytes of events that wait: how many may wait does not say how large they are. Clones share it.
#[derive(Debug, Clone)]
pub struct Room(Arc<Semaphore>);

impl Room {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(ROOM_BYTES / PIECE_BYTES)))
    }

    async fn enter(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        // Never closed, so never refused.
        self.0.acquire_many(pieces(bytes)).await.ok()
    }

    /// Gives back the room that an event took, once it is on its way.
    pub fn leave(&self, bytes: usize) {
        self.0.add_permits(pieces(bytes) as usize);
    }
}

fn pieces(bytes: usize) -> u32 {
    let pieces = (bytes / PIECE_BYTES).min(ROOM_BYTES / PIECE_BYTES);
    u32::try_from(pieces).unwrap_or(u32::MAX)
}

/// Nobody listens any more. The turn is over whatever the agent still does: return quietly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the turn is over")]
pub struct TurnOver;

/// A reply came for something that nobody waits for, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits for this reply")]
pub struct NobodyWaits;

/// The host's end of what an agent waits for. Clones share the same waits.
#[derive(Debug, Clone, Default)]
pub struct Replies(Arc<Mutex<HashMap<Awaited, oneshot::Sender<AgentReply>>>>);

/// One registered wait; gone when it is dropped.
struct Wait<'a> {
    replies: &'a Replies,
    awaited: Awaited,
}

impl EventSink {
    pub fn new(events: mpsc::Sender<AgentEvent>, replies: Replies) -> Self {
        Self {
            events,
            replies,
            numbers: Arc::default(),
            room: Room::new(),
        }
    }

    /// The room its events take while they wait: whoever takes them gives it back.
    pub fn room(&self) -> Room {
        self.room.clone()
    }

    pub async fn send(&self, event: AgentEvent) -> Result<(), TurnOver> {
        let taken = tokio::select! {
            biased;
            taken = self.room.enter(event.weight()) => taken,
            () = self.events.closed() => return Err(TurnOver),
        };
        self.events.send(event).await.map_err(|_| TurnOver)?;
        // It is given back by whoever takes the event; had it not been sent, it would be free by now.
        taken.into_iter().for_each(SemaphorePermit::forget);
        Ok(())
    }

    /// Has a body kept, so that it can be referred to. What could not be kept is told in its place.
    pub async fn keep(
        &self,
        body: Vec<u8>,
        content_type: &str,
    ) -> Result<Result<Value, String>, TurnOver> {
        let keep = self.numbers.fetch_add(1, Ordering::Relaxed);
        let content_type = content_type.to_owned();
        let reply = self.ask(AgentEvent::Keep {
            keep,
            body,
            content_type,
        });
        match reply.await? {
            AgentReply::Kept { reference, .. } => Ok(reference),
            other => Ok(Err(format!("an answer to something else: {other:?}"))),
        }
    }

    /// The session's settings as they are now; a turn's own are those it began with.
    pub async fn settings(&self) -> Result<Object, TurnOver> {
        let ask = self.numbers.fetch_add(1, Ordering::Relaxed);
        match self.ask(AgentEvent::SettingsAsked { ask }).await? {
            AgentReply::Settings { values, .. } => Ok(values),
            _ => Err(TurnOver),
        }
    }

    /// Renders a system prompt: the one door of every agent. What comes back is what the model is to read.
    pub async fn render(&self, sections: Vec<Section>) -> Result<Vec<Section>, TurnOver> {
        let render = self.numbers.fetch_add(1, Ordering::Relaxed);
        match self.ask(AgentEvent::Render { render, sections }).await? {
            AgentReply::Rendered { sections, .. } => Ok(sections),
            _ => Err(TurnOver),
        }
    }

    /// Says something that is answered, and waits for the answer.
    pub async fn ask(&self, event: AgentEvent) -> Result<AgentReply, TurnOver> {
        let Some(awaited) = event.awaits() else {
            panic!("nobody answers {event:?}");
        };
        let (told, reply) = oneshot::channel();
        self.replies.lock().insert(awaited, told);
        let _wait = Wait {
            replies: &self.replies,
            awaited,
        };
        self.send(event).await?;
        tokio::select! {
            reply = reply => reply.map_err(|_| TurnOver),
            () = self.events.closed() => Err(TurnOver),
        }
    }
}

impl Replies {
    fn lock(&self) -> MutexGuard<'_, HashMap<Awaited, oneshot::Sender<AgentReply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a reply to who waits for it.
    pub fn deliver(&self, reply: AgentReply) -> Result<(), NobodyWaits> {
        let waiting = self.lock().remove(&reply.answers()).ok_or(NobodyWaits)?;
        waiting.send(reply).map_err(|_| NobodyWaits)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.replies.lock().remove(&self.awaited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink() -> (EventSink, Replies, mpsc::Receiver<AgentEvent>) {
        let (events, heard) = mpsc::channel(8);
        let replies = Replies::default();
        (EventSink::new(events, replies.clone()), replies, heard)
    }

    fn steered(steer: u64) -> AgentReply {
        let message = None;
        AgentReply::Steered {
            steer,
            message,
            user: None,
        }
    }

    #[tokio::test]
    async fn several_wait_at_once_and_each_hears_its_own() {
        let (sink, replies, mut heard) = sink();
        let host = async {
            for _ in 0..2 {
                heard.recv().await.unwrap();
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
            result: serde_json::json!({}),
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

    fn large(bytes: usize) -> AgentEvent {
        AgentEvent::Content {
            body: vec![0; bytes],
            content_type: String::new(),
        }
    }

    async fn is_pending<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending()))
            .await
    }

    #[tokio::test]
    async fn large_events_wait_for_room_and_small_ones_do_not() {
        let (sink, _, mut heard) = sink();
        // One that is larger than all the room there is takes all of it.
        sink.send(large(2 * ROOM_BYTES)).await.unwrap();
        let small = AgentEvent::Title("small".to_owned());
        sink.send(small).await.unwrap();
        {
            let mut given_up = std::pin::pin!(sink.send(large(5_000)));
            assert!(is_pending(given_up.as_mut()).await);
        }
        {
            let mut next = std::pin::pin!(sink.send(large(ROOM_BYTES)));
            assert!(is_pending(next.as_mut()).await);
            sink.room().leave(2 * ROOM_BYTES);
            next.await.unwrap();
        }
        let mut weights = Vec::new();
        while let Ok(event) = heard.try_recv() {
            weights.push(event.weight());
        }
        assert_eq!(weights, [2 * ROOM_BYTES, 0, ROOM_BYTES]);
    }

    #[tokio::test]
    async fn nobody_waits_for_room_in_a_turn_that_is_over() {
        let (sink, _, heard) = sink();
        sink.send(large(ROOM_BYTES)).await.unwrap();
        let gone = async move { drop(heard) };
        let (sent, ()) = tokio::join!(sink.send(large(ROOM_BYTES)), gone);
        assert_eq!(sent, Err(TurnOver));
    }

    #[tokio::test]
    async fn a_wait_that_was_dropped_is_not_answered() {
        let (sink, replies, mut heard) = sink();
        let wait = sink.ask(AgentEvent::SteerPoint { steer: 7 });
        tokio::select! {
            biased;
            _ = wait => unreachable!("nobody answered"),
            event = heard.recv() => assert_eq!(event, Some(AgentEvent::SteerPoint { steer: 7 })),
        }
        assert_eq!(replies.deliver(steered(7)), Err(NobodyWaits));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_host_that_is_gone() {
        let (sink, replies, heard) = sink();
        let host = async move { drop(heard) };
        let (reply, ()) = tokio::join!(sink.ask(AgentEvent::SteerPoint { steer: 7 }), host);
        assert_eq!(reply, Err(TurnOver));
        assert!(replies.lock().is_empty());
    }

    #[tokio::test]
    #[should_panic(expected = "nobody answers")]
    async fn an_event_that_nobody_answers_cannot_be_asked() {
        let (sink, ..) = sink();
        let _ = sink.ask(AgentEvent::Title("t".to_owned())).await;
    }
}
