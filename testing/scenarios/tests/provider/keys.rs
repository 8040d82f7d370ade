//! Keys go to their server and nowhere else.

use agents::provider::ProviderErrorKind::{Rejected, Unauthorized};
use agents::provider::{self, ApiKey, ModelEndpoint};
use testkit::{Answer, ModelServer};

use super::{Received, ask, endpoint};

const SECRET: &str = "sk-do-not-show-0123456789";

struct KeyFile {
    directory: tempfile::TempDir,
}

impl KeyFile {
    fn holding(text: &str) -> Self {
        let file = Self { directory: tempfile::tempdir().unwrap() };
        file.hold(text);
        file
    }

    fn hold(&self, text: &str) {
        std::fs::write(self.directory.path().join("key"), text).unwrap();
    }

    fn key(&self) -> ApiKey {
        ApiKey::from_file(self.directory.path().join("key"))
    }
}

/// All that anybody could see of it.
fn debug_text(endpoint: &ModelEndpoint, received: &Received) -> String {
    format!("{endpoint:?} {:?} {:?}", received.events, received.ended)
}

#[tokio::test]
async fn a_key_is_read_anew_for_every_question() {
    let server = ModelServer::start().await;
    server.answers([Answer::streams(["a"]), Answer::streams(["b"])]);
    server.has_models([]);
    let file = KeyFile::holding("first-key\n");
    let endpoint = endpoint(&server).with_key(file.key());
    ask(&endpoint).await.ended.unwrap();
    file.hold("  second-key");
    ask(&endpoint).await.ended.unwrap();
    provider::list_models(&endpoint).await.unwrap();
    let requests = server.requests();
    let keys: Vec<_> = requests.iter().map(|request| request.header("authorization")).collect();
    let (first, second) = (Some("Bearer first-key"), Some("Bearer second-key"));
    assert_eq!(keys, [first, second, second]);
}

#[tokio::test]
async fn a_key_that_is_missing_is_no_question() {
    let server = ModelServer::start().await;
    let key = ApiKey::from_environment("GREENROOM_TEST_NO_SUCH_VARIABLE");
    let received = ask(&endpoint(&server).with_key(key)).await;
    assert_eq!(received.kind(), Unauthorized);
    assert_eq!(
        received.error().message,
        "the environment variable GREENROOM_TEST_NO_SUCH_VARIABLE is not set"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_repeats_a_key_does_not_make_it_public() {
    let file = KeyFile::holding(SECRET);
    let echo = format!("the key {SECRET} is wrong");
    let far = format!("{}{SECRET}", "x".repeat(540));
    let in_stream = format!("data: {{\"error\":{{\"code\":400,\"message\":\"{echo}\"}}}}\n\n");
    for answer in [
        Answer::error(401, &echo),
        Answer::error(400, &far),
        Answer::status(403, &echo),
        Answer::raw(in_stream.clone()),
        Answer::raw(format!("data: {echo}\n\n")),
        Answer::streams(["a"]).writes(in_stream),
        Answer::streams(["a"]).finishes("error").writes(format!(": {echo}\n")),
    ] {
        let server = ModelServer::start().await;
        server.answers([answer]);
        let endpoint = endpoint(&server).with_key(file.key());
        let received = ask(&endpoint).await;
        let debug_text = debug_text(&endpoint, &received);
        assert!(received.ended.is_err());
        assert!(!debug_text.contains("sk-do"), "{debug_text}");
    }
}

#[tokio::test]
async fn retries_do_not_make_a_key_public() {
    let file = KeyFile::holding(SECRET);
    let server = ModelServer::start().await;
    let echo =
        format!("data: {{\"error\":{{\"code\":503,\"message\":\"{SECRET} must wait\"}}}}\n\n");
    server.answers(vec![Answer::raw(echo); 5]);
    let endpoint = endpoint(&server).with_key(file.key());
    let received = ask(&endpoint).await;
    assert_eq!(received.waits().len(), 4);
    let debug_text = debug_text(&endpoint, &received);
    assert!(!debug_text.contains("sk-do"), "{debug_text}");
}

#[tokio::test]
async fn headers_that_serve_as_keys_are_hidden_as_well() {
    let server = ModelServer::start().await;
    server.answers([Answer::error(400, &format!("bad header {SECRET}"))]);
    let endpoint = endpoint(&server).with_header("X-Api-Key", SECRET).unwrap();
    let received = ask(&endpoint).await;
    assert_eq!(server.requests()[0].header("x-api-key"), Some(SECRET));
    let debug_text = debug_text(&endpoint, &received);
    assert!(!debug_text.contains("sk-do"), "{debug_text}");
}

#[tokio::test]
async fn a_key_follows_no_redirect() {
    let file = KeyFile::holding(SECRET);
    for status in [301, 302, 303, 307, 308] {
        let (near, far) = (ModelServer::start().await, ModelServer::start().await);
        let to = format!("{}/chat/completions", far.url());
        near.answers([Answer::status(status, "").with_header("Location", &to)]);
        let received = ask(&endpoint(&near).with_key(file.key())).await;
        assert_eq!(received.kind(), Rejected);
        assert!(received.error().message.contains("redirects"));
        assert!(far.requests().is_empty());
    }
}
