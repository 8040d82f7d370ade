//! `disposeSession`: ends a session for everyone (H-118). The answer says what of it stays on disk (G-54).

use serde_json::{Value, json};
use wire::published::commands::DisposeSessionParams;
use wire::rpc::code;
use wire::{ChannelUri, Id, RpcError};

use super::uri;
use crate::changesets::worktree_of;
use crate::io::PeerId;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::sessions;
use crate::state::{Kernel, Step};

/// What an answer has in its `_meta` for people.
const MESSAGE: &str = "greenroom.message";

/// A session that can be disposed of.
pub(super) struct DisposedSession {
    uri: ChannelUri,
    /// Why its worktree is kept, for people.
    kept: Option<String>,
}

pub(super) fn gather(
    kernel: &Kernel,
    params: &DisposeSessionParams,
    answers: &HandlerAnswers,
) -> Result<DisposedSession, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &uri, answers)?;
    if kernel.find_session(&uri).is_none() {
        let message = format!("there is no session {uri}");
        return Err(RpcError::new(code::SESSION_NOT_FOUND, message).into());
    }
    uri::check_writable(kernel)?;
    let kept = match (worktree_of(kernel, &uri), answers.worktree_check()) {
        (Some(facts), None) => return Err(Pause::Work(HostWork::CheckWorktree(facts)).into()),
        (Some(_), Some(kept)) => kept.clone(),
        (None, _) => None,
    };
    Ok(DisposedSession { uri, kept })
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, disposed: &DisposedSession) {
    sessions::dispose_session(step, &disposed.uri);
    let answer = match &disposed.kept {
        Some(kept) => json!({"_meta": {MESSAGE: kept}}),
        None => Value::Null,
    };
    step.respond(peer, id, &answer);
}
