//! A client without types, plain JSON over a socket: what it says is what the test says, right or wrong, in any version.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::host::Host;

const DEADLINE: Duration = Duration::from_secs(60);

// Each test uses a part of it.
#[allow(dead_code)]
pub struct Driver {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: i64,
    name: String,
    /// What came while it waited for something else, oldest first.
    pub heard: Vec<Value>,
}

#[allow(dead_code)]
impl Driver {
    /// A socket on which nothing was said yet.
    pub async fn connects(host: &Host) -> Self {
        let (socket, _) = tokio_tungstenite::connect_async(&host.url).await.expect("a socket");
        Self { socket, next: 1, name: String::new(), heard: Vec::new() }
    }

    pub async fn joins(host: &Host, name: &str) -> Self {
        Self::joins_as(host, name, "1.0.0").await
    }

    pub async fn joins_as(host: &Host, name: &str, version: &str) -> Self {
        let mut driver = Self::connects(host).await;
        let params = json!({"channel": "ahp-root://", "clientId": name, "protocolVersions": [version],
            "initialSubscriptions": ["ahp-root://"]});
        let greeted = driver.asks("initialize", params).await;
        assert_eq!(greeted["protocolVersion"], version);
        driver.name = name.to_owned();
        driver
    }

    async fn sends(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.expect("the host listens");
    }

    async fn hears(&mut self) -> Value {
        loop {
            let message = timeout(DEADLINE, self.socket.next()).await.expect("something in time");
            let message = message.expect("the host speaks").expect("a message");
            if let Message::Text(text) = message {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }

    /// The next frame that is the one; others are kept in `heard`.
    pub async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&is_it) {
            return self.heard.remove(at);
        }
        loop {
            let heard = self.hears().await;
            if is_it(&heard) {
                return heard;
            }
            self.heard.push(heard);
        }
    }

    /// The next action of this kind, in its envelope.
    pub async fn until_action(&mut self, kind: &str) -> Value {
        let frame = self.until(|heard| heard["params"]["action"]["type"] == kind);
        frame.await["params"].clone()
    }

    /// Whether the host closes the connection, whatever it says before.
    pub async fn is_closed(&mut self) -> bool {
        let end = async {
            while let Some(Ok(message)) = self.socket.next().await {
                if message.is_close() {
                    break;
                }
            }
        };
        timeout(DEADLINE, end).await.is_ok()
    }

    /// The result, or the error.
    pub async fn tries(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.next;
        self.next += 1;
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.until(|heard| heard["id"] == id).await;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    pub async fn asks(&mut self, method: &str, params: Value) -> Value {
        match self.tries(method, params).await {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error}"),
        }
    }

    pub async fn snapshot_of(&mut self, channel: &str) -> Value {
        let result = self.asks("subscribe", json!({"channel": channel})).await;
        result["snapshot"]["state"].clone()
    }

    /// Dispatches an action; the envelope that comes back for it, be it the echo or the refusal.
    pub async fn dispatches(&mut self, channel: &str, action: Value) -> Value {
        let seq = self.next;
        self.next += 1;
        let params = json!({"channel": channel, "clientSeq": seq, "action": action});
        self.sends(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
        let origin = json!({"clientId": self.name, "clientSeq": seq});
        let own = self.until(|heard| heard["params"]["origin"] == origin);
        own.await["params"].clone()
    }

    /// Dispatches an action on a channel that it watches from now on; it is accepted.
    pub async fn does(&mut self, channel: &str, action: Value) {
        self.snapshot_of(channel).await;
        let own = self.dispatches(channel, action).await;
        assert!(own.get("rejectionReason").is_none(), "{own}");
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
