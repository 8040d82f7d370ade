//! Tests of the sink of a turn: who waits, and what becomes of waits that end early.

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
    AgentReply::Steered { steer, message: None, message_id: None }
}

#[tokio::test]
async fn several_wait_at_once_and_each_gets_its_own() {
    let (sink, replies, mut received) = sink();
    let host = async {
        for _ in 0..2 {
            received.recv().await.unwrap();
        }
        let ended = AgentReply::ResultDecided { call: 1, approved: true };
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
    assert!(matches!(call, Ok(AgentReply::ResultDecided { call: 1, .. })));
    assert!(replies.is_empty());
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
    assert_eq!(replies.deliver(steered(7)), Err(UnexpectedReply));
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
    let reply = AgentReply::SteeringWaits {
        steer,
        message: serde_json::json!({"text": "left"}),
        message_id: None,
        pending_id: "m".to_owned(),
    };
    replies.deliver(reply).unwrap();
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
    assert!(replies.is_empty());
}

#[tokio::test]
#[should_panic(expected = "there is no reply to")]
async fn asking_with_an_event_that_has_no_reply_panics() {
    let (sink, ..) = sink();
    let _ = sink.ask(AgentEvent::Title("t".to_owned())).await;
}
