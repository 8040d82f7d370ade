//! `invokeChangesetOperation`: the host carries it out; what follows from it comes as actions of the changeset (H-287).

use serde_json::Value;
use wire::RpcError;
use wire::published::commands::{ChangesetOperationTarget, InvokeChangesetOperationParams};
use wire::rpc::code;

use super::uri;
use crate::changeset_work::ChangesetOperation;
use crate::changesets::target_of;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::state::Kernel;

/// What its client is answered.
pub(super) fn gather(
    kernel: &Kernel,
    params: &InvokeChangesetOperationParams,
    answers: &HandlerAnswers,
) -> Result<Value, RequestStop> {
    if let Some(outcome) = answers.operation_result() {
        return outcome.clone().map_err(RequestStop::from);
    }
    let channel = uri::parse("channel", &params.channel)?;
    if !need_channel(kernel, &channel, answers)? {
        return Err(uri::not_found(kernel, &channel).into());
    }
    uri::check_writable(kernel)?;
    let plain = kernel.find_plain(&channel);
    let state = plain.and_then(|plain| plain.state().changeset());
    let (Some(state), Some(target)) = (state, target_of(kernel, &channel)) else {
        return Err(uri::bad(format!("{channel} is not a changeset")).into());
    };
    let id = params.operation_id.as_str();
    let operation = state.operation(id);
    let operation = operation.ok_or_else(|| uri::bad("this changeset has no such operation"))?;
    let resource = check_target(operation, params.target.as_ref())?;
    match operation["status"].as_str() {
        Some("disabled") => return Err(conflict("this operation is disabled now").into()),
        Some("running") => return Err(conflict("this operation is already running").into()),
        Some(_) | None => {}
    }
    let meta = params.meta.clone().unwrap_or_default();
    let is_empty = |text: &str| text.trim().is_empty();
    if id == "commit" && meta.get("message").and_then(Value::as_str).is_none_or(is_empty) {
        return Err(uri::bad("a commit needs its message in `_meta.message`").into());
    }
    let operation = ChangesetOperation {
        place: target,
        id: id.to_owned(),
        resource,
        meta: meta.into_iter().collect(),
    };
    Err(Pause::Work(HostWork::OperateChangeset(Box::new(operation))).into())
}

fn conflict(message: &str) -> RpcError {
    RpcError::new(code::CONFLICT, message)
}

/// The file that an operation is about, if it is about one: what its scopes say must fit what the client says.
fn check_target(
    operation: &Value,
    target: Option<&ChangesetOperationTarget>,
) -> Result<Option<String>, RpcError> {
    let scopes = operation["scopes"].as_array();
    let has = |scope: &str| scopes.is_some_and(|scopes| scopes.iter().any(|own| own == scope));
    let (scope, resource) = match target {
        None => ("changeset", None),
        Some(ChangesetOperationTarget::Resource { resource, .. }) => {
            ("resource", Some(resource.clone()))
        }
        Some(ChangesetOperationTarget::Range { resource, .. }) => ("range", Some(resource.clone())),
        Some(ChangesetOperationTarget::Unknown(_)) => {
            return Err(uri::bad("`target.kind` is `resource` or `range`"));
        }
    };
    if has(scope) {
        Ok(resource)
    } else if target.is_none() {
        Err(uri::bad("this operation needs a `target`"))
    } else {
        Err(uri::bad(format!("this operation has no target of kind `{scope}`")))
    }
}
