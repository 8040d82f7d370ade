//! What a call prints, as events: while it runs, and when it is over.
//!
//! Must not know: which calls there are, who consents.

use agent_api::{AgentEvent, EventSink, TerminalOffer, TurnOver};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::tool::{self, ShowRequest};

/// Shows what a call prints while it runs, and the terminal that it runs in.
pub(crate) async fn forward_output(
    events: &dyn EventSink,
    call: u64,
    mut outputs: mpsc::Receiver<String>,
    mut shows: mpsc::Receiver<ShowRequest>,
) -> Result<(), TurnOver> {
    let mut terminal = None;
    loop {
        let text = tokio::select! {
            biased;
            Some(ShowRequest { offer, shown }) = shows.recv() => {
                let title = offer.title.clone();
                let resource = events.show_terminal(TerminalOffer { call, ..offer }).await;
                // Without a terminal to look at the command runs all the same.
                let resource = resource.ok();
                terminal = resource.as_ref().map(|resource| tool::terminal_block(resource, &title));
                // Who asked is gone if the turn is over.
                let _ = shown.send(resource);
                None
            }
            Some(text) = outputs.recv() => Some(json!({"type": "text", "text": text})),
            else => return Ok(()),
        };
        let content: Vec<Value> = text.into_iter().chain(terminal.clone()).collect();
        if !content.is_empty() {
            events.send(AgentEvent::ToolContent { call, content }).await?;
        }
    }
}

/// The blocks of a result: what the model reads, what people see besides, and the whole where that is only part of it.
pub(crate) async fn result_content(
    events: &dyn EventSink,
    text: &str,
    further: Vec<Value>,
    whole: Option<Vec<u8>>,
) -> Vec<Value> {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(further);
    if let Some(whole) = whole {
        match events.store_body(whole, "text/plain").await {
            Ok(stored) => {
                let mut block = json!(stored);
                block["type"] = json!("resource");
                content.push(block);
            }
            Err(why) => {
                let text = format!("(The whole output could not be stored: {why})");
                content.push(json!({"type": "text", "text": text}));
            }
        }
    }
    content
}
