//! A transport without its type, so that the library's client is compiled once for all transports.
//!
//! Promises: messages pass unchanged; an error has that of the transport as its source.
//! Must not know: where messages go.

use std::error::Error;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

pub(super) struct AnyTransport(Box<dyn BoxedTransport>);

impl AnyTransport {
    pub(super) fn new(transport: impl Transport<RoleClient> + 'static) -> Self {
        Self(Box::new(transport))
    }
}

/// Error of the transport inside.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct TransportError(#[source] Box<dyn Error + Send + Sync>);

trait BoxedTransport: Send {
    fn send_boxed(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> BoxFuture<'static, Result<(), TransportError>>;

    fn receive_boxed(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>>;

    fn close_boxed(&mut self) -> BoxFuture<'_, Result<(), TransportError>>;
}

impl<T: Transport<RoleClient>> BoxedTransport for T {
    fn send_boxed(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> BoxFuture<'static, Result<(), TransportError>> {
        self.send(message).map(box_error).boxed()
    }

    fn receive_boxed(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>> {
        self.receive().boxed()
    }

    fn close_boxed(&mut self) -> BoxFuture<'_, Result<(), TransportError>> {
        self.close().map(box_error).boxed()
    }
}

fn box_error<E: Error + Send + Sync + 'static>(
    result: Result<(), E>,
) -> Result<(), TransportError> {
    result.map_err(|error| TransportError(Box::new(error)))
}

impl Transport<RoleClient> for AnyTransport {
    type Error = TransportError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        self.0.send_boxed(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<ServerJsonRpcMessage>> + Send {
        self.0.receive_boxed()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), TransportError>> + Send {
        self.0.close_boxed()
    }
}
