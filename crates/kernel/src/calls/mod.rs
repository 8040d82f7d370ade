//! Requests: one file per method, named as on the wire. Each gathers what it needs, which may pause it, and then applies it,
//! which may not.

mod authenticate;
mod change_models;
mod completions;
mod compose;
mod create_chat;
mod create_resource_watch;
mod create_session;
mod create_terminal;
mod dispose_chat;
mod dispose_session;
mod fetch_turns;
mod import_session;
mod initialize;
mod invoke_changeset_operation;
mod list_sessions;
mod move_chat;
mod reconnect;
mod replay;
mod resolve_session_config;
mod resource;
mod serve;
mod session_config_completions;
mod subscribe;
pub(crate) mod unsubscribe;
mod uri;

use serde_json::Value;
use wire::methods::Call;
use wire::rpc::code;
use wire::{Id, RpcError};

use crate::io::{ModelChange, PeerId};
use crate::pause::RequestStop;
use crate::peers::ParkedMessage;
use crate::rights::check_call;
use crate::state::Step;

/// Handles a request, as far as it goes.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn handle(
    step: &mut Step,
    peer: PeerId,
    id: &Id,
    call: &Call,
    waiting: &ParkedMessage,
) -> Result<(), RequestStop> {
    let answers = &waiting.answers;
    let admitted = step.ready(peer).is_some();
    check_call(step, peer, call)?;
    match call {
        Call::Initialize(_) | Call::Reconnect(_) if admitted => {
            Err(invalid("this connection is initialized already").into()) // G-21
        }
        Call::Initialize(params) => {
            let (version, generation) = initialize::negotiate(step, peer, params)?;
            initialize::gather(step, peer, params, version, generation, answers)
                .map(|facts| initialize::apply(step, peer, id, facts))
        }
        Call::Reconnect(params) => reconnect::gather(step, peer, params, answers)
            .map(|facts| reconnect::apply(step, peer, id, facts)),
        Call::Ping => {
            step.respond(peer, id, &Value::Null);
            Ok(())
        }
        _ if !admitted => Err(invalid("send `initialize` or `reconnect` first").into()), // H-020
        Call::Subscribe(params) => subscribe::gather(step, peer, params, answers)
            .map(|facts| subscribe::apply(step, peer, id, facts)),
        Call::CreateSession(params, raw) => {
            create_session::gather(step, peer, params, raw, answers)
                .map(|new| create_session::apply(step, peer, id, new))
        }
        Call::CreateChat(params, raw) => create_chat::gather(step, peer, params, raw, waiting)
            .map(|facts| create_chat::apply(step, peer, id, facts)),
        Call::DisposeChat(params) => dispose_chat::gather(step, params, answers)
            .map(|chat| dispose_chat::apply(step, peer, id, &chat)),
        Call::CreateTerminal(params) => create_terminal::gather(step, peer, params, answers)
            .map(|new| create_terminal::apply(step, peer, id, new)),
        Call::DisposeTerminal(params) => {
            create_terminal::gather_disposal(step, peer, params, answers)
                .map(|uri| create_terminal::apply_disposal(step, peer, id, &uri))
        }
        Call::MoveChat(params) => move_chat::gather(step, peer, params, answers)
            .map(|planned| move_chat::apply(step, peer, id, planned)),
        Call::DisposeSession(params) => dispose_session::gather(step, params, answers)
            .map(|session| dispose_session::apply(step, peer, id, &session)),
        Call::ListSessions(params) => list_sessions::gather(step, peer, params, answers)
            .map(|page| step.respond(peer, id, &page)),
        Call::Resource(call) => resource::gather(step, peer, call, answers)
            .map(|answer| resource::apply(step, peer, id, call, answer)),
        Call::CreateResourceWatch(params) => {
            create_resource_watch::gather(step, peer, params, answers)
                .map(|begun| create_resource_watch::apply(step, peer, id, begun))
        }
        Call::FetchTurns(params, limit) => fetch_turns::gather(step, peer, params, answers)
            .map(|fetched| fetch_turns::apply(step, peer, id, &fetched, *limit)),
        Call::Completions(params) => completions::gather(step, peer, params, answers)
            .map(|items| step.respond(peer, id, &items)),
        Call::ImportSession(params) => import_session::gather(step, params, answers)
            .map(|imported| import_session::apply(step, peer, id, imported)),
        Call::Compose(params) => compose::gather(step, peer, params, waiting)
            .map(|answer| step.respond(peer, id, &answer)),
        Call::AddModel(model) => {
            change_models::gather(step, answers, || ModelChange::Add(model.clone()))
                .map(|answer| step.respond(peer, id, &answer))
        }
        Call::ReloadModels => change_models::gather(step, answers, || ModelChange::Reload)
            .map(|answer| step.respond(peer, id, &answer)),
        Call::ResolveSessionConfig(params) => resolve_session_config::resolve(step, peer, params)
            .map(|config| step.respond(peer, id, &config))
            .map_err(RequestStop::from),
        Call::SessionConfigCompletions(params) => {
            session_config_completions::gather(step, peer, params, answers)
                .map(|items| step.respond(peer, id, &items))
        }
        Call::InvokeChangesetOperation(params) => {
            invoke_changeset_operation::gather(step, params, answers)
                .map(|answer| step.respond(peer, id, &answer))
        }
        Call::Authenticate(params) => authenticate::gather(step, peer, params)
            .map(|brought| authenticate::apply(step, peer, id, brought))
            .map_err(RequestStop::from),
    }
}

fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message)
}
