//! `x-addModel` and `x-reloadModels`: the host changes which models an agent has, and all clients are notified (G-71).

use serde_json::Value;
use wire::RpcError;
use wire::rpc::code;

use super::uri;
use crate::io::ModelChange;
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::state::Kernel;

/// The answer, once the host has done it.
pub(super) fn gather(
    kernel: &Kernel,
    answers: &HandlerAnswers,
    change: impl FnOnce() -> ModelChange,
) -> Result<Value, RequestStop> {
    if !kernel.facts().clients_have_token {
        // Anybody on this machine could have the host send a file to an address of their choice.
        let message = "models are changed by clients with the host's token only, and this host asks for none; name models \
                       in its configuration or on its command line";
        return Err(RpcError::new(code::PERMISSION_DENIED, message).into());
    }
    match answers.model_change_result() {
        None => {
            uri::check_writable(kernel)?;
            Err(Pause::Work(HostWork::ChangeModels(Box::new(change()))).into())
        }
        Some(Ok(answer)) => Ok(answer.clone()),
        Some(Err(failed)) => Err(uri::bad(failed.to_string()).into()),
    }
}
