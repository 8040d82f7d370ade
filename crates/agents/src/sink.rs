//! Where a turn's events go, and where the replies to some of them come from.
//!
//! Promises: who asks is registered before the question leaves, so no reply can come too early. Several may wait at
//! once. A wait that is dropped, or whose turn is over, leaves nothing behind.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use wire::Object;

use crate::event::{AgentEvent, AgentReply, Awaited};
use crate::prompt::Section;

/// Where a turn's events go. Bounded: a slow host slows the agent down.
#[derive(Clone)]
pub struct EventSink {
    ear: Arc<dyn Ear>,
    replies: Replies,
    /// Numbers of bodies to be kept, of renders and of questions about settings.
    numbers: Arc<AtomicU64>,
}

/// Who takes what an agent says. An event is handed over in the agent's own task: each queue on its way would be one
/// more wake-up for every word.
#[async_trait]
pub trait Ear: Send + Sync {
    /// Takes events one after the other; waits while it has no room.
    async fn hear(&self, event: AgentEvent) -> Result<(), TurnOver>;

    /// Waits until nobody listens any more.
    async fn deaf(&self);
}

#[async_trait]
impl Ear for mpsc::Sender<AgentEvent> {
    async fn hear(&self, event: AgentEvent) -> Result<(), TurnOver> {
        self.send(event).await.map_err(|_| TurnOver)
    }

    async fn deaf(&self) {
        self.closed().await;
    }
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
    pub fn new(ear: impl Ear + 'static, replies: Replies) -> Self {
        Self {
            ear: Arc::new(ear),
            replies,
            numbers: Arc::default(),
        }
    }

    pub async fn send(&self, event: AgentEvent) -> Result<(), TurnOver> {
        self.ear.hear(event).await
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
            () = self.ear.deaf() => Err(TurnOver),
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
