//! A client of 1.0 that says what older ones have no words for: plain JSON over a socket.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::host::Host;

pub struct Driver {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: i64,
}

impl Driver {
    pub async fn joins(host: &Host, name: &str) -> Self {
        let (socket, _) = tokio_tungstenite::connect_async(&host.url)
            .await
            .expect("a socket");
        let mut driver = Self { socket, next: 1 };
        let params =
            json!({"channel": "ahp-root://", "clientId": name, "protocolVersions": ["1.0.0"]});
        driver.asks("initialize", params).await;
        driver
    }

    async fn sends(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.expect("the host listens");
    }

    async fn hears(&mut self) -> Value {
        loop {
            let message = self
                .socket
                .next()
                .await
                .expect("the host speaks")
                .expect("a message");
            if let Message::Text(text) = message {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }

    pub async fn asks(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        loop {
            let heard = self.hears().await;
            if heard["id"] == id {
                assert!(heard.get("error").is_none(), "{method}: {heard}");
                return heard["result"].clone();
            }
        }
    }

    pub async fn snapshot_of(&mut self, channel: &str) -> Value {
        let result = self.asks("subscribe", json!({"channel": channel})).await;
        result["snapshot"]["state"].clone()
    }

    /// Dispatches an action on a channel that it watches from now on.
    pub async fn does(&mut self, channel: &str, action: Value) {
        self.snapshot_of(channel).await;
        let seq = self.next;
        self.next += 1;
        let params = json!({"channel": channel, "clientSeq": seq, "action": action});
        self.sends(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
            .await;
        loop {
            let heard = self.hears().await;
            if heard["params"]["origin"]["clientSeq"] == seq {
                let reason = heard["params"].get("rejectionReason");
                assert!(reason.is_none(), "{heard}");
                return;
            }
        }
    }

    pub async fn until_turn_ends(&mut self, chat: &str, turn: &str) {
        loop {
            let state = self.snapshot_of(chat).await;
            let turns = state["turns"].as_array().cloned().unwrap_or_default();
            if turns.iter().any(|ended| ended["id"] == turn) {
                return;
            }
            self.hears().await;
        }
    }
}
