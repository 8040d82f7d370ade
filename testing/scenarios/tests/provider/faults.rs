//! Servers that are busy, gone, wrong or mad.

use std::time::Duration;

use agents::provider::ProviderErrorKind::{
    Interrupted, Rejected, Unauthorized, Unavailable, Unreadable,
};
use agents::provider::{self, ModelEndpoint, ModelEvent, Timeouts};
use testkit::{Answer, Gate, ModelServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::{Received, ask, eager, endpoint, greeting, send_request};

/// The server gives this answer five times over.
async fn ask_one_with(answer: Answer) -> (Received, usize) {
    let server = ModelServer::start().await;
    server.answers(vec![answer; 5]);
    let received = ask(&endpoint(&server)).await;
    (received, server.requests().len())
}

#[tokio::test]
async fn a_busy_server_is_tried_again_with_a_notice() {
    let server = ModelServer::start().await;
    server.answers([
        Answer::error(429, "slow down"),
        Answer::status(503, "<html>"),
        Answer::hangs_up(),
        Answer::error(500, "oops"),
        Answer::streams(["Hello"]),
    ]);
    let received = ask(&endpoint(&server)).await;
    received.ended.as_ref().unwrap();
    assert_eq!(received.text(), "Hello");
    let waits = received.waits();
    let again = "; trying again in less than a second";
    assert_eq!(waits[0], format!("the model server is busy (429){again}"));
    assert_eq!(waits[1], format!("the model server is busy (503){again}"));
    assert!(waits[2].contains("cannot be reached (") && waits[2].ends_with(again), "{}", waits[2]);
    assert_eq!(waits[3], format!("the model server failed (500){again}"));
    assert_eq!(waits.len(), 4);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.body == requests[0].body));
}

#[tokio::test]
async fn after_five_tries_it_is_enough() {
    for status in [408, 409, 429, 500, 502, 503, 504, 529] {
        let (received, tries) = ask_one_with(Answer::error(status, "not now")).await;
        assert_eq!(tries, 5, "{status}");
        assert_eq!(received.waits().len(), 4);
        assert_eq!(received.kind(), Unavailable);
        assert!(received.error().message.ends_with(&format!("({status}): not now")));
    }
}

#[tokio::test]
async fn permanent_errors_are_not_tried_again() {
    let quota = r#"{"error":{"message":"pay first","code":"insufficient_quota"}}"#;
    for (answer, kind, message) in [
        (Answer::error(400, "too long"), Rejected, "does not take the request (400): too long"),
        (Answer::error(401, "who?"), Unauthorized, "requires a key (401): who?"),
        (Answer::error(402, "pay"), Unauthorized, "requires payment (402): pay"),
        (Answer::error(403, "no"), Unauthorized, "requires a key (403): no"),
        (Answer::error(404, "no m"), Rejected, "does not know this model or address (404): no m"),
        (Answer::status(413, ""), Rejected, "does not take requests of this size (413)"),
        (
            Answer::error(400, "this model takes no image input"),
            Rejected,
            "does not take the request (400): this model takes no image input",
        ),
        (Answer::status(422, "bad"), Rejected, "does not take the request (422): bad"),
        (Answer::status(501, "bad"), Unavailable, "failed in an unknown way (501): bad"),
        (Answer::status(429, quota), Unavailable, "is busy (429): pay first"),
        (
            Answer::raw("data: {\"error\":{\"code\":400,\"message\":\"x\"}}\n\n"),
            Rejected,
            "reports an error: x",
        ),
        (
            Answer::raw("garbage"),
            Unreadable,
            "answers with some other text; is the base URL right?",
        ),
        (Answer::raw("<html>"), Unreadable, "answers with a web page; is the base URL right?"),
        (Answer::raw("data: {{{\n\n"), Unreadable, "sent an invalid response: {{{"),
        (
            Answer::raw(b"data: \xff\xfe\n\n"),
            Unreadable,
            "sent an invalid response: \u{FFFD}\u{FFFD}",
        ),
    ] {
        let (received, tries) = ask_one_with(answer).await;
        assert_eq!((received.kind(), tries), (kind, 1), "{}", received.error());
        assert_eq!(received.error().message, format!("the model server {message}"));
        assert!(received.events.is_empty());
    }
}

#[tokio::test]
async fn a_server_may_set_the_retry_time() {
    let server = ModelServer::start().await;
    let busy = || Answer::error(429, "busy");
    server.answers([busy().with_header("Retry-After", "1"), Answer::streams(["Hello"])]);
    let received = ask(&endpoint(&server)).await;
    assert_eq!(received.waits(), ["the model server is busy (429); trying again in 1 s"]);
    assert_eq!(received.text(), "Hello");

    server.answers([busy().with_header("Retry-After", "3600")]);
    let received = ask(&endpoint(&server)).await;
    assert_eq!(received.kind(), Unavailable);
    assert!(received.waits().is_empty());
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_asked_for_again() {
    for answer in [
        Answer::streams(["Hel"]).cuts(),
        Answer::streams(["Hel"]).cuts().until_close(),
        Answer::streams(["Hel"]).writes("data: {\"choices\":[{\"delta\":{\"content\":\"l").cuts(),
        Answer::streams(["Hel"]).without_finish(),
        Answer::streams(["Hel"]).finishes("error"),
        Answer::streams(["Hel"]).without_finish().without_end_mark().until_close(),
    ] {
        let (received, tries) = ask_one_with(answer).await;
        assert_eq!((received.kind(), tries), (Interrupted, 1), "{}", received.error());
        assert_eq!(received.text(), "Hel");
        assert!(!received.events.iter().any(|event| matches!(event, ModelEvent::Stopped(_))));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_its_first_word_is_asked_for_again() {
    for answer in [
        Answer::streams([]).cuts(),
        Answer::streams([]).cuts().until_close(),
        Answer::raw(""),
        Answer::raw(": keep-alive\n\n"),
        Answer::raw("data: {\"error\":{\"code\":503,\"message\":\"loading\"}}\n\n"),
        Answer::hangs_up(),
    ] {
        let server = ModelServer::start().await;
        server.answers([answer, Answer::streams(["Hello"])]);
        let received = ask(&endpoint(&server)).await;
        received.ended.as_ref().unwrap();
        assert_eq!((received.text().as_str(), received.waits().len()), ("Hello", 1));
    }
    let (received, tries) = ask_one_with(Answer::streams([]).cuts()).await;
    assert_eq!((received.kind(), tries), (Unavailable, 5));
}

#[tokio::test]
async fn a_complaint_in_mid_answer_ends_it() {
    let complaint = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n";
    let (received, tries) = ask_one_with(Answer::streams(["Hel"]).writes(complaint)).await;
    assert_eq!((received.kind(), tries), (Unavailable, 1));
    assert_eq!(received.error().message, "the model server reports an error: overloaded");
    assert_eq!(received.text(), "Hel");
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    let endpoint = eager(ModelEndpoint::new(&format!("http://{address}/v1")).unwrap());
    let received = ask(&endpoint).await;
    let message = format!("the model server at {address} cannot be reached (connection refused)");
    assert_eq!((received.kind(), received.waits().len()), (Unavailable, 4));
    assert_eq!(received.error().message, message);
    let listed = provider::list_models(&endpoint).await.unwrap_err();
    assert_eq!((listed.kind, listed.message), (Unavailable, message));
}

#[tokio::test]
async fn a_server_without_tls_is_not_tried_again() {
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = plain.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // The next attempt finds no server.
        drop(plain);
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let endpoint = eager(ModelEndpoint::new(&format!("https://{address}/v1")).unwrap());
    let received = ask(&endpoint).await;
    assert_eq!(received.kind(), Unavailable);
    assert!(
        received
            .error()
            .message
            .starts_with("no encrypted connection to the model server at 127.0.0.1:")
    );
    assert!(received.waits().is_empty());
}

#[tokio::test]
async fn silence_has_an_end() {
    let server = ModelServer::start().await;
    let never = Gate::new();
    let impatient = |first_event, idle| {
        endpoint(&server).with_timeouts(Timeouts {
            first_event: Duration::from_millis(first_event),
            idle: Duration::from_millis(idle),
            ..Timeouts::default()
        })
    };
    let (short, long) = (20, 60_000);

    server.answers([Answer::streams(["Hel"]).waits(&never)]);
    let received = ask(&impatient(long, short)).await;
    assert_eq!((received.kind(), received.text().as_str()), (Interrupted, "Hel"));
    assert_eq!(
        received.error().message,
        "the answer of the model server broke off (silent for 0.02 s)"
    );

    // Trying again would take as long again.
    server.answers([Answer::streams([]).begins_after(&never), Answer::streams([]).waits(&never)]);
    for _ in 0..2 {
        let received = ask(&impatient(short, long)).await;
        assert_eq!(received.kind(), Unavailable);
        assert_eq!(
            received.error().message,
            "the model server did not begin to answer within 0.02 s"
        );
        assert!(received.events.is_empty());
    }
}

#[tokio::test]
async fn whoever_waits_is_told_how_long_a_server_is_silent() {
    let server = ModelServer::start().await;
    let (first, second) = (Gate::new(), Gate::new());
    let endpoint = endpoint(&server).with_timeouts(Timeouts {
        silence_shown: Duration::from_millis(20),
        ..Timeouts::default()
    });
    let answer = Answer::streams(["Hel"]).waits(&second);
    server.answers([answer.then_streams(["lo"]).begins_after(&first)]);
    let (sender, mut receiver) = mpsc::channel(4);
    let asking = tokio::spawn(async move { send_request(&endpoint, &greeting(), &sender).await });
    let mut seen = Vec::new();
    while let Some(event) = receiver.recv().await {
        match event {
            ModelEvent::Silent(lasted) => {
                assert!(lasted >= Duration::from_millis(20));
                let gate = if seen.is_empty() { &first } else { &second };
                gate.open();
            }
            ModelEvent::Text(text) => seen.push(text),
            _ => {}
        }
    }
    asking.await.unwrap().unwrap();
    assert_eq!(seen, ["Hel", "lo"], "both waits were seen, or it would wait on");
}

#[tokio::test]
async fn a_refusal_of_what_could_be_smaller_is_not_tried_again() {
    let server = ModelServer::start().await;
    let stream =
        "data: {\"error\":{\"code\":500,\"message\":\"image input is not supported\"}}\n\n";
    let refusals = [Answer::error(500, "image input is not supported"), Answer::raw(stream)];
    let count = refusals.len();
    server.answers(refusals);
    for _ in 0..count {
        let (sender, _receiver) = mpsc::channel(4);
        let mut request = greeting();
        request.reducible = true;
        let ended = send_request(&endpoint(&server), &request, &sender).await;
        let blame = ended.unwrap_err().blame;
        let image = std::collections::BTreeSet::from([provider::MediaKind::Image]);
        assert_eq!(blame, Some(provider::RefusalCause::Kinds(image)));
    }
    assert_eq!(server.requests().len(), count);
}

#[tokio::test]
async fn dropping_the_receiver_closes_the_connection() {
    let server = ModelServer::start().await;
    server.answers([Answer::streams_forever("la "), Answer::streams_forever("la ")]);

    // The future is dropped, as a cancel does.
    let (sender, mut receiver) = mpsc::channel(1);
    let endpoint = endpoint(&server);
    let request = greeting();
    tokio::select! {
        ended = send_request(&endpoint, &request, &sender) => panic!("it ended: {ended:?}"),
        event = receiver.recv() => assert!(event.is_some()),
    }
    server.abandoned(1).await;

    // The receiver is gone.
    drop(receiver);
    let ended = send_request(&endpoint, &request, &sender).await;
    assert_eq!(ended.unwrap_err().kind, Interrupted);
    server.abandoned(2).await;
}

#[tokio::test]
async fn a_cancel_before_the_first_byte_hangs_up_too() {
    let server = ModelServer::start().await;
    let never = Gate::new();
    server.answers([Answer::streams([]).begins_after(&never)]);
    let (sender, _receiver) = mpsc::channel(1);
    let endpoint = endpoint(&server);
    let asking = tokio::spawn(async move { send_request(&endpoint, &greeting(), &sender).await });
    never.reached().await;
    asking.abort();
    server.abandoned(1).await;
}

#[tokio::test]
async fn long_complaints_are_cut_and_made_readable() {
    let body = format!("\u{1b}[31mfirst line\r\n{}", "x".repeat(1 << 20));
    let (received, _) = ask_one_with(Answer::status(400, &body)).await;
    let message = &received.error().message;
    assert!(
        message.starts_with("the model server does not take the request (400): [31mfirst line xxx"),
        "{message}"
    );
    assert!(message.chars().count() <= 601);
}

#[tokio::test]
async fn a_list_that_is_none() {
    let server = ModelServer::start().await;
    let elsewhere = ModelEndpoint::new(&server.url().replace("/v1", "/v2")).unwrap();
    let error = provider::list_models(&elsewhere).await.unwrap_err();
    assert_eq!(error.kind, Rejected);
    assert_eq!(
        error.message,
        "the model server does not know this model or address (404): no such address"
    );
}
