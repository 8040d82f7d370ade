//! Lines out, answers in: the agent's side of the pipe.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::SessionNotification;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, Stdout};
use tokio::sync::oneshot;

use crate::script::RequestIds;

/// What the client answered: a result or an error.
pub(crate) type Answered = Result<Value, Value>;

/// A request of the agent that is open.
#[derive(Debug)]
struct OpenRequest {
    session: String,
    id: Value,
    answer: oneshot::Sender<Answered>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    output: tokio::sync::Mutex<Stdout>,
    ids: RequestIds,
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    next: u64,
    open: BTreeMap<String, OpenRequest>,
}

impl Connection {
    pub(crate) fn new(ids: RequestIds) -> Self {
        Self {
            output: tokio::sync::Mutex::new(tokio::io::stdout()),
            ids,
            requests: Mutex::default(),
        }
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut output = self.output.lock().await;
        output.write_all(bytes).await?;
        Ok(output.flush().await?)
    }

    async fn send(&self, mut frame: Value) -> Result<()> {
        frame["jsonrpc"] = json!("2.0");
        let mut line = frame.to_string();
        line.push('\n');
        self.write(line.as_bytes()).await
    }

    pub(crate) async fn notify(&self, method: &str, params: &Value) -> Result<()> {
        self.send(json!({"method": method, "params": params})).await
    }

    /// Sends an update that has to be of the schema.
    pub(crate) async fn update(&self, session: &str, update: &Value) -> Result<()> {
        let params = json!({"sessionId": session, "update": update});
        serde_json::from_value::<SessionNotification>(params.clone())
            .with_context(|| format!("this update is not of the schema: {update}"))?;
        self.notify("session/update", &params).await
    }

    /// Sends a request; its id, and where its answer will come.
    pub(crate) async fn request(
        &self,
        session: &str,
        method: &str,
        params: &Value,
    ) -> Result<(Value, oneshot::Receiver<Answered>)> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut requests = self.requests();
            let number = requests.next;
            requests.next += 1;
            let id = match self.ids {
                RequestIds::Numbers => json!(number),
                RequestIds::Strings => json!(format!("ask-{number}")),
            };
            let request = OpenRequest { session: session.to_owned(), id: id.clone(), answer };
            requests.open.insert(id.to_string(), request);
            id
        };
        self.send(json!({"id": id, "method": method, "params": params})).await?;
        Ok((id, answered))
    }

    pub(crate) async fn respond(&self, id: &Value, answer: Answered) -> Result<()> {
        let frame = match answer {
            Ok(result) => json!({"id": id, "result": result}),
            Err(error) => json!({"id": id, "error": error}),
        };
        self.send(frame).await
    }

    /// Takes the client's answer. One that nobody asked for is in the log of what was received.
    pub(crate) fn take_answer(&self, id: &Value, answer: Answered) {
        let open = self.requests().open.remove(&id.to_string());
        if let Some(open) = open {
            // The step that asked may have been cancelled.
            let _ = open.answer.send(answer);
        }
    }

    /// The ids of the open requests of a session.
    pub(crate) fn open_requests(&self, session: &str) -> Vec<Value> {
        let requests = self.requests();
        let of_session = requests.open.values().filter(|it| it.session == session);
        of_session.map(|it| it.id.clone()).collect()
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
