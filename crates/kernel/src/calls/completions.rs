//! `completions`: what may be meant by what somebody is typing (H-241). The host looks; a step must not.

use serde_json::json;
use wire::published::commands::{CompletionItemKind, CompletionsParams};
use wire::rpc::code;
use wire::{ChannelUri, Id, RpcError};

use crate::Kernel;
use crate::errand::Errand;
use crate::io::{Complete, Completed, PeerId};
use crate::load::{Flow, Memo};

/// What may begin something that can be completed.
pub(crate) const TRIGGER_CHARACTERS: [&str; 2] = ["@", "/"];

impl Kernel {
    pub(crate) fn completions(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &CompletionsParams,
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
        let found = self.typed_into(&uri).and_then(|working_directories| {
            let offset = u64::try_from(params.offset).map_err(|_| outside_text())?;
            Ok((working_directories, offset))
        });
        let (working_directories, offset) = match found {
            Ok(found) => found,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        if params.kind != CompletionItemKind::UserMessage {
            self.respond(peer, id, &json!({"items": []}));
            return Flow::Ready(());
        }
        let error = match memo.completed() {
            None => {
                return Flow::Errand(Errand::Complete(Box::new(Complete {
                    working_directories,
                    text: params.text.clone(),
                    offset,
                })));
            }
            Some(Ok(Completed::Items(items))) => {
                self.respond(peer, id, &json!({"items": items}));
                return Flow::Ready(());
            }
            Some(Ok(Completed::OutsideText)) => outside_text(),
            Some(Err(failed)) => RpcError::new(code::INTERNAL_ERROR, failed.to_string()),
        };
        self.answer_error(peer, id, &error)
    }

    /// The working directories of a chat or a session that somebody types into.
    fn typed_into(&self, uri: &ChannelUri) -> Result<Vec<String>, RpcError> {
        if uri.is_root() {
            let message = "`channel` must be a chat or a session";
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        if self.chat(uri).is_some() {
            return Ok(self.directories_of(uri));
        }
        let session = self.session_state(uri).ok_or_else(|| self.not_found(uri))?;
        Ok(session.working_directories.clone().unwrap_or_default())
    }
}

fn outside_text() -> RpcError {
    let message = "`offset` must be from 0 to the length of `text` in UTF-16 units";
    RpcError::new(code::INVALID_PARAMS, message)
}
