//! A receiver that tests read from.

use tokio::sync::mpsc;

use super::*;

/// Sends events on; a stored body becomes its own name.
pub(crate) struct ChannelReceiver(mpsc::Sender<AgentEvent>);

pub(crate) fn channel_sink(
    sender: mpsc::Sender<AgentEvent>,
    replies: PendingReplies,
) -> TurnSink<ChannelReceiver> {
    TurnSink::new(ChannelReceiver(sender), replies)
}

#[async_trait]
impl HostServices for ChannelReceiver {
    async fn store_body(
        &self,
        body: Vec<u8>,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        Ok(ContentRef {
            uri: String::from_utf8_lossy(&body).into_owned(),
            size_hint: i64::try_from(body.len()).ok(),
            content_type: Some(content_type.to_owned()),
            nonce: None,
        })
    }

    async fn store_named_body(
        &self,
        body: NamedBody,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        self.store_body(body.to_vec(), content_type).await
    }

    async fn read_message(&self, _: String) -> Option<Arc<UserMessage>> {
        None
    }

    async fn read_history(&self) -> Result<Vec<PastTurn>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_lowering(&self, _: Lowering) {}

    async fn record_output(&self, _: ModelOutput) {}

    async fn record_call(&self, _: ModelCall) -> Option<CallId> {
        None
    }

    fn record_call_end(&self, _: CallId, _: CallEnd) {}

    async fn begin_call(&self, _: CallEstimate, _: CallKind) -> Result<CallPermit, StoreError> {
        Ok(CallPermit::Granted { unpriced: false })
    }

    async fn release_call(&self) {}

    async fn settle_call(&self, _: CallUsage) {}

    async fn extend_budget(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl EventReceiver for ChannelReceiver {
    async fn accept(&self, event: AgentEvent) -> Result<(), TurnOver> {
        self.0.send(event).await.map_err(|_| TurnOver)
    }

    async fn closed(&self) {
        self.0.closed().await;
    }

    fn pause_work(&self) {}

    fn resume_work(&self) {}
}
