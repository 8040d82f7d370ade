//! Published clients use tungstenite: so does this one.

use futures_util::{SinkExt, StreamExt};
use host::ServerLimits;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{Host, TOKEN, notification, text};

#[tokio::test]
async fn tungstenite_talks_with_the_host() {
    let limits = ServerLimits { fragment_bytes: 64 * 1_024, ..ServerLimits::default() };
    let mut host = Host::start(limits).await;
    let (mut client, _) = connect_async(host.url()).await.unwrap();
    let (peer, link) = host.joined().await;

    let long = notification(&"m".repeat(300_000));
    client.send(Message::text(notification("small"))).await.unwrap();
    client.send(Message::binary(notification("binary"))).await.unwrap();
    client.send(Message::text(long)).await.unwrap();
    assert_eq!(host.receive().await, "small");
    assert_eq!(host.receive().await, "binary");
    assert_eq!(host.receive().await.len(), 300_000);

    let large = "z".repeat(1_000_000);
    link.push(text("short"), 0);
    link.push(text(&large), 5);
    assert_eq!(client.next().await.unwrap().unwrap(), Message::text("short"));
    assert_eq!(client.next().await.unwrap().unwrap(), Message::text(large));

    client.send(Message::Ping("hello".into())).await.unwrap();
    assert_eq!(client.next().await.unwrap().unwrap(), Message::Pong("hello".into()));

    let frame = CloseFrame { code: CloseCode::Normal, reason: "done".into() };
    client.close(Some(frame)).await.unwrap();
    host.receive_gone(peer).await;
    let echo = client.next().await.unwrap().unwrap();
    assert!(matches!(echo, Message::Close(Some(frame)) if frame.code == CloseCode::Normal));
    assert!(client.next().await.is_none());
}

#[tokio::test]
async fn tungstenite_gets_the_close_reason() {
    let mut host = Host::start(ServerLimits::default()).await;
    let (mut client, _) = connect_async(host.url()).await.unwrap();
    let (peer, link) = host.joined().await;
    link.close(1008, "another connection of this client");
    host.receive_gone(peer).await;
    let Message::Close(Some(frame)) = client.next().await.unwrap().unwrap() else { panic!() };
    assert_eq!(frame.code, CloseCode::Policy);
    assert_eq!(frame.reason.as_str(), "another connection of this client");
    assert!(client.next().await.is_none());
}

#[tokio::test]
async fn tungstenite_authenticates_by_header_and_gets_refusals() {
    let mut host = Host::start(ServerLimits::default()).await;
    let bare = format!("ws://{}/", host.addr);
    let mut request = bare.as_str().into_client_request().unwrap();
    let bearer = format!("Bearer {TOKEN}").parse().unwrap();
    request.headers_mut().insert("Authorization", bearer);
    connect_async(request).await.unwrap();
    host.joined().await;
    match connect_async(bare).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 401),
        other => panic!("{other:?}"),
    }
}
