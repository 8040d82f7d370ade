//! `disposeSession`: ends a session for everyone (H-118).

use serde_json::Value;
use wire::published::commands::DisposeSessionParams;
use wire::rpc::code;
use wire::{Id, RpcError};

use crate::Kernel;
use crate::io::PeerId;
use crate::load::{Flow, Memo};

impl Kernel {
    pub(crate) fn dispose_session_call(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &DisposeSessionParams,
        memo: &Memo,
    ) -> Flow<()> {
        let uri = match self.parse_channel(&params.channel) {
            Ok(uri) => uri,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        match self.need_channel(&uri, memo) {
            Flow::Ready(_) => {}
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        }
        if self.session(&uri).is_none() {
            let error = RpcError::new(
                code::SESSION_NOT_FOUND,
                format!("there is no session {uri}"),
            );
            return self.answer_error(peer, id, &error);
        }
        if let Some(reason) = self.unwritable() {
            return self.answer_error(peer, id, &RpcError::new(code::INTERNAL_ERROR, reason));
        }
        self.dispose_session(&uri);
        self.respond(peer, id, &Value::Null);
        Flow::Ready(())
    }
}
