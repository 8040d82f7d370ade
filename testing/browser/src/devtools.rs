//! The DevTools protocol: commands with their answers, and events, over one WebSocket.
//!
//! Promises: an answer goes to the command that asked; events go on in the order they came; a browser that does not answer is an
//! error and no wait without an end.
//! Must not know: what commands mean.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Machines that run tests may be busy.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Something that happened: its name and what is known of it.
pub(crate) type EventHandler = Box<dyn Fn(&str, &Value) + Send>;

/// A connection to a browser.
#[derive(Clone)]
pub(crate) struct DevTools {
    last_id: Arc<AtomicU64>,
    commands: mpsc::UnboundedSender<String>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    waiting: BTreeMap<u64, oneshot::Sender<Value>>,
    /// By session: a page that is attached to.
    handlers: BTreeMap<String, EventHandler>,
}

impl DevTools {
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let connected = tokio_tungstenite::connect_async_with_config(url, Some(config), true);
        let (socket, _) = connected.await.context("DevTools")?;
        let (mut sink, mut stream) = socket.split();
        let (commands, mut queue) = mpsc::unbounded_channel::<String>();
        let shared: Arc<Mutex<Shared>> = Arc::default();
        tokio::spawn(async move {
            while let Some(text) = queue.recv().await {
                if sink.send(Message::text(text)).await.is_err() {
                    break; // whoever waits for the answer hears that the browser is gone
                }
            }
        });
        let heard = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                if let Ok(text) = message.to_text()
                    && let Ok(message) = serde_json::from_str(text)
                {
                    lock(&heard).hear(message);
                }
            }
            lock(&heard).waiting.clear();
        });
        Ok(Self { last_id: Arc::default(), commands, shared })
    }

    /// What is called with each event of a page, from the first on.
    pub(crate) fn on_events(&self, session: &str, handler: EventHandler) {
        lock(&self.shared).handlers.insert(session.to_owned(), handler);
    }

    /// Sends a command, to a page or to the browser itself.
    pub(crate) async fn command(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        lock(&self.shared).waiting.insert(id, answer);
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            command["sessionId"] = json!(session);
        }
        self.commands.send(command.to_string()).context("the browser is gone")?;
        let mut answer = timeout(ANSWER_WITHIN, answered)
            .await
            .with_context(|| format!("{method} was not answered"))?
            .with_context(|| format!("the browser ended before it answered {method}"))?;
        match answer.get("error") {
            Some(error) => bail!("{method}: {error}"),
            None => Ok(answer["result"].take()),
        }
    }
}

impl Shared {
    fn hear(&mut self, message: Value) {
        if let Some(id) = message["id"].as_u64() {
            if let Some(waiting) = self.waiting.remove(&id) {
                // Whoever asked may have stopped waiting.
                let _ = waiting.send(message);
            }
            return;
        }
        let session = message["sessionId"].as_str().unwrap_or_default();
        if let (Some(handler), Some(method)) =
            (self.handlers.get(session), message["method"].as_str())
        {
            handler(method, &message["params"]);
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
