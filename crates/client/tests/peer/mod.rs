//! A small host of the test's own: it says what the test says, over a real socket.

use client::HostTarget;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

pub type Peer = WebSocketStream<TcpStream>;

pub async fn listener() -> (TcpListener, HostTarget) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    (listener, HostTarget { url, token: Some("secret".to_owned()) })
}

pub async fn accept(listener: &TcpListener) -> Peer {
    let (stream, _) = listener.accept().await.unwrap();
    tokio_tungstenite::accept_async(stream).await.unwrap()
}

pub async fn read(peer: &mut Peer) -> Value {
    loop {
        if let Message::Text(text) = peer.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

pub async fn write(peer: &mut Peer, value: Value) {
    peer.send(Message::text(value.to_string())).await.unwrap();
}

pub async fn answer(peer: &mut Peer, result: Value) -> Value {
    let request = read(peer).await;
    write(peer, json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    request
}
