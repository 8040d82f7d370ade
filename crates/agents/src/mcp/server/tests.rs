//! Tokens that are refused or taken back in the middle of a session (MC-14), with a server of a few lines.

use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::mcp::auth::TokenReason;
use crate::mcp::call::{Elicitation, ElicitationAnswer};
use crate::mcp::testing::{FakeHttp, token, token_wanted};

const LONG: Duration = Duration::from_secs(30);

struct NobodyAsked;

#[async_trait]
impl CallHost for NobodyAsked {
    async fn show_progress(&self, _line: String) {}

    async fn elicit(&self, _elicitation: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Cancel
    }

    async fn withdraw(&self) {}
}

fn challenge() -> TokenChallenge {
    TokenChallenge { reason: TokenReason::Expired, header: "Bearer".to_owned() }
}

#[tokio::test]
async fn mc_14_a_call_that_is_silent_or_stopped_loses_no_token() {
    let fake = FakeHttp::start().await;
    let server = fake.connect("old", Duration::from_millis(300)).await;
    let connection = server.connection().unwrap();
    // Another request was refused meanwhile.
    connection.shared.note_challenge(challenge());
    let called = server.call("slow", JsonObject::new(), &NobodyAsked).await;
    assert!(matches!(called, Err(McpError::CallSilent(_))), "{:?}", called.err());
    assert_eq!(server.state(), ServerState::Ready);
    assert!(Arc::ptr_eq(&connection, &server.connection().unwrap()));

    let fake = FakeHttp::start().await;
    let server = fake.connect("old", LONG).await;
    server.connection().unwrap().shared.note_challenge(challenge());
    let (called, ()) = tokio::join!(server.call("slow", JsonObject::new(), &NobodyAsked), async {
        let mut poll = tokio::time::interval(Duration::from_millis(10));
        while fake.called.lock().is_empty() {
            poll.tick().await;
        }
        server.stop();
    });
    assert_eq!(called.err(), Some(McpError::Stopped));
    server.wait_until_settled().await;
    assert_eq!(server.state(), ServerState::Stopped);
}

#[tokio::test]
async fn mc_14_a_refusal_of_an_older_connection_changes_nothing() {
    let fake = FakeHttp::start().await;
    let server = fake.connect("old", LONG).await;
    let older = server.connection().unwrap();
    server.set_token(Some(token(&fake.url, "new")));
    let called = server.call("work", JsonObject::new(), &NobodyAsked).await;
    assert!(called.is_ok(), "{:?}", called.err());
    assert_eq!(*fake.called.lock(), ["work"], "it was made once");
    let newer = server.connection().unwrap();
    assert!(!Arc::ptr_eq(&older, &newer));

    assert!(server.lose_token(&older, challenge()), "make it again");
    assert_eq!(server.state(), ServerState::Ready);
    assert!(Arc::ptr_eq(&newer, &server.connection().unwrap()));
    server.stop();
    assert!(!server.lose_token(&newer, challenge()));
    assert_eq!(server.state(), ServerState::Stopped);
}

#[tokio::test]
async fn mc_14_a_token_that_is_refused_is_wanted_anew() {
    let fake = FakeHttp::start().await;
    let server = fake.connect("old", LONG).await;
    let called = server.call("work", JsonObject::new(), &NobodyAsked).await;
    assert_eq!(called.err(), Some(McpError::TokenWanted(challenge())));
    server.wait_until_settled().await;
    // This one does not say where a token is got.
    let state = server.state();
    assert!(matches!(state, ServerState::Failed(McpError::NoSignIn(_))), "{state:?}");
    assert!(fake.called.lock().is_empty());
}

#[tokio::test]
async fn h_318_a_call_without_a_token_waits_for_no_sign_in() {
    let fake = FakeHttp::start().await;
    let server = fake.connect("old", LONG).await;
    let called = server.call_without_token("work", JsonObject::new(), &NobodyAsked);
    assert_eq!(called.await.err(), Some(McpError::OthersToken));
    server.stop();
    server.set_state(token_wanted());
    let called = server.call_without_token("work", JsonObject::new(), &NobodyAsked);
    assert_eq!(called.await.err(), Some(McpError::OthersToken));
    assert!(fake.called.lock().is_empty());
}

#[tokio::test]
async fn mc_14_what_was_opened_with_a_token_that_was_taken_back_ends() {
    let fake = FakeHttp::start().await;
    let server = fake.connect("old", LONG).await;
    server.end_lost_token();
    assert_eq!(server.state(), ServerState::Ready, "it is held");
    server.set_token(Some(token(&fake.url, "new")));
    server.end_lost_token();
    assert_eq!(server.state(), ServerState::Ready, "another one is");
    server.set_token(None);
    server.end_lost_token();
    assert_eq!(server.state(), ServerState::Stopped);
    assert!(!server.has_token());
}
