//! `disposeChat`: ends one chat of a session; the only one cannot go (H-154, H-155, G-13).

use serde_json::Value;
use wire::published::commands::DisposeChatParams;
use wire::rpc::code;
use wire::{Id, RpcError};

use crate::Kernel;
use crate::io::PeerId;
use crate::load::{Flow, Memo};

impl Kernel {
    pub(crate) fn dispose_chat_call(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &DisposeChatParams,
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
        if uri.is_root() || self.session(&uri).is_some() {
            let error = RpcError::new(code::INVALID_PARAMS, "`channel` must be a chat");
            return self.answer_error(peer, id, &error);
        }
        let Some(chat) = self.chat(&uri) else {
            let error = self.not_found(&uri);
            return self.answer_error(peer, id, &error);
        };
        let chats = self.session_state(&chat.session);
        if chats.is_none_or(|session| session.chats.len() < 2) {
            let message =
                "the only chat of a session cannot be disposed of; dispose of the session";
            let error = RpcError::new(code::INVALID_PARAMS, message);
            return self.answer_error(peer, id, &error);
        }
        if let Some(reason) = self.unwritable() {
            return self.answer_error(peer, id, &RpcError::new(code::INTERNAL_ERROR, reason));
        }
        self.dispose_chat(&uri);
        self.respond(peer, id, &Value::Null);
        Flow::Ready(())
    }
}
