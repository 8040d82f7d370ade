//! `createResourceWatch`: the host starts a watch and reports changes on a channel with a fresh URI (H-260).

use serde_json::{Value, json};
use wire::published::commands::CreateResourceWatchParams;
use wire::rpc::code;
use wire::{ChannelUri, Id, RpcError};

use super::{resource, uri};
use crate::io::{Effect, PeerId};
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::resource_watch;
use crate::state::{Kernel, Step};
use crate::watch_task::WatchTask;

/// A watch that the host began.
pub(super) struct NewResourceWatch {
    uri: ChannelUri,
    task: WatchTask,
}

pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &CreateResourceWatchParams,
    answers: &HandlerAnswers,
) -> Result<NewResourceWatch, RequestStop> {
    let Some(ready) = kernel.ready(peer) else {
        let message = "send `initialize` or `reconnect` first";
        return Err(RpcError::new(code::INVALID_REQUEST, message).into());
    };
    resource::check_scheme(&params.uri)?;
    let task = WatchTask {
        client_id: ready.client_id.clone(),
        uri: params.uri.clone(),
        recursive: params.recursive.unwrap_or(false),
        excludes: items(params.excludes.as_ref(), "excludes")?.unwrap_or_default(),
        includes: items(params.includes.as_ref(), "includes")?,
    };
    match answers.watch_result() {
        None => {
            uri::check_writable(kernel)?;
            Err(Pause::Work(HostWork::BeginWatch(Box::new(task))).into())
        }
        Some(Ok(uri)) => Ok(NewResourceWatch { uri: uri.clone(), task }),
        Some(Err(refusal)) => Err(refusal.to_error(&params.uri, None).into()),
    }
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, begun: NewResourceWatch) {
    let NewResourceWatch { uri, task } = begun;
    if let Err(error) = uri::check_writable(step) {
        // Nothing can be recorded any more, and a channel needs a number.
        step.effect(Effect::EndWatch { watch: uri });
        return step.fail(peer, id, &error);
    }
    resource_watch::begin(step, uri.clone(), &task);
    step.respond(peer, id, &json!({"channel": uri.as_str()}));
}

/// `{items: [..]}` (H-262).
fn items(field: Option<&Value>, name: &str) -> Result<Option<Vec<String>>, RpcError> {
    let Some(field) = field.filter(|field| !field.is_null()) else { return Ok(None) };
    let wrong = || uri::bad(format!("`{name}` must be {{items: [..]}} with texts"));
    let items = field["items"]
        .as_array()
        .ok_or_else(wrong)?
        .iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong));
    items.collect::<Result<Vec<String>, _>>().map(Some)
}
